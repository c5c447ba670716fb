"""Scheme A of the memory-aware scheduler MIGM: the jobs of one size after those of the other."""

from __future__ import annotations

import heapq
from collections import deque
from typing import Literal, get_args

from mig_opt.errors import InputError, Problem, nearest
from mig_opt.heuristics.fleet.memory import MemoryAware
from mig_opt.heuristics.fleet.partition_manager import Fit
from mig_opt.simulation.cluster import Cluster

Division = Literal["equal", "shared"]


class _Phase:
    """A GPU works on the jobs of one fit.

    Attributes
    ----------
    fit : Fit
        Which.
    limit : int
        Jobs with lower tickets waited already when it began.
    lanes : dict of int to deque of int
        The jobs that have been dealt to each instance; an instance without a job has no lane.
    """

    def __init__(self, fit: Fit, limit: int) -> None:
        self.fit = fit
        self.limit = limit
        self.lanes: dict[int, deque[int]] = {}


class MemoryAwareBySize(MemoryAware):
    """Scheme A: jobs by increasing memory, so that a GPU is seldom partitioned anew (section 4.3, Algorithm 4).

    A GPU without jobs begins a *phase*: it makes as many instances of one tight fit as it can use, and works on the
    jobs of that fit until they are done. The next phase has the next larger fit with waiting jobs, and after the
    largest the smallest. The jobs are dealt equally to the instances, each of which works on its own. For jobs that
    arrive over time and for several GPUs, of which the paper says nothing, it is decided so:

    * Jobs of its fit that arrive during a phase take part in it as long as no others wait without a GPU for them.
    * A phase is dealt all waiting jobs of its fit, with several GPUs an equal part of them (but enough for each of its
      instances). The rest can be taken by any instance that has done its own.
    * Fits of equal memory are different fits if they allow different profiles, the one with fewer slices being smaller.

    Parameters
    ----------
    division : {"equal", "shared"}
        Whether the jobs are dealt to the instances in advance, or each takes the next one when it is idle.
    **options
        As of :class:`MemoryAware`.
    """

    def __init__(
        self,
        *,
        division: Division = "equal",
        prediction: bool = True,
        folding: bool = True,
        slowdown_limit: float | None = None,
        start_gb: float = 0.0,
        sample_s: float = 1.0,
        tolerance: float = 0.05,
    ) -> None:
        problems = []
        if division not in get_args(Division):
            problems.append(Problem("division", f"unknown {division!r}; {nearest(str(division), get_args(Division))}"))
        try:
            super().__init__(
                prediction=prediction,
                folding=folding,
                slowdown_limit=slowdown_limit,
                start_gb=start_gb,
                sample_s=sample_s,
                tolerance=tolerance,
            )
        except InputError as error:
            problems += error.problems
        if problems:
            raise InputError(problems)
        self.division = division

    def begin(self, cluster: Cluster) -> None:
        """Start with empty queues and no phase on any GPU."""
        super().begin(cluster)
        self._queues: dict[Fit, deque[tuple[int, int]]] = {}
        self._waiting = 0
        self._tickets = 0
        self._phases: dict[int, _Phase] = {}
        self._free = list(range(cluster.trace.gpus))
        self._last: dict[int, Fit] = {}
        self._roomy: dict[Fit, dict[int, None]] = {}

    def enqueue(self, job: int, fit: Fit) -> None:
        """Put a job last of those with its fit."""
        self._queues.setdefault(fit, deque()).append((self._tickets, job))
        self._tickets += 1
        self._waiting += 1

    def released(self, cluster: Cluster, gpu: int, placement: int) -> None:
        """Let the instance go on with its next job; the phase ends with the last lane."""
        phase = self._phases[gpu]
        lane = phase.lanes.pop(placement)
        if lane:
            phase.lanes[placement] = lane
            self.start(cluster, lane.popleft(), gpu, placement)
        elif self._may_join(phase):
            phase.lanes[placement] = lane
            self.start(cluster, self._take(phase.fit), gpu, placement)
        elif phase.lanes:
            self._roomy.setdefault(phase.fit, {})[gpu] = None
        else:
            self._end(gpu)

    def serve(self, cluster: Cluster) -> None:
        """Let waiting jobs join phases that have room; then GPUs without a phase begin one."""
        for fit in self._waiting_fits():
            self._join(cluster, fit)
        while self._free and self._waiting:
            self._begin(cluster, heapq.heappop(self._free))

    def _waiting_fits(self) -> list[Fit]:
        """Return the fits that jobs wait for, the smallest first: less memory, then smaller profiles."""
        return sorted((fit for fit, queue in self._queues.items() if queue), key=_size)

    def _take(self, fit: Fit) -> int:
        self._waiting -= 1
        return self._queues[fit].popleft()[1]

    def _may_join(self, phase: _Phase) -> bool:
        """Whether the first waiting job of the phase's fit may run in it."""
        queue = self._queues.get(phase.fit)
        if not queue:
            return False
        return queue[0][0] < phase.limit or len(queue) == self._waiting or bool(self._free)

    def _join(self, cluster: Cluster, fit: Fit) -> None:
        roomy, queue = self._roomy.get(fit, {}), self._queues[fit]
        for gpu in sorted(roomy):
            phase = self._phases[gpu]
            while queue and self._may_join(phase):
                placement = self.manager.place_on(gpu, fit)
                if placement is None:
                    del roomy[gpu]
                    break
                phase.lanes[placement] = deque()
                self.start(cluster, self._take(fit), gpu, placement)
            if not queue:
                return

    def _begin(self, cluster: Cluster, gpu: int) -> None:
        fits = self._waiting_fits()
        last = self._last.get(gpu)
        fit = fits[0] if last is None else next((fit for fit in fits if _size(fit) > _size(last)), fits[0])
        phase = self._phases[gpu] = _Phase(fit, self._tickets)
        self._last[gpu] = fit
        queue = self._queues[fit]
        part = -(-len(queue) // cluster.trace.gpus)
        lanes: list[deque[int]] = []
        while queue:
            placement = self.manager.place_on(gpu, fit)
            if placement is None:
                break
            lane = phase.lanes[placement] = deque()
            lanes.append(lane)
            self.start(cluster, self._take(fit), gpu, placement)
        else:
            self._roomy.setdefault(fit, {})[gpu] = None
        if self.division == "equal":
            for number in range(min(len(queue), part - len(lanes))):
                lanes[number % len(lanes)].append(self._take(fit))

    def _end(self, gpu: int) -> None:
        phase = self._phases.pop(gpu)
        self._roomy.get(phase.fit, {}).pop(gpu, None)
        if not self._waiting:
            del self._last[gpu]
        heapq.heappush(self._free, gpu)


def _size(fit: Fit) -> tuple[float, tuple[int, ...]]:
    # Profiles are numbered from the largest to the smallest.
    return fit.memory_gb, tuple(-profile for profile in fit.profiles)
