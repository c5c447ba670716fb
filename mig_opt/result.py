"""What a method returns."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from mig_opt.deployment import Deployment
from mig_opt.schedule import Schedule


class Status(enum.StrEnum):
    """How a run of a method ended."""

    OPTIMAL = "optimal"
    """Proven: no schedule of the problem, whatever its form, is shorter (within the resolution of the model)."""
    FEASIBLE = "feasible"
    """A schedule, with a lower bound that may be below its makespan."""
    INFEASIBLE = "infeasible"
    """Proven: there is no schedule."""
    NO_SOLUTION = "no_solution"
    """The method ended without a schedule and without a proof that there is none."""
    INTERRUPTED = "interrupted"
    """Stopped by Ctrl-C; the best schedule until then is kept."""


@dataclass(frozen=True, slots=True)
class TrajectoryPoint:
    """What was known at some moment of the run.

    Attributes
    ----------
    seconds : float
        Since the start of the run.
    makespan : float or None
        Of the best schedule so far, in seconds.
    lower_bound : float
        Best lower bound so far, in seconds.
    """

    seconds: float
    makespan: float | None
    lower_bound: float


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of :func:`mig_opt.solve`.

    Attributes
    ----------
    status : Status
        How the run ended.
    method : str
        The method that ran.
    schedule : Schedule or None
        The best schedule found; it has passed the validator.
    lower_bound : float
        Seconds; no schedule of the batch has a smaller makespan.
    runtime_s : float
        Wall-clock seconds.
    trajectory : tuple of TrajectoryPoint
        Every improvement of the makespan or the bound.
    seed : int
        The seed that was used.
    versions : mapping of str to str
        Versions of this package and of what it ran.
    """

    status: Status
    method: str
    schedule: Schedule | None
    lower_bound: float
    runtime_s: float
    trajectory: tuple[TrajectoryPoint, ...] = ()
    seed: int = 0
    versions: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def makespan(self) -> float | None:
        """Makespan of the schedule in seconds; None without a schedule."""
        return None if self.schedule is None else self.schedule.makespan

    @property
    def gap(self) -> float | None:
        """``(makespan - lower_bound) / makespan``; None without a schedule."""
        return None if self.makespan is None else relative_gap(self.makespan, self.lower_bound)

    def __str__(self) -> str:
        rows = [
            ("status", self.status.value),
            ("method", self.method),
            ("makespan", "-" if self.makespan is None else f"{self.makespan:.6g} s"),
            ("lower bound", f"{self.lower_bound:.6g} s"),
            ("gap", "-" if self.gap is None else f"{self.gap:.3%}"),
            ("runtime", f"{self.runtime_s:.2f} s"),
        ]
        return "\n".join(f"{label:<12} {value}" for label, value in rows)


@dataclass(frozen=True, slots=True)
class DeploymentResult:
    """The outcome of :func:`mig_opt.deploy`.

    Attributes
    ----------
    status : Status
        How the run ended; ``optimal`` if no deployment has fewer GPUs.
    method : str
        The method that ran.
    deployment : Deployment or None
        The best deployment found; it has passed the validator.
    lower_bound : int
        No deployment has fewer GPUs; 0 if that is not known, or if there is none at all.
    reason : str
        Why the lower bound holds, or why there is no deployment.
    runtime_s : float
        Wall-clock seconds.
    proven : tuple of str
        The goals in which nothing is better, each given those before it: ``gpus``, ``compute slices``, ``changes``.
    seed : int
        The seed that was used.
    versions : mapping of str to str
        Versions of this package and of what it ran.
    """

    status: Status
    method: str
    deployment: Deployment | None
    lower_bound: int
    reason: str
    runtime_s: float
    proven: tuple[str, ...] = ()
    seed: int = 0
    versions: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def gpus(self) -> int | None:
        """GPUs with a segment; None without a deployment."""
        return None if self.deployment is None else self.deployment.used_gpus

    @property
    def compute_slices(self) -> int | None:
        """Compute slices of all segments; None without a deployment."""
        return None if self.deployment is None else self.deployment.compute_slices

    def __str__(self) -> str:
        rows = [
            ("status", self.status.value),
            ("method", self.method),
            ("GPUs", "-" if self.gpus is None else str(self.gpus)),
            ("lower bound", str(self.lower_bound)),
            ("slices", "-" if self.compute_slices is None else str(self.compute_slices)),
            ("runtime", f"{self.runtime_s:.3f} s"),
        ]
        return "\n".join(f"{label:<12} {value}" for label, value in rows)


def relative_gap(makespan: float, lower_bound: float) -> float:
    """Return ``(makespan - lower_bound) / makespan``, 0 if they meet or the makespan is 0."""
    if makespan <= 0 or lower_bound >= makespan:
        return 0.0
    return (makespan - lower_bound) / makespan
