"""Goals of the planner, its bound on overtaking, due dates and weights, and its time for a decision."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from online_worlds import NO_COSTS, SIZES, assert_sound, columns, job, trace
from online_worlds import run as run_policy

from mig_opt import Job, Simulation, Trace, generate_trace, get_gpu, simulate
from mig_opt.heuristics.fleet.plans import search

QUICK = {"rounds": 40}


@st.composite
def worlds(draw: st.DrawFn) -> Trace:
    gpus = draw(st.integers(1, 2))
    now, jobs = 0.0, []
    for number in range(draw(st.integers(2, 25))):
        now += draw(st.sampled_from([0.0, 0.0, 0.5, 1.0, 2.0]))
        profile = draw(st.sampled_from(sorted(SIZES)))
        jobs.append(job(f"j{number}", now, profile, draw(st.sampled_from([0.5, 1.0, 2.0, 3.0, 7.0, 20.0]))))
    return trace(*jobs, gpus=gpus, costs=NO_COSTS)


def overtaken_too_long(done: Simulation, times: float, seconds: float) -> list[str]:
    """Return the jobs that begin later than nobody else delays them from their limit on.

    From its limit on a job waits at most for what runs then, and for jobs whose limit came before its own.
    """
    jobs = done.trace.jobs
    limits = [job.arrival + max(seconds, times * job.work) for job in jobs]
    runs = {run.job: run for run in done.log.runs()}
    found = []
    for index, run in runs.items():
        ahead = [
            other.end
            for at, other in runs.items()
            if at != index and (other.begin <= limits[index] or (limits[at], at) < (limits[index], index))
        ]
        if run.begin > max([limits[index], *ahead]) + 1e-3:
            found.append(jobs[index].name)
    return found


@settings(max_examples=150, deadline=None)
@given(worlds(), st.sampled_from([0.0, 0.5, 2.0, 5.0]), st.sampled_from([0.0, 1.0, 6.0]), st.sampled_from([4, 48]))
def test_no_job_is_overtaken_for_longer_than_the_bound(wanted: Trace, times: float, seconds: float, most: int) -> None:
    done = simulate(wanted, "planner", overtaken=times, overtaken_s=seconds, most=most, **QUICK)
    assert_sound(done.log)
    assert not done.unfinished
    assert not overtaken_too_long(done, times, seconds)


def test_without_the_bound_a_long_job_waits_for_all_short_ones() -> None:
    """Short jobs of a second, one after the other without a gap, and one of 40 s for the whole GPU."""
    jobs = [job("long", 0.5, "7g.40gb", 40), *(job(f"j{at}", 0.9 * at, "7g.40gb", 1) for at in range(60))]
    wanted = trace(*jobs, costs=NO_COSTS)
    for seconds, least, most in ((5.0, 0, 5.5 + 1), (1e9, 60, 99)):
        done = simulate(wanted, "planner", overtaken=0.0, overtaken_s=seconds, patience=1e9, **QUICK)
        (begin,) = (run.begin for run in done.log.runs() if wanted.jobs[run.job].name == "long")
        assert bool(overtaken_too_long(done, 0.0, 5.0)) == (seconds > 5)
        assert least <= begin <= most


def test_what_fits_beside_an_urgent_job_still_begins() -> None:
    """The whole GPU is free from second 10 on: the job of 4 s fits before that, the one of 20 s does not."""
    jobs = [job("now", 0, "3g.20gb", 10), job("whole", 1, "7g.40gb", 5)]
    wanted = trace(*jobs, job("fits", 2, "1g.5gb", 4), job("long", 2, "1g.5gb", 20), costs=NO_COSTS)
    done = simulate(wanted, "planner", overtaken=0.0, overtaken_s=0.0, **QUICK)
    begins = {wanted.jobs[run.job].name: run.begin for run in done.log.runs()}
    assert begins == {"now": 0.0, "whole": 10.0, "fits": 2.0, "long": 15.0}


def test_a_due_date_or_a_weight_comes_before_a_shorter_job() -> None:
    """First the one of 5 s, due at 6 or of more weight, then that of 3 s; else the other way round."""
    own: tuple[dict[str, Any], ...] = ({}, {"due": 6.0}, {"weight": 3.0})
    plain, due, heavy = ([job("a", 0, "7g.40gb", 5, **more), job("b", 0, "7g.40gb", 3)] for more in own)
    for jobs, ends in ((plain, [8.0, 3.0]), (due, [5.0, 8.0]), (heavy, [5.0, 8.0])):
        assert list(simulate(trace(*jobs, costs=NO_COSTS), "planner", tardiness=5.0).log.finished) == ends
    unmoved = simulate(trace(*due, costs=NO_COSTS), "planner", tardiness=0.0)
    assert list(unmoved.log.finished) == [8.0, 3.0]


def test_weights_may_be_whole_numbers() -> None:
    """They were taken for the bits of other numbers where all jobs are beyond the bound on overtaking."""
    seconds = ((5.0, 400.0), (50.0, 400.0), (500.0, 400.0), (500.0, 4.0), (50.0, 400.0), (5.0, 400.0))
    ends = []
    for kind in (float, int):
        jobs = [
            Job(f"j{at}", 0.0, {1: one, 2: two}, weight=kind(1 + at % 2 * 8)) for at, (one, two) in enumerate(seconds)
        ]
        done = simulate(Trace(tuple(jobs), get_gpu("A30")), "planner", overtaken=0.0, overtaken_s=0.0, rounds=200)
        ends.append(list(done.log.finished))
    assert ends[0] == ends[1]


def test_the_time_for_a_decision_is_given_to_the_annealing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each annealing gets a share of what is left; without ``think`` it has no limit but its rounds."""
    given_s: list[float] = []
    plain = search.anneal

    def watched(arrays: Any, jobs: Any, limits: search.AnnealingLimits, workspace: Any) -> float:
        given_s.append(limits.seconds)
        return plain(arrays, jobs, limits, workspace)

    monkeypatch.setattr(search, "anneal", watched)
    wanted = generate_trace("long-25", jobs=12, gpu="A100", gpus=1, seed=1)
    simulate(wanted, "planner", think=0.5, rounds=5)
    assert given_s
    assert all(0 < seconds <= 0.5 for seconds in given_s)
    given_s.clear()
    one, two = (simulate(wanted, "planner", rounds=5) for _ in range(2))
    assert set(given_s) == {float("inf")}
    assert columns(one.log) == columns(two.log)


