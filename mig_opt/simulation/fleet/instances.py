"""The instances on the GPUs of a fleet, the drivers that create and destroy them, and rankings of the GPUs."""

from __future__ import annotations

import heapq
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

from mig_opt.errors import PolicyError, raise_any
from mig_opt.fleet.log import CREATE, DESTROY, KINDS, Log
from mig_opt.fleet.trace import Trace
from mig_opt.gpu.geometry import Geometry, GpuState, NumberedPlace, members
from mig_opt.gpu.problems import uncounted

_State = TypeVar("_State", bound=Hashable)
Query = TypeVar("Query", bound=Hashable)

Key = Callable[[GpuState, Query], int | None]
"""Rates a GPU state for a query (such as a profile): least integers >= 0 are best, ``None`` rules the GPU out."""

_BITS = 20
_GPU = (1 << _BITS) - 1


class Ranking(Generic[_State, Query]):
    """The GPUs in order of preference, for each query (as a profile); a decision costs the logarithm of their number.

    A state is a :class:`GpuState` or anything else that equals itself and repeats. The key of a GPU depends on its
    state alone, so it is computed once for each state. A heap for each query holds the GPUs by key, then by index;
    entries that no longer hold are dropped when they come up.
    """

    def __init__(self, states: Sequence[_State], key: Callable[[_State, Query], int | None]) -> None:
        self.changed: set[int] = set()
        """GPUs whose state may be another than when the ranking was last asked."""
        self._states, self._key = states, key
        # By query: the heap, the entry of each GPU, and those of states without the number of a GPU.
        self._orders: dict[Query, tuple[list[int], list[int], dict[_State, int]]] = {}

    def best(self, query: Query) -> int | None:
        """Return the first GPU for a query, or None if all are ruled out."""
        heap, entries = self._up_to_date(query)
        while heap and entries[heap[0] & _GPU] != heap[0]:
            heapq.heappop(heap)
        return heap[0] & _GPU if heap else None

    def first(self, query: Query, accept: Callable[[int], bool], *, below: float = math.inf) -> int | None:
        """Return the first GPU for a query that is accepted, of those whose key is less than ``below``, or None."""
        heap, entries = self._up_to_date(query)
        refused: list[int] = []
        found = None
        while heap and heap[0] >> _BITS < below:
            entry, gpu = heap[0], heap[0] & _GPU
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

    def _up_to_date(self, query: Query) -> tuple[list[int], list[int]]:
        if self.changed:
            for asked, (heap, entries, known) in self._orders.items():
                for gpu in self.changed:
                    entry = self._entry(asked, known, gpu)
                    if entry != entries[gpu]:
                        entries[gpu] = entry
                        if entry >= 0:
                            heapq.heappush(heap, entry)
                if len(heap) > 3 * len(entries) + 1000:
                    heap[:] = sorted(entry for entry in entries if entry >= 0)
            self.changed.clear()
        if query not in self._orders:
            known = {}
            entries = [self._entry(query, known, gpu) for gpu in range(len(self._states))]
            self._orders[query] = sorted(entry for entry in entries if entry >= 0), entries, known
        return self._orders[query][:2]

    def _entry(self, query: Query, known: dict[_State, int], gpu: int) -> int:
        state = self._states[gpu]
        key = known.get(state)
        if key is None:
            found = self._key(state, query)
            key = known[state] = -1 if found is None else found << _BITS
        return key if key < 0 else key | gpu


class GpuStates(ABC):
    """The states of the GPUs of a fleet, with rankings that follow every change, and jobs that may migrate."""

    def __init__(self, geometry: Geometry, busy: Sequence[int]) -> None:
        self.geometry = geometry  # the placements of each GPU
        self.states: list[GpuState] = [geometry.state(mask, 0) for mask in busy]  # the state of each GPU
        self._rankings: list[Ranking[GpuState, Any]] = []

    def ranking(self, key: Key[Query]) -> Ranking[GpuState, Query]:
        """Return the GPUs in an order that is kept up to date, for decisions whose cost does not grow with them.

        Examples
        --------
        The GPU with most free compute slices on which there is room, ties by index::

            def key(state: GpuState, profile: int) -> int | None:
                return state.usage.used_compute if state.options(profile) else None

            gpu = cluster.ranking(key).best(profile)
        """
        ranking = Ranking(self.states, key)
        self._rankings.append(ranking)
        return ranking

    def present(self, gpu: int) -> bool:
        """Return True unless a GPU has left the fleet."""
        return self.states[gpu] is not self.geometry.absent

    @abstractmethod
    def job_at(self, gpu: int, placement: int) -> int | None:
        """Return the job that has an instance, or None."""

    @abstractmethod
    def movable(self, job: int) -> bool:
        """Return True if a job may migrate now."""

    @abstractmethod
    def migrate(self, job: int, gpu: int, placement: int) -> None:
        """Move a job to an instance."""

    def _become(self, gpu: int, busy: int, idle: int, *, absent: bool = False) -> None:
        self.states[gpu] = self.geometry.absent if absent else self.geometry.state(busy, idle)
        for ranking in self._rankings:
            ranking.changed.add(gpu)


