"""The pricing problem of column generation: the tasks of most value that one GPU can run within some time.

Give each task a dual price. The value of the tasks that a GPU runs within some time is at most that of its best
*pattern*, which dynamic programming finds from the innermost branches outward: the tasks of a placement run one after
the other, a knapsack problem; all that is inside of it shares the time that they leave. If all tasks together have more
value than all GPUs can run within that time, no schedule is as short.

Values are whole numbers, so they are exact; times are rounded down to a *grain* of some ticks, so no pattern is missed.
The loops are in C: ``mig_opt/native/pricing.c``.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.branches import Branch, Branches, Order, Use
from mig_opt.batch.loads.layouts import Layout, Member
from mig_opt.batch.loads.subsets import NEVER, Integers, Table
from mig_opt.batch.loads.tree import task_ticks
from mig_opt.native import loop

_fill_knapsack = loop("fill_knapsack")
_knapsack_choice = loop("knapsack_choice")
_combine_in_orders = loop("combine_in_orders")

_HIGHEST = 2**31 - 1
"""Largest value that fits into a table."""

_GRAINS_TRIED = 10_000
"""Sizes of a grain that are tried, at most: a grain can be millions of ticks where times have many digits."""

_SECONDS_PER_GRAIN = 1e-9
"""Seconds to fill tables, for each use of a branch, each task and each grain."""


class Pattern(NamedTuple):
    """Tasks that one GPU runs, maybe some of them several times: a column of the restricted master problem."""

    tasks: tuple[int, ...]  # their indices, sorted
    grains: int  # time within which all of it is done


class FilledMember(NamedTuple):
    """Member of a GPU with its tasks, maybe some of them several times."""

    branch: int  # the index of its branch
    use: Use  # the placements with its footprint that are used
    own: tuple[tuple[int, int], ...]  # its tasks, each with the index of the profile in which it runs
    inside: tuple[FilledMember, ...]

    @property
    def tasks(self) -> list[int]:
        """Indices of all tasks in it."""
        return [task for task, _ in self.own] + [task for member in self.inside for task in member.tasks]


def layout_of(members: Sequence[FilledMember]) -> Layout:
    """Return the layout of members beside each other."""
    return tuple(Member(filled.branch, filled.use, layout_of(filled.inside)) for filled in members)


def grain_of(branches: Branches, most: int, grains: int) -> int:
    """Return the ticks of a grain, so that operations lose little by rounding.

    A schedule of ``most`` ticks has at most ``grains`` of them, and at least half as many.
    """
    least = max(1, -(-most // grains))
    possible = np.arange(least, 2 * least, -(-least // _GRAINS_TRIED))
    operations = [ticks for place in branches.places for ticks in (place.create, place.destroy)]
    return int(possible[np.argmin(possible + sum(ticks % possible for ticks in operations))])


class PricingProblem:
    """Pricing problem of one GPU: dual prices, and the best patterns at these prices.

    Only schedules that end before a tick are of interest, so nothing runs where it alone would end then or later. It
    may have some of the tasks only, ``among``, by index. What is live comes after them as a task each; it may be busy
    beyond the end of a schedule, so no longer than all schedules take: ``least`` ticks.
    """

    def __init__(
        self,
        batch: IntegerBatch,
        branches: Branches,
        before: int,
        grain: int,
        among: Sequence[int] | None = None,
        least: int = 0,
    ) -> None:
        some = range(len(batch.batch.tasks)) if among is None else among
        count, self.grain, self._branches = len(some) + len(branches.live), grain, branches
        self._wait, self._inner = branches.wait // grain, branches.inner
        # each task in an instance of each kind
        live = np.full((len(branches.live), len(branches.places)), NEVER, np.int64)
        for row, (kind, free) in zip(live, branches.live, strict=True):
            row[kind] = min(free, least)
        self.ticks = np.concatenate([task_ticks(batch, branches.places).astype(np.int64)[list(some)], live])
        ready = np.array([place.create for place in branches.places])
        self.grains = self.ticks // grain  # the same in grains
        # true where a task can run
        self.possible: npt.NDArray[np.bool_] = (self.ticks < NEVER) & (self.ticks + ready < before)
        self.value = 0  # sum of the dual prices of all tasks
        times = np.where(self.possible, self.grains, NEVER).astype(np.int32)
        size = before // grain + 1
        self.seconds = _SECONDS_PER_GRAIN * size * count * len(branches.uses)  # approximately, to set dual prices
        self._dual_prices = np.zeros(count, np.int32)
        self._times = {use: np.ascontiguousarray(times[:, list(use.kinds)]) for use in branches.uses}
        self._knapsacks = {use: np.zeros((count + 1, size), np.int32) for use in branches.uses}
        self._orders = order_rows(branches.orders)
        self._inner_orders = [order_rows(branch.orders) for branch in branches.branches]
        # for each branch, itself after all that can be inside of it
        inside = [itertools.chain(*branch.orders) for branch in branches.branches]
        self._needed_for = [sorted({at, *some}) for at, some in enumerate(inside)]
        self._outermost = [at for at in range(len(branches.branches)) if at not in self._inner]
        self._work = np.empty((2, size), np.int32)
        # True: the last destruction on each path is spared; False: none is.
        self._members = {spared: np.full((len(branches.branches), size), -1, np.int32) for spared in (False, True)}
        self._inside = {spared: np.zeros((len(branches.branches), size), np.int32) for spared in (False, True)}

    @property
    def highest(self) -> int:
        """The largest sum of values of all tasks with which those of patterns fit into the tables."""
        places = sum(len(use.kinds) for branch in self._branches.branches for use in branch.uses)
        return _HIGHEST // (places * len(max(self._branches.orders, key=len)) + 1)

    def set_dual_prices(
        self, prices: npt.NDArray[np.floating], scale: float | None = None, member: int | None = None
    ) -> None:
        """Set the dual prices, shape (tasks,), not negative and not all 0; times ``scale`` they are rounded down.

        If only one ``member`` is to be filled, tables are computed for its branch alone, by index, which is quicker.
        """
        scale = self.highest / float(prices.sum()) if scale is None else scale
        self._dual_prices = np.floor(prices * scale).astype(np.int32)
        self.value = int(self._dual_prices.sum())
        branches = self._branches.branches
        some = range(len(branches)) if member is None else self._needed_for[member]
        for use in {use for at in some for use in branches[at].uses}:
            fill_knapsack(self._times[use], self._dual_prices, self._knapsacks[use])
        for at in some:
            branch = branches[at]
            for spared in (False, True):
                members, inside = self._members[spared], self._inside[spared][at]
                inside[:] = 0
                combine_in_orders(members, self._inner_orders[at], self._wait, inside)
            if at in self._inner:
                for spared in (False, True):
                    values = self._members[spared][at]
                    values[:] = -1
                    for use in branch.uses:
                        # All cases in one table: the best of sums is the sum of the bests.
                        ends, start = self._ends(use, spared), self._work[0]
                        late = min(len(values), *(operations for _, operations in ends))
                        start[:] = 0
                        for within, operations in ends:
                            room = max(0, len(values) - (operations - late))
                            first = start[len(values) - room :]
                            np.maximum(first, self._inside[within][at, :room], out=first)
                        fill_knapsack(self._times[use], self._dual_prices, self._work)
                        best = self._work[len(prices) % 2, : len(values) - late]
                        np.maximum(values[late:], best, out=values[late:])

    def _ends(self, use: Use, spared: bool) -> tuple[tuple[bool, int], ...]:
        """Return for each case: True if the last destruction inside is spared, and the grains of operations."""
        full = (False, use.full // self.grain)
        return (full,) if not spared else ((True, full[1]), (False, use.spared // self.grain))

    def best_values(self, ticks: int) -> Integers:
        """Return the value of the best pattern within some ticks, for each choice and order of members of a GPU."""
        room = min(ticks // self.grain, self._members[True].shape[1] - 1)
        members = self._members[True]
        total, possible = np.zeros(len(self._orders), np.int64), np.ones(len(self._orders), np.bool_)
        for place, branches in enumerate(self._orders.T):
            left = room - place * self._wait
            values = members[:, left].astype(np.int64) if left >= 0 else np.full(len(members), -1, np.int64)
            for at in self._outermost if left >= 0 else ():
                values[at] = self._best(at, True, left)[0]
            some = np.where(branches >= 0, values[branches], 0)
            total += some
            possible &= some >= 0
        return np.where(possible, total, -1)

    def _best(self, at: int, spared: bool, room: int) -> tuple[int, Use, bool, int, int]:
        """Return value and use of a branch, True if spared inside, grains of the operations and of its own tasks."""
        branch = self._branches.branches[at]
        best = (-1, branch.uses[0], False, 0, 0)
        for use in branch.uses:
            for within, operations in self._ends(use, spared):
                left = room - operations
                if left >= 0:
                    value = self._knapsacks[use][-1, : left + 1] + self._inside[within][at, left::-1]
                    own = int(value.argmax())
                    best = max(best, (int(value[own]), use, within, operations, own))
        return best

    def filled(self, at: int, place: int, ticks: int) -> FilledMember:
        """Return a member of this branch with the best tasks within some ticks, if ``place`` others are before it.

        There has to be time for the operations of the least that it can do.
        """
        return self._filled(at, True, ticks // self.grain - place * self._wait)

    def _filled(self, at: int, spared: bool, room: int) -> FilledMember:
        _, use, within, operations, own = self._best(at, spared, room)
        kinds = knapsack_choice(self._times[use], self._dual_prices, self._knapsacks[use], own).tolist()
        left = room - operations - own
        order = self._order(self._branches.branches[at], within, left, int(self._inside[within][at, left]))
        inside = tuple(self._filled(one, within, left - place * self._wait) for place, one in enumerate(order))
        return FilledMember(
            at, use, tuple((task, use.kinds[kind]) for task, kind in enumerate(kinds) if kind >= 0), inside
        )

    def pattern(self, members: Sequence[FilledMember]) -> Pattern:
        """Return the pattern of members beside each other, in the order of their first creations."""
        return Pattern(tuple(sorted(task for member in members for task in member.tasks)), self._needed(members, True))

    def _needed(self, members: Sequence[FilledMember], spared: bool) -> int:
        """Return the grains that members beside each other need."""
        needs = (place * self._wait + self._needed_by(member, spared) for place, member in enumerate(members))
        return max(needs, default=0)

    def _needed_by(self, member: FilledMember, spared: bool) -> int:
        own = sum(int(self.ticks[run]) // self.grain for run in member.own)
        ends = self._ends(member.use, spared)
        return own + min(operations + self._needed(member.inside, within) for within, operations in ends)

    def _order(self, branch: Branch, spared: bool, room: int, value: int) -> Order:
        """Return members inside of a branch with this value."""
        for order in branch.orders:
            lefts = [room - place * self._wait for place in range(len(order))]
            if all(left >= 0 for left in lefts):
                values = [int(self._members[spared][at, left]) for at, left in zip(order, lefts, strict=True)]
                if min(values, default=0) >= 0 and sum(values) == value:
                    return order
        raise AssertionError("the table comes from one of the orders")

    def ticks_within(self, pattern: Pattern) -> int:
        """Return the ticks within which a GPU runs a pattern."""
        return pattern.grains * self.grain


def fill_knapsack(times: Table, prices: Table, table: Table) -> None:
    """Find the best tasks of placements with the same footprint for every time that they have together.

    ``times`` are the grains of each task in each kind of placement, shape (tasks, kinds); times that are too long
    cannot be. The first row of ``table``, shape (tasks + 1, grains + 1), has the value without any of the tasks. Row
    ``i`` is filled in place: it has the highest sum of that and of dual prices of some of the first ``i`` tasks. If
    ``table`` has two rows, these are the last ones, row ``i`` at the index ``i`` modulo 2.
    """
    _fill_knapsack(times, prices, table)


def knapsack_choice(times: Table, prices: Table, table: Table, room: int) -> Integers:
    """Return the kind in which each task runs in the best choice within ``room`` grains, -1 if in none."""
    kinds = np.empty(len(times), np.int64)
    _knapsack_choice(times, prices, table, room, kinds)
    return kinds


def order_rows(orders: Sequence[Order]) -> npt.NDArray[np.int64]:
    """Return orders of branches as the rows of an array, which end with -1 where they are shorter than the longest."""
    rows = np.full((len(orders), max(map(len, orders), default=0)), -1, np.int64)
    for row, order in zip(rows, orders, strict=True):
        row[: len(order)] = order
    return rows


def combine_in_orders(tables: Table, orders: npt.NDArray[np.int64], wait: int, best: Table) -> None:
    """Raise ``best``, shape (grains + 1,), to the joint value of members that are first created in one of some orders.

    ``tables`` has the value of each branch within each number of grains, -1 if it cannot be; each member takes ``wait``
    grains from those behind it.
    """
    _combine_in_orders(tables, orders, wait, best, np.empty((orders.shape[1] + 1, len(best)), np.int32))
