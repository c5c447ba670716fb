"""The fragmentation-aware scheduler: conditional load balancing, dynamic partitioning, migration on departure.

From *An Online Fragmentation-Aware Scheduler for Managing GPU-Sharing Workloads on Multi-Instance GPUs*, section IV.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mig_opt.gpu.geometry import GpuState, Option, members
from mig_opt.heuristics.fleet.queues import QueueingPolicy
from mig_opt.rules.vocabulary import Share
from mig_opt.simulation.fleet.cluster import Cluster
from mig_opt.simulation.fleet.instances import GpuStates


@dataclass(kw_only=True, eq=False)
class FragmentationAware(QueueingPolicy):
    """Spreads jobs over lazy GPUs, keeps GPUs usable for all profiles, and repairs them when jobs depart.

    A GPU is *lazy* if less than the threshold of its compute slices is in use, else *busy*. The steps are those of the
    paper, for arrivals of section IV-C, for departures of IV-D; ``docs/explanation/simulation.md`` has what was decided
    where it is open, such as the order of equals.

    Parameters
    ----------
    threshold : float
        Share of the compute slices from which on a GPU is busy.
    load_balancing : bool
        If not, GPU and placement are those of first fit: the paper's baseline.
    dynamic_partitioning, partition, backfill, patience
        As of :class:`QueueingPolicy`.
    migration : bool
        Jobs migrate on departures.
    source_load : {"after", "before"}
        A job migrates to a lazy GPU only if the load there is then lower than that of the GPU which it leaves:
        ``after`` it has left, or ``before``. The paper's sentence can be read both ways.
    """

    threshold: Share = 0.4
    load_balancing: bool = True
    migration: bool = True
    source_load: Literal["after", "before"] = "after"

    def begin(self, cluster: Cluster) -> None:
        """Start with an empty queue."""
        self.watch(cluster)
        super().begin(cluster)

    def watch(self, fleet: GpuStates) -> None:
        """Prepare for :meth:`migrate_to_repair` on a fleet."""
        self._compute = fleet.geometry.gpu.compute_slices
        self._most_loaded = fleet.ranking(self._source_key)
        self._moves: dict[GpuState, list[tuple[int, bool, int, int]]] = {}

    def lazy(self, state: GpuState) -> bool:
        """Return True if a GPU in this state is lazy."""
        return state.usage.used_compute < self.threshold * self._compute

    def gpu_rank(self, state: GpuState) -> int:
        """Return a rank with which all lazy GPUs come first."""
        return 2 * (state.geometry.unit + 1) if self.load_balancing and not self.lazy(state) else 0

    def rank(self, state: GpuState, option: Option) -> int:
        """Return the fragmentation with a job on a placement; of equals those that reuse an instance come first."""
        return 2 * option.cost + option.creates if self.load_balancing else 0

    def finished(self, cluster: Cluster, job: int, gpu: int, placement: int) -> None:
        """Serve the queue, migrate, and serve what fits now."""
        self.serve(cluster)
        if self.migration and self.migrate_to_repair(cluster, gpu):
            self.serve(cluster)

    def migrate_to_repair(self, fleet: GpuStates, gpu: int, *, within: bool = False) -> bool:
        """Migrate jobs to a GPU if it is lazy, or else ``within`` it, while that helps; return True if any migrated."""
        migrate = self._within_gpu if within or not self.lazy(fleet.states[gpu]) else self._to_lazy_gpu
        migrated = False
        while migrate(fleet, gpu):
            migrated = True
        return migrated

    def _within_gpu(self, fleet: GpuStates, gpu: int) -> bool:
        """Migrate the job within a busy GPU that lowers its fragmentation most; return False if there is none."""
        for _cost, _creates, source, target in self._moves_within(fleet.states[gpu]):
            job = fleet.job_at(gpu, source)
            assert job is not None
            if fleet.movable(job):
                fleet.migrate(job, gpu, target)
                return True
        return False

    def _moves_within(self, state: GpuState) -> list[tuple[int, bool, int, int]]:
        """Return the migrations within a GPU that lower its fragmentation, the best first.

        Each is the cost of fragmentation afterwards, True if it creates an instance, and the two placements.
        """
        if state not in self._moves:
            geometry = state.geometry
            self._moves[state] = sorted(
                (cost, option.creates, source, option.placement)
                for source in members(state.busy)
                for option in self.options(state, geometry.profile_of[source])
                for cost in [geometry.usage(state.busy ^ 1 << source | 1 << option.placement).cost]
                if cost < state.usage.cost
            )
        return self._moves[state]

    def _to_lazy_gpu(self, fleet: GpuStates, gpu: int) -> bool:
        """Migrate the job of a busy GPU to a lazy one that leaves least fragmentation there; False if there is none.

        Afterwards the lazy GPU must have less load than the other one has then, or had before.
        """
        state = fleet.states[gpu]
        best_options = (
            (*options[0], profile)
            for profile in range(len(fleet.geometry.profiles))
            if (options := self.options(state, profile))
        )
        for _cost, _creates, placement, profile in sorted(best_options):
            job = self._job_from(fleet, profile, state.usage.used_compute)
            if job is not None:
                fleet.migrate(job, gpu, placement)
                return True
        return False

    def _job_from(self, fleet: GpuStates, profile: int, load: int) -> int | None:
        """Return a job of a profile on a busy GPU whose load is more than ``load`` with that job; None without one."""
        geometry = fleet.geometry
        found: list[int] = []

        def accept(gpu: int) -> bool:
            busy = fleet.states[gpu].busy
            for place in geometry.placements_of[profile]:
                job = fleet.job_at(gpu, place) if busy >> place & 1 else None
                if job is not None and fleet.movable(job):
                    found.append(job)
                    return True
            return False

        # The source keeps used - size, which (or used itself) must be more than load + size.
        more_than = load + (2 if self.source_load == "after" else 1) * geometry.profiles[profile].compute_slices
        self._most_loaded.first(profile, accept, below=self._compute - more_than)
        return found[0] if found else None

    def _source_key(self, state: GpuState, profile: int) -> int | None:
        """Return the free compute slices of busy GPUs on which a job of a profile runs."""
        runs = any(state.busy >> place & 1 for place in state.geometry.placements_of[profile])
        return self._compute - state.usage.used_compute if runs and not self.lazy(state) else None
