"""Search layout by layout: valid schedules, and bounds that no better one is below."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from block_models import search_from
from hypothesis import given, settings
from hypothesis import strategies as st

from mig_opt import generate_batch, solve
from mig_opt.batch.batch import Batch
from mig_opt.batch.schedule import Schedule
from mig_opt.method.control import Control
from mig_opt.method.options import RunOptions
from mig_opt.models.batch import layout_search
from mig_opt.models.batch.bounded_layouts import BoundedLayouts
from mig_opt.models.batch.dual_price_bound import raise_bound_by_dual_prices
from mig_opt.models.batch.layout_search import search_layouts
from mig_opt.models.batch.portfolio import CpSearch
from mig_opt.validation import validate


def by_layouts(
    batch: Batch, seconds: float = 1e4, *, priced: bool = False, take_turns: Callable[[], None] = lambda: None
) -> Control[Schedule]:
    """Search from FAR's schedule, with dual prices if wanted."""
    search = search_from(batch, time_limit=seconds, deterministic=True)
    prices = raise_bound_by_dual_prices(search, 0.3) if priced else None
    search_layouts(search, None if prices is None else BoundedLayouts(search, prices), 1.0, take_turns)
    return search.control


@pytest.mark.parametrize("priced", [False, True])
@pytest.mark.parametrize(("gpu", "n"), [("A30", 4), ("A30", 7), ("RTX-PRO-6000", 6)])
def test_the_bound_is_below_the_optimum(gpu: str, n: int, priced: bool) -> None:
    for seed in range(2):
        batch = generate_batch(n, gpu=gpu, seed=seed)
        control, best = by_layouts(batch, 4.0, priced=priced), solve(batch, "cp").makespan
        assert best is not None
        assert control.objective is not None
        assert control.plan is not None
        assert control.lower_bound <= best * (1 + 1e-9)
        assert control.objective >= best * (1 - 1e-9)
        assert validate(batch, control.plan).valid


@pytest.mark.deep
@given(st.integers(2, 7), st.integers(0, 10**6), st.sampled_from(["A30", "A100"]), st.booleans(), st.booleans())
@settings(max_examples=25)
def test_random_batches(n: int, seed: int, gpu: str, parallel: bool, priced: bool) -> None:
    batch = generate_batch(n, gpu=gpu, seed=seed).replace(parallel_operations=parallel)
    control, best = by_layouts(batch, 4.0, priced=priced), solve(batch, "cp").makespan
    assert best is not None
    assert control.objective is not None
    assert control.lower_bound <= best * (1 + 1e-9)
    assert control.objective >= best * (1 - 1e-9)


def test_a_gap_of_one_tick_is_decided_and_not_priced_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = generate_batch(10, seed=3)
    control = Control[Schedule](RunOptions(time_limit=40.0, deterministic=True))
    for schedule in (solve(batch, "far").schedule, solve(batch, "cp").schedule):
        assert schedule is not None
        control.report_plan(schedule)
    search = CpSearch(batch, control)
    far = CpSearch(batch, Control[Schedule](RunOptions(time_limit=40.0, deterministic=True)))
    prices = raise_bound_by_dual_prices(far, 0.3)
    assert prices is not None
    search.raise_lower(search.upper - 1)
    priced = []
    rule_out = BoundedLayouts.rule_out

    def watched(bounded: BoundedLayouts, *given: Any) -> bool:
        priced.append(given)
        return rule_out(bounded, *given)

    monkeypatch.setattr(BoundedLayouts, "rule_out", watched)
    search_layouts(search, BoundedLayouts(search, prices), 1.0, lambda: control.spend(1.0))
    assert len(priced) <= 4
    assert control.remaining  # every layout was decided, and that did not take all the time


def test_others_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout_search, "_IDLE_SECONDS", -1.0)
    batch = generate_batch(20, gpu="A30", seed=2)
    search = search_from(batch, time_limit=8.0, deterministic=True)
    turns = []

    def take_turns() -> None:
        turns.append(search.control.clock)
        search.control.spend(0.5)

    search_layouts(search, None, 1.0, take_turns)
    assert turns


@pytest.mark.deep
def test_fifty_tasks_come_close_to_the_bound() -> None:
    batch = generate_batch(50, scaling="PoorScaling", seed=3)
    control = by_layouts(batch, 12.0)
    assert control.objective is not None
    assert control.lower_bound >= 337.74
    assert control.objective - control.lower_bound <= 0.001 * control.objective


def test_without_time_nothing_is_done() -> None:
    batch = generate_batch(6, gpu="A30", seed=1)
    control = by_layouts(batch, 1e-9)
    assert control.objective == solve(batch, "far").makespan


def test_with_too_many_layouts_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout_search, "_MAX_ORDERED_LAYOUTS", 3)
    batch = generate_batch(6, gpu="A30", seed=1)
    before = CpSearch(batch, Control[Schedule]()).lower
    assert by_layouts(batch, 10.0).lower_bound <= before + 1e-9


def test_with_many_layouts_the_local_search_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout_search, "MAX_LAYOUTS", 3)
    batch = generate_batch(6, gpu="A30", seed=1)
    turns = list[int]()
    found = by_layouts(batch, 10.0, take_turns=lambda: turns.append(len(turns)))
    assert turns
    assert found.lower_bound == solve(batch, "cp").makespan
