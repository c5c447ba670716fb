"""Help and layout of every command."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mig_opt.cli.screens import seconds
from mig_opt.gpu.catalogue import catalogue

COMMANDS = [
    "solve",
    "deploy",
    "validate",
    "bound",
    "explain",
    "prove",
    "check",
    "plot",
    "script",
    "instances",
    "gpus",
    "methods",
    "versions",
    "generate",
    "export",
    "schema",
]
HEAVY = {"ortools", "pulp", "matplotlib", "networkx", "numpy", "rich", "mig_opt.files", "mig_opt.instances"}


@pytest.mark.parametrize("command", [(), *((command,) for command in COMMANDS)])
def test_every_help_has_an_example(run, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    outcome = run(*command, "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert "Example: mig-opt" in outcome.out
    assert max(map(len, outcome.out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        (["--help"], HEAVY | {"pydantic"}),
        (["--version"], HEAVY | {"pydantic"}),
        (["solve", "--help"], HEAVY),  # new versions of typer read the options of a command with pydantic
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
        ("explain", "rodinia-a30", "--target", "28"),
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
