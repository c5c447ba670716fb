"""Random schedules: valid ones are, and what is changed in them is found."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from small_schedule import codes, exclude

from mig_opt import Batch, LiveInstance, Task, get_gpu
from mig_opt.batch.schedule import OperationKind, Schedule
from mig_opt.batch.timing import PlannedInstance, timed_schedule
from mig_opt.validation import validate


@st.composite
def valid_schedules(draw: st.DrawFn, *, parallel: bool | None = None) -> tuple[Batch, Schedule]:
    """Random decisions, timed: instances are used one after the other, each makes room for the next."""
    gpu = get_gpu(draw(st.sampled_from(["A30", "A100", "RTX-PRO-6000-96GB"])))
    gpus = draw(st.integers(1, 2))
    seconds = st.integers(1, 400).map(lambda n: n / 100)
    count = draw(st.integers(1, 9))
    tasks = tuple(Task(f"t{i}", {size: draw(seconds) for size in gpu.sizes}) for i in range(count))
    parallel = draw(st.booleans()) if parallel is None else parallel
    # `timed_schedule` makes room for footprints; that a media engine is free follows from the driver's order only.
    placements = st.sampled_from(gpu.placements("double-memory" if parallel else "all"))
    initial: list[LiveInstance] = []
    instances: list[PlannedInstance] = []
    live: list[int] = []
    if draw(st.booleans()):
        placement = draw(placements)
        free = draw(st.sampled_from([0.0, 0.7]))
        initial.append(LiveInstance(0, placement.profile.name, placement.start, free))
        instances.append(PlannedInstance(0, placement, free=free))
        live.append(0)
    operations: list[tuple[OperationKind, int]] = []
    for task in tasks:
        wanted = draw(st.tuples(st.integers(0, gpus - 1), placements))
        same = [i for i in live if (instances[i].gpu, instances[i].placement) == wanted]
        if not same:
            for i in list(live):
                if instances[i].gpu == wanted[0] and exclude(instances[i].placement, wanted[1]):
                    operations.append(("destroy", i))
                    live.remove(i)
            same = [len(instances)]
            live += same
            instances.append(PlannedInstance(*wanted))
            operations.append(("create", same[0]))
        instances[same[0]].tasks.append(task)
    batch = Batch(tasks, gpu, gpus, initial=tuple(initial), parallel_operations=parallel)
    return batch, timed_schedule(batch, instances, operations)


@given(valid_schedules())
def test_timed_schedules_are_valid_and_stay_so_without_their_operations(case: tuple[Batch, Schedule]) -> None:
    batch, schedule = case
    assert validate(batch, schedule).violations == ()
    stripped = validate(batch, Schedule(schedule.runs))
    assert stripped.violations == ()
    assert stripped.makespan == schedule.makespan
    again = validate(batch, stripped.schedule)
    assert again.violations == ()
    assert again.schedule is stripped.schedule
    needed, given_operations = len(stripped.schedule.operations or ()), len(schedule.operations or ())
    assert needed <= given_operations


@given(valid_schedules(), st.randoms(use_true_random=False))
def test_the_order_of_entries_does_not_matter(case: tuple[Batch, Schedule], random: Random) -> None:
    batch, schedule = case
    runs, operations = list(schedule.runs), list(schedule.operations or ())
    random.shuffle(runs)
    random.shuffle(operations)
    assert validate(batch, Schedule(tuple(runs), tuple(operations))).valid
    assert validate(batch, Schedule(tuple(runs))).valid


Mutation = Callable[[Batch, Schedule, st.DataObject], Schedule]


def pick(data: st.DataObject, what: Iterable[int]) -> int:
    numbers = list(what)
    assume(numbers)
    return data.draw(st.sampled_from(numbers))


def change_run(schedule: Schedule, index: int, **changes: object) -> Schedule:
    return schedule.replace(runs=(replace(r, **changes) if i == index else r for i, r in enumerate(schedule.runs)))


def shift_run(batch: Batch, schedule: Schedule, data: st.DataObject) -> Schedule:
    """Begin a task that waits for its instance when the creation of that instance begins."""
    created = {(o.gpu, o.profile, o.start, o.end): o.begin for o in schedule.operations or () if o.kind == "create"}
    first = {i: k for i, r in enumerate(schedule.runs) if (k := (r.gpu, r.profile, r.start, r.begin)) in created}
    index = pick(data, first)
    run, begin = schedule.runs[index], created[first[index]]
    return change_run(schedule, index, begin=begin, end=begin + run.end - run.begin)


def drop(kind: OperationKind, batch: Batch, schedule: Schedule, data: st.DataObject) -> Schedule:
    operations = list(schedule.operations or ())
    del operations[pick(data, [i for i, o in enumerate(operations) if o.kind == kind])]
    return schedule.replace(operations=operations)


def swap_placement(batch: Batch, schedule: Schedule, data: st.DataObject) -> Schedule:
    used = {(o.gpu, o.profile, o.start) for o in (*(schedule.operations or ()), *batch.initial)}
    index = pick(data, range(len(schedule.runs)))
    gpu = schedule.runs[index].gpu
    free = [p for p in batch.gpu.placements("all") if (gpu, p.profile.name, p.start) not in used]
    placement = free[pick(data, range(len(free)))]
    return change_run(schedule, index, profile=placement.profile.name, start=placement.start)


def overlap_operations(batch: Batch, schedule: Schedule, data: st.DataObject) -> Schedule:
    operations = list(schedule.operations or ())
    pairs = [i for i, o in enumerate(operations) if any(p.gpu == o.gpu for p in operations[:i])]
    index = pick(data, pairs)
    moved = operations[index]
    begin = next(o.begin for o in reversed(operations[:index]) if o.gpu == moved.gpu)
    operations[index] = replace(moved, begin=begin, end=begin + moved.end - moved.begin)
    return schedule.replace(operations=operations)


MUTATIONS: dict[str, tuple[Mutation, set[str]]] = {
    "shift run": (shift_run, {"run-outside-instance"}),
    "drop creation": (partial(drop, "create"), {"run-without-instance", "run-outside-instance"}),
    "drop destruction": (partial(drop, "destroy"), {"instances-overlap", "too-many-instances", "create-twice"}),
    "swap placement": (swap_placement, {"run-without-instance"}),
    "overlap operations": (overlap_operations, {"operations-overlap"}),
}


@pytest.mark.parametrize(("mutate", "caught"), MUTATIONS.values(), ids=MUTATIONS)
@given(data=st.data())
@settings(max_examples=40)
def test_mutations_are_caught_under_their_own_code(mutate: Mutation, caught: set[str], data: st.DataObject) -> None:
    batch, schedule = data.draw(valid_schedules(parallel=False))
    result = validate(batch, mutate(batch, schedule, data))
    assert codes(result) & caught
