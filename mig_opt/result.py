"""What a method returns."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from mig_opt.batch.schedule import Schedule
from mig_opt.fleet.state import FleetState, Migration
from mig_opt.serving.deployment import Deployment

Plan = TypeVar("Plan")
"""A schedule, a deployment, the migrations of a defragmentation, or the steps of a change."""


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
    """Best objective and best lower bound at one moment of a run.

    Attributes
    ----------
    seconds : float
        Since the start of the run.
    objective : float or None
        Of the best plan so far: seconds of makespan for a schedule, GPUs for a deployment.
    lower_bound : float
        Best lower bound on the objective so far.
    """

    seconds: float
    objective: float | None
    lower_bound: float

    @property
    def makespan(self) -> float | None:
        """The objective, where that is the makespan of a schedule in seconds."""
        return self.objective


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


@dataclass(frozen=True, slots=True)
class DefragmentationResult:
    """The outcome of :func:`mig_opt.defragment`.

    Fragmentation is the mean over the GPUs of the fragmentation cost (the fragmentation-aware paper, section IV-B).

    Attributes
    ----------
    status : Status
        How the run ended; ``optimal`` if no plan is better in any goal.
    state : FleetState
        What there was before.
    migrations : tuple of Migration or None
        In an order in which each can be done; None if no plan was found. The plan has passed the validator.
    lower_bound : int
        No plan that ends with as little fragmentation, or with the room that was asked for, has fewer migrations.
    fragmentation_before : float
        From 0 to 1.
    least_fragmentation : float
        No allowed plan ends with less fragmentation; 0 where that was not asked for.
    fragmentation : float or None
        At the end; None without a plan.
    room : tuple of (int, str, int)
        GPU, profile and start slice of the instances for which room was asked: where they can all be created at the
        end.
    reason : str
        Why there is no plan.
    runtime_s : float
        Wall-clock seconds.
    proven : tuple of str
        The goals in which nothing is better, each given those before it: ``fragmentation``, ``migrations``.
    seed : int
        The seed that was used.
    versions : mapping of str to str
        Versions of this package and of what it ran.
    """

    status: Status
    state: FleetState
    migrations: tuple[Migration, ...] | None
    lower_bound: int
    fragmentation_before: float
    least_fragmentation: float
    fragmentation: float | None
    room: tuple[tuple[int, str, int], ...]
    reason: str
    runtime_s: float
    proven: tuple[str, ...] = ()
    seed: int = 0
    versions: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def after(self) -> FleetState | None:
        """What there is after the migrations; None without a plan."""
        return None if self.migrations is None else self.state.after(self.migrations)

    @property
    def gap(self) -> float | None:
        """``(migrations - lower_bound) / migrations``; None without a plan."""
        return None if self.migrations is None else relative_gap(len(self.migrations), self.lower_bound)

    def __str__(self) -> str:
        after = "-" if self.fragmentation is None else f"{self.fragmentation:.3f}"
        rows = [
            ("status", self.status.value),
            ("migrations", "-" if self.migrations is None else str(len(self.migrations))),
            ("lower bound", str(self.lower_bound)),
            ("fragmented", f"{self.fragmentation_before:.3f} before, {after} after"),
            ("runtime", f"{self.runtime_s:.3f} s"),
        ]
        return "\n".join(f"{label:<12} {value}" for label, value in rows)


def relative_gap(makespan: float, lower_bound: float) -> float:
    """Return ``(makespan - lower_bound) / makespan``, 0 if they meet or the makespan is 0."""
    if makespan <= 0 or lower_bound >= makespan:
        return 0.0
    return (makespan - lower_bound) / makespan
