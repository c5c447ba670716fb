"""Lower bounds: by hand, and never above the makespan of any schedule."""

from collections.abc import Callable
from fractions import Fraction

import pytest
from controlled import controlled
from hypothesis import given
from hypothesis import strategies as st
from strategies import Decisions, any_gpu, batches, decisions, places, tiny_batches

from mig_opt import Batch, GpuModel, InputError, LiveInstance, OperationCosts, Task, get_gpu, solve
from mig_opt.batch.bounds import _Coverage, _Measured, best_lower_bound, lower_bounds
from mig_opt.batch.integer_batch import Ticks, as_decimal
from mig_opt.batch.timing import nested_schedule, timed_schedule
from mig_opt.heuristics.batch.far import far

A30, A100 = get_gpu("A30"), get_gpu("A100")
EPS = 2e-9
"""Schedules are rounded to nanoseconds, bounds are not."""


def by_name(batch: Batch) -> dict[str, float]:
    return {bound.name: bound.value for bound in lower_bounds(batch)}


def test_a_live_instance_saves_the_creation() -> None:
    task = Task("a", {1: 10.0, 2: 4.0, 7: 3.9})
    live = Batch((task,), A100, initial=(LiveInstance(0, "2g.10gb", 4, 0.1),))
    assert by_name(live)["critical task"] == solve(live, "brute-force").makespan == 4.1
    # A live instance that is free later than one is created saves nothing.
    late = Batch((task,), A100, initial=(LiveInstance(0, "2g.10gb", 4, 5.0),))
    assert by_name(late)["critical task"] == 4.17
    # The load knows no creation then: 2 slices x 4 s on 7.
    assert by_name(late)["slice load"] >= 8 / 7
    # A live variant serves like the plain profile.
    variant = Batch((Task("a", {1: 1.0}),), A100, initial=(LiveInstance(0, "1g.5gb+me", 3),))
    assert by_name(variant)["critical task"] == 1.0


def test_a_live_instance_without_enough_memory_saves_nothing() -> None:
    task = Task("a", {1: 4.0}, memory_gb=8)
    batch = Batch((task,), A100, initial=(LiveInstance(0, "1g.5gb", 0), LiveInstance(0, "3g.20gb", 4, 9.0)))
    assert by_name(batch)["critical task"] == solve(batch, "brute-force").makespan == 4.16
    ready = batch.replace(initial=(LiveInstance(0, "1g.10gb", 0),))
    assert by_name(ready)["critical task"] == solve(ready, "brute-force").makespan == 4.0


def test_a_task_that_can_run_nowhere_is_an_error() -> None:
    batch = Batch((Task("a", {1: 1.0}), Task("b", {1: 1.0}, memory_gb=20)), A100)
    for bound in (lower_bounds, best_lower_bound):
        with pytest.raises(InputError, match=r"^tasks\[1\]: task 'b' can run nowhere"):
            bound(batch)


def area(batch: Batch) -> Fraction:
    """Section 6.4 of the FAR paper: sum over tasks of min over sizes of size x time, over the number of slices."""
    work = Fraction(0)
    for task in batch.tasks:
        sizes = {placement.profile.compute_slices for placement, _ in batch.options(task)}
        work += min(size * Fraction(as_decimal(task.times[size])) for size in sizes)
    return work / (batch.gpus * batch.gpu.compute_slices)


@pytest.mark.deep
@given(batches(max_gpus=3))
def test_the_area_is_the_formula_of_the_paper(batch: Batch) -> None:
    assert by_name(batch)["area"] == Ticks(0, 1, exact=True).seconds_below(area(batch))


@pytest.mark.deep
@given(batches(any_gpu, max_tasks=20))
def test_the_slice_load_is_at_least_the_area(batch: Batch) -> None:
    bounds = by_name(batch)
    # Weights are rounded to 10**-6.
    assert bounds["slice load"] >= bounds["area"] * (1 - 1e-5)


