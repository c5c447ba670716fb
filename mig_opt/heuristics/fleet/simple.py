"""Rivals without foresight. All take the first placement of the GPU that they choose."""

from __future__ import annotations

from collections.abc import Sequence

from mig_opt.fleet.trace import Job, Trace
from mig_opt.gpu.geometry import GpuState
from mig_opt.gpu.model import Profile
from mig_opt.heuristics.fleet.queueing import QueueingPolicy


class FirstFit(QueueingPolicy):
    """The GPU with the lowest index on which there is room."""

    def key(self, state: GpuState, profile: int) -> int | None:
        """Return the same for all that have room."""
        return 0 if self.options(state, profile) else None


class BestFit(QueueingPolicy):
    """The GPU on which the fewest compute slices are free, then the fewest memory slices."""

    def key(self, state: GpuState, profile: int) -> int | None:
        """Return what is free."""
        if not self.options(state, profile):
            return None
        gpu, used = state.geometry.gpu, state.occupancy
        free_compute, free_memory = gpu.compute_slices - used.used_compute, gpu.memory_slices - used.used_memory
        return free_compute * (gpu.memory_slices + 1) + free_memory


class LoadBalancing(QueueingPolicy):
    """The GPU with the fewest busy compute slices."""

    def key(self, state: GpuState, profile: int) -> int | None:
        """Return the load."""
        return state.occupancy.used_compute if self.options(state, profile) else None


class StaticPartition(FirstFit):
    """First fit on partitions that never change.

    Parameters
    ----------
    partition, backfill
        As of :class:`QueueingPolicy`.
    """

    def __init__(self, *, partition: str | Sequence[str] | None = None, backfill: bool = False) -> None:
        super().__init__(backfill=backfill, dynamic_partitioning=False, partition=partition)


class WholeGpu(QueueingPolicy):
    """One job at a time on each GPU, on the largest instance that it can run on, whatever profile it asks for.

    Parameters
    ----------
    backfill
        As of :class:`QueueingPolicy`.
    """

    def __init__(self, *, backfill: bool = False) -> None:
        super().__init__(backfill=backfill)

    def key(self, state: GpuState, profile: int) -> int | None:
        """Return the same for all without a job."""
        return None if state.busy else 0

    def profile(self, trace: Trace, job: Job, least_gb: float) -> Profile | None:
        """Return the largest profile on which a job can run, whatever it asks for."""
        sizes = [profile for profile in trace.gpu.profiles_of("double-memory") if profile.compute_slices in job.times]
        return sizes[0] if sizes[0].memory_gb >= least_gb else None
