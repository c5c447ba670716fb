"""Planning problem of one moment: the waiting jobs with their modes, and the fleet as it is."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mig_opt.batch.batch import Batch, LiveInstance, Task
from mig_opt.fleet.trace import Trace
from mig_opt.gpu.geometry import Geometry, members
from mig_opt.gpu.model import Profile
from mig_opt.heuristics.fleet.plans.calibration import Calibration
from mig_opt.heuristics.fleet.plans.list_decoder import (
    Availability,
    DecoderProblem,
    Floats,
    JobArrays,
    Objective,
    Placements,
)
from mig_opt.simulation.fleet.cluster import Cluster

_MOST_APART = 1e30
"""Factor by which weights of jobs differ, beyond which it makes no difference: sums and quotients stay finite."""


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """Job to be planned."""

    job: int  # its index in the trace
    modes: tuple[tuple[int, float], ...]  # profiles, each with the seconds there
    weight: float  # weight of its end
    due: float = math.inf  # second of the trace from which on it is late
    urgent: bool = False  # true if nothing may delay it any more but urgent jobs before it

    def mode(self, profile: int | None) -> int:
        """Return the number of the mode with a profile, or -1 if there is none."""
        return next((mode for mode, (own, _) in enumerate(self.modes) if own == profile), -1)


def placement_arrays(trace: Trace, geometry: Geometry) -> Placements:
    """Return the placements of the GPUs of a trace for the decoder."""
    placements = geometry.placements
    return Placements(
        first=np.array([placement.start for placement in placements], np.int64),
        width=np.array([len(placement.footprint) for placement in placements], np.int64),
        create=np.array([trace.operations.of("create", placement.profile) for placement in placements], np.float64),
        destroy=np.array([trace.operations.of("destroy", placement.profile) for placement in placements], np.float64),
        excludes=np.array([conflicts.bit_count() for conflicts in geometry.conflicts], np.int64),
        offsets=np.cumsum([0, *(len(places) for places in geometry.placements_of)]).astype(np.int64),
        members=np.array([place for places in geometry.placements_of for place in places], np.int64),
    )


class PlanningProblem:
    """The jobs and the GPUs of one moment, for the decoder and for :func:`mig_opt.solve`.

    In arrays and batches the GPUs are numbered in the order in which they are given.
    """

    def __init__(
        self,
        cluster: Cluster,
        placements: Placements,
        jobs: Sequence[WaitingJob],
        gpus: Sequence[int],
        calibration: Calibration,
    ) -> None:
        self.cluster, self._calibration, self.placements = cluster, calibration, placements
        self.jobs = list(jobs)
        self.gpus = list(gpus)
        self.now = cluster.now
        self.job_arrays = self._job_arrays()
        self.available = self._availability()

    def for_decoder(self, objective: Objective) -> DecoderProblem:
        """Return the problem in arrays."""
        return DecoderProblem(self.placements, self.available, self.job_arrays, objective)

    def of_jobs(self, numbers: Sequence[int]) -> PlanningProblem:
        """Return the problem of some of the jobs."""
        part = copy.copy(self)
        part.jobs = [self.jobs[number] for number in numbers]
        part.job_arrays = part._job_arrays()
        return part

    def free(self, gpu: int, place: int) -> float:
        """Return the expected number of seconds until an instance is free."""
        job = self.cluster.job_at(gpu, place)
        end = self.cluster.ready(gpu, place)
        if job is not None:
            end = max(end, self.cluster.expected_end(job, self._calibration.factor(job)))
        return max(0.0, end - self.now)

    def batch(self) -> Batch:
        """Return the jobs as tasks, named by their index in ``jobs``, for the GPUs as they are.

        A job that asks for a profile is a task that needs the memory of that profile, so a method may still put it on
        a larger one of the same size. PCIe is left out.
        """
        trace, geometry = self.cluster.trace, self.cluster.geometry
        tasks = []
        for number, waiting in enumerate(self.jobs):
            job = trace.jobs[waiting.job]
            modes = [(geometry.profiles[profile], seconds) for profile, seconds in waiting.modes]
            least_gb = min(profile.memory_gb for profile, _ in modes)
            times = {profile.compute_slices: seconds for profile, seconds in modes}
            tasks.append(Task(str(number), times, job.memory_gb if job.profile is None else least_gb))
        live = tuple(
            LiveInstance(index, placement.profile.name, placement.start, self.free(gpu, place))
            for index, gpu in enumerate(self.gpus)
            for place in members(self.cluster.states[gpu].busy | self.cluster.states[gpu].idle)
            for placement in (geometry.placements[place],)
        )
        return Batch(tuple(tasks), trace.one_kind, len(self.gpus), trace.operations, live)

    def _availability(self) -> Availability:
        cluster, trace = self.cluster, self.cluster.trace
        shape = len(self.gpus), trace.one_kind.memory_slices
        available = Availability(
            holder=np.full(shape, -1, np.int64),
            free=np.zeros(shape),
            bound_until=np.full(shape, -1.0),
            bound_factor=np.zeros(shape),
            driver=np.array([max(0.0, cluster.driver_free(gpu) - self.now) for gpu in self.gpus], np.float64),
        )
        for index, gpu in enumerate(self.gpus):
            state = cluster.states[gpu]
            for place in members(state.busy | state.idle):
                footprint = cluster.geometry.placements[place].footprint
                free = self.free(gpu, place)
                available.holder[index, footprint.start : footprint.stop] = place
                available.free[index, footprint.start : footprint.stop] = free
                job = cluster.job_at(gpu, place)
                if job is not None and trace.jobs[job].pcie_gbps > 0:
                    available.bound_until[index, footprint.start] = free
                    available.bound_factor[index, footprint.start] = trace.pcie_factor(trace.jobs[job])
        return available

    def _job_arrays(self) -> JobArrays:
        trace, profiles = self.cluster.trace, self.cluster.geometry.profiles
        modes = [mode for waiting in self.jobs for mode in waiting.modes]
        shares = np.array([share(trace, profile) for profile in profiles])
        profile = np.array([own for own, _ in modes], np.int64)
        seconds = np.array([own for _, own in modes], np.float64)
        return JobArrays(
            weight=_comparable(np.array([waiting.weight for waiting in self.jobs], np.float64)),
            factor=np.array([trace.pcie_factor(trace.jobs[waiting.job]) for waiting in self.jobs], np.float64),
            due=np.array([waiting.due - self.now for waiting in self.jobs], np.float64),
            latest=np.full(len(self.jobs), np.inf),
            offsets=np.cumsum([0, *(len(waiting.modes) for waiting in self.jobs)]).astype(np.int64),
            profile=profile,
            seconds=seconds,
            area=shares[profile] * seconds / trace.gpus,
        )


def area(trace: Trace, profile: Profile, seconds: float) -> float:
    """Return what an instance takes of the fleet, in seconds of the whole fleet."""
    return share(trace, profile) * seconds / trace.gpus


def share(trace: Trace, profile: Profile) -> float:
    """Return what an instance takes of its GPU: the mean of its shares of compute and memory slices."""
    gpu = trace.one_kind
    return (profile.compute_slices / gpu.compute_slices + profile.memory_slices / gpu.memory_slices) / 2


def _comparable(weights: Floats) -> Floats:
    """Return weights as they are or, where some are huge or tiny, in the same proportions but not too far apart."""
    heaviest = weights.max(initial=1.0)
    if heaviest > _MOST_APART or weights.min(initial=1.0) < 1 / _MOST_APART:
        weights = np.maximum(weights / heaviest, 1 / _MOST_APART)
    return weights
