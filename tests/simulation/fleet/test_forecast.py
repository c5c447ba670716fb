"""Forecasts and schedulers that are told other run times than the true ones: nothing is known that nobody can know."""

import dataclasses
import math

import online_worlds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from online_worlds import NO_COSTS, TABLES, Chaos, Scripted, audit, columns, job, place, rows, run, trace, traces

from mig_opt import Job, Trace, declare_times, methods, simulate
from mig_opt.heuristics.fleet.queues import FirstFit
from mig_opt.method.registry import get_policy
from mig_opt.simulation import Cluster
from mig_opt.simulation.fleet.course import Course
from mig_opt.simulation.fleet.forecast import Forecast


@settings(max_examples=40, deadline=None)
@given(traces())
def test_a_forecast_comes_true_once_nothing_more_arrives(trace: Trace) -> None:
    jobs = tuple(dataclasses.replace(job, memory_gb=None, memory_growth=()) for job in trace.jobs)
    policy = online_worlds.Seer()
    done = simulate(trace.replace(jobs=jobs), policy)
    complete = [forecast for coming, forecast in policy.forecasts if coming == len(jobs)]
    assert complete
    for forecast in complete:
        for number, end in enumerate(done.log.finished):
            if not math.isnan(forecast.log.finished[number]):
                assert forecast.log.finished[number] == pytest.approx(end, rel=1e-9)
        assert set(forecast.log.unfinished()) >= set(done.unfinished)


class Meddler(Chaos):
    """Forecasts whatever state the fleet is in; what happens there is none of its business."""

    def act(self, cluster: Cluster) -> None:
        super().act(cluster)
        forecast = Forecast(cluster)
        audit(forecast)
        Course(forecast, observer=audit).run(FirstFit())
        assert all(begin <= end for begin, end in zip(forecast.log.run_begin, forecast.log.run_end, strict=True))
        assert not forecast.running


@settings(max_examples=40, deadline=None)
@given(traces(), st.integers(0, 10**6))
def test_a_forecast_of_any_state_changes_nothing(trace: Trace, seed: int) -> None:
    done = simulate(trace, Meddler(seed), failure_limit=5, observer=audit)
    online_worlds.assert_sound(done.log)
    assert columns(done.log) == columns(simulate(trace, Chaos(seed), failure_limit=5).log)


def test_a_forecast_knows_what_was_declared() -> None:
    """a is to end at 8 s, and at 12 s it is expected to run for 6 more; b waits, c is not known yet."""
    known = job("a", 0.0, "7g.40gb", 30.0, declared={7: 8.0}), job("b", 1.0, "7g.40gb", 5.0, declared={7: 2.0})
    jobs = *known, job("c", 20.0, "7g.40gb", 5.0)
    seen: list[list[float]] = []

    def look(cluster: Cluster) -> None:
        forecast = Forecast(cluster)
        Course(forecast).run(FirstFit())
        seen.append(list(forecast.log.finished))

    simulate(trace(*jobs, costs=NO_COSTS), Scripted({"a": (0, "7g.40gb@0")}, [(4.0, look), (12.0, look)]))
    assert [ends[:2] for ends in seen] == [[8.0, 10.0], [18.0, 20.0]]
    assert all(math.isnan(ends[2]) for ends in seen)


def test_a_forecast_does_not_know_how_memory_grows() -> None:
    grows = Job("a", 0.0, {1: 10.0}, "1g.5gb", memory_growth=((0.0, 4.0), (0.5, 9.0)))
    cluster = Cluster(trace(grows, costs=NO_COSTS), TABLES)
    decisions = Course(cluster).decisions()
    next(decisions)
    next(decisions)
    cluster.start(0, 0, place("1g.5gb@0"))
    forecast = Forecast(cluster)
    Course(forecast).run(FirstFit())
    assert forecast.log.finished[0] == 10.0


