"""Proofs by layouts: the same optima as brute force and the proofs by subsets, whatever the dual prices are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from block_models import search_from
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import realistic_batches, tiny_batches

from mig_opt import Batch, OperationCosts, Status, Task, generate_batch, get_gpu, solve
from mig_opt.batch.integer_batch import equal_within_resolution
from mig_opt.batch.loads.branches import branches_of
from mig_opt.batch.loads.task_sets import TaskSets
from mig_opt.batch.schedule import Schedule
from mig_opt.batch.timing import nested_schedule
from mig_opt.gpu.model import GpuModel, Profile
from mig_opt.method.control import Control
from mig_opt.method.options import RunOptions
from mig_opt.models.batch import layout_proof
from mig_opt.models.batch.bounded_layouts import BoundedLayouts
from mig_opt.models.batch.dual_price_bound import DualPrices, raise_bound_by_dual_prices
from mig_opt.models.batch.layout_proof import _LayoutProof, prove_by_layouts
from mig_opt.models.batch.portfolio import CpSearch
from mig_opt.models.batch.subset_proof import prove_by_subsets
from mig_opt.validation import validate


def by_layouts(batch: Batch, seed: int = 0, search: CpSearch | None = None) -> Control[Schedule]:
    """Prove with dual prices that are random, from FAR's schedule unless a search is given."""
    search = search or search_from(batch)
    areas = [min(size * seconds for size, seconds in task.times.items()) for task in batch.tasks]
    prices = np.array(areas) * np.random.default_rng(seed).uniform(0.9, 1.1, len(areas))
    branches = branches_of(search.problem)
    dual_prices = DualPrices((branches,), prices, [], np.zeros(len(branches.orders), np.int64), [], 0)
    prove_by_layouts(search, BoundedLayouts(search, dual_prices))
    return search.control


def agree(batch: Batch, control: Control[Schedule], makespan: float | None) -> None:
    assert makespan is not None
    assert control.objective is not None
    assert control.lower_bound <= makespan * (1 + 1e-12) + 2e-9
    assert equal_within_resolution(control.objective, makespan + 2e-9)
    assert control.plan is not None
    assert validate(batch, control.plan).valid


BATCH = generate_batch(6, gpu="A30", seed=3)


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
    control = Control[Schedule](RunOptions(workers=1))
    control.report_plan(nested_schedule(batch, [(0, batch.gpu.placement("1g.40gb", 0))] * 3))
    agree(batch, by_layouts(batch, search=CpSearch(batch, control)), solve(batch, "brute-force").makespan)


@pytest.mark.deep
@given(realistic_batches(st.sampled_from(["A30", "A100"]).map(get_gpu), 9, 1), st.integers(0, 100))
@settings(max_examples=40)
def test_random_batches_with_the_efforts_for_many_tasks(batch: Batch, seed: int) -> None:
    batch = batch.replace(initial=(), gpus=1)
    best = solve(batch, "cp", time_limit=20)
    assume(best.status is Status.OPTIMAL)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout_proof, "_MAX_TASKS_COARSE", 0)
        found = by_layouts(batch, seed)
    assert best.makespan is not None
    assert found.objective is not None
    assert found.lower_bound <= best.makespan * (1 + 1e-12) + 2e-9
    assert found.objective >= best.makespan - 2e-9
    assert found.plan is not None
    assert validate(batch, found.plan).valid


@pytest.mark.deep
@given(realistic_batches(st.sampled_from(["A30", "RTX-PRO-6000"]).map(get_gpu), 5, 1), st.integers(0, 100))
@settings(max_examples=20)
def test_proofs_by_subsets_find_the_same_optimum(batch: Batch, seed: int) -> None:
    batch = batch.replace(initial=(), gpus=1)
    control = Control[Schedule](RunOptions(workers=1))
    prove_by_subsets(CpSearch(batch, control))
    found = by_layouts(batch, seed)
    assume(found.lower_bound > 0)  # else there are too many combinations of layouts, and nothing is tried
    agree(batch, found, control.objective)
    assert control.objective is not None
    assert control.lower_bound <= control.objective * (1 + 1e-9)


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
    one, two = Control[Schedule](RunOptions(workers=1)), Control[Schedule](RunOptions(workers=1))
    for control in (one, two):
        schedule = solve(batch, "search", time_limit=0.2).schedule
        assert schedule is not None
        control.report_plan(schedule)
    prove_by_subsets(CpSearch(batch, one))
    search = CpSearch(batch, two)
    found = raise_bound_by_dual_prices(search, share=1.0)
    if found is not None:
        prove_by_layouts(search, BoundedLayouts(search, found))
    agree(batch, two, one.objective)
    assert one.objective == pytest.approx(one.lower_bound)
    assert two.objective == pytest.approx(two.lower_bound)


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
    best = solve(batch, "cp").makespan
    assert best is not None
    assert by_layouts(batch, n).lower_bound <= best * (1 + 1e-12)


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
    best = solve(BATCH, "cp").makespan
    control = by_layouts(BATCH)
    assert best is not None
    assert control.lower_bound <= best * (1 + 1e-9)
