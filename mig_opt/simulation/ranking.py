"""Which GPU comes first for a profile, without a look at the others.

What a policy thinks of a GPU depends on the GPU's state alone, so it is computed once for each state. A heap for each
profile holds the GPUs by that figure, then by index; entries that no longer hold are dropped when they come up.
A decision costs the logarithm of the number of GPUs.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

from mig_opt.gpu.states import GpuState

Key = Callable[[GpuState, int], int | None]
"""What a policy thinks of a state for a profile: the least integer >= 0 is first, ``None`` is out of the question."""

_State = TypeVar("_State", bound=Hashable)

_BITS = 20
_GPU = (1 << _BITS) - 1


class Ranking(Generic[_State]):
    """The GPUs in order, for each profile.

    Parameters
    ----------
    states : sequence
        The state of each GPU, of :class:`GpuState` or anything else that equals itself and repeats. The owner says in
        :attr:`changed` which of them are new.
    key : callable
        The order.
    """

    def __init__(self, states: Sequence[_State], key: Callable[[_State, int], int | None]) -> None:
        self.changed: set[int] = set()
        """GPUs whose state may be another than when the ranking was last asked."""
        self._states = states
        self._key = key
        self._heaps: dict[int, list[int]] = {}
        self._entries: dict[int, list[int]] = {}
        self._known: dict[int, dict[_State, int]] = {}

    def best(self, profile: int) -> int | None:
        """Return the first GPU for a profile, or None if all are out of the question."""
        heap, entries = self._up_to_date(profile)
        while heap:
            entry = heap[0]
            if entries[entry & _GPU] == entry:
                return entry & _GPU
            heapq.heappop(heap)
        return None

    def first(self, profile: int, accept: Callable[[int], bool], *, below: int) -> int | None:
        """Return the first GPU for a profile that is accepted, of those whose key is less than ``below``, or None.

        What comes after it costs nothing.
        """
        heap, entries = self._up_to_date(profile)
        refused: list[int] = []
        found = None
        while heap:
            entry = heap[0]
            gpu = entry & _GPU
            if entry >> _BITS >= below:
                break
            current = entries[gpu] == entry and entry not in refused[-1:]
            if current and accept(gpu):
                found = gpu
                break
            heapq.heappop(heap)
            if current:
                refused.append(entry)
        for entry in refused:
            heapq.heappush(heap, entry)
        return found

    def _up_to_date(self, profile: int) -> tuple[list[int], list[int]]:
        if self.changed:
            for asked, heap in self._heaps.items():
                self._update(asked, heap)
            self.changed.clear()
        if profile not in self._heaps:
            known: dict[_State, int] = {}
            self._known[profile] = known
            self._entries[profile] = [self._entry(profile, known, gpu) for gpu in range(len(self._states))]
            self._heaps[profile] = sorted(entry for entry in self._entries[profile] if entry >= 0)
        return self._heaps[profile], self._entries[profile]

    def _update(self, profile: int, heap: list[int]) -> None:
        entries, known = self._entries[profile], self._known[profile]
        for gpu in self.changed:
            entry = self._entry(profile, known, gpu)
            if entry != entries[gpu]:
                entries[gpu] = entry
                if entry >= 0:
                    heapq.heappush(heap, entry)
        if len(heap) > 3 * len(entries) + 1000:
            heap[:] = sorted(entry for entry in entries if entry >= 0)

    def _entry(self, profile: int, known: dict[_State, int], gpu: int) -> int:
        state = self._states[gpu]
        key = known.get(state)
        if key is None:
            found = self._key(state, profile)
            key = known[state] = -1 if found is None else found << _BITS
        return key if key < 0 else key | gpu
