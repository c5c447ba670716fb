"""Least growth of fragmentation: the rule of a published scheduler for fleets that turn jobs away.

After M. Zambianco, L. Fasol, R. Doriguzzi-Corin, *An Online Fragmentation-Aware GPU Scheduler for Multi-Tenant
MIG-based Clouds* (arXiv 2511.18906): greedily, each job takes the GPU and the slices with which fragmentation grows
least. That is what its abstract says; the formula of its metric is not in it. ``docs/explanation/admission.md`` says
what is ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

from mig_opt.gpu.geometry import Geometry, GpuState, Option
from mig_opt.heuristics.fleet.queues import QueueingPolicy
from mig_opt.simulation.fleet.cluster import Cluster


@dataclass(kw_only=True, eq=False)
class FragmentationGrowth(QueueingPolicy):
    """The GPU and placement with which fragmentation grows least; ties by the lowest index, then the lowest start.

    Parameters
    ----------
    metric : {"blocked", "unavailable"}
        Fragmentation of a GPU. ``blocked``: over all placements of the plain profiles for which its free memory slices
        would be enough, the memory slices of those that a busy instance overlaps. ``unavailable``: the fragmentation
        cost of :meth:`mig_opt.gpu.geometry.Geometry.fragmentation`.
    dynamic_partitioning, partition, backfill, patience
        As of :class:`QueueingPolicy`.

    Examples
    --------
    Where a 1g instance is in the way of fewest others, it stands beside one that is there already.

    >>> from mig_opt import Job, Trace, get_gpu, simulate
    >>> jobs = (Job("a", 0.0, {1: 9.0}), Job("b", 1.0, {1: 9.0}), Job("c", 2.0, {4: 9.0}))
    >>> done = simulate(Trace(jobs, get_gpu("A100")), "fragmentation-growth", reject=True)
    >>> [str(run.placement) for run in done.log.runs()], done.rejected
    (['1g.5gb@6', '1g.5gb@4', '4g.20gb@0'], ())
    """

    metric: Literal["blocked", "unavailable"] = "blocked"

    def begin(self, cluster: Cluster) -> None:
        """Start with an empty queue."""
        self._most = cluster.geometry.unit
        if self.metric == "blocked":
            self._most = sum(place.profile.memory_slices for place in cluster.geometry.placements)
        super().begin(cluster)

    def rank(self, state: GpuState, option: Option) -> int:
        """Return the growth with a job on a placement, counted from the greatest fall that there could be."""
        after = self._fragmentation(state.geometry, state.busy | 1 << option.placement)
        return self._most + after - self._fragmentation(state.geometry, state.busy)

    def _fragmentation(self, geometry: Geometry, busy: int) -> int:
        return blocked_slices(geometry, busy) if self.metric == "blocked" else geometry.usage(busy).cost


@cache
def blocked_slices(geometry: Geometry, busy: int) -> int:
    """Return the memory slices of the placements of plain profiles that busy ones overlap, while they would be free.

    Profiles that need more memory slices than are free do not count: they lack room, and not contiguous room.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> from mig_opt.gpu.geometry import geometry_of
    >>> tables = geometry_of(get_gpu("A30"))
    >>> blocked_slices(tables, tables.mask([tables.index("1g.6gb", 1)]))  # 1g@1 and 2g@0
    3
    """
    free = geometry.gpu.memory_slices - geometry.usage(busy).used_memory
    plain = set(geometry.gpu.profiles_of("double-memory"))
    return sum(
        place.profile.memory_slices
        for index, place in enumerate(geometry.placements)
        if place.profile in plain and place.profile.memory_slices <= free and geometry.conflicts[index] & busy
    )
