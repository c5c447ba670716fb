"""Lanes: the instances of a plan that is carried out, each with its tasks, and where it is on its way."""

from __future__ import annotations

import contextlib
import dataclasses
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from mig_opt.batch.batch import Batch
from mig_opt.batch.journal import Event, Journal
from mig_opt.batch.schedule import Lifetime
from mig_opt.gpu.model import Placement
from mig_opt.operations.driver.instances import MigInstance

State = Literal["planned", "creating", "live", "destroying", "gone", "refused"]
"""States of an instance. A refused one is not tried again before the execution is resumed."""


@dataclass(slots=True)
class Lane:
    """An instance of the plan, and where it is on its way."""

    planned: Lifetime
    placement: Placement
    before: frozenset[int]  # the instances that have to be gone before this one is created
    alike: frozenset[int]  # those before it of its profile, of which one fewer than may exist can still be there
    waiting: deque[str]  # tasks that have not begun
    state: State = "planned"
    running: str | None = None
    attempts: dict[str, int] = field(default_factory=dict)  # the number of tries at each task
    # Of the instance that was made: the driver's names for it.
    uuid: str = ""
    number: int | None = None
    # The instances that existed when a creation began.
    others: tuple[int, ...] = ()
    since: float = 0.0  # second, since 1970, at which the last try began

    @property
    def idle(self) -> bool:
        """True if no task runs, and none waits."""
        return not self.waiting and self.running is None

    @property
    def complete(self) -> bool:
        """True if the instance is where the plan leaves it, and its tasks have ended."""
        return self.idle and self.state == ("live" if self.planned.destroyed is None else "gone")

    def has_room(self, lanes: Sequence[Lane]) -> bool:
        """Return True if the instances that come before this one are gone, so that it can be created."""
        alike = sum(lanes[other].state != "gone" for other in self.alike)
        return alike < self.placement.profile.max_count and all(lanes[other].state == "gone" for other in self.before)

    def own(self, there: tuple[MigInstance, ...]) -> MigInstance | None:
        """Return the instance among those that exist, if it is still the one that was made."""
        found = (one for one in there if one.number == self.number and one.at(self.placement))
        half_destroyed = self.state == "destroying"
        return next((one for one in found if one.uuid == self.uuid or (half_destroyed and not one.computes)), None)

    def half_made(self, there: tuple[MigInstance, ...]) -> MigInstance | None:
        """Return what a creation without an end has made: at its place, not there before, and used by nobody."""
        found = (one for one in there if one.at(self.placement) and one.number not in self.others)
        return next((one for one in found if not one.processes), None)

    def take(self, event: Event) -> None:
        """Follow an event about the instance, or about one of its tasks."""
        task = event.task
        match event.kind:
            case "create":
                self.state, self.others = "creating", event.others
            case "created" | "found":
                self.state, self.uuid, self.number = "live", event.uuid, event.number
            case "destroy":
                self.state = "destroying"
            case "destroyed":
                self.state = "gone"
            case "lost":  # it is made again if it is still needed
                self.uuid, self.number = "", None
                spare = self.idle and self.planned.destroyed is not None
                self.state = "gone" if spare else "refused" if self.planned.initial else "planned"
            case "run" if task is not None:
                self.attempts[task], self.running, self.since = event.attempt, task, event.time
                with contextlib.suppress(ValueError):
                    self.waiting.remove(task)
            case "ran":
                self.running = None
            case "died" if task is not None:
                self.running = None
                self.waiting.appendleft(task)
            case _:
                pass


def lanes_of(journal: Journal) -> list[Lane]:
    """Return the lanes as a journal leaves them, in the order of its lifetimes."""
    stages = iter(journal.stages)
    lanes: list[Lane] = []
    follow_plan(lanes, journal.batch, next(stages))
    for event in journal.events:
        if event.kind == "replan":
            follow_plan(lanes, journal.batch, next(stages), event)
        elif event.instance is not None:
            lanes[event.instance].take(event)
        elif event.task is not None:
            own = (lane for lane in lanes if event.task in (lane.running, *lane.waiting))
            next(own, lanes[journal.instance_of[event.task]]).take(event)
    return lanes


def follow_plan(lanes: list[Lane], batch: Batch, lifetimes: Sequence[Lifetime], event: Event | None = None) -> None:
    """Let lanes follow the lifetimes of a plan: the first one, or a new one that an event tells of."""
    moved = {run.task for run in event.schedule.runs} if event and event.schedule else set()
    for lane, planned in zip(lanes, lifetimes, strict=False):
        if event and planned.gpu in event.others and lane.state != "gone":
            lane.planned, lane.waiting = planned, deque(run.task for run in planned.runs if run.task in moved)
            if lane.state == "planned":  # it is not to come any more, as if it were gone
                lane.planned, lane.state = dataclasses.replace(planned, destroyed=0), "gone"
    placements = [batch.placement(each) for each in lifetimes]
    for index, each in list(enumerate(lifetimes))[len(lanes) :]:
        own = placements[index]
        others = [other for other in range(index) if lifetimes[other].gpu == each.gpu]
        before = frozenset(other for other in others if placements[other].conflicts(own))
        alike = frozenset(other for other in others if placements[other].profile == own.profile)
        lanes.append(Lane(each, own, before, alike, deque(run.task for run in each.runs)))
