"""First come, first served: what the simple schedulers share."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Sequence

from mig_opt.arguments import wrong_flag
from mig_opt.errors import InputError, Problem
from mig_opt.fleet.trace import Job, Trace
from mig_opt.gpu.geometry import GpuState, Option
from mig_opt.gpu.model import Profile
from mig_opt.heuristics.fleet.partitioning import fleet_partitions
from mig_opt.simulation.cluster import Cluster, Policy


class QueueingPolicy(Policy):
    """Places each job when it arrives, or queues it; on each departure the queue is served.

    A job runs on the profile that it asks for, else on the smallest on which it can run. One that ran out of memory
    waits again, last in the queue, for its smallest profile with as much memory as it needed; if it has none, it waits
    for ever. A subclass says which GPU (:meth:`key`) and which placement on it (:meth:`pick`).

    Parameters
    ----------
    backfill : bool
        Whether a job may pass those before it that do not fit. By default the first one holds up the queue.
    dynamic_partitioning : bool
        Whether instances are created for jobs, and idle ones destroyed for that. If not, each GPU is partitioned at
        the start, and jobs take the idle instances of their profile.
    partition : str or sequence of str, optional
        That partition, such as ``4+2+1`` (see :func:`mig_opt.gpu.partitions.find_partition`), for all GPUs, or one for
        each. By default they follow from the trace, see
        :func:`~mig_opt.heuristics.fleet.partitioning.fleet_partitions`.

    Raises
    ------
    InputError
        With every problem of the options.
    """

    def __init__(
        self,
        *,
        backfill: bool = False,
        dynamic_partitioning: bool = True,
        partition: str | Sequence[str] | None = None,
    ) -> None:
        problems = [*wrong_flag("backfill", backfill), *wrong_flag("dynamic_partitioning", dynamic_partitioning)]
        if dynamic_partitioning is True and partition is not None:
            problems.append(Problem("partition", "is for dynamic_partitioning=False or the policy 'static'; drop it"))
        if problems:
            raise InputError(problems)
        self.backfill = backfill
        self.dynamic_partitioning = dynamic_partitioning
        self.partition = partition

    @abstractmethod
    def key(self, state: GpuState, profile: int) -> int | None:
        """Return how good a GPU in some state is for a profile, least first; None if there is no room."""

    def pick(self, state: GpuState, profile: int) -> int:
        """Return the placement for a job of a profile on a GPU that has room: the first one."""
        return min(option.placement for option in self.options(state, profile))

    def profile(self, trace: Trace, job: Job, least_gb: float) -> Profile | None:
        """Return the profile that a job waits for, with so much memory at least; None if there is none."""
        return profile_for(trace, job, least_gb)

    def options(self, state: GpuState, profile: int) -> Sequence[Option]:
        """Return the placements that a job of a profile may take: all that are free, or the instances that exist."""
        options = state.options(profile)
        return options if self.dynamic_partitioning else [option for option in options if not option.creates]

    def begin(self, cluster: Cluster) -> None:
        """Start with an empty queue."""
        self._queues: dict[int, deque[tuple[int, int]]] = {}
        self._queued = 0
        self._tickets = 0
        self._numbers = {profile.name: number for number, profile in enumerate(cluster.geometry.profiles)}
        self._ranking = cluster.ranking(self.key)
        if not self.dynamic_partitioning:
            for gpu, placements in enumerate(fleet_partitions(cluster.trace, self.partition)):
                for placement in placements:
                    cluster.create(gpu, cluster.geometry.index(placement.profile.name, placement.start))

    def arrived(self, cluster: Cluster, job: int) -> None:
        """Place the job, or queue it."""
        self._admit(cluster, job, 0.0)

    def failed(self, cluster: Cluster, job: int, gpu: int, placement: int, needed_gb: float) -> None:
        """Serve the queue, with the job last in it."""
        self.serve(cluster)
        self._admit(cluster, job, needed_gb)

    def finished(self, cluster: Cluster, job: int, gpu: int, placement: int) -> None:
        """Serve the queue."""
        self.serve(cluster)

    def gave_up(self, cluster: Cluster, job: int, gpu: int, placement: int) -> None:
        """Serve the queue."""
        self.serve(cluster)

    def serve(self, cluster: Cluster) -> None:
        """Place queued jobs, the first one first."""
        if not self._queued:
            return
        heads = {profile: queue[0] for profile, queue in self._queues.items() if queue}
        while heads:
            profile = min(heads, key=heads.__getitem__)
            if not self._place(cluster, profile, heads[profile][1]):
                if not self.backfill:
                    return
                del heads[profile]
                continue
            queue = self._queues[profile]
            queue.popleft()
            self._queued -= 1
            if queue:
                heads[profile] = queue[0]
            else:
                del heads[profile]

    def _admit(self, cluster: Cluster, job: int, least_gb: float) -> None:
        wanted = self.profile(cluster.trace, cluster.trace.jobs[job], least_gb)
        if wanted is None:
            return
        profile = self._numbers[wanted.name]
        queue = self._queues.setdefault(profile, deque())
        first = not queue if self.backfill else not self._queued
        if not (first and self._place(cluster, profile, job)):
            queue.append((self._tickets, job))
            self._tickets += 1
            self._queued += 1

    def _place(self, cluster: Cluster, profile: int, job: int) -> bool:
        gpu = self._ranking.best(profile)
        if gpu is None:
            return False
        cluster.start(job, gpu, self.pick(cluster.states[gpu], profile))
        return True


def profile_for(trace: Trace, job: Job, least_gb: float = 0.0) -> Profile | None:
    """Return the profile that a job asks for, else the smallest on which it can run; None if none has the memory."""
    return next((profile for profile in trace.profiles(job) if profile.memory_gb >= least_gb), None)
