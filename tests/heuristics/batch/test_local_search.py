"""The method ``search``: valid everywhere, never worse than what it starts from, and decided by its seed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from strategies import batches

from mig_opt import Batch, generate_batch, solve
from mig_opt.batch.loads import local_search as load_search
from mig_opt.batch.schedule import Schedule
from mig_opt.heuristics.batch import local_search
from mig_opt.instances.batch import ScalingName
from mig_opt.instances.bundled import load
from mig_opt.method.control import Control
from mig_opt.method.options import RunOptions
from mig_opt.validation import validate


def makespan(batch: Batch, method: str, **options: object) -> float:
    result = solve(batch, method, **options)
    assert result.schedule is not None
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


def test_it_ends_without_a_limit() -> None:
    batch = generate_batch(6, seed=2)
    assert makespan(batch, "search", workers=1) <= makespan(batch, "far")


@pytest.mark.deep
def test_a_seed_decides_everything() -> None:
    batch = generate_batch(25, gpus=2, seed=5)

    def found(seed: int) -> object:
        return solve(batch, "search", seed=seed, time_limit=1, deterministic=True, workers=2).schedule

    assert found(3) == found(3)


def test_too_many_choices_keep_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_search, "_MAX_CHOICES", 3)
    monkeypatch.setattr(load_search, "LoadSearch", None)
    batch = load("rodinia-a30")
    assert makespan(batch, "search") == makespan(batch, "far")


def test_a_run_that_is_over_does_not_begin() -> None:
    batch = generate_batch(10, seed=1)
    control = Control[Schedule](RunOptions(time_limit=1e-9))
    schedule = solve(batch, "far").schedule
    assert schedule is not None
    control.report_plan(schedule)
    local_search.search(batch, control)
    assert control.plan == schedule
