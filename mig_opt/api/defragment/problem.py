"""Defragmentation in numbers: the instances on the GPUs, and the goal.

Placements are indices of a :class:`Geometry`; the instances on a GPU are a bit mask of placements. A *layout* is a mask
that a GPU can have.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, NamedTuple, TypeVar

from mig_opt.fleet.state import FleetState, HeldInstance, Migration
from mig_opt.gpu.geometry import Geometry, NumberedPlace, geometry_of, members
from mig_opt.gpu.model import GpuModel, ProfileSet

Masks = tuple[int, ...]
"""Instances on each GPU."""
_Look = TypeVar("_Look")


class Relocation(NamedTuple):
    """A migration in numbers: its place before and after."""

    source: NumberedPlace
    target: NumberedPlace


def alike(looks: Iterable[_Look]) -> dict[_Look, list[int]]:
    """Return the GPUs with each look; of GPUs that are alike one can stand for all."""
    found: dict[_Look, list[int]] = defaultdict(list)
    for gpu, look in enumerate(looks):
        found[look].append(gpu)
    return found


def relocated(masks: Masks, moves: Iterable[Relocation]) -> Masks:
    """Return the instances on each GPU after some migrations."""
    after = list(masks)
    for source, target in moves:
        after[source[0]] ^= 1 << source[1]
        after[target[0]] |= 1 << target[1]
    return tuple(after)


@dataclass(frozen=True, slots=True)
class Layout:
    """A layout with its instances of each profile, and its fragmentation cost in units of the geometry."""

    mask: int
    counts: tuple[int, ...]
    cost: int


class Look(NamedTuple):
    """Everything about a GPU, but its node, that tells it from others."""

    mask: int
    pinned: int
    weights: tuple[tuple[int, int], ...] = ()  # of the migrations of its instances, if they are not all 1


@dataclass(frozen=True)
class FleetMasks:
    """A fleet state in numbers."""

    geometry: Geometry  # the placements of each GPU
    profiles: ProfileSet  # the set of profiles that have numbers
    # instances on each GPU, and those of them that must stay
    masks: Masks
    pinned: Masks
    nodes: tuple[int, ...] = ()  # index of the node of each GPU, if whole nodes are to be empty
    weights: dict[NumberedPlace, int] = field(default_factory=dict)  # of migrations, if they are not all 1

    @classmethod
    def of(cls, state: FleetState, room: Iterable[str] = (), *, by_node: bool = False) -> FleetMasks:
        """Return a state of one kind of GPU in numbers, without idle instances.

        Variants of profiles count if there are some, or room for one is wanted. Instances of owners whose disruption
        budget is 0 are pinned.
        """
        state = state.busy()
        assert state.gpu is not None
        profiles = state.gpu.profile_set({*room, *(held.profile for held in state.instances)})
        geometry = geometry_of(state.gpu, profiles)
        held_at = _held_at(geometry, state)
        masks, pinned = [0] * state.gpus, [0] * state.gpus
        for (gpu, place), held in held_at.items():
            masks[gpu] |= 1 << place
            pinned[gpu] |= state.stays(held) << place
        names = list(dict.fromkeys(state.nodes)) if by_node else []
        uniform = all(held.weight == 1 for held in held_at.values())
        return cls(
            *(geometry, profiles, tuple(masks), tuple(pinned)),
            nodes=tuple(map(names.index, state.nodes)) if by_node else (),
            weights={} if uniform else {place: held.weight for place, held in held_at.items()},
        )

    @property
    def layouts(self) -> tuple[Layout, ...]:
        """All layouts of a GPU."""
        return layouts_of(self.geometry.gpu, self.profiles)

    @cached_property
    def groups(self) -> dict[Look, list[int]]:
        """The GPUs that are alike, whatever their nodes."""
        weights: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for (gpu, place), weight in sorted(self.weights.items()):
            weights[gpu].append((place, weight))
        own = (tuple(weights[gpu]) for gpu in range(len(self.masks)))
        return alike(map(Look, self.masks, self.pinned, own))

    def weight(self, moves: Iterable[Relocation]) -> int:
        """Return the weight of migrations, which is their number unless some count more."""
        return moved_weight(self.weights, moves)

    def used(self, masks: Masks) -> int:
        """Return the number of GPUs with instances, or of nodes if these are told apart."""
        used = [gpu for gpu, mask in enumerate(masks) if mask]
        return len({self.nodes[gpu] for gpu in used}) if self.nodes else len(used)

    @cached_property
    def totals(self) -> tuple[int, ...]:
        """Instances of each profile."""
        return tuple(map(sum, zip(*(_counts(self.geometry, mask) for mask in self.masks), strict=True)))

    def cost(self, masks: Masks) -> int:
        """Return the fragmentation cost of all GPUs together."""
        return sum(self.geometry.usage(mask).cost for mask in masks)

    def mean(self, cost: float) -> float:
        """Return a cost of all GPUs together as the mean fragmentation of a GPU."""
        return cost / self.geometry.unit / len(self.masks)

    def migrations(self, state: FleetState, moves: Iterable[Relocation]) -> tuple[Migration, ...]:
        """Return moves as migrations of the state that this stands for."""
        placements = self.geometry.placements
        held_at = _held_at(self.geometry, state)
        found = []
        for source, target in moves:
            held_at[target] = held = held_at.pop(source)
            start, to_start = placements[source[1]].start, placements[target[1]].start
            found.append(Migration(source[0], held.profile, start, target[0], to_start, held.name, held.owner))
        return tuple(found)


def moved_weight(weights: Mapping[Any, int], moves: Iterable[tuple[Any, Any]]) -> int:
    """Return the weight of migrations from place to place, by that of what was at each place; 1 where none is told."""
    there, total = dict(weights), 0
    for source, target in moves:
        there[target] = own = there.pop(source, 1)
        total += own
    return total


def _held_at(geometry: Geometry, state: FleetState) -> dict[NumberedPlace, HeldInstance]:
    return {(held.gpu, geometry.index(held.profile, held.start)): held for held in state.instances}


def _counts(geometry: Geometry, mask: int) -> tuple[int, ...]:
    placed = [geometry.profile_of[place] for place in members(mask)]
    return tuple(map(placed.count, range(len(geometry.profiles))))


@cache
def layouts_of(gpu: GpuModel, profiles: ProfileSet) -> tuple[Layout, ...]:
    """Return all layouts of a kind of GPU."""
    geometry = geometry_of(gpu, profiles)
    found = []
    for state in gpu.placed_states(profiles):
        mask = geometry.mask(geometry.index(placement.profile.name, placement.start) for placement in state)
        found.append(Layout(mask, _counts(geometry, mask), geometry.usage(mask).cost))
    return tuple(found)


def least_costs(gpu: GpuModel, profiles: ProfileSet, stay: int) -> dict[tuple[int, ...], int]:
    """Return the least cost of a GPU with some that stay, by the numbers of instances of each profile on it."""
    costs: dict[tuple[int, ...], int] = {}
    for layout in layouts_of(gpu, profiles):
        if layout.mask & stay == stay:
            costs[layout.counts] = min(layout.cost, costs.get(layout.counts, layout.cost))
    return costs


@dataclass(frozen=True)
class DefragmentationGoal:
    """Conditions on the instances at the end."""

    geometry: Geometry  # the placements of each GPU
    # the profiles for which there has to be room, and for how many instances of each
    profiles: tuple[int | None, ...] = ()  # None where the kind of GPU has no such profile
    wanted: tuple[int, ...] = ()
    # Most fragmentation cost of all GPUs together. Without it and without wanted room the goal is the least cost.
    most_cost: int | None = None
    free: bool = False  # true if the cost is the number of GPUs or nodes that are used
    _rooms: dict[int, tuple[tuple[int, ...], ...]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def least(self) -> bool:
        """True if the goal is the least cost, whatever that is."""
        return not self.wanted and self.most_cost is None

    def cost(self, fleet: FleetMasks, masks: Masks) -> int:
        """Return the cost of all GPUs together."""
        return fleet.used(masks) if self.free else fleet.cost(masks)

    def rank(self, cost: int, weight: int) -> tuple[int, int]:
        """Return the order of plans that reach the goal: cost counts only if the goal is the least."""
        return cost if self.least else 0, weight

    def holds(self, masks: Masks, cost: int) -> bool:
        """Return True if these instances with this cost satisfy the conditions."""
        return (self.most_cost is None or cost <= self.most_cost) and self.places(masks) is not None

    def rooms(self, mask: int) -> tuple[tuple[int, ...], ...]:
        """Return the maximal numbers of wanted instances for which there is room at once on a GPU."""
        found = self._rooms.get(mask)
        if found is None:
            every = {self._counted(places) for places in self._packings(mask, self.wanted)}
            found = self._rooms[mask] = tuple(
                room
                for room in sorted(every, reverse=True)
                if not any(other != room and all(map(int.__le__, room, other)) for other in every)
            )
        return found

    def places(self, masks: Sequence[int]) -> list[tuple[int, str, int]] | None:
        """Return places of the wanted instances, where all fit at once; None if they do not."""
        return room_places([self] * len(masks), masks)

    def packing(self, mask: int, take: tuple[int, ...]) -> tuple[int, ...]:
        """Return placements beside a mask for as many of the wanted instances as there is room for."""
        return next(places for places in self._packings(mask, take) if self._counted(places) == take)

    def _counted(self, places: tuple[int, ...]) -> tuple[int, ...]:
        chosen: list[int | None] = [self.geometry.profile_of[place] for place in places]
        return tuple(map(chosen.count, self.profiles))

    def _packings(self, mask: int, most: tuple[int, ...], least: int = 0) -> Iterator[tuple[int, ...]]:
        """Yield the sets of placements that fit beside a mask, with no more of each wanted profile than ``most``."""
        yield ()
        for number, profile in enumerate(self.profiles):
            if profile is None or not most[number]:
                continue
            rest = (*most[:number], most[number] - 1, *most[number + 1 :])
            for place in self.geometry.placements_of[profile]:
                if place >= least and not self.geometry.conflicts[place] & mask:
                    for more in self._packings(mask | 1 << place, rest, place + 1):
                        yield (place, *more)


def room_places(goals: Sequence[DefragmentationGoal], masks: Sequence[int]) -> list[tuple[int, str, int]] | None:
    """Return GPUs, profiles and starts of the wanted instances, where all fit at once; None if they do not.

    ``goals`` has one for each GPU; they differ in what its kind can have. A dynamic program over the GPUs: its states
    are the instances that are still wanted, each with one way of rooms that leads to it.
    """
    wanted = goals[0].wanted
    reached: dict[tuple[int, ...], tuple[tuple[int, tuple[int, ...]], ...]] = {wanted: ()}
    nothing = (0,) * len(wanted)
    for gpu, (goal, mask) in enumerate(zip(goals, masks, strict=True)):
        if nothing in reached:
            break
        for left, taken in list(reached.items()):
            for room in filter(any, goal.rooms(mask)):
                give = tuple(map(min, left, room))
                reached.setdefault(tuple(map(int.__sub__, left, give)), (*taken, (gpu, give)))
    if nothing not in reached:
        return None
    chosen = ((gpu, place) for gpu, give in reached[nothing] for place in goals[gpu].packing(masks[gpu], give))
    there = ((gpu, goals[gpu].geometry.placements[place]) for gpu, place in chosen)
    return [(gpu, placement.profile.name, placement.start) for gpu, placement in there]
