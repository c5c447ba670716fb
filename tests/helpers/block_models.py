"""Block models and searches of batches, and batches in which the relaxed model is below every schedule."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import assume
from ortools.sat.python import cp_model
from strategies import Decisions
from whole_problems import whole_problem

from mig_opt import Batch, LiveInstance, OperationCosts, Schedule, Task, get_gpu, solve
from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.timing import timed_schedule
from mig_opt.method.control import Control
from mig_opt.method.options import RunOptions
from mig_opt.models.batch.block_formulation import BlockForm
from mig_opt.models.batch.block_model import BlockModel
from mig_opt.models.batch.portfolio import CpSearch
from mig_opt.models.solvers.backend import IntegerOutcome, Request
from mig_opt.models.solvers.cpsat import run

A30 = get_gpu("A30")


def search_from(batch: Batch, known: str | Schedule = "far", **options: Any) -> CpSearch:
    """A search that knows a schedule, or that of a method; options are those of a run, one worker if none is said."""
    control = Control[Schedule](RunOptions(**(options or {"workers": 1})))
    control.report_plan(solve(batch, known).schedule if isinstance(known, str) else known)
    return CpSearch(batch, control)


def most_ticks(batch: Batch, method: str = "brute-force", **options: Any) -> int:
    """The ticks by which the schedule of a method is over."""
    return ticks_of(IntegerBatch(batch), solve(batch, method, **options).makespan)


def ticks_of(problem: IntegerBatch, makespan: float | None) -> int:
    """The ticks of a makespan, or where they are not exact so many that it is over by then."""
    return problem.ticks.nearest(makespan) if problem.ticks.exact else problem.ticks.floor(makespan) + 1


def block_form(problem: IntegerBatch, *, relaxed: bool, copies: Mapping[int, int] | None = None) -> BlockForm:
    """A form with time for all tasks one after the other."""
    operations = max(place.create + place.destroy for place in problem.places)
    horizon = sum(problem.ticks.floor(max(task.times.values())) + operations for task in problem.batch.tasks)
    horizon += sum(place.free + place.destroy for place in problem.places if place.free is not None)
    return BlockForm(at_most=horizon, relaxed=relaxed, copies=copies or {})


def timed(case: Decisions) -> tuple[IntegerBatch, Schedule, int]:
    """The problem of decisions with all of its places, their schedule, and the ticks that it takes."""
    schedule = timed_schedule(case.batch, case.instances, case.operations)
    problem = whole_problem(case.batch)
    assume(problem.gpus[-1] == case.batch.gpus - 1)
    return problem, schedule, ticks_of(problem, schedule.makespan)


def block_model(batch: Batch, **form: Any) -> BlockModel:
    problem = IntegerBatch(batch)
    return BlockModel(problem, block_form(problem, **form))


def solved(model: cp_model.CpModel) -> IntegerOutcome:
    return run(model, Control[Schedule](RunOptions(workers=1)), Request())


def optimum(model: BlockModel) -> int:
    outcome = solved(model.model)
    assert outcome.proven
    return outcome.objective


def costs(create: tuple[float, float, float], destroy: tuple[float, float, float]) -> OperationCosts:
    return OperationCosts(dict(zip(A30.sizes, create, strict=True)), dict(zip(A30.sizes, destroy, strict=True)))


def tasks(*times: dict[int, float]) -> tuple[Task, ...]:
    return tuple(Task(f"t{index}", row) for index, row in enumerate(times))


LATE_INSTANCE = Batch(
    tasks({4: 5.0}, {4: 3.0}, {1: 5.0, 2: 1.0}),
    A30,
    operations=costs((0, 0, 1), (5, 0, 0)),
    initial=(LiveInstance(0, "1g.6gb", 1, 6.0),),
)
"""t2 on 2g@2 0-1; the live 1g@1 is free at 6 and destroyed until 11; then 4g@0 is created until 12, t0 and t1 until 20.
The relaxed model makes 4g@0 loose: on slice 1 come 1 + 1 + 5 + 3 and then the 1g@1, never destroyed: 10, and somewhere
t2: 11."""


FREE_DESTRUCTIONS = Batch(
    tasks({1: 2.0, 4: 2.0}, {1: 6.0}, {4: 2.0}, {1: 4.0, 4: 4.0}), A30, operations=costs((5, 5, 0), (0, 2, 0))
)


GAPS = [pytest.param(LATE_INSTANCE, 11, 20, id="late instance"), pytest.param(FREE_DESTRUCTIONS, 15, 16, id="empty")]
