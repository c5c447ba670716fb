"""What GPUs could look like after a defragmentation: the columns of the integer program."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache

from mig_opt.defragmentation.fleet import Fleet
from mig_opt.defragmentation.goals import Goal
from mig_opt.defragmentation.ordering import Move
from mig_opt.gpu.geometry import Geometry, members
from mig_opt.models.fleet.defragmentation import Column

Paths = Mapping[int, int | None]
"""What a GPU can look like, nearest first, each with what it looks like one migration earlier."""


def columns_between(fleet: Fleet, goal: Goal) -> list[Column]:
    """Return the columns where instances may move between GPUs, without those that another one makes useless.

    Of columns with the same instances and the same room only those stay for which no other has both less fragmentation
    and fewer migrations.
    """
    geometry, possible = fleet.geometry, fleet.possible()
    weight = sum(fleet.totals) + 1
    columns = []
    for group, (mask, pinned) in enumerate(fleet.groups):
        alike: dict[object, list[tuple[tuple[int, int], Column]]] = defaultdict(list)
        for layout in possible:
            if layout.mask & pinned != pinned:
                continue
            arriving, leaving = layout.mask & ~mask, mask & ~layout.mask
            moves = arriving.bit_count()
            blocked = sum(1 for place in members(arriving) if geometry.conflicts[place] & leaving)
            for room in goal.rooms(layout.mask) if goal.wanted else ((),):
                column = Column(group, layout.mask, layout.counts, moves, blocked, layout.cost, room)
                alike[layout.counts, room].append(((moves * weight + blocked, layout.cost), column))
        for found in alike.values():
            columns += _best(found, by_cost=not goal.wanted)
    return columns


def _best(found: list[tuple[tuple[int, int], Column]], *, by_cost: bool) -> list[Column]:
    best: list[Column] = []
    for _, column in sorted(found, key=lambda entry: entry[0]):
        if not best or (by_cost and column.cost < best[-1].cost):
            best.append(column)
    return best


def columns_within(fleet: Fleet, goal: Goal) -> list[Column]:
    """Return the columns where instances stay on their GPUs; their migrations are exact, detours included."""
    costs = {layout.mask: layout for layout in fleet.layouts}
    columns = []
    for group, (mask, pinned) in enumerate(fleet.groups):
        paths = paths_within(fleet.geometry, mask, pinned)
        distance: dict[int, int] = {}
        found = []
        for reached, before in paths.items():
            distance[reached] = moves = 0 if before is None else distance[before] + 1
            layout = costs[reached]
            for room in goal.rooms(reached) if goal.wanted else ((),):
                column = Column(group, reached, layout.counts, moves, 0, layout.cost, room)
                found.append(((moves, layout.cost), column))
        if goal.wanted:
            alike: dict[object, list[tuple[tuple[int, int], Column]]] = defaultdict(list)
            for key, column in found:
                alike[column.room].append((key, column))
            for same in alike.values():
                columns += _best(same, by_cost=False)
        else:
            columns += _best(found, by_cost=True)
    return columns


@lru_cache(maxsize=4096)
def paths_within(geometry: Geometry, mask: int, pinned: int) -> Paths:
    """Return what one GPU can be made to look like by migrations on it, each over a place that is free."""
    paths: dict[int, int | None] = {mask: None}
    frontier = [mask]
    while frontier:
        following = []
        for reached in frontier:
            for place, target in steps_within(geometry, reached, pinned):
                new = reached ^ 1 << place | 1 << target
                if new not in paths:
                    paths[new] = reached
                    following.append(new)
        frontier = following
    return paths


def steps_within(geometry: Geometry, mask: int, pinned: int) -> list[tuple[int, int]]:
    """Return the migrations on one GPU that can be done next, as placements before and after."""
    available = geometry.occupancy(mask).available
    return [(place, target) for place in members(mask & ~pinned) for target in available[geometry.profile_of[place]]]


def moves_within(geometry: Geometry, gpu: int, mask: int, pinned: int, target: int) -> list[Move]:
    """Return the fewest migrations on one GPU that make it look like ``target``."""
    paths = paths_within(geometry, mask, pinned)
    moves: list[Move] = []
    reached, before = target, paths[target]
    while before is not None:
        (source,), (place,) = members(before & ~reached), members(reached & ~before)
        moves.append(Move((gpu, source), (gpu, place)))
        reached, before = before, paths[before]
    return moves[::-1]
