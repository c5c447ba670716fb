"""GPUs and MIG instances of a machine as its driver shows them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from mig_opt.gpu.model import Placement


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU of this machine."""

    uuid: str  # the only name of the GPU that stays: numbers change with every start of the machine
    index: int  # its number at the moment
    name: str  # of the board
    bus: str  # PCI address
    mig: bool | None  # true if MIG mode is enabled; None if the GPU has no MIG
    mig_pending: bool  # MIG mode after the next reset of the GPU
    lost: str = ""  # why the GPU does not answer; then nothing is known of it but its number

    def trouble(self) -> str:
        """Return why instances cannot be created on this GPU and how to mend it, empty if they can."""
        if self.mig is None:
            return self.lost or f"{self.name} has no MIG; choose another GPU"
        if self.mig:
            ends = f"MIG mode ends with the next reset; keep it with: nvidia-smi -i {self.uuid} -mig 1"
            return "" if self.mig_pending else ends
        if self.mig_pending:
            reset = f"nvidia-smi -i {self.uuid} --gpu-reset (or restart the machine)"
            return f"MIG mode is enabled only after a reset; end what uses the GPU, then: {reset}"
        return f"MIG mode is off; enable it with: nvidia-smi -i {self.uuid} -mig 1"


class DriverProfile(NamedTuple):
    """A profile as the driver shows it."""

    name: str  # without "MIG "
    id: int
    max_count: int
    mib: int
    sm_count: int
    starts: tuple[int, ...] = ()
    size: int = 0  # memory slices; 0 if it is not told


@dataclass(frozen=True, slots=True)
class MigInstance:
    """A GPU instance that exists."""

    gpu: str  # UUID of the GPU
    number: int  # that the driver has given to the GPU instance; it is used again after a destruction
    profile: str  # as the driver spells it
    start: int  # first memory slice
    size: int  # number of memory slices
    uuid: str = ""  # of the MIG device, for CUDA_VISIBLE_DEVICES; empty unless there is just one compute instance
    computes: int = 1  # number of compute instances
    processes: tuple[int, ...] | None = ()  # process numbers of what runs on it; None if the driver does not tell

    def at(self, placement: Placement) -> bool:
        """Return True if the instance has just the memory and compute slices of a placement."""
        profile = placement.profile
        compute = re.match(r"\d+(?=g)", self.profile)
        alike = compute is None or int(compute[0]) == profile.compute_slices
        return alike and (self.start, self.size) == (placement.start, profile.memory_slices)

    def overlaps(self, placement: Placement) -> bool:
        """Return True if the instance has a slice of a placement."""
        footprint = placement.footprint
        return self.start < footprint.stop and footprint.start < self.start + self.size

    def __str__(self) -> str:
        users = f", used by process {', '.join(map(str, self.processes))}" if self.processes else ""
        return f"{self.profile} at slice {self.start} ({self.uuid or f'GPU instance {self.number}'}{users})"


@dataclass(frozen=True, slots=True)
class Patience:
    """Waits between tries of what a driver refuses for a while, in seconds.

    Examples
    --------
    >>> list(Patience(first=1, growth=2, longest=3, limit=7).waits())
    [1, 2, 3, 1]
    """

    first: float = 0.1  # before the second try
    growth: float = 1.6  # the factor from each wait to the next
    longest: float = 5.0  # single wait
    limit: float = 60.0  # of waiting, after which the last refusal counts

    def waits(self) -> Iterator[float]:
        """Yield the waits, in seconds; all of them together are the limit."""
        wait, left = self.first, self.limit
        while left > 0:
            yield min(wait, self.longest, left)
            left -= min(wait, self.longest, left)
            wait *= self.growth
