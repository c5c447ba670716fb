"""The study of the bounds from the loads runs, and writes what it found."""

from __future__ import annotations

from pathlib import Path

import pytest
from places import BENCH

if not BENCH.is_dir():
    pytest.skip("the tests run without the checkout", allow_module_level=True)

from bench.batch import load_bound


@pytest.mark.deep
def test_a_small_cut(tmp_path: Path) -> None:
    load_bound.main(["--seeds", "1", "--most", "12", "--results", str(tmp_path)])
    lines = (tmp_path / "load_bound.md").read_text(encoding="utf-8").splitlines()
    divided, whole = [line.split(" | ") for line in lines if line.startswith("| 12 | 1")]
    assert [row[2:4] for row in (divided, whole)] == [["3 of 3", "load program"], ["3 of 3", "dual prices"]]
    for row in (divided, whole):
        assert all(0 <= float(cell.strip(" %|")) < 20 for cell in row[4:])
    assert whole[4] < divided[4]
