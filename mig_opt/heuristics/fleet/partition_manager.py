"""The partition manager of MIGM: which instance a job needs at least, and where on a GPU it is made."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mig_opt.fleet.trace import Job
from mig_opt.gpu.geometry import GpuState, members
from mig_opt.gpu.model import Profile
from mig_opt.gpu.reachability import Reachability
from mig_opt.simulation.cluster import Cluster


class Fit(NamedTuple):
    """A tight fit: instances with the same memory, any of which does for a job.

    Attributes
    ----------
    memory_gb : float
        What each of them has.
    profiles : tuple of int
        Their profiles, the one on which the job is fastest first.
    """

    memory_gb: float
    profiles: tuple[int, ...]


class Choice(NamedTuple):
    """Where an instance is or can be made, the best first.

    Attributes
    ----------
    stage : int
        0: it is there and idle; 1: it is created beside all others; 2: idle ones are destroyed for it, smaller ones
        to be fused or a larger one to be split.
    lost : int
        How many fewer full configurations can be reached afterwards than from an empty GPU.
    destroyed : int
        How many idle instances it replaces.
    rank : int
        Of its profile in the fit.
    placement : int
        Where.
    """

    stage: int
    lost: int
    destroyed: int
    rank: int
    placement: int


class PartitionManager:
    """Finds the tightest memory for a job and the placement that leaves most configurations reachable.

    Parameters
    ----------
    cluster : Cluster
        The fleet.
    folding : bool
        Whether a job may run on any instance with the tightest memory, or only on the fastest of them.
    slowdown_limit : float, optional
        Instances on which a job would take more than this many times its least seconds are not used.
    """

    def __init__(self, cluster: Cluster, *, folding: bool, slowdown_limit: float | None) -> None:
        self._cluster = cluster
        self._geometry = cluster.geometry
        self._folding = folding
        self._slowdown_limit = slowdown_limit
        gpu = cluster.trace.gpu
        self._pools = tuple(gpu.profiles_of(profiles) for profiles in ("base", "double-memory"))
        self._numbers = {profile: number for number, profile in enumerate(self._geometry.profiles)}
        self._reachability = Reachability(self._geometry)
        self._all = self._reachability.of(0)
        self._fits: list[Fit] = []
        self._fit_numbers: dict[Fit, int] = {}
        self._choices: dict[tuple[GpuState, int], Choice | None] = {}
        self._ranking = cluster.ranking(self._stage)

    def fit(self, job: Job, least_gb: float) -> Fit | None:
        """Return the tight fit of a job that needs so many GB, or None if no instance has them."""
        for pool in self._suitable(job):
            enough = [profile for profile in pool if profile.memory_gb >= least_gb]
            if self._slowdown_limit is not None and enough:
                limit = self._slowdown_limit * min(job.times[profile.compute_slices] for profile in enough)
                enough = [profile for profile in enough if job.times[profile.compute_slices] <= limit]
            if enough:
                memory = min(profile.memory_gb for profile in enough)
                tight = [profile for profile in enough if profile.memory_gb == memory]
                tight.sort(key=lambda profile: (job.times[profile.compute_slices], profile.compute_slices))
                chosen = tight if self._folding else tight[:1]
                return Fit(memory, tuple(self._numbers[profile] for profile in chosen))
        return None

    def most(self, job: Job) -> float:
        """Return the memory of the largest instance that a job can have, in GB; 0 if it can have none."""
        return max((profile.memory_gb for pool in self._suitable(job) for profile in pool), default=0.0)

    def place(self, fit: Fit) -> tuple[int, int] | None:
        """Return the GPU of lowest index on which a fit needs least effort, and the placement there."""
        number = self._number(fit)
        gpu = self._ranking.best(number)
        if gpu is None:
            return None
        choice = self._choice(self._cluster.states[gpu], number)
        assert choice is not None
        return gpu, choice.placement

    def place_on(self, gpu: int, fit: Fit) -> int | None:
        """Return the placement of a fit on a GPU, or None if there is no room."""
        choice = self._choice(self._cluster.states[gpu], self._number(fit))
        return None if choice is None else choice.placement

    def _suitable(self, job: Job) -> Iterable[list[Profile]]:
        """Yield the profiles on which a job can run: the one it asks for, else the base ones, else all plain ones."""
        pools = self._pools if job.profile is None else ((self._cluster.trace.gpu.profile(job.profile),),)
        return ([profile for profile in pool if profile.compute_slices in job.times] for pool in pools)

    def _number(self, fit: Fit) -> int:
        number = self._fit_numbers.setdefault(fit, len(self._fits))
        if number == len(self._fits):
            self._fits.append(fit)
        return number

    def _stage(self, state: GpuState, number: int) -> int | None:
        choice = self._choice(state, number)
        return None if choice is None else choice.stage

    def _choice(self, state: GpuState, number: int) -> Choice | None:
        key = (state, number)
        if key not in self._choices:
            options = (
                self._option(state, rank, placement)
                for rank, profile in enumerate(self._fits[number].profiles)
                for placement in state.occupancy.available[profile]
            )
            self._choices[key] = min(options, default=None)
        return self._choices[key]

    def _option(self, state: GpuState, rank: int, placement: int) -> Choice:
        if state.idle >> placement & 1:
            # The instances stay as they are; what counts is where jobs could run if the idle ones were gone.
            after = state.busy | 1 << placement
            return Choice(0, self._all - self._reachability.of(after), 0, rank, placement)
        blocking = state.idle & self._geometry.conflicts[placement]
        after = state.busy | state.idle & ~blocking | 1 << placement
        destroyed = sum(1 for _ in members(blocking))
        return Choice(2 if blocking else 1, self._all - self._reachability.of(after), destroyed, rank, placement)
