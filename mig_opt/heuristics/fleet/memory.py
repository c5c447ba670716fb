"""The memory-aware scheduler MIGM: what both of its schemes share, and scheme B, which keeps the order of arrival.

From *Managing Multi Instance GPUs for High Throughput and Energy Savings* (MIGM), sections 3.2.3 and 4. Scheme A is in
:mod:`mig_opt.heuristics.fleet.by_size`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import deque

from mig_opt.arguments import wrong_flag, wrong_number
from mig_opt.errors import InputError
from mig_opt.heuristics.fleet.forecast import MemoryForecast
from mig_opt.heuristics.fleet.partition_manager import Fit, PartitionManager
from mig_opt.simulation.cluster import Cluster, Policy

_MOST_LOOKS = 1000
"""Looks at a job in what it has left: a job that runs for years is not looked at every second."""

_LEAST_PAUSE = 1e-5
"""Seconds between two looks; nobody looks more often, and the simulator would take it for an endless loop."""


class MemoryAware(Policy):
    """Gives each job the tightest memory that it fits in; jobs of unknown memory start small and grow on demand.

    The memory of a job is known (``memory_gb``, what the paper gets from compilers and models of networks) unless it
    grows: that a job has a ``memory_growth`` is known, what is in it is not. Such a job starts on the least memory.
    When it fails, it waits again for the least that is enough for what it needed then. With ``prediction`` it is looked
    at while it runs, and once the forecast has converged on more than its instance has, it is stopped and waits for
    the least that is enough for the forecast.

    Parameters
    ----------
    prediction : bool
        Whether jobs are restarted early, before they fail.
    folding : bool
        Whether a job may run on fewer compute slices than the most that go with its memory (warp folding): 3g.20gb or
        4g.20gb, whichever keeps more configurations reachable. If not, only the one on which it is fastest counts.
    slowdown_limit : float, optional
        How many times its least seconds a job may take on its instance; a larger one is used else. By default memory
        alone decides.
    start_gb : float
        Least memory on which jobs of unknown memory start, in GB, if they can have so much.
    sample_s : float
        Seconds between two looks at a job; but 1e-5 at least, and a thousandth of what the job has left.
    tolerance : float
        When a forecast has converged, see :class:`~mig_opt.heuristics.fleet.forecast.MemoryForecast`.

    Raises
    ------
    InputError
        With every problem of the options.
    """

    def __init__(
        self,
        *,
        prediction: bool = True,
        folding: bool = True,
        slowdown_limit: float | None = None,
        start_gb: float = 0.0,
        sample_s: float = 1.0,
        tolerance: float = 0.05,
    ) -> None:
        problems = [
            *wrong_flag("prediction", prediction),
            *wrong_flag("folding", folding),
            *wrong_number("start_gb", start_gb, "a finite number of GB >= 0", at_least=0),
            *wrong_number("sample_s", sample_s, "a finite number of seconds > 0", above=0),
            *wrong_number("tolerance", tolerance, "a finite number >= 0", at_least=0),
        ]
        if slowdown_limit is not None:
            problems += wrong_number("slowdown_limit", slowdown_limit, "a finite number >= 1", above=1 - 1e-12)
        if problems:
            raise InputError(problems)
        self.prediction = prediction
        self.folding = folding
        self.slowdown_limit = slowdown_limit
        self.start_gb = start_gb
        self.sample_s = sample_s
        self.tolerance = tolerance

    @abstractmethod
    def enqueue(self, job: int, fit: Fit) -> None:
        """Take a job in, last of those with its fit."""

    @abstractmethod
    def serve(self, cluster: Cluster) -> None:
        """Start what can be started now."""

    def released(self, cluster: Cluster, gpu: int, placement: int) -> None:
        """Hear that an instance is idle; the queue is served next."""

    def begin(self, cluster: Cluster) -> None:
        """Start with empty queues, knowing nothing of jobs that grow."""
        self.manager = PartitionManager(cluster, folding=self.folding, slowdown_limit=self.slowdown_limit)
        self._learnt: dict[int, float] = {}
        self._forecasts: dict[int, MemoryForecast] = {}
        self._watched: set[int] = set()

    def arrived(self, cluster: Cluster, job: int) -> None:
        """Queue the job. Those that arrive in the same moment are served together."""
        self._admit(cluster, job)
        jobs = cluster.trace.jobs
        if job + 1 == len(jobs) or jobs[job + 1].arrival > cluster.now:
            self.serve(cluster)

    def finished(self, cluster: Cluster, job: int, gpu: int, placement: int) -> None:
        """Let others have the instance."""
        self._forecasts.pop(job, None)
        self.released(cluster, gpu, placement)
        self.serve(cluster)

    def failed(self, cluster: Cluster, job: int, gpu: int, placement: int, needed_gb: float) -> None:
        """Queue the job again for as much memory as it needed."""
        self._learnt[job] = needed_gb
        self._again(cluster, job, gpu, placement)

    def gave_up(self, cluster: Cluster, job: int, gpu: int, placement: int) -> None:
        """Let others have the instance."""
        self.finished(cluster, job, gpu, placement)

    def woken(self, cluster: Cluster, tag: int) -> None:
        """Look at a job that grows, and restart it early if it will not fit."""
        forecast = self._forecasts.get(tag)
        place = cluster.place(tag)
        if forecast is None or place is None:
            self._watched.discard(tag)
            return
        if cluster.progress(tag) > 0:
            forecast.observe(cluster.progress(tag), cluster.memory_used(tag))
        gpu, placement = place
        needed = min(forecast.peak, self.manager.most(cluster.trace.jobs[tag]))
        if not forecast.converged or needed <= cluster.geometry.placements[placement].profile.memory_gb:
            self._look_later(cluster, tag)
            return
        self._watched.discard(tag)
        self._learnt[tag] = needed
        cluster.stop(tag)
        self._again(cluster, tag, gpu, placement)

    def start(self, cluster: Cluster, job: int, gpu: int, placement: int) -> None:
        """Start a job, and watch it if its memory grows."""
        cluster.start(job, gpu, placement)
        wanted = cluster.trace.jobs[job]
        memory = cluster.geometry.placements[placement].profile.memory_gb
        if self.prediction and wanted.memory_growth and memory < self.manager.most(wanted):
            self._forecasts[job] = MemoryForecast(tolerance=self.tolerance)
            if job not in self._watched:
                self._watched.add(job)
                self._look_later(cluster, job)

    def _look_later(self, cluster: Cluster, job: int) -> None:
        now = cluster.now
        pause = max(self.sample_s, (cluster.expected_end(job) - now) / _MOST_LOOKS, _LEAST_PAUSE)
        cluster.wake(max(now + pause, math.nextafter(now, math.inf)), job)

    def _admit(self, cluster: Cluster, job: int) -> None:
        wanted = cluster.trace.jobs[job]
        least = self._learnt.get(job)
        if least is None and wanted.memory_growth:
            least = min(self.start_gb, self.manager.most(wanted))
        fit = self.manager.fit(wanted, (wanted.memory_gb or 0.0) if least is None else least)
        if fit is not None:  # else it waits for ever
            self.enqueue(job, fit)

    def _again(self, cluster: Cluster, job: int, gpu: int, placement: int) -> None:
        self._forecasts.pop(job, None)
        self._admit(cluster, job)
        self.released(cluster, gpu, placement)
        self.serve(cluster)


class MemoryAwareInOrder(MemoryAware):
    """Scheme B: first come, first served; a job that does not fit holds up those behind it.

    For the job at the head of the queue the partition manager looks for an idle instance that fits tightly; else it
    creates one; else it fuses idle ones or splits one; else the job waits until another ends. A job that has to start
    again is last in the queue.

    Parameters
    ----------
    **options
        As of :class:`MemoryAware`.
    """

    def begin(self, cluster: Cluster) -> None:
        """Start with an empty queue."""
        super().begin(cluster)
        self._queue: deque[tuple[int, Fit]] = deque()

    def enqueue(self, job: int, fit: Fit) -> None:
        """Put a job last."""
        self._queue.append((job, fit))

    def serve(self, cluster: Cluster) -> None:
        """Start the first job as long as there is a place for it."""
        while self._queue:
            job, fit = self._queue[0]
            place = self.manager.place(fit)
            if place is None:
                return
            self._queue.popleft()
            self.start(cluster, job, *place)