@pytest.mark.parametrize("name", [policy.name for policy in methods("simulate")])
def test_every_scheduler_can_go_on_from_a_fleet_without_instances(name: str) -> None:
    """All jobs wait already: the same as if they arrived now, all in one moment."""
    jobs = [job(profile, 0.0, profile, 5.0) for profile in ("4g.20gb", "3g.20gb", "1g.5gb")]
    world = trace(*jobs)
    cluster = Cluster(world, TABLES)
    cluster.waiting, cluster.coming = dict.fromkeys(range(3)), 3
    forecast = Forecast(cluster)
    Course(forecast).run(get_policy(name).load()())
    assert rows(forecast.log) == rows(simulate(world, name).log)


NAMES = [policy.name for policy in methods("simulate")]
QUICK = {"rounds": 40}


def test_jobs_run_for_their_true_times_and_are_expected_to_run_for_the_declared_ones() -> None:
    heard = []

    def look(cluster: Cluster) -> None:
        heard.append((cluster.now, cluster.expected_end(0), cluster.overruns(0), cluster.progress(0)))

    wanted = trace(job("a", 0.0, "1g.5gb", 20.0, declared={1: 10.0}), costs=NO_COSTS)
    policy = Scripted({"a": (0, "1g.5gb@0")}, [(second, look) for second in (4.0, 10.0, 12.0, 16.0)])
    done = simulate(wanted, policy)
    # After 10 s it is due; then it is expected to run for half as long again.
    assert heard == [
        (4.0, 10.0, False, 0.2),
        (10.0, 10.0, False, 0.5),
        (12.0, 18.0, True, 0.6),
        (16.0, 24.0, True, 0.8),
    ]
    assert [(run.begin, run.end) for run in done.log.runs()] == [(0.0, 20.0)]
    assert done.trace.jobs[0].times == {1: 20.0}
    assert done.metrics.makespan == 20.0


def test_the_order_of_the_planner_follows_what_is_declared() -> None:
    jobs = [
        job("first", 0.0, "7g.40gb", 5.0),
        job("long", 1.0, "7g.40gb", 30.0, declared={7: 1.0}),
        job("short", 1.0, "7g.40gb", 2.0, declared={7: 20.0}),
    ]
    for told, names in ((True, ["first", "long", "short"]), (False, ["first", "short", "long"])):
        wanted = trace(*jobs, costs=NO_COSTS) if told else declare_times(trace(*jobs, costs=NO_COSTS), 0.0)
        done = simulate(wanted, "planner", **QUICK)
        assert [jobs[run.job].name for run in done.log.runs()] == names


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"planner"}))
@settings(max_examples=12, deadline=None)
@given(traces(max_jobs=8))
def test_with_exact_times_nothing_changes(name: str, wanted: Trace) -> None:
    """The planner believes declared times only after it has seen some jobs end."""
    told = declare_times(wanted, 0.0)
    assert columns(simulate(told, name).log) == columns(simulate(wanted, name).log)


@settings(max_examples=60, deadline=None)
@given(traces(), st.sampled_from([0.1, 0.7, 2.0, "classes", "one"]), st.integers(0, 10**6))
def test_the_planner_loses_no_job_however_wrong_it_is_told(wanted: Trace, knowledge: float | str, seed: int) -> None:
    told = declare_times(wanted, knowledge, seed=seed)
    done = run("planner", told, **QUICK)
    exact = simulate(wanted, "planner", **QUICK)
    assert set(done.unfinished) == set(exact.unfinished)
    assert columns(simulate(told, "planner", **QUICK).log) == columns(done.log)


def test_wake_ups_for_overruns_end_at_late_seconds_and_for_short_jobs() -> None:
    for arrival, seconds in ((1e12, 1e-6), (0.0, 1e-9), (3e15, 5.0)):
        jobs = [
            job("a", arrival, "7g.40gb", seconds * 1000, declared={7: seconds}),
            job("b", arrival, "7g.40gb", seconds, declared={7: seconds * 1000}),
        ]
        done = simulate(trace(*jobs, costs=NO_COSTS), "planner", **QUICK)
        assert done.unfinished == ()
