"""The planner where declared run times are wrong: what it learns, what it must not know, and how it backfills."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from online_worlds import NO_COSTS, assert_sound, job, trace, traces

from mig_opt import Trace, declare_times, generate_trace, simulate
from mig_opt.heuristics.fleet.plans.calibration import Calibration

QUICK = {"rounds": 40}


def told(seconds: list[float]) -> Trace:
    jobs = [job(f"j{at}", 0.0, "1g.5gb", 1.0, declared={1: known}) for at, known in enumerate(seconds)]
    return trace(*jobs, costs=NO_COSTS)


def test_times_that_are_all_half_as_long_are_doubled() -> None:
    seconds = [1.0, 10.0, 100.0, 1000.0] * 25
    calibration = Calibration(told([*seconds, 50.0]))
    for at, known in enumerate(seconds):
        calibration.learn(at, known, 2 * known)
    assert calibration.factor(100) == pytest.approx(2, rel=0.02)
    assert calibration.error == pytest.approx(0, abs=0.05)


def test_times_that_say_nothing_are_taken_for_the_usual_one() -> None:
    seconds = [10.0, 1000.0] * 50
    calibration = Calibration(told([*seconds, 10.0, 1000.0]))
    for at, known in enumerate(seconds):
        calibration.learn(at, known, 50.0 if at % 4 < 2 else 200.0)
    assert [10 * calibration.factor(100), 1000 * calibration.factor(101)] == pytest.approx([100, 100], rel=0.1)
    assert calibration.error == pytest.approx(math.log(2), rel=0.05)


def test_exact_times_stay_as_they_are() -> None:
    calibration = Calibration(told([3.0, 7.0, 11.0, 13.0]))
    assert calibration.error is None
    for at, known in enumerate([3.0, 7.0, 11.0]):
        calibration.learn(at, known, known)
    assert (calibration.factor(3), calibration.error) == (1.0, 0.0)


@settings(max_examples=60, deadline=None)
@given(traces(), st.sampled_from([0.7, 2.0, "classes", "one"]), st.floats(0, 1), st.floats(1.1, 5))
def test_nothing_is_known_of_the_time_of_a_job_before_it_is_done(
    wanted: Trace, knowledge: float | str, share: float, longer: float
) -> None:
    """Jobs that run at some second are made longer: until then the planner does the same."""
    world = declare_times(wanted, knowledge, seed=1)
    one = simulate(world, "planner", **QUICK)
    second = share * one.metrics.makespan
    jobs = [
        own if end <= second else dataclasses.replace(own, times={at: s * longer for at, s in own.times.items()})
        for own, end in zip(world.jobs, one.log.finished, strict=True)
    ]
    if any(own.memory_growth for own in jobs):
        return  # When a job runs out of memory depends on its time.
    two = simulate(world.replace(jobs=tuple(jobs)), "planner", **QUICK)
    begun = [
        [(run.job, run.gpu, str(run.placement), run.begin) for run in done.log.runs() if run.begin < second - 1e-6]
        for done in (one, two)
    ]
    assert sorted(begun[0]) == sorted(begun[1])


def test_with_one_time_for_all_it_is_ahead_of_backfilling_on_the_mean() -> None:
    """All jobs are there at once: those of which most can run go first. It may be wrong about a single trace."""
    ratios = []
    for family, seed in (("migm-ht2", 1), ("migm-ht3", 0), ("migm-ml1", 1), ("migm-ml1", 2)):
        wanted = generate_trace(family, gpus=None, seed=seed)
        rivals = [simulate(wanted, name, backfill=True, patience=None).metrics for name in ("first-fit", "best-fit")]
        done = simulate(declare_times(wanted, "one"), "planner", **QUICK)
        assert_sound(done.log)
        ratios.append(done.metrics.completion.mean / min(own.completion.mean for own in rivals))
        assert done.metrics.makespan <= 1.1 * min(own.makespan for own in rivals)
    assert max(ratios) <= 1.1
    assert sum(ratios) / len(ratios) <= 0.9


def test_the_bound_on_overtaking_holds_while_it_backfills() -> None:
    """Short jobs keep seven instances busy; one for the whole GPU begins when those of its limit have ended."""
    declared = {1: 1.0}
    jobs = [job(f"j{at}", 0.5 * at, "1g.5gb", 2 + 3 * (at % 3), declared=declared) for at in range(200)]
    whole = job("whole", 20.0, "7g.40gb", 5.0, declared={7: 1.0})
    wanted = trace(*jobs, whole, costs=NO_COSTS)
    begins = {}
    for seconds in (10.0, 1e9):
        done = simulate(wanted, "planner", overtaken=0.0, overtaken_s=seconds, **QUICK)
        begins[seconds] = next(run.begin for run in done.log.runs() if done.trace.jobs[run.job].name == "whole")
    assert begins[10.0] <= 30 + 8
    assert begins[1e9] > 60
