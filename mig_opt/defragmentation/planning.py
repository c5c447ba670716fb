"""Finds the migrations, and what is proven about them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from mig_opt.control import Limits
from mig_opt.defragmentation.columns import columns_between, columns_within, moves_within
from mig_opt.defragmentation.fleet import Fleet
from mig_opt.defragmentation.goals import Goal
from mig_opt.defragmentation.greedy import greedy_moves
from mig_opt.defragmentation.ordering import Move, ordered
from mig_opt.defragmentation.searching import FIRST_LOOK, LAST_RESORT, searched
from mig_opt.models.fleet.defragmentation import Choice, Column, Task, choose
from mig_opt.result import Status

_MOST_RETRIES = 12
"""Other choices that are asked for if there is no order for the first one without detours."""


@dataclass
class Found:
    """The best plan so far and what is known about all plans.

    Attributes
    ----------
    moves : list of Move or None
        The plan.
    masks : tuple of int
        What is on each GPU in the end.
    cost : int
        Its fragmentation cost.
    least_cost : int
        No allowed plan ends with less.
    infeasible : str
        Why there is no plan, if that is proven.
    """

    moves: list[Move] | None
    masks: tuple[int, ...]
    cost: int
    least_cost: int
    infeasible: str = ""
    _bound: int = 0
    _bounded_cost: int | None = None

    @property
    def lower_bound(self) -> int:
        """No allowed plan that ends with as little as this one, or with what is wanted, has fewer migrations."""
        return self._bound if self._bounded_cost is None or self.cost <= self._bounded_cost else 0

    def bound(self, moves: int, cost: int | None) -> None:
        """Note that no allowed plan has fewer migrations, of those that cost no more if a cost is given."""
        self._bound, self._bounded_cost = max(moves, 0), cost

    def offer(self, moves: list[Move], masks: list[int], cost: int, goal: Goal) -> None:
        """Keep a plan if it is the best: less fragmentation counts first if that is the goal, then migrations."""
        new, old = (cost if goal.least else 0, len(moves)), (self.cost if goal.least else 0, len(self.moves or ()))
        if self.moves is None or new < old:
            self.moves, self.masks, self.cost = moves, tuple(masks), cost


class Planner:
    """Looks for the best plan.

    Parameters
    ----------
    fleet : Fleet
        What there is.
    goal : Goal
        What is wanted.
    within : bool
        Whether instances stay on their GPUs.
    most_moves : int, optional
        How many migrations there may be.
    limits : Limits
        Time and seed.

    Attributes
    ----------
    fleet, goal
        As given.
    found : Found
        What is known, also if the run ends early.
    """

    def __init__(self, fleet: Fleet, goal: Goal, *, within: bool, most_moves: int | None, limits: Limits) -> None:
        self.fleet = fleet
        self.goal = goal
        self._most_moves = most_moves
        self._limits = limits
        self._within = within or len(fleet.masks) == 1
        cost = fleet.cost(fleet.masks)
        self.found = Found(None, fleet.masks, cost, sum(self._least_layout(pinned) for pinned in fleet.pinned))
        if self._reaches(fleet.masks):
            self.found.moves = []

    def run(self) -> None:
        """Look for the best plan."""
        if not self.goal.least and self.found.moves is not None:
            return
        columns = (columns_within if self._within else columns_between)(self.fleet, self.goal)
        choice = self._chosen(columns)
        if choice is None:
            return
        if self._within:
            self._offer(self._moves_within(self._targets(choice)))
        else:
            self._order(columns, choice)
        self._bound_again(columns)

    def _least_layout(self, pinned: int) -> int:
        if not self.goal.least:
            return 0
        return min(layout.cost for layout in self.fleet.layouts if layout.mask & pinned == pinned)

    def _reaches(self, masks: tuple[int, ...] | list[int]) -> bool:
        goal = self.goal
        fits = goal.most_cost is None or self.fleet.cost(masks) <= goal.most_cost
        return fits and goal.places(masks) is not None

    # What it looks like at the end

    def _task(self, most_cost: int | None) -> Task:
        fleet = self.fleet
        sizes = tuple(len(gpus) for gpus in fleet.groups.values())
        totals = () if self._within else fleet.totals
        return Task(sizes, totals, self.goal.wanted, most_cost, self._most_moves)

    def _chosen(self, columns: list[Column]) -> Choice | None:
        """Return the choice of least fragmentation, if that is wanted, and of fewest migrations for that."""
        if len(self.fleet.masks) == 1:
            return self._only(columns)
        most_cost = self.goal.most_cost
        if self.goal.least:
            least = choose(columns, self._task(None), self._limits, "cost")
            if least.bound is not None:
                self.found.least_cost = max(self.found.least_cost, least.bound)
            if not least.counts:
                return None
            most_cost = least.cost
        choice = choose(columns, self._task(most_cost), self._limits, "moves")
        self.found.bound(choice.bound or 0, most_cost if self.goal.least else None)
        if choice.status is Status.INFEASIBLE:
            self.found.infeasible = self._why_not()
        return choice if choice.counts else None

    def _only(self, columns: list[Column]) -> Choice | None:
        """Return the best column of a single GPU: there is nothing to solve."""
        goal, most = self.goal, self._most_moves
        allowed = [
            column
            for column in columns
            if (most is None or column.moves <= most)
            and (goal.most_cost is None or column.cost <= goal.most_cost)
            and all(map(int.__ge__, column.room, goal.wanted))
        ]
        if not allowed:
            self.found.infeasible = self._why_not()
            return None
        best = min(allowed, key=lambda column: (column.cost if goal.least else 0, column.moves))
        if goal.least:
            self.found.least_cost = best.cost
        self.found.bound(best.moves, best.cost if goal.least else None)
        return Choice(Status.OPTIMAL, {best: 1}, best.moves)

    def _why_not(self) -> str:
        where = "within their GPUs" if self._within else "on these GPUs"
        most = self._most_moves
        how = "" if most is None else f" with at most {most} migration{'s' if most != 1 else ''}"
        what = "has that room" if self.goal.wanted else "has as little fragmentation"
        return f"no arrangement of these instances {where}{how} {what}"

    def _targets(self, choice: Choice) -> list[int]:
        """Return what each GPU looks like at the end."""
        taken: dict[int, list[int]] = {}
        for column, count in choice.counts.items():
            taken.setdefault(column.group, []).extend([column.target] * count)
        targets = list(self.fleet.masks)
        for group, gpus in enumerate(self.fleet.groups.values()):
            for gpu, target in zip(gpus, taken[group], strict=True):
                targets[gpu] = target
        return targets

    # How to get there

    def _moves_within(self, targets: list[int]) -> list[Move]:
        fleet = self.fleet
        looks = zip(fleet.masks, fleet.pinned, targets, strict=True)
        return [
            move
            for gpu, (mask, pinned, target) in enumerate(looks)
            for move in moves_within(fleet.geometry, gpu, mask, pinned, target)
        ]

    def _offer(self, moves: list[Move] | None) -> bool:
        """Keep a plan if it does what it should; return whether there is nothing better."""
        if moves is None or (self._most_moves is not None and len(moves) > self._most_moves):
            return False
        masks = list(self.fleet.masks)
        for move in moves:
            masks[move.source[0]] ^= 1 << move.source[1]
            masks[move.target[0]] |= 1 << move.target[1]
        if not self._reaches(masks):
            return False
        found = self.found
        found.offer(moves, masks, self.fleet.cost(masks), self.goal)
        return self._settled

    @property
    def _settled(self) -> bool:
        found = self.found
        done = not self.goal.least or found.cost <= found.least_cost
        return found.moves is not None and done and len(found.moves) <= found.lower_bound

    def _order(self, columns: list[Column], choice: Choice) -> None:
        """Find an order for a choice or for one that is as good; else look for something else that can be done."""
        geometry, masks = self.fleet.geometry, self.fleet.masks
        for other in self._alternatives(columns, choice):
            targets = self._targets(other)
            if self._offer(ordered(geometry, masks, targets)):
                return
            self._offer(ordered(geometry, masks, targets, detours=True))
            if other is choice and self._search(FIRST_LOOK):
                return
        if not self._search(LAST_RESORT):
            self._stay_within()
            if not any(self.fleet.pinned):
                # Proven or not, a plan is never worse than the rules of the paper.
                self._offer(greedy_moves(self.fleet))

    def _alternatives(self, columns: list[Column], choice: Choice) -> Iterator[Choice]:
        """Yield a choice and others with as few migrations that differ in what is blocked."""
        yield choice
        most_cost = choice.cost if self.goal.least else self.goal.most_cost
        task = dataclasses.replace(self._task(most_cost), most_moves=choice.moves)
        refused: list[dict[Column, int]] = []
        while len(refused) < _MOST_RETRIES and not self._limits.expired:
            refused.append({column: count for column, count in choice.counts.items() if column.blocked})
            if not refused[-1]:
                return
            choice = choose(columns, task, self._limits, "moves", refused)
            if not choice.counts:
                return
            yield choice

    def _search(self, most_work: int) -> bool:
        """Look at what can be reached, state by state; return whether that settles the matter."""
        goal, found = self.goal, self.found
        end = searched(
            self.fleet,
            goal,
            self._limits,
            enough=found.least_cost,
            most_moves=self._most_moves,
            most_work=most_work,
        )
        if end.moves is not None:
            self._offer(end.moves)
        if end.whole and end.moves is not None:
            found.bound(len(end.moves), end.cost if goal.least else None)
            found.least_cost = end.cost if goal.least else found.least_cost
        elif end.whole:
            found.infeasible = f"{self._why_not()} and can be reached by migrations"
        elif not goal.least:
            found.bound(max(found.lower_bound, end.depth + 1), None)
        return end.whole

    def _stay_within(self) -> None:
        """Offer what can be reached in any case."""
        inner = Planner(self.fleet, self.goal, within=True, most_moves=self._most_moves, limits=self._limits)
        inner.run()
        self._offer(inner.found.moves)

    def _bound_again(self, columns: list[Column]) -> None:
        """Find out how few migrations might do for the fragmentation that is reached, if that is not the least."""
        found = self.found
        if self.goal.least and found.moves is not None and found.cost > found.least_cost:
            choice = choose(columns, self._task(found.cost), self._limits, "moves")
            found.bound(choice.bound or 0, found.cost)
