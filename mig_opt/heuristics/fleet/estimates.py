"""What a scheduler that predicts contention writes down of the jobs that run."""

from __future__ import annotations

import math


def predicted(factor: float | None, bound: int) -> float:
    """Return by how much a job is slower than alone beside so many PCIe-bound jobs, itself included (Eq. 2).

    The factor is sensitivity x demand / PCIe limit; None stands for a job that is not PCIe-bound.
    """
    return 1.0 if factor is None else max(1.0, factor * bound)


class _Record:
    """A running job: seconds of work that it had left at some moment, and how much slower than alone it is."""

    __slots__ = ("factor", "left", "since", "slowdown")

    def __init__(self, since: float, left: float, factor: float | None) -> None:
        self.since = since
        self.left = left
        self.factor = factor
        self.slowdown = 1.0

    def slow_down(self, bound: int, now: float) -> None:
        """Count what has been done, and go on beside so many PCIe-bound jobs, itself included."""
        if now > self.since:
            self.left = max(0.0, self.left - (now - self.since) / self.slowdown)
            self.since = now
        self.slowdown = predicted(self.factor, bound)

    @property
    def end(self) -> float:
        return self.since + self.left * self.slowdown


class Estimates:
    """The jobs on each GPU, how many of them are PCIe-bound, and when the last of them ends as far as can be foreseen.

    Parameters
    ----------
    gpus : int
        How many GPUs there are.

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
        self._records: list[dict[int, _Record]] = [{} for _ in range(gpus)]

    def add(self, gpu: int, job: int, factor: float | None, *, begin: float, seconds: float, now: float) -> None:
        """Note a job that begins at a second and takes so long alone; its factor is that of :func:`predicted`."""
        self._records[gpu][job] = record = _Record(begin, seconds, factor)
        if factor is not None:
            self.bound[gpu] += 1
            self._pace(gpu, now)
        else:
            self.ends[gpu] = max(self.ends[gpu], record.end)

    def remove(self, gpu: int, job: int, now: float) -> None:
        """Note that a job is gone."""
        record = self._records[gpu].pop(job)
        if record.factor is not None:
            self.bound[gpu] -= 1
        self._pace(gpu, now)

    def _pace(self, gpu: int, now: float) -> None:
        records = self._records[gpu].values()
        for record in records:
            if record.factor is not None:
                record.slow_down(self.bound[gpu], now)
        self.ends[gpu] = max((record.end for record in records), default=-math.inf)
