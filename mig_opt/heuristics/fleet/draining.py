"""Which GPU is idle first."""

from __future__ import annotations

import heapq
from collections.abc import Callable


class Draining:
    """The GPUs by their instances and by the second at which they are expected to be idle.

    There is a heap for each set of instances; entries that no longer hold are dropped when they come up. So to find a
    GPU costs no more for many of them.

    Parameters
    ----------
    gpus : int
        How many GPUs there are; none of them counts before it is put in.
    """

    def __init__(self, gpus: int) -> None:
        self._entries: list[tuple[int, float] | None] = [None] * gpus
        self._heaps: dict[int, list[tuple[float, int]]] = {}

    def put(self, gpu: int, instances: int, end: float) -> None:
        """Note that a GPU has these instances, as a mask, and is idle at some second."""
        if self._entries[gpu] != (instances, end):
            self._entries[gpu] = instances, end
            heap = self._heaps.setdefault(instances, [])
            heapq.heappush(heap, (end, gpu))
            if len(heap) > 3 * len(self._entries) + 1000:
                heap[:] = sorted({entry for entry in heap if self._holds(instances, entry)})

    def drop(self, gpu: int) -> None:
        """Let a GPU no longer count."""
        self._entries[gpu] = None

    def first(self, suits: Callable[[int], bool]) -> int | None:
        """Return the GPU that is idle first, then the least index, of those whose instances suit."""
        found: list[tuple[float, int]] = []
        for instances in [instances for instances in self._heaps if suits(instances)]:
            heap = self._heaps[instances]
            while heap and not self._holds(instances, heap[0]):
                heapq.heappop(heap)
            if heap:
                found.append(heap[0])
            else:
                del self._heaps[instances]
        return min(found)[1] if found else None

    def _holds(self, instances: int, entry: tuple[float, int]) -> bool:
        return self._entries[entry[1]] == (instances, entry[0])
