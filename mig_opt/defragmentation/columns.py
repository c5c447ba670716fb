"""Columns of the integer program: the layouts that each group of GPUs could have at the end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache

from mig_opt.defragmentation.problem import DefragmentationGoal, FleetMasks, Layout, Relocation
from mig_opt.gpu.geometry import Geometry, members
from mig_opt.models.fleet.defragmentation import TargetColumn

_Target = tuple[int, Layout, int, int]
"""Group, layout, migrations that end on the GPU, and those of them whose place is not free at the start."""


def target_columns(fleet: FleetMasks, goal: DefragmentationGoal, *, within: bool) -> list[TargetColumn]:
    """Return the columns without those that another one dominates.

    Of the columns of a group with the same instances and the same room, one dominates another with no less
    fragmentation and no fewer migrations (of equally many, no fewer blocked ones).

    Parameters
    ----------
    fleet : FleetMasks
        The instances before.
    goal : DefragmentationGoal
        The conditions on the instances at the end.
    within : bool
        True if instances stay on their GPUs; then the migrations of a column are exact, detours included. Else they
        are a lower bound: an instance that comes to a GPU takes one.
    """
    similar: dict[object, list[TargetColumn]] = defaultdict(list)
    for group, layout, moves, blocked in (_targets_within if within else _targets_between)(fleet):
        for room in goal.rooms(layout.mask) if goal.wanted else ((),):
            column = TargetColumn(group, layout.mask, layout.counts, moves, blocked, layout.cost, room)
            similar[group, layout.counts, room].append(column)
    columns: list[TargetColumn] = []
    for same in similar.values():
        best: list[TargetColumn] = []
        for column in sorted(same, key=lambda column: (column.moves, column.blocked, column.cost)):
            if not best or (not goal.wanted and column.cost < best[-1].cost):
                best.append(column)
        columns += best
    return columns


def _targets_between(fleet: FleetMasks) -> Iterator[_Target]:
    geometry, totals = fleet.geometry, fleet.totals
    possible = [layout for layout in fleet.layouts if all(map(int.__le__, layout.counts, totals))]
    for group, (mask, pinned) in enumerate(fleet.groups):
        for layout in possible:
            if layout.mask & pinned == pinned:
                arriving, leaving = layout.mask & ~mask, mask & ~layout.mask
                blocked = sum(1 for place in members(arriving) if geometry.conflicts[place] & leaving)
                yield group, layout, arriving.bit_count(), blocked


def _targets_within(fleet: FleetMasks) -> Iterator[_Target]:
    layouts = {layout.mask: layout for layout in fleet.layouts}
    for group, (mask, pinned) in enumerate(fleet.groups):
        distance: dict[int, int] = {}
        for reached, before in _paths_within(fleet.geometry, mask, pinned).items():
            distance[reached] = 0 if before is None else distance[before] + 1
            yield group, layouts[reached], distance[reached], 0


@lru_cache(maxsize=4096)
def _paths_within(geometry: Geometry, mask: int, pinned: int) -> dict[int, int | None]:
    """Return the layouts that migrations on one GPU lead to, nearest first, each with the one before it.

    A breadth-first search; each migration ends on a place that is free beside the old instance.
    """
    paths: dict[int, int | None] = {mask: None}
    queue = [mask]
    for reached in queue:
        available = geometry.usage(reached).available
        for place in members(reached & ~pinned):
            for target in available[geometry.profile_of[place]]:
                new = reached ^ 1 << place | 1 << target
                if new not in paths:
                    paths[new] = reached
                    queue.append(new)
    return paths


def moves_within(fleet: FleetMasks, targets: list[int]) -> list[Relocation]:
    """Return the fewest migrations on each GPU that lead to its target."""
    moves: list[Relocation] = []
    for gpu, (mask, pinned, target) in enumerate(zip(fleet.masks, fleet.pinned, targets, strict=True)):
        paths = _paths_within(fleet.geometry, mask, pinned)
        own: list[Relocation] = []
        reached, before = target, paths[target]
        while before is not None:
            (source,), (place,) = members(before & ~reached), members(reached & ~before)
            own.append(Relocation((gpu, source), (gpu, place)))
            reached, before = before, paths[before]
        moves += own[::-1]
    return moves
