"""Jobs, traces on one and several kinds of GPUs, fleet states, and run times that schedulers are told."""

import dataclasses
import math
from functools import partial
from statistics import fmean

import pytest
from documents import complaints, refused
from hypothesis import given, settings
from hypothesis import strategies as st
from online_worlds import traces

from mig_opt import InputError, Job, Migration, OperationCosts, Pool, Trace, generate_trace, get_gpu, optimum, simulate
from mig_opt.api.defragment.references import excess_fragmentation
from mig_opt.files.fleet.traces import TRACE
from mig_opt.fleet.description import describe_trace
from mig_opt.fleet.disturbances import Disturbances, declare_times, declared_error
from mig_opt.fleet.state import FleetState, HeldInstance
from mig_opt.fleet.trace import Outage, batch_of, check_jobs
from mig_opt.views.cards import report_of

A30, A100 = get_gpu("A30"), get_gpu("A100")
JOB = Job("a", 0.0, {1: 2.0})


def test_operations_have_the_sizes_of_the_gpu() -> None:
    costs = OperationCosts({1: 0.1, 2: 0.1, 3: 0.1}, {1: 0.1, 2: 0.1, 4: 0.1})
    assert complaints(Trace, (JOB,), A30, 1, costs) == [
        "operations.create: has no seconds for size 4 of A30-24GB; add them",
        "operations.create.3: A30-24GB has no instances of 3 compute slices; its sizes are 1, 2, 4",
    ]
    assert Trace((JOB,), A30).operations == A30.operation_costs


def test_profiles_of_a_job() -> None:
    trace = Trace((JOB,), get_gpu("A100"))
    for job, names in (
        (Job("a", 0.0, {2: 1.0, 1: 2.0}), ["1g.5gb", "2g.10gb"]),
        (Job("a", 0.0, {2: 1.0, 1: 2.0}, memory_gb=8.0), ["1g.10gb", "2g.10gb"]),
        (Job("a", 0.0, {2: 1.0, 1: 2.0}, memory_gb=11.0), []),
        (Job("a", 0.0, {2: 1.0, 1: 2.0}, "1g.5gb+me"), ["1g.5gb+me"]),
    ):
        assert [profile.name for profile in trace.profiles(job)] == names
    grows = Job("a", 0.0, {1: 10.0, 4: 4.0}, memory_growth=((0.0, 2.0), (0.5, 20.0)))
    assert describe_trace(Trace((grows,), A30)).area == 16.0, "it cannot be done on one slice"


def test_steps_of_memory_are_pairs() -> None:
    for growth, wrong in (
        (5, "memory_growth: must be a tuple, each entry a share of the work with GB, is 5 (int)"),
        (((0.5,),), "memory_growth[0]: must be a tuple with 2 entries, is (0.5,) (tuple)"),
    ):
        assert complaints(Job, "a", 0.0, {1: 2.0}, memory_growth=growth) == [wrong]


def test_all_problems_are_told_at_once() -> None:
    places = [(0, "2g.10gb", 1), (2, "1g.5gb", 0), (1, "4g.20gb", 0), (1, "1g.5gb", 3)]
    places += [(1, "1g.5gb+me", 4), (1, "1g.5gb+me", 5)]
    paths = refused(FleetState, A100, 2, tuple(HeldInstance(*place) for place in places))
    assert paths == ["instances[0].start", "instances[1].gpu", "instances[3]", "instances[5]"]


def test_migrations_keep_names_and_pins() -> None:
    state = FleetState(A100, 2, (HeldInstance(0, "1g.5gb", 0, "a"), HeldInstance(0, "1g.5gb", 1, "b", pinned=True)))
    moved = state.after([Migration(0, "1g.5gb", 0, 1, 4), Migration(1, "1g.5gb", 4, 1, 6)])
    assert moved.instances == (HeldInstance(1, "1g.5gb", 6, "a"), HeldInstance(0, "1g.5gb", 1, "b", pinned=True))
    assert moved.on(0) == (moved.instances[1],)
    with pytest.raises(InputError, match=r"migrations\[0\]: there is no 1g.5gb@2 on GPU 0 then"):
        state.after([Migration(0, "1g.5gb", 2, 1, 4)])
    refused(state.after, [Migration(0, "1g.5gb", 0, 0, 1)], match="overlaps")


def declared(trace: Trace) -> list[dict[int, float]]:
    return [dict(job.declared or {}) for job in trace.jobs]


