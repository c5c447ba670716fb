"""FAR: Family of Allocations and Repartitioning.

J. Villarrubia, L. Costero, F. D. Igual, K. Olcoz: "Leveraging Multi-Instance GPUs through moldable task scheduling",
Journal of Parallel and Distributed Computing 204 (2025), doi:10.1016/j.jpdc.2025.105128. Phase 1
(:mod:`~mig_opt.heuristics.batch.far.allocation`) proposes a family of allocations of sizes to tasks, phase 2
(:mod:`~mig_opt.heuristics.batch.far.repartitioning`) turns each into a schedule and keeps the best one, and phase 3
(:mod:`~mig_opt.heuristics.batch.far.refinement`) moves and swaps tasks of that one. The schedules of a stream of
batches are joined by :mod:`~mig_opt.heuristics.batch.far.concatenation`.
"""

from __future__ import annotations

from collections.abc import Callable

from mig_opt.batch.batch import Batch
from mig_opt.batch.schedule import Schedule
from mig_opt.heuristics.batch.far.allocation import AllocationFamily
from mig_opt.heuristics.batch.far.concatenation import EndState
from mig_opt.heuristics.batch.far.published import PublishedPlan
from mig_opt.heuristics.batch.far.refinement import Refinement
from mig_opt.heuristics.batch.far.repartitioning import Repartitioning, RepartitionPlan
from mig_opt.method.control import Control

__all__ = [
    "best_plan",
    "best_plans",
    "best_published",
    "far",
    "far_behind",
    "far_printed",
    "far_published",
    "far_unrefined",
]

_SECONDS_PER_PLACEMENT, _SECONDS_PER_TASK = 1e-5, 1e-6
"""What it takes to make a plan for an allocation."""
_SHARE_OF_REFINEMENT = 0.1
"""Of a time limit."""
_STARTS = 3
"""Schedules of phase 2 from which the refinement starts."""
_ALWAYS = 100
"""Up to so many tasks phases 1 and 2 take milliseconds, and are done whatever the time limit."""


def far(
    batch: Batch,
    control: Control[Schedule],
    *,
    refine: bool = True,
    max_steps: int | None = None,
    min_improvement: float = 0.0,
    skip: bool = True,
) -> None:
    """Run FAR with the best of several readings of its phase 3; there always is a schedule when the time is up.

    The best schedules of phase 2, up to three, are refined as printed, then with steps to several instances
    (:meth:`mig_opt.heuristics.batch.far.refinement.Refinement.run`). So is the one to which the authors' program comes
    (:mod:`~mig_opt.heuristics.batch.far.published`). The shortest schedule counts.

    Live instances of an initial state are reused where the repartitioning order reaches them, and destroyed when they
    are in the way.

    Parameters
    ----------
    refine : bool
        Whether phase 3 follows. With a time limit, a tenth of the time is kept for it.
    max_steps, min_improvement
        When a refinement ends early, see :meth:`mig_opt.heuristics.batch.far.refinement.Refinement.run`.
    skip : bool
        Whether to skip allocations that cannot win. Along the family the area never decreases and the longest task
        never grows. Area / slices bounds every later allocation from below, so the first one that reaches the best
        makespan ends the search; an allocation whose longest task reaches it is passed over, and a schedule is given up
        as soon as its slices and what is left to run show that it will not be shorter. The result is the same.

    Notes
    -----
    O(n log n) for each allocation that is not skipped, of which there are at most (sizes - 1) * n + 1.
    """
    kept = _SHARE_OF_REFINEMENT * (control.remaining or 0.0) if refine else 0.0
    plans = best_plans(batch, control, kept=kept, skip=skip)
    if not refine:
        return
    for plan in plans:
        if not (control.done or control.expired):
            refinement = Refinement(batch, plan.slots())
            refinement.run(control, max_steps=max_steps, min_improvement=min_improvement)
            refinement.run(control, several=True, max_steps=max_steps, min_improvement=min_improvement)
            _offer(refinement, control)
    published = _published(batch, control)
    if published is not None:
        _offer(published, control)
        published.run(control, several=True, max_steps=max_steps, min_improvement=min_improvement)
        _offer(published, control)


def far_printed(batch: Batch, control: Control[Schedule]) -> None:
    """Run FAR as printed: the best schedule of phase 2, refined with the paper's margins; each step is judged."""
    refinement = Refinement(batch, best_plan(batch, control).slots())
    refinement.run(control)
    _offer(refinement, control)


