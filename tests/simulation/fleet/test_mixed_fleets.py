"""Simulations on several kinds of GPUs: every scheduler, whatever jobs and fleets there are, and the router."""

import dataclasses
import random
from collections import Counter

import pytest
from documents import refused
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from online_worlds import rows

from mig_opt import InputError, Job, PolicyError, Pool, Trace, get_gpu, simulate
from mig_opt.fleet.bounds import trace_bounds
from mig_opt.fleet.state import FleetState, HeldInstance
from mig_opt.fleet.trace import Outage
from mig_opt.gpu.catalogue import without_mig
from mig_opt.heuristics.fleet.queues import FirstFit
from mig_opt.method.registry import methods
from mig_opt.models.fleet.admission import acceptance_bound
from mig_opt.simulation.fleet.cluster import Cluster
from mig_opt.simulation.fleet.simulator import check_policy
from mig_opt.validation import validate
from mig_opt.validation.fleet.logs import check_log

A30, A100, H100 = get_gpu("A30"), get_gpu("A100"), get_gpu("H100")
POLICIES = [policy.name for policy in methods("simulate")]


def mixed_trace(seed: int) -> Trace:
    """Return a trace on two or three kinds of GPUs, with MIG off on some; each job can run somewhere."""
    draw = random.Random(seed)
    pools = [
        Pool(kind, draw.randint(1, 3), mig=draw.random() < 0.8)
        for kind in draw.sample((A30, A100, H100), draw.randint(2, 3))
    ]
    if draw.random() < 0.2:
        pools.append(Pool(pools[0].gpu, 1, mig=not pools[0].mig))
    kinds = list(dict.fromkeys(pool.gpu for pool in pools))
    cut = {pool.gpu.name for pool in pools if pool.mig}
    jobs, arrival = [], 0.0
    for number in range(draw.randint(1, 20)):
        arrival += draw.choice((0.0, 0.0, draw.expovariate(0.2)))
        times, asked, gb = {}, {}, draw.uniform(1, 12)
        more: dict[str, object] = draw.choice(
            [{}, {}, {}, {"memory_gb": gb}, {"memory_growth": ((0.0, gb / 3), (0.5, gb))}]
        )
        for kind in draw.sample(kinds, draw.randint(1, len(kinds))):
            # Jobs that ran out of memory look for another size.
            sizes = set(kind.sizes if more else draw.sample(kind.sizes, draw.randint(1, len(kind.sizes))))
            sizes |= set() if kind.name in cut else {kind.sizes[-1]}
            times[kind.name] = {size: draw.uniform(1, 30) / size**0.5 for size in sizes}
            if draw.random() < 0.4 and kind.name in cut and not more:
                asked[kind.name] = draw.choice([p.name for p in kind.profiles_of() if p.compute_slices in sizes])
        if draw.random() < 0.3:
            more |= {"pcie_gbps": draw.uniform(1, 20), "sensitivity": draw.uniform(0.5, 1.5)}
        if draw.random() < 0.1:
            more["crashes"] = (draw.uniform(0.1, 0.9),)
        if draw.random() < 0.2:
            factor = draw.uniform(0.5, 2)
            more["declared"] = {k: {size: s * factor for size, s in own.items()} for k, own in times.items()}
        jobs.append(Job(f"job-{number}", arrival, times, asked or None, **more))
    gpus = sum(pool.count or 0 for pool in pools)
    outages = (Outage(draw.randrange(gpus), draw.uniform(0, 20), draw.uniform(21, 60)),)
    trace = Trace(tuple(jobs), pools=tuple(pools), outages=outages if draw.random() < 0.2 else ())
    able = {number for part in trace.parts() for number in part.jobs}
    return trace.replace(jobs=tuple(trace.jobs[number] for number in sorted(able))) if able else mixed_trace(seed + 1)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 10**6), st.sampled_from(POLICIES))
def test_every_scheduler_does_all_jobs_of_a_mixed_trace(seed: int, policy: str) -> None:
    trace = mixed_trace(seed)
    done = simulate(trace, policy)
    assert check_log(done.log) == []
    if policy != "static":  # whose partitions may lack a profile, as on one kind of GPU
        assert done.unfinished == ()
    if done.log.run_job:
        assert validate(*done.log.as_schedule()).violations == ()
        assert 0 < done.metrics.utilisation <= 1
        assert done.metrics.energy > 0
    assert sum(own.finished for own in done.kinds.values()) == done.metrics.finished


