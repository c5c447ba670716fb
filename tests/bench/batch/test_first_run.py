"""The study of whole commands from a shell."""

import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from bench.batch import first_run


@pytest.mark.deep
def test_a_cut(monkeypatch, tmp_path):
    program = Path(sys.executable).with_name("mig-opt")
    if not program.exists():
        pytest.skip("the command is not installed beside this Python")

    class Installed(first_run.Shell):
        megabytes = 1.0

        def install(self) -> float:
            self._program = str(program)
            return 0.0

    monkeypatch.setattr(first_run, "Shell", Installed)
    monkeypatch.setattr(first_run, "METHODS", ("far",))
    monkeypatch.setattr(first_run, "SHORT_LIMITS", (0.2,))
    monkeypatch.setattr(first_run, "busy", lambda _: nullcontext())
    first_run.main(["--cut", "--results", str(tmp_path)])
    text = (tmp_path / "first_run.md").read_text(encoding="utf-8")
    assert "| 7 to 12 | second | 2 of 2 |" in text
    assert "| `far` | 2 |" in text
