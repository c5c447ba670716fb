"""Schedules from sets of about the mean value: prices that are even, and plans that are valid."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from block_models import search_from
from hypothesis import HealthCheck, given, settings
from strategies import realistic_batches

from mig_opt import Batch, generate_batch, solve, validate
from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.branches import branches_of
from mig_opt.batch.loads.columns import grain_of
from mig_opt.batch.loads.gpu_sets import GpuSetListing, GpuSets, Thinning
from mig_opt.batch.loads.layout_values import LayoutValues, best_layouts, priced_tasks
from mig_opt.batch.loads.layouts import LayoutTree
from mig_opt.batch.loads.subsets import contents, sets_of_rows
from mig_opt.models.batch import even_sets
from mig_opt.models.batch.dual_price_bound import DualPrices, has_dual_price_bound
from mig_opt.models.batch.even_sets import evened
from mig_opt.models.batch.portfolio import cp
from mig_opt.models.batch.set_partition import SetPartition
from mig_opt.models.batch.set_prices import has_sets


def worth(prices: np.ndarray, mean: float) -> GpuSets:
    """Return the sets of 4 of 16 tasks that are worth some value at least."""
    sets = np.array([[sum(1 << at for at in some)] for some in itertools.combinations(range(16), 4)])
    values = np.round(10_000 * (contents(sets, 16) @ prices)).astype(np.int64)
    return GpuSets(sets, values, values, values).at(values >= 10_000 * mean)


def test_a_step_leaves_fewer_sets_with_each_task_in_as_many() -> None:
    prices = np.linspace(1.0, 1.3, 16) / np.linspace(1.0, 1.3, 16).sum()
    before = worth(prices, 0.255)
    found = evened(before, prices, 4)
    after = worth(found.prices, 0.255)
    assert found.prices.sum() == pytest.approx(1.0)
    assert len(after) < 0.8 * len(before)
    often = contents(before.sets, 16).mean(axis=0)
    assert np.corrcoef(found.prices - prices, often)[0, 1] < -0.9


def test_no_step_where_tasks_are_in_as_many_sets() -> None:
    prices = np.full(16, 1 / 16)
    assert evened(worth(prices, 0.2), prices, 4).uneven == pytest.approx(0.0, abs=1e-6)


def test_a_thinned_list_has_some_of_all_sets() -> None:
    problem = IntegerBatch(generate_batch(14, gpu="A30", gpus=2, seed=3))
    branches, limit = branches_of(problem), problem.ticks.floor(solve(problem.batch, "far").makespan)
    tasks = priced_tasks(problem, branches, np.ones(14), limit, grain_of(branches, limit, 500))
    listing, needed = GpuSetListing(problem, branches, 2**20), tasks.value // 2

    def some(*thinning: int) -> GpuSets:
        found = listing.some(tasks, layouts, needed, 1, lambda: False, Thinning(*thinning))
        assert found is not None
        return found

    everything = listing.sets(tasks, needed, 2**28, 1, lambda: False)
    layouts = listing.layouts
    lengths = dict(zip(sets_of_rows(everything.sets), everything.lengths.tolist(), strict=True))
    assert len(lengths) > 1_000
    unthinned = some(10**6, 10**6)
    assert dict(zip(sets_of_rows(unthinned.sets), unthinned.lengths.tolist(), strict=True)) == lengths
    highest = int(np.median(everything.values))
    for of_branch in (20, 200):
        thinned = some(of_branch, 60, highest)
        assert 0 < len(thinned) < 0.9 * len(lengths)
        assert np.bincount(thinned.layouts).max() < 120
        assert (thinned.values <= highest).all()
        for one, length in zip(sets_of_rows(thinned.sets), thinned.lengths.tolist(), strict=True):
            assert lengths[one] <= length <= limit
    assert listing.some(tasks, layouts, needed, 1, lambda: True, Thinning(20, 60)) is None


@pytest.mark.parametrize("guess", [0.9, 1.01, 1.5, 4.0])
def test_the_best_layouts_are_those_of_most_value(guess: float) -> None:
    problem = IntegerBatch(generate_batch(10, gpu="A30", gpus=2, seed=3))
    branches, limit = branches_of(problem), problem.ticks.floor(solve(problem.batch, "far").makespan)
    prices = np.random.default_rng(1).uniform(0.5, 1.5, 10)
    tasks = priced_tasks(problem, branches, prices, limit, grain_of(branches, limit, 300))
    least = tasks.value // 2
    worth = {
        each: LayoutValues(LayoutTree(problem.part(range(10), (0,)), branches, [each]), tasks).inside[-1].max()
        for each in best_layouts(branches, tasks, least, least, 10**5)[0]
    }
    found, value = best_layouts(branches, tasks, int(guess * least), least, 8)
    assert 4 <= len(found) <= 32
    values = [worth[each] for each in found]
    assert values == sorted(worth.values(), reverse=True)[: len(found)]
    assert value in worth.values()


@given(realistic_batches(max_tasks=9, max_gpus=3))
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_partitions_are_valid_schedules_and_no_bounds(monkeypatch: pytest.MonkeyPatch, batch: Batch) -> None:
    for name, value in {"_FEWEST": 2, "_FEW": 2, "_EVEN": 99.0, "_WINDOW": 0.2, "_EXCESS": 0.1}.items():
        monkeypatch.setattr(even_sets, name, value)
    search, count = search_from(batch, workers=1, time_limit=2), len(batch.tasks)
    problem = search.problem
    if not (problem.alike and has_dual_price_bound(problem)):
        return
    found = DualPrices((branches_of(problem),), np.ones(count) / count, [], np.zeros(0, np.int64), [], 0)
    if not has_sets(found, count):
        return
    before = search.control.lower_bound, search.control.plan.makespan
    SetPartition(search, found, cp).look_for_schedules()
    assert not validate(batch, search.control.plan).violations
    assert search.control.lower_bound == before[0]
    assert search.control.plan.makespan <= before[1]
    assert solve(batch, "cp", time_limit=10).lower_bound <= search.control.plan.makespan * (1 + 1e-9)
