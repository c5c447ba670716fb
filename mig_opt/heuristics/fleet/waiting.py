"""Jobs that wait, by what a scheduler has to look at to place them."""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import NamedTuple


class Kind(NamedTuple):
    """Jobs of one kind go to the same GPU, so one of them stands for all.

    Attributes
    ----------
    profile : int
        The profile that they need.
    free, most : int
        Beside how many other PCIe-bound jobs they are as fast as alone, and beside how many they run at all.
    """

    profile: int
    free: int
    most: int


class Waiting(NamedTuple):
    """A job that waits.

    Attributes
    ----------
    ticket : int
        Its turn.
    since : float
        Second from which on it waits.
    factor : float or None
        Its slowdown per PCIe-bound job.
    seconds : float
        What it takes alone on its profile.
    """

    ticket: int
    since: float
    factor: float | None
    seconds: float


class WaitingJobs:
    """All jobs that wait: within a kind in their turn."""

    def __init__(self) -> None:
        self._kinds: dict[Kind, OrderedDict[int, Waiting]] = {}
        self._tickets = 0
        self._shortest: dict[Kind, float] = {}

    def __contains__(self, kind: Kind) -> bool:
        return kind in self._kinds

    def add(self, kind: Kind, job: int, since: float, factor: float | None, seconds: float) -> None:
        """Put a job at the end."""
        self._kinds.setdefault(kind, OrderedDict())[job] = Waiting(self._tickets, since, factor, seconds)
        self._shortest[kind] = min(seconds, self._shortest.get(kind, seconds))
        self._tickets += 1

    def remove(self, kind: Kind, job: int) -> Waiting:
        """Take a job out."""
        jobs = self._kinds[kind]
        found = jobs.pop(job)
        if not jobs:
            del self._kinds[kind], self._shortest[kind]
        return found

    def head(self, kind: Kind) -> tuple[int, Waiting]:
        """Return the first job of a kind of which some wait."""
        return next(iter(self._kinds[kind].items()))

    def heads(self) -> dict[Kind, int]:
        """Return for each kind the turn of its first job."""
        return {kind: next(iter(jobs.values())).ticket for kind, jobs in self._kinds.items()}

    def counts(self) -> Counter[int]:
        """Return how many jobs wait for each profile."""
        counts: Counter[int] = Counter()
        for kind, jobs in self._kinds.items():
            counts[kind.profile] += len(jobs)
        return counts

    def short(self, kind: Kind, seconds: float) -> list[tuple[int, Waiting]]:
        """Return the jobs of a kind that take no longer than this, in their turn.

        Where all take longer that costs nothing the next time.
        """
        if self._shortest[kind] > seconds:
            return []
        jobs = self._kinds[kind]
        found = [(job, waiting) for job, waiting in jobs.items() if waiting.seconds <= seconds]
        if not found:
            self._shortest[kind] = min(waiting.seconds for waiting in jobs.values())
        return found
