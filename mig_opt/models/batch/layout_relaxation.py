"""Relaxation of a layout: which placements it leaves to each task, a bound with divided loads, and schedules from it.

*Divided tasks.* Linear programs give the paths of the layout the weights with which divided tasks tell most. Rounded
to whole numbers, they give a bound that needs no trust in the solver, and rule out each placement of a task that costs
too much more than its best one (fixing by reduced costs).

*Divided loads.* Close to the bound that leaves one size of instance to nearly all tasks. In a second program only the
others choose, in whole numbers. Tasks that may run in the same placements are a group, whose load is divided among
these at will. Of a hundred tasks a dozen have a choice left, so CP-SAT needs some hundredths of a second, and the bound
is mostly that of whole tasks: loads of a hundred tasks can be divided to the tick.

*To the tick* they are divided by their subset sums, instance by instance, as much as there is room for, long tasks
first, in an order that is partly random. Only groups of many tasks are divided then; the others have their places from
the program.

*Operations in order.* What the paths do not tell are waits for the driver. An order of operations
(:mod:`mig_opt.batch.loads.operation_orders`) leaves each path without an instance for some time. The best order counts
in the bound of divided tasks, and each order that may have a schedule within a limit makes a layout of its own. Where
these are too many, the block model with divided loads (:mod:`mig_opt.models.batch.divided_blocks`) finds one.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from ortools.sat.python import cp_model

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.division import Division, bits_of_division, divide
from mig_opt.batch.loads.layout_divisions import LayoutLoads
from mig_opt.batch.loads.layouts import LayoutTree
from mig_opt.batch.loads.operation_orders import OperationOrders
from mig_opt.batch.loads.subsets import NEVER, Integers
from mig_opt.method.control import Limits
from mig_opt.models.batch.divided_blocks import DividedBlocks
from mig_opt.models.solvers.backend import IntegerOutcome, Request
from mig_opt.models.solvers.cpsat import run
from mig_opt.models.solvers.longest_path import path_weights

_HIGHEST = 2**60
"""Weighted ticks of all tasks and operations, at most."""

_FINEST = 2**32
"""Sum of the weights in whole numbers, at most."""

_MEMBERS = 4
"""Tasks for each instance of a group, from which on their loads can be divided nearly to the tick."""

_TRIES, _DIVISIONS = 10, 20
"""Random orders of the tasks for each length of a schedule, until a longer one is tried; and divisions of that length,
which differ by how operations wait for each other."""

_MAX_BITS, _SECONDS_PER_BIT = 2**32, 5e-11
"""Subset sums that are known to be some or not, each for the first ones of the tasks, at most; seconds for one."""

_MAX_ORDERS = 500
"""Orders of operations at which they are not looked at one by one."""

Group = tuple[int, ...]
"""Stacks, by index."""


class _Option(NamedTuple):
    """One way to run a task."""

    ticks: int
    group: Group  # stacks among which it is divided, or its own one
    here: cp_model.IntVar  # 1 if the task runs so


class _Loads(NamedTuple):
    """Loads in a model."""

    options: list[list[_Option]]  # of each task
    parts: dict[Group, list[cp_model.IntVar]]  # of each group, the load in each of its stacks
    room: cp_model.IntVar  # in each stack of a group, beside its tasks

    def of_stacks(self, stacks: int) -> list[list[cp_model.IntVar]]:
        """Return the parts in each stack."""
        found: list[list[cp_model.IntVar]] = [[] for _ in range(stacks)]
        for group, parts in self.parts.items():
            for stack, part in zip(group, parts, strict=True):
                found[stack].append(part)
        return found


class InOrders(NamedTuple):
    """Orders of the operations of a layout."""

    lower: int  # ticks that every schedule takes
    # ticks of operations and waits on each path, for each order that a schedule within the limit may have, the best
    # ones first; None if they are too many
    ticks: list[Integers] | None


class LayoutRelaxation:
    """Relaxation of one layout.

    Parameters
    ----------
    problem : IntegerBatch
        The batch.
    tree : LayoutTree
        The layout.
    ticks : array of shape (tasks, places)
        Ticks of each task in each place of the batch; NEVER where it cannot run.
    all_used : bool
        True if schedules that use only some of the placements belong to another layout.
    """

    def __init__(
        self, problem: IntegerBatch, tree: LayoutTree, ticks: npt.NDArray[np.int32], *, all_used: bool
    ) -> None:
        paths = tree.paths()
        self._problem = problem
        self._places = [node.place for node in tree.nodes if node.kind == "stack"]
        self._all_used = all_used
        self._ticks = ticks[:, self._places].astype(np.int64)
        self._cover = np.array([[place in through for place in self._places] for _, through in paths], np.bool_)
        self._operations = np.array([own for own, _ in paths], np.int64)
        # The weights at which divided tasks tell most; with the best order they are mostly the same.
        possible = self._ticks < NEVER
        longest = int(self._ticks[possible].max(initial=1)) * len(self._ticks) + int(self._operations.max(initial=0))
        longest += sum(problem.places[at].create + problem.places[at].destroy for at in self._places)
        scale = max(1, min(_FINEST, _HIGHEST // longest))
        weights = path_weights(self._ticks, possible, self._cover, self._operations)
        # Of like paths the mean weight is as good, and orders are the fewer.
        self._like = self._like_paths()
        weights = (np.bincount(self._like, weights) / np.maximum(1, np.bincount(self._like)))[self._like]
        self._weights = np.rint(weights * scale).astype(np.int64)
        self._sum = max(1, int(self._weights.sum()))
        least = self._costs().min(axis=1)
        self._least_of_tasks = int(least.clip(max=_HIGHEST).sum())
        self._least = int(self._operations @ self._weights) + self._least_of_tasks
        self.lower = _HIGHEST if (least >= _HIGHEST).any() else -(-self._least // self._sum)

    def _costs(self) -> npt.NDArray[np.int64]:
        """Return what each task adds to the weighted sum of the paths, shape (tasks, stacks)."""
        costs = self._ticks * (self._weights @ self._cover)
        return np.where(self._ticks < NEVER, costs, _HIGHEST)

    def left(self, at_most: int) -> list[list[int]]:
        """Return for each task the indices of its stacks in schedules within some ticks; none if there are none."""
        costs = self._costs()
        spare = at_most * self._sum - self._least
        left = (costs - costs.min(axis=1, keepdims=True) <= spare) & (self._ticks <= at_most)
        return [np.nonzero(row)[0].tolist() for row in left]

    def places_left(self, at_most: int) -> list[dict[int, int]]:
        """Return for each task its places in schedules within some ticks, and its ticks there."""
        return [
            {self._places[stack]: int(self._ticks[task, stack]) for stack in stacks}
            for task, stacks in enumerate(self.left(at_most))
        ]

    def bound(self, control: Limits, at_most: int, seconds: float = math.inf) -> int:
        """Return ticks that every schedule takes, with whole tasks and divided loads; at most one more than a limit.

        It takes as many seconds, at most.
        """
        outcome, _ = self._solve(control, at_most, seconds, members=0)
        return at_most + 1 if outcome is None or outcome.infeasible else outcome.bound

    def divisions(self, control: Limits, at_most: int, seconds: float = math.inf) -> tuple[int, Iterator[list[int]]]:
        """Return ticks that every schedule takes, as :meth:`bound` does, and assignments that take hardly more, if any.

        An assignment has the place of each task. Its paths are within the limit; waits for the driver come on top.
        """
        outcome, loads = self._solve(control, at_most, seconds, members=_MEMBERS)
        if loads is None or (outcome is not None and outcome.infeasible):
            return at_most + 1, iter(())
        if outcome is None or outcome.values is None:
            return self.lower, iter(())
        division = _Division(self._cover, self._operations, loads, outcome.values)
        found = division.assignments(at_most, control)
        return outcome.bound, ([self._places[stack] for stack in stacks] for stacks in found)

    def assignment(self, at_most: int, divide: Callable[..., Division]) -> Division:
        """Return an assignment within a limit, the place of each task; or whether there is none, if that is known."""
        loads = LayoutLoads(self._ticks, self._costs(), self._cover, self._operations, self._weights)
        found = loads.assignment(at_most, at_most * self._sum - self._least, divide)
        if found.instances is None:
            return found
        return Division([self._places[stack] for stack in found.instances])

    @cached_property
    def _orders(self) -> OperationOrders | None:
        """The orders of its operations; None if they are too many, or do not tell more than the paths."""
        places = [self._problem.places[at] for at in self._places]
        create, destroy = (np.array([getattr(place, name) for place in places]) for name in ("create", "destroy"))
        conflicts = np.array([[one.conflicts(two) for one in places] for two in places])
        orders = OperationOrders(create, destroy, conflicts, self._cover, np.array(self._like))
        told = self._all_used and not self._problem.batch.parallel_operations and not orders.too_many
        return orders if told else None

    def best_order(self) -> Integers | None:
        """Return the ticks of operations and waits on each path in about the best order; None if there is none."""
        return None if self._orders is None else self._orders.least(self._weights)

    def in_orders(self, at_most: int) -> InOrders:
        """Return what operations take in each order in which the layout may have schedules within some ticks."""
        best = self.best_order()
        if best is None or self._orders is None:
            return InOrders(self.lower, None)
        lower = max(self.lower, -(-(int(best @ self._weights) + self._least_of_tasks) // self._sum))
        spare = at_most * self._sum - self._least_of_tasks
        within = self._orders.within(self._weights, spare) if lower <= at_most else []
        found = None if within is None else self._unlike(within)
        return InOrders(lower, None if found is None or len(found) > _MAX_ORDERS else found)

    def divisions_in_order(self, control: Limits, at_least: int, at_most: int, seconds: float) -> Iterator[list[int]]:
        """Yield assignments whose paths are within the limit with all waits for the driver, in an order of operations.

        That order is sought for loads that are divided at will, in some ``seconds``; of those that take least time, it
        is the one that leaves most room to the division, sought for as long again.
        """
        built = self._blocks(at_least, at_most)
        if built is None or all(len(group) == 1 for group in built[1].parts):
            return
        blocks, loads = built
        shortest = run(blocks.model, control, Request(at_least=at_least, seconds=seconds, tight=True), workers=1)
        if shortest.values is None or shortest.objective is None:
            return
        blocks.widen(shortest.objective, loads.room)
        widest = run(blocks.model, control, Request(at_least=-at_most, seconds=seconds, tight=True), workers=1)
        values = shortest.values if widest.values is None else widest.values
        operations = blocks.operations_of(values, self._cover)
        for stacks in _Division(self._cover, operations, loads, values).assignments(at_most, control):
            yield [self._places[stack] for stack in stacks]

    def _unlike(self, found: Iterable[Integers]) -> list[Integers]:
        """Return ticks of the paths without those that are the same for other paths that are alike."""
        keys = {tuple(sorted(zip(self._like, ticks.tolist(), strict=True))): ticks for ticks in found}
        return list(keys.values())

    def _like_paths(self) -> list[int]:
        """Return for each path the first one with as many ticks of operations and like stacks."""
        alone = self._cover.sum(axis=0) == 1
        paths = [
            (own, Counter(self._ticks[:, at].tobytes() if alone[at] else at for at in np.nonzero(row)[0].tolist()))
            for own, row in zip(self._operations.tolist(), self._cover, strict=True)
        ]
        return [paths.index(path) for path in paths]

    def _blocks(self, at_least: int, at_most: int) -> tuple[DividedBlocks, _Loads] | None:
        """Return a model of the order of operations within the paths of the layout; None if there is none."""
        left, part = self.left(at_most), self._problem.within(self._places)
        if not self._all_used or not all(left) or part.operations_take_no_time:
            return None
        found: list[_Loads] = []

        def divide(model: cp_model.CpModel) -> list[list[cp_model.IntVar]]:
            found.append(self._divided_loads(model, left, at_most, _MEMBERS, most_room=at_most))
            return found[0].of_stacks(len(self._places))

        blocks = DividedBlocks(part, at_least, at_most, divide)
        loads = found[0].of_stacks(len(self._places))
        self._add_paths(blocks.model, loads, blocks.makespan)
        return (blocks, found[0]) if self._use_all(blocks.model, left, loads) else None

    def _solve(
        self, control: Limits, at_most: int, seconds: float, members: int
    ) -> tuple[IntegerOutcome | None, _Loads | None]:
        """Minimise the longest path, where groups have their loads divided that have some members for each stack.

        Returned are no loads if some task has no stack left, or some stack no task; no outcome if all groups are small.
        """
        left = self.left(at_most)
        if not all(left):
            return None, None
        model = cp_model.CpModel()
        longest = model.new_int_var(min(self.lower, at_most), at_most, "longest path")
        divided = self._divided_loads(model, left, at_most, members)
        if members and all(len(group) == 1 for group in divided.parts):
            return None, divided
        loads = divided.of_stacks(len(self._places))
        if self._all_used and not self._use_all(model, left, loads):
            return None, None
        self._add_paths(model, loads, longest)
        model.minimize(longest)
        least = min(self.lower, at_most)
        # Not as for proofs: without linear programming the bounds of sums can creep up tick by tick for minutes, which
        # the deterministic time hardly counts.
        return run(model, control, Request(at_least=least, seconds=seconds), workers=1), divided

    def _divided_loads(
        self,
        model: cp_model.CpModel,
        left: Sequence[Sequence[int]],
        at_most: int,
        members: int,
        most_room: int = 0,
    ) -> _Loads:
        """Let each task choose its ticks, or its stack if its group is small; groups divide the sums of their ticks.

        Each stack of a group has some room besides, the same in all.
        """
        ways: list[list[tuple[int, Group]]] = []
        for task, stacks in enumerate(left):
            alike: defaultdict[int, list[int]] = defaultdict(list)
            for stack in stacks:
                alike[int(self._ticks[task, stack])].append(stack)
            ways.append([(ticks, tuple(group)) for ticks, group in alike.items()])
        sure = Counter(some[0][1] for some in ways if len(some) == 1)
        options: list[list[_Option]] = []
        sums: defaultdict[Group, list[cp_model.LinearExprT]] = defaultdict(list)
        certain = model.new_constant(1)
        for some in ways:
            small = [sure[group] < members * len(group) for _, group in some]
            if len(some) == 1 and not (small[0] and len(some[0][1]) > 1):
                options.append([_Option(*some[0], certain)])
                sums[some[0][1]].append(some[0][0])
                continue
            own = []
            for (ticks, group), alone in zip(some, small, strict=True):
                for among in [(stack,) for stack in group] if alone else [group]:
                    own.append(_Option(ticks, among, model.new_bool_var("")))
                    sums[among].append(ticks * own[-1].here)
            model.add_exactly_one(option.here for option in own)
            options.append(own)
        parts = {group: [model.new_int_var(0, at_most, f"load of {group}") for _ in group] for group in sums}
        room = model.new_int_var(0, most_room, "room")
        for group, terms in sums.items():
            model.add(sum(parts[group]) == sum([*terms, len(group) * room] if len(group) > 1 else terms))
        return _Loads(options, parts, room)

    def _add_paths(
        self, model: cp_model.CpModel, loads: Sequence[Sequence[cp_model.IntVar]], longest: cp_model.IntVar
    ) -> None:
        """Let no path be longer than the longest one."""
        for operations, row in zip(self._operations.tolist(), self._cover, strict=True):
            through = [load for stack in np.nonzero(row)[0].tolist() for load in loads[stack]]
            model.add(operations + sum(through) <= longest)

    def _use_all(
        self, model: cp_model.CpModel, left: Sequence[Sequence[int]], loads: Sequence[Sequence[cp_model.IntVar]]
    ) -> bool:
        """Let each stack have a task at least; return False if none can run in one of them."""
        for stack, load in enumerate(loads):
            own = [int(self._ticks[task, stack]) for task, stacks in enumerate(left) if stack in stacks]
            if not own:
                return False
            model.add(sum(load) >= min(own))
        return True


class _Division:
    """Division of the loads of a solution among their stacks."""

    def __init__(
        self, cover: npt.NDArray[np.bool_], operations: Integers, loads: _Loads, values: Sequence[int]
    ) -> None:
        self._cover, self._operations = cover, operations
        self._members: defaultdict[Group, list[tuple[int, int]]] = defaultdict(list)  # tasks with their ticks
        for task, options in enumerate(loads.options):
            option = next(option for option in options if values[option.here.index])
            self._members[option.group].append((task, option.ticks))
        self._parts = {group: np.array([values[part.index] for part in loads.parts[group]]) for group in self._members}

    def longest(self, parts: dict[Group, Integers]) -> Integers:
        """Return the ticks of each path, given the load of each group in each of its stacks."""
        loads = np.zeros(self._cover.shape[1], np.int64)
        for group, own in parts.items():
            loads[list(group)] += own
        return self._operations + self._cover @ loads

    def assignments(self, at_most: int, control: Limits) -> Iterator[list[int]]:
        """Yield assignments with paths of about the same length, as short as they are found: the stack of each task."""
        draw, length, step = random.Random(control.seed), int(self.longest(self._parts).max()), 0
        bits = sum(
            len(group) * bits_of_division([ticks for _, ticks in members], length)
            for group, members in self._members.items()
            if len(group) > 1
        )
        found = bits > _MAX_BITS
        while not found and length + step <= at_most and not control.expired:
            control.spend(_TRIES * _SECONDS_PER_BIT * bits)
            for number in range(_DIVISIONS):
                stacks = self._drawn(length + step, draw) if found or number < _TRIES else None
                found |= stacks is not None
                if stacks is not None:
                    yield stacks
            step = 2 * step + 1

    def _drawn(self, at_most: int, draw: random.Random) -> list[int] | None:
        """Divide each group in a random way, so that all paths are within some ticks; None if that fails."""
        parts, stack_of = dict(self._parts), dict[int, int]()
        for group, members in self._members.items():
            if len(group) > 1:
                free = at_most - self.longest(parts | {group: np.zeros(len(group), np.int64)})
                room = [int(free[self._cover[:, stack]].min()) for stack in group]
                own = divide([ticks for _, ticks in members], room, draw)
                if own is None:
                    return None
                parts[group] = np.bincount(own, [ticks for _, ticks in members], len(group)).astype(np.int64)
            else:
                own = [0] * len(members)
            stack_of.update((task, group[at]) for (task, _), at in zip(members, own, strict=True))
        return [stack_of[task] for task in range(len(stack_of))]
