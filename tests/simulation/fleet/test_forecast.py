"""Forecasts from the present moment: what comes true where all that is known is true, and nothing that is not known."""

import dataclasses
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from online_worlds import (
    NO_COSTS,
    TABLES,
    Chaos,
    Scripted,
    Seer,
    assert_sound,
    audit,
    columns,
    job,
    place,
    rows,
    trace,
    traces,
)

from mig_opt import Job, Trace, methods, simulate
from mig_opt.heuristics.fleet.queues import FirstFit
from mig_opt.method.registry import get_policy
from mig_opt.simulation import Cluster
from mig_opt.simulation.fleet.course import Course
from mig_opt.simulation.fleet.forecast import Forecast


@settings(max_examples=40, deadline=None)
@given(traces())
def test_a_forecast_comes_true_once_nothing_more_arrives(trace: Trace) -> None:
    jobs = tuple(dataclasses.replace(job, memory_gb=None, memory_growth=()) for job in trace.jobs)
    policy = Seer()
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
    assert_sound(done.log)
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
