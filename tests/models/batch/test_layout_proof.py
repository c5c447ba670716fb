"""Layouts with bounds of their own, searches and proofs by them: the same optima, whatever the dual prices."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from block_models import most_ticks, search_from
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import tiny_batches

from mig_opt import Batch, GpuModel, OperationCosts, Profile, Schedule, Status, Task, generate_batch, get_gpu, solve
from mig_opt.batch.integer_batch import IntegerBatch, equal_within_resolution
from mig_opt.batch.loads.branches import branches_of
from mig_opt.batch.loads.layouts import LayoutTree, layouts_in
from mig_opt.batch.loads.task_sets import TaskSets
from mig_opt.batch.loads.tree import task_ticks
from mig_opt.batch.timing import nested_schedule
from mig_opt.method.control import Control
from mig_opt.method.options import RunOptions
from mig_opt.models.batch import layout_proof, layout_relaxation, layout_search
from mig_opt.models.batch.bounded_layouts import BoundedLayouts
from mig_opt.models.batch.dual_price_bound import DualPrices, raise_bound_by_dual_prices
from mig_opt.models.batch.layout_proof import _LayoutProof, prove_by_layouts
from mig_opt.models.batch.layout_relaxation import LayoutRelaxation
from mig_opt.models.batch.layout_search import has_choices, search_layouts
from mig_opt.models.batch.portfolio import CpSearch
from mig_opt.models.batch.subset_proof import prove_by_subsets
from mig_opt.validation import validate

FEW, BATCH = (generate_batch(6, gpu="A30", seed=seed) for seed in (1, 3))


def begun(batch: Batch, workers: int = 1) -> tuple[CpSearch, DualPrices | None]:
    """Start from FAR's schedule, with dual prices."""
    search = search_from(batch, workers=workers)
    return search, raise_bound_by_dual_prices(search, 1.0)


def bounds(search: CpSearch, prices: DualPrices, at_most: int, grains: int = 4_000) -> list[int]:
    """Return the bounds of the layouts after prices of their own were sought for them."""
    bounded = BoundedLayouts(search, prices.branches, prices.prices)
    layouts = bounded.layouts()
    assert bounded.rule_out(layouts, at_most, grains, 20)
    return [layout.lower for layout in layouts]


@pytest.mark.parametrize(("gpu", "n"), [("A30", 9), ("A100", 10)])
def test_the_best_schedule_is_not_ruled_out(gpu: str, n: int) -> None:
    batch = generate_batch(n, gpu=gpu, seed=3)
    search, prices = begun(batch)
    best = most_ticks(batch, "cp")
    assert min(bounds(search, prices, search.upper - 1)) <= best < search.upper


