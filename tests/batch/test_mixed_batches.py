"""Batches on several kinds of GPUs."""

import dataclasses
from random import Random

import pytest
from documents import refused
from interval_model import optimum
from mixed import A30, A100, H100, SLOW_A30, mixed_batch

from mig_opt import OperationCosts, Pool, bounds, check, explain, plan_stream, prove, read, solve, validate, write
from mig_opt.batch.batch import Batch, LiveInstance, Task
from mig_opt.batch.certificate import Claim, batch_digest
from mig_opt.batch.schedule import Operation, Run, Schedule
from mig_opt.errors import InputError
from mig_opt.gpu.catalogue import add_gpu, get_gpu

SMALL = Pool(A30, 1), Pool(SLOW_A30, 1)
SCHEDULERS = ["far", "far-printed", "far-published", "far-unrefined", "miso-opt", "fixpart-best", "lpt", "list"]
TWO = Batch(
    (Task("a", {"A30": {1: 4.0, 2: 2.5}, "A100": {1: 3.0, 7: 1.0}}), Task("b", {"A30": {4: 3.0}})),
    pools=(Pool(A100, 1, cost=2.2), Pool(A30, 2), Pool(A30, 1, mig=False)),
)


def test_gpus_are_numbered_through_the_pools():
    assert [TWO.kind(gpu) for gpu in range(TWO.gpus)] == [A100, A30, A30, get_gpu("A30 without MIG")]
    assert (TWO.gpu, refused(TWO.kind, 4)) == (None, ["gpu"])
    assert TWO.label == "1 x A100-40GB + 2 x A30-24GB + 1 x A30-24GB without MIG"
    assert TWO.initial == (LiveInstance(3, "4g.24gb", 0),)
    assert {(str(placement), placement.profile.gpu) for placement, _ in TWO.options(TWO.tasks[1])} == {
        ("4g.24gb@0", "A30-24GB"),
        ("4g.24gb@0", "A30-24GB without MIG"),
    }


def test_one_pool_is_the_same_as_none():
    plain = Batch((Task("a", {1: 4.0, 2: 2.5}),), A30, 2)
    pooled = Batch((Task("a", {"A30": {1: 4.0, 2: 2.5}}),), pools=(Pool(A30, 2, cost=3.0),))
    by_kind = OperationCosts({"A30": A30.operation_costs.create}, {"A30": A30.operation_costs.destroy})
    assert pooled == plain == Batch(plain.tasks, pools=(Pool(A30, 2),))
    assert Batch(plain.tasks, A30, 2, by_kind).operations.create == plain.operations.create
    assert batch_digest(pooled) == batch_digest(plain)
    assert refused(Batch, TWO.tasks, pools=(Pool(A30), Pool(A100, 1))) == ["pools[0].count"]


def test_with_mig_off_only_the_whole_gpu_counts():
    whole = Batch((Task("a", {1: 4.0, 4: 1.0}), Task("b", {4: 2.0})), pools=(Pool(A30, 2, mig=False),))
    assert [task.times for task in whole.tasks] == [{4: 1.0}, {4: 2.0}]
    schedule = solve(whole).schedule
    assert (schedule.makespan, schedule.operations) == (2.0, ())
    assert [whole.replace(gpus=count).initial[:2] for count in (1, 3)] == [whole.initial[:1], whole.initial]
    measured = Batch((Task("a", {"A30": {4: 5.0}, "A30 without MIG": {4: 4.5}}),), pools=(Pool(A30, 2, mig=False),))
    assert measured.tasks[0].times == {4: 4.5}
    wide = dataclasses.replace(A30, name="wide", aliases=(), compute_slices=5, memory_slices=5)
    assert Batch(measured.tasks, pools=(Pool(wide, 1, mig=False),)).profiles()[0].name == "4g.24gb"
    late = dataclasses.replace(A30.profile("2g.12gb"), starts=(2,), max_count=1)
    costs = OperationCosts({2: 0.1}, {2: 0.1})
    halves = dataclasses.replace(A30, name="halves", aliases=(), profiles=(late,), operation_costs=costs)
    assert solve(Batch((Task("a", {2: 1.0}), Task("b", {2: 1.0})), pools=(Pool(halves, 1, mig=False),))).makespan == 2.0
    small = {"A30": {4: 5.0}, "A30 without MIG": {1: 4.5}}
    assert refused(Batch, (Task("a", small),), pools=(Pool(A30, 2, mig=False),)) == ["tasks[0].times"]


def test_a_gpu_without_mig_has_no_operations():
    pools = (Pool(A100, 1), Pool(A30, 2, mig=False))
    for seed in range(4):
        batch = mixed_batch(Random(seed), 5, pools, missing=0.0, live=False)
        for method in ("cp", "milp", "far"):
            schedule = solve(batch, method, time_limit=2, workers=1).schedule
            assert {run.gpu for run in schedule.runs} == {0, 1, 2}, method
            assert {operation.gpu for operation in schedule.operations} <= {0}, method
            assert validate(batch, schedule).valid, method


