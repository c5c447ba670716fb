"""Fleets without a queue: who is turned away, who may come in its place, and what the figures say."""

import dataclasses

import online_worlds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from online_worlds import NO_COSTS, Careless, RejectingChaos, arrivals, assert_sound, columns, job, trace, traces

from mig_opt import FleetState, HeldInstance, InputError, Job, Simulation, Trace, methods, simulate
from mig_opt.files.fleet.traces import log_entries
from mig_opt.simulation import Cluster, Policy, check_log

NAMES = [policy.name for policy in methods("simulate") if policy.name != "planner"]


def test_jobs_of_one_moment_have_their_turn_after_one_that_is_turned_away() -> None:
    """A strict queue would let the 7g job hold up the 1g job behind it."""
    jobs = (job("a", 0.0, "1g.5gb", 50.0), job("b", 1.0, "7g.40gb", 5.0), job("c", 1.0, "1g.5gb", 5.0))
    for name in ("first-fit", "best-fit", "memory-aware-b"):
        assert simulate(trace(*jobs), name, reject=True).rejected == ("b",)


def test_policies_that_would_wait_are_refused() -> None:
    with pytest.raises(InputError, match=r"Careless has no method rejected(?s:.*)failure_limit: must be"):
        simulate(trace(*arrivals("4g.20gb")), Careless(), failure_limit=0, reject=True)
    with pytest.raises(InputError, match="reject: must be True or False"):
        simulate(trace(*arrivals("4g.20gb")), "first-fit", reject="yes")  # type: ignore[arg-type]


def test_who_runs_out_of_memory_needs_another_place_at_once() -> None:
    """At half of its work a needs 9 GB; the only other place for it is taken by b, or free."""
    grows = Job("a", 0.0, {1: 10.0, 2: 10.0}, memory_growth=((0.0, 4.0), (0.5, 9.0)))
    full = Job("b", 1.0, {4: 90.0}, "4g.20gb")
    other = Job("c", 1.0, {3: 90.0}, "3g.20gb")
    done = simulate(trace(grows, full, costs=NO_COSTS), "memory-aware-b", reject=True)
    assert done.rejected == ()
    done = simulate(trace(grows, full, other, costs=NO_COSTS), "memory-aware-b", reject=True)
    assert (done.metrics.failures + done.metrics.stops, len(done.rejected)) in {(1, 1), (0, 1)}
    assert check_log(done.log) == []


def test_jobs_of_a_state_are_not_turned_away() -> None:
    state = FleetState(online_worlds.A100, 1, (HeldInstance(0, "4g.20gb", 0),))
    done = simulate(trace(*arrivals("4g.20gb", "3g.20gb")), "first-fit", state=state, busy_until=40.0, reject=True)
    assert done.rejected == ("a",)


def test_the_log_names_who_was_turned_away() -> None:
    done = simulate(trace(*arrivals("4g.20gb", "4g.20gb")), "first-fit", reject=True)
    entries = list(log_entries(done))
    assert entries[0]["admission"] == "reject"
    assert {"rejected": "b", "at": 1.0} in entries
    assert "admission" not in next(iter(log_entries(simulate(done.trace, "first-fit"))))


def test_a_log_in_which_someone_runs_who_was_turned_away_is_wrong() -> None:
    done = simulate(trace(*arrivals("4g.20gb", "3g.20gb")), "first-fit", reject=True)
    assert check_log(done.log) == []
    done.log.rejected[0] = 3.0
    (problem,) = check_log(done.log)
    assert "was turned away at 3.0, but ran then or later" in str(problem)


@settings(max_examples=30, deadline=None)
@given(traces(), st.integers(0, 10**6))
def test_anything_that_a_policy_may_do(trace: Trace, seed: int) -> None:
    check(RejectingChaos(seed), trace)


def check(policy: str | Policy, trace: Trace) -> Simulation:
    done = simulate(trace, policy, observer=waits_for_nobody, reject=True, failure_limit=5)
    assert_sound(done.log)
    assert done.metrics.finished + len(done.rejected) + len(done.unfinished) == len(trace.jobs)
    return done


def waits_for_nobody(cluster: Cluster) -> None:
    """Only within a moment in which jobs arrive."""
    online_worlds.audit(cluster)
    assert not cluster.waiting or any(job.arrival == cluster.now for job in cluster.trace.jobs)


@pytest.mark.deep
@settings(max_examples=15, deadline=None)
@given(traces())
@pytest.mark.parametrize("name", NAMES)
def test_each_policy(name: str, trace: Trace) -> None:
    assert columns(check(name, trace).log) == columns(simulate(trace, name, reject=True, failure_limit=5).log)


@pytest.mark.deep
@settings(max_examples=30, deadline=None)
@given(traces(max_jobs=6), st.sampled_from(["first-fit", "best-fit", "load-balancing", "fragmentation-aware"]))
def test_on_a_fleet_with_room_for_all_nobody_is_turned_away(trace: Trace, name: str) -> None:
    """There are as many GPUs as jobs, and every job can run on a GPU of its own."""
    jobs = tuple(dataclasses.replace(job, memory_growth=(), memory_gb=None) for job in trace.jobs)
    trace = trace.replace(jobs=jobs, gpus=len(jobs), operations=online_worlds.PLAIN_COSTS)
    assert simulate(trace, name, reject=True).rejected == ()