@settings(max_examples=50, deadline=None)
@given(traces(), st.sampled_from([0.0, 0.5, 2.0, "classes", "one"]), st.integers(0, 10**6))
def test_only_what_is_declared_differs(trace: Trace, knowledge: float | str, seed: int) -> None:
    found = declare_times(trace, knowledge, seed=seed)
    assert found == declare_times(trace, knowledge, seed=seed)
    assert found.replace(jobs=trace.jobs) == trace
    assert [dataclasses.replace(job, declared=None) for job in found.jobs] == list(trace.jobs)
    assert all(job.declared is not None and job.declared.keys() == job.times.keys() for job in found.jobs)
    assert [job.times for job in found.as_declared().jobs] == declared(found)
    if knowledge == 0.0:
        assert declared(found) == [job.times for job in trace.jobs]


def test_errors_are_the_same_factor_at_all_sizes_and_differ_by_seed() -> None:
    trace = generate_trace("far-stream", batches=1, tasks=12, seed=3)
    found = declare_times(trace, 1.0, seed=1)
    for job in found.jobs:
        factors = [(job.declared or {})[size] / seconds for size, seconds in job.times.items()]
        assert factors == pytest.approx([factors[0]] * len(factors))
    assert declared(found) != declared(declare_times(trace, 1.0, seed=2))


def test_classes_are_jobs_that_ask_for_the_same() -> None:
    jobs = (
        Job("a", 0.0, {1: 10.0, 2: 6.0}, memory_gb=3.0),
        Job("b", 1.0, {1: 30.0, 2: 10.0}, memory_gb=5.0),
        Job("c", 2.0, {1: 50.0, 2: 40.0}, memory_gb=11.0),  # the small profile has 6 GB
        Job("d", 3.0, {1: 70.0, 2: 50.0}, memory_gb=3.0, pcie_gbps=5.0, sensitivity=1.0),
        Job("e", 4.0, {2: 7.0}, "2g.12gb"),
    )
    trace = Trace(jobs, A30)
    means = [{1: 20.0, 2: 8.0}, {1: 20.0, 2: 8.0}, {1: 50.0, 2: 40.0}, {1: 70.0, 2: 50.0}, {2: 7.0}]
    assert declared(declare_times(trace, "classes")) == means
    mean = fmean([10.0, 30.0, 50.0, 70.0, 7.0])
    assert declared(declare_times(trace, "one")) == [dict.fromkeys(job.times, mean) for job in jobs]


def test_the_median_error_of_what_is_declared() -> None:
    jobs = tuple(Job(name, 0.0, {1: 10.0}) for name in "abc")
    trace = Trace(jobs, A30)
    assert declared_error(trace) is None
    assert declared_error(declare_times(trace, 0.0)) == 1.0
    told = (Job("a", 0.0, {1: 10.0}, declared={1: 2.0}), Job("b", 0.0, {1: 10.0}, declared={1: 40.0}), jobs[2])
    assert declared_error(Trace(told, A30)) == pytest.approx(4.0)


def test_what_is_wrong_with_the_arguments_is_said_at_once() -> None:
    trace = Trace((Job("a", 0.0, {1: 10.0}),), A30)
    wanted = "must be a number from 0 to 5, or one of classes, one, is"
    assert complaints(declare_times, trace, "clases", seed=-1) == [
        f"knowledge: {wanted} 'clases'; did you mean classes?",
        f"seed: must be from 0 to {2**63 - 1}, is -1",
    ]
    for knowledge in (-0.5, 6, math.nan):
        assert complaints(declare_times, trace, knowledge) == [f"knowledge: {wanted} {knowledge}"]
    assert complaints(Job, "a", 0.0, {1: 10.0}, declared={1: 0.0, 2: 3.0}) == [
        "declared.1: must be a finite number of seconds > 0, is 0.0",
        "declared: must have the sizes of times (1), has 1, 2",
    ]


POOLS = (Pool(A100, 1), Pool(A30, 2), Pool(A30, 1, mig=False))
JOBS = (
    Job("both", 0.0, {"A30": {1: 5.0, 4: 2.0}, "A100": {1: 3.0}}, {"A30": "1g.6gb"}, declared=None),
    Job("big", 1.0, {"A30": {1: 5.0}, "A100": {7: 2.0}}, memory_gb=30),
)
MIXED = Trace(JOBS, pools=POOLS, outages=(Outage(2, 1.0, 2.0),))


