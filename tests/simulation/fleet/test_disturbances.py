"""Jobs that crash, end early or late, and GPUs that leave and return: nobody loses a job, and the books balance."""

import dataclasses
import math
from collections import Counter, defaultdict
from typing import Any

import online_worlds
import pytest
from documents import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from online_worlds import NO_COSTS, RejectingChaos, columns, disturbed, job, operations, place, rows, run, trace

from mig_opt import InputError, Simulation, Trace, generate_trace, methods, optimum, simulate
from mig_opt.environments import FleetAgent
from mig_opt.fleet.trace import Outage
from mig_opt.method.registry import get_policy
from mig_opt.simulation import Cluster, RunOutcome, check_log
from mig_opt.simulation.fleet.options import policy_options

NAMES = [policy.name for policy in methods("simulate")]
OPTIONS: dict[str, dict[str, Any]] = {
    # Without backfilling a job that can run nowhere holds up those behind it, and who these are depends on all.
    **{name: {"backfill": True} for name in NAMES if "backfill" in policy_options(get_policy(name))},
    "planner": {"rounds": 20},
}
OPTIONS["baskets"]["consolidate_s"] = 2.5


def assert_books_balance(done: Simulation) -> None:
    """Each job is done, turned away or waits; its runs end as often in a crash as it crashes; what is lost adds up."""
    log, metrics = done.log, done.metrics
    assert metrics.finished + metrics.rejected + len(done.unfinished) == metrics.jobs == len(done.trace.jobs)
    crashed = Counter(own.job for own in log.runs() if own.outcome is RunOutcome.CRASHED)
    for number, wanted in enumerate(done.trace.jobs):
        assert crashed[number] <= len(wanted.crashes)
        if not math.isnan(log.finished[number]):
            assert crashed[number] == len(wanted.crashes)
    assert metrics.crashes == crashed.total()
    used, good = 0.0, 0.0
    chains: dict[int, float] = defaultdict(float)
    for own in log.runs():
        area = own.placement.profile.compute_slices * (own.end - own.begin)
        used += area
        chains[own.job] += area
        if own.outcome is RunOutcome.FINISHED:
            good += chains[own.job]
        if own.outcome is not RunOutcome.MIGRATED:
            chains[own.job] = 0.0
    assert metrics.lost * used == pytest.approx(used - good, abs=1e-6)
    assert 0 <= metrics.utilisation <= 1 + 1e-9


@settings(max_examples=60, deadline=None)
@given(disturbed(), st.integers(0, 10**6), st.booleans())
def test_anything_that_a_policy_may_do(trace: Trace, seed: int, reject: bool) -> None:
    done = run(RejectingChaos(seed), trace, failure_limit=5, reject=reject)
    assert_books_balance(done)
    assert columns(simulate(trace, RejectingChaos(seed), failure_limit=5, reject=reject).log) == columns(done.log)


@pytest.mark.deep
@settings(max_examples=15, deadline=None)
@given(disturbed(), st.booleans())
@pytest.mark.parametrize("name", NAMES)
def test_every_scheduler_survives_and_loses_no_job(name: str, trace: Trace, reject: bool) -> None:
    if reject and name == "planner":
        return
    done = run(name, trace, reject=reject, **OPTIONS.get(name, {}))
    assert_books_balance(done)
    again = simulate(trace, name, reject=reject, **OPTIONS.get(name, {}))
    assert columns(again.log) == columns(done.log)
    # Who can be served without disturbances is served with them.
    quiet = trace.replace(jobs=tuple(dataclasses.replace(own, crashes=()) for own in trace.jobs), outages=())
    if not reject:
        assert set(done.unfinished) == set(simulate(quiet, name, **OPTIONS.get(name, {})).unfinished)


@pytest.mark.deep
@settings(max_examples=15, deadline=None)
@given(disturbed())
def test_agents_and_forecasts_survive_as_well(trace: Trace) -> None:
    for policy in (online_worlds.Seer(backfill=True), FleetAgent(lambda _, mask: int(mask.argmax()))):
        assert_books_balance(run(policy, trace))


def test_an_outage() -> None:
    """The driver is about to create the instance of b; a has run for 2 of 5 s. Both begin anew on an empty GPU."""
    world = trace(job("a", 0.0, "4g.20gb", 5.0), job("b", 2.5, "3g.20gb", 5.0), costs=online_worlds.PLAIN_COSTS)
    done = run("first-fit", world.replace(outages=(Outage(0, 3.0, 10.0),)))
    assert rows(done.log) == [
        ("a", 0, "4g.20gb@0", 1.0, 3.0, "GPU_LEFT"),
        ("a", 0, "4g.20gb@0", 11.0, 16.0, "FINISHED"),
        ("b", 0, "3g.20gb@4", 12.0, 17.0, "FINISHED"),
    ]
    assert operations(done.log) == [
        ("create", 0, "4g.20gb@0", 0.0, 1.0),
        ("create", 0, "4g.20gb@0", 10.0, 11.0),
        ("create", 0, "3g.20gb@4", 11.0, 12.0),
    ]
    metrics = done.metrics
    assert (metrics.evictions, metrics.lost) == (1, pytest.approx(8 / 43))
    assert metrics.utilisation == pytest.approx(43 / 70)  # 7 of 17 s are not there