@pytest.mark.parametrize("seed", [*range(20), *(pytest.param(at, marks=pytest.mark.deep) for at in range(20, 300))])
def test_no_scheduler_is_better_than_the_bounds(seed: int) -> None:
    trace = mixed_trace(seed)
    free, least = trace_bounds(trace), trace_bounds(trace, resizing=False)
    most = acceptance_bound(trace, as_asked=False)
    for policy in POLICIES:
        done = simulate(trace, policy)
        if not done.unfinished:
            for bounds in (free, least):
                assert max(bound.value for bound in bounds.makespan) <= done.metrics.makespan, (seed, policy)
                assert max(bound.value for bound in bounds.completion) <= sum(done.log.finished), (seed, policy)
        if policy != "planner":
            ratios = simulate(trace, policy, reject=True).metrics.acceptance
            for goal in ("jobs", "slices", "slice_seconds"):
                assert getattr(ratios, goal) <= getattr(most, goal) + 1e-9, (seed, policy, goal)


def test_a_job_that_goes_on_on_another_kind_is_within_the_bound() -> None:
    """One loses its A30 at 5 s and begins anew on the A100, which two has left; three has the A30 from 7 s on."""
    jobs = Job("one", 0.0, {"A30": {4: 10.0}, "A100": {7: 10.0}}), Job("two", 0.0, {"A100": {4: 4.5}})
    jobs += (Job("three", 7.0, {"A30": {4: 10.0}}),)
    trace = Trace(jobs, pools=(Pool(A30, 1), Pool(A100, 1)), outages=(Outage(0, 5.0, 6.0),))
    assert simulate(trace, "first-fit", reject=True).rejected == ()
    assert acceptance_bound(trace).jobs == 1


def _late_trace() -> Trace:
    """Return a trace in which the large GPU has more to do than was declared, and the small one soon nothing."""
    long = Job("long", 0.0, {"A100": {7: 300.0}}, declared={"A100": {7: 20.0}})
    before = Job("before", 0.0, {"A30": {4: 40.0}})
    either = (Job(name, at, {"A30": {4: 12.0}, "A100": {7: 10.0}}) for at, name in enumerate(("one", "two"), 1))
    pools = (Pool(A100, 1, mig=False), Pool(A30, 1, mig=False))
    return Trace((long, before, *either), pools=pools)


@pytest.mark.parametrize("policy", POLICIES)
def test_jobs_that_wait_for_a_kind_begin_on_another_that_is_idle(policy: str) -> None:
    done = simulate(_late_trace(), policy)
    assert check_log(done.log) == []
    assert list(done.log.finished) == [300.0, 40.0, 52.0, 64.0]


@pytest.mark.parametrize("policy", POLICIES)
def test_jobs_do_not_wait_for_a_kind_whose_gpus_have_left(policy: str) -> None:
    jobs = tuple(Job(f"{at}", at, {"A100": {7: 10.0}, "A30": {4: 30.0}}) for at in range(1, 5))
    pools = (Pool(A100, 1, mig=False), Pool(A30, 1, mig=False))
    done = simulate(Trace(jobs, pools=pools, outages=(Outage(0, 0.0, 1000.0),)), policy)
    assert list(done.log.finished) == [31.0, 61.0, 91.0, 121.0]


def test_a_scheduler_that_does_not_start_a_job_leaves_it_its_turn() -> None:
    """The small GPU takes no more jobs: what was offered to it waits on, before what came later."""

    class Closing(FirstFit):
        def serve(self, cluster: Cluster) -> None:
            if cluster.geometry.gpu.name.startswith("A100") or cluster.now < 40.0:
                super().serve(cluster)

    trace = _late_trace()
    third = dataclasses.replace(trace.jobs[-1], name="three", arrival=60.0, times={"A100": {7: 10.0}})
    done = simulate(trace.replace(jobs=(*trace.jobs, third)), Closing())
    assert list(done.log.finished) == [300.0, 40.0, 310.0, 320.0, 330.0]


