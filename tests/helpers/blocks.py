"""Blocks of the pages: what each is, and a run of all of a page in their order.

A fence says by its language what its text is. A comment on the line before it says more:

``<!-- file: NAME -->``
    The reader saves the text under that name.
``<!-- output -->``
    Something that a program prints.
``<!-- drawing -->``
    A picture made of characters.
``<!-- not run: REASON -->``
    It cannot be run here.

``<!-- run: COMMAND -->``, a line of its own, is done before what follows, unseen by readers.
"""

import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

PLACE = re.compile(
    r"^<!-- run: (?P<command>.*?) -->$"
    r"|(?:^<!-- (?P<mark>(?:file|not run): .*?|output|drawing|main-job|test) -->\n)?"
    r"^(?P<fence>```+)(?P<language>[\w{}-]*)[^\n]*\n(?P<text>.*?)^(?P=fence)$",
    re.DOTALL | re.MULTILINE,
)
VOLATILE = re.compile(r"\btime s\b|\bmean s\b")
NUMBER = re.compile(r"-?[\d,]*\.\d+[%s]?|\d+(\.\d+){2,}\S*")


class Block(NamedTuple):
    """A fence, or an unseen command, of a page."""

    language: str
    text: str
    mark: str
    line: int


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = []
    for match in PLACE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match["command"] is not None:
            found.append(Block("run", f"$ {match['command']}\n", "", line))
        else:
            found.append(Block(match["language"], match["text"], match["mark"] or "", line))
    return found


def is_run(block: Block) -> bool:
    return block.language in {"python", "console", "run"} and block.mark == ""


def run_page(page: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Do what a page says, block by block, in a folder in which nothing is yet."""
    shell = _programs(folder.parent / f"{folder.name}-bin")
    namespace: dict[str, object] = {"__name__": "page"}
    for block in blocks_of(page):
        place = f"{page.name}, line {block.line}"
        if block.mark.startswith("file: "):
            path = folder / block.mark.removeprefix("file: ")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif not is_run(block):
            continue
        elif block.language == "python":
            capsys.readouterr()
            exec(compile(block.text, place, "exec"), namespace)
            printed = capsys.readouterr().out.splitlines()
            promised = re.findall(r"^ *print\(.*\)  # (.*\d.*)$", block.text, re.MULTILINE)
            for line in promised:
                assert line in printed, f"{place}: prints {printed}"
        else:
            for command, output in commands_of(block.text):
                pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
                done = subprocess.run(["bash", "-c", command], cwd=folder, env=shell, text=True, check=False, **pipes)
                said = done.stdout
                assert done.returncode == 0 or output, f"{place}: {command}\n{said}"
                wrong = first_difference(output, said)
                assert wrong is None, f"{place}: {command}\nshown:  {wrong}\n\nprinted:\n{said}"


def commands_of(text: str) -> list[tuple[str, list[str]]]:
    """The commands of a console, each with the lines that it is shown to print."""
    found: list[tuple[str, list[str]]] = []
    for line in text.replace("\\\n", "").splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            assert found, f"a console begins with a command, not with {line!r}"
            found[-1][1].append(line.rstrip())
    return found


def first_difference(shown: list[str], printed: str) -> str | None:
    """Return the first line that is shown and not printed; ``...`` stands for any number of lines."""
    rest = [line.rstrip() for line in printed.splitlines()]
    skip, volatile = not shown, False
    for line in shown:
        if line == "...":
            skip = True
            continue
        volatile = bool(VOLATILE.search(line)) or (volatile and bool(line))
        while rest and skip and not same(line, rest[0], volatile):
            rest.pop(0)
        if not rest or not same(line, rest.pop(0), volatile):
            return line
        skip = False
    return None if skip or not any(rest) else f"(nothing), but printed: {next(line for line in rest if line)}"


def same(shown: str, printed: str, volatile: bool) -> bool:
    """Tell if two lines are the same, but for versions, and for seconds where these are measured."""
    if shown == printed or (shown.startswith("runtime ") and printed.startswith("runtime ")):
        return True
    one, other = shown.replace("─", "").split(), printed.replace("─", "").split()
    if len(one) != len(other):
        return False
    versions = re.compile(r"\d+\.\d+\.\d+\S*")
    return all(
        a == b
        or (versions.fullmatch(a) and versions.fullmatch(b))
        or (volatile and NUMBER.fullmatch(a) and NUMBER.fullmatch(b))
        for a, b in zip(one, other, strict=True)
    )


def _programs(folder: Path) -> dict[str, str]:
    """The environment of a reader: the command is there, and prints 80 columns."""
    folder.mkdir()
    program = folder / "mig-opt"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m mig_opt "$@"\n', encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (folder / "python").symlink_to(sys.executable)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    own = {"PATH": path, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return {**os.environ, **own, "COLUMNS": "80", "PYTHONUNBUFFERED": "1", "PYTHONWARNINGS": "ignore"}
