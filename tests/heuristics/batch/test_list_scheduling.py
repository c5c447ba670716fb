"""``lpt`` and ``list``, and what they and others stand on: tasks put on placements one after the other."""

from __future__ import annotations

import pytest
import tiny
from hypothesis import given
from hypothesis import strategies as st
from strategies import any_gpu, batches, places

from mig_opt.batch.batch import Batch
from mig_opt.batch.schedule import Schedule
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.heuristics.batch.list_schedule import ScheduleBuilder, list_scheduling, longest_first
from mig_opt.method.control import Control
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


def test_the_tiny_instance_in_its_order() -> None:
    # big 0.13-2.13, destroyed until 2.23; then a slice for left until 2.34 and one for right until 2.45.
    assert runs_of(run(tiny.BATCH, longest=False)) == {
        "big": ("4g", 0, 0.13, 2.13),
        "left": ("1g", 0, 2.34, 7.34),
        "right": ("1g", 1, 2.45, 6.45),
    }


# Any batches


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
