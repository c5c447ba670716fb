"""Sets of tasks of which some may be a whole schedule: all of about the mean value, each task in as many as the others.

With more than some ten tasks on a GPU, near the optimum a GPU can run millions of sets, far too many for a proof. But
for a schedule some hundred thousand do, if partitions are frequent among them. The values of the sets of a partition
add up to that of all tasks, so sets are of most use whose value is close to the mean. And a task that is in nearly all
sets, or in hardly any, is in the way. At the dual prices that leave the fewest sets of at least the mean value, each
task is in the same share of them: that is where the gradient of the soft maximum of their values vanishes, the
logarithm of the sum of their exponentials (Nesterov, 2005). Newton's method gets there in some short steps, for each of
which a sample is listed.

Lists are *thinned*: of each branch of a layout only the sets remain that can be worth most. That takes the same time
whatever the limit, so the first schedules come when the limit is still far above the bound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mig_opt.batch.loads.columns import grain_of
from mig_opt.batch.loads.gpu_sets import GpuSets, Thinning
from mig_opt.batch.loads.layout_values import PricedTasks, best_layouts, priced_tasks
from mig_opt.batch.loads.layouts import Layout
from mig_opt.batch.loads.subsets import Reals, contents
from mig_opt.models.batch.block_search import BlockSearch, M
from mig_opt.models.batch.dual_price_bound import DualPrices
from mig_opt.models.batch.set_prices import SearchedSets, TooMuchError

_GRAINS = 1_000
"""Grains of a schedule, at most. Times are rounded to the nearest one: nothing is proven here."""

_WEIGHED = 2**14
"""Sets from which the next dual prices come, at most."""

_REGULAR, _REACH = 0.1, 0.3
"""Variance that is added to that of each task, as few sets are known; and the longest step of Newton's method, in
standard deviations of the logarithms of the weights of the sets."""

_EVEN = 0.8
"""The longest step of Newton's method from prices that are even: else the next ones are sought."""

_WINDOW = 5e-4
"""Share of the mean value by which sets may be worth less."""

_EXCESS = 8e-4
"""Share of the mean value by which the median of a sample exceeds it, at most: else the limit comes down as much, but
not by more than half of what it exceeds the bound."""

_SAMPLE, _FEWEST = Thinning(500, 120), 1_000
"""Sets for the next dual prices; and how many there have to be."""

_LONG, _FEW, _MANY = Thinning(1_200, 5_000), 5_000, 400_000
"""Sets for partitions; how many there have to be, and how many are of use."""

_LAYOUTS, _SAMPLED, _LISTED = 400, 50, 150
"""Layouts of most value that are known at a time; those of a sample, and of a list for partitions."""

_KNOWN = 2 / 3
"""Share of the layouts of a sample that had the most sets before; the others are new."""

_FIRST_STEP, _SHORTER, _LONGER, _TOO_SHORT = 0.5, 0.7, 1.2, 0.1
"""Part of the gap by which schedules may be longer than the bound at first, its changes after a schedule and after
none, and the part of the gap that is added where sets are too few."""

_SECONDS_PER_LAYOUT = 2e-4
"""Seconds to find one of the layouts of most value."""

_MOST_LISTINGS = 32
"""Listings until the next sets, at most."""


class Evened(NamedTuple):
    """Next dual prices, and how even the last ones were."""

    prices: Reals
    uneven: float  # standard deviation of the logarithms of the weights by which the sets would be even


