"""What a planner looks at: the jobs that wait, with their options, and the fleet as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mig_opt.batch.batch import Batch, LiveInstance, Task
from mig_opt.fleet.trace import Job, Trace
from mig_opt.gpu.geometry import Geometry, members
from mig_opt.gpu.model import OperationCosts, Profile
from mig_opt.heuristics.fleet.planning.sequencing import Ground, Shape, Work, look
from mig_opt.serving.profile_table import smallest_profile
from mig_opt.simulation.cluster import Cluster


@dataclass(frozen=True, slots=True)
class Wish:
    """A job that waits, with its options.

    Attributes
    ----------
    job : int
        Index in the trace.
    options : tuple of (int, float)
        Profiles, as indices of the geometry, and the seconds there; not empty.
    weight : float
        How much its end counts.
    """

    job: int
    options: tuple[tuple[int, float], ...]
    weight: float

    @property
    def shortest(self) -> float:
        """Seconds where it is quickest."""
        return min(seconds for _, seconds in self.options)


def profiles_for(trace: Trace, job: Job, least_gb: float) -> tuple[Profile, ...]:
    """Return the profiles on which a job may run that is known to need so much memory, smallest first.

    The one that it asks for, if that has enough; else of each size the one of least memory that is enough.
    """
    if job.profile is not None:
        profile = trace.gpu.profile(job.profile)
        return (profile,) if profile.memory_gb >= least_gb else ()
    if not least_gb:
        return trace.profiles(job)
    needed = max(least_gb, job.memory_gb or 0.0)
    found = (smallest_profile(trace.gpu, size, needed) for size in job.times)
    return tuple(profile for profile in found if profile is not None)


class Situation:
    """The jobs and the GPUs of one moment, in the forms that planning needs.

    Parameters
    ----------
    cluster : Cluster
        As it is now.
    wishes : sequence of Wish
        The jobs to be planned.
    gpus : sequence of int
        The GPUs to be used. In arrays and batches they are numbered in this order.
    """

    def __init__(self, cluster: Cluster, wishes: Sequence[Wish], gpus: Sequence[int]) -> None:
        self.cluster = cluster
        self.wishes = list(wishes)
        self.gpus = list(gpus)
        self.now = cluster.now
        self.shape = _shape(cluster.geometry, *_seconds(cluster.trace.operations))
        self.ground = self._ground()
        self.work = self._work()

    def free(self, gpu: int, place: int) -> float:
        """Return the seconds until an instance is free, as far as that is known."""
        job = self.cluster.job_at(gpu, place)
        end = self.cluster.ready(gpu, place)
        if job is not None:
            end = max(end, self.cluster.expected_end(job))
        return max(0.0, end - self.now)

    def batch(self) -> Batch:
        """Return the jobs as tasks, named by their index in ``wishes``, for the GPUs as they are.

        A job that asks for a profile is a task that needs the memory of that profile, so a method may still put it on
        a larger one of the same size. PCIe is left out.
        """
        geometry, jobs = self.cluster.geometry, self.cluster.trace.jobs
        tasks = []
        for number, wish in enumerate(self.wishes):
            profiles = [geometry.profiles[profile] for profile, _ in wish.options]
            job = jobs[wish.job]
            least = min(profile.memory_gb for profile in profiles)
            memory = least if job.profile is not None else job.memory_gb
            times = {p.compute_slices: seconds for p, (_, seconds) in zip(profiles, wish.options, strict=True)}
            tasks.append(Task(str(number), times, memory))
        live = tuple(
            LiveInstance(index, placement.profile.name, placement.start, self.free(gpu, place))
            for index, gpu in enumerate(self.gpus)
            for place in members(self.cluster.states[gpu].busy | self.cluster.states[gpu].idle)
            for placement in (geometry.placements[place],)
        )
        trace = self.cluster.trace
        return Batch(tuple(tasks), trace.gpu, len(self.gpus), trace.operations, live)

    def _ground(self) -> Ground:
        cluster, trace = self.cluster, self.cluster.trace
        gpus, slices, places = len(self.gpus), trace.gpu.memory_slices, len(cluster.geometry.placements)
        ground = Ground(
            holder=np.full((gpus, slices), -1, np.int64),
            until=np.zeros((gpus, slices)),
            driver=np.zeros(gpus),
            bound_until=np.full((gpus, slices), -1.0),
            bound_slope=np.zeros((gpus, slices)),
            begin=np.empty((gpus, places)),
            creates=np.empty((gpus, places), np.bool_),
        )
        for index, gpu in enumerate(self.gpus):
            state = cluster.states[gpu]
            ground.driver[index] = max(0.0, cluster.driver_free(gpu) - self.now)
            for place in members(state.busy | state.idle):
                footprint = cluster.geometry.placements[place].footprint
                free = self.free(gpu, place)
                ground.holder[index, footprint.start : footprint.stop] = place
                ground.until[index, footprint.start : footprint.stop] = free
                job = cluster.job_at(gpu, place)
                if job is not None and trace.jobs[job].pcie_gbps > 0:
                    ground.bound_until[index, footprint.start] = free
                    ground.bound_slope[index, footprint.start] = _slope(trace, job)
            look(self.shape, ground, index)
        return ground

    def _work(self) -> Work:
        trace, profiles = self.cluster.trace, self.cluster.geometry.profiles
        options = [option for wish in self.wishes for option in wish.options]
        return Work(
            weight=np.array([wish.weight for wish in self.wishes]),
            slope=np.array([_slope(trace, wish.job) for wish in self.wishes]),
            offsets=np.cumsum([0, *(len(wish.options) for wish in self.wishes)]).astype(np.int64),
            profile=np.array([profile for profile, _ in options], np.int64),
            seconds=np.array([seconds for _, seconds in options], np.float64),
            area=np.array([share_of(trace, profiles[profile]) * seconds / trace.gpus for profile, seconds in options]),
            least=np.array([wish.weight * wish.shortest for wish in self.wishes]),
        )


def share_of(trace: Trace, profile: Profile) -> float:
    """Return the share of a GPU that an instance takes: the mean of its shares of compute and memory slices."""
    gpu = trace.gpu
    return (profile.compute_slices / gpu.compute_slices + profile.memory_slices / gpu.memory_slices) / 2


def _slope(trace: Trace, job: int) -> float:
    wanted = trace.jobs[job]
    return wanted.sensitivity * wanted.pcie_gbps / trace.pcie_limit


def _seconds(costs: OperationCosts) -> tuple[tuple[tuple[int, float], ...], tuple[tuple[int, float], ...]]:
    return tuple(sorted(costs.create.items())), tuple(sorted(costs.destroy.items()))


@lru_cache(maxsize=16)
def _shape(geometry: Geometry, create: tuple[tuple[int, float], ...], destroy: tuple[tuple[int, float], ...]) -> Shape:
    sizes = [placement.profile.compute_slices for placement in geometry.placements]
    by_size = dict(create), dict(destroy)
    return Shape(
        first=np.array([placement.start for placement in geometry.placements], np.int64),
        width=np.array([len(placement.footprint) for placement in geometry.placements], np.int64),
        create=np.array([by_size[0][size] for size in sizes], np.float64),
        destroy=np.array([by_size[1][size] for size in sizes], np.float64),
        excludes=np.array([conflicts.bit_count() for conflicts in geometry.conflicts], np.int64),
        offsets=np.cumsum([0, *(len(places) for places in geometry.placements_of)]).astype(np.int64),
        members=np.array([place for places in geometry.placements_of for place in places], np.int64),
    )
