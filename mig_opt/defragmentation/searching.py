"""Looks at everything that migrations can make of a fleet that is small or nearly full, by their number."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from mig_opt.control import Limits
from mig_opt.defragmentation.fleet import Fleet
from mig_opt.defragmentation.goals import Goal
from mig_opt.defragmentation.ordering import Move
from mig_opt.gpu.geometry import members

FIRST_LOOK, LAST_RESORT = 300_000, 6_000_000
"""Work that a search may take: migrations that are tried, times the GPUs of the fleet. A million takes some seconds."""

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


def searched(
    fleet: Fleet, goal: Goal, limits: Limits, *, enough: int, most_moves: int | None, most_work: int
) -> Searched:
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
    most_work : int
        When to give up.
    """
    return _Search(fleet, goal, enough).run(limits, most_moves, most_work)


class _Search:
    """What has been reached so far; GPUs with the same pinned instances are as good as each other."""

    def __init__(self, fleet: Fleet, goal: Goal, enough: int) -> None:
        self._fleet = fleet
        self._goal = goal
        self._enough = enough
        alike: dict[int, list[int]] = defaultdict(list)
        for gpu, pinned in enumerate(fleet.pinned):
            alike[pinned].append(gpu)
        self._alike = tuple(alike.values())
        self._came_from: dict[Masks, tuple[Masks, Move] | None] = {fleet.masks: None}
        self._known = {self._key(fleet.masks)}
        self._best = fleet.masks if goal.least else None
        self._cost = fleet.cost(fleet.masks)
        self._depth = 0
        self._work = 0

    def run(self, limits: Limits, most_moves: int | None, most_work: int) -> Searched:
        """Look at states until it is clear which one is the best, or it takes too long."""
        frontier = [self._fleet.masks]
        while frontier:
            if any(map(self._ends, frontier)) or self._depth == most_moves:
                break
            following: list[Masks] = []
            for masks in frontier:
                if self._work > most_work or limits.expired:
                    return self._ended(whole=False)
                following += self._new(masks)
            frontier = following
            self._depth += 1
        return self._ended(whole=True)

    def _ends(self, masks: Masks) -> bool:
        """Keep a state if it is the best so far; return whether there is nothing better."""
        goal, cost = self._goal, self._fleet.cost(masks)
        if not goal.least:
            if goal.places(masks) is None or (goal.most_cost is not None and cost > goal.most_cost):
                return False
            self._best, self._cost = masks, cost
            return True
        if cost < self._cost:
            self._best, self._cost = masks, cost
        return self._cost <= self._enough

    def _new(self, masks: Masks) -> Iterator[Masks]:
        """Yield the states that a migration leads to, those that are new."""
        for move in _steps(self._fleet, masks):
            self._work += len(masks)
            after = list(masks)
            after[move.source[0]] ^= 1 << move.source[1]
            after[move.target[0]] |= 1 << move.target[1]
            reached = tuple(after)
            key = self._key(reached)
            if key not in self._known:
                self._known.add(key)
                self._came_from[reached] = (masks, move)
                yield reached

    def _key(self, masks: Masks) -> tuple[Masks, ...]:
        return tuple(tuple(sorted(masks[gpu] for gpu in gpus)) for gpus in self._alike)

    def _ended(self, *, whole: bool) -> Searched:
        moves: list[Move] = []
        step = None if self._best is None else self._came_from[self._best]
        while step is not None:
            moves.append(step[1])
            step = self._came_from[step[0]]
        return Searched(None if self._best is None else moves[::-1], self._cost, whole, self._depth)


def _steps(fleet: Fleet, masks: Masks) -> Iterator[Move]:
    """Yield the migrations that can be done next; of GPUs that look alike one stands for all."""
    geometry = fleet.geometry
    alike: dict[tuple[int, int], list[int]] = defaultdict(list)
    for gpu, look in enumerate(zip(masks, fleet.pinned, strict=True)):
        alike[look].append(gpu)
    for (mask, pinned), gpus in alike.items():
        # From the first of them to the first of the others, to itself, and to another one that looks alike.
        targets = {others[0] for others in alike.values()} | set(gpus[:2])
        for place in members(mask & ~pinned):
            profile = geometry.profile_of[place]
            for other in targets:
                for target in geometry.occupancy(masks[other]).available[profile]:
                    yield Move((gpus[0], place), (other, target))
