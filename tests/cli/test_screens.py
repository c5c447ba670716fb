"""Help and layout of every command."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from mig_opt.cli.app import command_line
from mig_opt.cli.commands import COMMANDS, GROUPS
from mig_opt.gpu.catalogue import catalogue
from mig_opt.texts import seconds


def every_command(group: Any, *names: str) -> Iterator[tuple[str, ...]]:
    """The names of each command and each group of commands that there are."""
    yield names
    for name, command in getattr(group, "commands", {}).items():
        yield from every_command(command, *names, name)


HEAVY = {"ortools", "pulp", "matplotlib", "networkx", "numpy", "rich", "mig_opt.files.kinds", "mig_opt.instances"}


@pytest.mark.parametrize("command", list(every_command(get_command(command_line()))))
def test_every_help_has_an_example(run, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    outcome = run(*" ".join(command).split(), "--help")
    assert (outcome.code, outcome.err) == (0, "")
    _, _, examples = re.split(r"\n\n  (Examples?:)\n", outcome.out) if "Example" in outcome.out else ("", "", "")
    name = " ".join(command)
    assert f"mig-opt {name}" in examples or name in GROUPS
    assert max(map(len, outcome.out.splitlines())) <= 80
    assert not re.search(r"[{]\w+[}]\.*$|\[\[|<(str|path|Path|list)|default: [(]|\d\.0\]", outcome.out, re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_have_options_that_there_are(name):
    command, rest = get_command(command_line(name.split()[0])), name.split()
    while rest:
        with command.make_context("mig-opt", [], resilient_parsing=True) as context:
            _, command, rest = command.resolve_command(context, rest)
    for example in command.epilog.splitlines()[2:]:
        words = shlex.split(example.partition(" > ")[0].rpartition("mig-opt ")[2])
        assert words[: len(name.split())] == name.split()
        with command.make_context(name, words[len(name.split()) :], resilient_parsing=True) as context:
            known = command.make_parser(context)
            known.parse_args(words[len(name.split()) :])  # refuses what it does not know


@pytest.mark.deep
@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        (["--help"], HEAVY | {"pydantic"}),
        (["--version"], HEAVY | {"pydantic"}),
        (["solve", "--help"], HEAVY),  # new versions of typer read the options of a command with pydantic
        (["bench", "--help"], HEAVY | {"distributed", "mig_opt.studies"}),
    ],
)
def test_help_imports_nothing_heavy(arguments, heavy):
    program = f"""
import sys
from mig_opt.cli import main

try:
    main({arguments!r})
except SystemExit:
    print(sorted(set({sorted(heavy)!r}) & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize(
    "arguments",
    [
        ("gpus",),
        ("gpus", "A100"),
        ("gpus", "RTX-PRO-6000"),
        ("gpus", "B200"),
        ("instances",),
        ("instances", "miso-a100-32"),
        ("methods",),
        ("bound", "miso-a100-100"),
        pytest.param(("explain", "rodinia-a30", "--target", "28"), marks=pytest.mark.deep),
        ("solve", "rodinia-a30", "--method", "far", "--gpus", "2"),
        ("solve", "miso-a100-100", "--method", "far"),
        ("deploy", "parvagpu-s2"),
        ("deploy", "parvagpu-s6", "--method", "parvagpu"),
        ("bound", "parvagpu-s6"),
    ],
)
def test_screens_fit_and_cut_no_names(run, monkeypatch, width, arguments):
    monkeypatch.setenv("COLUMNS", str(width))
    lines = run(*arguments).out.splitlines()
    assert max(len(line) for line in lines if "://" not in line) <= width  # sources are left to the terminal
    assert not [line for line in lines if line != line.rstrip()]
    if arguments == ("gpus",):
        words = {word.strip(",") for line in lines for word in line.split()}
        assert all({model.name, *model.aliases} <= words for model in catalogue())
    if arguments[0] == "solve":
        header = next(line.split() for line in lines if "instance" in line)
        assert header in (
            ["GPU", "instance", "task", "begin", "s", "end", "s"],
            ["instance", "begin", "s", "end", "s", "runs", "tasks"],
        )


def test_a_terminal_without_a_width_gets_the_usual_one(run, monkeypatch):
    usual = run("methods").out
    monkeypatch.setenv("COLUMNS", "0")
    monkeypatch.setattr(sys, "__stdout__", None)
    assert run("methods").out == usual


def test_numbers_for_which_a_terminal_is_too_narrow_are_not_lost(run, monkeypatch):
    def figures(width):
        monkeypatch.setenv("COLUMNS", str(width))
        lines = run("deploy", "parvagpu-s1").out.splitlines()
        return next(line for line in lines if line.startswith("bert")).split()

    assert figures(60) == figures(120)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.000"),
        (0.001, "0.001"),
        (-2.5, "-2.500"),
        (9999999.0, "9999999.000"),
        (1e7, "1.00000e+07"),
        (1.23456789e-5, "1.23457e-05"),
        (1e300, "1.00000e+300"),
        (float("inf"), "-"),
        (None, "-"),
    ],
)
def test_seconds_of_any_magnitude_stay_short(value, text):
    assert seconds(value) == text