@pytest.mark.deep
@given(st.integers(3, 9), st.integers(0, 10**6), st.integers(300, 20_000))
@settings(max_examples=60)
def test_the_best_schedule_of_random_batches(n: int, seed: int, grains: int) -> None:
    batch = generate_batch(n, gpu="A30", seed=seed)
    search, prices = begun(batch)
    if prices is not None and search.open:
        best = most_ticks(batch, "cp")
        if best < search.upper:
            assert min(bounds(search, prices, (best + search.upper) // 2, grains)) <= best


@pytest.mark.deep
def test_prices_of_their_own_rule_out_most() -> None:
    batch = generate_batch(30, scaling="MixedScaling", seed=2)
    search, prices = begun(batch)
    at_most = int(search.lower * 1.0003)
    before = sum(layout.lower <= at_most for layout in BoundedLayouts(search, prices.branches, prices.prices).layouts())
    assert sum(lower <= at_most for lower in bounds(search, prices, at_most, 20_000)) < before / 2


def test_bounds_do_not_depend_on_which_thread_is_faster() -> None:
    batch = generate_batch(9, gpu="A30", seed=4)
    search, prices = begun(batch, workers=3)
    first, second = (bounds(search, prices, search.upper - 1, 2_000) for _ in range(2))
    assert len(first) == 30  # some for each thread
    assert first == second


def test_without_time_nothing_is_ruled_out() -> None:
    search, prices = begun(generate_batch(9, gpu="A30", seed=4))
    layouts = BoundedLayouts(search, prices.branches, prices.prices).layouts()
    assert layouts
    without_time = BoundedLayouts(search, prices.branches, prices.prices)
    without_time.end = 0.0
    assert (without_time.layouts(), without_time.rule_out(layouts, search.upper - 1, 10_000, 20)) == (None, False)
    assert all(layout.prices is None for layout in layouts)


def searched(batch: Batch, seconds: float = 1e4, take_turns: Callable[[], bool] = lambda: True) -> Control[Schedule]:
    """Search from FAR's schedule."""
    search = search_from(batch, time_limit=seconds, deterministic=True)
    search_layouts(search, take_turns)
    return search.control


def no_better(batch: Batch, control: Control[Schedule]) -> None:
    """Check that no bound is above an optimum, and no objective below."""
    best = solve(batch, "cp", time_limit=20)
    least = best.makespan if best.status is Status.OPTIMAL else best.lower_bound
    assert control.lower_bound <= best.makespan * (1 + 1e-9)
    assert control.objective >= least * (1 - 1e-9)
    assert validate(batch, control.plan).valid


@pytest.mark.parametrize(("gpu", "n"), [("A30", 14), ("A30", 24), ("RTX-PRO-6000", 12)])
def test_the_bound_is_below_the_optimum(gpu: str, n: int) -> None:
    for seed in range(2):
        batch = generate_batch(n, gpu=gpu, seed=seed)
        no_better(batch, searched(batch, 0.5))


@pytest.mark.deep
@given(st.integers(2, 10), st.integers(0, 10**6), st.sampled_from(["A30", "A100"]), st.booleans())
@settings(max_examples=40)
def test_random_batches(n: int, seed: int, gpu: str, parallel: bool) -> None:
    batch = generate_batch(n, gpu=gpu, seed=seed).replace(parallel_operations=parallel)
    no_better(batch, searched(batch, 6.0))


@pytest.mark.parametrize("n", [12, 36])
def test_a_gap_of_one_tick_is_decided(n: int) -> None:
    batch = generate_batch(n, gpu="A30", scaling="PoorScaling", seed=3)
    control = Control[Schedule](RunOptions(time_limit=40.0, deterministic=True))
    for method in ("far", "cp"):
        control.report_plan(solve(batch, method).schedule)
    search = CpSearch(batch, control)
    search.raise_lower(search.upper - 1)
    search_layouts(search, lambda: control.spend(1.0) is None)
    assert not search.open
    assert control.remaining  # every layout was decided, and that did not take all the time


def test_others_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout_search, "_IDLE_SECONDS", -1.0)
    batch = generate_batch(20, gpu="A30", seed=2)
    search = search_from(batch, time_limit=8.0, deterministic=True)
    turns = []
    search_layouts(search, lambda: turns.append(search.control.spend(0.5)) or len(turns) < 3)
    assert len(turns) == 3
    assert search.control.remaining  # nothing more is searched where no turn is to follow


@pytest.mark.deep
def test_fifty_tasks_come_close_to_the_bound() -> None:
    batch = generate_batch(50, scaling="PoorScaling", seed=3)
    control = searched(batch, 12.0)
    assert control.lower_bound >= 337.74
    assert control.objective - control.lower_bound <= 0.0003 * control.objective


def test_without_time_nothing_is_done() -> None:
    assert searched(FEW, 1e-9).objective == solve(FEW, "far").makespan


def test_with_too_many_choices_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout_search, "_LISTING_SHARE", 1e-9)
    assert searched(FEW, 10.0).lower_bound <= CpSearch(FEW, Control[Schedule]()).lower + 1e-9
    assert has_choices(IntegerBatch(FEW))
    monkeypatch.setattr(layout_search, "_MAX_CHOICES", 3)
    assert not has_choices(IntegerBatch(FEW))


