"""FAR: Family of Allocations and Repartitioning.

J. Villarrubia, L. Costero, F. D. Igual, K. Olcoz: "Leveraging Multi-Instance GPUs through moldable task scheduling",
Journal of Parallel and Distributed Computing 204 (2025), doi:10.1016/j.jpdc.2025.105128. Phase 1
(:mod:`~mig_opt.heuristics.far.allocation`) proposes a family of allocations of sizes to tasks, phase 2
(:mod:`~mig_opt.heuristics.far.repartitioning`) turns each into a schedule; the best one is kept.
"""

from __future__ import annotations

from mig_opt.batch import Batch
from mig_opt.control import Control
from mig_opt.heuristics.far.allocation import AllocationFamily
from mig_opt.heuristics.far.repartitioning import Repartitioning

__all__ = ["far"]

_SECONDS_PER_PLACEMENT, _SECONDS_PER_TASK = 1e-5, 1e-6
"""What it takes to make a plan for an allocation."""


def far(batch: Batch, control: Control, *, skip: bool = True) -> None:
    """Run FAR's phases 1 and 2 and offer the best schedule to ``control``.

    Parameters
    ----------
    batch : Batch
        Any number of GPUs; every task has a placement. Live instances of an initial state are reused where the
        repartitioning order reaches them, and destroyed when they are in the way.
    control : Control
        Limits and reports. When the time is up, the best schedule until then counts (there always is one).
    skip : bool
        Whether to skip allocations that cannot win. Along the family the area never decreases and the longest task
        never grows. Area / slices bounds every later allocation from below, so the first one that reaches the best
        makespan ends the search; an allocation whose longest task reaches it is passed over, and a schedule is given up
        as soon as its slices and what is left to run show that it will not be shorter. The result is the same.

    Notes
    -----
    O(n log n) for each allocation that is not skipped, of which there are at most (sizes - 1) * n + 1.
    """
    family = AllocationFamily(batch)
    repartitioning = Repartitioning(batch)
    slices = batch.gpus * batch.gpu.compute_slices
    best = float("inf")
    plan_seconds = _SECONDS_PER_PLACEMENT * len(repartitioning.nodes) + _SECONDS_PER_TASK * len(batch.tasks)
    while True:
        if skip and family.area / slices > best * (1 + 1e-9):
            break
        if not (skip and family.longest >= best):
            control.spend(plan_seconds)
            plan = repartitioning.plan(family, stop_at=best) if skip else repartitioning.plan(family)
            if plan is not None and plan.makespan < best:
                best = plan.makespan
                control.offer(plan.schedule())
        if control.expired or not family.advance():
            break
