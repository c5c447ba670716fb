"""Parts that schedulers share: what serves a queue of waiting jobs, a rank of GPUs, a line through points."""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Generic, Self, TypeVar

from mig_opt.fleet.trace import Trace
from mig_opt.gpu.geometry import GpuState
from mig_opt.heuristics.fleet.partitions import fleet_partitions
from mig_opt.simulation.fleet.cluster import Cluster
from mig_opt.simulation.fleet.options import ConfigurablePolicy

JobClass = TypeVar("JobClass", bound=Hashable)

MIN_PAUSE_S = 1e-5  # from one look to the next at least: the simulator would take a shorter pause for an endless loop


class QueueScheduler(ConfigurablePolicy):
    """Base class of schedulers with a queue: the events that change it are those at which it is served."""

    @abstractmethod
    def enqueue(self, cluster: Cluster, job: int) -> None:
        """Append a job to the queue, to wait for as much memory as it is known to need."""

    @abstractmethod
    def dequeue(self, job: int) -> None:
        """Forget a job that waits."""

    @abstractmethod
    def serve(self, cluster: Cluster) -> None:
        """Start the jobs that can be started now."""

    def of_gpus(self, trace: Trace, gpus: range) -> Self:
        """Return a copy for some GPUs of a trace, with their partitions where each GPU of the trace has its own."""
        own = copy.copy(self)
        own.__dict__["whole_trace"] = trace
        partition = getattr(self, "partition", None)
        if partition is not None and not isinstance(partition, str):
            fleet_partitions(trace, partition)  # tells all that is wrong
            own.__dict__["partition"] = partition[gpus.start : gpus.stop]
        return own

    def released(self, cluster: Cluster, job: int, gpu: int, placement: int) -> None:
        """Learn that an instance has become idle; the queue is served next."""

    def arrived(self, cluster: Cluster, job: int) -> None:
        """Queue the job, and serve the queue."""
        self.enqueue(cluster, job)
        self.serve(cluster)

    def finished(self, cluster: Cluster, job: int, gpu: int, placement: int) -> None:
        """Let others have the instance."""
        self.released(cluster, job, gpu, placement)
        self.serve(cluster)

    gave_up = finished

    def failed(self, cluster: Cluster, job: int, gpu: int, placement: int, needed_gb: float) -> None:
        """Queue the job again, for as much memory as it needed, and let others have the instance."""
        self.enqueue(cluster, job)
        self.released(cluster, job, gpu, placement)
        self.serve(cluster)

    def gpu_left(self, cluster: Cluster, gpu: int, lost: Sequence[tuple[int, int]]) -> None:
        """Queue the jobs of the GPU again, and let them have others."""
        for job, placement in lost:
            self.enqueue(cluster, job)
            self.released(cluster, job, gpu, placement)
        self.serve(cluster)

    def gpu_returned(self, cluster: Cluster, gpu: int) -> None:
        """Let waiting jobs have the GPU."""
        self.serve(cluster)

    def rejected(self, cluster: Cluster, job: int) -> None:
        """Take the job out of the queue, and serve those behind it."""
        self.dequeue(job)
        self.serve(cluster)


