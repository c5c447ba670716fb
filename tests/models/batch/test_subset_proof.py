"""Proofs by subsets: the same optima as brute force and the block model as a whole."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from strategies import realistic_batches, tiny_batches

from mig_opt import Batch, ScheduleResult, Status, Task, generate_batch, get_gpu, solve
from mig_opt.batch.integer_batch import equal_within_resolution
from mig_opt.batch.schedule import Schedule
from mig_opt.batch.timing import nested_schedule
from mig_opt.method.control import Control
from mig_opt.method.options import RunOptions
from mig_opt.models.batch.portfolio import CpSearch
from mig_opt.models.batch.subset_proof import Assignments, prove_by_subsets
from mig_opt.validation import validate


def by_subsets(batch: Batch) -> Control[Schedule]:
    control = Control[Schedule](RunOptions(workers=1))
    search = CpSearch(batch, control)
    prove_by_subsets(search)
    return control


@given(tiny_batches)
@settings(max_examples=40)
def test_brute_force_finds_the_same_optimum(batch: Batch) -> None:
    makespan = solve(batch, "brute-force").makespan
    control = by_subsets(batch)
    assert makespan is not None
    assert control.objective is not None
    # The worst possible start is proven, too, if nothing is better.
    assert control.lower_bound <= makespan * (1 + 1e-12) + 2e-9
    assert equal_within_resolution(control.objective, makespan + 2e-9)


@given(realistic_batches(max_tasks=5, max_gpus=2))
@settings(max_examples=15)
def test_the_block_model_as_a_whole_finds_the_same_optimum(batch: Batch) -> None:
    one = Control[Schedule](RunOptions(workers=1))
    CpSearch(batch, one).run()
    two = by_subsets(batch)
    assert one.objective is not None
    assert two.objective is not None
    assert one.objective == pytest.approx(two.objective, rel=2e-6, abs=2e-9)
    assert max(one.lower_bound, two.lower_bound) <= min(one.objective, two.objective) * (1 + 1e-9) + 2e-9


def consistent(batch: Batch, result: ScheduleResult) -> None:
    assert result.schedule is not None
    assert validate(batch, result.schedule).valid
    assert result.makespan is not None
    assert result.lower_bound <= result.makespan
    assert (result.status is Status.OPTIMAL) == equal_within_resolution(result.makespan, result.lower_bound)
    for before, after in pairwise(result.trajectory):
        assert before.lower_bound <= after.lower_bound


@pytest.mark.parametrize("n", [13, 15])
def test_some_more_tasks_are_proven(n: int) -> None:
    batch = generate_batch(n, gpu="A30", seed=n)
    result = solve(batch, workers=2)
    consistent(batch, result)
    assert result.status is Status.OPTIMAL


@pytest.mark.deep
def test_identical_tasks_are_proven() -> None:
    batch = Batch(tuple(Task(f"t{at}", {1: 4.0, 2: 2.5, 4: 1.5}) for at in range(13)), get_gpu("A30"))
    consistent(batch, solve(batch, workers=2, time_limit=4))


@pytest.mark.deep
@pytest.mark.parametrize(("n", "gpus"), [(22, 1), (26, 1), (16, 4)])
def test_where_the_time_is_up_all_is_consistent(n: int, gpus: int) -> None:
    batch = generate_batch(n, gpus=gpus, seed=n)
    consistent(batch, solve(batch, workers=2, time_limit=0.8))
    assert all(thread.daemon for thread in threading.enumerate()[1:])


def test_counting_assignments_ends_when_the_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    told = 0

    def slowly(self: Assignments, at_most: int) -> Iterator[list[int]]:
        nonlocal told
        while True:
            time.sleep(0.01)
            told += 1
            yield [0] * 8

    monkeypatch.setattr(Assignments, "within", slowly)
    prove_by_subsets(CpSearch(generate_batch(8, seed=1), Control[Schedule](RunOptions(time_limit=0.5, workers=1))))
    assert 1 < told < 1000


def test_work_is_counted() -> None:
    batch = generate_batch(14, seed=2)
    one, two = (solve(batch, seed=7, time_limit=0.7, deterministic=True) for _ in range(2))
    assert one.schedule == two.schedule
    told = [[(point.makespan, point.lower_bound) for point in result.trajectory] for result in (one, two)]
    assert told[0] == told[1]


def test_short_times_in_instances_with_too_little_memory_do_not_hide_schedules() -> None:
    draw = random.Random(1)
    times = [(one := round(draw.uniform(118, 128), 6), round(one * draw.uniform(0.9, 1.1), 6)) for _ in range(10)]
    tasks = [Task(f"t{at}", {1: 0.1, 4: one, 7: two}, memory_gb=15.0) for at, (one, two) in enumerate(times)]
    batch = Batch(tuple(tasks), get_gpu("A100"))
    outer = {placement.profile.compute_slices: placement for placement in batch.placements()}
    faster = [(0, outer[4 if one < two else 7]) for one, two in times]
    assert solve(batch, "cp", workers=1).lower_bound <= nested_schedule(batch, faster).makespan