@pytest.mark.deep
@given(batches(initial=False, max_gpus=3))
def test_with_an_empty_gpu_a_creation_comes_on_top(batch: Batch) -> None:
    profiles = {placement.profile for task in batch.tasks for placement, _ in batch.options(task)}
    creation = min(batch.operations.of("create", profile) for profile in profiles)
    bounds = by_name(batch)
    assert bounds["slice load"] >= (bounds["area"] + creation) * (1 - 1e-5) - 1e-12


@pytest.mark.deep
@given(batches(any_gpu, max_tasks=10, max_gpus=3))
def test_never_above_the_schedule_of_far(batch: Batch) -> None:
    makespan = controlled(far, batch).objective
    for bound in lower_bounds(batch):
        assert 0 < bound.value <= makespan + EPS, bound


@pytest.mark.deep
@given(decisions())
def test_never_above_any_schedule(case: Decisions) -> None:
    makespan = timed_schedule(case.batch, case.instances, case.operations).makespan
    for bound in lower_bounds(case.batch):
        assert bound.value <= makespan + EPS, bound


@pytest.mark.deep
@given(tiny_batches)
def test_never_above_the_optimum(batch: Batch) -> None:
    makespan = solve(batch, "brute-force", workers=1).makespan
    for bound in lower_bounds(batch):
        assert bound.value <= makespan + EPS, bound


@pytest.mark.deep
@given(st.data(), any_gpu)
def test_any_weights_give_a_bound(data: st.DataObject, gpu: GpuModel) -> None:
    """Also without operation costs, where the load has nothing in reserve, and against the best of some schedules."""
    batch = data.draw(batches(st.just(gpu), initial=False, zero_costs=True))
    coverage = _Coverage.of(_Measured.of(batch))
    weights = tuple(data.draw(st.integers(0, 5)) for _ in coverage.orbits)
    total = sum(weight * len(orbit) for weight, orbit in zip(weights, coverage.orbits, strict=True))
    if not total:
        return
    load = Fraction(coverage.load(weights), total * batch.gpus) * coverage.ticks.length
    for chosen in data.draw(st.lists(places(batch), min_size=1, max_size=3)):
        assert float(load) <= nested_schedule(batch, chosen).makespan + EPS


@given(any_gpu, st.sampled_from(["base", "double-memory"]))
def test_interchangeable_slices_partition_all_slices(gpu: GpuModel, wanted: str) -> None:
    tasks = (Task("a", dict.fromkeys(gpu.sizes, 1.0)), Task("b", {1: 1.0}))
    batch = Batch(tasks, gpu)
    if wanted == "double-memory":
        big = [p for p in gpu.profiles_of("double-memory") if p not in gpu.profiles_of("base")]
        if not big:
            return
        batch = batch.replace(tasks=(*tasks, Task("c", {big[0].compute_slices: 1.0}, big[0].memory_gb)))
    assert batch.profile_set == wanted
    coverage = _Coverage.of(_Measured.of(batch))
    assert sorted(position for orbit in coverage.orbits for _, position in orbit) == list(range(gpu.memory_slices))


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 1e6, 1e12])
@pytest.mark.parametrize("costs", [OperationCosts.zero, lambda gpu: gpu.operation_costs])
def test_times_of_any_magnitude(scale: float, costs: Callable[[GpuModel], OperationCosts]) -> None:
    tasks = tuple(Task(f"t{n}", {size: scale * (3 + n) / (size + n / 3) for size in A100.sizes}) for n in range(6))
    batch = Batch(tasks, A100, operations=costs(A100))
    makespan = controlled(far, batch).objective
    assert best_lower_bound(batch) <= makespan * (1 + 1e-12) + EPS
    if not any(batch.operations.create.values()):  # else the many creations of FAR may cost more than the tasks
        assert best_lower_bound(batch) >= makespan / 3 - 2e-8
