"""Base class of schedulers that reconfigure only GPUs without jobs, with the stages of the PCIe-aware paper.

From *PCIe Bandwidth-Aware Scheduling for Multi-Instance GPUs*, section 4.2.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

from mig_opt.fleet.job import Job
from mig_opt.gpu.geometry import Geometry, GpuState
from mig_opt.heuristics.fleet.base import JobQueue, QueueScheduler
from mig_opt.heuristics.fleet.partitions import (
    most_instances,
    partition_places,
    profile_for,
    repartition,
    smallest_instances,
)
from mig_opt.rules.vocabulary import Number
from mig_opt.simulation.fleet.cluster import Cluster
from mig_opt.simulation.fleet.instances import Ranking


def predicted_slowdown(factor: float | None, bound: int) -> float:
    """Return the slowdown of a job where ``bound`` jobs are PCIe-bound, itself included, against running alone (Eq. 2).

    The factor is sensitivity x demand / PCIe limit; it is None for a job that is not PCIe-bound.
    """
    return 1.0 if factor is None else max(1.0, factor * bound)


@dataclass(slots=True, eq=False)
class _RunningJob:
    """Running job: seconds of work left at some moment, and its slowdown since then."""

    since: float
    left: float
    factor: float | None
    slowdown: float = 1.0

    @property
    def end(self) -> float:
        return self.since + self.left * self.slowdown


class EndEstimates:
    """Number of PCIe-bound jobs of each GPU, and estimated end of its last job (minus infinity if nothing runs)."""

    def __init__(self, gpus: int) -> None:
        self.bound = [0] * gpus
        self.ends = [-math.inf] * gpus
        self._running: list[dict[int, _RunningJob]] = [{} for _ in range(gpus)]

    def add(self, gpu: int, job: int, factor: float | None, *, begin: float, seconds: float, now: float) -> None:
        """Note a job by its begin and its seconds if it runs alone; see :func:`predicted_slowdown` for ``factor``."""
        self._running[gpu][job] = new = _RunningJob(begin, seconds, factor)
        if factor is None:
            self.ends[gpu] = max(self.ends[gpu], new.end)
        else:
            self.bound[gpu] += 1
            self._update(gpu, now)

    def remove(self, gpu: int, job: int, now: float) -> None:
        """Note that a job has left its GPU."""
        self.bound[gpu] -= self._running[gpu].pop(job).factor is not None
        self._update(gpu, now)

    def _update(self, gpu: int, now: float) -> None:
        for job in self._running[gpu].values():
            if job.factor is not None:
                if now > job.since:
                    job.left = max(0.0, job.left - (now - job.since) / job.slowdown)
                    job.since = now
                job.slowdown = predicted_slowdown(job.factor, self.bound[gpu])
        self.ends[gpu] = max((job.end for job in self._running[gpu].values()), default=-math.inf)


class GpuView(NamedTuple):
    """State of a GPU: instances, number of PCIe-bound jobs, True if it is marked for reconfiguration."""

    state: GpuState
    bound: int
    marked: bool


class JobClass(NamedTuple):
    """Class of jobs that would go to the same GPU.

    They need an instance of ``profile``, are as fast as alone beside ``unaffected`` other PCIe-bound jobs, and may
    start beside ``allowed`` of them.
    """

    profile: int
    unaffected: int
    allowed: int


@dataclass(kw_only=True, eq=False)
class ReconfiguringPolicy(QueueScheduler):
    """Runs jobs on the instances that exist; only a GPU without jobs gets others.

    The stages are those of the PCIe-aware paper (section 4.2). On each arrival and each end the records are brought up
    to date (stage 1). Then marked GPUs on which nothing runs any more are reconfigured (stage 2), and each waiting job,
    the first one first, looks for an idle instance of its profile (stage 3) and runs or is skipped (stage 4); both
    again until nothing changes. A job without an idle instance of its profile on any GPU that is not marked is
    *unmatched*, and marks a GPU. ``docs/explanation/pcie-aware.md`` has all that was decided where the paper is open.

    Parameters
    ----------
    wait_threshold : float, optional
        Seconds; a job that has waited longer starves. None: no job does.
    partition : str or sequence of str, optional
        Instances at the start, such as ``4+2+1``, of all GPUs or of each. By default as many of the smallest as there
        can be.
    """

    partitions_gpus: ClassVar = True

    wait_threshold: Annotated[float, Number(at_least=0, words="seconds from 0 on, or None for no threshold")] | None = (
        60.0
    )
    partition: str | Sequence[str] | None = None

    def factor(self, cluster: Cluster, job: Job) -> float | None:
        """Return the slowdown of a job for each PCIe-bound job on its GPU; None if it is not PCIe-bound."""
        return None

    def order(self, view: GpuView, unaffected: int) -> int:
        """Return the rank of a GPU, least first, for a job that ``unaffected`` PCIe-bound jobs do not slow down."""
        return 0

    def allowed(self, slowdown: float) -> bool:
        """Return True if a job that does not starve starts with this slowdown."""
        return True

    def begin(self, cluster: Cluster) -> None:
        """Partition the GPUs."""
        geometry, gpus = cluster.geometry, cluster.trace.gpus
        profiles = range(len(geometry.profiles))
        self._most_instances = [len(most_instances(geometry, profile)) for profile in profiles]
        self._larger = [_larger_than(geometry, profile) for profile in profiles]
        self._placements_of = [geometry.mask(places) for places in geometry.placements_of]
        # On a GPU with room there are fewer other jobs than that.
        self._most_others = max(self._most_instances)
        self._queue: JobQueue[JobClass] = JobQueue()
        self._waiting_since: dict[int, float] = {}
        # Lower bounds on the seconds that jobs of a class take alone.
        self._least_seconds: dict[JobClass, float] = {}
        self._estimates = EndEstimates(gpus)
        # The marked GPU of each profile that has one.
        self._marks: dict[int, int] = {}
        # How often GPUs came to have something for each profile. What found nothing looks again when that has changed:
        # classes of jobs that do not starve, and profiles that want a GPU to be marked.
        self._gains = [0] * len(profiles)
        self._refused: dict[JobClass, int] = {}
        self._unmarkable: dict[int, int] = {}
        self._views = [GpuView(state, 0, False) for state in cluster.states]
        self._ranking = Ranking(self._views, self._key)
        self._partitions = [smallest_instances(geometry)] * gpus
        if self.partition is not None:
            self._partitions = partition_places(cluster, self.partition)
        for gpu, places in enumerate(self._partitions):
            self._create(cluster, gpu, places)

    def released(self, cluster: Cluster, job: int, gpu: int, placement: int) -> None:
        """Bring the records of the GPU up to date (stage 1)."""
        self._estimates.remove(gpu, job, cluster.now)
        self._update(cluster, gpu)
        self._gain(gpu)

    def gpu_left(self, cluster: Cluster, gpu: int, lost: Sequence[tuple[int, int]]) -> None:
        """Take the mark off the GPU, queue its jobs again, and serve."""
        for profile in [profile for profile, marked in self._marks.items() if marked == gpu]:
            self._unmark(cluster, profile)
        self._update(cluster, gpu)
        super().gpu_left(cluster, gpu, lost)

    def gpu_returned(self, cluster: Cluster, gpu: int) -> None:
        """Partition the GPU as at the start, and serve."""
        self._create(cluster, gpu, self._partitions[gpu])
        self.serve(cluster)

    def dequeue(self, job: int) -> None:
        """Forget a job that waits; no GPU is marked for it any more."""
        self._waiting_since.pop(job, None)
        self._queue.discard(job)

    def enqueue(self, cluster: Cluster, job: int) -> None:
        """Queue a job for its profile; if there is none, it waits for ever."""
        requested = cluster.trace.jobs[job]
        profile = profile_for(cluster.trace, requested, cluster.known_need(job))
        if profile is None:
            return
        factor = self.factor(cluster, requested)
        # Slowdowns rise with the number of others. Alone no job is skipped: nothing better can come.
        slowdowns = [predicted_slowdown(factor, others + 1) for others in range(1, self._most_others)]
        unaffected = sum(slowdown <= 1 for slowdown in slowdowns)
        allowed = sum(map(self.allowed, slowdowns))
        job_class = JobClass(cluster.geometry.profile_index(profile), unaffected, allowed)
        seconds = requested.times[profile.compute_slices]
        least = self._least_seconds[job_class] if job_class in self._queue else math.inf
        self._least_seconds[job_class] = min(seconds, least)
        self._queue.add(job_class, job)
        self._refused.pop(job_class, None)
        self._waiting_since[job] = cluster.now

    def serve(self, cluster: Cluster) -> None:
        """Carry out stages 2 to 4 until nothing changes."""
        changed = True
        while changed:
            self._reconfigure(cluster)
            waiting = len(self._queue)
            skipped = self._queue.serve(lambda job_class: self._run_or_skip(cluster, job_class))
            # Not before all have had their turn: an idle GPU may have instances for those further back.
            changed = len(self._queue) < waiting
            for job_class in skipped:
                changed |= self._mark(cluster, job_class.profile)

    # Stage 2: reconfiguration of marked GPUs on which nothing runs any more

    def _reconfigure(self, cluster: Cluster) -> None:
        if not self._marks:
            return
        counts: Counter[int] = Counter()
        for job_class, count in self._queue.counts().items():
            counts[job_class.profile] += count
        for profile, gpu in list(self._marks.items()):
            if profile in counts and cluster.states[gpu].busy:
                continue
            unmatched = {wanted: count for wanted, count in counts.items() if not self._matched(wanted)}
            self._unmark(cluster, profile)
            if profile in counts and unmatched:
                starving = [
                    (self._queue.turn(job_class), job_class.profile)
                    for job_class in self._queue.counts()
                    if job_class.profile in unmatched and self._starves(cluster, self._queue.first(job_class))
                ]
                first = min(starving)[1] if starving else None
                self._create(cluster, gpu, repartition(cluster.geometry, cluster.states[gpu].idle, unmatched, first))

    # Stage 3: selection of the GPU

    def _matched(self, profile: int) -> bool:
        """Return True if a GPU that is not marked has an idle instance of a profile."""
        return self._ranking.best((profile, self._most_others - 1)) is not None

    def _marked_with(self, cluster: Cluster, profile: int, unaffected: int) -> list[tuple[int, float, float]]:
        """Return the marked GPUs with an idle instance, the best first: GPU, begin of a job there, estimated end."""
        found = []
        for gpu in set(self._marks.values()):
            if cluster.states[gpu].idle & self._placements_of[profile]:
                begin = max(cluster.now, cluster.ready(gpu, cluster.states[gpu].idle_of(profile)[0]))
                rank = self.order(self._views[gpu], unaffected)
                found.append((rank, gpu, begin, self._estimates.ends[gpu]))
        return [(gpu, begin, end) for _, gpu, begin, end in sorted(found)]

    def _mark(self, cluster: Cluster, profile: int) -> bool:
        """Mark a GPU for an unmatched job; return True if it is idle."""
        if self._unmarkable.get(profile) == self._gains[profile]:
            return False
        self._unmarkable[profile] = self._gains[profile]
        if self._matched(profile):
            return False
        gpu = idle = self._ranking.best((profile, None))
        ends = self._estimates.ends
        if idle is None and profile not in self._marks:  # one that is not marked and could have more of the profile
            there, most = self._placements_of[profile], self._most_instances[profile]
            able = (
                at
                for at, (state, _, marked) in enumerate(self._views)
                if cluster.present(at) and not marked and ((state.busy | state.idle) & there).bit_count() < most
            )
            gpu = min(able, key=ends.__getitem__, default=None)
        if gpu is None:
            return False
        if profile in self._marks:
            self._unmark(cluster, profile)
        self._marks[profile] = gpu
        self._update(cluster, gpu)
        self._gain(gpu)
        return idle is not None

    def _unmark(self, cluster: Cluster, profile: int) -> None:
        gpu = self._marks.pop(profile)
        self._gain(gpu)
        self._update(cluster, gpu)

    def _key(self, view: GpuView, query: tuple[int, int | None]) -> int | None:
        """Rate a GPU for a job of a profile, by ``unaffected``, or (None) for being repartitioned for the profile."""
        profile, unaffected = query
        if unaffected is None:
            existing = (view.state.idle & self._placements_of[profile]).bit_count()
            full = existing >= self._most_instances[profile] or not view.state.usage.available[profile]
            return None if view.state.busy or view.marked or full else 0
        if view.marked or not view.state.idle & self._placements_of[profile]:
            return None
        return self.order(view, unaffected)

    # Stage 4: run or skip the job

    def _run_or_skip(self, cluster: Cluster, job_class: JobClass) -> bool:
        """Start a job of a class: the first one, or on a marked GPU the first that is short enough."""
        profile, unaffected, allowed = job_class
        job = self._queue.first(job_class)
        starving = self._starves(cluster, job)
        if not starving and self._refused.get(job_class) == self._gains[profile]:
            return False
        self._refused[job_class] = self._gains[profile]
        gpu = self._ranking.best((profile, unaffected))
        if gpu is not None and (starving or self._views[gpu].bound <= allowed):
            self._start(cluster, job_class, job, gpu, profile)
            return True
        for place in self._marked_with(cluster, profile, unaffected):
            marked, begin, end = place
            for short in self._jobs_within(cluster, job_class, end - begin):
                if self._ends_in_time(cluster, short, profile, place) and (
                    self._views[marked].bound <= allowed or self._starves(cluster, short)
                ):
                    self._start(cluster, job_class, short, marked, profile)
                    return True
        return gpu is None and starving and self._run_on_larger(cluster, job_class, job)

    def _run_on_larger(self, cluster: Cluster, job_class: JobClass, job: int) -> bool:
        """Start a job that starves on the smallest larger instance."""
        times = cluster.trace.jobs[job].times
        for profile in self._larger[job_class.profile]:
            if cluster.geometry.profiles[profile].compute_slices not in times:
                continue
            gpu = self._ranking.best((profile, job_class.unaffected))
            if gpu is None:
                marked_gpus = self._marked_with(cluster, profile, job_class.unaffected)
                in_time = (place[0] for place in marked_gpus if self._ends_in_time(cluster, job, profile, place))
                gpu = next(in_time, None)
            if gpu is not None:
                self._start(cluster, job_class, job, gpu, profile)
                return True
        return False

    def _jobs_within(self, cluster: Cluster, job_class: JobClass, limit: float) -> list[int]:
        """Return the waiting jobs of a class that take no more than ``limit`` seconds alone, in their order.

        Where all take longer that costs nothing the next time.
        """
        if self._least_seconds[job_class] > limit:
            return []
        size = cluster.geometry.profiles[job_class.profile].compute_slices
        seconds = {job: cluster.trace.jobs[job].times[size] for job in self._queue.jobs(job_class)}
        found = [job for job in seconds if seconds[job] <= limit]
        if not found:
            self._least_seconds[job_class] = min(seconds.values())
        return found

    def _ends_in_time(self, cluster: Cluster, job: int, profile: int, place: tuple[int, float, float]) -> bool:
        """Return True if a job at one of the places of :meth:`_marked_with` is expected to end in time."""
        gpu, begin, end = place
        requested = cluster.trace.jobs[job]
        slowdown = predicted_slowdown(self.factor(cluster, requested), self._views[gpu].bound + 1)
        seconds: float = requested.times[cluster.geometry.profiles[profile].compute_slices]
        return begin + seconds * slowdown <= end

    def _starves(self, cluster: Cluster, job: int) -> bool:
        return self.wait_threshold is not None and cluster.now - self._waiting_since[job] > self.wait_threshold

    def _start(self, cluster: Cluster, job_class: JobClass, job: int, gpu: int, profile: int) -> None:
        place = cluster.states[gpu].idle_of(profile)[0]
        begin = max(cluster.now, cluster.ready(gpu, place))
        requested = cluster.trace.jobs[job]
        seconds = requested.times[cluster.geometry.profiles[profile].compute_slices]
        cluster.start(job, gpu, place)
        self._queue.take(job_class, job)
        factor = self.factor(cluster, requested)
        self._estimates.add(gpu, job, factor, begin=begin, seconds=seconds, now=cluster.now)
        self._update(cluster, gpu)
        self._refused.pop(job_class, None)
        self._unmarkable.pop(profile, None)
        if self._views[gpu].marked:
            self._gain(gpu)  # It ends later: jobs that were too long for it may be short enough.

    # Records

    def _create(self, cluster: Cluster, gpu: int, placements: Iterable[int]) -> None:
        """Create instances on a GPU without jobs; idle ones in the way are destroyed."""
        for placement in placements:
            cluster.create(gpu, placement)
        self._update(cluster, gpu)
        self._gain(gpu)

    def _gain(self, gpu: int) -> None:
        """Let all that found nothing look again, if a GPU may have something for it now.

        A job that starts only takes: the instance, and the speed of its neighbours. On other GPUs time alone changes
        nothing for the better either, but for jobs that starve, which always look.
        """
        state, _, marked = self._views[gpu]
        for profile, placements in enumerate(self._placements_of):
            if marked or not state.busy or state.idle & placements:
                self._gains[profile] += 1

    def _update(self, cluster: Cluster, gpu: int) -> None:
        state, marked = cluster.states[gpu], gpu in self._marks.values()
        self._views[gpu] = GpuView(state, self._estimates.bound[gpu], marked)
        self._ranking.changed.add(gpu)


def _larger_than(geometry: Geometry, profile: int) -> tuple[int, ...]:
    """Return the profiles that have all that one has, and more, the smallest first."""
    own = geometry.profiles[profile]
    sizes = [(other.compute_slices, other.memory_slices) for other in geometry.profiles]
    compute, memory = sizes[profile]
    found = [
        (size, -number)
        for number, size in enumerate(sizes)
        if size != (compute, memory) and size[0] >= compute and size[1] >= memory
        if set(geometry.profiles[number].attributes) >= set(own.attributes)
    ]
    return tuple(-number for _, number in sorted(found))
