"""Tables of a kind of GPU and of the states of its GPUs, each computed once.

Placements, profiles and sets of them are numbers here: a placement is its index, a set of placements is a bit mask.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from mig_opt.errors import InputError, Problem
from mig_opt.gpu.model import GpuModel, Placement, Profile, ProfileSet

NumberedPlace = tuple[int, int]
"""Index of a GPU, and of a placement in its :class:`Geometry`."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Usage of a GPU on which some placements are busy, and what is left."""

    busy: int  # mask of the busy placements
    available: tuple[tuple[int, ...], ...]  # for each profile the placements that a job could take, by start
    # slices of the busy instances
    used_compute: int
    used_memory: int
    cost: int  # fragmentation cost in units of ``1 / Geometry.unit``, exact so that equal costs are equal numbers


class Option(NamedTuple):
    """A placement that a job could take on a GPU in some state."""

    cost: int  # fragmentation cost of the GPU afterwards, in units of ``1 / Geometry.unit``
    creates: bool  # true if the instance has to be created
    placement: int  # number of the placement


class GpuState:
    """State of a GPU: jobs run on the busy placements, on the idle ones there are instances without a job.

    States are made by :meth:`Geometry.state`; equal ones are one object.
    """

    __slots__ = ("_options", "busy", "geometry", "idle", "usage")

    def __init__(self, geometry: Geometry, busy: int, idle: int, *, absent: bool = False) -> None:
        self.geometry = geometry
        # masks of placements
        self.busy = busy
        self.idle = idle
        gpu, nothing = geometry.gpu, ((),) * len(geometry.profiles)
        # usage by the busy ones
        self.usage = Usage(0, nothing, gpu.compute_slices, gpu.memory_slices, 0) if absent else geometry.usage(busy)
        self._options: dict[int, tuple[Option, ...]] = {}

    def options(self, profile: int) -> tuple[Option, ...]:
        """Return the placements for a job on a profile: least cost first, then instances that exist, then by start."""
        found = self._options.get(profile)
        if found is None:
            cost_of = self.geometry.usage
            found = self._options[profile] = tuple(
                sorted(
                    Option(cost_of(self.busy | 1 << place).cost, not self.idle >> place & 1, place)
                    for place in self.usage.available[profile]
                )
            )
        return found

    def idle_of(self, profile: int) -> tuple[int, ...]:
        """Return the idle instances of a profile, by start."""
        return tuple(place for place in self.geometry.placements_of[profile] if self.idle >> place & 1)


class Geometry:
    """Tables of one kind of GPU; use :func:`geometry_of`, which keeps them.

    Fragmentation is measured over the plain profiles (``double-memory``: on an A100 the six of the paper's Table I),
    whatever ``profiles`` instances may have.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> tables = geometry_of(get_gpu("A100"))
    >>> busy = tables.mask([tables.index("3g.20gb", 0)])
    >>> usage = tables.usage(busy)
    >>> [len(places) for places in usage.available]  # 7g, 4g, 3g, 2g, 1g.10gb, 1g
    [0, 0, 1, 1, 2, 3]
    >>> tables.fragmentation(busy)  # 4 compute and 4 memory slices are left: ideal 0, 1, 1, 2, 2, 4
    0.2916666666666667
    """

    def __init__(self, gpu: GpuModel, profiles: ProfileSet = "double-memory") -> None:
        self.gpu = gpu
        self.profiles: tuple[Profile, ...] = gpu.profiles_of(profiles)
        self.placements: tuple[Placement, ...] = gpu.placements(profiles)
        self.conflicts: tuple[int, ...] = tuple(
            self.mask(index for index, other in enumerate(self.placements) if placement.excludes(other))
            for placement in self.placements
        )
        """For each placement the mask of those that cannot exist beside it, itself included."""
        self._numbers = {profile: index for index, profile in enumerate(self.profiles)}
        self.profile_of: tuple[int, ...] = tuple(self._numbers[placement.profile] for placement in self.placements)
        self.placements_of: tuple[tuple[int, ...], ...] = tuple(
            tuple(index for index, own in enumerate(self.profile_of) if own == profile)
            for profile in range(len(self.profiles))
        )
        self._plain = tuple(self._numbers[profile] for profile in gpu.profiles_of("double-memory"))
        self.unit: int = math.lcm(*range(1, gpu.memory_slices + 1)) * len(self._plain)
        self._indices = {(placement.profile.name, placement.start): i for i, placement in enumerate(self.placements)}
        self.absent = GpuState(self, 0, 0, absent=True)
        """State of a GPU that has left the fleet: nothing runs, and nothing can."""
        self._usages: dict[int, Usage] = {}
        self._states: dict[tuple[int, int], GpuState] = {}

    def index(self, profile: str, start: int) -> int:
        """Return the number of a placement.

        Raises
        ------
        InputError
            If the GPU has no such placement, or not among these profiles.
        """
        found = self._indices.get((profile, start))
        if found is None:
            placement = self.gpu.placement(profile, start)
            message = f"{placement} is not among the profiles that are used: {', '.join(p.name for p in self.profiles)}"
            raise InputError([Problem("profile", message)])
        return found

    def profile_index(self, profile: Profile) -> int:
        """Return the number of a profile."""
        return self._numbers[profile]

    def mask(self, placements: Iterable[int]) -> int:
        """Return the mask of some placements."""
        mask = 0
        for placement in placements:
            mask |= 1 << placement
        return mask

    def usage(self, busy: int) -> Usage:
        """Return the usage of a GPU with these busy placements."""
        found = self._usages.get(busy)
        if found is None:
            found = self._usages[busy] = self._measure(busy)
        return found

    def state(self, busy: int, idle: int) -> GpuState:
        """Return the state with these busy and idle placements."""
        found = self._states.get((busy, idle))
        if found is None:
            found = self._states[busy, idle] = GpuState(self, busy, idle)
        return found

    def fragmentation(self, busy: int) -> float:
        """Return the fragmentation cost of a GPU with these busy placements, 0 to 1.

        It is the mean over the plain profiles of ``1 - available / ideal``: how many placements a job could take,
        against ``min(free compute // compute of the profile, free memory slices // its size)``, which knows nothing of
        where instances may start. A profile whose ideal is 0 counts 0 (the fragmentation-aware paper, section IV-B).
        """
        return self.usage(busy).cost / self.unit

    def _measure(self, busy: int) -> Usage:
        placed = [self.placements[index].profile for index in members(busy)]
        compute = sum(profile.compute_slices for profile in placed)
        memory = sum(profile.memory_slices for profile in placed)
        available = tuple(
            tuple(place for place in places if not self.conflicts[place] & busy) for places in self.placements_of
        )
        free_compute, free_memory = self.gpu.compute_slices - compute, self.gpu.memory_slices - memory
        share, cost = self.unit // len(self._plain), 0
        for index in self._plain:
            profile = self.profiles[index]
            ideal = min(free_compute // profile.compute_slices, free_memory // profile.memory_slices)
            if ideal > 0:
                # Where an instance has more compute than memory slices, more may be available than are ideal.
                cost += share - share * min(len(available[index]), ideal) // ideal
        return Usage(busy, available, compute, memory, cost)


@cache
def geometry_of(gpu: GpuModel, profiles: ProfileSet = "double-memory") -> Geometry:
    """Return the tables of a kind of GPU."""
    return Geometry(gpu, profiles)


def members(mask: int) -> Iterator[int]:
    """Yield the numbers in a mask, ascending.

    Examples
    --------
    >>> list(members(0b1101))
    [0, 2, 3]
    """
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
