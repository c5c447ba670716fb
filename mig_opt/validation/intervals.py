"""The instances of a schedule with the times between which they exist, and what must not happen at the same time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from mig_opt.batch.batch import Batch
from mig_opt.batch.lifetimes import Where, lives_of
from mig_opt.batch.schedule import Operation, Run
from mig_opt.gpu.model import Placement

Item = TypeVar("Item")
Entry = TypeVar("Entry", Run, Operation)


@dataclass(frozen=True, slots=True)
class Placed(Generic[Entry]):
    """A run or operation whose GPU, placement and times make sense.

    Attributes
    ----------
    index : int
        Its index in the schedule.
    entry : Run or Operation
        Itself.
    placement : Placement
        Where it is on its GPU.
    """

    index: int
    entry: Entry
    placement: Placement

    @property
    def where(self) -> Where:
        """The place as a key."""
        return self.entry.gpu, self.entry.profile, self.entry.start


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance of a schedule.

    Attributes
    ----------
    gpu : int
        Index of the GPU.
    placement : Placement
        Where it is on the GPU.
    created, destroyed : Placed of Operation or None
        Its operations: an initial instance has no creation, one that stays has no destruction.
    ready : float
        Seconds from which it can run tasks.
    """

    gpu: int
    placement: Placement
    created: Placed[Operation] | None
    destroyed: Placed[Operation] | None
    ready: float

    @property
    def begin(self) -> float:
        """Seconds from which it holds its footprint."""
        return -math.inf if self.created is None else self.created.entry.begin

    @property
    def close(self) -> float:
        """Seconds until which it can run tasks."""
        return math.inf if self.destroyed is None else self.destroyed.entry.begin

    @property
    def end(self) -> float:
        """Seconds until which it holds its footprint."""
        return math.inf if self.destroyed is None else self.destroyed.entry.end


def instances_of(
    batch: Batch, operations: Iterable[Placed[Operation]], tolerance: float
) -> tuple[list[Instance], list[Placed[Operation]]]:
    """Return the instances that operations make, and the operations that make no sense where they are."""
    placed = list(operations)
    lives, stray = lives_of(batch.initial, [operation.entry for operation in placed], tolerance)
    instances = []
    for life in lives:
        created = None if life.created is None else placed[life.created]
        destroyed = None if life.destroyed is None else placed[life.destroyed]
        ready = (life.free or 0.0) if created is None else created.entry.end
        placement = batch.gpu.placement(life.profile, life.start)
        instances.append(Instance(life.gpu, placement, created, destroyed, ready))
    return instances, [placed[index] for index in stray]


@dataclass(frozen=True, slots=True)
class Span(Generic[Item]):
    """Something that holds a resource (numbered ``group``) from ``begin`` to ``end`` seconds."""

    begin: float
    end: float
    group: int
    item: Item

    def apart(self, other: Span[Item], tolerance: float) -> bool:
        """Whether one ends before the other begins."""
        return self.end <= other.begin + tolerance or other.end <= self.begin + tolerance


def clashes(
    spans: Iterable[Span[Item]], against: Sequence[Sequence[int]], tolerance: float
) -> Iterator[tuple[Span[Item], Span[Item]]]:
    """Yield (earlier, later) for spans that overlap although their groups exclude each other.

    ``against[g]`` are the groups that ``g`` excludes. Of several earlier spans of a group the longest one is named.
    """
    latest: list[Span[Item] | None] = [None] * len(against)
    for span in sorted(spans, key=lambda span: (span.begin, span.end)):
        for rival in against[span.group]:
            other = latest[rival]
            if other is not None and not span.apart(other, tolerance):
                yield other, span
        own = latest[span.group]
        if own is None or span.end > own.end:
            latest[span.group] = span


def exclusive(one: Placement, two: Placement) -> bool:
    """Whether two placements cannot exist together: by footprint, or as the same profile of which only one may."""
    return one.conflicts(two) or (one.profile.max_count == 1 and one.profile == two.profile)