def evened(found: GpuSets, prices: Reals, gpus: int) -> Evened:
    """Return dual prices at which fewer sets are worth as much, and tasks are more evenly in them.

    That is a step of Newton's method for the least soft maximum of the values.
    """
    sets, values = (each[:: -(-len(found) // _WEIGHED)] for each in (found.sets, found.values))
    inside = contents(sets, len(prices)).astype(np.float64)
    # The number of sets falls exponentially as their value rises.
    scale = float((np.median(values) - values.min() + 1) / values.mean() / np.log(2))
    step = np.linalg.solve(np.cov(inside.T) + _REGULAR * np.eye(len(prices)), inside.mean(axis=0) - 1 / gpus)
    uneven = float(np.std(inside @ step))
    worth = float((inside @ prices).mean())
    new = np.maximum(prices - min(1.0, _REACH / max(uneven, 1e-9)) * scale * worth * step, 0.0)
    return Evened(new / new.sum(), uneven)


class EvenSets(SearchedSets[M]):
    """Listing of sets of one GPU of several that are alike, for schedules as close to the bound as there are enough."""

    def __init__(self, search: BlockSearch[M], start: DualPrices, workers: int, *, expired: Callable[[], bool]) -> None:
        super().__init__(search, start.branches, workers, expired)
        self._branches, self._gpus = start.branches, len(search.problem.gpus)
        self.prices = start.prices / start.prices.sum()
        self._random = np.random.default_rng(search.control.seed)
        self._known: dict[Layout, float] = {}  # about the sets that were listed of each layout
        self._best = 0.0  # share of the mean value by which as many layouts exceed it as are wanted
        self.restart()

    def restart(self, effort: int = 1) -> None:
        """Begin again with schedules half-way between the bound and the best one, and lists that many times longer."""
        self._effort = effort
        self._step = _FIRST_STEP * (self._search.upper - self._search.lower)

    def found(self, *, schedules: bool) -> bool:
        """Say whether there were schedules of the last sets; return False if there is no more to be tried."""
        gap = self._search.upper - self._search.lower
        self._lengthen((min(self._step, gap) * _SHORTER if schedules else self._step * _LONGER) - self._step)
        return self._step < gap

    def next_sets(self) -> tuple[GpuSets, PricedTasks]:
        """List the next sets, and return them with the tasks at their dual prices.

        Raises
        ------
        TooMuchError
            If there are none that are even, or the time is up.
        """
        search = self._search
        for _ in range(_MOST_LISTINGS):
            tasks = self._tasks()
            if self._expired() or tasks.at_most >= search.upper:
                break
            mean = tasks.value / self._gpus
            sample = self._listed(tasks, _SAMPLE)
            if len(sample) < _FEWEST:
                self._lengthen(_TOO_SHORT * (search.upper - search.lower))
                continue
            self.prices, uneven = evened(sample, self.prices, self._gpus)
            excess = float(np.median(sample.values)) / mean - 1 - _EXCESS
            if excess > 0:
                self._lengthen(-min(excess * tasks.at_most, 0.5 * self._step))
            elif uneven < _EVEN:
                tasks = tasks.at_prices(self.prices)
                mean = tasks.value / self._gpus
                # The others of a partition can just make up for the least of them.
                highest = int(mean * (1 + (self._gpus - 1) * _WINDOW))
                long = Thinning(self._effort * _LONG.of_branch, self._effort * _LONG.of_layout, highest)
                found = self._listed(tasks, long)
                if len(found) >= _FEW:
                    self.prices = evened(found, self.prices, self._gpus).prices
                    away = found.values / mean - 1
                    away = np.maximum(-away, away / (self._gpus - 1))
                    nearest = np.sort(np.argsort(away, kind="stable")[: self._effort * _MANY])
                    return found.at(nearest), tasks
                self._lengthen(_TOO_SHORT * (search.upper - search.lower))
        raise TooMuchError

    def _lengthen(self, ticks: float) -> None:
        """Let schedules be that much longer; layouts are then worth about as much more."""
        self._step = max(1.0, self._step + ticks)
        self._best += ticks / max(1, self._search.lower)

    def _tasks(self) -> PricedTasks:
        at_most = self._search.lower + max(1, int(self._step))
        grain = grain_of(self._branches, at_most, _GRAINS)
        tasks = priced_tasks(self._search.problem, self._branches, self.prices, at_most, grain)
        return tasks._replace(raised_by=grain // 2)

    def _listed(self, tasks: PricedTasks, thinning: Thinning) -> GpuSets:
        """List some sets of about the mean value, and keep in mind how many each layout has."""
        mean = tasks.value / self._gpus
        guess, least = int(mean * (1 + self._best)), int(mean * (1 - _WINDOW))
        layouts, value = best_layouts(self._branches, tasks, guess, least, _LAYOUTS)
        self._best = value / mean - 1
        self._search.control.spend(_SECONDS_PER_LAYOUT * len(layouts))
        drawn = self._drawn(layouts, long=thinning.highest < tasks.value)
        found = self.some(tasks, drawn, least, thinning)
        counts = np.bincount(found.layouts, minlength=len(self.listing.layouts)) / thinning.of_layout
        for layout, count in zip(self.listing.layouts, counts.tolist(), strict=True):
            self._known[layout] = 0.5 * (self._known.get(layout, count) + count)
        return found

    def _drawn(self, layouts: list[Layout], *, long: bool) -> list[Layout]:
        """Draw the layouts of a sample, or of a long list: those that had sets, and in a sample others."""
        new = [layout for layout in layouts if layout not in self._known]
        known = [layout for layout in layouts if layout in self._known]
        drawn = self._random.uniform(0.5, 1.5, len(known)) * [self._known[layout] for layout in known]
        ranked = [known[at] for at in np.argsort(-drawn, kind="stable")]
        if not long:
            first = ranked[: int(_KNOWN * _SAMPLED)]
            return [*first, *new, *ranked[len(first) :]][:_SAMPLED]
        # Where layouts have few sets, as with few tasks on a GPU, there are more of them.
        enough = np.cumsum([self._known[layout] * _LONG.of_layout for layout in ranked]) < 2 * _MANY
        most = self._effort * max(_LISTED, int(enough.sum()))
        have = [layout for layout in ranked if self._known[layout] > 0][:most]
        return have if 3 * len(have) >= most else [*have, *new][:most]
