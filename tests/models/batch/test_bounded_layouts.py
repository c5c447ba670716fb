"""Layouts with bounds of their own: none of the best schedule's is ruled out, whatever the prices."""

from __future__ import annotations

import pytest
from block_models import search_from
from hypothesis import given, settings
from hypothesis import strategies as st

from mig_opt import Status, generate_batch, solve
from mig_opt.batch.batch import Batch
from mig_opt.models.batch.bounded_layouts import BoundedLayout, BoundedLayouts
from mig_opt.models.batch.dual_price_bound import DualPrices, raise_bound_by_dual_prices
from mig_opt.models.batch.portfolio import CpSearch


def begun(batch: Batch, workers: int = 1) -> tuple[CpSearch, DualPrices | None]:
    """Start from FAR's schedule, with dual prices."""
    search = search_from(batch, workers=workers)
    return search, raise_bound_by_dual_prices(search, 1.0)


def ruled_out(search: CpSearch, prices: DualPrices, at_most: int, grains: int = 4_000) -> list[BoundedLayout]:
    """Return the layouts after prices of their own were sought for them."""
    bounded = BoundedLayouts(search, prices)
    layouts = bounded.layouts()
    assert layouts is not None
    assert bounded.rule_out(layouts, at_most, grains, 20)
    return layouts


def optimum(batch: Batch, search: CpSearch) -> int:
    """Return the ticks of the optimum."""
    best = solve(batch, "cp")
    assert best.status is Status.OPTIMAL
    assert best.makespan is not None
    return search.problem.ticks.nearest(best.makespan)


@pytest.mark.parametrize(("gpu", "n"), [("A30", 9), ("A100", 10)])
def test_the_best_schedule_is_not_ruled_out(gpu: str, n: int) -> None:
    batch = generate_batch(n, gpu=gpu, seed=3)
    search, prices = begun(batch)
    assert prices is not None
    best = optimum(batch, search)
    assert best < search.upper
    assert min(layout.lower for layout in ruled_out(search, prices, search.upper - 1)) <= best


@pytest.mark.deep
@given(st.integers(3, 9), st.integers(0, 10**6), st.integers(300, 20_000))
@settings(max_examples=60)
def test_the_best_schedule_of_random_batches(n: int, seed: int, grains: int) -> None:
    batch = generate_batch(n, gpu="A30", seed=seed)
    search, prices = begun(batch)
    if prices is not None and search.open:
        best = optimum(batch, search)
        if best < search.upper:
            at_most = (best + search.upper) // 2
            assert min(layout.lower for layout in ruled_out(search, prices, at_most, grains)) <= best


def test_prices_of_their_own_rule_out_most() -> None:
    batch = generate_batch(30, scaling="MixedScaling", seed=2)
    search, prices = begun(batch)
    assert prices is not None
    at_most = int(search.lower * 1.0003)
    bounded = BoundedLayouts(search, prices).layouts()
    assert bounded is not None
    before = sum(layout.lower <= at_most for layout in bounded)
    after = sum(layout.lower <= at_most for layout in ruled_out(search, prices, at_most, 20_000))
    assert 0 <= after < before / 2


def test_bounds_do_not_depend_on_which_thread_is_faster() -> None:
    batch = generate_batch(12, seed=4)
    search, prices = begun(batch, workers=3)
    assert prices is not None
    at_most = int(search.lower * 1.001)
    first, second = (ruled_out(search, prices, at_most, 2_000) for _ in range(2))
    assert [layout.lower for layout in first] == [layout.lower for layout in second]


def test_without_time_nothing_is_ruled_out() -> None:
    search, prices = begun(generate_batch(12, seed=3))
    assert prices is not None
    layouts = BoundedLayouts(search, prices).layouts()
    assert layouts
    without_time = BoundedLayouts(search, prices)
    without_time.end = 0.0
    assert without_time.layouts() is None
    assert not without_time.rule_out(layouts, search.upper - 1, 10_000, 20)
    assert all(layout.prices is None for layout in layouts)
