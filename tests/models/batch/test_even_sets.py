"""Schedules from sets of about the mean value: prices that are even, and plans that are valid."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from block_models import search_from
from hypothesis import HealthCheck, given, settings
from strategies import realistic_batches

from mig_opt import Batch, solve, validate
from mig_opt.batch.loads.branches import branches_of
from mig_opt.batch.loads.gpu_sets import GpuSets
from mig_opt.models.batch import even_sets
from mig_opt.models.batch.dual_price_bound import DualPrices, has_dual_price_bound
from mig_opt.models.batch.even_sets import evened
from mig_opt.models.batch.portfolio import cp
from mig_opt.models.batch.set_partition import SetPartition
from mig_opt.models.batch.set_prices import has_sets


def worth(prices: np.ndarray, mean: float) -> GpuSets:
    """Return the sets of 4 of 16 tasks that are worth some value at least."""
    sets = np.array([sum(1 << at for at in some) for some in itertools.combinations(range(16), 4)])
    values = np.round(10_000 * ((sets[:, np.newaxis] >> np.arange(16) & 1) @ prices)).astype(np.int64)
    return GpuSets(sets, values, values, values).at(values >= 10_000 * mean)


def test_a_step_leaves_fewer_sets_with_each_task_in_as_many() -> None:
    prices = np.linspace(1.0, 1.3, 16) / np.linspace(1.0, 1.3, 16).sum()
    before = worth(prices, 0.255)
    found = evened(before, prices, 4)
    after = worth(found.prices, 0.255)
    assert found.prices.sum() == pytest.approx(1.0)
    assert len(after) < 0.8 * len(before)
    often = [(before.sets >> at & 1).mean() for at in range(16)]
    assert np.corrcoef(found.prices - prices, often)[0, 1] < -0.9
    assert 0 < found.scale < 0.1


def test_no_step_where_tasks_are_in_as_many_sets() -> None:
    prices = np.full(16, 1 / 16)
    assert evened(worth(prices, 0.2), prices, 4).uneven == pytest.approx(0.0, abs=1e-6)


@given(realistic_batches(max_tasks=9, max_gpus=3))
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_partitions_are_valid_schedules_and_no_bounds(monkeypatch: pytest.MonkeyPatch, batch: Batch) -> None:
    for name, value in {"_FEWEST": 2, "_ENOUGH": 20, "_NUMBER": 200, "_UNEVEN": 99.0, "_WIDEST": 99.0}.items():
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
