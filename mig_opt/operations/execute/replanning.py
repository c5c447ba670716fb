"""New plans after deviations: what has not begun is planned anew from the instances and tasks that there are."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from mig_opt.api.solve import solve
from mig_opt.batch.batch import Batch, LiveInstance
from mig_opt.batch.journal import Journal
from mig_opt.batch.schedule import Run, Schedule
from mig_opt.batch.timing import retimed_schedule, tidy
from mig_opt.errors import MigOptError
from mig_opt.heuristics.batch.far.concatenation import shifted
from mig_opt.operations.execute.lanes import Lane
from mig_opt.operations.execute.machines import Machines
from mig_opt.texts import in_seconds

_SHORTEST_S, _LONGEST_S, _LONGEST_SHARE = 0.1, 5.0, 0.02
"""Seconds that planning may take: a share of what is left to do, within these limits."""

_TICK = 1e-6  # seconds that are no gain
_LEAST_STEP = 0.1  # share by which, at least, a task that is late has to become later to be a reason once more

Planner = Callable[[Batch, Schedule, float], Schedule | None]
"""Returns a schedule of what has not begun; takes the batch, the schedule so far, and the seconds it may take."""


def plan_rest(batch: Batch, schedule: Schedule, seconds: float) -> Schedule | None:
    """Return a schedule that is no longer than the one so far, by one thread: tasks run beside it."""
    return solve(batch, initial=schedule, time_limit=seconds, workers=1).schedule


class Proposal(NamedTuple):
    """A plan for what has not begun, beside the plan so far, in seconds from a moment on."""

    moment: float  # second, since 1970
    events: int  # that there were
    schedule: Schedule
    until: float  # the last end by it
    gain: float  # seconds by which the last end by the plan so far is later


class Replanner:
    """Judges when there is reason to plan anew, and whether a new plan is worth it."""

    def __init__(self, journal: Journal, lanes: Sequence[Lane], planner: Planner) -> None:
        assert journal.replan is not None
        self._journal, self._lanes, self._share, self._planner = journal, lanes, journal.replan, planner
        self._tasks = {task.name: task for task in journal.batch.tasks}
        self._step = 1 + max(self._share, _LEAST_STEP)
        self._planning = False
        self._late: dict[str, float] = {}  # multiples of their times at which tasks that run are a reason
        # After a resumption there is reason: nobody knows how long nothing was done.
        self._deviated = any(event.kind == "ran" for event in journal.events)

    def _planned(self, lane: Lane, task: str) -> float:
        """Return the seconds that a task was to take on an instance."""
        return self._tasks[task].time_on(lane.placement.profile) or math.inf

    def ended(self, lane: Lane, task: str, time: float) -> None:
        """Compare the time that a task has taken, until a second, with what was planned."""
        planned = self._planned(lane, task)
        self._deviated = self._deviated or abs(time - lane.since - planned) > self._share * planned

    def consider(self, machines: Machines, until: float | None) -> float | None:
        """Begin to plan anew if there is reason; return the second until which there is nothing to do but wait."""
        now = machines.now()
        for lane in self._lanes:
            if lane.running is None:
                continue
            planned, late = self._planned(lane, lane.running), self._late.get(lane.running, 1 + self._share)
            while lane.since + late * planned <= now:
                late *= self._step
                self._deviated = True
            self._late[lane.running] = late
            until = min(lane.since + late * planned, math.inf if until is None else until)
        settled = all(lane.state in ("planned", "live", "gone") for lane in self._lanes)
        if self._deviated and settled and not self._planning and any(lane.waiting for lane in self._lanes):
            events, (rest, planned_runs) = len(self._journal.events), self._rest(now)
            self._planning, self._deviated = True, False
            machines.later(lambda: Proposal(now, events, *self._proposed(rest, planned_runs)))
        return until

    def _rest(self, now: float) -> tuple[Batch, Sequence[Run]]:
        """Return what has not begun as a batch, beside the instances that there are, and the plan so far for it."""
        waiting = {task for lane in self._lanes for task in lane.waiting}
        initial = tuple(
            LiveInstance(*lane.planned.location, tidy(self._left(lane, now)))
            for lane in self._lanes
            if lane.state == "live"
        )
        tasks = tuple(task for task in self._journal.batch.tasks if task.name in waiting)
        batch = self._journal.batch.replace(tasks=tasks, initial=initial, spread={})
        return batch, [self._journal.planned_runs[task.name] for task in tasks]

    def _left(self, lane: Lane, now: float) -> float:
        """Return the seconds for which an instance is busy yet; a late task takes a share of its time more."""
        earlier = self._journal.began + lane.planned.ready - now if lane.planned.initial else 0.0
        if lane.running is None:
            return max(earlier, 0.0)
        left = lane.since + self._planned(lane, lane.running) - now
        return left if left > 0 else (self._step - 1) * (now - lane.since)

    def _proposed(self, batch: Batch, runs: Sequence[Run]) -> tuple[Schedule, float, float]:
        """Return a new plan, its last end, and the seconds that it gains."""
        before = schedule = retimed_schedule(batch, runs)
        seconds = min(_LONGEST_S, max(_SHORTEST_S, _LONGEST_SHARE * before.makespan))
        with contextlib.suppress(MigOptError):  # the plan so far goes on
            schedule = self._planner(batch, Schedule(tuple(runs)), seconds) or before
        busy = max((live.free for live in batch.initial), default=0.0)
        until = max(schedule.makespan, busy)
        return schedule, until, max(before.makespan, busy) - until

    def accepted(self, found: Proposal, time: float) -> tuple[Schedule, str] | None:
        """Return a plan that is worth it, in seconds since the execution began, and what it gains.

        It is worth it if it ends earlier by more than the seconds that went by meanwhile, and if nothing has begun or
        ended since; otherwise there is reason to plan once more.
        """
        self._planning = False
        if len(self._journal.events) != found.events:
            self._deviated = True
            return None
        if found.gain <= time - found.moment + _TICK:
            return None
        shift = found.moment - self._journal.began
        end = in_seconds(found.until + shift)
        return shifted(found.schedule, shift), f"the last task ends at {end}, {in_seconds(found.gain)} earlier"
