"""Sets of tasks of which some may be a whole schedule: all of about the mean value, each task in as many as the others.

With more than some ten tasks on a GPU, near the optimum a GPU can run millions of sets, far too many for a proof. But
for a schedule some hundred thousand do, if partitions are frequent among them. The values of the sets of a partition
add up to that of all tasks, so sets are of most use whose value is close to the mean. And a task that is in nearly all
sets, or in hardly any, is in the way. At the dual prices that leave the fewest sets of at least the mean value, each
task is in the same share of them: that is where the gradient of the soft maximum of their values vanishes, the
logarithm of the sum of their exponentials (Nesterov, 2005). Newton's method gets there in some steps, for each of which
a sample of the sets of most value is listed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mig_opt.batch.loads.columns import grain_of
from mig_opt.batch.loads.gpu_sets import GpuSets, Sample, valued
from mig_opt.batch.loads.layout_values import PricedTasks, priced_tasks
from mig_opt.batch.loads.subsets import Reals
from mig_opt.models.batch.block_search import BlockSearch, M
from mig_opt.models.batch.dual_price_bound import DualPrices
from mig_opt.models.batch.set_prices import GRAINS, SearchedSets, TooMuchError

_WEIGHED, _SAMPLE, _ENOUGH, _FEWEST = 2**14, Sample(2**13, 2**18), 10_000, 2_000
"""Sets from which the next dual prices come, at most; those that are listed for that; how many there are to be, about,
and at least."""

_BEYOND = 3.0
"""Logarithm of the factor by which they may be more, until those that exceed the mean value by more are listed."""

_REGULAR = 0.02
"""Variance that is added to that of each task, where few sets are known."""

_REACH, _UNEVEN = 0.5, 1.0
"""Longest step of Newton's method, and the longest one from prices that are even already: standard deviations of the
logarithms of the weights of the sets."""

_FIRST_EXCESS = 8e-4
"""Share of the mean value by which sets exceed it at first."""

_EFFORT, _LONG_EFFORT = 4, 32
"""Effort of a list for dual prices and of one for partitions, as a multiple of that of a list of all sets."""

_FIRST_SCALE = 1.5e-4
"""Share of the mean value in which the number of sets falls by the factor e, as long as it is not known."""

_FIRST_STEP, _LONGER, _SHORTER = 0.25, 1.2, 0.8
"""Part of the gap by which schedules may be longer than the bound at first, and its changes."""

_NUMBER, _LONG_SAMPLE = 1_500_000, Sample(2_000_000, 2_000_000)
"""Sets that are listed for partitions, about and at most."""

_WIDEST, _WIDEST_IN_SCALES, _SLOWER = 5e-4, 4.0, 1.7
"""Share of the mean value by which sets may be worth less, or how often their number may fall by the factor e, if that
is more; and how much more slowly their number falls close to the mean value."""

_COVERED = 0.1
"""Share of the layouts that have to be looked at: else the sets of a few tell nothing of the others."""

_FIRST_SHARE, _ROUGH, _SHARE = 0.2, 2.0, 0.6
"""Share of the layouts in a sample, at least, as long as the steps are longer than the second figure; and after that:
a few layouts have most of the sets, and those that are drawn must not decide on the prices."""

_MOST_LISTINGS = 32
"""Listings until the next sets, at most."""


class Evened(NamedTuple):
    """Next dual prices, and what is known of the sets from which they come."""

    prices: Reals
    uneven: float  # standard deviation of the logarithms of the weights by which the sets would be even
    scale: float  # share of the mean value in which the number of sets falls by the factor e


def evened(found: GpuSets, prices: Reals, gpus: int) -> Evened:
    """Return dual prices at which fewer sets are worth as much, and tasks are more evenly in them.

    That is a step of Newton's method for the least soft maximum of the values.
    """
    sets, values = (each[:: -(-len(found) // _WEIGHED)] for each in (found.sets, found.values))
    contents = (sets[:, np.newaxis] >> np.arange(len(prices)) & 1).astype(np.float64)
    # The number of sets falls exponentially as their value rises.
    scale = float((values.mean() - values.min() + 1) / values.mean())
    step = np.linalg.solve(np.cov(contents.T) + _REGULAR * np.eye(len(prices)), contents.mean(axis=0) - 1 / gpus)
    uneven = float(np.std(contents @ step))
    worth = float((contents @ prices).mean())
    new = np.maximum(prices - min(1.0, _REACH / max(uneven, 1e-9)) * scale * worth * step, 0.0)
    return Evened(new / new.sum(), uneven, scale)


class EvenSets(SearchedSets[M]):
    """Listing of sets of one GPU of several that are alike, for schedules as close to the bound as there are enough."""

    def __init__(self, search: BlockSearch[M], start: DualPrices, workers: int, *, expired: Callable[[], bool]) -> None:
        super().__init__(search, start.branches, workers, expired)
        self._branches, self._gpus = start.branches, len(search.problem.gpus)
        self.prices = start.prices / start.prices.sum()
        self._step = int(_FIRST_STEP * (search.upper - search.lower))
        self._excess, self._scale, self._uneven = _FIRST_EXCESS, _FIRST_SCALE, np.inf

    def found(self, *, schedules: bool) -> bool:
        """Say whether there were schedules of the last sets; return False if there is no more to be tried."""
        gap = self._search.upper - self._search.lower
        self._step = int(min(self._step, gap) * _SHORTER if schedules else self._step * _LONGER)
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
            at_most = search.lower + max(1, self._step)
            if self._expired() or at_most >= search.upper:
                break
            grain = grain_of(self._branches, at_most, GRAINS)
            tasks = priced_tasks(search.problem, self._branches, self.prices, at_most, grain)
            # Rounded to the nearest grain: nothing is to be proven.
            tasks = tasks._replace(raised_by=grain // 2)
            lowest = self._evened(tasks)
            if lowest is not None:
                tasks = tasks.at_prices(self.prices)
                long_sample = _LONG_SAMPLE._replace(highest=self._highest(tasks, lowest))
                found = self._worth(tasks, lowest, _LONG_EFFORT, long_sample)
                if len(found) >= _FEWEST:
                    # Even prices of the sets of most value are not quite those of these.
                    tasks = tasks.at_prices(evened(found, self.prices, self._gpus).prices)
                    found = valued(found, tasks)
                    found = found.at(self._gpus * found.values >= tasks.value * (1 + lowest))
                return found.at(found.values <= self._highest(tasks, lowest)), tasks
        raise TooMuchError

    def _evened(self, tasks: PricedTasks) -> float | None:
        """Even the dual prices; return what sets for partitions have to exceed the mean value by, a share below 0.

        Returned is None if the prices are not even yet, or the sets are too many or too few at this limit.
        """
        share = _FIRST_SHARE if self._uneven > _ROUGH else _SHARE
        found = self._worth(tasks, self._excess, _EFFORT, _SAMPLE._replace(share=share))
        covered = max(self.listing.covered, 0.01)
        if covered < _COVERED:
            self._excess += self._scale * (1.0 - np.log(covered))
            return None
        beyond = float(np.log(max(1, len(found)) / covered / _ENOUGH))
        if len(found) < _FEWEST:
            self._excess += self._scale * beyond
            if self._excess <= -_FIRST_SCALE:
                self._step, self._excess = int(_LONGER * self._step) + 1, 0.0
            return None
        self.prices, self._uneven, self._scale = evened(found, self.prices, self._gpus)
        lowest = self._excess - _SLOWER * self._scale * (float(np.log(_NUMBER / _ENOUGH)) - beyond)
        if beyond > _BEYOND:
            self._excess += self._scale * beyond
        if lowest > 0:
            self._step = int(_SHORTER * self._step)
        elif lowest < -max(_WIDEST, _WIDEST_IN_SCALES * self._scale):
            self._step = int(_LONGER * self._step) + 1
        elif self._uneven < _UNEVEN:
            return lowest
        return None

    def _highest(self, tasks: PricedTasks, lowest: float) -> int:
        """Return the value of a set for which the others of a partition can just make up, being worth less."""
        return int(tasks.value / self._gpus * (1 - (self._gpus - 1) * lowest))

    def _worth(self, tasks: PricedTasks, excess: float, effort: int, sample: Sample) -> GpuSets:
        """List some sets that exceed the mean value by a share of it."""
        return self.sets(tasks, int(tasks.value / self._gpus * (1 + excess)), effort, sample)
