"""The load program: its bound is never above a schedule, and never above the height of whole tasks."""

from __future__ import annotations

from hypothesis import given, settings
from strategies import realistic_batches, tiny_batches

from mig_opt import Batch, Status, generate_batch, handover, solve
from mig_opt.control import Control
from mig_opt.loads.tables import HeightTables
from mig_opt.models.highs import Highs
from mig_opt.models.load_program import LoadProgram
from mig_opt.models.lpsolvers import solve_program
from mig_opt.ticked import TickedBatch


def bound(problem: TickedBatch, at_most: int) -> int:
    program, backend = LoadProgram(problem, at_least=0, at_most=at_most), Highs()
    bounds = [0]
    found = solve_program(
        program.linear.program,
        backend,
        Control(workers=1),
        share=1.0,
        on_bound=lambda units: bounds.append(program.bound(units, backend.tolerance)),
    )
    # There is a schedule within the limit, so there is a solution.
    assert found.status is not Status.INFEASIBLE
    return max(bounds)


def ticks_of(problem: TickedBatch, makespan: float | None) -> int:
    assert makespan is not None
    return problem.ticks.nearest(makespan) if problem.ticks.exact else problem.ticks.floor(makespan) + 1


@given(tiny_batches)
@settings(max_examples=50)
def test_never_above_the_optimum_of_brute_force(batch: Batch) -> None:
    problem = TickedBatch(batch)
    most = ticks_of(problem, solve(batch, "brute-force").makespan)
    assert bound(problem, most) <= most


@given(realistic_batches(max_tasks=6))
@settings(max_examples=25)
def test_never_above_the_schedule_of_far(batch: Batch) -> None:
    problem = TickedBatch(batch)
    most = ticks_of(problem, solve(batch, "far").makespan)
    assert bound(problem, most) <= most


def test_live_instances_count() -> None:
    first, second = (generate_batch(24, gpu="A30", seed=seed) for seed in (0, 10))
    schedule = solve(first, "far").schedule
    assert schedule is not None
    batch, _ = handover(first, schedule, second)
    problem = TickedBatch(batch)
    most = ticks_of(problem, solve(batch, "search", time_limit=2.0, deterministic=True).makespan)
    # Without them it is a third too low.
    assert 0.99 * most < bound(problem, most) <= most


def test_whole_tasks_are_at_least_as_high() -> None:
    for seed in range(4):
        batch = generate_batch(9, seed=seed)
        problem = TickedBatch(batch)
        most = ticks_of(problem, solve(batch, "far").makespan)
        tables = HeightTables(problem, most)
        assert tables.fill(1, lambda: False)
        # All destructions of these batches are of some tenths of a second; the program knows the last ones better.
        longest = max(place.destroy for place in problem.places)
        assert 0.7 * tables.least < bound(problem, most) <= tables.least + longest
