"""Starts that fill one GPU after the other, for a search on several GPUs with many tasks each.

At the dual prices that come with the bound (:mod:`mig_opt.models.batch.dual_price_bound`) the pricing problem
(:mod:`mig_opt.batch.loads.columns`) has the tasks of most value that a GPU can run within some time, and their places.
With some twenty tasks on a GPU or more, hardly anything is lost if none is taken twice, and a search that moves some
tasks at a time never fills a GPU as well. So each GPU but the last gets the best of the tasks that are left, and a
short search puts all others on the last one. That takes too long then, but it is soon shared out.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.branches import Branches, Order
from mig_opt.batch.loads.columns import FilledMember, PricingProblem, grain_of, layout_of
from mig_opt.batch.loads.layouts import PlacedMember, regions_for
from mig_opt.batch.loads.local_search import Possible, Start
from mig_opt.batch.loads.part_search import PartSearch, PlacedTasks
from mig_opt.batch.loads.subsets import Reals
from mig_opt.batch.loads.tree import task_ticks

_GRAINS = 20_000
"""Grains of a GPU, at most."""

_LONGER = (0.05, 0.2)
"""GPUs are filled for as long as the bound, and about so much of what the best schedule takes longer: what they lose to
the bound is then as much as what the last one, which has what is left over, loses more."""

_LONG_TASKS = (0.0, 0.02)
"""By about which share a task that takes as long as the bound has more value: what is left over should be short."""

_ORDERS, _TRIES = 12, 4
"""Choices and orders of members of most value, and how many of them are tried for a GPU."""

_DRAWS = 3
"""Starts of which the one is taken whose GPUs together are shortest."""

_MOST_TABLES = 8
"""Threads that draw starts at a time: the tables of one take up to a tenth of a GiB."""

_CYCLES = 60
"""Cycles of the search for the places of all other tasks."""


class FilledStarts:
    """Source of starts that fill one GPU after the other.

    Parameters
    ----------
    batch : IntegerBatch
        On two GPUs or more; nothing is live.
    branches : Branches
        Branches of each of its GPUs.
    prices : array of float, shape (tasks,)
        Good dual prices of the tasks.
    within : callable
        Returns the ticks of the lower bound, and of the best schedule.
    """

    def __init__(
        self, batch: IntegerBatch, branches: Branches, prices: Reals, within: Callable[[], tuple[int, int]]
    ) -> None:
        self._problem, self._branches, self._prices, self._within = batch, branches, prices, within
        self._shortest: Reals = task_ticks(batch, branches.places).min(axis=1).astype(np.float64)
        self._parts = PartSearch(batch)
        self._tables = threading.Semaphore(_MOST_TABLES)

    def draw(self, rng: np.random.Generator, possible: Possible, over: Callable[[], bool]) -> Start:
        """Return a start, as a :data:`~mig_opt.batch.loads.local_search.Draw` does."""
        with self._tables:
            return self._best_of_draws(rng, possible, over)

    def _best_of_draws(self, rng: np.random.Generator, possible: Possible, over: Callable[[], bool]) -> Start:
        # Tasks run nowhere where they alone would end with the best schedule.
        _, upper = self._within()
        pricing = PricingProblem(self._problem, self._branches, upper, grain_of(self._branches, upper, _GRAINS))
        length, best = self._draw(pricing, rng, possible, over)
        work = best.work
        for _ in range(_DRAWS - 1):
            if over():
                break
            further, other = self._draw(pricing, rng, possible, over)
            work += other.work
            if further < length:
                length, best = further, other
        return Start(best.places, work)

    def _draw(
        self, pricing: PricingProblem, rng: np.random.Generator, possible: Possible, over: Callable[[], bool]
    ) -> tuple[float, Start]:
        """Return the ticks that all GPUs take together, and one start."""
        lower, upper = self._within()
        ticks = lower + int(rng.uniform(*_LONGER) * (upper - lower))
        prices = self._prices * (1 + rng.uniform(*_LONG_TASKS) * self._shortest / lower)
        places, work, length = np.full(len(possible), -1, np.int64), 0.0, 0.0
        first, last = 0, len(self._problem.gpus) - 1
        while first < last and prices.any() and not over():
            found = self._fill(pricing, prices, ticks, rng, over)
            self._parts.move(found, first, places)
            prices = np.where(places < 0, prices, 0.0)
            work += found.work
            first += 1
        rest = np.nonzero(places < 0)[0].tolist()
        if rest:
            found = self._parts.search(rest, last + 1 - first, _CYCLES, int(rng.integers(2**31)), possible, over)
            self._parts.move(found, first, places)
            work += found.work
            length = (last + 1 - first) * found.length
        return first * ticks + length, Start(places, work)

    def _fill(
        self,
        pricing: PricingProblem,
        prices: Reals,
        ticks: int,
        rng: np.random.Generator,
        over: Callable[[], bool],
    ) -> PlacedTasks:
        """Return places on the first GPU for tasks of much value, within so many ticks."""
        pricing.set_dual_prices(prices)
        values, fills = pricing.best_values(ticks), 1
        orders = [at for at in np.argsort(-values, kind="stable")[:_ORDERS].tolist() if values[at] > 0]
        best, highest = dict[int, int](), 0.0
        for at in rng.permutation(orders)[:_TRIES].tolist():
            if over():
                break
            members = self._members(pricing, self._branches.orders[at], prices, ticks, rng)
            fills += len(members)
            found = dict(self._places(members))
            value = float(prices[list(found)].sum())
            if value > highest:
                best, highest = found, value
        return PlacedTasks(best, fills * pricing.seconds, ticks)

    def _members(
        self, pricing: PricingProblem, order: Order, prices: Reals, ticks: int, rng: np.random.Generator
    ) -> list[FilledMember]:
        """Return members with tasks of much value: hardly any task twice, since later ones get it for nothing."""
        left, filled = prices.copy(), dict[int, FilledMember]()
        for place in rng.permutation(len(order)).tolist():
            if not left.any():
                break
            pricing.set_dual_prices(left)
            member = pricing.filled(order[place], place, ticks)
            filled[place] = member
            left[member.tasks] = 0.0
        return [member for _, member in sorted(filled.items())]

    def _places(self, members: Sequence[FilledMember]) -> Iterator[tuple[int, int]]:
        """Yield the tasks of members, and the place on the first GPU of each."""
        regions = regions_for(layout_of(members), self._branches.regions)
        assert regions is not None, "every layout has regions for its members"
        yield from _places_in(members, regions)


def _places_in(members: Sequence[FilledMember], regions: Sequence[PlacedMember]) -> Iterator[tuple[int, int]]:
    for member, (region, inside) in zip(members, regions, strict=True):
        for task, profile in member.own:
            yield task, region.places[profile]
        yield from _places_in(member.inside, inside)
