"""Two baskets of GPUs with quotas, defragmentation and consolidation: after GRMU, for fleets that turn jobs away.

After A. Siavashi, M. Momtazpour, *A Multi-Objective Framework for Optimizing GPU-Enabled VM Placement in Cloud Data
Centers with Multi-Instance GPU Technology* (arXiv 2502.01909). Its abstract has the parts: GPUs are in one of two
baskets with limits, for large profiles and for smaller ones; migrations within a GPU defragment it; migrations between
GPUs consolidate. The steps and the figures of these parts are not in it: ``docs/explanation/admission.md`` says what is
ours.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Annotated

from mig_opt.gpu.geometry import GpuState, members
from mig_opt.heuristics.fleet.base import MIN_PAUSE_S, free_slices
from mig_opt.heuristics.fleet.fragmentation_aware import FragmentationAware
from mig_opt.heuristics.fleet.queues import QueueingPolicy
from mig_opt.rules.vocabulary import Number, Share
from mig_opt.simulation.fleet.cluster import Cluster


@dataclass(kw_only=True, eq=False)
class Baskets(QueueingPolicy):
    """First fit in one of two baskets of GPUs, with defragmentation on refusals and consolidation at times.

    A GPU with jobs is in the basket of their kind; one without is in none, and joins the basket that needs it unless
    that is full.

    Parameters
    ----------
    quota, small_quota : float
        Shares of the GPUs that the basket of jobs with large profiles may have, and that of the others; they may add
        up to more than 1. Each may have one GPU at least.
    large : float
        Share of a GPU's compute slices from which on a profile is large.
    defragmentation : bool
        If a small job finds no place, jobs migrate within the most fragmented GPU of the basket as long as that lowers
        its fragmentation; then the job looks again.
    consolidate_s : float, optional
        Seconds from one consolidation to the next, 1e-5 at least: the only job of a GPU with small jobs migrates to the
        fullest other GPU of the basket that has room, so that its own leaves the basket. None: never.
    backfill, patience
        As of :class:`QueueingPolicy`.

    Examples
    --------
    The second large job is over the quota, and leaves room for the small ones.

    >>> from mig_opt import Job, Trace, get_gpu, simulate
    >>> jobs = [Job(name, at, {7: 90.0}, "7g.40gb") for at, name in enumerate("ab")]
    >>> jobs += [Job(name, at, {4: 90.0}, "4g.20gb") for at, name in enumerate("cd", 2)]
    >>> done = simulate(Trace(tuple(jobs), get_gpu("A100"), gpus=3), "baskets", quota=0.34, reject=True)
    >>> done.rejected
    ('b',)
    """

    quota: Share = 0.3
    small_quota: Share = 1.0
    large: Share = 1.0
    defragmentation: bool = True
    consolidate_s: Annotated[float, Number(above=0, words="seconds > 0, or None for never")] | None = 3600.0
    dynamic_partitioning: bool = field(default=True, init=False)
    partition: None = field(default=None, init=False)

    def begin(self, cluster: Cluster) -> None:
        """Learn which profiles are large, and rank the GPUs."""
        geometry, gpus = cluster.geometry, cluster.trace.gpus
        least = self.large * geometry.gpu.compute_slices
        self._is_large = tuple(profile.compute_slices >= least for profile in geometry.profiles)
        self._large_places = geometry.mask(
            place for place, profile in enumerate(geometry.profile_of) if self._is_large[profile]
        )
        # The most GPUs of each basket: of small jobs, of large ones.
        self._most = tuple(max(math.floor(share * gpus + 0.5), 1) for share in (self.small_quota, self.quota))
        self._repair = FragmentationAware()
        self._repair.watch(cluster)
        # Of the GPUs with small jobs the most fragmented one first, and that with least room for another one.
        self._fragmented = cluster.ranking(self._fragmented_key)
        self._fullest = cluster.ranking(self._fullest_key)
        self._next_look = -math.inf
        super().begin(cluster)

    def key(self, state: GpuState, profile: int) -> int | None:
        """Return 0 for a GPU of the job's basket with room, 1 for one without jobs."""
        if not state.busy:
            return 1 if state.options(profile) else None
        return 0 if self._in_basket(state, large=self._is_large[profile]) and state.options(profile) else None

    def woken(self, cluster: Cluster, tag: int) -> None:
        """Consolidate, and serve the queue; look again if anything may be otherwise then without another event."""
        actions, settled = cluster.actions, True
        for gpu in [gpu for gpu, state in enumerate(cluster.states) if self._in_basket(state, large=False)]:
            jobs = cluster.jobs_on(gpu)
            settled &= all(map(cluster.movable, jobs))
            if len(jobs) == 1 and cluster.movable(jobs[0]):
                (place,) = members(cluster.states[gpu].busy)
                profile = cluster.geometry.profile_of[place]
                target = self._fullest.first(profile, gpu.__ne__)
                if target is not None:
                    cluster.migrate(jobs[0], target, self.pick(cluster.states[target], profile))
        super().serve(cluster)
        if not settled or cluster.actions > actions:
            self._look_later(cluster)

    def serve(self, cluster: Cluster) -> None:
        """Place queued jobs, and look at the end of the period whether the fleet can be consolidated."""
        super().serve(cluster)
        self._look_later(cluster)

    def _look_later(self, cluster: Cluster) -> None:
        now, seconds = cluster.now, max(self.consolidate_s or 0.0, MIN_PAUSE_S)
        if self.consolidate_s is not None and self._next_look <= now:
            self._next_look = max((now // seconds + 1) * seconds, math.nextafter(now, math.inf))
            cluster.wake(self._next_look)

    def _place(self, cluster: Cluster, profile: int) -> bool:
        """Start the first job that waits for a profile; return False if there is no room in its basket."""
        gpu = self._room(cluster, profile)
        if gpu is None and self.defragmentation and not self._is_large[profile]:
            fragmented = self._fragmented.best(0)
            if fragmented is not None and self._repair.migrate_to_repair(cluster, fragmented, within=True):
                gpu = self._room(cluster, profile)
        if gpu is None:
            return False
        cluster.start(self._queue.take(profile), gpu, self.pick(cluster.states[gpu], profile))
        return True

    def _room(self, cluster: Cluster, profile: int) -> int | None:
        """Return the first GPU for a job of a profile, one of its basket if there is one."""
        gpu, large = self._ranking.best(profile), self._is_large[profile]
        if gpu is None or cluster.states[gpu].busy:
            return gpu
        there = (count for state, count in Counter(cluster.states).items() if self._in_basket(state, large=large))
        return gpu if sum(there) < self._most[large] else None

    def _in_basket(self, state: GpuState, *, large: bool) -> bool:
        return bool(state.busy) and bool(state.busy & self._large_places) == large

    def _fragmented_key(self, state: GpuState, _: int) -> int | None:
        return state.geometry.unit - state.usage.cost if self._in_basket(state, large=False) else None

    def _fullest_key(self, state: GpuState, profile: int) -> int | None:
        return free_slices(state) if self._in_basket(state, large=False) and state.options(profile) else None
