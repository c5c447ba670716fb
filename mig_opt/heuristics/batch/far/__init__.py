"""FAR: Family of Allocations and Repartitioning.

J. Villarrubia, L. Costero, F. D. Igual, K. Olcoz: "Leveraging Multi-Instance GPUs through moldable task scheduling",
Journal of Parallel and Distributed Computing 204 (2025), doi:10.1016/j.jpdc.2025.105128. Phase 1 proposes a family of
allocations of sizes to tasks, phase 2 turns each into a schedule and keeps the best one
(:mod:`~mig_opt.heuristics.batch.far.repartitioning`), and phase 3 moves and swaps tasks of that one
(:mod:`~mig_opt.heuristics.batch.far.refinement`). The schedules of a stream of batches are joined by
:mod:`~mig_opt.heuristics.batch.far.concatenation`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

from mig_opt.batch.batch import Batch
from mig_opt.batch.schedule import Schedule
from mig_opt.heuristics.batch.far.published import PublishedPlan
from mig_opt.heuristics.batch.far.refinement import Refinement
from mig_opt.heuristics.batch.far.repartitioning import AllocationFamily, Repartitioning, RepartitionPlan
from mig_opt.heuristics.batch.kinds import by_kind
from mig_opt.method.control import Control

__all__ = ["best_plans", "best_published", "far", "far_printed", "far_published", "far_unrefined"]

_SECONDS_PER_PLACEMENT, _SECONDS_PER_TASK = 1e-5, 1e-6
"""Seconds to make a plan for an allocation."""
_SECONDS_PER_GPU = 3e-4
"""Seconds to set up a refinement, and to time what it comes to."""
_REFINEMENT_SHARE = 0.1
"""Share of a time limit that is kept for the refinement."""
_MAX_STARTS = 3
"""Schedules of phase 2 from which the refinement starts."""
_MAX_TASKS_UNLIMITED = 100
"""Number of tasks above which a time limit may end phases 1 and 2 early: with fewer they take milliseconds."""

_Plan = TypeVar("_Plan", RepartitionPlan, PublishedPlan)


@by_kind
def far(batch: Batch, control: Control[Schedule]) -> None:
    """Run FAR with the best of several readings of its phase 3; there always is a schedule when the time is up.

    The best schedules of phase 2, up to three, are refined as printed, then with steps to several instances
    (:meth:`mig_opt.heuristics.batch.far.refinement.Refinement.run`). So is the one to which the authors' program comes
    (:mod:`~mig_opt.heuristics.batch.far.published`). The shortest schedule counts.

    Live instances of an initial state are reused where the repartitioning order reaches them, and destroyed when they
    are in the way.

    Notes
    -----
    O(n log n) for each allocation that is not skipped, of which there are at most (sizes - 1) * n + 1.
    """
    for plan in best_plans(batch, control):
        if _can_refine(batch, control):
            refinement = Refinement(batch, plan.instances())
            refinement.run(control)
            refinement.run(control, several=True)
            _offer(refinement, control)
    published = _published(batch, control)
    if published is not None:
        _offer(published, control)
        published.run(control, several=True)
        _offer(published, control)


@by_kind
def far_printed(batch: Batch, control: Control[Schedule]) -> None:
    """Run FAR as printed: the best schedule of phase 2, refined with the paper's margins; each step is judged."""
    refinement = Refinement(batch, best_plans(batch, control)[0].instances())
    refinement.run(control)
    _offer(refinement, control)


@by_kind
def far_published(batch: Batch, control: Control[Schedule]) -> None:
    """Run FAR as its authors' program does.

    The operations of its schedule are timed as in every other method. The program knows no live instances: with some,
    phases 1 and 2 are all that is run.
    """
    refinement = None if batch.initial else _published(batch, control)
    if refinement is None:
        far_unrefined(batch, control)
    else:
        control.report_plan(refinement.schedule())


@by_kind
def far_unrefined(batch: Batch, control: Control[Schedule]) -> None:
    """Run FAR's phases 1 and 2 only."""
    best_plans(batch, control)


def best_plans(batch: Batch, control: Control[Schedule]) -> list[RepartitionPlan]:
    """Run phases 1 and 2, report each schedule better than those before, and return the last plans, best first."""
    found = deque[RepartitionPlan](maxlen=_MAX_STARTS)
    for plan in _shorter_plans(batch, control, partial(RepartitionPlan, Repartitioning(batch))):
        found.appendleft(plan)
        control.report_plan(plan.schedule())
    return [*found]


def best_published(batch: Batch, control: Control[Schedule]) -> PublishedPlan:
    """Run phases 1 and 2 as the authors' program does, and return its plan; live instances do not count."""
    return deque(_shorter_plans(batch, control, partial(PublishedPlan, batch)), maxlen=1)[0]


def _published(batch: Batch, control: Control[Schedule]) -> Refinement | None:
    """Return what the authors' program makes of a batch, or None if there are live instances or the time is up."""
    if batch.initial or not _can_refine(batch, control):
        return None
    best = best_published(batch, control)
    best.refine(over=lambda: control.expired)
    return Refinement(batch, best.instances())


def _can_refine(batch: Batch, control: Control[Schedule]) -> bool:
    return not control.expired and control.left > _SECONDS_PER_GPU * batch.gpus


def _shorter_plans(
    batch: Batch, control: Control[Schedule], plan_of: Callable[[AllocationFamily, float], _Plan]
) -> Iterator[_Plan]:
    """Go through the allocations, and yield each plan that is shorter than all before.

    Along the family the area never decreases and the longest task never grows. Area / slices bounds every later
    allocation from below, so the first one that reaches the best makespan ends the search; an allocation whose longest
    task reaches it is skipped, and ``plan_of`` may give up what will not be shorter than the seconds that it gets.
    """
    family = AllocationFamily(batch)
    slices = batch.gpus * batch.kind(0).compute_slices
    kept = _REFINEMENT_SHARE * (control.remaining or 0.0) + _SECONDS_PER_GPU * batch.gpus
    plan_seconds = _SECONDS_PER_PLACEMENT * len(batch.placements()) * batch.gpus + _SECONDS_PER_TASK * len(batch.tasks)
    least = float("inf")
    while family.area / slices <= least * (1 + 1e-9):
        if family.longest < least:
            control.spend(plan_seconds)
            plan = plan_of(family, least)
            if plan.makespan < least:
                least = plan.makespan
                yield plan
        late = len(batch.tasks) > _MAX_TASKS_UNLIMITED and control.left <= kept
        if late or control.done or not family.advance():
            break


def _offer(refinement: Refinement, control: Control[Schedule]) -> None:
    if control.objective is None or refinement.makespan < control.objective:
        control.report_plan(refinement.schedule())
