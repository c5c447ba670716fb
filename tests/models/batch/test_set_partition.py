"""Partitions into the sets of one GPU: bounds never above an optimum, and proofs as by other methods."""

import numpy as np
import pytest
from block_models import search_from
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import realistic_batches, tiny_batches

from mig_opt import Batch, LiveInstance, Pool, Status, Task, generate_batch, get_gpu, solve, validate
from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.branches import branches_of
from mig_opt.batch.loads.columns import grain_of
from mig_opt.batch.loads.gpu_sets import GpuSetListing
from mig_opt.batch.loads.layout_values import priced_tasks
from mig_opt.batch.loads.subsets import contents, sets_of_rows
from mig_opt.gpu.geometry import members
from mig_opt.models.batch.dual_price_bound import DualPrices, has_dual_price_bound, raise_bound_by_dual_prices
from mig_opt.models.batch.portfolio import CpSearch, cp
from mig_opt.models.batch.set_partition import SetPartition
from mig_opt.models.batch.set_prices import SetBound, SetProgram, has_sets


def proven(batch: Batch, prices: list[float] | None = None, *, priced_only: bool = False) -> CpSearch | None:
    """Return a search after a proof that begins with some dual prices; None where there is none."""
    search = search_from(batch, time_limit=1, deterministic=True)
    count, problem = len(batch.tasks), search.problem
    if not (problem.alike and has_dual_price_bound(problem)):
        return None
    given = np.ones(count) if prices is None else np.array(prices[:count])
    found = DualPrices((branches_of(problem),), given / given.sum(), [], np.zeros(0, np.int64), [], 0)
    if not has_sets(found, count):
        return None
    if priced_only:
        bound = SetBound(search, found, 1, expired=lambda: search.control.expired)
        while bound.round():
            pass
    else:
        SetPartition(search, found, cp).prove()
    assert not validate(batch, search.control.plan).violations
    return search


def agree(search: CpSearch, optimum: float) -> None:
    """Check that no bound is above an optimum, and no plan below; makespans have nine decimals."""
    assert search.control.lower_bound <= optimum * (1 + 1e-9) + 1e-9
    assert optimum <= search.control.plan.makespan * (1 + 1e-9) + 1e-9


@given(tiny_batches, st.lists(st.floats(0.1, 1.0), min_size=8, max_size=8), st.booleans())
@settings(max_examples=40, deadline=None)
def test_never_above_the_optimum_of_brute_force(batch: Batch, prices: list[float], priced_only: bool) -> None:
    search = proven(batch, prices, priced_only=priced_only)
    if search is not None:
        agree(search, solve(batch, "brute-force").makespan)


@given(
    realistic_batches(max_tasks=10, max_gpus=3), st.lists(st.floats(0.5, 1.0), min_size=10, max_size=10), st.booleans()
)
@settings(max_examples=20, deadline=None)
def test_never_above_the_optimum_of_the_whole_method(batch: Batch, prices: list[float], priced_only: bool) -> None:
    search = proven(batch, prices, priced_only=priced_only)
    best = solve(batch, "cp", time_limit=2, deterministic=True)
    if search is not None and best.status is Status.OPTIMAL:
        agree(search, best.makespan)


def test_sets_prove_more_than_patterns() -> None:
    """A pattern may have a task twice."""
    batch = generate_batch(12, gpu="A30", gpus=3, scaling="MixedScaling", seed=1)
    search, optimum = search_from(batch), solve(batch, "cp").makespan
    found = raise_bound_by_dual_prices(search, 1.0)
    before, bound = search.control.lower_bound, SetBound(search, found, 1, expired=lambda: False)
    while bound.round():
        pass
    assert 1.05 * before < search.control.lower_bound <= optimum
    assert bound.found().prices.shape == (12,)


@pytest.mark.parametrize("gpus", [2, 3])
def test_it_proves_what_a_search_has_found(gpus: int) -> None:
    batch = generate_batch(5 * gpus, gpu="A30", gpus=gpus, seed=1)
    search = proven(batch)
    assert search.control.lower_bound == pytest.approx(solve(batch, "cp").makespan)


