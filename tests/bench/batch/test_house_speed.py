"""The comparison of two versions of the package."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.batch import house_speed


@pytest.mark.deep
def test_a_version_beside_itself(capsys: pytest.CaptureFixture[str]) -> None:
    if not Path(sys.executable).with_name("mig-opt").exists():
        pytest.skip("the command is not installed beside this Python")
    house_speed.main([sys.executable, sys.executable, "--cut"])
    *rows, size = capsys.readouterr().out.splitlines()[2:]
    assert len(rows) == 10
    assert all(float(row.split("|")[2]) > 0 for row in rows)
    assert size.split("|")[2] == size.split("|")[3]
    assert "| 1.000 | 1.000 | 1.00 to 1.00 |" in size