def run(wanted: Trace, goal: str, **options: object) -> Simulation:
    return run_policy("planner", wanted, goal=goal, **options)


def test_long_jobs_begin_in_time_unless_the_flow_time_is_all() -> None:
    """A job of 60 s beside twenty of 10 s on seven instances: it begins at 0 or, as the longest of all, at 20."""
    jobs = [job("long", 0, "1g.5gb", 60), *(job(f"j{at}", 0, "1g.5gb", 10) for at in range(20))]
    wanted = trace(*jobs, costs=NO_COSTS)
    makespans = {goal: run(wanted, goal).metrics.makespan for goal in ("makespan", "balanced", "flow")}
    assert makespans == pytest.approx({"makespan": 60, "balanced": 60, "flow": 80})


def test_of_the_tardiness_a_second_counts_more() -> None:
    """With b first, a is late by 1 s and the mean end is 3.5 s; with a first nobody is late, and it is 5.5 s."""
    wanted = trace(job("a", 0, "7g.40gb", 5, due=5.0), job("b", 0, "7g.40gb", 1), costs=NO_COSTS)
    assert list(run(wanted, "balanced").log.finished) == [6, 1]
    assert list(run(wanted, "tardiness").log.finished) == [5, 6]


def test_the_slowdown_counts_short_jobs_more() -> None:
    """Seven small jobs of 10 s, then one of 3 s: ends are 83 s together, slowdowns 11.3; turned round 94 and 10.1."""
    jobs = [*(job(f"j{at}", 0, "1g.5gb", 10) for at in range(7)), job("whole", 0, "7g.40gb", 3)]
    wanted = trace(*jobs, costs=NO_COSTS)
    assert run(wanted, "flow").log.finished[-1] == 13
    assert run(wanted, "slowdown").log.finished[-1] == 3


@pytest.mark.parametrize("seed", [0, 1])
def test_no_goal_is_far_behind_the_best_simple_scheduler(seed: int) -> None:
    wanted = generate_trace("migm-ml2", gpu="A100", gpus=None, seed=seed)
    simple = [simulate(wanted, name, backfill=True, patience=None).metrics for name in ("first-fit", "best-fit")]
    makespan, flow = min(own.makespan for own in simple), min(own.completion.mean for own in simple)
    assert run(wanted, "makespan").metrics.makespan <= 1.01 * makespan
    assert run(wanted, "flow").metrics.completion.mean <= 1.01 * flow
    balanced = run(wanted, "balanced").metrics
    assert balanced.makespan <= 1.03 * makespan
    assert balanced.completion.mean <= 1.01 * flow


def test_a_simple_scheduler_is_followed_where_it_comes_to_more() -> None:
    """Jobs that PCIe holds up migrate to empty GPUs at the end: no plan has migrations, `fragmentation-aware` has."""
    wanted = generate_trace("pcie-4", jobs=40, gpu="A100", gpus=None, seed=1)
    done = run(wanted, "makespan", rounds=200)
    assert done.metrics.migrations > 0
