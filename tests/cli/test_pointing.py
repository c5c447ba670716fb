"""Messages about bad files: the place, the text there, and colours on a terminal only."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest
from command_line import Command

from mig_opt.cli.pointing import MOST_PLACES, error_text
from mig_opt.errors import InputError, Problem

BATCH = """{
  "schema": "mig-opt/batch/1", "gpu": "A30",
  "tasks": [
    {"name": "a", "times": {"1": 4.0, "2": -1}}, // wrong
    {"name": "b"}
  ]
}
"""


class Terminal(io.StringIO):
    """Standard error, as if it were a terminal."""

    def isatty(self) -> bool:
        return True


def plain(text: str) -> str:
    return re.sub("\x1b\\[[0-9;]*m", "", text)


def test_each_problem_has_its_place(run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.json").write_text(BATCH)
    outcome = run("solve", "bad.json")
    assert (outcome.code, outcome.out) == (2, "")
    assert (
        outcome.err
        == """error: bad.json
  tasks[0].times.2: must be > 0 seconds, is -1.0
    bad.json:4:44
      {"name": "a", "times": {"1": 4.0, "2": -1}}, // wrong
                                             ^^
  tasks[1].times: is missing; add it, for example "times": {"1": 4.0, "2": 2.5}
    bad.json:5:5
      {"name": "b"}
      ^^^^^^^^^^^^^
"""
    )


def test_a_table(run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.csv").write_text("# times\ntask,t1_s,t2_s\na,3,x\n")
    assert (
        run("solve", "bad.csv", "--gpu", "A30").err
        == """error: bad.csv
  line 3, t2_s: must be a number, is "x"; leave the cell empty where there is no time
    bad.csv:3:5
      a,3,x
          ^
"""
    )


def test_broken_json(run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.json").write_text('{\n  "gpu" "A30"\n}')
    lines = run("solve", "bad.json").err.splitlines()
    assert lines[-3:] == ["    bad.json:2:9", '      "gpu" "A30"', "            ^"]


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


def test_what_a_terminal_would_act_upon_is_spelled_out(tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    path.write_text('{"a": "\x1b[31m", "b": 1}')
    text = error_text(InputError([Problem("a", "is \x1b[31m")], str(path)))
    assert "\x1b" not in text


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
