"""The GPUs: their instances, and the driver of each that creates and destroys them one after the other."""

from __future__ import annotations

from mig_opt.errors import SolverError
from mig_opt.fleet.log import CREATE, DESTROY, Log
from mig_opt.fleet.trace import Trace
from mig_opt.gpu.geometry import Geometry, members
from mig_opt.gpu.states import GpuState, States
from mig_opt.simulation.ranking import Key, Ranking


class Fleet:
    """Instances of all GPUs, as those who decide see them: what has been decided counts as done.

    An operation is queued at its GPU's driver in the moment of the decision and takes its turn, so the second at which
    it ends is known at once. An instance that is not there yet, or that a migrating job has not left yet, belongs to
    the state all the same; whoever is next on it waits until it is ready.

    Attributes
    ----------
    states : list of GpuState
        The state of each GPU.
    """

    def __init__(self, trace: Trace, geometry: Geometry, log: Log) -> None:
        self._geometry = geometry
        self._log = log
        self._states = States(geometry)
        self.states: list[GpuState] = [self._states.get(0, 0)] * trace.gpus
        self._rankings: list[Ranking[GpuState]] = []
        self._driver = [0.0] * trace.gpus
        self._ready: dict[tuple[int, int], float] = {}
        profiles = [placement.profile for placement in geometry.placements]
        self._seconds = (
            tuple(trace.operations.of("create", profile) for profile in profiles),
            tuple(trace.operations.of("destroy", profile) for profile in profiles),
        )

    def ranking(self, key: Key) -> Ranking[GpuState]:
        """Return the GPUs in an order that is kept up to date."""
        ranking = Ranking(self.states, key)
        self._rankings.append(ranking)
        return ranking

    def ready(self, gpu: int, placement: int) -> float:
        """Return the second from which on an instance can be used or destroyed."""
        return self._ready[gpu, placement]

    def driver_free(self, gpu: int) -> float:
        """Return the second at which a GPU's driver has done all operations that it has been given."""
        return self._driver[gpu]

    def claim(self, gpu: int, placement: int, now: float) -> float:
        """Make an instance busy and return when it is ready.

        One that is there is used; else idle ones that are in the way are destroyed, and it is created.
        """
        state, bit = self.states[gpu], 1 << placement
        if state.busy & self._geometry.conflicts[placement]:
            where = f"{self._geometry.placements[placement]} of GPU {gpu}"
            raise SolverError(f"{where} was claimed for a job while another has it or a part of it")
        if not state.idle & bit:
            self.create(gpu, placement, now)
            state = self.states[gpu]
        self._become(gpu, state.busy | bit, state.idle ^ bit)
        return max(now, self._ready[gpu, placement])

    def release(self, gpu: int, placement: int, free: float) -> None:
        """Make an instance idle; its job is gone from ``free`` on."""
        state, bit = self.states[gpu], 1 << placement
        self._ready[gpu, placement] = max(self._ready[gpu, placement], free)
        self._become(gpu, state.busy ^ bit, state.idle | bit)

    def create(self, gpu: int, placement: int, now: float) -> None:
        """Create an idle instance; idle ones that are in the way are destroyed first."""
        state, conflicts = self.states[gpu], self._geometry.conflicts[placement]
        if state.busy & conflicts or state.idle >> placement & 1:
            where = f"{self._geometry.placements[placement]} of GPU {gpu}"
            raise SolverError(f"{where} was to be created, but it exists, or a job is in the way")
        blocking = state.idle & conflicts
        for other in members(blocking):
            self._operate(DESTROY, gpu, other, max(now, self._ready.pop((gpu, other))))
        self._ready[gpu, placement] = self._operate(CREATE, gpu, placement, now)
        self._become(gpu, state.busy, state.idle & ~blocking | 1 << placement)

    def destroy(self, gpu: int, placement: int, now: float) -> None:
        """Destroy an idle instance."""
        state = self.states[gpu]
        if not state.idle >> placement & 1:
            where = f"{self._geometry.placements[placement]} of GPU {gpu}"
            raise SolverError(f"{where} was to be destroyed, but there is no idle instance")
        self._operate(DESTROY, gpu, placement, max(now, self._ready.pop((gpu, placement))))
        self._become(gpu, state.busy, state.idle ^ 1 << placement)

    def _operate(self, kind: int, gpu: int, placement: int, earliest: float) -> float:
        begin = max(earliest, self._driver[gpu])
        end = begin + self._seconds[kind][placement]
        self._driver[gpu] = end
        self._log.add_operation(kind, gpu, placement, begin, end)
        return end

    def _become(self, gpu: int, busy: int, idle: int) -> None:
        self.states[gpu] = self._states.get(busy, idle)
        for ranking in self._rankings:
            ranking.changed.add(gpu)
