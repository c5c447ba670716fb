"""Times that follow from decisions: by hand, always valid, and never later than they have to be."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest
import tiny
from hypothesis import given
from hypothesis import strategies as st
from strategies import Decisions, batches, decisions, places, tiny_batches

from mig_opt.batch.batch import Batch, LiveInstance, Task
from mig_opt.batch.bounds import best_lower_bound
from mig_opt.batch.schedule import Operation, Run, Schedule
from mig_opt.batch.timing import PlannedInstance, nested_schedule, sequenced_schedule, timed_schedule
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.gpu.model import OperationCosts, Placement
from mig_opt.method.control import Control
from mig_opt.models.batch.brute_force import brute_force
from mig_opt.validation import validate

A30, A100 = get_gpu("A30"), get_gpu("A100")
EPS = 2e-9
"""Times are rounded to nanoseconds."""


def instances(*entries: tuple[str, int, str], gpu: int = 0) -> list[PlannedInstance]:
    """Instances of the tiny batch, each from its profile, start and the names of its tasks."""
    task = {task.name: task for task in tiny.BATCH.tasks}
    return [
        PlannedInstance(gpu, A30.placement(profile, start), [task[name] for name in names.split()])
        for profile, start, names in entries
    ]


# By hand


def test_the_best_decisions_give_the_best_schedule() -> None:
    planned = instances(("4g.24gb", 0, "big"), ("1g.6gb", 2, "right"), ("2g.12gb", 0, "left"))
    order = [("create", 0), ("destroy", 0), ("create", 1), ("create", 2)]
    assert timed_schedule(tiny.BATCH, planned, order) == tiny.BEST


def test_a_live_variant_serves_like_the_plain_profile() -> None:
    batch = Batch((Task("a", {2: 2.0}),), A30, initial=(LiveInstance(0, "2g.12gb+me", 2, 0.5),))
    schedule = nested_schedule(batch, [(0, A30.placement("2g.12gb", 2))])
    assert schedule.runs == (Run("a", 0, "2g.12gb+me", 2, 0.5, 2.5),)
    assert schedule.operations == ()


def test_sums_of_decimals_read_as_decimals() -> None:
    tasks = tuple(Task(f"t{index}", {4: 0.1}) for index in range(50))
    batch = Batch(tasks, A30, operations=OperationCosts.zero(A30))
    schedule = nested_schedule(batch, [(0, A30.placement("4g.24gb", 0))] * 50)
    assert [run.end for run in schedule.runs] == [(index + 1) / 10 for index in range(50)]


def test_the_driver_first_serves_what_has_the_most_behind_it(tiny_batch: Batch, tiny_best: Schedule) -> None:
    at = [A30.placement("4g.24gb", 0), A30.placement("2g.12gb", 0), A30.placement("1g.6gb", 2)]
    assert nested_schedule(tiny_batch, [(0, placement) for placement in at]) == tiny_best


def test_a_short_instance_comes_first_if_long_ones_wait_for_its_place() -> None:
    # Behind one (1 s) waits two (5 s), behind three (3 s) nothing. 2g@0 0-0.12, one until 1.12, destroyed 1.22, 1g@0
    # 1.33, two until 6.33; 2g@2 is created second and done at 3.24. The other way round two would end at 6.45.
    batch = Batch((Task("one", {2: 1.0}), Task("two", {1: 5.0}), Task("three", {2: 3.0})), A30)
    at = [(0, A30.placement("2g.12gb", 0)), (0, A30.placement("1g.6gb", 0)), (0, A30.placement("2g.12gb", 2))]
    schedule = nested_schedule(batch, at)
    assert [(run.task, run.end) for run in schedule.runs] == [("one", 1.12), ("three", 3.24), ("two", 6.33)]


# Any decisions


@given(decisions())
def test_any_decisions_give_a_valid_schedule(case: Decisions) -> None:
    schedule = timed_schedule(case.batch, case.instances, case.operations)
    assert validate(case.batch, schedule).violations == ()
    assert schedule.makespan >= best_lower_bound(case.batch) - EPS
    assert list(schedule.runs) == sorted(schedule.runs, key=lambda run: (run.begin, run.gpu, run.start))
    assert [o.begin for o in schedule.operations or ()] == sorted(o.begin for o in schedule.operations or ())


@given(decisions())
def test_nothing_could_begin_earlier(case: Decisions) -> None:
    """Every begin is 0, or the end of something that has to be over: so no such schedule ends earlier."""
    batch = case.batch
    schedule = timed_schedule(batch, case.instances, case.operations)
    ends: dict[int, set[float]] = defaultdict(lambda: {0.0})
    for entry in (*schedule.runs, *(schedule.operations or ())):
        ends[entry.gpu].add(entry.end)
    for live in batch.initial:
        ends[live.gpu].add(live.free)
    for operation in schedule.operations or ():
        assert any(abs(operation.begin - end) <= EPS for end in ends[operation.gpu])
        if batch.parallel_operations and operation.kind == "create":
            own = batch.gpu.placement(operation.profile, operation.start)
            before = {
                other.end
                for other in schedule.operations or ()
                if other.kind == "destroy"
                and other.gpu == operation.gpu
                and batch.gpu.placement(other.profile, other.start).conflicts(own)
            }
            assert any(abs(operation.begin - end) <= EPS for end in before | {0.0})
    spots = defaultdict(list)
    for run in schedule.runs:
        spots[run.gpu, run.profile, run.start].append(run)
    for (gpu, profile, start), runs in spots.items():
        ready = {live.free for live in batch.initial if (live.gpu, live.profile, live.start) == (gpu, profile, start)}
        ready |= {
            operation.end
            for operation in schedule.operations or ()
            if (operation.gpu, operation.profile, operation.start) == (gpu, profile, start)
            and operation.kind == "create"
        }
        before = ready | {run.end for run in runs}
        assert all(any(abs(run.begin - end) <= EPS for end in before) for run in runs)


# Nested schedules


def nested(data: st.DataObject, **options: object) -> tuple[Batch, list[tuple[int, Placement]], Schedule]:
    batch = data.draw(batches(max_gpus=3, **options))
    chosen = data.draw(places(batch))
    return batch, chosen, nested_schedule(batch, chosen)


@given(st.data())
def test_nested_schedules_are_valid_and_keep_the_assignment(data: st.DataObject) -> None:
    batch, chosen, schedule = nested(data)
    assert validate(batch, schedule).violations == ()
    assert schedule.makespan >= best_lower_bound(batch) - EPS
    where = {run.task: (run.gpu, batch.gpu.placement(run.profile, run.start).shape) for run in schedule.runs}
    assert [where[task.name] for task in batch.tasks] == [(gpu, placement.shape) for gpu, placement in chosen]


@given(st.data())
def test_nested_schedules_create_nothing_twice_and_destroy_nothing_for_nothing(data: st.DataObject) -> None:
    batch, _, schedule = nested(data)
    operations = schedule.operations or ()
    created = Counter((o.gpu, batch.gpu.placement(o.profile, o.start).shape) for o in operations if o.kind == "create")
    assert all(count == 1 for count in created.values())
    used = {(run.gpu, batch.gpu.placement(run.profile, run.start).shape) for run in schedule.runs}
    live = {(entry.gpu, batch.gpu.placement(entry.profile, entry.start).shape) for entry in batch.initial}
    assert set(created) == used - live
    assert useless_destructions(batch, schedule) == []


def useless_destructions(batch: Batch, schedule: Schedule) -> list[Operation]:
    def place(operation: Operation) -> Placement:
        return batch.gpu.placement(operation.profile, operation.start)

    operations = schedule.operations or ()
    return [
        one
        for index, one in enumerate(operations)
        if one.kind == "destroy"
        and not any(
            two.kind == "create" and two.gpu == one.gpu and place(two).conflicts(place(one))
            for two in operations[index + 1 :]
        )
    ]


@given(st.data())
def test_without_operation_costs_the_fullest_slice_decides(data: st.DataObject) -> None:
    """The reason why block models work: outer before inner instances leaves no slice idle before its end."""
    batch, chosen, schedule = nested(data, initial=False, zero_costs=True)
    load: dict[tuple[int, int], float] = defaultdict(float)
    for task, (gpu, placement) in zip(batch.tasks, chosen, strict=True):
        for position in placement.footprint:
            load[gpu, position] += task.times[placement.profile.compute_slices]
    assert schedule.makespan == pytest.approx(max(load.values()), abs=1e-8)


@given(st.data())
def test_operations_on_a_slice_come_on_top_of_its_load(data: st.DataObject) -> None:
    """Loads + creations + all destructions but the last, on every slice of a GPU that starts empty."""
    batch, chosen, schedule = nested(data, initial=False)
    used = set(chosen)
    for gpu in range(batch.gpus):
        for position in range(batch.gpu.memory_slices):
            covering = [at for at in used if at[0] == gpu and position in at[1].footprint]
            if not covering:
                continue
            destroy = [batch.operations.of("destroy", placement.profile) for _, placement in covering]
            least = sum(batch.operations.of("create", placement.profile) for _, placement in covering)
            least += sum(destroy) - max(destroy)
            least += sum(
                task.times[placement.profile.compute_slices]
                for task, (at, placement) in zip(batch.tasks, chosen, strict=True)
                if at == gpu and position in placement.footprint
            )
            assert schedule.makespan >= least - EPS * (len(batch.tasks) + 1)


@given(st.data(), tiny_batches)
def test_nested_schedules_never_beat_brute_force(data: st.DataObject, batch: Batch) -> None:
    control = Control[Schedule]()
    brute_force(batch, control)
    assert control.objective is not None
    assert nested_schedule(batch, data.draw(places(batch))).makespan >= control.objective - EPS


# Instances in a sequence


def test_an_operation_that_has_to_wait_does_not_hold_up_the_driver() -> None:
    # right runs until 4.23, and only then its slice is destroyed for big's 4g; left's 2g has gone at 3.22 already.
    planned = instances(("2g.12gb", 0, "left"), ("1g.6gb", 2, "right"), ("4g.24gb", 0, "big"))
    schedule = sequenced_schedule(tiny.BATCH, planned)
    assert [(o.kind, o.profile, o.begin) for o in schedule.operations or ()] == [
        ("create", "2g.12gb", 0.0),
        ("create", "1g.6gb", 0.12),
        ("destroy", "2g.12gb", 3.12),
        ("destroy", "1g.6gb", 4.23),
        ("create", "4g.24gb", 4.33),
    ]


def test_the_shapes_of_a_sequence_may_return() -> None:
    planned = instances(("1g.6gb", 0, "right"), ("4g.24gb", 0, "big"), ("1g.6gb", 0, "left"))
    # 0.11 + 4 + 0.1 + 0.13 + 2 + 0.1 + 0.11 + 5
    assert sequenced_schedule(tiny.BATCH, planned).makespan == 11.55


@given(decisions())
def test_any_sequence_has_a_schedule_that_is_valid(decided: Decisions) -> None:
    """Instances come and go in any order; what is destroyed without need stays."""
    batch = decided.batch
    schedule = sequenced_schedule(batch, decided.instances)
    assert validate(batch, schedule).violations == ()
    needed = sum(
        any(
            later.gpu == one.gpu and later.placement.conflicts(one.placement)
            for later in decided.instances[index + 1 :]
        )
        for index, one in enumerate(decided.instances)
    )
    kinds = Counter(operation.kind for operation in schedule.operations or ())
    assert kinds["destroy"] == needed
    assert kinds["create"] == sum(instance.free is None for instance in decided.instances)
