"""Admission without a queue: a choice of the jobs of a trace that a fleet accepts, and what accepting each counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mig_opt.fleet.job import Job, whole_run_profiles_on
from mig_opt.fleet.trace import Trace

AdmissionGoal = Literal["jobs", "slices", "slice-seconds"]
"""Count of a job that is accepted: 1, its compute slices, or these times the seconds that it runs."""


@dataclass(frozen=True, slots=True)
class AcceptedJob:
    """A job that is accepted, and its place from its arrival to its end.

    Attributes
    ----------
    job : str
        Name in the trace.
    gpu : int
        Index of the GPU.
    profile : str
        Profile of the instance.
    start : int
        Memory slice at which the instance starts.
    """

    job: str
    gpu: int
    profile: str
    start: int


@dataclass(frozen=True, slots=True)
class Admission:
    """A choice of jobs that a fleet accepts, each with its place; all others are turned away.

    Each job begins when it arrives, and stays on its instance until it is done. Creating and destroying instances takes
    no time here: see :func:`mig_opt.optimum`.

    Attributes
    ----------
    accepted : tuple of AcceptedJob
        In the order of the trace.
    """

    accepted: tuple[AcceptedJob, ...]

    def weight(self, trace: Trace, goal: AdmissionGoal = "jobs") -> float:
        """Return what the accepted jobs count for together.

        Parameters
        ----------
        trace : Trace
            The jobs and the fleet.
        goal : {"jobs", "slices", "slice-seconds"}
            Count of each job: 1, its compute slices, or these times its seconds, by what it asks for at the least.

        Returns
        -------
        float
            The sum.

        Examples
        --------
        >>> from mig_opt import get_gpu
        >>> trace = Trace((Job("a", 0.0, {2: 30.0}), Job("b", 1.0, {4: 5.0})), get_gpu("A30"))
        >>> Admission((AcceptedJob("a", 0, "2g.12gb", 0),)).weight(trace, "slice-seconds")
        60.0
        """
        names = {entry.job for entry in self.accepted}
        weights = admission_weights(trace, goal)
        return math.fsum(weight for job, weight in zip(trace.jobs, weights, strict=True) if job.name in names)


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Acceptance ratios: shares of the jobs that were accepted and done (0 to 1).

    Attributes
    ----------
    jobs : float
        Of the jobs, each counting alike.
    slices : float
        Of the compute slices that jobs ask for.
    slice_seconds : float
        Of the compute slices times the seconds for which jobs ask for them.
    """

    jobs: float
    slices: float
    slice_seconds: float


def acceptance(trace: Trace, finished: Sequence[bool]) -> Acceptance:
    """Return the acceptance ratios if these jobs of a trace were accepted and done.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> trace = Trace((Job("a", 0.0, {2: 30.0}), Job("b", 1.0, {4: 5.0})), get_gpu("A30"))
    >>> acceptance(trace, [True, False])
    Acceptance(jobs=0.5, slices=0.3333333333333333, slice_seconds=0.75)
    """
    if all(finished):
        return Acceptance(1.0, 1.0, 1.0)

    def ratio(goal: AdmissionGoal) -> float:
        weights = admission_weights(trace, goal)
        done = math.fsum(weight for weight, accepted in zip(weights, finished, strict=True) if accepted)
        return done / math.fsum(weights)

    return Acceptance(ratio("jobs"), ratio("slices"), ratio("slice-seconds"))


def admission_weights(trace: Trace, goal: AdmissionGoal) -> list[float]:
    """Return what accepting each job of a trace counts, by what it asks for at the least."""
    if goal == "jobs":
        return [1.0] * len(trace.jobs)
    return [_least(trace, job, timed=goal == "slice-seconds") for job in trace.jobs]


def _least(trace: Trace, job: Job, *, timed: bool) -> float:
    """Return the fewest compute slices on which a job can run from begin to end, or the least slices x seconds."""
    able, known = list[tuple[int, float]](), list[tuple[int, float]]()
    for kind in trace.kinds:
        if own := job.on(kind):
            known += own.times.items()
            able += [(each.compute_slices, own.times[each.compute_slices]) for each in whole_run_profiles_on(kind, own)]
    return float(min((size * (seconds if timed else 1) for size, seconds in able or known), default=1.0))
