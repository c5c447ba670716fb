"""The memory-aware scheduler MIGM: forecasts of memory, scheme A (by size) and scheme B (in order of arrival).

From *Managing Multi Instance GPUs for High Throughput and Energy Savings* (MIGM), sections 3.2.3 and 4.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Annotated, ClassVar, Literal

from mig_opt.heuristics.fleet.base import MIN_PAUSE_S, JobQueue, LinearFit, QueueScheduler
from mig_opt.heuristics.fleet.partition_manager import PartitionManager, TightFit
from mig_opt.rules.vocabulary import Number, Seconds
from mig_opt.simulation.fleet.cluster import Cluster

# Observations of a job in the time it has left: a job that runs for years is not observed every second.
_MAX_OBSERVATIONS = 1000
_MIN_ITERATIONS = 3  # two points are on a line always; from the third on there are residuals
_MIN_STEADY_PREDICTIONS = 3  # predictions in a row that hardly differ, for the forecast to have converged
_DEVIATIONS = NormalDist().inv_cdf(0.995)  # standard deviations from the line within which 99 % of the values are


class MemoryForecast:
    """Forecast of the most memory that a job will need, from its iterations so far (section 3.2.3 and Algorithm 1).

    A straight line is fitted to the memory that a job has used so far, and continued to its last iteration. The
    prediction counts once it has converged. The paper fits another line to how little of the requested memory is
    reused; where the used memory is all that is known, as in a simulation, that line stays at 1.

    The predicted peak is the upper end of the 99 % interval of the line at the last iteration, and at least what has
    been used so far. It has converged (which the paper leaves open) when it has changed by no more than ``tolerance``
    of itself three times in a row; the first prediction is made of three iterations. ``last`` is the last iteration, in
    the unit of those that are observed: a number, or 1 for shares of the work.

    Examples
    --------
    Memory that grows by 0.1 GB from iteration to iteration has reached 12 GB after 100 of them.

    >>> forecast = MemoryForecast(last=100)
    >>> for iteration in range(1, 7):
    ...     forecast.observe(iteration, 2.0 + 0.1 * iteration)
    ...     print(iteration, forecast.converged, round(forecast.peak, 2))
    1 False 2.1
    2 False 2.2
    3 False 12.0
    4 False 12.0
    5 False 12.0
    6 True 12.0
    """

    def __init__(self, *, last: float = 1.0, tolerance: float = 0.05) -> None:
        self.peak = 0.0  # GB that the job is predicted to need; what it has used until there are three iterations
        self._last, self._tolerance = last, tolerance
        self._line = LinearFit()
        self._used = 0.0
        self._steady = 0
        self._previous_peak = math.nan

    def observe(self, iteration: float, gb: float) -> None:
        """Add the memory used at an iteration, by its number or the share of the work that is done; later ones last."""
        self._line.add(iteration, gb)
        self.peak = self._used = max(self._used, gb)
        if self._line.count < _MIN_ITERATIONS:
            return
        self.peak = max(self._used, self._line.at(self._last) + _DEVIATIONS * self._line.deviation)
        steady = abs(self.peak - self._previous_peak) <= self._tolerance * self.peak
        self._steady = self._steady + 1 if steady else 0
        self._previous_peak = self.peak

    @property
    def converged(self) -> bool:
        """True if the prediction has converged."""
        return self._steady >= _MIN_STEADY_PREDICTIONS


@dataclass(kw_only=True, eq=False)
class MemoryAware(QueueScheduler):
    """Gives each job the tightest memory that it fits in; jobs of unknown memory start small and grow on demand.

    The memory of a job is known (``memory_gb``, what the paper gets from compilers and models of networks) unless it
    grows: that a job has a ``memory_growth`` is known, its values are not. Such a job starts on the least memory. When
    it fails, it waits again for the least that is enough for what it needed then. With ``prediction`` it is observed
    while it runs, and once the forecast has converged on more than its instance has, it is stopped and waits for the
    least that is enough for the forecast.

    Parameters
    ----------
    prediction : bool
        Jobs are restarted early, before they fail.
    folding : bool
        Warp folding: a job may run on fewer compute slices than the most that go with its memory, 3g.20gb or 4g.20gb,
        whichever keeps more configurations reachable. If not, only the one on which it is fastest counts.
    warps : bool
        The tight fit leaves room for the warps of jobs that say how many SMs these fill (``sms``): with ``folding``
        for as few rounds of them as on the largest instance, else for all at once, as far as any instance has it. By
        default memory alone decides.
    slowdown_limit : float, optional
        How many times its least seconds a job may take on its instance; a larger one is used else. By default memory
        alone decides.
    start_gb : float
        Least memory on which jobs of unknown memory start, in GB, if they can have it.
    sample_s : float
        Seconds between two observations of a job; but 1e-5 at least, and a thousandth of what the job has left.
    tolerance : float
        Tolerance of the forecasts, see :class:`MemoryForecast`.
    """

    partitions_gpus: ClassVar = True

    prediction: bool = True
    folding: bool = True
    warps: bool = False
    slowdown_limit: Annotated[float, Number(at_least=1)] | None = None
    start_gb: Annotated[float, Number("GB", at_least=0)] = 0.0
    sample_s: Seconds = 1.0
    tolerance: Annotated[float, Number(at_least=0)] = 0.05

    def begin(self, cluster: Cluster) -> None:
        """Start with an empty queue and no knowledge of jobs that grow."""
        self.manager = PartitionManager(
            cluster, folding=self.folding, warps=self.warps, slowdown_limit=self.slowdown_limit
        )
        self.queue: JobQueue[TightFit] = JobQueue()
        self._forecasts: dict[int, MemoryForecast] = {}
        self._observed: set[int] = set()

    def arrived(self, cluster: Cluster, job: int) -> None:
        """Queue the job. Those that arrive in the same moment are served together."""
        self.enqueue(cluster, job)
        if not cluster.more_to_come:
            self.serve(cluster)

    def released(self, cluster: Cluster, job: int, gpu: int, placement: int) -> None:
        """Forget what was forecast of the job."""
        self._forecasts.pop(job, None)

    def woken(self, cluster: Cluster, tag: int) -> None:
        """Observe a job that grows (its number is the tag), and restart it early if it will not fit."""
        forecast, place = self._forecasts.get(tag), cluster.place(tag)
        if forecast is None or place is None:
            self._observed.discard(tag)
            return
        if cluster.progress(tag) > 0:
            forecast.observe(cluster.progress(tag), cluster.memory_used(tag))
        needed = min(forecast.peak, self.manager.largest_gb(cluster.trace.jobs[tag]))
        if not forecast.converged or needed <= cluster.geometry.placements[place[1]].profile.memory_gb:
            self._observe_later(cluster, tag)
            return
        self._observed.discard(tag)
        cluster.stop(tag, needed)
        self.failed(cluster, tag, *place, needed)

    def start(self, cluster: Cluster, job: int, gpu: int, placement: int) -> None:
        """Start a job, and observe it if its memory grows."""
        cluster.start(job, gpu, placement)
        requested = cluster.trace.jobs[job]
        memory_gb = cluster.geometry.placements[placement].profile.memory_gb
        if self.prediction and requested.memory_growth and memory_gb < self.manager.largest_gb(requested):
            self._forecasts[job] = MemoryForecast(tolerance=self.tolerance)
            if job not in self._observed:
                self._observed.add(job)
                self._observe_later(cluster, job)

    def _observe_later(self, cluster: Cluster, job: int) -> None:
        now = cluster.now
        pause = max(self.sample_s, (cluster.expected_end(job) - now) / _MAX_OBSERVATIONS, MIN_PAUSE_S)
        cluster.wake(max(now + pause, math.nextafter(now, math.inf)), job)

    def demand(self, cluster: Cluster, job: int) -> float:
        """Return the GB that a job is known to need, or those on which it starts."""
        requested, known = cluster.trace.jobs[job], cluster.known_need(job)
        if requested.memory_growth:
            return known or min(self.start_gb, self.manager.largest_gb(requested))
        return known or requested.memory_gb or 0.0

    def enqueue(self, cluster: Cluster, job: int) -> None:
        """Queue a job for its tight fit; if there is none, it waits for ever."""
        fit = self.manager.tight_fit(cluster.trace.jobs[job], self.demand(cluster, job))
        if fit is not None:
            self.add(fit, job)

    def add(self, fit: TightFit, job: int) -> None:
        """Append a job to the queue of its fit."""
        self.queue.add(fit, job)

    def dequeue(self, job: int) -> None:
        """Forget a job that waits."""
        self.queue.discard(job)


class MemoryAwareInOrder(MemoryAware):
    """Scheme B: first come, first served; a job that does not fit holds up those behind it.

    For the job at the head of the queue the partition manager looks for an idle instance that fits tightly; else it
    creates one; else it fuses idle ones or splits one; else the job waits until another ends. A job that has to start
    again is last in the queue. Its options are those of :class:`MemoryAware`.
    """

    def serve(self, cluster: Cluster) -> None:
        """Start the first job as long as there is a place for it."""

        def place(fit: TightFit) -> bool:
            found = self.manager.place(fit)
            if found is None:
                return False
            self.start(cluster, self.queue.take(fit), *found)
            return True

        self.queue.serve(place, lambda _: True)


@dataclass(slots=True)
class _Phase:
    """Phase of a GPU, in which it works on the jobs of one fit.

    Jobs with lower turns than ``first_later_turn`` waited already when it began. For each instance that runs a job,
    ``dealt`` has the jobs that are to follow there.
    """

    fit: TightFit
    first_later_turn: int
    dealt: dict[int, deque[int]] = field(default_factory=dict)


@dataclass(kw_only=True, eq=False)
class MemoryAwareBySize(MemoryAware):
    """Scheme A: jobs by increasing memory, so that a GPU is seldom partitioned anew (section 4.3, Algorithm 4).

    A GPU without jobs begins a *phase*: it makes as many instances of one tight fit as it can use, and works on the
    jobs of that fit until they are done, by increasing memory. The next phase has the next larger fit with waiting
    jobs, and after the largest the smallest. The jobs are dealt equally to the instances, each of which works on its
    own.
    ``docs/explanation/memory-aware.md`` has the rules for jobs that arrive during a phase, and for several GPUs.

    Parameters
    ----------
    division : {"equal", "shared"}
        Jobs are dealt to the instances in advance, or each takes the next one when it is idle.
    **options
        As of :class:`MemoryAware`.
    """

    division: Literal["equal", "shared"] = "equal"

    def begin(self, cluster: Cluster) -> None:
        """Start with an empty queue and no phase on any GPU."""
        super().begin(cluster)
        self._phases: dict[int, _Phase] = {}
        self._without_phase = list(range(cluster.trace.gpus))
        self._last_fit: dict[int, TightFit] = {}
        # For each fit the GPUs in a phase of it that may have room for another instance.
        self._with_room: defaultdict[TightFit, set[int]] = defaultdict(set)
        # Waiting jobs of each fit: those that came since its last phase began, in their order; and the others.
        self._unsorted: defaultdict[TightFit, deque[int]] = defaultdict(deque)
        self._sorted: defaultdict[TightFit, deque[int]] = defaultdict(deque)

    def add(self, fit: TightFit, job: int) -> None:
        """Append a job to the queue; until the next phase of its fit begins it is the last one."""
        super().add(fit, job)
        self._unsorted[fit].append(job)

    def dequeue(self, job: int) -> None:
        """Take a job that waits out of the queue, or from the instance that it was dealt to."""
        super().dequeue(job)
        dealt = (jobs for phase in self._phases.values() for jobs in phase.dealt.values())
        for jobs in (*self._unsorted.values(), *self._sorted.values(), *dealt):
            if job in jobs:
                jobs.remove(job)

    def gpu_left(self, cluster: Cluster, gpu: int, lost: Sequence[tuple[int, int]]) -> None:
        """End the phase of the GPU, queue its jobs and those that were dealt to it again, and serve."""
        self._last_fit.pop(gpu, None)
        if gpu in self._phases:
            phase = self._phases.pop(gpu)
            self._with_room[phase.fit].discard(gpu)
            for job in itertools.chain(*phase.dealt.values()):
                self.add(phase.fit, job)
        else:
            self._without_phase.remove(gpu)
            heapq.heapify(self._without_phase)
        super().gpu_left(cluster, gpu, lost)

    def gpu_returned(self, cluster: Cluster, gpu: int) -> None:
        """Let the GPU begin a phase."""
        heapq.heappush(self._without_phase, gpu)
        self.serve(cluster)

    def _take(self, fit: TightFit) -> int:
        return self.queue.take(fit, (self._sorted[fit] or self._unsorted[fit]).popleft())

    def released(self, cluster: Cluster, job: int, gpu: int, placement: int) -> None:
        """Let the instance go on with its next job; the phase ends with the last busy instance."""
        super().released(cluster, job, gpu, placement)
        phase = self._phases.get(gpu)
        if phase is None:  # the GPU has left
            return
        dealt, fit = phase.dealt.pop(placement), phase.fit
        may_join = fit in self.queue and (self.queue.turn(fit) < phase.first_later_turn or self._may_join_any(fit))
        if dealt or may_join:
            phase.dealt[placement] = dealt
            self.start(cluster, dealt.popleft() if dealt else self._take(fit), gpu, placement)
        elif phase.dealt:
            self._with_room[fit].add(gpu)
        else:
            del self._phases[gpu]
            self._with_room[fit].discard(gpu)
            if not self.queue:
                del self._last_fit[gpu]
            heapq.heappush(self._without_phase, gpu)

    def serve(self, cluster: Cluster) -> None:
        """Let waiting jobs join phases that have room; then GPUs without a phase begin one."""
        for fit in self._waiting_fits():
            self._join(cluster, fit)
        while self._without_phase and self.queue:
            self._begin_phase(cluster, heapq.heappop(self._without_phase))

    def _waiting_fits(self) -> list[TightFit]:
        """Return the fits for which jobs wait, the smallest first."""
        return sorted(self.queue.counts(), key=_size)

    def _may_join_any(self, fit: TightFit) -> bool:
        """Return True if the waiting jobs of a fit may run in any phase of it: no others wait, or GPUs are left."""
        return len(self.queue.jobs(fit)) == len(self.queue) or bool(self._without_phase)

    def _join(self, cluster: Cluster, fit: TightFit) -> None:
        # When a GPU came to have room, no turn let a waiting job join its phase, and the turns of later jobs are later.
        with_room = self._with_room[fit]
        while with_room and fit in self.queue and self._may_join_any(fit):
            gpu = min(with_room)
            if not self._run_first(cluster, gpu, self._phases[gpu]):
                with_room.discard(gpu)

    def _begin_phase(self, cluster: Cluster, gpu: int) -> None:
        fits = self._waiting_fits()
        last = self._last_fit.get(gpu)
        fit = fits[0] if last is None else next((fit for fit in fits if _size(fit) > _size(last)), fits[0])
        phase = self._phases[gpu] = _Phase(fit, self.queue.next_turn)
        self._last_fit[gpu] = fit
        # Those that were sorted before an earlier phase come first: no stream of jobs with less memory holds up others.
        new = self._unsorted.pop(fit, ())
        self._sorted[fit].extend(sorted(new, key=lambda job: (self.demand(cluster, job), job)))
        share = -(-len(self.queue.jobs(fit)) // cluster.trace.gpus)
        while fit in self.queue and self._run_first(cluster, gpu, phase):
            pass
        if fit not in self.queue:
            self._with_room[fit].add(gpu)
        elif self.division == "equal":
            instances = list(phase.dealt.values())
            for number in range(min(len(self.queue.jobs(fit)), share - len(instances))):
                instances[number % len(instances)].append(self._take(fit))

    def _run_first(self, cluster: Cluster, gpu: int, phase: _Phase) -> bool:
        """Start the first job of a phase's fit on another instance; return False if there is no room for one."""
        placement = self.manager.place_on(gpu, phase.fit)
        if placement is None:
            return False
        phase.dealt[placement] = deque()
        self.start(cluster, self._take(phase.fit), gpu, placement)
        return True


def _size(fit: TightFit) -> tuple[float, tuple[int, ...]]:
    # Less memory is smaller, then fewer slices: profiles are numbered from the largest to the smallest.
    return fit.memory_gb, tuple(-profile for profile in fit.profiles)
