"""The load program: its bound is never above a schedule, and never above the longest path with whole tasks."""

from __future__ import annotations

import pytest
from block_models import search_from, ticks_of
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import realistic_batches, tiny_batches

from mig_opt import Batch, Status, Task, generate_batch, get_gpu, handover, solve
from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.schedule import Schedule
from mig_opt.method.control import Control
from mig_opt.method.options import RunOptions
from mig_opt.models.batch.load_program import LoadProgram, raise_bound_by_loads
from mig_opt.models.batch.subset_proof import SubsetTables
from mig_opt.models.solvers.backend import solve_program
from mig_opt.models.solvers.highs import Highs


def bound(problem: IntegerBatch, at_most: int) -> int:
    program, backend = LoadProgram(problem, at_least=0, at_most=at_most), Highs()
    bounds = [0]
    found = solve_program(
        program.linear.program,
        backend,
        Control[Schedule](RunOptions(workers=1)),
        share=1.0,
        on_bound=lambda units: bounds.append(program.bound(units, backend.tolerance)),
    )
    # There is a schedule within the limit, so there is a solution.
    assert found.status is not Status.INFEASIBLE
    return max(bounds)


@pytest.mark.deep
@given(tiny_batches)
@settings(max_examples=50)
def test_never_above_the_optimum_of_brute_force(batch: Batch) -> None:
    problem = IntegerBatch(batch)
    most = ticks_of(problem, solve(batch, "brute-force").makespan)
    assert bound(problem, most) <= most


@given(realistic_batches(max_tasks=6))
@settings(max_examples=25)
def test_never_above_the_schedule_of_far(batch: Batch) -> None:
    problem = IntegerBatch(batch)
    most = ticks_of(problem, solve(batch, "far").makespan)
    assert bound(problem, most) <= most


def raised(batch: Batch, method: str) -> tuple[int, int]:
    """Return the bound in ticks before and after, if the schedule of a method is known."""
    search = search_from(batch, method)
    before = search.lower
    raise_bound_by_loads(search, share=1.0)
    return before, search.lower


@pytest.mark.deep
@given(tiny_batches, st.sampled_from(["brute-force", "far", "lpt"]))
@settings(max_examples=60, deadline=None)
def test_marks_never_raise_the_bound_above_the_optimum(batch: Batch, method: str) -> None:
    most = ticks_of(IntegerBatch(batch), solve(batch, "brute-force").makespan)
    assert raised(batch, method)[1] <= most


def test_a_task_as_long_as_the_schedule_tells_much() -> None:
    """If b, c and d run for 9.5 s on a slice each, a has 10 s on the fourth, or leaves too little to them.

    On two slices a takes 9 s and 46.5 slice-seconds are 11.6 s of the GPU. So nothing ends before a on one slice, which
    is created after 0.1 s.
    """
    others = tuple(Task(name, {1: 9.5}) for name in "bcd")
    batch = Batch((Task("a", {1: 10.0, 2: 9.0}), *others), get_gpu("A30"))
    problem = IntegerBatch(batch)
    _, after = raised(batch, "far")
    create = batch.operations.create[1]
    assert problem.ticks.seconds_below(after) == pytest.approx(10.0 + create)
    optimum = solve(batch, "brute-force").makespan
    assert optimum is not None
    assert bound(problem, ticks_of(problem, optimum)) < after


@pytest.mark.deep
def test_live_instances_count() -> None:
    first, second = (generate_batch(24, gpu="A30", seed=seed) for seed in (0, 10))
    schedule = solve(first, "far").schedule
    assert schedule is not None
    batch, _ = handover(first, schedule, second)
    problem = IntegerBatch(batch)
    most = ticks_of(problem, solve(batch, "search", time_limit=2.0, deterministic=True).makespan)
    # Without them it is a third too low.
    assert 0.99 * most < bound(problem, most) <= most


def test_whole_tasks_are_at_least_as_high() -> None:
    for seed in range(4):
        batch = generate_batch(9, seed=seed)
        problem = IntegerBatch(batch)
        most = ticks_of(problem, solve(batch, "far").makespan)
        tables = SubsetTables(problem, most)
        assert tables.fill(1, lambda: False)
        # All destructions of these batches are of some tenths of a second; the program knows the last ones better.
        longest = max(place.destroy for place in problem.places)
        assert 0.7 * tables.least < bound(problem, most) <= tables.least + longest
