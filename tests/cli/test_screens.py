"""Help and layout of every command."""

import re
import shlex
import subprocess
import sys

import pytest
from typer.main import get_command

from mig_opt.cli.app import command_line
from mig_opt.cli.commands import COMMANDS, GROUPS
from mig_opt.cli.figures import broken_label, rate
from mig_opt.cli.screens import show_report
from mig_opt.method.report import Report, Table
from mig_opt.texts import seconds

HEAVY = {"ortools", "pulp", "matplotlib", "networkx", "numpy", "rich", "mig_opt.files.kinds", "mig_opt.instances"}


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


@pytest.mark.parametrize("group", [[], *([name] for name in GROUPS)])
def test_no_line_about_a_command_is_cut(run, monkeypatch, group):
    monkeypatch.setenv("COLUMNS", "80")
    assert re.findall(r"^  .*\w\.\.\.$", run(*group, "--help").out, re.MULTILINE) == []


@pytest.mark.deep
@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        (["--help"], HEAVY | {"pydantic"}),
        (["--version"], HEAVY | {"pydantic"}),
        (["solve", "--help"], HEAVY),  # new versions of typer read the options of a command with pydantic
        (["bench", "--help"], HEAVY | {"distributed", "mig_opt.studies"}),
        (["solve", "rodinia-a30", "--method", "far", "--json"], {"mig_opt.views", "mig_opt.fleet", "ortools", "rich"}),
    ],
)
def test_no_command_imports_what_it_does_not_need(arguments, heavy):
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


def test_a_terminal_without_a_width_gets_the_usual_one(run, monkeypatch):
    usual = run("methods").out
    monkeypatch.setenv("COLUMNS", "0")
    monkeypatch.setattr(sys, "__stdout__", None)
    assert run("methods").out == usual


def test_figures_of_any_magnitude_stay_short():
    figures = (0.0, 0.001, -2.5, 9999999.0, 1e7, 1e300, float("inf"))
    texts = ["0.000", "0.001", "-2.500", "9999999.000", "1.00000e+07", "1.00000e+300", "-"]
    assert list(map(seconds, figures)) == texts
    assert list(map(rate, (0.0, 0.05, 0.1, 1234.56, 1e7))) == ["0.0", "5.000e-02", "0.1", "1234.6", "1.000e+07"]


def test_labels_are_broken_before_options_and_within_long_ones():
    label = "static:backfill=true:load_balancing=true:partition=4+3/4+3/4+2+1"
    lines = ["static:backfill=true", " :load_balancing=", "  true", " :partition=4+3/4+3/", "  4+2+1"]
    assert broken_label(label, "  ") == tuple(f"  {line}" for line in lines)
    assert broken_label(f"a:{'x' * 30}_y") == ("a", f" :{'x' * 30}_", "  y")


def test_columns_give_way_as_their_marks_say(capsys, monkeypatch):
    def shown(width, *columns, cells):
        monkeypatch.setenv("COLUMNS", str(width))
        show_report(Report(parts=[Table(columns, [cells])]))
        return capsys.readouterr().out.splitlines()

    words = "several words, the longest of which has ", "w" * 25
    lines = shown(40, "name", "~text", cells=["x" * 12, "".join(words)])
    assert max(map(len, lines)) <= 40
    assert any(words[1] in line for line in lines)
    assert max(map(len, shown(40, "name", "/text", cells=["x" * 20, "y" * 100]))) <= 40
    (line,) = shown(20, "name", ">figure", cells=["x" * 12, "123456789.123"])[2:]
    assert line.split() == ["x" * 12, "123456789.123"]
    for mark, name in (("/name", f"{'x' * 11}…"), ("~name", "x" * 20)):
        (line,) = shown(10, mark, ">figure", cells=["x" * 20, "123456789.123"])[2:]
        assert line.split() == [name, "123456789.123"]


def test_numbers_for_which_a_terminal_is_too_narrow_are_not_lost(run, monkeypatch):
    def figures(width):
        monkeypatch.setenv("COLUMNS", str(width))
        lines = run("deploy", "parvagpu-s1").out.splitlines()
        return next(line for line in lines if line.startswith("bert")).split()

    assert figures(60) == figures(120)
