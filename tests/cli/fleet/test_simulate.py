"""mig-opt simulate, with a queue and without."""

import functools
import re
import signal
from pathlib import Path

import pytest
from command_line import Outcome, refuses

from mig_opt import Job, ScheduleResult, Status, Trace, get_gpu
from mig_opt.files.fleet.traces import TRACE
from mig_opt.method.registry import get_policy


@pytest.fixture
def mig_opt(narrow):
    """In a folder with a trace of two jobs that cannot run at once on one GPU, the second one a second later."""
    jobs = Job("a", 0.0, {7: 10.0}, "7g.40gb"), Job("b", 1.0, {4: 5.0}, "4g.20gb")
    TRACE.write(Trace(jobs, get_gpu("A100")), "t.json")
    return functools.partial(narrow, "simulate")


def test_an_impossible_action_of_a_policy_is_no_defect(mig_opt, monkeypatch):
    chosen = get_policy("first-fit").load()
    monkeypatch.setattr(chosen, "arrived", lambda policy, cluster, job: cluster.stop(job))
    ended = mig_opt("t.json", "--policy", "first-fit")
    refuses(ended, "job 'a' was stopped, but has no place")
    assert "report it" not in ended.err


def test_ctrl_c_keeps_the_simulations_that_are_done(mig_opt, monkeypatch):
    monkeypatch.setattr(get_policy("best-fit").load(), "arrived", lambda *_: signal.raise_signal(signal.SIGINT))
    assert mig_opt("t.json", "--policy", "best-fit,first-fit") == Outcome(130, "", "interrupted\n")
    code, out, err = mig_opt("t.json", "--policy", "first-fit,best-fit", "--save-log", "log.jsonl", "--plot", "c.svg")
    assert (code, err) == (130, "")
    assert re.search("^first-fit +2 ", out, re.MULTILINE)
    assert "lower bound" in out
    assert "best-fit" not in out
    assert "Interrupted: this is what was done so far." in out
    assert Path("log.jsonl").exists()
    assert Path("c.svg").exists()


@pytest.mark.parametrize("more", [(), ("--reject",)])
def test_ctrl_c_during_the_optimum(mig_opt, monkeypatch, more):
    """No other goal is looked for then."""
    goals = []

    def interrupted(found: Trace, goal: str, **options: object) -> object:
        goals.append(goal)
        return ScheduleResult(Status.INTERRUPTED, "optimum", None, 0.0, 1.0)

    for place in ("optimum.trace_optimum", "admission.admission_optimum"):
        monkeypatch.setattr(f"mig_opt.models.fleet.{place}", interrupted)
    code, out, _ = mig_opt("t.json", "--policy", "first-fit", "--optimum", *more)
    assert (code, len(goals)) == (130, 1)
    assert re.search("^first-fit ", out, re.MULTILINE)
    assert "Interrupted: this is what was done so far." in out