def test_each_kind_has_the_jobs_that_it_can_run_with_their_times_there() -> None:
    a100, a30, whole = MIXED.parts()
    assert (a100.jobs, a30.jobs, whole.jobs) == ((0, 1), (0,), (0,))
    assert (a100.gpus, a30.gpus, whole.gpus) == (range(1), range(1, 3), range(3, 4))
    assert [part.trace.jobs[0].times for part in MIXED.parts()] == [{1: 3.0}, {1: 5.0, 4: 2.0}, {4: 2.0}]
    assert [part.trace.jobs[0].profile for part in MIXED.parts()] == [None, "1g.6gb", None]
    assert [part.trace.outages for part in MIXED.parts()] == [(), (Outage(1, 1.0, 2.0),), ()]
    assert (MIXED.gpu, MIXED.gpus, MIXED.label) == (None, 4, "1 x A100-40GB + 2 x A30-24GB + 1 x A30-24GB without MIG")
    too_large = Trace((Job("a", 0.0, {"A30": {1: 5.0}}, memory_gb=7),), pools=POOLS[:2])
    refused(check_jobs, too_large, match="job 'a' can run nowhere")


def test_a_trace_with_one_pool_is_one_without_pools() -> None:
    plain = Trace((Job("a", 0.0, {1: 5.0}, "1g.6gb"),), A30, 2)
    assert Trace((Job("a", 0.0, {"A30": {1: 5.0}}, {"A30": "1g.6gb"}),), pools=(Pool(A30, 2),)) == plain
    assert plain.parts()[0].trace is plain


def test_files_keep_what_is_said_by_kind() -> None:
    assert TRACE.from_json(TRACE.to_json(MIXED)) == MIXED
    assert '"operations"' not in TRACE.to_json(MIXED)
    rows = "a,0,A30,1g.6gb,5,4\na,0,A100,1g.5gb,3,3\nb,2,A100,7g.40gb,4,5\n"
    table = TRACE.from_csv("job,arrival_s,gpu,profile,work_s,declared_s\n" + rows)
    assert table.jobs[0] == Job(
        *("a", 0.0, {"A30": {1: 5.0}, "A100": {1: 3.0}}, {"A30": "1g.6gb", "A100": "1g.5gb"}),
        declared={"A30": {1: 4.0}, "A100": {1: 3.0}},
    )
    assert [pool.gpu for pool in table.pools] == [A30, A100]
    refused(TRACE.to_csv, MIXED, match="cannot hold several kinds")


def test_the_batch_of_a_trace_has_the_times_of_each_kind() -> None:
    batch = batch_of(MIXED)
    assert batch.tasks[1].times == {"A100-40GB": {7: 2.0}}
    assert batch.kinds == MIXED.kinds


def test_times_by_kind_are_declared_and_disturbed_kind_by_kind() -> None:
    twice = MIXED.replace(jobs=(JOBS[0], Job("c", 2.0, {"A30": {1: 7.0, 4: 4.0}, "A100": {1: 5.0}}, JOBS[0].profile)))
    means = declare_times(twice, "classes").jobs[0].declared
    assert means == {"A30-24GB": {1: 6.0, 4: 3.0}, "A100-40GB": {1: 4.0}}
    again = dataclasses.replace(JOBS[0], declared={"A30": {1: 6.0, 4: 3.0}, "A100": {1: 4.0}})
    assert again.declared == means
    assert declare_times(twice, "one").jobs[1].declared == {"A30-24GB": {1: 4.0, 4: 4.0}, "A100-40GB": {1: 4.0}}
    early = Disturbances(early=1.0).applied_to(twice).jobs[0]
    assert early.declared == twice.jobs[0].times
    assert early.times["A30-24GB"][1] < 5.0


def test_what_is_for_one_kind_refuses_several() -> None:
    log = simulate(MIXED.replace(outages=()), "first-fit").log
    uses = (partial(optimum, MIXED, "makespan"), partial(optimum, MIXED, "jobs"), partial(excess_fragmentation, log))
    for use in (*uses, lambda: MIXED.profile_set):
        refused(use, match="pools: are of several kinds of GPUs; this is for traces of one kind")


def test_a_card_tells_the_kinds() -> None:
    facts = dict(report_of(simulate(MIXED, "first-fit")).facts)
    assert facts["A100-40GB"] == "1 job done, 61.7 % busy"
