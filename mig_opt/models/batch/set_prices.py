"""Bound for several GPUs that are alike from the sets of tasks that one GPU can run, each with every task once.

A schedule partitions the tasks into one set for each GPU, and one of these has at least the mean value, at any dual
prices. So a limit of time is ruled out once the best set that a GPU can run within it is worth less than that. The sets
of enough value are listed (:mod:`mig_opt.batch.loads.gpu_sets`); a linear program over those that are known gives the
next dual prices. It is tighter than one whose patterns may repeat tasks. Few sets are known at first, and millions are
worth hardly less than the best one. So the next dual prices stay within some share of the best ones so far, a trust
region (Marsten, Hogan and Blankenship, 1975; du Merle et al., 1999).

The limit begins close to the bound and grows, since the work does as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Generic

import numpy as np

from mig_opt.batch.loads.branches import Branches
from mig_opt.batch.loads.columns import grain_of
from mig_opt.batch.loads.gpu_sets import MAX_TASKS_OF_GPU_SETS, GpuSetListing, GpuSets, Thinning
from mig_opt.batch.loads.layout_values import PricedTasks, priced_tasks
from mig_opt.batch.loads.layouts import MAX_LAYOUTS, Layout, number_of_layouts
from mig_opt.batch.loads.subsets import NEVER, Integers, Reals, contents, keys, rows_of_sets
from mig_opt.models.batch.block_search import BlockSearch, M
from mig_opt.models.batch.dual_price_bound import DualPrices
from mig_opt.models.solvers.covering import CoveringProgram

GRAINS = 2_500
"""Grains of a schedule, at most: finer ones leave as few sets, and take longer."""

_MAX_SETS = 2**21
"""Sets that are listed, at most, repetitions included."""

_MAX_STEPS = 2**28
"""Sets and pairs of them that are looked at for a list, at most."""

_GROWTH, _SHRINKING, _LEAST_STEP = 2, 4, 300
"""Factor of each further step of the limit; divisor after one that was too long; and the part of the gap that a step is
at least."""

_FIRST_REGION, _LEAST_REGION = 0.005, 0.001
"""Share by which the next dual prices may differ from the best ones, at first; and where sets are too many at less, the
limit is too far."""

_WIDER, _NARROWER, _MUCH_NARROWER = 2.0, 0.7, 0.25
"""Factors of that share: if at least half of the gain came that the program had promised; if there was none; and if the
sets are too many."""

_EXCESS, _LEAST_EXCESS = 0.25, 3e-4
"""Sets are listed that exceed the mean value by this share of what the best one exceeded it before; by nothing, where
that was less than the second figure."""

_FIRST_EXCESS, _MOST_EXCESS, _NEXT_EXCESS = 5e-4, 0.002, 1e-4
"""Shares of the mean value by which sets exceed it where those of a new limit are too many: the first one, one that is
not raised any more, and the least difference of two of them."""

_GAIN = 0.25
"""Share of what the best set exceeds the mean by, up to which a gain does not matter once no dual prices rule the limit
out."""

_KNOWN = 3_000
"""Sets of most value of a list from which the next dual prices come."""

_NEW_SETS = 60
"""Sets that are added to the linear program at a time."""

_STEPS_PER_SECOND, _SECONDS_PER_LAYOUT = 4e8, 1e-3
"""Sets and pairs of them that a thread looks at; seconds for the tables of a layout."""


class TooMuchError(Exception):
    """There are too many sets, or partitions, or no time is left."""


def has_sets(prices: DualPrices, tasks: int) -> bool:
    """Return True if the sets of one GPU can be listed: neither tasks nor layouts are too many."""
    return tasks <= MAX_TASKS_OF_GPU_SETS and number_of_layouts(prices.branches) <= MAX_LAYOUTS


class SearchedSets(Generic[M]):
    """Sets of one GPU, listed in the time of a search by some threads."""

    def __init__(self, search: BlockSearch[M], branches: Branches, workers: int, expired: Callable[[], bool]) -> None:
        self._search, self._workers, self._expired = search, workers, expired
        self.listing = GpuSetListing(search.problem, branches, _MAX_SETS)

    def sets(self, tasks: PricedTasks, needed: int, effort: int = 1) -> GpuSets:
        """List the sets that a GPU can run, of some value at least; that may take ``effort`` times as long as usual.

        Raises
        ------
        TooMuchError
            If they are too many.
        """
        if needed <= 0:
            raise TooMuchError
        # In a deterministic run the clock stands still meanwhile.
        most = int(min(effort * _MAX_STEPS, 1 + self._search.control.left * _STEPS_PER_SECOND))
        return self._spent(self.listing.sets(tasks, needed, most, self._workers, self._expired))

    def some(self, tasks: PricedTasks, layouts: Sequence[Layout], needed: int, thinning: Thinning) -> GpuSets:
        """List some sets of these layouts, of some value at least.

        Raises
        ------
        TooMuchError
            If the time is up.
        """
        return self._spent(self.listing.some(tasks, layouts, needed, self._workers, self._expired, thinning))

    def _spent(self, found: GpuSets | None) -> GpuSets:
        spent = self.listing.steps / _STEPS_PER_SECOND + _SECONDS_PER_LAYOUT * len(self.listing.layouts)
        self._search.control.spend(spent)
        if found is None:
            raise TooMuchError
        return found


class SetBound(SearchedSets[M]):
    """Bound of the sets of one GPU, which rises limit by limit; each round lists the sets at some dual prices.

    Where no dual prices rule a limit out, ``remaining`` tells whether something else does: it gets the best ones, and
    the highest value of a set at them. The first step of the limit is the ``part``-th part of the gap.
    """

    def __init__(
        self,
        search: BlockSearch[M],
        start: DualPrices,
        workers: int,
        *,
        expired: Callable[[], bool],
        part: int = 32,
        remaining: Callable[[PricedTasks, int], bool] | None = None,
    ) -> None:
        super().__init__(search, start.branches, workers, expired)
        self._branches, self._start, self.prices = start.branches, start, start.prices
        self._part, self._remaining = part, remaining
        self._gpus, self._region = len(search.problem.gpus), _FIRST_REGION
        self.program = SetProgram(len(start.prices), self._gpus)
        self.restart()

    def restart(self, effort: int = 1) -> None:
        """Begin with a small step of the limit, in which a list may take ``effort`` times as long."""
        search, self.effort = self._search, effort
        self._step, self._failed = max(1, (search.upper - search.lower) // self._part), search.upper
        self._tasks: PricedTasks | None = None  # within the limit of now

    def found(self) -> DualPrices:
        """Return the best dual prices so far."""
        return replace(self._start, prices=self.prices)

    def round(self) -> bool:
        """Try some dual prices, and report the bound to the search; return False at the end."""
        search = self._search
        if not search.open or self._expired() or search.lower >= min(self._failed, search.upper):
            return False
        tasks = self._tasks or self._begin(min(search.lower + self._step, self._failed, search.upper) - 1)
        try:
            ruled_out = self._ruled_out(tasks)
        except TooMuchError:
            ruled_out = False
        if ruled_out is None and tasks.at_most < search.upper:
            return True
        self._tasks = None
        if ruled_out:
            search.raise_lower(min(tasks.at_most + 1, search.upper))
            self._step *= _GROWTH
        elif search.upper > tasks.at_most:
            self._failed, self._step = tasks.at_most, max(1, (tasks.at_most - search.lower) // _SHRINKING)
            return self._step >= (search.upper - search.lower) // _LEAST_STEP
        return True

    def _begin(self, at_most: int) -> PricedTasks:
        self.program = self.program.within(at_most)
        self._region = max(self._region, 2 * _LEAST_REGION)
        # The excess of the best set over the mean value, at the best dual prices of this limit, and what was promised.
        self._wanted, self._excess, self._promised, self._highest = self.prices, np.inf, 0.0, 0
        grain = grain_of(self._branches, at_most, GRAINS)
        self._tasks = priced_tasks(self._search.problem, self._branches, self.prices, at_most, grain)
        return self._tasks

    def _ruled_out(self, tasks: PricedTasks) -> bool | None:
        """Return True if no schedule is within the limit, False if that cannot be told, None if more prices may do."""
        if not (tasks.ticks < NEVER).any(axis=0).all():
            return True
        tasks = tasks.at_prices(self._wanted)
        mean = -(-tasks.value // self._gpus)
        try:
            best = self._best(tasks, mean)
        except TooMuchError:
            if self._expired() or self._excess == np.inf or self._region < _LEAST_REGION:
                raise
            self._region *= _MUCH_NARROWER
            self._wanted = self.prices + _MUCH_NARROWER * (self._wanted - self.prices)
            return None
        if not len(best):
            self.prices = self._wanted
            return True
        highest = int(best.values.max())
        self._compare(highest, highest / mean - 1)
        new = self.program.add(best.sets[np.argsort(-best.values)[:_KNOWN]], tasks.at_most)
        _, asked = self.program.prices(self.prices)
        possible = asked <= self._gpus and self._excess - (self._gpus / asked - 1) <= _GAIN * self._excess
        # What rounding makes of sets that are known is left to those who look at all of them.
        if not new or possible or (asked <= self._gpus and self._remaining is None):
            return self._remaining is not None and self._remaining(tasks.at_prices(self.prices), self._highest)
        prices, asked = self.program.prices(self.prices, self._region)
        self._wanted, self._promised = prices / prices.sum(), self._gpus / asked - 1
        return None

    def _compare(self, highest: int, excess: float) -> None:
        """Keep the dual prices of now if they are the best of this limit, and say how far the next ones may be."""
        if excess >= self._excess:
            self._region *= _NARROWER
            return
        if self._excess - excess > 0.5 * (self._excess - self._promised):
            self._region = min(1.0, _WIDER * self._region)
        self.prices, self._excess, self._highest = self._wanted, excess, highest

    def _best(self, tasks: PricedTasks, mean: int) -> GpuSets:
        """List the sets of most value; all that are worth the mean at least, if they are few."""
        excess = _EXCESS * self._excess if _LEAST_EXCESS < self._excess < np.inf else 0.0
        too_low, too_high = -np.inf, np.inf  # the sets were too many, and there were none
        while True:
            try:
                found = self.sets(tasks, int(mean * (1 + excess)), self.effort)
            except TooMuchError:
                if self._expired() or self._excess < np.inf or excess >= _MOST_EXCESS:
                    raise
                too_low = excess
            else:
                if len(found) or not excess:
                    return found
                too_high = excess
            if too_high - too_low < _NEXT_EXCESS:
                raise TooMuchError
            if too_low < 0:
                excess = 0.0
            else:
                excess = 0.5 * (too_low + too_high) if too_high < np.inf else 2 * excess + _FIRST_EXCESS


class SetProgram:
    """Linear program of the partition of all tasks into sets that are known."""

    def __init__(self, tasks: int, gpus: int) -> None:
        self._gpus, self._sets, self._limits = gpus, rows_of_sets((), tasks), np.zeros(0, np.int64)
        self._contents = np.zeros((0, tasks), np.float32)
        self._program = CoveringProgram(tasks)

    def __len__(self) -> int:
        """Return the number of sets."""
        return len(self._sets)

    def within(self, limit: int) -> SetProgram:
        """Return a program of the sets that are known within a limit, in ticks."""
        left = self._limits <= limit
        if left.all():
            return self
        program = SetProgram(self._contents.shape[1], self._gpus)
        program.add(self._sets[left], limit)
        return program

    def add(self, sets: Integers, limit: int) -> bool:
        """Let a partition have more sets within a limit, in ticks; return True if any of them is new."""
        new = sets[~np.isin(keys(sets), keys(self._sets))]
        self._limits = np.concatenate([self._limits, np.full(len(new), limit)])
        self._sets = np.concatenate([self._sets, new])
        inside = contents(new, self._contents.shape[1]).astype(np.float32)
        self._contents = np.concatenate([self._contents, inside])
        return len(new) > 0

    def prices(self, start: Reals, region: float = 1.0, among: Integers | None = None) -> tuple[Reals, float]:
        """Return dual prices and the number of GPUs that they ask for: more than there are, if that is possible.

        With a ``region`` below 1, they differ from the ``start`` by this share at most.
        """
        rows = slice(None) if among is None else np.isin(keys(self._sets), keys(among))
        sets, inside = self._sets[rows], self._contents[rows]
        prices = best = start
        if region < 1:
            center = start / float((inside @ start.astype(np.float32)).max())
            self._program.price_within((1 - region) * center, (1 + region) * center)
        else:
            self._program.price_within(np.zeros(len(start)), np.ones(len(start)))
        highest, cautious = 0.0, True
        while True:
            values = inside @ prices.astype(np.float32)
            bound = float(prices.sum() / values.max())
            if bound > highest:
                best, highest = prices / float(values.max()), bound
            if bound > self._gpus * (1 + 1e-4):
                break
            some = np.argpartition(-values, min(_NEW_SETS, len(values)) - 1)[:_NEW_SETS]
            new = self._program.add(
                {sets[at].tobytes(): dict.fromkeys(np.nonzero(inside[at])[0].tolist(), 1) for at in some}
            )
            if self._program.solve() is None or not (new or cautious):
                break
            cautious = new
            prices = 0.5 * (best + self._program.dual_prices) if new else self._program.dual_prices
        return best, highest
