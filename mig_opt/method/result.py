"""Outcome of a run: a plan, how good it is, and what is proven about it."""

from __future__ import annotations

import contextlib
import enum
import platform
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Self, TypeVar

from mig_opt._version import __version__
from mig_opt.method.report import Facts, spelled_status
from mig_opt.method.shown import Carded

Plan = TypeVar("Plan")
"""A schedule, a deployment, the migrations of a defragmentation, or the steps of a change."""

RESOLUTION = 1e-6
"""The share by which a makespan and a lower bound may differ and still count as equal, if times are not exact."""

_FELT = 0.05  # seconds of loading that a user notices


class Status(enum.StrEnum):
    """Outcome of a run in one word."""

    OPTIMAL = "optimal"
    """Proven: no plan for the problem, whatever its form, is better (within the resolution of the model)."""
    FEASIBLE = "feasible"
    """A plan, with a lower bound that may be below its objective."""
    INFEASIBLE = "infeasible"
    """Proven: there is no plan."""
    NO_SOLUTION = "no_solution"
    """The method ended without a plan and without a proof that there is none."""
    INTERRUPTED = "interrupted"
    """Stopped by Ctrl-C; the best plan until then is kept."""


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
class Result(Carded, ABC, Generic[Plan]):
    """Outcome of a run, whatever the problem.

    Attributes
    ----------
    status : Status
        How the run ended.
    method : str
        The method that ran.
    plan : Plan or None
        The best plan found, which has passed its validator: a schedule, a deployment, ...
    lower_bound : float
        No plan has a smaller objective.
    runtime_s : float
        Wall-clock seconds of the method.
    trajectory : tuple of TrajectoryPoint
        Every improvement of the plan or the bound.
    seed : int
        The seed that was used.
    versions : mapping of str to str
        Versions of this package and of what it ran.
    reason : str
        Why the lower bound holds, or why there is no plan; empty if the method does not say.
    proven : tuple of str
        The goals in which no plan is better, each given those before it.
    loading_s : float
        Wall-clock seconds before, in which the method was imported; the time limit does not count them.
    """

    status: Status
    method: str
    plan: Plan | None
    lower_bound: float
    runtime_s: float
    trajectory: tuple[TrajectoryPoint, ...] = ()
    seed: int = 0
    versions: Mapping[str, str] = field(default_factory=dict, hash=False)
    reason: str = ""
    proven: tuple[str, ...] = ()
    loading_s: float = 0.0

    @property
    @abstractmethod
    def objective(self) -> float | None:
        """First goal of the plan, to which the lower bound belongs; None without a plan."""

    @abstractmethod
    def figures(self) -> Facts:
        """Return the facts between status and runtime."""

    def facts(self) -> Facts:
        """Return all facts, as terminals and cards show them."""
        loading = f", after {self.loading_s:.3f} s of loading" if self.loading_s >= _FELT else ""
        runtime = ("runtime", f"{self.runtime_s:.3f} s{loading}")
        return [("status", spelled_status(self.status)), *self.figures(), runtime]

    @property
    def gap(self) -> float | None:
        """``(objective - lower_bound) / objective``; None without a plan."""
        return None if self.objective is None else relative_gap(self.objective, self.lower_bound)

    def uninterrupted(self) -> Self:
        """Return this result of a run inside of another one, which Ctrl-C ends as well.

        Raises
        ------
        KeyboardInterrupt
            If it has ended this one.
        """
        if self.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return self

    def __str__(self) -> str:
        return card(self.facts())


def card(facts: Facts) -> str:
    """Return facts as lines, their texts below each other."""
    told = [(label, text) for label, text in facts if text is not None]
    width = max((len(label) for label, _ in told), default=0)
    return "\n".join(f"{label:{width}}  {text}" for label, text in told)


def relative_gap(objective: float, lower_bound: float) -> float:
    """Return ``(objective - lower_bound) / objective``, 0 if they meet or the objective is 0."""
    if objective <= 0 or lower_bound >= objective:
        return 0.0
    return (objective - lower_bound) / objective


def versions_with(packages: Iterable[str] = ()) -> dict[str, str]:
    """Return the versions of this package, of Python, and of those of ``packages`` that are installed."""
    import importlib.metadata  # takes a while, and most commands have no use for it

    versions = {"mig-opt": __version__, "python": platform.python_version()}
    for package in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    return versions
