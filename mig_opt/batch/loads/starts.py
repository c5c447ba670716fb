"""Starts for a search on several GPUs, from the dual prices that come with the bound.

A search that moves some tasks at a time hardly ever fills a GPU as well as the *patterns* do that come with the bound
(:mod:`mig_opt.models.batch.dual_price_bound`): sets of tasks that one GPU can run within about the bound. A start from
patterns (:class:`PatternStarts`) has some of them without a task in common, one for each GPU, and a short search puts
all other tasks on the other GPUs. These take too long then, but that is soon shared out, and most of what was gained
remains.

With some twenty tasks on a GPU or more, hardly anything is lost if no task is taken twice. So there each GPU but the
last gets the best of the tasks that are left (:class:`FilledStarts`), by the tables of the pricing problem
(:mod:`mig_opt.batch.loads.columns`), and a short search puts all others on the last one. So it is done for GPUs of
several kinds, too, with the last one of each kind.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.branches import Branches, Order
from mig_opt.batch.loads.columns import FilledMember, PricingProblem, grain_of, layout_of
from mig_opt.batch.loads.layouts import PlacedMember, regions_for
from mig_opt.batch.loads.local_search import LoadSearch, Possible, Start
from mig_opt.batch.loads.subsets import Integers, Reals
from mig_opt.batch.loads.tree import task_ticks

_OTHER_GPUS = 2
"""GPUs that share all other tasks beside patterns, at least; one, if there are only two."""

_CHOICES_OF_PATTERNS = 10
"""Draws, until there are patterns for all but the last GPUs."""

_PATTERN_CYCLES, _OTHER_CYCLES, _REST_CYCLES = 3, 10, 10
"""Cycles of the search for the places of a pattern on its GPU, of all other tasks, and of what filled GPUs leave."""

_GRAINS = 8_000
"""Grains of a GPU that is filled, at most."""

_LONGER, _MOST_LONGER = (0.2, 0.8), 0.01
"""GPUs are filled for as long as the bound, and about this share of what the best schedule takes longer, or of this
share of the bound if that is less: what they lose to the bound is then as much as what the last one, which has what is
left over, loses more."""

_LONG_TASKS = (0.0, 0.02)
"""Shares by about which a task as long as the bound has more value: what is left over should be short."""

_ORDERS, _ORDERS_TRIED = 12, 4
"""Choices and orders of members of most value, and how many of them are tried for a GPU."""

_MAX_TABLES = 8
"""Threads that draw starts at a time: the tables of one take up to a tenth of a GiB."""


class _PlacedTasks(NamedTuple):
    """Places of some tasks, by index."""

    places: dict[int, int]
    work: float  # approximate seconds to find them
    length: int  # ticks of the longest path


class _PartSearch:
    """Short searches on parts of a batch on which nothing is live."""

    def __init__(self, batch: IntegerBatch) -> None:
        self._problem = batch
        self._at = batch.on_gpu

    def search(
        self,
        some: Collection[int],
        gpus: Collection[int],
        cycles: int,
        seed: int,
        possible: Possible,
        over: Callable[[], bool],
    ) -> _PlacedTasks:
        """Return places with short paths for some tasks on some GPUs, after some cycles of a search.

        ``possible`` tells where each task of the whole may run, shape (tasks, places).
        """
        tasks, where = sorted(some), [at for gpu in self._problem.gpus if gpu in gpus for at in self._at[gpu]]
        part = self._problem.part(tasks, gpus)
        start = [
            next(at for at, place in enumerate(part.places) if task in place.durations) for task in range(len(tasks))
        ]
        search = LoadSearch(part, start, seed, 1)
        search.forbid(~possible[np.ix_(tasks, where)])
        with contextlib.closing(search.cycles(0, over)) as running:
            for _ in itertools.islice(running, cycles):
                if over():
                    break
        work = cycles * search.seconds_per_cycle
        places = {task: where[at] for task, at in zip(tasks, search.places, strict=True)}
        return _PlacedTasks(places, work, search.length)

    def move(self, found: _PlacedTasks, first: int, to: int, places: Integers) -> None:
        """Write the places that were found on a GPU into ``places``, shape (tasks,), on another one that is like it."""
        there = dict(zip(self._at[first], self._at[to], strict=True))
        for task, at in found.places.items():
            places[task] = there[at]


class PatternStarts:
    """Source of starts from patterns on two GPUs or more: tasks that fit well on one GPU together.

    Nothing is live. There is a pattern at least; each has the group of the GPUs that it is for.
    """

    def __init__(self, batch: IntegerBatch, patterns: Sequence[tuple[int, Sequence[int]]]) -> None:
        self._groups, self._parts = batch.groups, _PartSearch(batch)
        self._patterns = [(group, frozenset(tasks)) for group, tasks in patterns]
        # GPUs of each group that patterns have at most
        alike = len(self._groups) == 1
        self._most = [max(1, len(gpus) - _OTHER_GPUS) if alike else len(gpus) - 1 for gpus in self._groups]
        self._known: dict[int, _PlacedTasks] = {}

    def draw(self, rng: np.random.Generator, possible: Possible, over: Callable[[], bool]) -> Start:
        """Return a start, as a :data:`~mig_opt.batch.loads.local_search.Draw` does."""
        chosen = self._choose(rng)
        places, work = np.empty(len(possible), np.int64), 0.0
        rest = frozenset(range(len(possible))).difference(*(self._patterns[at][1] for at in chosen))
        empty = [list(gpus) for gpus in self._groups]
        for at in chosen:
            group, tasks = self._patterns[at]
            first = self._groups[group][0]
            # The first thread to need it must make no difference: the seed is the pattern's, and the work counts twice.
            found = self._known.get(at)
            if found is None or not all(possible[task, place] for task, place in found.places.items()):
                found = self._known[at] = self._parts.search(tasks, [first], _PATTERN_CYCLES, at, possible, over)
            self._parts.move(found, first, empty[group].pop(0), places)
            work += found.work
        if rest:
            gpus, seed = [gpu for gpus in empty for gpu in gpus], int(rng.integers(2**31))
            found = self._parts.search(rest, gpus, _OTHER_CYCLES, seed, possible, over)
            places[list(found.places)] = list(found.places.values())
            work += found.work
        return Start(places, work)

    def _choose(self, rng: np.random.Generator) -> list[int]:
        """Draw patterns without a task in common."""
        best: list[int] = []
        for _ in range(_CHOICES_OF_PATTERNS):
            chosen, taken = list[int](), frozenset[int]()
            left = list(self._most)
            for at in rng.permutation(len(self._patterns)).tolist():
                group, tasks = self._patterns[at]
                if left[group] > 0 and not taken & tasks:
                    chosen.append(at)
                    taken |= tasks
                    left[group] -= 1
            best = max(best, chosen, key=len)
            if not any(left):
                break
        return best


class FilledStarts:
    """Source of starts that fill one GPU after the other, for two GPUs or more, from good dual prices of the tasks.

    Nothing is live. ``groups`` has the branches of the GPUs that are alike; ``within`` returns the ticks of the lower
    bound, and of the best schedule.
    """

    def __init__(
        self, batch: IntegerBatch, groups: Sequence[Branches], prices: Reals, within: Callable[[], tuple[int, int]]
    ) -> None:
        self._problem, self._groups, self._prices, self._within = batch, groups, prices, within
        kinds = [place for branches in groups for place in branches.places]
        self._shortest: Reals = task_ticks(batch, kinds).min(axis=1).astype(np.float64)
        self._parts = _PartSearch(batch)
        self._tables = threading.Semaphore(_MAX_TABLES)

    def draw(self, rng: np.random.Generator, possible: Possible, over: Callable[[], bool]) -> Start:
        """Return a start, as a :data:`~mig_opt.batch.loads.local_search.Draw` does."""
        with self._tables:
            return self._draw(rng, possible, over)

    def _draw(self, rng: np.random.Generator, possible: Possible, over: Callable[[], bool]) -> Start:
        lower, upper = self._within()
        ticks = lower + int(rng.uniform(*_LONGER) * min(upper - lower, _MOST_LONGER * lower))
        prices = self._prices * (1 + rng.uniform(*_LONG_TASKS) * self._shortest / lower)
        places, work = np.full(len(possible), -1, np.int64), 0.0
        empty = list(self._problem.gpus)
        turns = [(branches, gpu) for branches in self._groups for gpu in branches.gpus[:-1]]
        if len(self._groups) > 1:
            turns = [turns[at] for at in rng.permutation(len(turns)).tolist()]
        for branches, gpu in turns:
            if over() or not prices[places < 0].any():
                break
            left = np.nonzero(places < 0)[0]
            found = self._fill(branches, left.tolist(), prices[left], ticks, rng, over)
            self._parts.move(found, branches.gpus[0], gpu, places)
            work += found.work
            empty.remove(gpu)
        rest = np.nonzero(places < 0)[0].tolist()
        if rest:
            found = self._parts.search(rest, empty, _REST_CYCLES, int(rng.integers(2**31)), possible, over)
            places[list(found.places)] = list(found.places.values())
            work += found.work
        return Start(places, work)

    def _fill(
        self,
        branches: Branches,
        left: Sequence[int],
        prices: Reals,
        ticks: int,
        rng: np.random.Generator,
        over: Callable[[], bool],
    ) -> _PlacedTasks:
        """Return places for some of the tasks that are left, of much value, within some ticks, on the first GPU."""
        # Tasks run nowhere where they alone would end with the best schedule.
        _, upper = self._within()
        grain = grain_of(branches, upper, _GRAINS)
        pricing = PricingProblem(self._problem, branches, upper, grain, left)
        pricing.set_dual_prices(prices)
        values, fills = pricing.best_values(ticks), 1
        orders = [at for at in np.argsort(-values, kind="stable")[:_ORDERS].tolist() if values[at] > 0]
        best, highest = dict[int, int](), 0.0
        for at in rng.permutation(orders)[:_ORDERS_TRIED].tolist():
            if over():
                break
            members = self._members(pricing, branches.orders[at], prices, ticks, rng)
            fills += len(members)
            found = dict(_places_of(members, branches))
            value = float(prices[list(found)].sum())
            if value > highest:
                best, highest = found, value
        return _PlacedTasks({left[task]: place for task, place in best.items()}, fills * pricing.seconds, ticks)

    def _members(
        self, pricing: PricingProblem, order: Order, prices: Reals, ticks: int, rng: np.random.Generator
    ) -> list[FilledMember]:
        """Return members with tasks of much value: hardly any task twice, since later ones get it for nothing."""
        left, filled = prices.copy(), dict[int, FilledMember]()
        for place in rng.permutation(len(order)).tolist():
            if not left.any():
                break
            pricing.set_dual_prices(left, member=order[place])
            member = pricing.filled(order[place], place, ticks)
            filled[place] = member
            left[member.tasks] = 0.0
        return [member for _, member in sorted(filled.items())]


def _places_of(members: Sequence[FilledMember], branches: Branches) -> Iterator[tuple[int, int]]:
    """Yield the tasks of members, and the place on the first GPU of each."""
    regions = regions_for(layout_of(members), branches.regions)
    assert regions is not None, "every layout has regions for its members"
    yield from _places_in(members, regions)


def _places_in(members: Sequence[FilledMember], regions: Sequence[PlacedMember]) -> Iterator[tuple[int, int]]:
    for member, (region, inside) in zip(members, regions, strict=True):
        for task, profile in member.own:
            yield task, region.places[profile]
        yield from _places_in(member.inside, inside)
