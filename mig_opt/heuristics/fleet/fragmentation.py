"""The fragmentation-aware scheduler: conditional load balancing, dynamic partitioning, migration on departure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mig_opt.arguments import wrong_flag, wrong_share
from mig_opt.errors import InputError
from mig_opt.gpu.geometry import GpuState, members
from mig_opt.heuristics.fleet.queueing import QueueingPolicy
from mig_opt.simulation.cluster import Cluster


class _Move(NamedTuple):
    """A migration within a GPU: the cost afterwards, whether it creates an instance, from where, where to."""

    cost: int
    creates: bool
    source: int
    target: int


class FragmentationAware(QueueingPolicy):
    """Spreads jobs over lazy GPUs, keeps GPUs usable for all profiles, and repairs them when jobs depart.

    A GPU is *lazy* if less than the threshold of its compute slices is in use, else *busy*. The steps are those of the
    paper; what it leaves open is decided so:

    * On an arrival (IV-C), equal fragmentation and equal reuse leave the GPU of least index, then the least start.
    * On a departure the queue is served first, then jobs migrate (IV-D), then the queue is served again. Jobs whose
      instance is still being created, and those that migrate already, stay where they are.
    * Within a GPU the old and the new instance exist together, so the new one must fit beside the old one. Of equally
      good migrations one that uses an existing instance comes first, then the one of the least placement.
    * Between GPUs the loads are compared as they are *after* the migration. Of the jobs that leave equal fragmentation
      one from the most loaded GPU comes first, then least index and placement.

    Parameters
    ----------
    threshold : float
        Share of the compute slices from which on a GPU is busy.
    load_balancing : bool
        If not, GPU and placement are those of first fit: the paper's baseline.
    dynamic_partitioning, partition, backfill
        As of :class:`QueueingPolicy`.
    migration : bool
        Whether jobs migrate on departures.

    Raises
    ------
    InputError
        With every problem of the options.
    """

    def __init__(
        self,
        *,
        threshold: float = 0.4,
        load_balancing: bool = True,
        dynamic_partitioning: bool = True,
        migration: bool = True,
        partition: str | Sequence[str] | None = None,
        backfill: bool = False,
    ) -> None:
        problems = [
            *wrong_share("threshold", threshold),
            *wrong_flag("load_balancing", load_balancing),
            *wrong_flag("migration", migration),
        ]
        try:
            super().__init__(backfill=backfill, dynamic_partitioning=dynamic_partitioning, partition=partition)
        except InputError as error:
            problems += error.problems
        if problems:
            raise InputError(problems)
        self.threshold = threshold
        self.load_balancing = load_balancing
        self.migration = migration

    def begin(self, cluster: Cluster) -> None:
        """Start with an empty queue."""
        self._compute = cluster.trace.gpu.compute_slices
        self._sources = cluster.ranking(self._source_key)
        self._moves: dict[GpuState, tuple[_Move, ...]] = {}
        super().begin(cluster)

    def lazy(self, state: GpuState) -> bool:
        """Whether a GPU in this state is lazy."""
        return state.occupancy.used_compute < self.threshold * self._compute

    def key(self, state: GpuState, profile: int) -> int | None:
        """Return the class of the GPU, then the least fragmentation, then whether an instance is reused."""
        options = self.options(state, profile)
        if not options:
            return None
        if not self.load_balancing:
            return 0
        best, busy = options[0], not self.lazy(state)
        return ((state.geometry.unit + 1) * busy + best.cost) * 2 + best.creates

    def pick(self, state: GpuState, profile: int) -> int:
        """Return the placement of least fragmentation, one with an instance if there is a choice."""
        return self.options(state, profile)[0].placement if self.load_balancing else super().pick(state, profile)

    def finished(self, cluster: Cluster, job: int, gpu: int, placement: int) -> None:
        """Serve the queue, migrate, and serve what fits now."""
        self.serve(cluster)
        if self.migration:
            migrate = self._relieve_others if self.lazy(cluster.states[gpu]) else self._reorganise
            if migrate(cluster, gpu):
                self.serve(cluster)

    def _reorganise(self, cluster: Cluster, gpu: int) -> bool:
        """Migrate jobs within a busy GPU as long as that lowers its fragmentation."""
        any_moved = False
        while True:
            for move in self._better(cluster.states[gpu]):
                job = cluster.job_at(gpu, move.source)
                assert job is not None
                if cluster.movable(job):
                    cluster.migrate(job, gpu, move.target)
                    any_moved = True
                    break
            else:
                return any_moved

    def _better(self, state: GpuState) -> tuple[_Move, ...]:
        """Return the migrations within a GPU that lower its fragmentation, the best first."""
        found = self._moves.get(state)
        if found is None:
            geometry = state.geometry
            found = self._moves[state] = tuple(
                sorted(
                    _Move(cost, option.creates, source, option.placement)
                    for source in members(state.busy)
                    for option in self.options(state, geometry.profile_of[source])
                    for cost in [geometry.occupancy(state.busy ^ 1 << source | 1 << option.placement).cost]
                    if cost < state.occupancy.cost
                )
            )
        return found

    def _relieve_others(self, cluster: Cluster, gpu: int) -> bool:
        """Migrate jobs from busy GPUs to a lazy one as long as it ends up with less load than they."""
        any_moved = False
        while self._relieve_one(cluster, gpu):
            any_moved = True
        return any_moved

    def _relieve_one(self, cluster: Cluster, gpu: int) -> bool:
        state, geometry = cluster.states[gpu], cluster.geometry
        ways = []
        for profile in range(len(geometry.profiles)):
            options = self.options(state, profile)
            if options:
                ways.append((*options[0], profile))
        for _cost, _creates, placement, profile in sorted(ways):
            job = self._job_from(cluster, profile, state.occupancy.used_compute)
            if job is not None:
                cluster.migrate(job, gpu, placement)
                return True
        return False

    def _job_from(self, cluster: Cluster, profile: int, load: int) -> int | None:
        """Return a job of a profile on a busy GPU that would still have more load than ``load`` with that job."""
        geometry = cluster.geometry
        found: list[int] = []

        def accept(gpu: int) -> bool:
            busy = cluster.states[gpu].busy
            for place in geometry.placements_of[profile]:
                job = cluster.job_at(gpu, place) if busy >> place & 1 else None
                if job is not None and cluster.movable(job):
                    found.append(job)
                    return True
            return False

        # The source keeps used - size, which must be more than load + size.
        more_than = load + 2 * geometry.profiles[profile].compute_slices
        self._sources.first(profile, accept, below=self._compute - more_than)
        return found[0] if found else None

    def _source_key(self, state: GpuState, profile: int) -> int | None:
        """Return the free compute slices of busy GPUs on which a job of a profile runs."""
        runs = any(state.busy >> place & 1 for place in state.geometry.placements_of[profile])
        return self._compute - state.occupancy.used_compute if runs and not self.lazy(state) else None
