"""FAR: Family of Allocations and Repartitioning.

J. Villarrubia, L. Costero, F. D. Igual, K. Olcoz: "Leveraging Multi-Instance GPUs through moldable task scheduling",
Journal of Parallel and Distributed Computing 204 (2025), doi:10.1016/j.jpdc.2025.105128. Phase 1
(:mod:`~mig_opt.heuristics.batch.far.allocation`) proposes a family of allocations of sizes to tasks, phase 2
(:mod:`~mig_opt.heuristics.batch.far.repartitioning`) turns each into a schedule and keeps the best one, and phase 3
(:mod:`~mig_opt.heuristics.batch.far.refinement`) moves and swaps tasks of that one. The schedules of a stream of
batches are joined by :mod:`~mig_opt.heuristics.batch.far.concatenation`.
"""

from __future__ import annotations

from mig_opt.batch.batch import Batch
from mig_opt.batch.schedule import Schedule
from mig_opt.control import Control
from mig_opt.heuristics.batch.far.allocation import AllocationFamily
from mig_opt.heuristics.batch.far.refinement import Refinement
from mig_opt.heuristics.batch.far.repartitioning import Repartitioning, RepartitionPlan

__all__ = ["best_plan", "far", "far_unrefined"]

_SECONDS_PER_PLACEMENT, _SECONDS_PER_TASK = 1e-5, 1e-6
"""What it takes to make a plan for an allocation."""
_SHARE_OF_REFINEMENT = 0.1
"""Of a time limit."""


def far(
    batch: Batch,
    control: Control[Schedule],
    *,
    refine: bool = True,
    max_steps: int | None = None,
    min_improvement: float = 0.0,
    skip: bool = True,
) -> None:
    """Run FAR and offer the best schedule to ``control``; there always is one when the time is up.

    Live instances of an initial state are reused where the repartitioning order reaches them, and destroyed when they
    are in the way.

    Parameters
    ----------
    refine : bool
        Whether phase 3 follows. Its schedule counts only if it is shorter than that of phase 2. With a time limit, a
        tenth of the time is kept for it.
    max_steps, min_improvement
        When phase 3 ends early, see :meth:`mig_opt.heuristics.batch.far.refinement.Refinement.run`.
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
    best = best_plan(batch, control, kept=kept, skip=skip)
    if refine and not control.expired:
        refinement = Refinement(batch, best.slots())
        refinement.run(control, max_steps=max_steps, min_improvement=min_improvement)
        if control.objective is None or refinement.makespan < control.objective:
            control.offer(refinement.schedule())


def far_unrefined(batch: Batch, control: Control[Schedule]) -> None:
    """Run FAR's phases 1 and 2 only."""
    far(batch, control, refine=False)


def best_plan(batch: Batch, control: Control[Schedule], *, kept: float = 0.0, skip: bool = True) -> RepartitionPlan:
    """Run phases 1 and 2, offer each schedule that is better than those before, and return the last plan.

    ``kept`` seconds of the time limit are left over; ``skip`` is as for :func:`far`.
    """
    family = AllocationFamily(batch)
    repartitioning = Repartitioning(batch)
    slices = batch.gpus * batch.gpu.compute_slices
    best: RepartitionPlan | None = None
    least = float("inf")
    plan_seconds = _SECONDS_PER_PLACEMENT * len(repartitioning.nodes) + _SECONDS_PER_TASK * len(batch.tasks)
    while True:
        if skip and family.area / slices > least * (1 + 1e-9):
            break
        if not (skip and family.longest >= least):
            control.spend(plan_seconds)
            plan = repartitioning.plan(family, stop_at=least) if skip else repartitioning.plan(family)
            if plan is not None and plan.makespan < least:
                best, least = plan, plan.makespan
                control.offer(plan.schedule())
        late = control.remaining is not None and control.remaining <= kept
        if late or control.done or not family.advance():
            break
    assert best is not None  # the first allocation has nothing to beat
    return best
