"""Messages about bad files: the part of a line that is shown, and colours on a terminal only."""

import io
import re
import sys

import pytest

from mig_opt.cli.errors import error_text
from mig_opt.errors import InputError, Problem


class Terminal(io.StringIO):
    """Standard error, as if it were a terminal."""

    def isatty(self) -> bool:
        return True


def plain(text: str) -> str:
    return re.sub("\x1b\\[[0-9;]*m", "", text)


@pytest.mark.parametrize("source", ["", "standard input", "no/such/file.json", "\0", "x" * 5000, "."])
def test_without_a_file_there_is_no_place(source):
    lines = error_text(InputError([Problem("a", "is wrong"), Problem("b", "too")], source)).splitlines()
    assert lines[1:] == ["  a: is wrong", "  b: too"]


def test_what_a_terminal_would_act_upon_is_spelled_out(tmp_path):
    path = tmp_path / "odd.json"
    path.write_text('{"a": "\x1b[31m \x9b31m", "b": 1}', encoding="utf-8")
    text = error_text(InputError([Problem("a", "is \x1b[31m or \x9b31m")], str(path)))
    assert all(sign.isprintable() or sign == "\n" for sign in text)


def test_colours_on_a_terminal(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    path = tmp_path / "bad.json"
    path.write_text('{"a": 1}')
    error = InputError([Problem("a", "is wrong")], str(path))
    coloured = error_text(error)
    assert "\x1b[31m" in coloured
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            assert error_text(error) == plain(coloured)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert error_text(error) == plain(coloured)


def test_a_plan_that_cannot_be_drawn_is_pointed_at(run, plan_file):
    outcome = run("plot", "far-1xa100-006-mixed-1", plan_file, plan_file.with_suffix(".svg"))
    assert f"error: {plan_file}\n  runs[0].profile: A100-40GB has no profile" in outcome.err
    assert f"    {plan_file}:5:" in outcome.err