class FleetInstances(GpuStates):
    """Instances of all GPUs, as policies see them: a decision counts as done.

    An operation is queued at its GPU's driver in the moment of the decision and takes its turn, so the second at which
    it ends is known at once. An instance that is not there yet, or that a migrating job has not left yet, belongs to
    the state all the same; the next job on it waits until it is ready.
    """

    def __init__(self, trace: Trace, geometry: Geometry) -> None:
        raise_any(uncounted(geometry.profiles, single=True))
        super().__init__(geometry, [0] * trace.gpus)
        self.now = 0.0  # seconds after the start of the trace
        self.log = Log(trace, geometry)  # runs and operations so far
        self.actions = 0  # number of actions so far
        self._driver = [0.0] * trace.gpus
        self._ready: dict[NumberedPlace, float] = {}
        for gpu in () if geometry.gpu.mig else range(trace.gpus):
            self._become(gpu, 0, self._at_first(gpu))
        self._operation_seconds = [
            tuple(trace.operations.of(kind, placement.profile) for placement in geometry.placements) for kind in KINDS
        ]

    def ready(self, gpu: int, placement: int) -> float:
        """Return the second from which an instance can be used by the next job, or destroyed.

        It is in the past, or the instance is being created, or a migrating job leaves it then.
        """
        return self._ready[gpu, placement]

    def driver_free(self, gpu: int) -> float:
        """Return the second at which a GPU's driver has done all operations that it has been given."""
        return self._driver[gpu]

    def create(self, gpu: int, placement: int) -> None:
        """Create an idle instance; idle ones that are in the way are destroyed first.

        Where MIG is off nothing happens: the whole GPU is there already.
        """
        self._check_place(gpu, placement)
        self.actions += 1
        if self.geometry.gpu.mig:
            self._create(gpu, placement)

    def destroy(self, gpu: int, placement: int) -> None:
        """Destroy an idle instance."""
        self._check_place(gpu, placement)
        self.actions += 1
        state = self.states[gpu]
        if not state.idle >> placement & 1:
            raise PolicyError(f"{self._name(gpu, placement)} was to be destroyed, but there is no idle instance")
        if not self.geometry.gpu.mig:
            raise PolicyError(f"{self._name(gpu, placement)} was to be destroyed, but MIG is off")
        self._destroy(gpu, placement)
        self._become(gpu, state.busy, state.idle ^ 1 << placement)

    def _claim(self, gpu: int, placement: int) -> float:
        """Make an instance busy and return the second at which it is ready; it is created if it does not exist."""
        state, bit = self.states[gpu], 1 << placement
        if state.busy & self.geometry.conflicts[placement]:
            raise PolicyError(
                f"{self._name(gpu, placement)} was claimed for a job while another has it or a part of it"
            )
        if not state.idle & bit:
            self._create(gpu, placement)
            state = self.states[gpu]
        self._become(gpu, state.busy | bit, state.idle ^ bit)
        return max(self.now, self._ready[gpu, placement])

    def _release(self, gpu: int, placement: int, free: float) -> None:
        """Make an instance idle; its job is gone from ``free`` on."""
        state, bit = self.states[gpu], 1 << placement
        self._ready[gpu, placement] = max(self._ready[gpu, placement], free)
        self._become(gpu, state.busy ^ bit, state.idle | bit)

    def _create(self, gpu: int, placement: int) -> None:
        state, conflicts = self.states[gpu], self.geometry.conflicts[placement]
        if state.busy & conflicts or state.idle >> placement & 1:
            raise PolicyError(f"{self._name(gpu, placement)} was to be created, but it exists, or a job is in the way")
        blocking = state.idle & conflicts
        for other in members(blocking):
            self._destroy(gpu, other)
        self._ready[gpu, placement] = self._operate(CREATE, gpu, placement, self.now)
        self._become(gpu, state.busy, state.idle & ~blocking | 1 << placement)

    def _destroy(self, gpu: int, placement: int) -> None:
        self._operate(DESTROY, gpu, placement, max(self.now, self._ready.pop((gpu, placement))))

    def _operate(self, kind: int, gpu: int, placement: int, earliest: float) -> float:
        """Give the driver an operation, and return the second at which it ends."""
        begin = max(earliest, self._driver[gpu])
        end = begin + self._operation_seconds[kind][placement]
        self._driver[gpu] = end
        self.log.add_operation(kind, gpu, placement, begin, end)
        return end

    def _at_first(self, gpu: int) -> int:
        """Return the mask of the instances of a GPU that has come: none, or the whole where MIG is off."""
        if self.geometry.gpu.mig:
            return 0
        self._ready[gpu, 0] = self.now
        return 1

    def _vanish(self, gpu: int) -> None:
        """Let a GPU leave with its instances, of which none has a job; what its driver has not done is not done."""
        for placement in members(self.states[gpu].idle):
            del self._ready[gpu, placement]
        self.log.cut_operations(gpu, self.now)
        self._become(gpu, 0, 0, absent=True)

    def _check_place(self, gpu: int, placement: int) -> None:
        """Refuse a GPU or a placement that does not exist, or a GPU that has left."""
        counts = (("GPU", gpu, len(self.states)), ("placement", placement, len(self.geometry.placements)))
        for kind, number, count in counts:
            if not 0 <= number < count:
                raise PolicyError(f"there is no {kind} {number}; they are numbered from 0 to {count - 1}")
        if not self.present(gpu):
            raise PolicyError(f"{self._name(gpu, placement)} was asked for, but this GPU has left the fleet")

    def _name(self, gpu: int, placement: int) -> str:
        return f"{self.geometry.placements[placement]} of GPU {gpu}"