def test_jobs_of_a_scheduler_that_cannot_forget_them_keep_their_kind() -> None:
    class Plain:
        def begin(self, cluster: Cluster) -> None:
            """It needs no records."""

        def arrived(self, cluster: Cluster, *_: int) -> None:
            if cluster.waiting and not cluster.states[0].busy:
                cluster.start(next(iter(cluster.waiting)), 0, 0)

        finished = arrived

    done = simulate(_late_trace(), Plain())
    assert list(done.log.finished) == [300.0, 40.0, 310.0, 320.0]


def test_what_is_known_of_the_memory_of_a_job_goes_with_it() -> None:
    """It begins on 10 GB for want of more, runs out of them, and the only other GPU has 24 GB: not 6 GB of it."""
    grows = Job("grows", 0.0, {"A100": dict.fromkeys(A100.sizes, 30.0), "A30": dict.fromkeys(A30.sizes, 99.0)}, None)
    grows = dataclasses.replace(grows, memory_growth=((0.0, 4.0), (0.5, 20.0)))
    jobs = [grows] + [Job(f"{at}", 0.5, {"A100": {1: 900.0}}) for at in range(5)]
    trace = Trace(tuple(jobs), pools=(Pool(A100, 1), Pool(A30, 1)))
    done = simulate(trace, "memory-aware-b")
    runs = [str(run.placement.profile.name) for run in done.log.runs() if run.job == 0]
    assert runs == ["1g.5gb", "4g.24gb"]


@pytest.mark.parametrize("policy", [name for name in POLICIES if name not in ("planner", "baskets")])
def test_a_job_is_turned_away_only_if_no_kind_has_room(policy: str) -> None:
    jobs = tuple(Job(f"{at}", 0.0, {"A30": {4: 10.0}, "A100": {7: 9.0}}) for at in range(4))
    pools = (Pool(A100, 1, mig=False), Pool(A30, 2, mig=False))
    done = simulate(Trace(jobs, pools=pools), policy, reject=True)
    assert (done.metrics.finished, len(done.rejected)) == (3, 1)
    assert check_log(done.log) == []


def test_jobs_of_one_moment_are_divided_among_the_kinds() -> None:
    times = {"A30": {1: 10.0}, "A100": {1: 10.0}}
    trace = Trace(tuple(Job(f"{at}", 0.0, times) for at in range(11)), pools=(Pool(A30, 1), Pool(A100, 1)))
    for policy in POLICIES:
        done = simulate(trace, policy)
        places = {run.job: trace.kind(run.gpu).name for run in done.log.runs()}
        # One after the other on each whole GPU: jobs that still wait for the A100 go on when the A30 is idle.
        counts = (6, 5) if policy == "whole-gpu" else (4, 7)
        assert Counter(places.values()) == dict(zip(("A30-24GB", "A100-40GB"), counts, strict=True)), policy


def test_a_job_goes_where_partitions_that_never_change_have_an_instance_for_it() -> None:
    """Twenty jobs on 1g leave no place for 7g on the A100; the A30 is one instance for the only job on 4g."""
    small = [Job(f"{at}", 0.0, {"A100": {1: 50.0}}) for at in range(20)]
    trace = Trace((*small, Job("large", 0.0, {"A30": {4: 9.0}, "A100": {7: 1.0}})), pools=(Pool(A100, 1), Pool(A30, 1)))
    assert simulate(trace, "static").unfinished == ()


def test_gpus_without_mig_have_no_operations() -> None:
    trace = Trace((Job("a", 0.0, {"A30": {4: 5.0}}),), pools=(Pool(A30, 1, mig=False), Pool(A100, 1)))
    assert simulate(trace, "pcie-aware").metrics.makespan == 5.0

    class Destroying(FirstFit):
        def begin(self, cluster: Cluster) -> None:
            cluster.destroy(0, 0)

    with pytest.raises(PolicyError, match="MIG is off"):
        simulate(trace, Destroying())


def test_the_validator_knows_kinds() -> None:
    trace = Trace(
        (Job("a", 0.0, {"A30": {1: 5.0}}), Job("b", 0.0, {"A100": {7: 1.0}})), pools=(Pool(A100, 1), Pool(A30, 1))
    )
    log = simulate(trace, "first-fit").log
    assert check_log(log) == []
    a30 = next(index for index, place in enumerate(log.placements) if str(place) == "1g.6gb@0")
    a100 = next(index for index, place in enumerate(log.placements) if str(place) == "1g.5gb@0")
    log.run_placement[list(log.run_placement).index(a30)] = a100
    messages = [problem.message for problem in check_log(log)]
    assert messages[0] == "is on 1g.5gb@0 of A100-40GB, but GPU 1 is none"
    assert "'a' has no time for 1g.5gb of A100-40GB" in messages