@given(realistic_batches(max_tasks=5, max_gpus=1))
@settings(max_examples=12, deadline=None)
def test_the_sets_of_a_gpu_are_all_that_it_can_run(batch: Batch) -> None:
    """A set that some schedule runs within the limit is listed, whatever the dual prices."""
    problem = IntegerBatch(batch)
    if problem.live:
        return
    result = solve(batch, "cp", time_limit=10)
    branches, limit = branches_of(problem), problem.ticks.floor(result.makespan or 0.0) + 1
    tasks = priced_tasks(problem, branches, np.ones(len(batch.tasks)), limit, grain_of(branches, limit, 500))
    if (tasks.ticks >= 2**30 - 1).all(axis=0).any():
        return
    listing = GpuSetListing(problem, branches, 2**16)
    assert (listing.sets(tasks, 1, 2**24, 1, lambda: True), listing.steps) == (None, 0)
    found = listing.sets(tasks, 1, 2**24, 1, lambda: False)
    sets = sets_of_rows(found.sets)
    assert (1 << len(batch.tasks)) - 1 in sets
    assert found.values.tolist() == [sum(tasks.prices[list(members(one))].tolist()) for one in sets]
    listing._most = 1  # which is a limit for the listing alone
    for one, layout in list(zip(sets, found.layouts.tolist(), strict=True))[::9]:
        assert list(listing.places(one, layout)) == list(members(one))


def test_sets_of_more_tasks_than_a_word_has_bits() -> None:
    """Tasks that take too long are in none; the others are in the same sets as if they were alone."""
    few = generate_batch(8, gpu="A30", gpus=2, seed=1)
    long = [Task(f"long{at}", {1: 1e3, 2: 1e3, 4: 1e3}) for at in range(92)]
    many = few.replace(tasks=(*few.tasks[:4], *long, *few.tasks[4:]))
    found = []
    for batch, own in ((few, range(8)), (many, (0, 1, 2, 3, 96, 97, 98, 99))):
        problem = IntegerBatch(batch)
        branches, limit = branches_of(problem), problem.ticks.floor(55.0)
        prices = np.isin(np.arange(len(batch.tasks)), own).astype(float)
        tasks = priced_tasks(problem, branches, prices, limit, grain_of(branches, limit, 500))
        listed = GpuSetListing(problem, branches, 2**20).sets(tasks, tasks.value // 3, 2**28, 2, lambda: False)
        inside = contents(listed.sets, len(batch.tasks))
        assert inside.sum() == inside[:, list(own)].sum()
        lengths = [problem.ticks.seconds_below(one) for one in listed.lengths.tolist()]
        found.append({tuple(row): one for row, one in zip(inside[:, list(own)].tolist(), lengths, strict=True)})
    assert len(found[0]) > 100
    assert found[1] == pytest.approx(found[0])


def test_dual_prices_of_a_partition_and_in_a_region() -> None:
    """Three pairs of three tasks ask for one and a half GPUs each."""
    program = SetProgram(3, 2)
    program.add(np.array([[0b011], [0b101], [0b110]]), 1)
    prices, asked = program.prices(np.full(3, 1 / 3))
    assert [*prices, asked] == pytest.approx([0.5, 0.5, 0.5, 1.5])
    # In a region they leave the start by some share at most, apart from a common factor.
    start = np.array([0.2, 0.3, 0.5])
    prices, asked = program.prices(start, 0.1)
    ratios = prices / start
    assert 1 < ratios.max() / ratios.min() <= 1.1 / 0.9 + 1e-6
    assert start.sum() / 0.8 < asked < 1.5


def test_sets_of_a_longer_limit_are_forgotten() -> None:
    program = SetProgram(3, 2)
    program.add(np.array([[0b011], [0b101]]), 5)
    program.add(np.array([[0b110], [0b101]]), 8)
    assert program.within(8) is program
    assert len(program.within(5)) == 2


@pytest.mark.deep
@pytest.mark.parametrize("workers", [1, 2])
def test_several_gpus_are_proven_within_seconds(workers: int) -> None:
    result = solve(generate_batch(24, scaling="PoorScaling", gpus=3, seed=1), "cp", time_limit=100, workers=workers)
    assert result.status is Status.OPTIMAL


def test_a_gpu_that_stays_busy_or_can_run_nothing_is_left_out() -> None:
    free = generate_batch(8, gpu="A30", gpus=2, seed=2)
    busy = free.replace(gpus=3, initial=(LiveInstance(1, "4g.24gb", 0, free=1e4),))
    tasks = tuple(task.with_times({"A30-24GB": task.times}) for task in free.tasks)
    mixed = free.replace(tasks=tasks, pools=(Pool(get_gpu("A100"), 1), Pool(get_gpu("A30"), 2)))
    for batch, gpus in ((busy, {0, 2}), (mixed, {1, 2})):
        search = proven(batch)
        assert search.control.lower_bound == pytest.approx(solve(free, "cp").makespan)
        assert {run.gpu for run in search.control.plan.runs} == gpus
