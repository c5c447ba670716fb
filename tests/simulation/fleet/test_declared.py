"""Simulations in which schedulers are told other run times than the true ones."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from online_worlds import NO_COSTS, Scripted, columns, job, run, trace, traces

from mig_opt import Trace, declare_times, generate_trace, methods, simulate
from mig_opt.method.registry import get_policy
from mig_opt.simulation import Cluster
from mig_opt.simulation.fleet.options import policy_options

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


@pytest.mark.parametrize("name", [name for name in NAMES if name != "static"])
def test_every_policy_ends_all_jobs_of_a_trace_that_is_declared_wrong(name: str) -> None:
    told = declare_times(generate_trace("normal-25", jobs=12, gpus=2, seed=1), 1.5, seed=1)
    backfill = {"backfill": True} if "backfill" in policy_options(get_policy(name)) else {}
    done = run(name, told, **(QUICK if name == "planner" else backfill))
    assert done.unfinished == ()
    assert not any(map(math.isnan, done.log.finished))


def test_wake_ups_for_overruns_end_at_late_seconds_and_for_short_jobs() -> None:
    for arrival, seconds in ((1e12, 1e-6), (0.0, 1e-9), (3e15, 5.0)):
        jobs = [
            job("a", arrival, "7g.40gb", seconds * 1000, declared={7: seconds}),
            job("b", arrival, "7g.40gb", seconds, declared={7: seconds * 1000}),
        ]
        done = simulate(trace(*jobs, costs=NO_COSTS), "planner", **QUICK)
        assert done.unfinished == ()
