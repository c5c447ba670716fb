"""Lifetimes of instances: the time in which each instance of a schedule or log exists, and the runs on it."""

from __future__ import annotations

import bisect
import math
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mig_opt.batch.batch import Batch, LiveInstance
from mig_opt.batch.schedule import Operation, Run, Schedule
from mig_opt.gpu.model import Location


class LifetimeStep(NamedTuple):
    """A run, or another thing that happens to an instance, from ``begin`` to ``end`` (seconds)."""

    label: str
    begin: float
    end: float
    is_run: bool = False


@dataclass(slots=True)
class Lifetime:
    """One instance from its creation, or the start of the batch, to its destruction, or for ever."""

    gpu: int  # index of the GPU
    profile: str  # profile name
    start: int  # start slice
    initial: bool = False  # true if the instance exists when the batch starts
    # its operations, by index; None where there is none
    created: int | None = None
    destroyed: int | None = None
    # Seconds at which its creation begins and ends. An initial instance begins at 0 and is ready when it gets free.
    begin: float = 0.0
    ready: float = 0.0
    # seconds at which its destruction begins and ends; infinity if it is not destroyed
    close: float = math.inf
    end: float = math.inf
    runs: list[Run] = field(default_factory=list)  # the runs on it, in order, as far as they are known

    @property
    def location(self) -> Location:
        """GPU, profile name and start slice."""
        return self.gpu, self.profile, self.start

    @property
    def last(self) -> float:
        """Seconds from which nothing happens to the instance any more."""
        return self.end if self.destroyed is not None else max([run.end for run in self.runs], default=self.ready)

    @property
    def steps(self) -> list[LifetimeStep]:
        """Everything that happens to the instance, in order."""
        steps = [LifetimeStep(run.task, run.begin, run.end, is_run=True) for run in self.runs]
        if self.initial or self.created is not None:
            steps.insert(0, LifetimeStep("(exists)" if self.initial else "(create)", self.begin, self.ready))
        if self.destroyed is not None:
            steps.append(LifetimeStep("(destroy)", self.close, self.end))
        return steps

    def __str__(self) -> str:
        return f"{self.profile}@{self.start}"


def lifetimes(
    initial: Iterable[LiveInstance], operations: Sequence[Operation], tolerance: float = 1e-6
) -> tuple[list[Lifetime], list[int]]:
    """Return the lifetimes that operations make, place by place, without runs, and the indices of senseless operations.

    The latter are creations of instances that exist already and destructions of instances that do not exist; apart from
    being returned they are ignored. Operations come in any order; of two at one place that begin together (or the wrong
    way round by up to ``tolerance`` seconds), the one that makes sense counts as the first.

    Examples
    --------
    >>> there, gone = Operation("create", 0, "4g.24gb", 0, 0.0, 0.13), Operation("destroy", 0, "4g.24gb", 0, 2.0, 2.1)
    >>> (lifetime,), stray = lifetimes((), (gone, there, there))
    >>> str(lifetime), lifetime.ready, lifetime.close, stray
    ('4g.24gb@0', 0.13, 2.0, [2])
    """
    current: dict[Location, Lifetime | None] = {}
    for live in initial:
        there = Lifetime(live.gpu, live.profile, live.start, initial=True, ready=live.free)
        current[there.location] = there
    queues: dict[Location, deque[int]] = defaultdict(deque)
    for index in sorted(range(len(operations)), key=lambda index: (operations[index].begin, operations[index].end)):
        operation = operations[index]
        queues[operation.gpu, operation.profile, operation.start].append(index)
    found: list[Lifetime] = []
    stray: list[int] = []
    for location in dict.fromkeys((*current, *queues)):
        lifetime, queue = current.get(location), queues[location]
        while queue:
            expected = "create" if lifetime is None else "destroy"
            index = queue.popleft()
            if (
                operations[index].kind != expected
                and queue
                and operations[queue[0]].kind == expected
                and operations[queue[0]].begin <= operations[index].begin + tolerance
            ):
                index, queue[0] = queue[0], index
            operation = operations[index]
            if operation.kind != expected:
                stray.append(index)
            elif lifetime is None:
                lifetime = Lifetime(*location, created=index, begin=operation.begin, ready=operation.end)
            else:
                lifetime.destroyed, lifetime.close, lifetime.end = index, operation.begin, operation.end
                found.append(lifetime)
                lifetime = None
        if lifetime is not None:
            found.append(lifetime)
    return found, stray


def lifetimes_with_runs(batch: Batch, schedule: Schedule) -> list[Lifetime]:
    """Return the lifetimes of a valid schedule with their runs, by GPU, begin and start slice.

    Without operations, each place has one lifetime from its first run on.
    """
    found: dict[Location, list[Lifetime]] = defaultdict(list)
    for lifetime in lifetimes(batch.initial, schedule.operations or ())[0]:
        found[lifetime.location].append(lifetime)
    for run in sorted(schedule.runs, key=lambda run: run.begin):
        location = run.gpu, run.profile, run.start
        there = found[location] = found[location] or [Lifetime(*location, begin=run.begin, ready=run.begin)]
        begun = bisect.bisect_right(there, run.begin, key=lambda lifetime: lifetime.begin)
        there[max(begun - 1, 0)].runs.append(run)
    return sorted(
        (lifetime for there in found.values() for lifetime in there),
        key=lambda lifetime: (lifetime.gpu, lifetime.begin, lifetime.start),
    )
