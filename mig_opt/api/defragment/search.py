"""Breadth-first search over the states of a small or nearly full fleet: exact when it ends."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from mig_opt.api.defragment.problem import DefragmentationGoal, FleetMasks, Masks, Relocation, alike, relocated
from mig_opt.gpu.geometry import members
from mig_opt.method.control import Limits

FIRST_SEARCH, LAST_SEARCH = 300_000, 6_000_000
"""Most work of a search: migrations that are tried, times the GPUs of the fleet. A million takes some seconds."""


class BreadthFirstSearch:
    """Search for a plan of fewest migrations, level by level; GPUs with the same pinned instances are interchangeable.

    ``least_cost`` is a lower bound for the cost: a state with it needs no better one.
    """

    def __init__(self, fleet: FleetMasks, goal: DefragmentationGoal, least_cost: int) -> None:
        self._fleet, self._goal, self._least_cost = fleet, goal, least_cost
        # by GPU what it keeps and its node, where nodes are told apart
        self._kinds = list(zip(fleet.pinned, fleet.nodes or (0,) * len(fleet.masks), strict=True))
        self._interchangeable = tuple(alike(self._kinds).values())
        self._known = {self._key(fleet.masks)}
        self.moves: list[Relocation] | None = [] if goal.least else None  # the best plan; None without any
        self.cost = goal.cost(fleet, fleet.masks)  # of the best plan, at its end
        self.depth = 0  # number of migrations of which all states that they lead to were visited

    def run(self, limits: Limits, most_moves: int | None, most_work: int) -> bool:
        """Search until the limits of time, migrations or work are reached; return True if no better plan exists."""
        frontier: dict[Masks, list[Relocation]] = {self._fleet.masks: []}
        work = 0
        while frontier and not any(itertools.starmap(self._settles, frontier.items())) and self.depth != most_moves:
            following = dict[Masks, list[Relocation]]()
            for before, move in ((masks, move) for masks in frontier for move in self._moves(masks)):
                work += len(before)
                reached = relocated(before, [move])
                if (key := self._key(reached)) not in self._known:
                    self._known.add(key)
                    following[reached] = [*frontier[before], move]
                    if work > most_work or limits.expired:
                        return False
            frontier = following
            self.depth += 1
        return True

    def _settles(self, masks: Masks, moves: list[Relocation]) -> bool:
        """Keep the moves to a state if it is the best so far; return whether none can be better."""
        cost = self._goal.cost(self._fleet, masks)
        if self._goal.least:
            if cost < self.cost:
                self.moves, self.cost = moves, cost
            return self.cost <= self._least_cost
        found = self._goal.holds(masks, cost)
        if found:
            self.moves, self.cost = moves, cost
        return found

    def _moves(self, masks: Masks) -> Iterator[Relocation]:
        """Yield the possible migrations; of GPUs that are alike one stands for all."""
        geometry = self._fleet.geometry
        groups = alike(zip(masks, self._kinds, strict=True))
        for (mask, (pinned, _)), gpus in groups.items():
            # From the first of them to the first of the others, to itself, and to another one that is alike.
            targets = {others[0] for others in groups.values()} | set(gpus[:2])
            for place in members(mask & ~pinned):
                profile = geometry.profile_of[place]
                for other in targets:
                    for target in geometry.usage(masks[other]).available[profile]:
                        yield Relocation((gpus[0], place), (other, target))

    def _key(self, masks: Masks) -> tuple[Masks, ...]:
        return tuple(tuple(sorted(masks[gpu] for gpu in gpus)) for gpus in self._interchangeable)
