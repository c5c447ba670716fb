"""``list``, ``lpt``, ``search`` and ``miso-opt``: by hand, against every choice, and never worse than the start."""

import itertools
import math
from collections.abc import Sequence

import pytest
from controlled import controlled
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import A30, A100, any_gpu, batches, places

from mig_opt import Batch, LiveInstance, Schedule, Task, generate_batch, load, solve
from mig_opt.batch.loads import local_search as load_search
from mig_opt.gpu.model import ProfileSet
from mig_opt.heuristics.batch import local_search
from mig_opt.heuristics.batch.list_schedule import ScheduleBuilder, list_scheduling, longest_first
from mig_opt.heuristics.batch.miso import PartitionChoices, miso_opt, speedups_of
from mig_opt.instances.batch import ScalingName
from mig_opt.method.control import Control
from mig_opt.method.options import RunOptions
from mig_opt.validation import validate


def run(batch: Batch, *, longest: bool = True) -> Schedule:
    return controlled(longest_first if longest else list_scheduling, batch).plan


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


def makespan(batch: Batch, method: str, **options: object) -> float:
    result = solve(batch, method, **options)
    assert validate(batch, result.schedule).valid
    assert result.lower_bound <= result.schedule.makespan * (1 + 1e-12)
    return result.schedule.makespan


@pytest.mark.deep
@given(batches())
@settings(max_examples=25, deadline=None)
def test_it_is_valid_and_never_worse_than_far(batch: Batch) -> None:
    assert makespan(batch, "search", time_limit=0.2, workers=1) <= makespan(batch, "far") * (1 + 1e-12)


@pytest.mark.deep
@pytest.mark.parametrize("scaling", ["PoorScaling", "MixedScaling", "GoodScaling"])
def test_it_is_close_to_the_optimum(scaling: ScalingName) -> None:
    for seed in range(3):
        batch = generate_batch(9, scaling=scaling, seed=seed)
        optimum = makespan(batch, "cp", workers=1)
        found = makespan(batch, "search", workers=1, deterministic=True, time_limit=0.5)
        # The operations need not wait in the best order.
        assert optimum * (1 - 1e-9) <= found <= optimum * 1.005


def test_too_many_choices_keep_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_search, "_MAX_CHOICES", 3)
    monkeypatch.setattr(load_search, "LoadSearch", None)
    batch = load("rodinia-a30")
    assert makespan(batch, "search") == makespan(batch, "far")


def test_a_run_that_is_over_does_not_begin() -> None:
    batch = generate_batch(10, seed=1)
    control = Control[Schedule](RunOptions(time_limit=1e-9))
    schedule = solve(batch, "far").schedule
    control.report_plan(schedule)
    local_search.search(batch, control)
    assert control.plan == schedule


SCALES, FLAT, LAST = {1: 6.0, 2: 2.0, 4: 2.0}, {1: 4.0, 2: 4.0, 4: 4.0}, {1: 9.0, 2: 3.0, 4: 1.0}


def by_miso(batch: Batch) -> Schedule:
    return controlled(miso_opt, batch).plan


def runs_of(schedule: Schedule) -> dict[str, tuple[str, int, float]]:
    return {entry.task: (entry.profile[:2], entry.start, entry.begin) for entry in schedule.runs}


def test_partitions_follow_each_other() -> None:
    # Speedups of a are 1, 3, 3, those of b and c 1: 4 gives 3, 2+2 gives 3 + 1, 2+1+1 gives 3 + 1 + 1, and four slices
    # 4 with d. What is left then is d, with 1, 3 and 9.
    batch = Batch((Task("a", SCALES), Task("b", FLAT), Task("c", FLAT), Task("d", LAST)), A30)
    schedule = by_miso(batch)
    # Created until 0.12, 0.23, 0.34. The 2g is destroyed at 2.12, the slices at 4.23-4.33 and 4.34-4.44; 4g 4.44-4.57.
    expected = {"a": ("2g", 0, 0.12), "b": ("1g", 2, 0.23), "c": ("1g", 3, 0.34), "d": ("4g", 0, 4.57)}
    assert runs_of(schedule) == expected
    moments = (0.0, 0.12, 0.23, 2.12, 4.23, 4.34, 4.44)
    kinds = ("create", "create", "create", "destroy", "destroy", "destroy", "create")
    assert [(entry.kind, entry.begin) for entry in schedule.operations] == [*zip(kinds, moments, strict=True)]
    assert schedule.makespan == 5.57
    assert by_miso(batch.cost_free()).makespan == 5.0


