"""The planner where declared run times are wrong: what it learns, what it must not know, and how it backfills."""

import dataclasses
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from online_worlds import NO_COSTS, job, rows, run, trace, traces

from mig_opt import Job, Simulation, Trace, declare_times, generate_trace, simulate
from mig_opt.heuristics.fleet.plans.calibration import Calibration

QUICK = {"rounds": 40}


def begins(done: Simulation) -> dict[str, float]:
    runs = sorted(done.log.runs(), key=lambda own: -own.begin)
    return {done.trace.jobs[own.job].name: own.begin for own in runs}


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
    begun = [sorted(row[:4] for row in rows(done.log) if row[3] < second - 1e-6) for done in (one, two)]
    assert begun[0] == begun[1]


def test_with_one_time_for_all_it_is_ahead_of_backfilling_on_the_mean() -> None:
    """All jobs are there at once: those of which most can run go first. It may be wrong about a single trace."""
    ratios = []
    for family, seed in (("migm-ht2", 1), ("migm-ht3", 0), ("migm-ml1", 1), ("migm-ml1", 2)):
        wanted = generate_trace(family, gpus=None, seed=seed)
        rivals = [simulate(wanted, name, backfill=True, patience=None).metrics for name in ("first-fit", "best-fit")]
        done = run("planner", declare_times(wanted, "one"), **QUICK)
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
    soon, late = (
        begins(simulate(wanted, "planner", overtaken=0.0, overtaken_s=seconds, **QUICK))["whole"]
        for seconds in (10.0, 1e9)
    )
    assert soon <= 30 + 8 < 60 < late


def test_at_the_end_jobs_go_on_on_larger_instances() -> None:
    """Both begin on one slice. When b is done after 10 s, nine tenths of a are left: 22.5 s on a whole GPU."""
    jobs = [
        Job(name, 0.0, {1: seconds, 7: seconds / 4}, declared={1: 2 * seconds, 7: seconds / 2})
        for name, seconds in (("a", 100.0), ("b", 10.0))
    ]
    done = run("planner", trace(*jobs, gpus=2, costs=NO_COSTS))
    assert list(done.log.finished) == pytest.approx([32.5, 10])


def test_a_job_takes_what_is_of_no_use_to_others() -> None:
    """Beside 3g at slice 0 nothing more fits than beside 4g."""
    only = Job("only", 0.0, {3: 30.0, 4: 20.0}, memory_gb=15.0, declared={3: 60.0, 4: 40.0})
    done = simulate(trace(only, costs=NO_COSTS), "planner")
    assert [str(run.placement) for run in done.log.runs()] == ["4g.20gb@0"]


def test_what_is_in_the_way_of_an_urgent_job_goes_on_elsewhere() -> None:
    """Fourteen jobs on two GPUs; when seven are done, the others have room on one GPU, and the whole other is free."""
    times, told = (1.0, 100.0, 5.0, 100.0, 2.5, 100.0), (8.0, 50.0, 1.0, 50.0, 40.0, 50.0)
    jobs = [job(f"j{at}", 0.0, "1g.5gb", times[at % 6], declared={1: told[at % 6]}) for at in range(14)]
    whole = job("whole", 1.0, "7g.40gb", 10.0, declared={7: 1.0})
    wanted = trace(*jobs, whole, gpus=2, costs=NO_COSTS)
    done = run("planner", wanted, overtaken=0.0, overtaken_s=2.0, **QUICK)
    assert begins(done)["whole"] == 5.0


def test_others_begin_beside_the_place_that_is_kept_for_an_urgent_job() -> None:
    """4g keep both GPUs from the whole one until 100 s. One 3g begins beside them, on the GPU that it will not need."""
    long = [job(f"j{at}", 0.0, "4g.20gb", 100.0, declared={4: 50.0}) for at in (0, 1)]
    whole = job("whole", 1.0, "7g.40gb", 10.0, declared={7: 1.0})
    short = [job(f"short{at}", 4.0 + at, "3g.20gb", 500.0, declared={3: 500.0}) for at in (0, 1)]
    wanted = trace(*long, whole, *short, gpus=2, costs=NO_COSTS)
    done = run("planner", wanted, overtaken=0.0, overtaken_s=2.0, **QUICK)
    found = begins(done)
    assert (found["short0"], found["whole"], found["short1"]) == (4.0, 100.0, 100.0)


def small_jobs(count: int, *, apart: float) -> list[Job]:
    """Jobs of 5 and 15 s that are declared half or twice as long, some seconds apart."""
    times = [((5.0, 15.0)[at % 2], (0.5, 2.0)[at // 2 % 2]) for at in range(count)]
    return [
        job(f"j{at}", apart * at, "1g.5gb", seconds, declared={1: seconds * error})
        for at, (seconds, error) in enumerate(times)
    ]


def begins_by_goal(wanted):
    return [begins(simulate(wanted, "planner", goal=goal, overtaken_s=1e6, **QUICK)) for goal in ("balanced", "flow")]


def test_jobs_that_may_end_last_are_overtaken_no_more_unless_the_flow_time_is_all() -> None:
    """Small jobs keep seven slices busy; one of 400 s for half of them is longer than all that is known takes."""
    jobs = small_jobs(150, apart=1.4)
    half = job("half", 50.0, "3g.20gb", 400.0, declared={3: 400.0})
    wanted = trace(*jobs, half, costs=NO_COSTS)
    balanced, flow = begins_by_goal(wanted)
    assert balanced["half"] < 120 < flow["half"]


def test_jobs_that_may_well_end_last_go_before_shorter_ones() -> None:
    """All came in ten seconds. One of 60 s, told to be of 150 s, would be urgent when a minute of work is left."""
    jobs = small_jobs(100, apart=0.1)
    long = job("long", 5.0, "1g.5gb", 60.0, declared={1: 150.0})
    wanted = trace(*jobs, long, costs=NO_COSTS)
    balanced, flow = begins_by_goal(wanted)
    assert balanced["long"] < 90 < 120 < flow["long"]
