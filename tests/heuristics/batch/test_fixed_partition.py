"""``fixpart`` and ``fixpart-best``: by hand, first come first served, and the best of all partitions."""

import itertools

import pytest
from controlled import controlled
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import A30, A100, any_gpu, batches, realistic_batches

from mig_opt import Batch, LiveInstance, Placement, Schedule, Task, get_gpu, solve
from mig_opt.api.solve import partition_problems
from mig_opt.batch.bounds import lower_bounds
from mig_opt.gpu.partitions import find_partition
from mig_opt.heuristics.batch.fixed_partition import fixpart, mixed_partitions, suitable_partitions
from mig_opt.validation import validate

EPS = 2e-9

TIMES = {"a": {1: 5.0, 2: 3.0}, "b": {1: 4.0, 2: 2.0}, "c": {1: 2.0, 2: 1.0}, "d": {2: 2.0}}
FOUR = Batch(tuple(Task(name, times) for name, times in TIMES.items()), A30)


def run(batch: Batch, partition: str | tuple[Placement, ...]) -> Schedule:
    return controlled(fixpart, batch, find_partition(batch.gpu, partition, batch.profile_set)).plan


def test_tasks_without_an_instance_are_named_with_the_partitions_that_have_one() -> None:
    (problem,) = partition_problems("fixpart", batch=FOUR, partition="1+1+1+1")
    assert str(problem) == "partition: 1+1+1+1 has no instance for task 'd'; choose one of 2+2, 2+1+1, 1+1+2"
    (problem,) = partition_problems("fixpart", batch=FOUR, partition="4")
    assert "no instance for tasks 'a', 'b', 'c' and 1 more;" in problem.message


def test_memory_counts() -> None:
    batch = Batch((Task("a", {1: 1.0, 2: 1.0}, memory_gb=7), Task("b", {1: 1.0})), A30)
    (problem,) = partition_problems("fixpart", batch=batch, partition="1+1+1+1")
    assert "no instance for task 'a'; choose one of 2+1+1, 1+1+2" in problem.message
    # On an A100 a partition may have 1g.10gb for it.
    assert next(partition_problems("fixpart", batch=batch.replace(gpu=A100), partition="4+1g.10gb+1"), None) is None


@pytest.mark.parametrize(("sizes", "gpus", "partitions"), [([7, 1], 2, 2), ([7, 4, 3, 2], 2, 0), ([7, 4, 3, 2], 4, 3)])
def test_gpus_get_different_partitions_if_none_is_for_all_tasks(sizes: list[int], gpus: int, partitions: int) -> None:
    batch = Batch(tuple(Task(str(size), {size: 3.0}) for size in sizes), A100, gpus)
    assert list(suitable_partitions(batch)) == []
    assert {len(chosen) for chosen in mixed_partitions(batch)} == ({partitions} if partitions else set())
    schedule = solve(batch, "fixpart-best").schedule
    assert (schedule is not None) == (partitions > 0)
    assert schedule is None or not any(operation.kind == "destroy" for operation in schedule.operations or ())


@pytest.mark.deep
@given(st.data(), st.one_of(batches(any_gpu, max_tasks=12, max_gpus=3), realistic_batches(any_gpu, max_gpus=3)))
def test_first_come_first_served(data: st.DataObject, batch: Batch) -> None:
    partitions = list(suitable_partitions(batch))
    if not partitions:
        return
    partition = data.draw(st.sampled_from(partitions))
    schedule = run(batch, partition)
    assert validate(batch, schedule).violations == ()
    for bound in lower_bounds(batch):
        assert bound.value <= schedule.makespan + EPS
    # The definition, task by task, from when the instances are there.
    live = {(entry.gpu, batch.gpu.placement(entry.profile, entry.start).shape): entry.free for entry in batch.initial}
    made = {(op.gpu, op.start): op.end for op in schedule.operations or () if op.kind == "create"}
    free = {
        (gpu, placement): live.get((gpu, placement.shape), made.get((gpu, placement.start)))
        for gpu in range(batch.gpus)
        for placement in partition
    }
    where = {entry.task: entry for entry in schedule.runs}
    for task in batch.tasks:
        able = {place: second for place, second in free.items() if task.time_on(place[1].profile) is not None}
        first = min(able, key=lambda place: able[place])
        got = where[task.name]
        assert got.begin == pytest.approx(able[first], abs=EPS)
        place = next(entry for entry in able if (entry[0], entry[1].start) == (got.gpu, got.start))
        free[place] = got.end


def test_a_partition_counts_that_no_short_schedule_has() -> None:
    """The whole GPU, created after what is live is gone, is later than 4g beside it, but the best fixed partition."""
    batch = Batch((Task("t0", {1: 1.0, 2: 1.0, 3: 1.0, 4: 0.01, 7: 0.01}),), get_gpu("A100"))
    batch = batch.replace(initial=(LiveInstance(0, "3g.20gb", 0, 0.0),))
    assert solve(batch, "fixpart-best").makespan == solve(batch, "fixpart", partition="7").makespan == 0.46


@pytest.mark.deep
@settings(max_examples=60)
@given(st.one_of(batches(max_tasks=8, max_gpus=3), realistic_batches(max_tasks=12)))
def test_fixpart_best_is_the_best_of_all(batch: Batch) -> None:
    makespans = [run(batch, partition).makespan for partition in suitable_partitions(batch)]
    result = solve(batch, "fixpart-best")
    if makespans:
        assert result.makespan == min(makespans)
        return
    # Else GPUs have different partitions, whenever some choice of them has an instance for every task.
    kinds = {frozenset(place.profile for place in partition) for partition in batch.gpu.maximal_partitions("all")}
    possible = any(
        all(any(task.time_on(profile) is not None for profile in there) for task in batch.tasks)
        for there in (frozenset().union(*each) for each in itertools.combinations(kinds, min(batch.gpus, len(kinds))))
    )
    assert (result.schedule is not None) == possible
    assert result.schedule is None or validate(batch, result.schedule).violations == ()
