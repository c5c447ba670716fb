"""Search for the migrations in phases, each with its share of the proof that there are no better ones.

1. *Targets.* An integer program chooses the layout of every GPU at the end, see
   :mod:`mig_opt.models.fleet.defragmentation`. It leaves out only the order of the migrations, so its optimum is a
   lower bound for every plan: of the fragmentation, and of the migrations that it takes. On a single GPU, and
   if instances stay on their GPUs, its columns count migrations along shortest paths between layouts, so that every
   optimum is a plan.
2. *Order.* An order without detours takes just as many migrations as the program says, which proves it. If there is
   none, other targets with as few migrations are tried that differ in their blocked arrivals, and orders with detours.
3. *Search.* A breadth-first search over the states of the fleet is exact if it ends within its limits: it is tried
   briefly after the first targets, and at length in the end.
4. *Fallbacks.* Without a proof the plan is at least as good as the best one within the GPUs and, if nothing is pinned,
   that of the paper's rules; but not for free GPUs or nodes, which these do not know.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from mig_opt.api.defragment.emptied import emptying_moves, least_used, least_weight
from mig_opt.api.defragment.order import ordered
from mig_opt.api.defragment.problem import DefragmentationGoal, FleetMasks, Layout, Masks, Relocation, relocated
from mig_opt.api.defragment.references import greedy_moves
from mig_opt.api.defragment.search import FIRST_SEARCH, LAST_SEARCH, BreadthFirstSearch
from mig_opt.gpu.geometry import Geometry, members
from mig_opt.method.control import Limits
from mig_opt.method.result import Status
from mig_opt.models.fleet.defragmentation import TargetChoice, TargetColumn, TargetProblem, choose_targets
from mig_opt.texts import plural

# Share of the time in which the least number of GPUs or nodes is looked for; the rest is for the migrations.
_FIRST_SHARE = 0.3
_MOST_COLUMNS = 1000  # above which a plan is looked for first in which nothing leaves a GPU that stays in use
_MOST_SEARCHED = 12  # GPUs of a fleet up to which the states are searched in which more GPUs or nodes are free
_MOST_RETRIES = 12  # other targets that are tried if there is no order without detours for the first ones


@dataclass
class MigrationIncumbent:
    """The best plan so far and the bounds that hold for all plans."""

    moves: list[Relocation] | None  # the plan
    masks: Masks  # instances on each GPU at its end
    cost: int  # its cost: its fragmentation, or the GPUs or nodes that it uses
    weight: int  # weight of its migrations: their number unless some count more
    least_cost: int  # no allowed plan ends with less
    infeasible: str = ""  # the reason why there is no plan, if that is proven
    _bound: int = 0
    _bounded_cost: int | None = None

    @property
    def lower_bound(self) -> int:
        """Least weight of an allowed plan that ends with as little cost as this one, or reaches the goal."""
        return self._bound if self._bounded_cost is None or self.cost <= self._bounded_cost else 0

    def bound(self, weight: int, cost: int | None) -> None:
        """Note that no allowed plan has less weight, of those that cost no more if a cost is given."""
        self._bound, self._bounded_cost = max(weight, 0), cost


class Planner:
    """Search for the best plan.

    With ``within`` instances stay on their GPUs. Once the limits are done no plan is kept. ``report`` is called
    whenever more is known.
    """

    def __init__(
        self,
        fleet: FleetMasks,
        goal: DefragmentationGoal,
        *,
        within: bool,
        most_moves: int | None,
        limits: Limits,
        report: Callable[[], None] = lambda: None,
    ) -> None:
        # as given; shortest paths within GPUs count migrations, whatever their weights
        self._within = within or len(fleet.masks) == 1
        self.fleet = fleet = dataclasses.replace(fleet, weights={}) if self._within else fleet
        self.goal, self._most_moves, self._limits, self._report = goal, most_moves, limits, report
        cost, least_cost = goal.cost(fleet, fleet.masks), 0
        if goal.free:
            least_cost = max(fleet.used(fleet.pinned), least_used(fleet, most_moves))
        elif goal.least:
            layouts = fleet.layouts
            least_cost = sum(min(one.cost for one in layouts if one.mask & own == own) for own in fleet.pinned)
        # the results so far, also if the run ends early
        self.found = MigrationIncumbent(None, fleet.masks, cost, 0, least_cost)
        if goal.holds(fleet.masks, cost):
            self.found.moves = []

    def run(self) -> None:
        """Search for the best plan."""
        found = self.found
        self._report()
        if self._limits.done or (found.moves is not None and not self.goal.least):
            return
        if self.goal.free:
            self._offer(emptying_moves(self.fleet, self._most_moves))
            found.bound(least_weight(self.fleet, found.cost), found.cost)
            self._report()
            if "migrations" in self.proven or self._limits.done:
                return
        columns = target_columns(self.fleet, self.goal, within=self._within)
        if self.goal.free and len(columns) > _MOST_COLUMNS and self._offer_nearby(columns):
            return
        choice = self._choose_only(columns) if len(self.fleet.masks) == 1 else self._choose(columns)
        self._report()
        if choice is None:
            return
        if self._within:
            self._offer(moves_within(self.fleet, self._targets(choice)))
        else:
            self._order(columns, choice)
        if self.goal.least and found.moves is not None and found.cost > found.least_cost:
            # The least fragmentation was not reached: the bound for the one that was.
            found.bound(self._solve(columns, "weight", found.cost).bound or 0, found.cost)

    # Phase 1: targets

    def _solve(
        self,
        columns: list[TargetColumn],
        objective: Literal["cost", "weight"],
        most_cost: int | None,
        most_moves: int | None = None,
        without: Sequence[dict[TargetColumn, int]] = (),
        *,
        share: float = 1.0,
    ) -> TargetChoice:
        sizes = tuple(map(len, self.fleet.groups.values()))
        totals = () if self._within else self.fleet.totals
        most_moves = self._most_moves if most_moves is None else most_moves
        nodes: dict[int, Counter[int]] = defaultdict(Counter)
        for group, gpus in enumerate(self.fleet.groups.values()):
            for gpu in gpus if self.fleet.nodes else ():
                nodes[self.fleet.nodes[gpu]][group] += 1
        by_node = tuple(tuple(sorted(nodes[node].items())) for node in sorted(nodes))
        problem = TargetProblem(sizes, totals, self.goal.wanted, by_node, most_cost, most_moves)
        return choose_targets(columns, problem, self._limits, objective, without, share=share)

    def _choose(self, columns: list[TargetColumn]) -> TargetChoice | None:
        """Return the targets of least fragmentation, if that is the goal, and of fewest migrations for that."""
        most_cost, fallback = self.goal.most_cost, None
        if self.goal.free and self.found.moves is not None and self.found.cost <= self.found.least_cost:
            most_cost = self.found.cost
        elif self.goal.least:
            least = self._solve(columns, "cost", None, share=_FIRST_SHARE if self.goal.free else 1.0)
            if least.bound is not None:
                self.found.least_cost = max(self.found.least_cost, least.bound)
                self._report()
            if not least.counts:
                return None
            most_cost, fallback = least.cost, least if self.goal.free else None
        choice = self._solve(columns, "weight", most_cost)
        if choice.bound is not None:
            self.found.bound(choice.bound, most_cost if self.goal.least else None)
        if choice.status is Status.INFEASIBLE:
            self.found.infeasible = self._no_targets()
        return choice if choice.counts else fallback

    def _offer_nearby(self, columns: list[TargetColumn]) -> bool:
        """Look for a plan in which nothing leaves GPUs that stay in use; return True if nothing is better."""
        masks = [look.mask for look in self.fleet.groups]
        few = [column for column in columns if not column.target or not masks[column.group] & ~column.target]
        for more in (0, 1, 2, 4):
            cost = self.found.least_cost + more
            if self.found.moves is not None and self.found.cost <= cost:
                return "migrations" in self.proven
            choice = self._solve(few, "weight", cost, share=_FIRST_SHARE)
            if choice.counts:
                return self._offer(ordered(self.fleet.geometry, self.fleet.masks, self._targets(choice)))
        return self._limits.done

    def _choose_only(self, columns: list[TargetColumn]) -> TargetChoice | None:
        """Return the best target of a single GPU, without a solver."""
        goal, most = self.goal, self._most_moves
        allowed = [
            column
            for column in columns
            if (most is None or column.moves <= most)
            and (goal.most_cost is None or column.cost <= goal.most_cost)
            and all(map(int.__ge__, column.room, goal.wanted))
        ]
        if not allowed:
            self.found.infeasible = self._no_targets()
            return None
        best = min(allowed, key=lambda column: goal.rank(column.cost, column.moves))
        if goal.least:
            self.found.least_cost = best.cost
        self.found.bound(best.moves, best.cost if goal.least else None)
        return TargetChoice(Status.OPTIMAL, {best: 1}, best.moves)

    def _no_targets(self) -> str:
        goal, where = self.goal, "within their GPUs" if self._within else "on these GPUs"
        limit = "" if self._most_moves is None else f" with at most {plural(self._most_moves, 'migration')}"
        what = "has that room" if goal.wanted else "uses as few" if goal.free else "has as little fragmentation"
        return f"no arrangement of these instances {where}{limit} {what}"

    def _targets(self, choice: TargetChoice) -> list[int]:
        taken: dict[int, list[int]] = defaultdict(list)
        for column, count in choice.counts.items():
            taken[column.group] += [column.target] * count
        targets = list(self.fleet.masks)
        for group, gpus in enumerate(self.fleet.groups.values()):
            if choice.used:
                # The GPUs of nodes that are to be empty come first, and so do empty targets.
                taken[group].sort(key=bool)
            ordered = sorted(gpus, key=lambda gpu: choice.used[self.fleet.nodes[gpu]]) if choice.used else gpus
            for gpu, target in zip(ordered, taken[group], strict=True):
                targets[gpu] = target
        return targets

    # Phases 2 to 4: from targets to migrations

    def _offer(self, moves: list[Relocation] | None) -> bool:
        """Keep a plan if it reaches the goal and is the best; return True if nothing is better, or the run is over."""
        found, goal = self.found, self.goal
        if self._limits.done:
            return True
        if moves is None or (self._most_moves is not None and len(moves) > self._most_moves):
            return False
        masks, weight = relocated(self.fleet.masks, moves), self.fleet.weight(moves)
        cost = goal.cost(self.fleet, masks)
        if not goal.holds(masks, cost):
            return False
        if found.moves is None or goal.rank(cost, weight) < goal.rank(found.cost, found.weight):
            found.moves, found.masks, found.cost, found.weight = moves, masks, cost, weight
            self._report()
        return self._limits.done or "migrations" in self.proven

    @property
    def proven(self) -> tuple[str, ...]:
        """The goals in which no plan is better: ``fragmentation`` or ``free`` if asked for, then ``migrations``."""
        goal, found = self.goal, self.found
        if found.moves is None or (goal.least and found.cost > found.least_cost):
            return ()
        fewest = ("migrations",) if found.weight <= found.lower_bound else ()
        return (*(("free" if goal.free else "fragmentation",) if goal.least else ()), *fewest)

    def _order(self, columns: list[TargetColumn], choice: TargetChoice) -> None:
        """Find an order for these targets or for others that are as good, else search."""
        geometry, masks = self.fleet.geometry, self.fleet.masks
        for other in self._alternatives(columns, choice):
            targets = self._targets(other)
            if self._offer(ordered(geometry, masks, targets)):
                return
            self._offer(ordered(geometry, masks, targets, detours=True))
            if other is choice and self._search(FIRST_SEARCH):
                return
        if self._search(LAST_SEARCH) or self.goal.free:
            return
        inner = Planner(self.fleet, self.goal, within=True, most_moves=self._most_moves, limits=self._limits)
        inner.run()
        self._offer(inner.found.moves)
        if not any(self.fleet.pinned):
            self._offer(greedy_moves(self.fleet))

    def _alternatives(self, columns: list[TargetColumn], choice: TargetChoice) -> Iterator[TargetChoice]:
        """Yield targets, and others with as few migrations that differ in their blocked arrivals."""
        most_cost = choice.cost if self.goal.least else self.goal.most_cost
        most_moves = choice.moves
        refused: list[dict[TargetColumn, int]] = []
        while choice.counts:
            yield choice
            if len(refused) == _MOST_RETRIES or self._limits.expired:
                return
            refused.append({column: count for column, count in choice.counts.items() if column.blocked})
            if not refused[-1]:
                return
            choice = self._solve(columns, "weight", most_cost, most_moves, refused)

    def _search(self, most_work: int) -> bool:
        """Search state by state; return True if that settles the matter, or the run is over."""
        goal, found = self.goal, self.found
        if self.fleet.weights or (goal.free and len(self.fleet.masks) > _MOST_SEARCHED):
            return self._limits.done  # it counts migrations, and large fleets have too many states
        search = BreadthFirstSearch(self.fleet, goal, found.least_cost)
        complete = search.run(self._limits, self._most_moves, most_work)
        moves = search.moves
        self._offer(moves)
        if complete and moves is not None:
            found.bound(len(moves), search.cost if goal.least else None)
            found.least_cost = search.cost if goal.least else found.least_cost
        elif complete:
            found.infeasible = f"{self._no_targets()} and can be reached by migrations"
        elif not goal.least:
            found.bound(max(found.lower_bound, search.depth + 1), None)
        self._report()
        return complete or self._limits.done


# Columns: the layouts that each group of GPUs could have at the end.

_Target = tuple[int, Layout, int, int]
"""Group, layout, migrations that end on the GPU, and those of them whose place is not free at the start."""


def target_columns(fleet: FleetMasks, goal: DefragmentationGoal, *, within: bool) -> list[TargetColumn]:
    """Return the columns without those that another one dominates.

    Of the columns of a group with the same instances and the same room, one dominates another with no less
    fragmentation and no fewer migrations (of equally many, no fewer blocked ones). ``within`` is true if instances stay
    on their GPUs; then the migrations of a column are exact, detours included. Else they are a lower bound: an instance
    that comes to a GPU takes one.
    """
    similar: dict[object, list[TargetColumn]] = defaultdict(list)
    looks = list(fleet.groups)
    for group, layout, moves, blocked in (_targets_within if within else _targets_between)(fleet):
        cost = int(layout.mask > 0) if goal.free else layout.cost
        weight = moves
        if fleet.weights and not within:  # what leaves its place migrates once at least
            weight = sum(own for place, own in looks[group].weights if not layout.mask >> place & 1)
        for room in goal.rooms(layout.mask) if goal.wanted else ((),):
            column = TargetColumn(group, layout.mask, layout.counts, moves, blocked, cost, room, weight)
            similar[group, layout.counts, room].append(column)
    columns: list[TargetColumn] = []
    for same in similar.values():
        best: list[TargetColumn] = []
        for column in sorted(same, key=lambda column: (column.weight, column.moves, column.blocked, column.cost)):
            better = (other for other in best if other.moves <= column.moves)
            if all(not goal.wanted and column.cost < other.cost for other in better):
                best.append(column)
        columns += best
    return columns


def _targets_between(fleet: FleetMasks) -> Iterator[_Target]:
    geometry, totals = fleet.geometry, fleet.totals
    possible = [layout for layout in fleet.layouts if all(map(int.__le__, layout.counts, totals))]
    for group, (mask, pinned, *_) in enumerate(fleet.groups):
        for layout in possible:
            if layout.mask & pinned == pinned:
                arriving, leaving = layout.mask & ~mask, mask & ~layout.mask
                blocked = sum(1 for place in members(arriving) if geometry.conflicts[place] & leaving)
                yield group, layout, arriving.bit_count(), blocked


def _targets_within(fleet: FleetMasks) -> Iterator[_Target]:
    layouts = {layout.mask: layout for layout in fleet.layouts}
    for group, (mask, pinned, *_) in enumerate(fleet.groups):
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
    for gpu, target in reversed([*enumerate(targets)]):
        paths, reached = _paths_within(fleet.geometry, fleet.masks[gpu], fleet.pinned[gpu]), target
        while (before := paths[reached]) is not None:
            (source,), (place,) = members(before & ~reached), members(reached & ~before)
            moves.append(Relocation((gpu, source), (gpu, place)))
            reached = before
    return moves[::-1]
