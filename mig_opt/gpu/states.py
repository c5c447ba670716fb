"""States of a GPU: which instances are busy and which idle. Equal states are one object, with what is known of it."""

from __future__ import annotations

from typing import NamedTuple

from mig_opt.gpu.geometry import Geometry, Occupancy


class Option(NamedTuple):
    """A way to place a job on a GPU in some state.

    Attributes
    ----------
    cost : int
        Fragmentation cost of the GPU afterwards, in units of ``1 / Geometry.unit``.
    creates : bool
        Whether the instance has to be created.
    placement : int
        Where.
    """

    cost: int
    creates: bool
    placement: int


class GpuState:
    """What a GPU looks like: jobs are on the busy placements, on the idle ones there are instances without a job.

    Attributes
    ----------
    busy, idle : int
        Masks of placements.
    occupancy : Occupancy
        What is left beside the busy ones.
    """

    __slots__ = ("_options", "busy", "geometry", "idle", "occupancy")

    def __init__(self, geometry: Geometry, busy: int, idle: int) -> None:
        self.geometry = geometry
        self.busy = busy
        self.idle = idle
        self.occupancy: Occupancy = geometry.occupancy(busy)
        self._options: dict[int, tuple[Option, ...]] = {}

    def options(self, profile: int) -> tuple[Option, ...]:
        """Return where a job could run on an instance of a profile, by cost, instances that exist first, by start."""
        found = self._options.get(profile)
        if found is None:
            cost_of = self.geometry.occupancy
            found = self._options[profile] = tuple(
                sorted(
                    Option(cost_of(self.busy | 1 << place).cost, not self.idle >> place & 1, place)
                    for place in self.occupancy.available[profile]
                )
            )
        return found

    def idle_of(self, profile: int) -> tuple[int, ...]:
        """Return the idle instances of a profile, by start."""
        return tuple(place for place in self.geometry.placements_of[profile] if self.idle >> place & 1)


class States:
    """The states that occur, each once."""

    def __init__(self, geometry: Geometry) -> None:
        self.geometry = geometry
        self._width = len(geometry.placements)
        self._known: dict[int, GpuState] = {}

    def get(self, busy: int, idle: int) -> GpuState:
        """Return the state with these busy and idle placements."""
        key = busy << self._width | idle
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = GpuState(self.geometry, busy, idle)
        return found
