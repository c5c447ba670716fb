"""Explanations and their parts: conflicts, remedies, verdicts."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from mig_opt.api.explain.requirements import Requirement, spelled
from mig_opt.batch.schedule import Schedule


class Verdict(enum.StrEnum):
    """Answer to the question of an explanation."""

    POSSIBLE = "possible"
    """There is a schedule, by the target if there is one."""
    IMPOSSIBLE = "impossible"
    """Proven: there is none."""
    UNKNOWN = "unknown"
    """No schedule was found in the time, and no proof that there is none."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Requirements that cannot be met together.

    Attributes
    ----------
    requirements : tuple of Requirement
        In the order of the batch.
    open : tuple of Requirement
        Those of them that may be superfluous: the time did not suffice to find out. Without any one of the others the
        rest can be met.
    target : float or None
        Seconds within which the requirements cannot be met; None if they cannot be met at all.
    lower_bound : float
        Seconds that any schedule under these requirements takes at least; infinite if there is none.
    makespan : float or None
        Seconds of the best schedule under these requirements, but for the target, if one is known.
    """

    requirements: tuple[Requirement, ...]
    open: tuple[Requirement, ...]
    target: float | None
    lower_bound: float
    makespan: float | None

    @property
    def minimal(self) -> bool:
        """True if it is proven that no requirement is superfluous."""
        return not self.open


@dataclass(frozen=True, slots=True)
class Remedy:
    """A single change that makes possible what is not.

    Attributes
    ----------
    path : str
        What to change in the batch, such as ``gpus`` or ``tasks[3].memory_gb``; ``target`` for the target.
    text : str
        The change in words.
    makespan : float or None
        Seconds of a schedule of the batch with this change; None if the change only mends one task of several.
    """

    path: str
    text: str
    makespan: float | None

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Explanation:
    """Proof that a batch is infeasible, or that its makespan cannot be below a target or a lower bound.

    Attributes
    ----------
    verdict : Verdict
        Whether there is a schedule (by the target).
    target : float or None
        Seconds that were asked about.
    schedule : Schedule or None
        The best schedule of the batch that was found.
    lower_bound : float
        Seconds; no schedule of the batch takes less. Infinite if there is none.
    conflicts : tuple of Conflict
        Why not: for an infeasible batch one for each task that fits nowhere; for a target that cannot be met one;
        without a target one that says why the makespan is not below ``lower_bound``.
    remedies : tuple of Remedy
        What would help. There may be more.
    runtime_s : float
        Wall-clock seconds.
    interrupted : bool
        Whether Ctrl-C ended the work early.
    """

    verdict: Verdict
    target: float | None
    schedule: Schedule | None
    lower_bound: float
    conflicts: tuple[Conflict, ...]
    remedies: tuple[Remedy, ...]
    runtime_s: float
    interrupted: bool = False

    @property
    def makespan(self) -> float | None:
        """Makespan of the schedule in seconds; None without a schedule."""
        return None if self.schedule is None else self.schedule.makespan

    def __str__(self) -> str:
        lines = [self.verdict.value if self.target is None else f"{self.verdict.value}: {spelled(self.target)} s"]
        for conflict in self.conflicts:
            lines += [f" - {requirement}" for requirement in conflict.requirements]
        return "\n".join(lines)