class JobQueue(Generic[JobClass]):
    """Waiting jobs in the order in which they came, divided into classes.

    Jobs of one class can use the same places, so that the first one stands for all of them.

    Examples
    --------
    Only jobs of class "a" find a place, and only two of them.

    >>> queue = JobQueue()
    >>> for job, job_class in enumerate("baab"):
    ...     queue.add(job_class, job)
    >>> def place(job_class):
    ...     return job_class == "a" and queue.take(job_class) is not None
    >>> queue.serve(place), queue.first("b"), len(queue)
    (['b'], 0, 2)
    """

    def __init__(self) -> None:
        # For each class with waiting jobs, the turn of each of them.
        self._turns: dict[JobClass, OrderedDict[int, int]] = {}
        self.next_turn = 0  # turn of the next job that is added; turns rise by one from job to job

    def __len__(self) -> int:
        return sum(map(len, self._turns.values()))

    def __contains__(self, job_class: JobClass) -> bool:
        return job_class in self._turns

    def add(self, job_class: JobClass, job: int) -> None:
        """Add a job as the last one."""
        self._turns.setdefault(job_class, OrderedDict())[job] = self.next_turn
        self.next_turn += 1

    def take(self, job_class: JobClass, job: int | None = None) -> int:
        """Remove a job of a class, by default its first one, and return it."""
        jobs = self._turns[job_class]
        if job is None:
            job = next(iter(jobs))
        del jobs[job]
        if not jobs:
            del self._turns[job_class]
        return job

    def discard(self, job: int) -> None:
        """Remove a job, of whatever class; nothing happens if it is not queued."""
        job_class = next((own for own, jobs in self._turns.items() if job in jobs), None)
        if job_class is not None:
            self.take(job_class, job)

    def first(self, job_class: JobClass) -> int:
        """Return the first job of a class."""
        return next(iter(self._turns[job_class]))

    def turn(self, job_class: JobClass) -> int:
        """Return the turn of the first job of a class."""
        return next(iter(self._turns[job_class].values()))

    def jobs(self, job_class: JobClass) -> Collection[int]:
        """Return the jobs of a class in their order."""
        return self._turns[job_class]

    def counts(self) -> dict[JobClass, int]:
        """Return how many jobs of each class wait."""
        return {job_class: len(jobs) for job_class, jobs in self._turns.items()}

    def serve(
        self, place: Callable[[JobClass], bool], holds_up: Callable[[JobClass], bool] | None = None
    ) -> list[JobClass]:
        """Offer places to the classes, always to the one whose first job has waited longest.

        ``place`` starts a job of a class and takes it from the queue, or returns False if there is no place. Then other
        classes have their turn (backfilling), unless this one ``holds_up`` all behind it; by default none does. The
        classes for which there was no place are returned in the order in which they were refused.
        """
        turns = {job_class: self.turn(job_class) for job_class in self._turns}
        refused: list[JobClass] = []
        while turns:
            job_class = min(turns, key=turns.__getitem__)
            if not place(job_class):
                refused.append(job_class)
                if holds_up is not None and holds_up(job_class):
                    break
                del turns[job_class]
            elif job_class in self:
                turns[job_class] = self.turn(job_class)
            else:
                del turns[job_class]
        return refused


def free_slices(state: GpuState) -> int:
    """Return an integer that orders GPUs by their free compute slices, then by their free memory slices."""
    gpu, used = state.geometry.gpu, state.usage
    free_compute, free_memory = gpu.compute_slices - used.used_compute, gpu.memory_slices - used.used_memory
    return free_compute * (gpu.memory_slices + 1) + free_memory


class LinearFit:
    """Line of least squares through points that come one by one.

    Sums of squares and products are of the deviations from the means, so that they lose no digits where the values are
    large.

    Examples
    --------
    >>> fit = LinearFit()
    >>> for at, value in [(1, 2.0), (2, 4.0), (3, 6.0)]:
    ...     fit.add(at, value)
    >>> fit.at(10), fit.deviation
    (20.0, 0.0)
    """

    def __init__(self) -> None:
        self.count = 0
        self.mean_x = self.mean_y = 0.0
        self.xx = self.xy = self.yy = 0.0

    def add(self, x: float, y: float) -> None:
        """Add a point."""
        self.count += 1
        from_x, from_y = x - self.mean_x, y - self.mean_y
        self.mean_x += from_x / self.count
        self.mean_y += from_y / self.count
        self.xx += from_x * (x - self.mean_x)
        self.xy += from_x * (y - self.mean_y)
        self.yy += from_y * (y - self.mean_y)

    @property
    def slope(self) -> float:
        """Rise of y for each x; 0 while all points have the same x."""
        return self.xy / self.xx if self.xx else 0.0

    @property
    def deviation(self) -> float:
        """Standard deviation of the residuals of three points or more (n - 2 degrees of freedom)."""
        return math.sqrt(max(0.0, self.yy - self.slope * self.xy) / (self.count - 2))

    def at(self, x: float) -> float:
        """Return the value of the line."""
        return self.mean_y + self.slope * (x - self.mean_x)