def test_an_operation_on_a_gpu_without_mig_is_a_violation():
    plan = Schedule((Run("b", 3, "4g.24gb", 0, 0.0, 3.0), Run("a", 0, "7g.40gb", 0, 0.0, 1.0)))
    live = LiveInstance(0, "7g.40gb", 0)
    batch = TWO.replace(initial=(live,))
    assert validate(batch, plan).valid
    off = [Operation(kind, 3, "4g.24gb", 0, 3.0, 3.0) for kind in ("destroy", "create")]
    verdict = validate(batch, dataclasses.replace(plan, operations=tuple(off)))
    expected = [("without-mig", "operations[0]"), ("without-mig", "operations[1]")]
    assert [(str(one.code), one.path) for one in verdict.violations] == expected
    assert "GPU 3 has MIG off" in verdict.violations[0].message


def test_a_task_that_only_a_gpu_without_mig_knows_has_a_time_for_the_whole_of_it():
    with pytest.raises(InputError, match=r"tasks\[0\].times: have none for size 4: with MIG off"):
        Batch((Task("a", {"A30": {1: 4.0}}),), pools=(Pool(A30, 1, mig=False), Pool(A100, 1)))


def test_a_batch_is_what_its_file_says(tmp_path):
    whole = Batch((Task("a", {4: 1.0}),), pools=(Pool(A30, 2, mig=False),))
    for batch in (TWO, TWO.cost_free(), mixed_batch(Random(3), 5, SMALL), whole):
        write(batch, tmp_path / "batch.json")
        assert read(Batch, tmp_path / "batch.json") == batch
    text = (tmp_path / "batch.json").read_text(encoding="utf-8")
    assert '"gpu": "A30-24GB without MIG"' in text
    assert "initial" not in text


def test_a_table_with_a_column_for_the_gpu_has_a_pool_of_each_kind(tmp_path):
    table = "task,gpu,t1_s,t7_s,memory_gb\na,A30,4,,2\na,A100,3,1,2\nb,A100,,2,\n"
    (tmp_path / "b.csv").write_text(table, encoding="utf-8")
    batch = read(Batch, tmp_path / "b.csv")
    assert batch.tasks == (Task("a", {"A30": {1: 4.0}, "A100": {1: 3.0, 7: 1.0}}, 2.0), Task("b", {"A100": {7: 2.0}}))
    assert batch.pools == (Pool(A30, 1), Pool(A100, 1))
    only = read(Batch, tmp_path / "b.csv", gpu="A100")
    assert only == Batch((Task("a", {1: 3.0, 7: 1.0}, 2.0), Task("b", {7: 2.0})), A100)
    # Other rows may have sizes that the only kind lacks.
    assert read(Batch, tmp_path / "b.csv", gpu="A30") == Batch((Task("a", {1: 4.0}, 2.0),), A30)


@pytest.mark.parametrize("gpu", [None, "A100"])
def test_a_table_with_an_unknown_kind_tells_its_other_problems_too(tmp_path, gpu):
    (tmp_path / "b.csv").write_text("task,gpu,t1_s,memory_gb\na,A31,4,2\nb,A100,x,-2\n", encoding="utf-8")
    assert refused(read, Batch, tmp_path / "b.csv", gpu=gpu) == ["line 2, gpu", "line 3, memory_gb", "line 3, t1_s"]


def test_a_run_on_a_kind_without_a_time_is_a_violation():
    wrong = Schedule((Run("b", 0, "4g.20gb", 0, 1.0, 4.0), Run("a", 1, "4g.24gb", 0, 1.0, 2.0)))
    violations = validate(TWO, wrong).violations
    expected = [("size-not-profiled", "runs[0]"), ("size-not-profiled", "runs[1]")]
    assert [(str(each.code), each.path) for each in violations][:2] == expected
    assert "task 'b' has no time on A100-40GB, only on A30-24GB" in violations[0].message
    assert "only on 1, 2" in violations[1].message


@pytest.mark.parametrize("seed", range(40))
def test_exact_methods_agree_with_trying_everything(seed):
    rng = Random(seed)
    pools = SMALL if seed % 4 else (Pool(A30, 1), Pool(SLOW_A30, 1, mig=False))
    batch = mixed_batch(rng, rng.choice((2, 3)), pools, missing=0.2)
    if batch.unplaceable():
        return
    best = solve(batch, "brute-force", time_limit=60)
    assert best.status.value == "optimal"
    for method in ("cp", "milp-cbc") if seed % 5 == 0 else ("cp",):
        found = solve(batch, method, time_limit=60, workers=1)
        assert (found.status.value, found.makespan) == ("optimal", pytest.approx(best.makespan)), method
    for method in SCHEDULERS:
        assert solve(batch, method, time_limit=5).makespan >= best.makespan - 1e-9, method
    for bound in bounds(batch):
        assert bound.value <= best.makespan + 1e-9, bound


