"""The study of FAR's speed: a tiny cut."""

from __future__ import annotations

from pathlib import Path

import pytest
from places import BENCH

if not BENCH.is_dir():
    pytest.skip("the tests run without the checkout", allow_module_level=True)

from bench.batch import far_speed


def test_a_tiny_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut = ["--tasks", "12", "--batches", "3", "--sizes", "A30:3", "--seeds", "2", "--repeats", "1"]
    far_speed.main([*cut, "--results", str(tmp_path)])
    text = (tmp_path / "far_speed.md").read_text(encoding="utf-8")
    assert text.strip() == capsys.readouterr().out.strip()
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    # Six kinds of batches, six of pairs, three streams, three rows against exact planning; and the four heads.
    assert len(rows) == 6 + 6 + 3 + 3 + 4
    exact = [row.split(" | ") for row in rows if row.startswith("| A30")]
    for row in exact:
        assert row[3] == "2 of 2"
        trivial, overlapping, moved, _ = (float(cell.rstrip("%")) for cell in row[4:8])
        assert trivial >= overlapping >= moved