def far_published(batch: Batch, control: Control[Schedule]) -> None:
    """Run FAR as its authors' program does.

    The operations of its schedule are timed as in every other method. The program knows no live instances: with some,
    phases 1 and 2 are all that is run.
    """
    refinement = None if batch.initial else _published(batch, control)
    if refinement is None:
        far_unrefined(batch, control)
    else:
        control.offer(refinement.schedule())


def far_behind(batch: Batch, state: EndState, control: Control[Schedule]) -> list[Schedule]:
    """Return schedules for empty GPUs that may fit behind another one, to be joined like any others.

    They are that of the authors' program; the same, refined once more with the slices that are busy in ``state``
    (:meth:`mig_opt.heuristics.batch.far.published.PublishedPlan.refine`); and the same with the steps that the program
    takes when it joins batches (:meth:`mig_opt.heuristics.batch.far.published.PublishedPlan.refine_behind`).
    """
    plan = best_published(batch, control)
    plan.refine()
    live = {
        (gpu, position): free
        for (gpu, profile, start), free in state.live.items()
        for position in batch.gpu.placement(profile, start).footprint
    }
    plans = [plan, plan.copy(), plan.copy()]
    plans[1].refine(live)
    plans[2].refine_behind({**state.clear, **live})
    return [Refinement(batch, each.slots()).schedule() for each in plans]


def far_unrefined(batch: Batch, control: Control[Schedule]) -> None:
    """Run FAR's phases 1 and 2 only."""
    best_plan(batch, control)


def best_plan(batch: Batch, control: Control[Schedule]) -> RepartitionPlan:
    """Run phases 1 and 2, offer each schedule that is better than those before, and return the last plan."""
    return best_plans(batch, control)[0]


def best_plans(
    batch: Batch, control: Control[Schedule], *, kept: float = 0.0, skip: bool = True
) -> list[RepartitionPlan]:
    """Run phases 1 and 2, offer each schedule that is better than those before, and return the last plans, best first.

    ``kept`` seconds of the time limit are left over, if there are more than some hundred tasks: fewer take no time.
    ``skip`` is as for :func:`far`.
    """
    family = AllocationFamily(batch)
    repartitioning = Repartitioning(batch)
    found: list[RepartitionPlan] = []

    def plan_within(stop_at: float) -> float:
        plan = repartitioning.plan(family, stop_at=stop_at) if skip else repartitioning.plan(family)
        if plan is None or plan.makespan >= stop_at:
            return stop_at
        found.append(plan)
        control.offer(plan.schedule())
        return plan.makespan

    _search(batch, control, family, plan_within, kept=kept, skip=skip)
    return found[: -_STARTS - 1 : -1]


def best_published(batch: Batch, control: Control[Schedule]) -> PublishedPlan:
    """Run phases 1 and 2 as the authors' program does, and return its plan; live instances do not count."""
    family = AllocationFamily(batch)
    repartitioning = Repartitioning(batch)
    best: list[PublishedPlan] = []

    def plan_within(stop_at: float) -> float:
        plan = PublishedPlan(repartitioning, family, stop_at)
        if plan.makespan < stop_at:
            best[:] = [plan]
        return min(plan.makespan, stop_at)

    _search(batch, control, family, plan_within)
    return best[0]


def _published(batch: Batch, control: Control[Schedule]) -> Refinement | None:
    """Return what the authors' program makes of a batch, or None if there are live instances or the time is up."""
    if batch.initial or control.done or control.expired:
        return None
    best = best_published(batch, control)
    best.refine()
    return Refinement(batch, best.slots())


def _search(
    batch: Batch,
    control: Control[Schedule],
    family: AllocationFamily,
    plan_within: Callable[[float], float],
    *,
    kept: float = 0.0,
    skip: bool = True,
) -> None:
    """Go through the allocations; ``plan_within`` plans one and returns the least makespan so far."""
    slices = batch.gpus * batch.gpu.compute_slices
    plan_seconds = _SECONDS_PER_PLACEMENT * len(batch.placements()) * batch.gpus + _SECONDS_PER_TASK * len(batch.tasks)
    least = float("inf")
    while not (skip and family.area / slices > least * (1 + 1e-9)):
        if not (skip and family.longest >= least):
            control.spend(plan_seconds)
            least = plan_within(least)
        late = len(batch.tasks) > _ALWAYS and control.remaining is not None and control.remaining <= kept
        if late or control.done or not family.advance():
            break


def _offer(refinement: Refinement, control: Control[Schedule]) -> None:
    if control.objective is None or refinement.makespan < control.objective:
        control.offer(refinement.schedule())
