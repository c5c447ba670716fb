"""The study of executions runs, and writes what it measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from nvml_machine import library
from places import BENCH

if not BENCH.is_dir():
    pytest.skip("the tests run without the checkout", allow_module_level=True)

from bench.batch import execution


@pytest.mark.deep
def test_a_small_cut(tmp_path: Path) -> None:
    library()
    assert execution.main(["--cut", "--results", str(tmp_path)]) == 0
    text = (tmp_path / "execution.md").read_text(encoding="utf-8")
    assert "1 of 1 executions are complete and valid" in text
    cells = next(line for line in text.splitlines() if line.startswith("| 20 times")).split(" | ")
    assert (cells[1], cells[2]) == ("1", "1.422")
    assert float(cells[3]) > 1.42
