"""Looks at everything that migrations can make of a fleet that is small or nearly full, by their number."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from mig_opt.control import Limits
from mig_opt.defragmenting.fleet import Fleet
from mig_opt.defragmenting.goals import Goal
from mig_opt.defragmenting.ordering import Move
from mig_opt.online.geometry import members

_MOST_WORK = 500_000
"""Migrations that are tried, times the GPUs that a state has: about a second."""

Masks = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search ended with.

    Attributes
    ----------
    moves : list of Move or None
        Of the best plan; None if no state that was looked at is one that was looked for.
    cost : int
        Its fragmentation cost at the end.
    whole : bool
        Whether nothing better can be reached, whatever was not looked at.
    depth : int
        All states that so many migrations lead to were looked at.
    """

    moves: list[Move] | None
    cost: int
    whole: bool
    depth: int


def searched(fleet: Fleet, goal: Goal, limits: Limits, *, enough: int, most_moves: int | None) -> Searched:
    """Look for a plan of fewest migrations, state by state.

    Parameters
    ----------
    fleet : Fleet
        What there is.
    goal : Goal
        What is wanted.
    limits : Limits
        Of time.
    enough : int
        Nothing has less fragmentation cost.
    most_moves : int, optional
        How many migrations there may be.
    """
    alike: dict[int, list[int]] = defaultdict(list)
    for gpu, pinned in enumerate(fleet.pinned):
        alike[pinned].append(gpu)

    def key(masks: Masks) -> tuple[Masks, ...]:
        return tuple(tuple(sorted(masks[gpu] for gpu in gpus)) for gpus in alike.values())

    came_from: dict[Masks, tuple[Masks, Move] | None] = {fleet.masks: None}
    known = {key(fleet.masks)}
    frontier, depth, work = [fleet.masks], 0, 0
    best, best_cost = (fleet.masks, fleet.cost(fleet.masks)) if goal.least else (None, 0)

    def ended(*, whole: bool) -> Searched:
        moves: list[Move] = []
        step = None if best is None else came_from[best]
        while step is not None:
            moves.append(step[1])
            step = came_from[step[0]]
        return Searched(None if best is None else moves[::-1], best_cost, whole, depth)

    while frontier:
        for masks in frontier:
            cost = fleet.cost(masks)
            if not goal.least:
                if goal.places(masks) is not None and (goal.most_cost is None or cost <= goal.most_cost):
                    best, best_cost = masks, cost
                    return ended(whole=True)
            elif cost < best_cost:
                best, best_cost = masks, cost
                if cost <= enough:
                    return ended(whole=True)
        if depth == most_moves:
            return ended(whole=True)
        following = []
        for masks in frontier:
            if work > _MOST_WORK or limits.expired:
                return ended(whole=False)
            for move in _steps(fleet, masks):
                work += len(masks)
                after = list(masks)
                after[move.source[0]] ^= 1 << move.source[1]
                after[move.target[0]] |= 1 << move.target[1]
                reached = tuple(after)
                if key(reached) not in known:
                    known.add(key(reached))
                    came_from[reached] = (masks, move)
                    following.append(reached)
        frontier, depth = following, depth + 1
    return ended(whole=True)


def _steps(fleet: Fleet, masks: Masks) -> list[Move]:
    geometry = fleet.geometry
    return [
        Move((gpu, place), (other, target))
        for gpu, (mask, pinned) in enumerate(zip(masks, fleet.pinned, strict=True))
        for place in members(mask & ~pinned)
        for other, beside in enumerate(masks)
        for target in geometry.occupancy(beside).available[geometry.profile_of[place]]
    ]
