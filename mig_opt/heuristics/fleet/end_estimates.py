"""Estimated ends of the jobs on each GPU, and the GPU that is expected to be idle first.

Stage 1 of the PCIe-aware scheduler updates these records (section 4.2 of its paper).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass


def predicted_slowdown(factor: float | None, bound: int) -> float:
    """Return the slowdown of a job beside PCIe-bound jobs, against running alone (Eq. 2).

    Parameters
    ----------
    factor : float or None
        Sensitivity x demand / PCIe limit; None for a job that is not PCIe-bound.
    bound : int
        Number of PCIe-bound jobs on its GPU, itself included.
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
    """Running jobs of each GPU, how many of them are PCIe-bound, and the estimated end of the last of them.

    Parameters
    ----------
    gpus : int
        Number of GPUs.

    Attributes
    ----------
    bound : list of int
        PCIe-bound jobs on each GPU.
    ends : list of float
        Second at which a GPU's last job is expected to end; minus infinity if nothing runs.
    """

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


class EarliestEnds:
    """GPUs by their instances and by the second at which they are expected to be idle.

    There is a heap for each set of instances; entries that no longer hold are dropped when they come up, so that a
    search takes no longer for many GPUs.

    Parameters
    ----------
    gpus : int
        Number of GPUs; none of them counts before it is set.
    """

    def __init__(self, gpus: int) -> None:
        self._entries: list[tuple[int, float] | None] = [None] * gpus
        self._heaps: dict[int, list[tuple[float, int]]] = {}

    def set(self, gpu: int, instances: int, end: float) -> None:
        """Note that a GPU has these instances, as a mask, and is expected to be idle at some second."""
        if self._entries[gpu] != (instances, end):
            self._entries[gpu] = instances, end
            heap = self._heaps.setdefault(instances, [])
            heapq.heappush(heap, (end, gpu))
            if len(heap) > 3 * len(self._entries) + 1000:
                heap[:] = sorted({entry for entry in heap if self._holds(instances, entry)})

    def drop(self, gpu: int) -> None:
        """Let a GPU no longer count."""
        self._entries[gpu] = None

    def first(self, suits: Callable[[int], bool]) -> int | None:
        """Return the GPU that is idle first, then the least index, of those whose instances suit."""
        found: list[tuple[float, int]] = []
        for instances in [instances for instances in self._heaps if suits(instances)]:
            heap = self._heaps[instances]
            while heap and not self._holds(instances, heap[0]):
                heapq.heappop(heap)
            if heap:
                found.append(heap[0])
            else:
                del self._heaps[instances]
        return min(found)[1] if found else None

    def _holds(self, instances: int, entry: tuple[float, int]) -> bool:
        return self._entries[entry[1]] == (instances, entry[0])
