"""``lpt`` and ``list``, and what they and others stand on: tasks put on placements one after the other."""

from __future__ import annotations

import pytest
import tiny
from hypothesis import given
from hypothesis import strategies as st
from strategies import any_gpu, batches, places, realistic_batches, tiny_batches

from mig_opt.batch.batch import Batch, LiveInstance, Task
from mig_opt.batch.bounds import lower_bounds
from mig_opt.batch.schedule import Schedule
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.heuristics.batch.list_schedule import ScheduleBuilder, list_scheduling, longest_first
from mig_opt.method.control import Control
from mig_opt.models.batch.brute_force import brute_force
from mig_opt.validation import validate

A30, A100 = get_gpu("A30"), get_gpu("A100")
EPS = 2e-9


def run(batch: Batch, *, longest: bool = True) -> Schedule:
    control = Control[Schedule]()
    (longest_first if longest else list_scheduling)(batch, control)
    assert control.plan is not None
    return control.plan


def runs_of(schedule: Schedule) -> dict[str, tuple[str, int, float, float]]:
    return {entry.task: (entry.profile[:2], entry.start, entry.begin, entry.end) for entry in schedule.runs}


# By hand


def test_longest_first_on_the_tiny_instance() -> None:
    # left has least work on a slice (5 < 6). left and right are created until 0.11 and 0.22; right is destroyed
    # 4.22-4.32, left 5.11-5.21, then 4g 5.21-5.34.
    assert runs_of(run(tiny.BATCH)) == {
        "left": ("1g", 0, 0.11, 5.11),
        "right": ("1g", 1, 0.22, 4.22),
        "big": ("4g", 0, 5.34, 7.34),
    }


def test_the_tiny_instance_in_its_order() -> None:
    # big 0.13-2.13, destroyed until 2.23; then a slice for left until 2.34 and one for right until 2.45.
    assert runs_of(run(tiny.BATCH, longest=False)) == {
        "big": ("4g", 0, 0.13, 2.13),
        "left": ("1g", 0, 2.34, 7.34),
        "right": ("1g", 1, 2.45, 6.45),
    }


def test_longest_first_without_operation_costs() -> None:
    # 5 and 4 first; 3 follows 4 until 7, 3 follows 5 until 8, and 3 follows the first of these until 10.
    tasks = tuple(Task(f"t{index}", {2: seconds}) for index, seconds in enumerate((3.0, 5.0, 3.0, 4.0, 3.0)))
    batch = Batch(tasks, A30).cost_free()
    assert run(batch).makespan == 10.0
    assert {task: (start, begin) for task, (_, start, begin, _) in runs_of(run(batch)).items()} == {
        "t1": (0, 0.0),
        "t3": (2, 0.0),
        "t0": (2, 4.0),
        "t2": (0, 5.0),
        "t4": (2, 7.0),
    }
    # In the order of the batch: 3 and 5, 3 after 3 until 6, 4 after 5 until 9, 3 after 6 until 9. Longest first is
    # mostly better, but not always.
    assert run(batch, longest=False).makespan == 9.0


def test_all_gpus_count_and_live_instances_too() -> None:
    batch = Batch(tuple(Task(name, {4: 3.0}) for name in "abc"), A30, 2, initial=(LiveInstance(1, "4g.24gb", 0, 0.05),))
    assert sorted((entry.gpu, entry.begin) for entry in run(batch).runs) == [(0, 0.13), (1, 0.05), (1, 3.05)]


def test_double_memory_where_it_is_needed() -> None:
    # 2g has the memory too, and less work: 1g.10gb takes as much room.
    batch = Batch((Task("a", {1: 8.0, 2: 6.0}, memory_gb=8), Task("b", {1: 8.0, 2: 8.0}, memory_gb=8)), A100)
    assert {entry.task: entry.profile for entry in run(batch).runs} == {"a": "2g.10gb", "b": "1g.10gb"}


# Any batches


@pytest.mark.deep
@given(st.booleans(), st.one_of(batches(any_gpu, max_tasks=12, max_gpus=3), realistic_batches(any_gpu, max_gpus=3)))
def test_schedules_are_valid_and_not_below_the_bounds(longest: bool, batch: Batch) -> None:
    for variant in (batch, batch.cost_free()):
        schedule = run(variant, longest=longest)
        assert validate(variant, schedule).violations == ()
        for bound in lower_bounds(variant):
            assert bound.value <= schedule.makespan + EPS


