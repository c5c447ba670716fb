"""The earliest times of the instances of one GPU for given loads, and the slack of each.

A timeline has *slots*: placements in the order in which conflicting ones follow each other. The load of each slot is
decided by the method; the driver's order of operations follows from a rule: of the operations that can begin it serves
the one with the most work behind it (longest tail first). Methods that change loads in small steps ask the same
timeline again and again.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mig_opt.batch.schedule import OperationKind
from mig_opt.gpu.model import OperationCosts, Placement


@dataclass(frozen=True, slots=True)
class Slot:
    """A placement at its turn."""

    placement: Placement  # where on the GPU
    # For an instance that is live: the second at which it becomes free. None for one that has to be created.
    free: float | None = None


@dataclass(frozen=True, slots=True)
class Times:
    """The earliest times for some loads."""

    order: tuple[tuple[OperationKind, int], ...]  # the operations in the order in which the driver serves them
    # for each slot the second at which its load ends; of a live instance without load the second at which it is free, 0
    # for any other slot without load
    ends: tuple[float, ...]
    makespan: float  # the last end of a load in seconds, 0 without loads


class GpuTimeline:
    """The slots of one GPU.

    Live instances come first; of two slots that conflict the one with the lower index exists first. The driver takes
    orders from second ``driver_free`` on. Memory slices without a live instance can be used from second ``clear`` on,
    where that is not 0.
    """

    def __init__(
        self,
        slots: Sequence[Slot],
        costs: OperationCosts,
        *,
        parallel_operations: bool = False,
        driver_free: float = 0.0,
        clear: Mapping[int, float] | None = None,
    ) -> None:
        self.slots = tuple(slots)
        self._parallel = parallel_operations
        self._driver_free = driver_free
        self._create = [costs.of("create", slot.placement.profile) for slot in slots]
        self._destroy = [costs.of("destroy", slot.placement.profile) for slot in slots]
        self._clear_at = dict(clear or {})
        self._clear = [
            max(clear.get(position, 0.0) for position in slot.placement.footprint) if clear else 0.0 for slot in slots
        ]
        # The slots that can exist only after this one is destroyed, and those that have to be gone before it exists.
        self._after = [
            tuple(
                later
                for later in range(index + 1, len(slots))
                if slots[later].free is None and slots[later].placement.conflicts(slot.placement)
            )
            for index, slot in enumerate(slots)
        ]
        self._before = [
            tuple(earlier for earlier in range(index) if index in self._after[earlier]) for index in range(len(slots))
        ]

    def times(self, loads: Sequence[float]) -> Times:
        """Return the earliest times if each slot has to run for ``loads`` seconds; with 0 nothing is created there."""
        followers, behind = self._followers(loads)
        waiting = Counter(later for after in followers for later in after)
        ends = [0.0] * len(self.slots)
        # Entries are (second from which it can begin, -work behind it, kind, slot).
        ready: list[tuple[float, float, OperationKind, int]] = []
        for index, slot in enumerate(self.slots):
            if slot.free is not None:
                ends[index] = slot.free + loads[index]
                if followers[index]:
                    ready.append((ends[index], loads[index] - behind[index], "destroy", index))
            elif loads[index] and not waiting[index]:
                ready.append((self._clear[index], -behind[index], "create", index))
        order: list[tuple[OperationKind, int]] = []
        cleared = list(self._clear)
        now = self._driver_free
        while ready:
            chosen = self._next(ready, now)
            ready.remove(chosen)
            begin, _, kind, index = chosen
            begin = max(begin, self._driver_free if self._parallel else now)
            order.append((kind, index))
            if kind == "create":
                now = begin + self._create[index]
                ends[index] = now + loads[index]
                if followers[index]:
                    ready.append((ends[index], loads[index] - behind[index], "destroy", index))
            else:
                now = begin + self._destroy[index]
                for later in followers[index]:
                    waiting[later] -= 1
                    cleared[later] = max(cleared[later], now)
                    if not waiting[later]:
                        ready.append((cleared[later], -behind[later], "create", later))
        makespan = max((end for end, load in zip(ends, loads, strict=True) if load), default=0.0)
        return Times(tuple(order), tuple(ends), makespan)

    def _followers(self, loads: Sequence[float]) -> tuple[list[list[int]], list[float]]:
        """Return what has to wait for the destruction of each slot, and the longest path from its beginning to the end.

        Both count only what there is: live instances, and slots with a load.
        """
        followers: list[list[int]] = [[]] * len(self.slots)
        behind = [0.0] * len(self.slots)
        for index in range(len(self.slots) - 1, -1, -1):
            if loads[index] or self.slots[index].free is not None:
                followers[index] = after = [later for later in self._after[index] if loads[later]]
                behind[index] = loads[index]
                if after:
                    rest = max(self._create[later] + behind[later] for later in after)
                    behind[index] += self._destroy[index] + rest
        return followers, behind

    def _next(
        self, ready: Sequence[tuple[float, float, OperationKind, int]], now: float
    ) -> tuple[float, float, OperationKind, int]:
        possible = [] if self._parallel else [entry for entry in ready if entry[0] <= now]
        return min(possible, key=_without_begin) if possible else min(ready)

    def last_ends(self, loads: Sequence[float], times: Times) -> list[float]:
        """Return for each slot the second at which the last load on its memory slices ends.

        A live instance counts until it is free. A slice on which nothing runs ends when it can be used.
        """
        ends = dict(self._clear_at)
        for slot, load, end in zip(self.slots, loads, times.ends, strict=True):
            if load or slot.free is not None:
                for position in slot.placement.footprint:
                    ends[position] = max(ends.get(position, 0.0), end)
        return [max(ends.get(position, 0.0) for position in slot.placement.footprint) for slot in self.slots]

    def slacks(self, loads: Sequence[float], times: Times) -> list[float]:
        """Return for each slot by how many seconds its load could grow without a longer makespan.

        The driver keeps the order of ``times``. Slots on a critical path have 0. For a slot without load the creation
        that it needs is taken off, but it is not known what the driver would have to put off for it: a guess then, and
        negative where there is no room at all.
        """
        create, destroy = self._create, self._destroy
        limit = times.makespan
        latest_end = [limit] * len(self.slots)
        latest_create: dict[int, float] = {}
        driver = math.inf
        for kind, index in reversed(times.order):
            if kind == "create":
                begin = min(latest_end[index] - loads[index], driver) - create[index]
                latest_create[index] = begin
            else:
                begin = min(driver, *(latest_create[later] for later in self._after[index] if loads[later]))
                begin -= destroy[index]
                latest_end[index] = begin
            if not self._parallel:
                driver = begin
        found = []
        for index, slot in enumerate(self.slots):
            begin = times.ends[index]
            if not loads[index] and slot.free is None:
                begin = self._clear[index]
                for earlier in self._before[index]:
                    if loads[earlier] or self.slots[earlier].free is not None:
                        begin = max(begin, times.ends[earlier] + destroy[earlier])
                begin += create[index]
                for later in self._after[index]:
                    if loads[later]:
                        latest_end[index] = min(latest_end[index], latest_create[later] - destroy[index])
            found.append(latest_end[index] - begin)
        return found


def _without_begin(entry: tuple[float, float, OperationKind, int]) -> tuple[float, OperationKind, int]:
    return entry[1:]
