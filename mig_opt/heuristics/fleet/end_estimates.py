"""Estimated ends of the jobs on each GPU, of which PCIe-bound ones slow each other down.

From *PCIe Bandwidth-Aware Scheduling for Multi-Instance GPUs*, Eq. 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


def predicted_slowdown(factor: float | None, bound: int) -> float:
    """Return the slowdown of a job where ``bound`` jobs are PCIe-bound, itself included, against running alone (Eq. 2).

    The factor is sensitivity x demand / PCIe limit; it is None for a job that is not PCIe-bound.
    """
    return 1.0 if factor is None else max(1.0, factor * bound)


@dataclass(slots=True, eq=False)
class _RunningJob:
    """Running job: seconds of work left at some moment, and its slowdown since then."""

    since: float
    left: float
    factor: float | None
    slowdown: float = 1.0

    @property
    def end(self) -> float:
        return self.since + self.left * self.slowdown


class EndEstimates:
    """Number of PCIe-bound jobs of each GPU, and estimated end of its last job (minus infinity if nothing runs)."""

    def __init__(self, gpus: int) -> None:
        self.bound = [0] * gpus
        self.ends = [-math.inf] * gpus
        self._running: list[dict[int, _RunningJob]] = [{} for _ in range(gpus)]

    def add(self, gpu: int, job: int, factor: float | None, *, begin: float, seconds: float, now: float) -> None:
        """Note a job that begins at a second and takes so long alone; see :func:`predicted_slowdown` for ``factor``."""
        self._running[gpu][job] = new = _RunningJob(begin, seconds, factor)
        if factor is None:
            self.ends[gpu] = max(self.ends[gpu], new.end)
        else:
            self.bound[gpu] += 1
            self._update(gpu, now)

    def remove(self, gpu: int, job: int, now: float) -> None:
        """Note that a job has left its GPU."""
        self.bound[gpu] -= self._running[gpu].pop(job).factor is not None
        self._update(gpu, now)

    def _update(self, gpu: int, now: float) -> None:
        for job in self._running[gpu].values():
            if job.factor is not None:
                if now > job.since:
                    job.left = max(0.0, job.left - (now - job.since) / job.slowdown)
                    job.since = now
                job.slowdown = predicted_slowdown(job.factor, self.bound[gpu])
        self.ends[gpu] = max((job.end for job in self._running[gpu].values()), default=-math.inf)
