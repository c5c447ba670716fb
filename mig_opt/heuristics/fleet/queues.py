"""First come, first served: the base class of schedulers with one queue, and five simple rivals built on it.

The rivals have no foresight. All take the first placement of the GPU that they choose.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Annotated, ClassVar

from mig_opt.errors import Problem
from mig_opt.fleet.job import Job
from mig_opt.fleet.trace import Trace
from mig_opt.gpu.geometry import GpuState, Option
from mig_opt.gpu.model import Profile
from mig_opt.heuristics.fleet.base import JobQueue, QueueScheduler, free_slices
from mig_opt.heuristics.fleet.partitions import partition_places, profile_for
from mig_opt.rules.vocabulary import Number
from mig_opt.simulation.fleet.cluster import Cluster

PATIENCE_S = 600.0
"""Seconds after which a waiting job is no longer overtaken, unless the user says otherwise."""


@dataclass(kw_only=True, eq=False)
class QueueingPolicy(QueueScheduler):
    """Places each job when it arrives, or queues it; on each departure the queue is served.

    A job runs on the profile that it asks for, else on the smallest on which it can run. One that ran out of memory
    waits again, last in the queue, for its smallest profile with as much memory as it needed; if it has none, it waits
    for ever. The GPU is the first one with room, and the placement the first one there, unless a subclass chooses them
    by ranks of their own (:meth:`gpu_rank`, :meth:`rank`).

    Parameters
    ----------
    backfill : bool
        Backfilling: a job may overtake those before it that do not fit. By default the first one holds up the queue.
    patience : float, optional
        Seconds; a job that has waited longer is overtaken no more, which prevents starvation: those behind it wait
        until it has a place. None: jobs may overtake it at any time. Without ``backfill`` it has no effect.
    dynamic_partitioning : bool
        Instances are created for jobs, and idle ones destroyed for that. If not, each GPU is partitioned at the start,
        and jobs take the idle instances of their profile.
    partition : str or sequence of str, optional
        That partition, such as ``4+2+1`` (see :func:`mig_opt.gpu.partitions.find_partition`), for all GPUs, or one for
        each. By default they follow from the trace, see
        :func:`~mig_opt.heuristics.fleet.partitions.fleet_partitions`.
    """

    backfill: bool = False
    patience: Annotated[float, Number(at_least=0, words="seconds from 0 on, or None for no limit")] | None = PATIENCE_S
    dynamic_partitioning: bool = True
    partition: str | Sequence[str] | None = None

    def option_problems(self) -> Iterator[Problem]:
        """Yield what is wrong with the options."""
        yield from super().option_problems()
        if self.dynamic_partitioning is True and self.partition is not None:
            yield Problem("partition", "is for dynamic_partitioning=False or the policy 'static'; drop it")

    def gpu_rank(self, state: GpuState) -> int:
        """Return the rank of a GPU in some state with room, least first; the ranks of its placements count besides."""
        return 0

    def rank(self, state: GpuState, option: Option) -> int:
        """Return the rank of a placement on a GPU in some state, least first; of equals the first one is taken."""
        return 0

    def key(self, state: GpuState, profile: int) -> int | None:
        """Return the rank of a GPU in some state for a profile, least first, or None if there is no room."""
        ranks = [self.rank(state, option) for option in self.options(state, profile)]
        return self.gpu_rank(state) + min(ranks) if ranks else None

    def pick(self, state: GpuState, profile: int) -> int:
        """Return the placement for a job of a profile on a GPU that has room."""
        return min((self.rank(state, option), option.placement) for option in self.options(state, profile))[1]

    def profile(self, trace: Trace, job: Job, least_gb: float) -> Profile | None:
        """Return the profile that a job waits for, with ``least_gb`` of memory or more; None if there is none."""
        return profile_for(trace, job, least_gb)

    def options(self, state: GpuState, profile: int) -> Sequence[Option]:
        """Return the placements that a job of a profile may take: all that are free, or the instances that exist."""
        options = state.options(profile)
        return options if self.dynamic_partitioning else [option for option in options if not option.creates]

    def begin(self, cluster: Cluster) -> None:
        """Start with an empty queue."""
        self._queue: JobQueue[int] = JobQueue()
        self._ranking = cluster.ranking(self.key)
        # Since when jobs wait that had a place before; the others wait since they arrived.
        self._again_since: dict[int, float] = {}
        if not self.dynamic_partitioning:
            self._partitions = partition_places(cluster, self.partition)
            for gpu in range(cluster.trace.gpus):
                self._partition(cluster, gpu)
            cluster.possible = reduce(or_, (state.idle for state in cluster.states))

    def enqueue(self, cluster: Cluster, job: int) -> None:
        """Queue a job for its profile; if there is none, it waits for ever."""
        if not math.isnan(cluster.log.scheduled[job]):
            self._again_since[job] = cluster.now
        profile = self.profile(cluster.trace, cluster.trace.jobs[job], cluster.known_need(job))
        if profile is not None:
            self._queue.add(cluster.geometry.profile_index(profile), job)

    def gpu_returned(self, cluster: Cluster, gpu: int) -> None:
        """Give the GPU its partition if there is one, and let waiting jobs have it."""
        if not self.dynamic_partitioning:
            self._partition(cluster, gpu)
        self.serve(cluster)

    def _partition(self, cluster: Cluster, gpu: int) -> None:
        for place in self._partitions[gpu]:
            cluster.create(gpu, place)

    def dequeue(self, job: int) -> None:
        """Forget a job that waits."""
        self._again_since.pop(job, None)
        self._queue.discard(job)

    def serve(self, cluster: Cluster) -> None:
        """Place queued jobs, the first one first."""
        self._queue.serve(
            lambda profile: self._place(cluster, profile), lambda profile: self._holds_up(cluster, profile)
        )

    def _place(self, cluster: Cluster, profile: int) -> bool:
        """Start the first job that waits for a profile; return False if there is no room."""
        gpu = self._ranking.best(profile)
        if gpu is None:
            return False
        cluster.start(self._queue.take(profile), gpu, self.pick(cluster.states[gpu], profile))
        return True

    def _holds_up(self, cluster: Cluster, profile: int) -> bool:
        """Return True if the first job that waits for a profile, for which there is no room, may not be overtaken."""
        if not self.backfill:
            return True
        if self.patience is None:
            return False
        job = self._queue.first(profile)
        since = self._again_since.get(job, cluster.trace.jobs[job].arrival)
        if cluster.now - since <= self.patience:
            return False
        # To wait for an instance that no partition has would help nobody.
        return any(cluster.possible >> place & 1 for place in cluster.geometry.placements_of[profile])


class FirstFit(QueueingPolicy):
    """The GPU with the lowest index on which there is room."""


class BestFit(QueueingPolicy):
    """The GPU on which the fewest compute slices are free, then the fewest memory slices."""

    def gpu_rank(self, state: GpuState) -> int:
        """Return the number of free slices, compute slices first."""
        return free_slices(state)


class LoadBalancing(QueueingPolicy):
    """The GPU with the fewest busy compute slices."""

    def gpu_rank(self, state: GpuState) -> int:
        """Return the load."""
        return state.usage.used_compute


@dataclass(kw_only=True, eq=False)
class StaticPartition(QueueingPolicy):
    """First fit on partitions that never change.

    Parameters
    ----------
    partition, backfill, patience
        As of :class:`QueueingPolicy`.
    """

    partitions_gpus: ClassVar = True
    dynamic_partitioning: bool = field(default=False, init=False)


@dataclass(kw_only=True, eq=False)
class WholeGpu(QueueingPolicy):
    """One job at a time on each GPU, on the largest instance that it can run on, whatever profile it asks for.

    Parameters
    ----------
    backfill, patience
        As of :class:`QueueingPolicy`.
    """

    dynamic_partitioning: bool = field(default=True, init=False)
    partition: None = field(default=None, init=False)

    def key(self, state: GpuState, profile: int) -> int | None:
        """Return the same for all without a job."""
        return 0 if not state.busy and state.options(profile) else None

    def profile(self, trace: Trace, job: Job, least_gb: float) -> Profile | None:
        """Return the largest profile on which a job can run, whatever it asks for."""
        profiles = trace.one_kind.profiles_of("double-memory")
        largest = next(profile for profile in profiles if profile.compute_slices in job.times)
        return largest if largest.memory_gb >= least_gb else None
