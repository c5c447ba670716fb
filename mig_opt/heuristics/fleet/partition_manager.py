"""The partition manager of MIGM: the tightest instance for a job, and its placement on a GPU (section 4.2)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mig_opt.fleet.job import Job
from mig_opt.gpu.geometry import GpuState, NumberedPlace
from mig_opt.gpu.model import Profile
from mig_opt.gpu.reachability import Reachability
from mig_opt.simulation.fleet.cluster import Cluster


class TightFit(NamedTuple):
    """Instances with the same memory, any of which does for a job; the profile where it is fastest is the first."""

    memory_gb: float
    profiles: tuple[int, ...]


class Candidate(NamedTuple):
    """A placement for a job on a GPU; the least one is the best.

    ``effort`` is 0 if the instance exists and is idle, 1 if it is created beside all others, and 2 if idle ones are
    ``destroyed`` for it, smaller ones to be fused or a larger one to be split. ``lost`` is the number of full
    configurations that can be reached from an empty GPU, but no longer from this one afterwards, and ``rank`` that of
    the profile in the fit.
    """

    effort: int
    lost: int
    destroyed: int
    rank: int
    placement: int


class PartitionManager:
    """Finds the tightest memory for a job and the placement that leaves most configurations reachable.

    With ``folding`` a job may run on any instance with the tightest memory, else only on the fastest of them. Instances
    on which it would take more than ``slowdown_limit`` times its least seconds are not used, and with ``warps`` none
    with too little room for its warps.
    """

    def __init__(self, cluster: Cluster, *, folding: bool, slowdown_limit: float | None, warps: bool = False) -> None:
        self._cluster, self._geometry = cluster, cluster.geometry
        self._folding, self._slowdown_limit, self._warps = folding, slowdown_limit, warps
        gpu = cluster.trace.one_kind
        self._pools = tuple(gpu.profiles_of(profiles) for profiles in ("base", "double-memory"))
        self._reachability = Reachability(self._geometry)
        self._from_empty = self._reachability.of(0)
        self._best: dict[tuple[GpuState, TightFit], Candidate | None] = {}
        self._ranking = cluster.ranking(self._effort)

    def tight_fit(self, job: Job, least_gb: float) -> TightFit | None:
        """Return the instances of least memory, at least ``least_gb`` GB, for a job; None if there are none."""
        for profiles in self._suitable(job):
            enough = [profile for profile in profiles if profile.memory_gb >= least_gb]
            if self._warps and job.sms is not None:
                enough = _with_room(enough, job.sms, folding=self._folding)
            if self._slowdown_limit is not None and enough:
                limit = self._slowdown_limit * min(job.times[profile.compute_slices] for profile in enough)
                enough = [profile for profile in enough if job.times[profile.compute_slices] <= limit]
            if enough:
                memory_gb = min(profile.memory_gb for profile in enough)
                tight = [profile for profile in enough if profile.memory_gb == memory_gb]
                tight.sort(key=lambda profile: (job.times[profile.compute_slices], profile.compute_slices))
                chosen = tight if self._folding else tight[:1]
                return TightFit(memory_gb, tuple(map(self._geometry.profile_index, chosen)))
        return None

    def largest_gb(self, job: Job) -> float:
        """Return the memory of the largest instance that a job can have, in GB; 0 if it can have none."""
        return max((profile.memory_gb for profiles in self._suitable(job) for profile in profiles), default=0.0)

    def place(self, fit: TightFit) -> NumberedPlace | None:
        """Return the GPU of lowest index on which a fit needs least effort, and the placement there."""
        gpu = self._ranking.best(fit)
        placement = None if gpu is None else self.place_on(gpu, fit)
        return None if gpu is None or placement is None else (gpu, placement)

    def place_on(self, gpu: int, fit: TightFit) -> int | None:
        """Return the placement of a fit on a GPU, or None if there is no room."""
        best = self._candidate(self._cluster.states[gpu], fit)
        return None if best is None else best.placement

    def _suitable(self, job: Job) -> Iterable[list[Profile]]:
        """Yield the profiles on which a job can run: the one it asks for, else the base ones, else all plain ones."""
        pools = self._pools if job.profile is None else ((self._cluster.trace.one_kind.profile(job.profile),),)
        return ([profile for profile in pool if profile.compute_slices in job.times] for pool in pools)

    def _effort(self, state: GpuState, fit: TightFit) -> int | None:
        best = self._candidate(state, fit)
        return None if best is None else best.effort

    def _candidate(self, state: GpuState, fit: TightFit) -> Candidate | None:
        key = (state, fit)
        if key not in self._best:
            candidates = (
                self._rate(state, rank, placement)
                for rank, profile in enumerate(fit.profiles)
                for placement in state.usage.available[profile]
            )
            self._best[key] = min(candidates, default=None)
        return self._best[key]

    def _rate(self, state: GpuState, rank: int, placement: int) -> Candidate:
        own = 1 << placement
        exists = bool(state.idle & own)
        blocking = 0 if exists else state.idle & self._geometry.conflicts[placement]
        # If the instance exists, what counts is where jobs could run if the other idle ones were gone.
        after = state.busy | own if exists else state.busy | state.idle & ~blocking | own
        effort = 0 if exists else 2 if blocking else 1
        return Candidate(effort, self._from_empty - self._reachability.of(after), blocking.bit_count(), rank, placement)


def _with_room(profiles: list[Profile], sms: int, *, folding: bool) -> list[Profile]:
    """Return the profiles with room for warps that fill a number of SMs, or those with most SMs if none has enough.

    With ``folding`` (section 4.3) some of the warps run after others, in no more rounds than on the largest profile:
    for 120 SMs on a GPU with 100 these are two, for which 60 are enough. All are returned where a number of SMs is
    unknown.
    """
    known = {profile: profile.sm_count for profile in profiles if profile.sm_count is not None}
    if not known or len(known) < len(profiles):
        return profiles
    most = max(known.values())
    wanted = -(-sms // -(-sms // most)) if folding else min(sms, most)
    return [profile for profile, count in known.items() if count >= wanted]
