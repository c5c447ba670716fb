"""How far the jobs are: rates that change with the neighbours, and the events that follow from them."""

from __future__ import annotations

import heapq
import itertools
from typing import Final, NamedTuple

from mig_opt.fleet.trace import Job

# What happens in the same moment happens in this order: room is made before it is asked for.
END: Final = 0
MOVE: Final = 1
BEGIN: Final = 2
ARRIVAL: Final = 3
WAKE: Final = 4


class ActiveRun:
    """A job that has a place, from the decision to the end of its run.

    Attributes
    ----------
    job : int
        Index in the trace.
    gpu, placement : int
        Where it runs.
    begin : float
        Second at which it begins or began there.
    since, done : float
        At the second ``since`` it had done this share of its work (0 to 1).
    seconds : float
        What all of its work takes there, alone.
    slowdown : float
        By how much it is slower now.
    limit : float
        Share of the work at which it ends: 1, or where its memory is more than its instance has.
    bound : bool
        Whether it competes for PCIe.
    target : tuple of (int, int), optional
        GPU and placement of the replica that it moves to.
    version : int
        An end that was foreseen in an earlier version no longer holds; -1 once the run is over.
    """

    __slots__ = (
        "begin",
        "bound",
        "done",
        "gpu",
        "job",
        "limit",
        "placement",
        "seconds",
        "since",
        "slowdown",
        "target",
        "version",
    )

    def __init__(
        self, job: int, place: tuple[int, int], begin: float, seconds: float, limit: float, *, bound: bool
    ) -> None:
        self.job = job
        self.gpu, self.placement = place
        self.begin = begin
        self.since = begin
        self.done = 0.0
        self.seconds = seconds
        self.slowdown = 1.0
        self.limit = limit
        self.bound = bound
        self.target: tuple[int, int] | None = None
        self.version = 0

    def progress(self, now: float) -> float:
        """Return the share of its work that is done."""
        if now <= self.since:
            return self.done
        return min(self.limit, self.done + (now - self.since) / (self.seconds * self.slowdown))


class Event(NamedTuple):
    """Something that is going to happen; by time, kind, and the order in which it was foreseen."""

    time: float
    kind: int
    number: int
    run: ActiveRun | None
    version: int


class Progress:
    """The runs that compete for PCIe on each GPU, and what is going to happen when.

    Parameters
    ----------
    jobs : tuple of Job
        The jobs of the trace.
    pcie_limit : float
        GB/s of each GPU's link.
    """

    def __init__(self, jobs: tuple[Job, ...], pcie_limit: float) -> None:
        self._jobs = jobs
        self._limit = pcie_limit
        self._events: list[Event] = []
        self._numbers = itertools.count()
        self._bound: dict[int, dict[ActiveRun, None]] = {}

    def slowdown(self, job: int, competitors: int) -> float:
        """Return by how much a job is slower than alone when so many PCIe-bound jobs, itself included, share a GPU."""
        wanted = self._jobs[job]
        return max(1.0, wanted.sensitivity * wanted.pcie_gbps * competitors / self._limit)

    def next_time(self) -> float | None:
        """Return when something happens next; what no longer holds is dropped."""
        events = self._events
        while events:
            event = events[0]
            if (
                event.run is None
                or event.run.version == event.version
                or (event.kind != END and event.run.version >= 0)
            ):
                return event.time
            heapq.heappop(events)
        return None

    def next_kind(self) -> int:
        """Return what happens next."""
        return self._events[0].kind

    def pop(self) -> Event:
        """Return the next event, which then is over."""
        return heapq.heappop(self._events)

    def foresee(self, time: float, kind: int, run: ActiveRun | None = None) -> int:
        """Note an event, and return its number."""
        number = next(self._numbers)
        heapq.heappush(self._events, Event(time, kind, number, run, 0 if run is None else run.version))
        return number

    def launch(self, run: ActiveRun, now: float) -> None:
        """Foresee how a new run goes on: it begins now or later."""
        if not run.bound:
            self._foresee_end(run, now)
        elif run.begin > now:
            self.foresee(run.begin, BEGIN, run)
        else:
            self.join(run, now)

    def join(self, run: ActiveRun, now: float) -> None:
        """Let a PCIe-bound run compete on its GPU from now on; its neighbours slow down."""
        bound = self._bound.setdefault(run.gpu, {})
        bound[run] = None
        run.slowdown = self.slowdown(run.job, len(bound))
        self._foresee_end(run, now)
        self._pace(bound, now)

    def leave(self, run: ActiveRun, now: float) -> None:
        """Let a run no longer compete on its GPU; its neighbours speed up."""
        bound = self._bound.get(run.gpu)
        if bound is not None and run in bound:
            del bound[run]
            self._pace(bound, now)

    def drop(self, run: ActiveRun, now: float) -> None:
        """Forget what was foreseen for a run that is over."""
        run.version = -1
        if run.bound:
            self.leave(run, now)

    def move(self, run: ActiveRun, seconds: float, limit: float, now: float) -> None:
        """Let a run go on at its target, where all of its work takes ``seconds``."""
        assert run.target is not None
        elsewhere = run.bound and run.target[0] != run.gpu
        if elsewhere or seconds != run.seconds or limit != run.limit:
            run.done, run.since = run.progress(now), now
            self.leave(run, now)
            run.gpu, run.placement = run.target
            run.begin, run.seconds, run.limit, run.target = now, seconds, limit, None
            run.slowdown = 1.0
            run.version += 1
            self.launch(run, now)
        else:
            # The end that was foreseen stays to the last bit.
            run.gpu, run.placement = run.target
            run.begin, run.target = now, None

    def _pace(self, bound: dict[ActiveRun, None], now: float) -> None:
        for run in bound:
            slowdown = self.slowdown(run.job, len(bound))
            if slowdown != run.slowdown:
                run.done, run.since = run.progress(now), now
                run.slowdown = slowdown
                run.version += 1
                self._foresee_end(run, now)

    def _foresee_end(self, run: ActiveRun, now: float) -> None:
        end = run.since + max(0.0, run.limit - run.done) * (run.seconds * run.slowdown)
        self.foresee(max(now, end), END, run)