@pytest.mark.parametrize("few", [True, False])
def test_many_tasks_are_proven_by_the_order_of_operations(few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not few:
        monkeypatch.setattr(layout_relaxation, "_MAX_ORDERS", 0)
    found = searched(generate_batch(60, gpu="A30", seed=1), 20.0)
    assert found.objective == 722.233
    assert few <= (found.lower_bound == 722.233)


def test_layouts_whose_operations_take_no_time_are_not_put_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout_relaxation, "_MAX_ORDERS", 0)
    tasks = tuple(Task(f"t{at}", {1: 20 + 1.7 * at, 2: 10 + 0.9 * at, 3: 7 + 0.6 * at}) for at in range(63))
    costs = {size: 0.5 * (size == 7) for size in get_gpu("A100").sizes}
    batch = Batch(tasks, get_gpu("A100"), operations=OperationCosts(costs, costs))
    control = searched(batch, 0.5)
    assert control.lower_bound <= control.objective
    assert validate(batch, control.plan).valid


@pytest.mark.deep
@pytest.mark.parametrize(("scaling", "n"), [("PoorScaling", 100), ("MixedScaling", 70), ("GoodScaling", 150)])
def test_a_hundred_tasks_are_proven(scaling: str, n: int) -> None:
    result = solve(generate_batch(n, scaling=scaling, seed=2), "cp", time_limit=120)
    assert result.status is Status.OPTIMAL


@given(tiny_batches.filter(lambda batch: batch.gpu.memory_slices != 8), st.floats(1, 1.2))
@settings(max_examples=20)
def test_no_order_of_operations_is_shorter_than_its_bound(batch: Batch, spare: float) -> None:
    batch = batch.replace(initial=(), gpus=1)
    best, problem = most_ticks(batch), IntegerBatch(batch)
    if problem.operations_take_no_time:
        return
    branches, ticks = branches_of(problem), task_ticks(problem, problem.places)
    control, at_most = Control[Schedule](RunOptions(workers=1)), int(best * spare)
    bounds = []
    for layout in {layout for order in branches.orders if order for layout in layouts_in(branches, order)}:
        tree = LayoutTree(problem, branches, [layout])
        relaxed = LayoutRelaxation(problem, tree, ticks, all_used=branches.tell_all)
        found = relaxed.in_orders(at_most)
        bounds.append(max(relaxed.lower, found.lower))
        if found.ticks is not None:
            ordered = [tree.with_operations(order.tolist()) for order in found.ticks]
            some = (LayoutRelaxation(problem, one, ticks, all_used=True).bound(control, at_most) for one in ordered)
            bounds[-1] = max(bounds[-1], min(some, default=at_most + 1))
    assert min(bounds) <= best


def by_layouts(batch: Batch, seed: int = 0, search: CpSearch | None = None) -> Control[Schedule]:
    """Prove with dual prices that are random, from FAR's schedule unless a search is given."""
    search = search or search_from(batch)
    areas = [min(size * seconds for size, seconds in task.times.items()) for task in batch.tasks]
    prices = np.array(areas) * np.random.default_rng(seed).uniform(0.9, 1.1, len(areas))
    branches = branches_of(search.problem)
    dual_prices = DualPrices((branches,), prices, [], np.zeros(len(branches.orders), np.int64), [], 0)
    prove_by_layouts(search, BoundedLayouts(search, dual_prices.branches, dual_prices.prices))
    return search.control


def agree(batch: Batch, control: Control[Schedule], makespan: float | None) -> None:
    assert control.lower_bound <= makespan * (1 + 1e-12) + 2e-9
    assert equal_within_resolution(control.objective, makespan + 2e-9)
    assert validate(batch, control.plan).valid