def test_a_fleet_starts_with_the_instances_of_a_state_of_the_same_kinds() -> None:
    trace = Trace((Job("a", 0.0, {"A30": {1: 5.0}}),), pools=(Pool(A100, 1), Pool(A30, 1)))
    held = (
        HeldInstance(0, "1g.5gb", 2, "chat"),
        HeldInstance(1, "1g.6gb", 1, idle=True),
        HeldInstance(1, "2g.12gb", 2),
    )
    state = FleetState(None, 2, held, kinds=(A100, A30))
    done = simulate(trace, "best-fit", state=state, busy_until=9.0)
    runs = {done.trace.jobs[run.job].name: (run.gpu, str(run.placement), run.end) for run in done.log.runs()}
    assert runs == {
        "chat": (0, "1g.5gb@2", 9.0),
        "2g.12gb@2 of 1": (1, "2g.12gb@2", 9.0),
        "a": (1, "1g.6gb@0", pytest.approx(5.34)),
    }
    with pytest.raises(InputError, match="pools in that order"):
        simulate(trace, "best-fit", state=dataclasses.replace(state, instances=(), kinds=(A30, A100)))
    # On the GPU of the same model without MIG the job that runs would fit, too.
    held = (HeldInstance(2, "4g.24gb", 0, "chat"),)
    beside = trace.replace(pools=(Pool(A30, 2, mig=False), Pool(A30, 1)))
    state = FleetState(None, 3, held, kinds=(without_mig(A30), without_mig(A30), A30))
    assert [run.gpu for run in simulate(beside, "first-fit", state=state, busy_until=3.0).log.runs()] == [2, 2]


@pytest.mark.parametrize("policy", ["static", "pcie-unaware"])
def test_partitions_are_given_for_each_gpu_through_the_pools(policy: str) -> None:
    times = {"A30": {1: 5.0, 2: 3.0, 4: 2.0}, "A100": {3: 4.0}}
    pools = (Pool(A100, 1), Pool(A30, 2), Pool(A30, 1, mig=False))
    trace = Trace(tuple(Job(f"j{at}", 60.0, times) for at in range(9)), pools=pools)
    partitions = ("3+3", "2+2", "2+1+1", "4")
    log = simulate(trace, policy, partition=partitions).log
    made = sorted((one.gpu, one.profile) for one in log.operations() if one.begin < 60.0)
    two, one = ["2g.12gb"], ["1g.6gb"]
    names = {0: ["3g.20gb"] * 2, 1: two * 2, 2: one * 2 + two}
    assert made == [(gpu, name) for gpu, own in names.items() for name in own]
    paths = refused(check_policy, trace, policy, partition=("4+3", "9", "2+2", "2+2"))
    assert paths == ["partition[1]", "partition[3]"]
    refused(simulate, trace, policy, partition=partitions[:3], match="one for each, has 3")
    check_policy(_late_trace(), "pcie-aware", sensitivities={"long": 1.0})  # a job that cannot run on the A30


def test_logs_of_one_kind_are_those_of_the_plain_format() -> None:
    plain = Trace(tuple(Job(f"{at}", at, {1: 5.0}) for at in range(9)), A30, 2)
    other = tuple(Job(job.name, job.arrival, {"A30": job.times}) for job in plain.jobs)
    beside = Trace(other, pools=(Pool(A30, 2), Pool(A100, 1)))
    one, two = simulate(beside, "planner").log, simulate(plain, "planner").log
    assert (list(one.finished), rows(one)) == (list(two.finished), rows(two))


def test_a_kind_on_which_a_job_asks_for_too_little_memory_has_bounds_too() -> None:
    """Of the batch of the jobs no task can run there: slices of that kind have no weight, and the job uses nothing."""
    times = {"A30": {1: 3.0}, "H100": {3: 1.0}}
    fleet = (Pool(A30, 1), Pool(H100, 1))
    trace = Trace((Job("a", 0.0, times, {"A30": "1g.6gb"}, memory_gb=20.0),), pools=fleet)
    assert trace_bounds(trace).completion[0].value <= simulate(trace, "first-fit").log.finished[0]
