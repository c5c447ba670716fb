"""The method ``search``: better schedules than FAR's from the loads of the slices.

FAR's schedule is where it begins. From there the local search on the load tree
(:mod:`mig_opt.batch.loads.local_search`) finds assignments of tasks to placements whose longest path through any slice
is short, operations included. That is nearly all of a makespan: what is missing is where operations wait for the
driver. So each assignment that could be better than the best schedule is timed, outer instances before inner ones, and
the best is kept.

It can be stopped at any time, and begins to gain after some milliseconds. Its neighbourhoods are what makes the
difference: about ten tasks find their best places at once, among all ways to place them (docs/explanation/search.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mig_opt.batch.batch import Batch
from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.local_search import Incumbent, TimedSearch
from mig_opt.batch.schedule import Schedule
from mig_opt.method.control import Control

_IDLE_CYCLES_PER_TASK, _MAX_IDLE_CYCLES = 4, 200
"""Cycles without gain after which it ends where there is no limit of time: for each task, and at most."""

_MAX_TASKS_AT_ONCE = 11
"""Number of tasks up to which all move at once, on one GPU or two: there is little to find after the first cycles."""


def search(batch: Batch, control: Control[Schedule]) -> None:
    """Improve the schedule in ``control`` until the time is up, or it can hardly be improved.

    Without a time limit, or with few tasks, the search ends when many cycles have brought nothing.
    """
    assert control.plan is not None
    if control.expired:
        return
    problem = IntegerBatch(batch)
    # The problem has no longer schedules than this one.
    if control.plan.makespan > problem.horizon.seconds:
        control.report_plan(problem.horizon.schedule)
    count = len(batch.tasks)
    endless = control.remaining is not None and count > _MAX_TASKS_AT_ONCE
    idle_cycles = math.inf if endless else min(_IDLE_CYCLES_PER_TASK * count, _MAX_IDLE_CYCLES)
    if not TimedSearch.possible(problem, control):
        return

    def upper() -> int:
        assert control.objective is not None
        return problem.ticks.nearest(control.objective)

    def time(places: Sequence[int], _: float) -> bool:
        control.report_plan(problem.nested(places))
        return True

    incumbent = Incumbent(lower=lambda: problem.ticks.floor(control.lower_bound), upper=upper, time=time)
    TimedSearch(problem, control, incumbent).run(idle_cycles)
