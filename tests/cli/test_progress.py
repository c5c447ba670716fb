"""Progress bars: what they count, and that only a terminal shows them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from command_line import Command

from mig_opt import Job, Trace, get_gpu, simulate
from mig_opt.cli.fleet.simulate import _watched
from mig_opt.cli.progress import Bar, RunsBar, shown_bar
from mig_opt.files.fleet.traces import TRACE
from mig_opt.instances.bundled import load
from mig_opt.studies import compare


@pytest.fixture
def bar() -> Bar:
    return Bar("runs", 3)


def state(bar: Bar) -> str:
    (task,) = bar.display.tasks
    return f"{task.completed:.0f}/{task.total:.0f} {task.description}"


def test_runs_of_methods(bar: Bar) -> None:
    seen: list[str] = []

    class Seen(RunsBar):
        def on_incumbent(self, seconds, plan, lower_bound):
            super().on_incumbent(seconds, plan, lower_bound)
            seen.append(state(bar))

    batches = {"rodinia-a30": load("rodinia-a30")}
    compare(batches, ["far", "lpt"], callbacks=Seen(bar))
    assert any(text.startswith("0/3 runs, now: far on rodinia-a30, 29.2") for text in seen)
    assert state(bar).startswith("1/3 runs, now: lpt on rodinia-a30, ")


def test_jobs_of_simulations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mig_opt.cli.fleet.simulate._REFRESH_S", 0.0)
    jobs = tuple(Job(name, 0.0, {3: 10.0}, "3g.20gb") for name in "abc")
    bar = Bar("jobs", 6)
    simulate(Trace(jobs, get_gpu("A100")), "first-fit", observer=_watched(bar, "first-fit", 3))
    assert state(bar) == "6/6 jobs, now: first-fit"


def test_a_name_with_escape_sequences_is_spelled_out(bar: Bar) -> None:
    bar.show("a\x1b[31m\nb")
    assert state(bar) == "0/3 a\\x1b[31m\\nb"


@pytest.mark.parametrize("quiet", [True, False])
def test_only_a_terminal_has_a_bar(quiet: bool, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    with shown_bar("runs", quiet=quiet) as nothing:
        assert nothing is None
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with shown_bar("runs", quiet=quiet) as some:
        assert (some is None) == quiet
    assert capsys.readouterr().out == ""


def test_commands_show_none_elsewhere(run: Command, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    TRACE.write(Trace((Job("a", 0.0, {3: 10.0}, "3g.20gb"),), get_gpu("A100")), path)
    assert run("simulate", path).err == ""
    assert run("compare", "rodinia-a30", "--methods", "far,lpt").err == ""
