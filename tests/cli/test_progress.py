"""Progress bars, what they count and that only a terminal shows them; and the log, only where it is wanted."""

import logging
import sys

import pytest

import mig_opt
from mig_opt import Job, Trace, get_gpu, load, simulate
from mig_opt.cli.errors import log_is_shown
from mig_opt.cli.fleet.simulate import _watched
from mig_opt.cli.progress import Bar, RunsBar, shown_bar
from mig_opt.cli.study import StudyBar
from mig_opt.studies import GeneratedBatches, MethodSettings, Study, compare
from mig_opt.studies.rows import Outcome, Row
from mig_opt.studies.studies import runs_of


@pytest.fixture
def bar():
    return Bar("runs", 3)


def state(bar: Bar) -> str:
    (task,) = bar.display.tasks
    return f"{task.completed:.0f}/{task.total:.0f} {task.description}"


def test_runs_of_methods(bar):
    seen: list[str] = []

    class Seen(RunsBar):
        def on_incumbent(self, seconds, plan, lower_bound):
            super().on_incumbent(seconds, plan, lower_bound)
            seen.append(state(bar))

    batches = {"rodinia-a30": load("rodinia-a30")}
    compare(batches, ["far", "lpt"], callbacks=Seen(bar))
    assert any(text.startswith("0/3 runs, now: far on rodinia-a30, 29.2") for text in seen)
    assert state(bar).startswith("1/3 runs, now: lpt on rodinia-a30, ")


def test_jobs_of_simulations(monkeypatch):
    monkeypatch.setattr("mig_opt.cli.fleet.simulate._REFRESH_S", 0.0)
    jobs = tuple(Job(name, 0.0, {3: 10.0}, "3g.20gb") for name in "abc")
    bar = Bar("jobs", 6)
    simulate(Trace(jobs, get_gpu("A100")), "first-fit", observer=_watched(bar, "first-fit", 3))
    assert state(bar) == "6/6 jobs, now: first-fit"


def test_runs_and_failures_of_a_study(bar, tmp_path):
    runs = runs_of(Study((GeneratedBatches(n=(3,), seeds=(0, 1)),), (MethodSettings("far"),)), tmp_path)
    study = StudyBar(bar)
    study.on_start(runs, 3)
    study.on_row(Row(runs[0], Outcome("crashed", 1.0, error="broken")))
    study.on_row(Row(runs[1], Outcome("feasible", 1.0, 2.0, 1.0)))
    assert state(bar) == "5/5 runs, 1 failed, last: far on n=3, seed 1"


def test_a_name_with_escape_sequences_is_spelled_out(bar):
    bar.show("a\x1b[31m\nb")
    assert state(bar) == "0/3 a\\x1b[31m\\nb"


@pytest.mark.parametrize("quiet", [True, False])
def test_only_a_terminal_has_a_bar(quiet, capsys, monkeypatch):
    with shown_bar("runs", quiet=quiet) as one:
        assert not one.shown
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with shown_bar("runs", quiet=quiet) as one:
        assert one.shown != quiet
    shown = capsys.readouterr()
    assert (shown.out, bool(shown.err)) == ("", not quiet)


@pytest.fixture(autouse=True)
def afterwards():
    """The log as it was."""
    yield
    logger = logging.getLogger("mig_opt")
    logger.handlers = []
    logger.setLevel(logging.NOTSET)


@pytest.mark.parametrize(
    "arguments", [("--log-level", "debug", "solve", "rodinia-a30"), ("solve", "rodinia-a30", "--log-level", "DEBUG")]
)
def test_before_and_behind_the_command(run, arguments):
    silent = run("solve", "rodinia-a30", "--method", "far")
    assert silent.err == ""
    outcome = run(*arguments, "--method", "far")
    assert outcome.code == 0
    lines = outcome.err.splitlines()
    assert all(" mig_opt." in line for line in lines)
    assert "INFO    mig_opt.method.control: far begins: no limit, seed 0" in lines[0]
    assert any("DEBUG   mig_opt.method.control: objective" in line for line in lines)
    assert "far ends: feasible, objective 29.2" in lines[-1]
    assert log_is_shown()


def test_the_library_sets_no_handler(caplog):
    assert not logging.getLogger("mig_opt").handlers
    with caplog.at_level(logging.INFO, logger="mig_opt"):
        mig_opt.solve(mig_opt.load("rodinia-a30"), "far")
        trace = mig_opt.Trace((mig_opt.Job("a", 0.0, {3: 10.0}, "3g.20gb"),), mig_opt.get_gpu("A100"))
        mig_opt.simulate(trace, "first-fit")
    assert [record.name for record in caplog.records] == ["mig_opt.method.control"] * 2 + [
        "mig_opt.simulation.fleet.simulator"
    ]
    assert not log_is_shown()