@pytest.mark.parametrize("name", NAMES)
def test_nobody_knows_of_an_outage_before(name: str) -> None:
    world = generate_trace("normal-25", jobs=12, gpus=2, seed=1)
    calm, later = (simulate(own, name).log for own in (world, world.replace(outages=(Outage(0, 1e7, 2e7),))))
    assert rows(calm) == rows(later)


def test_a_gpu_that_is_not_there_has_no_part_in_the_fragmentation() -> None:
    one = trace(job("a", 0.0, "1g.5gb", 5.0), costs=NO_COSTS)
    two = one.replace(gpus=2, outages=(Outage(1, 0.0, 100.0),))
    alone, beside = (simulate(world, "first-fit").metrics for world in (one, two))
    assert beside.fragmentation == pytest.approx(alone.fragmentation)


def test_a_job_that_ends_as_its_gpu_leaves_is_done() -> None:
    world = trace(job("a", 0.0, "4g.20gb", 5.0), costs=NO_COSTS).replace(outages=(Outage(0, 5.0, 10.0),))
    assert rows(simulate(world, "first-fit").log) == [("a", 0, "4g.20gb@0", 0.0, 5.0, "FINISHED")]


def test_a_driver_does_not_go_on_when_its_gpu_leaves_after_the_end() -> None:
    """Nobody waits any more at 1 s, but of the instances of the partition three are to be created still."""
    world = trace(job("a", 0.0, "7g.40gb", 5.0)).replace(outages=(Outage(0, 2.5, 10.0),))
    done = run("static", world, partition="2+2+2+1", reject=True)
    assert done.rejected == ("a",)
    assert [end for *_, end in operations(done.log)] == [1.0, 2.0]


def test_other_gpus_are_used_meanwhile() -> None:
    jobs = [job(letter, number, "7g.40gb", 10.0) for number, letter in enumerate("ab")]
    world = trace(*jobs, gpus=2, costs=NO_COSTS).replace(outages=(Outage(0, 0.5, 100.0),))
    for name in NAMES:
        if name not in ("static", "pcie-aware", "pcie-unaware"):  # their partitions are their own
            done = simulate(world, name)
            assert [row[1] for row in rows(done.log) if row[5] == "FINISHED"] == [1, 1], name


@pytest.mark.parametrize("source", [0, 1])
def test_a_migrating_job_is_lost_with_either_gpu(source: int) -> None:
    policy = online_worlds.Scripted(
        {"a": (source, "1g.5gb@0")}, [(3.0, lambda own: own.migrate(0, 1 - source, place("1g.5gb@0")))]
    )
    world = trace(job("a", 0.0, "1g.5gb", 9.0), gpus=2).replace(outages=(Outage(0, 3.5, 5.0),))
    done = run(policy, world)
    assert rows(done.log) == [("a", source, "1g.5gb@0", 1.0, 3.5, "GPU_LEFT")]
    assert policy.heard[0] == ("left", 0, ((0, place("1g.5gb@0")),), 3.5)


def test_a_policy_that_has_never_heard_of_outages_gets_its_jobs_again() -> None:
    world = trace(job("a", 0.0, "7g.40gb", 9.0), gpus=2).replace(outages=(Outage(0, 3.5, 5.0),))
    assert simulate(world, online_worlds.Careless()).unfinished == ()


def test_nobody_knows_of_them_before() -> None:
    world = trace(job("a", 0.0, "7g.40gb", 9.0, crashes=(0.5,))).replace(outages=(Outage(0, 20.0, 25.0),))
    known = Cluster(world, online_worlds.TABLES).trace
    assert (known.outages, known.jobs[0].crashes) == ((), ())


def test_a_log_that_does_not_fit_the_disturbances_is_wrong() -> None:
    crashing = job("a", 0.0, "7g.40gb", 10.0, crashes=(0.4,))
    world = trace(crashing, costs=NO_COSTS).replace(outages=(Outage(0, 6.0, 8.0),))
    log = simulate(world, "first-fit").log
    assert check_log(log) == []
    log.trace = world.replace(outages=(Outage(0, 5.0, 8.0),))
    assert "while GPU 0 is not there" in str(check_log(log)[0])
    log.trace = world.replace(outages=())
    assert "since a GPU left, but none leaves then" in str(check_log(log)[0])
    log.trace = world.replace(jobs=(dataclasses.replace(crashing, crashes=(0.3,)),))
    assert "where memory allows" in str(check_log(log)[0]) or "CRASHED after" in str(check_log(log)[0])
    log.trace = world.replace(jobs=(dataclasses.replace(crashing, crashes=(0.4, 0.5)),))
    assert any("where" in str(problem) for problem in check_log(log))


def test_mistakes() -> None:
    refused(Outage, 0, 5.0, 5.0, match=r"end: must be after begin \(5 s\), is 5")
    world = trace(job("a", 0.0, "7g.40gb", 9.0), gpus=2)
    wrong = (Outage(2, 1.0, 2.0), Outage(1, 1.0, 5.0), Outage(0, 3.0, 4.0), Outage(1, 5.0, 6.0))
    assert refused(world.replace, outages=wrong) == ["outages[0].gpu", "outages[3].begin"]
    with pytest.raises(InputError, match="must be a share of the work between 0 and 1"):
        dataclasses.replace(job("a", 0.0, "7g.40gb", 9.0), crashes=(1.0,))
    refused(optimum, world.replace(outages=(Outage(1, 1.0, 5.0),)), match="outages: are for simulations only")
