"""A bound from prices: what a GPU can run at most, against what all tasks are worth together.

Give each task a price. What a GPU runs within some time is worth at most what its best usage with the best contents
is, found from the innermost branches outward. If the tasks are worth more than all GPUs can run within that time, no
schedule is as short.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.loads.branches import Branch, Branches, Order, Use
from mig_opt.loads.contents import fill, line_up, read_off, stack
from mig_opt.loads.kernels import NEVER
from mig_opt.loads.state import Integers
from mig_opt.loads.tables import ticks_of

_HIGHEST = 2**31 - 1
"""No table may have more."""


class Contents(NamedTuple):
    """What runs on a GPU, maybe some tasks several times.

    Attributes
    ----------
    tasks : tuple of int
        Their indices, sorted.
    grains : int
        Within which all of it is done.
    """

    tasks: tuple[int, ...]
    grains: int


class Prices:
    """The prices of a batch, and what is worth what at these prices.

    Parameters
    ----------
    batch : IntegerBatch
        Nothing is live.
    branches : Branches
        Of each of its GPUs.
    before : int
        Ticks; only schedules that end before are of interest, so nothing runs where it alone would end then or later.
    grain : int
        Ticks to which times are rounded down.

    Attributes
    ----------
    ticks : array of int64, shape (tasks, profiles)
        Of each task in each kind of placement.
    possible : array of bool, shape (tasks, profiles)
        Where each task can run.
    worth : int
        What all tasks are worth together.
    """

    def __init__(self, batch: IntegerBatch, branches: Branches, before: int, grain: int) -> None:
        count, self._grain, self._branches = len(batch.batch.tasks), grain, branches
        self._wait, self._inner = branches.wait // grain, branches.inner
        self.ticks = np.stack([ticks_of(place, count) for place in branches.places], axis=1).astype(np.int64)
        ready = np.array([place.create for place in branches.places])
        self.possible: npt.NDArray[np.bool_] = (self.ticks < NEVER) & (self.ticks + ready < before)
        self.worth = 0
        times = np.where(self.possible, self.ticks // grain, NEVER).astype(np.int32)
        size = before // grain + 1
        self._prices = np.zeros(count, np.int32)
        self._times = {use: np.ascontiguousarray(times[:, list(use.kinds)]) for use in branches.uses}
        self._contents = {use: np.zeros((count + 1, size), np.int32) for use in branches.uses}
        # Whether the last destruction on each way is spared, or none.
        self._members = {spared: np.full((len(branches.branches), size), -1, np.int32) for spared in (False, True)}
        self._inside = {spared: np.zeros((len(branches.branches), size), np.int32) for spared in (False, True)}

    def set(self, prices: npt.NDArray[np.floating]) -> None:
        """Let these be the prices, shape (tasks,), not negative and not all 0."""
        places = sum(len(use.kinds) for branch in self._branches.branches for use in branch.uses)
        most = _HIGHEST // (places * len(max(self._branches.orders, key=len)) + 1)
        self._prices = np.floor(prices * (most / float(prices.sum()))).astype(np.int32)
        self.worth = int(self._prices.sum())
        for use, table in self._contents.items():
            fill(self._times[use], self._prices, table)
        for at, branch in enumerate(self._branches.branches):
            for spared in (False, True):
                members, inside = self._members[spared], self._inside[spared][at]
                inside[:] = 0
                for order in branch.orders:
                    line_up(members, np.array(order, np.int64), self._wait, inside)
            if at in self._inner:
                for spared in (False, True):
                    member = self._members[spared][at]
                    member[:] = -1
                    for use in branch.uses:
                        for within, operations in self._ends(use, spared):
                            stack(self._contents[use][-1], self._inside[within][at], operations, member)

    def _ends(self, use: Use, spared: bool) -> tuple[tuple[bool, int], ...]:
        """Return whether the last destruction is spared inside, and the grains of operations, for each way to end."""
        full = (False, use.full // self._grain)
        return (full,) if not spared else ((True, full[1]), (False, use.spared // self._grain))

    def of_orders(self, ticks: int) -> Integers:
        """Return what a GPU takes in at most within so many ticks, for each choice and order of its members."""
        room = min(ticks // self._grain, self._members[True].shape[1] - 1)
        return np.array([self._of_order(order, room) for order in self._branches.orders])

    def _of_order(self, order: Order, room: int) -> int:
        total = 0
        for place, at in enumerate(order):
            left = room - place * self._wait
            if left < 0:
                return -1
            worth = int(self._members[True][at, left]) if at in self._inner else self._best(at, True, left)[0]
            if worth < 0:
                return -1
            total += worth
        return total

    def _best(self, at: int, spared: bool, room: int) -> tuple[int, Use, bool, int, int]:
        """Return what a branch is worth, and how: its use, what is spared inside, the operations, the time of tasks."""
        branch = self._branches.branches[at]
        best = (-1, branch.uses[0], False, 0, 0)
        for use in branch.uses:
            for within, operations in self._ends(use, spared):
                left = room - operations
                if left >= 0:
                    worth = self._contents[use][-1, : left + 1] + self._inside[within][at, left::-1]
                    own = int(worth.argmax())
                    best = max(best, (int(worth[own]), use, within, operations, own))
        return best

    def contents(self, order: Order, ticks: int) -> Contents:
        """Return the best contents of a GPU with some order of members that is worth something."""
        tasks: list[int] = []
        room = ticks // self._grain
        needed = max(
            place * self._wait + self._read(at, True, room - place * self._wait, tasks)
            for place, at in enumerate(order)
        )
        return Contents(tuple(sorted(tasks)), needed)

    def _read(self, at: int, spared: bool, room: int, tasks: list[int]) -> int:
        """Append the tasks of a branch, and return the grains that it needs."""
        _, use, within, operations, own = self._best(at, spared, room)
        times = self._times[use]
        needed = operations
        for task, kind in enumerate(read_off(times, self._prices, self._contents[use], own).tolist()):
            if kind >= 0:
                tasks.append(task)
                needed += int(times[task, kind])
        left = room - operations - own
        order = self._order(self._branches.branches[at], within, left, int(self._inside[within][at, left]))
        inside = (
            place * self._wait + self._read(one, within, left - place * self._wait, tasks)
            for place, one in enumerate(order)
        )
        return needed + max(inside, default=0)

    def _order(self, branch: Branch, spared: bool, room: int, worth: int) -> Order:
        """Return members inside of a branch that are worth so much."""
        for order in branch.orders:
            lefts = [room - place * self._wait for place in range(len(order))]
            if all(left >= 0 for left in lefts):
                worths = [int(self._members[spared][at, left]) for at, left in zip(order, lefts, strict=True)]
                if min(worths, default=0) >= 0 and sum(worths) == worth:
                    return order
        raise AssertionError("the table comes from one of the orders")

    def ticks_within(self, contents: Contents) -> int:
        """Return the ticks within which a GPU takes in some contents."""
        return contents.grains * self._grain


class Bound:
    """The longest makespan that is ruled out, over all prices that were tried.

    With prices that rule out a makespan for all orders of members but a few, only those few are left for other prices.

    Parameters
    ----------
    prices : Prices
        Of the batch.
    orders : int
        How many choices and orders of members a GPU has.
    gpus : int
        Number of GPUs.
    least, most : int
        Ticks: that much is ruled out already; the longest makespan to think of.

    Attributes
    ----------
    ticks : int
        The longest makespan that is ruled out.
    out : array of int64, shape (orders,)
        The same for schedules that have such members on one of the GPUs.
    """

    def __init__(self, prices: Prices, orders: int, gpus: int, least: int, most: int) -> None:
        self._prices, self._gpus, self.most = prices, gpus, most
        self.ticks = least
        self.out: Integers = np.full(orders, least)

    def update(self, *levels: int) -> None:
        """Rule out what the present prices do, looking at single orders within each of the ``levels`` in ticks."""
        for level in levels:
            taken = self._prices.of_orders(level)
            left = self.out < level
            if left.any():
                others = (self._gpus - 1) * max(0, int(taken[left].max()))
                self.out[left & (taken + others < self._prices.worth)] = level
        low, high = self.ticks, self.most + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._ruled_out(middle) else (low, middle)
        self.ticks = low

    def _ruled_out(self, ticks: int) -> bool:
        left = self.out < ticks
        if not left.any():
            return True
        return self._gpus * int(self._prices.of_orders(ticks)[left].max()) < self._prices.worth
