"""Exact sets of tasks in the branches of a layout, for a few dozen tasks.

For each node of the tree of a layout, from the leaves up, all sets of tasks are listed that it can run as part of a
schedule within the limit, each with its *length*: the shortest that the longest path through the branch can be,
operations included. Dual prices exclude nearly all sets: the value of the set and the best value of all else, if the
branch takes that long, have to reach the value of all tasks. Near the optimum the set has to fill its placements nearly
without loss. At the root, the sets of one side have to be what those of the other leave.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mig_opt.batch.loads.layout_values import LayoutValues, PricedTasks
from mig_opt.batch.loads.layouts import LayoutNode, LayoutTree
from mig_opt.batch.loads.subsets import Choice, Integers, Table, places_of_tasks
from mig_opt.native import loop

MAX_TASKS_OF_SETS = 62
"""Number of tasks above which a set does not fit into a number."""

_ROOM = 2**14
"""Sets for which there is room at first."""

_PAIRS_PER_CHUNK = 3 * 10**7
"""Pairs of sets that are looked at before the time is asked for: some hundredths of a second."""

_SETS_PER_CHUNK = 2**18
"""Sets for which pairs are looked for before the time is asked for."""

_STATES_PER_CHUNK = 2000
"""Sets that are extended before the time is asked for."""

_extend_sets, _join_sets = loop("extend_sets"), loop("join_sets")


class Sets(NamedTuple):
    """Sets of tasks that a branch can run."""

    sets: Integers  # as bits, in rising order
    lengths: Table  # ticks of the longest path
    values: Table  # sum of the dual prices

    def __len__(self) -> int:
        """Return the number of sets."""
        return len(self.sets)

    def at(self, rows: npt.NDArray[np.integer] | npt.NDArray[np.bool_]) -> Sets:
        """Return some of the sets."""
        return Sets(self.sets[rows], self.lengths[rows], self.values[rows])


class _TooManySetsError(Exception):
    """There are more sets or pairs of sets than are allowed, or no time is left."""


class TaskSets:
    """Sets of tasks in each branch of a layout, of at most :data:`MAX_TASKS_OF_SETS` tasks at good dual prices.

    Of a branch there are at most ``most`` sets, and at most ``most_pairs`` pairs of sets are looked at. A placement of
    the layout has a task unless it ``may_be_empty``.
    """

    def __init__(
        self,
        tree: LayoutTree,
        tasks: PricedTasks,
        most: int,
        most_pairs: int = 2**62,
        *,
        may_be_empty: bool = False,
    ) -> None:
        self._tree, self._tasks, self._may_be_empty = tree, tasks, may_be_empty
        self._most, self._pairs_left = most, most_pairs
        self._sets: list[Sets] = []
        self._expired: Callable[[], bool] = lambda: False
        self.steps = 0  # number of sets and pairs of sets that were looked at

    def fill(self, expired: Callable[[], bool]) -> bool:
        """List the sets of all branches; return False if that is too much, or ``expired`` came first."""
        self._expired = expired
        values = LayoutValues(self._tree, self._tasks)
        try:
            for at, node in enumerate(self._tree.nodes[:-1]):
                if node.kind == "leaf":
                    none = np.zeros(1, np.int32)
                    self._sets.append(Sets(none.astype(np.int64), none + np.int32(node.ticks), none))
                elif node.kind == "stack":
                    self._sets.append(self._stack(at, node, values, expired))
                else:
                    self._sets.append(self._split(at, node, values, expired))
                if not len(self._sets[-1]):
                    # Nothing can run in this branch, so no assignment is left.
                    self._sets = []
                    break
        except _TooManySetsError:
            return False
        return True

    def _stack(self, at: int, node: LayoutNode, values: LayoutValues, expired: Callable[[], bool]) -> Sets:
        below, best = self._sets[node.one], values.outside_with_tasks(at)
        found: list[Sets] = []
        for start in range(0, len(below), _STATES_PER_CHUNK):
            self._check(found, expired)
            rows = np.arange(start, min(start + _STATES_PER_CHUNK, len(below)))
            found.append(self._extended(below.at(rows), node.profile, best))
        return _shortest(found)

    def _extended(self, sets: Sets, profile: int, best: Table) -> Sets:
        """Return sets with tasks in one more placement, if ``best`` is the best value of all but the first ones."""
        tasks = self._tasks
        limits = (tasks.grain, tasks.at_most, tasks.value, int(self._may_be_empty))

        def extend(room: int) -> tuple[int, Sets]:
            new = Sets(np.empty(room, np.int64), np.empty(room, np.int32), np.empty(room, np.int32))
            return _extend_sets(*sets, tasks.ticks[profile], tasks.prices, best, limits, *new), new

        return self._with_room(extend)

    def _split(self, at: int, node: LayoutNode, values: LayoutValues, expired: Callable[[], bool]) -> Sets:
        """Join disjoint sets of two branches: those of which the first is longer, or as long, then the others."""
        found: list[Sets] = []
        for one, two, equal in ((node.one, node.two, True), (node.two, node.one, False)):
            sets, others = self._sets[one], self._sets[two]
            others = others.at(np.argsort(others.lengths, kind="stable"))
            for begin in range(0, len(sets), _SETS_PER_CHUNK):
                self._check(found, expired)
                some = sets.at(np.arange(begin, min(begin + _SETS_PER_CHUNK, len(sets))))
                grains = some.lengths // np.int32(self._tasks.grain)
                needed = self._tasks.value - some.values.astype(np.int64) - values.outside[at][grains]
                # A branch needs some time for that value.
                least = np.searchsorted(values.inside[two], needed) * self._tasks.grain
                end = np.searchsorted(others.lengths, some.lengths, side="right" if equal else "left")
                first = np.minimum(np.searchsorted(others.lengths, least.astype(np.int32)), end)
                done = np.cumsum(end - first)
                pairs = int(done[-1])
                if pairs > self._pairs_left:
                    raise _TooManySetsError
                self._pairs_left -= pairs
                self.steps += pairs + len(some)
                cuts = np.searchsorted(done, np.arange(_PAIRS_PER_CHUNK, pairs, _PAIRS_PER_CHUNK)).tolist()
                for start, stop in itertools.pairwise([0, *cuts, len(some)]):
                    self._check(found, expired)
                    chunk = np.arange(start, stop)
                    found.append(self._join(some.at(chunk), others, needed[chunk], first[chunk], end[chunk]))
        return _shortest(found)

    def _join(self, sets: Sets, others: Sets, needed: Integers, first: Integers, end: Integers) -> Sets:
        """Return the unions of sets with those of the others from ``first`` to ``end`` that are worth enough."""

        def join(room: int) -> tuple[int, Sets]:
            left, right = np.empty(room, np.int64), np.empty(room, np.int64)
            count = _join_sets(sets.sets, needed, first, end, others.sets, others.values, left, right)
            one, two = sets.at(left[: max(0, count)]), others.at(right[: max(0, count)])
            return count, Sets(one.sets | two.sets, one.lengths, one.values + two.values)

        return self._with_room(join)

    def _with_room(self, fill: Callable[[int], tuple[int, Sets]]) -> Sets:
        """Return what a loop finds, with more room whenever it needs more."""
        room = _ROOM
        while True:
            count, found = fill(room)
            if count >= 0:
                self.steps += count
                return Sets(found.sets[:count].copy(), found.lengths[:count].copy(), found.values[:count].copy())
            if room >= self._most or self._expired():
                raise _TooManySetsError
            room *= 4

    def _check(self, found: list[Sets], expired: Callable[[], bool]) -> None:
        if expired() or sum(map(len, found)) > self._most:
            raise _TooManySetsError

    def assignments(self, expired: Callable[[], bool] = lambda: False) -> Iterator[list[int]]:
        """Yield each assignment within the limit, as the place of each task, until ``expired``."""
        self._expired = expired
        if self._sets:
            everything = (1 << len(self._tasks.prices)) - 1
            yield from map(places_of_tasks, self._branch(len(self._tree.nodes) - 1, everything, self._tasks.at_most))

    def _branch(self, at: int, tasks: int, at_most: int) -> Iterator[Choice]:
        """Yield pairs of a place and its tasks, so that a branch runs exactly these tasks within some ticks."""
        node = self._tree.nodes[at]
        if self._expired():
            return
        if node.kind == "leaf":
            if not tasks and node.ticks <= at_most:
                yield ()
            return
        sets = self._sets[node.one]
        sets = sets.at((sets.sets & ~tasks == 0) & (sets.lengths <= at_most))
        rest = tasks ^ sets.sets
        if node.kind == "stack":
            loads = self._loads(node.profile, rest)
            fits = (loads + sets.lengths <= at_most) & ((rest != 0) | self._may_be_empty)
            for part, own, load in zip(
                sets.sets[fits].tolist(), rest[fits].tolist(), loads[fits].tolist(), strict=True
            ):
                for choice in self._branch(node.one, part, at_most - load):
                    yield ((node.place, own), *choice)
        else:
            others = self._sets[node.two]
            for part in sets.sets[np.isin(rest, others.sets[others.lengths <= at_most])].tolist():
                for here in self._branch(node.one, part, at_most):
                    for there in self._branch(node.two, tasks ^ part, at_most):
                        yield (*here, *there)

    def _loads(self, profile: int, sets: Integers) -> Integers:
        """Return the ticks of sets of tasks in a profile."""
        loads = np.zeros(len(sets), np.int64)
        for task, ticks in enumerate(self._tasks.ticks[profile].tolist()):
            loads += (sets >> task & 1) * ticks
        return loads


def _shortest(found: list[Sets]) -> Sets:
    """Return each set once, with its least length, in rising order."""
    if not found:
        return Sets(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32))
    sets = Sets(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
    return sets.at(rows_of_shortest(sets.sets, sets.lengths))


def rows_of_shortest(sets: Integers, lengths: Integers | Table) -> Integers:
    """Return the row of each set with its least length, in rising order of the sets; they may be rows of words."""
    words = np.atleast_2d(sets.T)
    order = np.lexsort((lengths, *words))
    first = np.ones(len(order), np.bool_)
    first[1:] = (np.diff(words[:, order]) != 0).any(axis=0)
    rows: Integers = order[first]
    return rows
