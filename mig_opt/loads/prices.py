"""A bound from prices: what every usage of a GPU can run at most, against what all tasks are worth together.

Give each task a price for each kind of placement, to be paid on every way that it covers. A task is then worth at least
the lowest that it can pay, and a GPU takes in at most what its best usage with the best contents of each way does. If
the tasks are worth more than all GPUs can take in within some time, no schedule is as short.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mig_opt.loads.contents import fill, read_off, sums
from mig_opt.loads.kernels import NEVER
from mig_opt.loads.state import Integers
from mig_opt.loads.tables import ticks_of
from mig_opt.loads.usages import Usages
from mig_opt.ticked import TickedBatch

Contents = tuple[tuple[int, int], ...]
"""Pairs of a task and the kind of placement in which it runs."""

_WORTH = 2**29
"""What the tasks are worth together at the most, so that sums fit into 32 bits."""


class Prices:
    """The prices of a batch, and what is worth what at these prices.

    Parameters
    ----------
    batch : TickedBatch
        Nothing is live.
    usages : Usages
        Of each of its GPUs.
    before : int
        Ticks; only schedules that end before are of interest, so nothing runs where it alone would end then or later.
    grain : int
        Ticks to which times are rounded down.

    Attributes
    ----------
    possible : array of bool, shape (tasks, kinds)
        Where each task can run.
    widths : array of int64, shape (kinds,)
        Ways that each kind covers.
    worth : int
        What all tasks are worth together.
    scale : float
        What a price of one has become as a whole number.
    """

    def __init__(self, batch: TickedBatch, usages: Usages, before: int, grain: int) -> None:
        count, self._grain, self._rows = len(batch.batch.tasks), grain, usages.rows
        self.ticks = np.stack([ticks_of(place, count) for place in usages.places], axis=1).astype(np.int64)
        ready = np.array([place.create for place in usages.places])
        self.possible: npt.NDArray[np.bool_] = (self.ticks < NEVER) & (self.ticks + ready < before)
        self.widths = np.array([kind.ways for kind in usages.kinds])
        self.worth, self.scale = 0, 0.0
        times = np.where(self.possible, self.ticks // grain, NEVER).astype(np.int32)
        self._kinds = usages.chains
        self._times = [np.ascontiguousarray(times[:, list(kinds)]) for kinds in self._kinds]
        self._tables = [np.zeros((count + 1, before // grain + 1), np.int32) for _ in self._kinds]
        self._prices = [np.zeros_like(times) for times in self._times]
        number = {kinds: at for at, kinds in enumerate(self._kinds)}
        self._table_of = np.array([number.get(way.kinds, -1) for way in usages.ways])
        self._around = np.array([usages.ticks_around(way) for way in usages.ways])

    def lowest(self, prices: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
        """Return what each task pays at least at some prices, shape (tasks,); infinite if it can run nowhere."""
        lowest: npt.NDArray[np.float64] = np.where(self.possible, prices * self.widths, np.inf).min(axis=1)
        return lowest

    def set(self, prices: npt.NDArray[np.floating]) -> None:
        """Let these be the prices, shape (tasks, kinds), not negative."""
        prices = np.where(self.possible, prices, 0.0)
        self.scale = _WORTH / max(float(prices.max(axis=1).sum()), 1e-9)
        whole = np.floor(prices * self.scale).astype(np.int32)
        lowest = np.where(self.possible, whole.astype(np.int64) * self.widths, np.iinfo(np.int64).max)
        self.worth = sum(map(int, lowest.min(axis=1)))
        for at, kinds in enumerate(self._kinds):
            self._prices[at] = np.ascontiguousarray(whole[:, list(kinds)])
            fill(self._times[at], self._prices[at], self._tables[at])

    def of_ways(self, ticks: int) -> Integers:
        """Return what each way of the usages takes in at most within so many ticks."""
        room = (ticks - self._around) // self._grain
        best = np.array([table[-1] for table in self._tables] or [[0]])
        taken = best[self._table_of, np.clip(room, 0, best.shape[1] - 1)]
        return np.where((self._table_of >= 0) & (room >= 0), taken, 0).astype(np.int64)

    def of_usages(self, ticks: int) -> Integers:
        """Return what each usage takes in at most within so many ticks."""
        taken: Integers = sums(self._rows, self.of_ways(ticks))
        return taken

    def contents(self, way: int, ticks: int) -> Contents:
        """Return the best contents of a way."""
        at, room = int(self._table_of[way]), int(ticks - self._around[way]) // self._grain
        if at < 0 or room < 0:
            return ()
        chosen = read_off(self._times[at], self._prices[at], self._tables[at], room)
        return tuple((task, self._kinds[at][kind]) for task, kind in enumerate(chosen) if kind >= 0)

    def ticks_of(self, way: int, contents: Contents) -> int:
        """Return the ticks within which a way takes in some contents."""
        grains = sum(int(self.ticks[task, kind]) // self._grain for task, kind in contents)
        return int(self._around[way]) + grains * self._grain


class Bound:
    """The longest makespan that is ruled out, over all prices that were tried.

    With prices that rule out a makespan for all usages but a few, only those few are left for other prices.

    Parameters
    ----------
    prices : Prices
        Of the batch.
    usages : int
        How many usages a GPU has.
    gpus : int
        Number of GPUs.
    least, most : int
        Ticks: that much is ruled out already; the longest makespan to think of.

    Attributes
    ----------
    ticks : int
        The longest makespan that is ruled out.
    out : array of int64, shape (usages,)
        The same for schedules that have a usage on one of the GPUs.
    """

    def __init__(self, prices: Prices, usages: int, gpus: int, least: int, most: int) -> None:
        self._prices, self._gpus, self.most = prices, gpus, most
        self.ticks = least
        self.out: Integers = np.full(usages, least)

    def update(self, *levels: int) -> None:
        """Rule out what the present prices do, looking at single usages within each of the ``levels`` in ticks."""
        for level in levels:
            taken = self._prices.of_usages(level)
            left = self.out < level
            if left.any():
                others = (self._gpus - 1) * int(taken[left].max())
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
        return self._gpus * int(self._prices.of_usages(ticks)[left].max()) < self._prices.worth
