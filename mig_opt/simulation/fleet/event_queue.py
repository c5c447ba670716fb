"""Event queue of the simulator: the runs of jobs, their speed beside their neighbours, and the events that follow."""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass
from typing import NamedTuple

from mig_opt.fleet.trace import Trace, pcie_slowdown
from mig_opt.gpu.geometry import NumberedPlace

# Events of the same moment happen in this order: room is made before it is asked for.
END, MOVE, BEGIN, LEAVE, RETURN, ARRIVAL, WAKE = range(7)


@dataclass(slots=True, eq=False)
class ActiveRun:
    """A job that has a place, from the decision to the end of its run."""

    job: int  # index in the trace
    # where it runs
    gpu: int
    placement: int
    begin: float  # second at which it begins or began there
    seconds: float  # seconds that all of its work takes there, alone
    limit: float  # share of the work at which it ends: 1, or where its memory is more than its instance has
    bound: bool  # true if it competes for PCIe
    # at the second ``since`` it had done this share of its work (0 to 1)
    since: float
    done: float = 0.0
    slowdown: float = 1.0  # factor on ``seconds`` now
    target: NumberedPlace | None = None  # GPU and placement of the replica that it moves to
    version: int = 0  # an end that was queued in an earlier version no longer holds; -1 once the run is over

    @property
    def place(self) -> NumberedPlace:
        """GPU and placement that the job has, those of its replica if it migrates."""
        return self.target or (self.gpu, self.placement)

    def progress(self, now: float) -> float:
        """Return the share of its work that is done."""
        if now <= self.since:
            return self.done
        return min(self.limit, self.done + (now - self.since) / (self.seconds * self.slowdown))


class Event(NamedTuple):
    """An event to come; ordered by time, kind, and the order in which it was queued."""

    time: float
    kind: int
    number: int
    run: ActiveRun | None
    version: int


class EventQueue:
    """The events to come, and the runs on each GPU that compete for PCIe."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._events: list[Event] = []
        self._numbers = itertools.count()
        self._bound: dict[int, dict[ActiveRun, None]] = {}

    def peek(self) -> Event | None:
        """Return the next event, or None; those of runs that are over and ends that have shifted are dropped."""
        events = self._events
        while events:
            event = events[0]
            run = event.run
            if run is None or run.version == event.version or (event.kind != END and run.version >= 0):
                return event
            heapq.heappop(events)
        return None

    def pop(self) -> Event:
        """Take the next event off the queue."""
        return heapq.heappop(self._events)

    def push(self, time: float, kind: int, run: ActiveRun | None = None) -> int:
        """Queue an event, and return its number."""
        number = next(self._numbers)
        heapq.heappush(self._events, Event(time, kind, number, run, 0 if run is None else run.version))
        return number

    def launch(self, run: ActiveRun, now: float) -> None:
        """Queue the next event of a new run, which begins now or later."""
        if not run.bound:
            self._push_end(run, now)
        elif run.begin > now:
            self.push(run.begin, BEGIN, run)
        else:
            self.join(run, now)

    def join(self, run: ActiveRun, now: float) -> None:
        """Let a PCIe-bound run compete on its GPU from now on; its neighbours slow down."""
        bound = self._bound.setdefault(run.gpu, {})
        bound[run] = None
        run.slowdown = pcie_slowdown(self._trace, self._trace.jobs[run.job], len(bound))
        self._push_end(run, now)
        self._pace(bound, now)

    def drop(self, run: ActiveRun, now: float) -> None:
        """Forget the events of a run that is over."""
        run.version = -1
        self._leave(run, now)

    def move(self, run: ActiveRun, seconds: float, limit: float, now: float) -> None:
        """Let a run go on at its target, where all of its work takes ``seconds``."""
        assert run.target is not None
        gpu, placement = run.target
        changes = (run.bound and gpu != run.gpu) or seconds != run.seconds or limit != run.limit
        if changes:
            run.done, run.since = run.progress(now), now
            self._leave(run, now)
        run.gpu, run.placement, run.begin, run.target = gpu, placement, now, None
        if changes:  # else the end that was queued stays to the last bit
            run.seconds, run.limit, run.slowdown = seconds, limit, 1.0
            run.version += 1
            self.launch(run, now)

    def _leave(self, run: ActiveRun, now: float) -> None:
        """Let a run no longer compete on its GPU; its neighbours speed up."""
        bound = self._bound.get(run.gpu, {}) if run.bound else {}
        if run in bound:
            del bound[run]
            self._pace(bound, now)

    def _pace(self, bound: dict[ActiveRun, None], now: float) -> None:
        for run in bound:
            slowdown = pcie_slowdown(self._trace, self._trace.jobs[run.job], len(bound))
            if slowdown != run.slowdown:
                run.done, run.since = run.progress(now), now
                run.slowdown = slowdown
                run.version += 1
                self._push_end(run, now)

    def _push_end(self, run: ActiveRun, now: float) -> None:
        end = run.since + max(0.0, run.limit - run.done) * (run.seconds * run.slowdown)
        self.push(max(now, end), END, run)