def test_the_next_partition_is_for_the_gpu_that_is_free_first() -> None:
    tasks = tuple(Task(f"t{index}", {4: seconds}) for index, seconds in enumerate((3.0, 1.0, 1.0, 1.5)))
    schedule = by_miso(Batch(tasks, A30, gpus=2, initial=(LiveInstance(0, "4g.24gb", 0, 2.0),)))
    # GPU 0 is busy until 2: t0 on GPU 1 until 3.13, t1 and t2 on GPU 0 until 4, t3 on GPU 1.
    found = {entry.task: (entry.gpu, entry.begin) for entry in schedule.runs}
    assert found == {"t0": (1, 0.13), "t1": (0, 2.0), "t2": (0, 3.0), "t3": (1, 3.13)}


def test_a_task_that_fits_on_nothing_that_is_left_waits_for_the_next_partition() -> None:
    batch = Batch((Task("narrow", {1: 2.0}), Task("wide", {4: 3.0}), Task("other", {1: 2.0})), A30)
    # narrow alone on a slice of 2+1+1, the first partition with one, the rest of it idle; then wide; then other.
    schedule = by_miso(batch)
    assert runs_of(schedule) == {"narrow": ("1g", 2, 0.11), "wide": ("4g", 0, 2.34), "other": ("1g", 2, 5.55)}


@pytest.mark.parametrize(
    ("times", "memory", "expected"),
    [
        ({1: 6.0, 2: 2.0, 4: 1.5}, None, [4.0, 3.0, 1.0]),
        ({2: 3.0, 4: 2.0}, None, [3.0, 2.0, None]),  # as if it took 6 s on one slice
        ({1: 6.0, 2: 2.0, 4: 1.5}, 8.0, [4.0, 3.0, None]),  # measured there, but forbidden
        ({4: 2.0}, None, [4.0, None, None]),
        ({1: 1.0, 2: 2.0}, None, [None, 0.5, 1.0]),
    ],
)
def test_speedups(times: dict[int, float], memory: float | None, expected: list[float | None]) -> None:
    assert speedups_of(Task("a", times, memory), PartitionChoices(A30, "base").profiles) == expected


speedup = st.one_of(st.none(), st.integers(1, 12).map(lambda n: n / 4), st.floats(0.1, 10))


@given(st.data(), st.sampled_from(["base", "double-memory"]))
def test_the_sum_of_speedups_is_the_largest_of_all_choices(data: st.DataObject, profiles: ProfileSet) -> None:
    choices = PartitionChoices(A100, profiles)
    width = len(choices.profiles)
    rows = data.draw(st.lists(st.lists(speedup, min_size=width, max_size=width), min_size=1, max_size=4))
    column = {profile: at for at, profile in enumerate(choices.profiles)}

    def total(order: Sequence[int]) -> float:
        values = [row[at] for row, at in zip(rows, order, strict=False)]
        return -math.inf if None in values else sum(value or 0.0 for value in values)

    found = choices.best(rows)
    assert len(set(found)) == len(found) <= len(rows)
    assert any(set(found) <= set(partition) for partition in A100.maximal_partitions(profiles))
    multisets = {
        tuple(sorted(column[placement.profile] for placement in state))
        for state in A100.placed_states(profiles)
        if len(state) <= len(rows)
    }
    best = max(total(order) for state in multisets for order in set(itertools.permutations(state)))
    assert total([column[placement.profile] for placement in found]) == pytest.approx(best)