@pytest.mark.deep
@given(st.booleans(), tiny_batches)
def test_never_better_than_the_optimum(longest: bool, batch: Batch) -> None:
    control = Control[Schedule]()
    brute_force(batch, control)
    assert control.objective is not None
    assert run(batch, longest=longest).makespan >= control.objective - EPS


@pytest.mark.deep
@given(st.booleans(), batches(max_tasks=10, max_gpus=3))
def test_each_task_is_put_where_it_begins_first(longest: bool, batch: Batch) -> None:
    """The same by looking at every place each time."""
    where = {entry.task: entry for entry in run(batch, longest=longest).runs}
    tasks = list(batch.tasks)
    if longest:
        tasks.sort(key=lambda t: -t.times[batch.gpu.profile(where[t.name].profile).compute_slices])
    builder = ScheduleBuilder(batch)
    live = {(entry.gpu, batch.gpu.placement(entry.profile, entry.start).shape) for entry in batch.initial}
    for task in tasks:
        got = where[task.name]
        chosen = batch.gpu.placement(got.profile, got.start)
        shape = (chosen.profile.memory_slices, chosen.profile.compute_slices)
        same = [
            (gpu, place)
            for gpu in range(batch.gpus)
            for place in batch.placements()
            if (place.profile.memory_slices, place.profile.compute_slices) == shape
        ]
        least = min(builder.begin(gpu, place) for gpu, place in same)
        assert builder.begin(got.gpu, chosen) == least
        assert chosen in batch.placements() or (got.gpu, chosen.shape) in live
        builder.put(task, got.gpu, chosen)


@pytest.mark.deep
@given(batches(max_tasks=10, max_gpus=2))
def test_each_task_has_the_size_of_least_work(batch: Batch) -> None:
    if batch.profile_set == "base":
        for task, entry in ((batch.tasks[int(entry.task[1:])], entry) for entry in run(batch).runs):
            size = batch.gpu.profile(entry.profile).compute_slices
            assert size * task.times[size] == min(p.profile.compute_slices * s for p, s in batch.options(task))


# ScheduleBuilder


@pytest.mark.deep
@given(st.data())
def test_estimates_are_exact_where_nobody_waits_for_the_driver(data: st.DataObject) -> None:
    batch = data.draw(batches(any_gpu, max_tasks=10, max_gpus=2)).replace(parallel_operations=True)
    builder = ScheduleBuilder(batch)
    ends = {
        task.name: builder.put(task, gpu, place)
        for task, (gpu, place) in zip(batch.tasks, data.draw(places(batch)), strict=True)
    }
    schedule = builder.schedule()
    assert validate(batch, schedule).violations == ()
    assert {entry.task: entry.end for entry in schedule.runs} == pytest.approx(ends, abs=1e-8)
    alone = batch.replace(parallel_operations=False)
    assert validate(alone, rerun(alone, schedule)).violations == ()


def rerun(batch: Batch, schedule: Schedule) -> Schedule:
    """Put the tasks where they are in a schedule, in the order of the batch."""
    builder = ScheduleBuilder(batch)
    where = {entry.task: entry for entry in schedule.runs}
    for task in batch.tasks:
        builder.put(task, where[task.name].gpu, batch.gpu.placement(where[task.name].profile, where[task.name].start))
    return builder.schedule()


@pytest.mark.deep
@given(st.data())
def test_what_is_put_somewhere_makes_nothing_begin_earlier(data: st.DataObject) -> None:
    batch = data.draw(batches(any_gpu, max_tasks=10, max_gpus=2))
    builder = ScheduleBuilder(batch)
    everywhere = [(gpu, place) for gpu in range(batch.gpus) for place in batch.placements()]
    before = [builder.begin(*place) for place in everywhere]
    for task, (gpu, place) in zip(batch.tasks, data.draw(places(batch)), strict=True):
        builder.put(task, gpu, place)
        after = [builder.begin(*other) for other in everywhere]
        assert all(late >= early - EPS for early, late in zip(before, after, strict=True))
        before = after
