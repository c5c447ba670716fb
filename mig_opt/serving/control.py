"""What a running method of :func:`mig_opt.deploy` may use, and where it reports what it finds."""

from __future__ import annotations

from collections.abc import Callable

from mig_opt.control import Limits
from mig_opt.serving.bounds import Relaxation
from mig_opt.serving.deployment import Deployment

Cost = tuple[int, int, int]
"""GPUs, compute slices and changes of a deployment: fewer of the first come before fewer of the next."""


class FleetControl(Limits):
    """Limits of a run, and the best that it has found so far.

    Parameters
    ----------
    time_limit, seed, workers
        As in :class:`Limits`.
    relaxation : Relaxation, optional
        What is known of the demand already.
    running : Deployment, optional
        What is running now, of which as much as possible should stay.
    align : callable, optional
        Numbers the GPUs of a deployment so that as much as possible of ``running`` stays.

    Attributes
    ----------
    relaxation : Relaxation or None
        What is known of the demand already.
    running : Deployment or None
        What is running now.
    deployment : Deployment or None
        The best one so far.
    lower_bound : int
        No deployment has fewer GPUs.
    reason : str
        Why the lower bound holds.
    proven : list of str
        The goals, in their order, for which nothing better exists: ``gpus``, ``compute slices``, ``changes``.
    infeasible : bool
        Whether there is no deployment at all.
    """

    def __init__(
        self,
        time_limit: float | None = None,
        seed: int = 0,
        workers: int | None = None,
        *,
        relaxation: Relaxation | None = None,
        running: Deployment | None = None,
        align: Callable[[Deployment], Deployment] = lambda deployment: deployment,
    ) -> None:
        super().__init__(time_limit, seed, workers)
        self.relaxation = relaxation
        self.running = running
        self.deployment: Deployment | None = None
        self.lower_bound = 0
        self.reason = ""
        self.proven: list[str] = []
        self.infeasible = False
        self._align = align
        self._best: Cost | None = None

    @property
    def cost(self) -> Cost | None:
        """The cost of the best deployment so far."""
        return self._best

    def offer(self, deployment: Deployment) -> bool:
        """Keep ``deployment`` if it is the best so far; return whether it is kept."""
        aligned = self._align(deployment)
        changes = 0 if self.running is None else self.running.changes_to(aligned)
        cost = aligned.used_gpus, aligned.compute_slices, changes
        with self._lock:
            if self._best is not None and cost >= self._best:
                return False
            self.deployment, self._best = aligned, cost
            return True

    def raise_bound(self, gpus: int, reason: str) -> None:
        """Report that no deployment has fewer than ``gpus`` GPUs, and why; lower bounds than known are ignored."""
        with self._lock:
            if gpus > self.lower_bound:
                self.lower_bound, self.reason = gpus, reason

    def prove(self, goal: str) -> None:
        """Report that nothing is better in a goal, given those that were reported before."""
        with self._lock:
            self.proven.append(goal)

    def refute(self, reason: str) -> None:
        """Report that there is no deployment at all, and why."""
        with self._lock:
            self.infeasible, self.reason = True, reason
