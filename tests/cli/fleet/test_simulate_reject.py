"""mig-opt simulate --reject."""

import functools
from pathlib import Path

import pytest
from command_line import Command, refuses

from mig_opt import Job, Trace, generate_trace, get_gpu
from mig_opt.files.fleet.traces import TRACE


@pytest.fixture
def mig_opt(narrow: Command) -> Command:
    TRACE.write(trace(), "t.json")
    return functools.partial(narrow, "simulate")


def trace() -> Trace:
    """Two 1g jobs, then one for the whole GPU that finds no place, and a last one when all others are done."""
    jobs = (
        Job("a", 0.0, {1: 10.0}, "1g.5gb"),
        Job("b", 1.0, {1: 10.0}, "1g.5gb"),
        Job("c", 2.0, {7: 10.0}, "7g.40gb"),
        Job("d", 20.0, {4: 10.0}, "4g.20gb"),
    )
    return Trace(jobs, get_gpu("A100"))


def test_who_gives_jobs_other_profiles_has_a_bound_of_its_own(mig_opt: Command) -> None:
    """whole-gpu runs a on 4g, where it is done before b comes."""
    jobs = (Job("a", 0.0, {2: 10.0, 4: 1.0}, "2g.12gb"), Job("b", 5.0, {4: 5.0}, "4g.24gb"))
    TRACE.write(Trace(jobs, get_gpu("A30")), "larger.json")
    called = ("larger.json", "--reject", "--policy", "first-fit", "--policy", "whole-gpu")
    out = " ".join(mig_opt(*called).out.split())
    for words in (
        "upper bound 50.0 66.7 50.0 on any profile 100.0 100.0 100.0",
        "upper bound: of every scheduler that gives jobs the profiles that they ask for,",
        "on any profile: of every scheduler, those that give jobs other profiles included: whole-gpu.",
    ):
        assert words in out
    document = mig_opt(*called, "--json").json
    bounds = [document[name]["jobs"] for name in ("upper_bounds", "upper_bounds_on_any_profile")]
    gaps = [policy["gaps"]["upper_bound"]["jobs"] for policy in document["policies"]]
    assert (bounds, gaps) == ([0.5, 1.0], [0.0, 0.0])
    assert "any profile" not in mig_opt(*called[:-2]).out


def test_what_cannot_be_is_refused(mig_opt: Command, tmp_path: Path) -> None:
    TRACE.write(generate_trace("normal-25", jobs=501), tmp_path / "long.json")
    refuses(
        mig_opt("long.json", "--reject", "--optimum", "--policy", "first-fit"),
        "--optimum: is for traces of up to 500 jobs, this one has 501",
    )
