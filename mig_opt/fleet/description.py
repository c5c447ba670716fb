"""Summary of a trace in figures: its load on the fleet, and the distribution of its jobs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from mig_opt.fleet.admission import admission_weights
from mig_opt.fleet.trace import Trace, check_jobs

QUANTILES = (0.0, 0.25, 0.5, 0.75, 0.95, 1.0)
"""Shares of the jobs that stay below the figures of a summary."""

ANY_PROFILE = "any"
"""Profile of jobs that leave the choice to the scheduler."""


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """Summary of a trace; the tuples are the quantiles of :data:`QUANTILES`."""

    # numbers of jobs and of GPUs, and their kinds
    jobs: int
    gpus: int
    gpu: str
    # seconds
    first_arrival: float
    last_arrival: float
    area: float  # compute slices x seconds of all jobs, each where that is least
    # Work that arrives, as a share of the work that the fleet can do meanwhile: the area without that of the last
    # arrival, through compute slices x seconds from the first arrival to the last. None if all arrive at once.
    load: float | None
    # Jobs by the profile that they ask for, smallest first; ``any`` if they leave the choice. Where there are several
    # kinds of GPUs, these are the profiles on each of them, with the jobs that it can run.
    profiles: dict[str, int]
    gaps: tuple[float, ...]  # seconds between arrivals; empty if there is one job
    work: tuple[float, ...]  # seconds of a job on its smallest size
    memory: tuple[float, ...]  # GB of the jobs that say how many they need
    # shares of the jobs: that say how much memory they need, whose memory grows, that use PCIe
    memory_known: float
    memory_growing: float
    pcie_bound: float
    pcie_demand: float  # mean GB/s that a PCIe-bound job asks for, as a share of the limit; 0 without such jobs


def describe_trace(trace: Trace) -> TraceSummary:
    """Return the summary of a trace; refuse jobs that can run nowhere.

    Examples
    --------
    >>> from mig_opt import Job, get_gpu
    >>> jobs = (Job("a", 0.0, {2: 10.0}, "2g.12gb"), Job("b", 10.0, {1: 5.0, 4: 2.0}))
    >>> summary = describe_trace(Trace(jobs, get_gpu("A30")))
    >>> summary.area, summary.load, summary.profiles
    (25.0, 0.5, {'2g.12gb': 1, 'any': 1})
    """
    check_jobs(trace)
    jobs = trace.jobs
    arrivals = [job.arrival for job in jobs]
    areas = admission_weights(trace, "slice-seconds")
    span = arrivals[-1] - arrivals[0]
    before = math.fsum(area for area, at in zip(areas, arrivals, strict=True) if at < arrivals[-1])
    slices = sum(len(gpus) * kind.compute_slices for kind, gpus in trace.kinds.items())
    bound = [job.pcie_gbps for job in jobs if job.pcie_gbps]
    known = [job.memory_gb for job in jobs if job.memory_gb is not None]
    return TraceSummary(
        jobs=len(jobs),
        gpus=trace.gpus,
        gpu=" + ".join(kind.name for kind in trace.kinds),
        first_arrival=arrivals[0],
        last_arrival=arrivals[-1],
        area=math.fsum(areas),
        load=before / (slices * span) if span else None,
        profiles=_histogram(trace),
        gaps=_quantiles(np.diff(arrivals)),
        work=_quantiles(job.work for job in jobs),
        memory=_quantiles(known),
        memory_known=len(known) / len(jobs),
        memory_growing=sum(bool(job.memory_growth) for job in jobs) / len(jobs),
        pcie_bound=len(bound) / len(jobs),
        pcie_demand=math.fsum(bound) / len(bound) / trace.pcie_limit if bound else 0.0,
    )


def _histogram(trace: Trace) -> dict[str, int]:
    """Return the jobs by profile; of several kinds of GPUs those that each can run, by its profiles."""
    found: dict[str, int] = {}
    for kind in trace.kinds:
        order = {profile.name: (profile.compute_slices, profile.memory_slices) for profile in kind.profiles}
        counts = Counter(own.profile or ANY_PROFILE for job in trace.jobs if (own := job.on(kind)))
        for name, count in sorted(counts.items(), key=lambda entry: order.get(entry[0], (math.inf, math.inf))):
            found[name if trace.gpu else f"{name} on {kind.name}"] = count
    return found


def _quantiles(values: Iterable[float]) -> tuple[float, ...]:
    found = np.fromiter(values, dtype=float)
    return tuple(float(value) for value in np.quantile(found, QUANTILES)) if found.size else ()
