"""Traces on several kinds of GPUs: what they say in files, and what each kind can run."""

from functools import partial

import pytest

from mig_opt import InputError, Job, Trace, get_gpu, optimum, simulate
from mig_opt.api.defragment.references import excess_fragmentation
from mig_opt.files.fleet.traces import TRACE
from mig_opt.fleet.declared_times import declare_times
from mig_opt.fleet.disturbances import Disturbances
from mig_opt.fleet.trace import Outage, batch_of, check_jobs
from mig_opt.gpu.pools import Pool
from mig_opt.views.cards import report_of

A30, A100 = get_gpu("A30"), get_gpu("A100")
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
    with pytest.raises(InputError, match="cannot hold several kinds"):
        TRACE.to_csv(MIXED)


def test_the_batch_of_a_trace_has_the_times_of_each_kind() -> None:
    batch = batch_of(MIXED)
    assert batch.tasks[1].times == {"A100-40GB": {7: 2.0}}
    assert batch.kinds == MIXED.kinds


def test_a_job_that_no_kind_can_run_is_refused() -> None:
    trace = Trace((Job("a", 0.0, {"A30": {1: 5.0}}, memory_gb=7),), pools=POOLS[:2])
    with pytest.raises(InputError, match="job 'a' can run nowhere"):
        check_jobs(trace)


def test_times_by_kind_are_declared_and_disturbed_kind_by_kind() -> None:
    twice = MIXED.replace(jobs=(JOBS[0], Job("c", 2.0, {"A30": {1: 7.0, 4: 4.0}, "A100": {1: 5.0}}, JOBS[0].profile)))
    means = declare_times(twice, "classes").jobs[0].declared
    assert means == {"A30-24GB": {1: 6.0, 4: 3.0}, "A100-40GB": {1: 4.0}}
    assert declare_times(twice, "one").jobs[1].declared == {"A30-24GB": {1: 4.0, 4: 4.0}, "A100-40GB": {1: 4.0}}
    early = Disturbances(early=1.0).applied_to(twice).jobs[0]
    assert early.declared == twice.jobs[0].times
    assert early.times["A30-24GB"][1] < 5.0


def test_what_is_for_one_kind_refuses_several() -> None:
    log = simulate(MIXED.replace(outages=()), "first-fit").log
    uses = (partial(optimum, MIXED, "makespan"), partial(optimum, MIXED, "jobs"), partial(excess_fragmentation, log))
    for use in (*uses, lambda: MIXED.profile_set):
        with pytest.raises(InputError, match="pools: are of several kinds of GPUs; this is for traces of one kind"):
            use()


def test_a_card_tells_the_kinds() -> None:
    facts = dict(report_of(simulate(MIXED, "first-fit")).facts)
    assert facts["A100-40GB"] == "1 job done, 61.7 % busy"