@given(tiny_batches.filter(lambda batch: batch.gpu.memory_slices != 8), st.integers(0, 100))
@settings(max_examples=20)
def test_brute_force_finds_the_same_optimum(batch: Batch, seed: int) -> None:
    batch = batch.replace(initial=(), gpus=1)
    agree(batch, by_layouts(batch, seed), solve(batch, "brute-force").makespan)


def test_many_kinds_of_placements_of_the_same_slices() -> None:
    sizes = (1, 2, 3, 4)
    profiles = tuple(Profile(f"{size}g.40gb", size, size, 4, 40.0, 1, (0,)) for size in sizes)
    operations = OperationCosts(dict.fromkeys(sizes, 0.1), dict.fromkeys(sizes, 0.1))
    gpu = GpuModel("toy", "toy", 40.0, 4, 4, profiles, operations)
    batch = Batch(tuple(Task(f"t{at}", {1: 4.0, 2: 3.0, 3: 2.0, 4: 1.0 + at}) for at in range(3)), gpu)
    search = search_from(batch, nested_schedule(batch, [(0, batch.gpu.placement("1g.40gb", 0))] * 3))
    agree(batch, by_layouts(batch, search=search), solve(batch, "brute-force").makespan)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("gpu", "n", "variant"),
    [
        ("A30", 9, "plain"),
        ("A30", 9, "parallel"),
        ("A30", 9, "free"),
        ("RTX-PRO-6000", 9, "free"),
        ("A100", 12, "free"),
        ("A100", 20, "plain"),
        ("H100", 20, "parallel"),
    ],
)
def test_proofs_by_subsets_find_the_same_optimum_on_each_gpu(gpu: str, n: int, variant: str) -> None:
    batch = generate_batch(n, gpu=gpu, seed=3)
    if variant == "parallel":
        batch = batch.replace(parallel_operations=True)
    if variant == "free":
        batch = batch.replace(operations=OperationCosts.zero(batch.gpu))
    schedule = solve(batch, "search", time_limit=0.2).schedule
    one, two = (search_from(batch, schedule) for _ in range(2))
    prove_by_subsets(one)
    found = raise_bound_by_dual_prices(two, share=1.0)
    if found is not None:
        prove_by_layouts(two, BoundedLayouts(two, found.branches, found.prices))
    agree(batch, two.control, one.control.objective)
    for control in (one.control, two.control):
        assert control.objective == pytest.approx(control.lower_bound)


@pytest.mark.parametrize("n", [5, 6, 7, 8])
def test_assignments_that_are_left_when_the_time_is_up_are_not_decided(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    find = _LayoutProof._all_assignments

    def late(proof: _LayoutProof, *given: Any) -> list[Any]:
        results = find(proof, *given)
        proof._bounded.end = 0.0
        return results

    monkeypatch.setattr(_LayoutProof, "_all_assignments", late)
    monkeypatch.setattr(layout_proof, "_FIRST_CANDIDATES", 1)
    batch = generate_batch(n, gpu="A30", seed=n)
    no_better(batch, by_layouts(batch, n))


def test_nothing_is_proven_once_the_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    search = search_from(BATCH, time_limit=1e6, deterministic=True)
    control, before = search.control, list[float]()

    def time_is_up(self: TaskSets, expired: Callable[[], bool]) -> bool:
        del self
        before.append(control.lower_bound)
        control.spend(1e6)
        return not expired()

    monkeypatch.setattr(TaskSets, "fill", time_is_up)
    by_layouts(BATCH, search=search)
    assert before
    assert control.lower_bound == before[0]


def test_with_too_many_assignments_nothing_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout_proof, "_FIRST_CANDIDATES", 0)
    monkeypatch.setattr(layout_proof, "_MAX_CANDIDATES", 0)
    no_better(BATCH, by_layouts(BATCH))
