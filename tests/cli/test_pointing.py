"""Messages about bad files: the part of a line that is shown, and colours on a terminal only."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest

from mig_opt.cli.errors import MOST_PLACES, error_text
from mig_opt.errors import InputError, Problem


class Terminal(io.StringIO):
    """Standard error, as if it were a terminal."""

    def isatty(self) -> bool:
        return True


def plain(text: str) -> str:
    return re.sub("\x1b\\[[0-9;]*m", "", text)


@pytest.mark.parametrize("position", [0, 40, 400])
def test_of_a_long_line_a_part_is_shown(tmp_path: Path, position: int) -> None:
    path = tmp_path / "long.json"
    path.write_text(f'{{"a": "{"x" * position}",     "wrong": 17, "b": "{"y" * 300}"}}')
    lines = error_text(InputError([Problem("wrong", "is wrong")], str(path))).splitlines()
    text, mark = lines[-2:]
    assert max(len(text), len(mark)) <= 80
    assert text[mark.index("^") : mark.rindex("^") + 1] == "17"


def test_no_more_than_some_places_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "many.json"
    path.write_text('{"a": 1}')
    text = error_text(InputError([Problem("a", f"wrong {number}") for number in range(50)], str(path)))
    assert text.count("many.json:1:7") == MOST_PLACES
    assert text.count("wrong") == 50


@pytest.mark.parametrize("source", ["", "standard input", "no/such/file.json", "\0", "x" * 5000, "."])
def test_without_a_file_there_is_no_place(source: str) -> None:
    lines = error_text(InputError([Problem("a", "is wrong"), Problem("b", "too")], source)).splitlines()
    assert lines[1:] == ["  a: is wrong", "  b: too"]


def test_colours_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
