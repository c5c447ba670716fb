"""A fleet state in numbers: placements are indices, what is on a GPU is a mask."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property

from mig_opt.defragmentation.ordering import Move
from mig_opt.fleet.state import FleetState, Migration
from mig_opt.gpu.geometry import Geometry, geometry_of, members
from mig_opt.gpu.model import GpuModel, ProfileSet


@dataclass(frozen=True, slots=True)
class Layout:
    """A placed state of a GPU.

    Attributes
    ----------
    mask : int
        Its placements.
    counts : tuple of int
        Instances of each profile.
    cost : int
        Fragmentation cost in units of the geometry.
    """

    mask: int
    counts: tuple[int, ...]
    cost: int


@dataclass(frozen=True)
class Fleet:
    """A fleet state in numbers.

    Attributes
    ----------
    geometry : Geometry
        What the numbers mean.
    profiles : str
        The set of profiles that have numbers.
    masks : tuple of int
        What is on each GPU.
    pinned : tuple of int
        What of it must stay.
    """

    geometry: Geometry
    profiles: ProfileSet
    masks: tuple[int, ...]
    pinned: tuple[int, ...]

    @classmethod
    def of(cls, state: FleetState, *, all_profiles: bool = False) -> Fleet:
        """Return a state in numbers; variants of profiles count if there are some, or if that is wanted."""
        plain = {profile.name for profile in state.gpu.profiles_of("double-memory")}
        variants = all_profiles or any(held.profile not in plain for held in state.instances)
        profiles: ProfileSet = "all" if variants else "double-memory"
        geometry = geometry_of(state.gpu, profiles)
        masks, pinned = [0] * state.gpus, [0] * state.gpus
        for held in state.instances:
            bit = 1 << geometry.index(held.profile, held.start)
            masks[held.gpu] |= bit
            pinned[held.gpu] |= bit if held.pinned else 0
        return cls(geometry, profiles, tuple(masks), tuple(pinned))

    @property
    def layouts(self) -> tuple[Layout, ...]:
        """All placed states of a GPU."""
        return layouts_of(self.geometry.gpu, self.profiles)

    @cached_property
    def groups(self) -> dict[tuple[int, int], list[int]]:
        """The GPUs that look alike, by what is on them and what of it is pinned."""
        found: dict[tuple[int, int], list[int]] = defaultdict(list)
        for gpu, look in enumerate(zip(self.masks, self.pinned, strict=True)):
            found[look].append(gpu)
        return found

    @cached_property
    def totals(self) -> tuple[int, ...]:
        """Instances of each profile."""
        totals = [0] * len(self.geometry.profiles)
        for mask in self.masks:
            for place in members(mask):
                totals[self.geometry.profile_of[place]] += 1
        return tuple(totals)

    def cost(self, masks: tuple[int, ...] | list[int]) -> int:
        """Return the fragmentation cost of all GPUs together."""
        return sum(self.geometry.occupancy(mask).cost for mask in masks)

    def mean(self, cost: float) -> float:
        """Return a cost of all GPUs together as the mean fragmentation of a GPU."""
        return cost / self.geometry.unit / len(self.masks)

    def migrations(self, state: FleetState, moves: Iterable[Move]) -> tuple[Migration, ...]:
        """Return moves as migrations of the state that this stands for."""
        placements = self.geometry.placements
        names = {(held.gpu, self.geometry.index(held.profile, held.start)): held.name for held in state.instances}
        found = []
        for source, target in moves:
            names[target] = name = names.pop(source)
            old, new = placements[source[1]], placements[target[1]]
            found.append(Migration(source[0], old.profile.name, old.start, target[0], new.start, name))
        return tuple(found)

    def possible(self) -> list[Layout]:
        """Return the placed states that do not need more instances than there are."""
        totals = self.totals
        return [
            layout
            for layout in self.layouts
            if all(count <= total for count, total in zip(layout.counts, totals, strict=True))
        ]


@cache
def layouts_of(gpu: GpuModel, profiles: ProfileSet) -> tuple[Layout, ...]:
    """Return all placed states of a kind of GPU."""
    geometry = geometry_of(gpu, profiles)
    found = []
    for state in gpu.placed_states(profiles):
        mask = geometry.mask(geometry.index(placement.profile.name, placement.start) for placement in state)
        counts = [0] * len(geometry.profiles)
        for place in members(mask):
            counts[geometry.profile_of[place]] += 1
        found.append(Layout(mask, tuple(counts), geometry.occupancy(mask).cost))
    return tuple(found)