@pytest.mark.parametrize("seed", range(10))
def test_the_textbook_model_agrees_where_gpus_are_too_large_to_try_everything(seed):
    rng = Random(seed)
    batch = mixed_batch(rng, rng.choice((2, 3)), (Pool(A100, 1), Pool(A30, 1, mig=seed % 3 > 0)))
    assert solve(batch, workers=1).makespan == pytest.approx(optimum(batch, copies=2))


def test_a_schedule_on_any_gpu_of_a_kind_is_a_start():
    batch = Batch((Task("b", {"A30": {4: 3.0}}),), pools=(Pool(A100, 1), Pool(A30, 2)))
    for gpu in (1, 2):
        plan = Schedule((Run("b", gpu, "4g.24gb", 0, 0.13, 3.13),))
        assert [solve(batch, method, initial=plan).makespan for method in ("cp", "lpt")] == [3.13, 3.13]


def test_a_kind_by_two_names_changes_nothing():
    """Of two pools that are the same but for the name, the optimum and the bounds are those of one pool."""
    twin = add_gpu(dataclasses.replace(A30, name="twin-A30", aliases=()))
    for seed in range(6):
        rng = Random(seed)
        times = [{size: round(rng.uniform(4, 20) / size**0.8, 2) for size in A30.sizes} for _ in range(7)]
        plain = Batch(tuple(Task(f"t{at}", own) for at, own in enumerate(times)), A30, 2)
        both = (Task(f"t{at}", {"A30": own, "twin-A30": own}) for at, own in enumerate(times))
        mixed = Batch(tuple(both), pools=(Pool(A30, 1), Pool(twin, 1)))
        assert solve(mixed, workers=1).makespan == pytest.approx(solve(plain, workers=1).makespan)
        for one, two in zip(bounds(plain), bounds(mixed), strict=True):
            assert (one.name, two.value) == (two.name, pytest.approx(one.value, rel=2e-3))


@pytest.mark.parametrize("seeds", [range(100), pytest.param(range(100, 1000), marks=pytest.mark.deep)])
def test_bounds_are_never_above_a_plan_of_a_thousand_batches(seeds):
    kinds = [Pool(A30, 1), Pool(A30, 2), Pool(A100, 1), Pool(A100, 1, mig=False), Pool(H100, 2), Pool(SLOW_A30, 1)]
    for seed in seeds:
        rng = Random(seed)
        pools = {pool.gpu: pool for pool in rng.sample(kinds, 3)}
        if len(pools) < 2 or not any(pool.mig for pool in pools.values()):
            pools = {A30: Pool(A30, 1), A100: Pool(A100, 1)}
        batch = mixed_batch(rng, rng.randint(1, 8), list(pools.values()))
        if batch.unplaceable():
            continue
        found = bounds(batch)
        for method in ("lpt", "far-unrefined"):
            result = solve(batch, method)  # the validator has looked at it
            for bound in found:
                assert 0 < bound.value <= result.makespan + 1e-9, (seed, method, bound)


def test_a_dozen_tasks_on_an_a100_and_an_a30_are_proven():
    for seed in range(3):
        batch = mixed_batch(Random(seed), 12, (Pool(A100, 1), Pool(A30, 1)), live=False)
        assert solve(batch, time_limit=300).status.value == "optimal"


def test_a_proof_holds_on_several_kinds():
    batch = mixed_batch(Random(5), 4, SMALL)
    schedule = solve(batch).schedule
    certificate = prove(batch, schedule, "milp-cbc", time_limit=60)
    assert certificate.claim is Claim.PROVED
    assert check(batch, schedule, certificate).holds
    assert len(certificate.slice_load.weights) == 8
    other = batch.replace(pools=(Pool(A30, 2), Pool(SLOW_A30, 1)))
    assert not check(other, schedule, certificate).holds


def test_an_explanation_offers_more_gpus_of_a_kind():
    batch = Batch(
        (Task("a", {"A30": {4: 5.0}}), Task("b", {"A30": {4: 5.0}}), Task("c", {"A100": {7: 3.0}})),
        pools=(Pool(A30, 1), Pool(A100, 1, mig=False)),
    )
    found = explain(batch, 6.0)
    assert found.verdict.value == "impossible"
    assert ("pools[0].count", "2 x A30-24GB") in [(remedy.path, remedy.text) for remedy in found.remedies]


def test_streams_are_for_one_kind():
    refused(plan_stream, [TWO], match="a stream is planned on one")
