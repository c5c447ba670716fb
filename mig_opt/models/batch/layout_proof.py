"""Proofs for some dozens of tasks: every layout that dual prices leave, and every assignment to its placements.

A *layout* says which placements each GPU uses, and in which order they are first created
(:mod:`mig_opt.loads.layouts`). Dual prices rule out most of them within a limit of time; prices of their own
(:mod:`mig_opt.loads.layout_prices`) rule out nearly all of the others. For each layout that is left, they exclude
nearly all sets of tasks (:mod:`mig_opt.loads.layout_sets`). The assignments that are left, mostly none, are decided by
block models. If all are, no better schedule is within the limit.

The limit begins close to the bound and grows, since the work does as well: so the bound rises step by step, and where
some assignment is left, its schedule is mostly the best.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from mig_opt.loads.layout_sets import MOST_TASKS, LayoutSets
from mig_opt.loads.layout_values import PricedTasks
from mig_opt.loads.layouts import MOST_LAYOUTS, number_of_layouts
from mig_opt.models.batch.bounded_layouts import BoundedLayout, BoundedLayouts
from mig_opt.models.batch.candidates import decide
from mig_opt.models.batch.dual_price_bound import DualPrices
from mig_opt.models.batch.search import BlockSearch, M

_DESCENTS = ((10_000, 12), (40_000, 30))
"""Grains, and times that the values of a layout are computed for its own prices, at most; the second if the first do
not rule it out."""

_MOST_SETS = 2**22
"""Sets of a branch, at most."""

_FEW_CANDIDATES, _MOST_CANDIDATES = 20, 500
"""Assignments with some layouts that are taken at first, as their schedules may make the limit shorter; and at most."""

_STEPS, _GROWTH, _SHRINKING = 16, 2, 4
"""The first limit is above the bound by so small a part of the gap. Each further step is so many times as long; after
one that was too long, the next is that many times shorter."""

_POLISH = 0.05
"""Share of the time that is left for the best order of operations of one assignment, where they are too many."""

_STEPS_PER_SECOND, _SECONDS_PER_LAYOUT = 4e8, 0.005
"""Sets and pairs of them that a thread looks at; seconds for the tables of a layout."""


def prove_by_layouts(search: BlockSearch[M], dual_prices: DualPrices, share: float = 1.0) -> None:
    """Prove the best schedule of a search optimal, or find a better one, or at least raise the bound.

    Parameters
    ----------
    search : BlockSearch
        With a schedule, the better the quicker. Nothing is live.
    dual_prices : DualPrices
        Good dual prices.
    share : float
        Largest share of the time that is left.
    """
    remaining = search.control.remaining
    end = math.inf if remaining is None else search.control.clock + remaining * share
    if len(search.problem.batch.tasks) > MOST_TASKS or number_of_layouts(dual_prices.branches) > MOST_LAYOUTS:
        return
    proof = _LayoutProof(search, dual_prices, end)
    if not proof.possible:
        return
    step = max(1, (search.upper - search.lower) // _STEPS)
    failed = search.upper
    while search.open and not proof.expired and search.lower < min(failed, search.upper):
        at_most = min(search.lower + step, failed, search.upper) - 1
        if proof.work_through(at_most):
            search.raise_lower(min(at_most + 1, search.upper))
            step *= _GROWTH
        else:
            # Better schedules may have been found, but the bound needs smaller steps.
            failed, step = at_most, max(1, (at_most - search.lower) // _SHRINKING)


class _LayoutProof:
    """Proof by layouts within limits of time that grow."""

    def __init__(self, search: BlockSearch[M], dual_prices: DualPrices, end: float) -> None:
        self._end = end
        self._search = search
        self._decided: set[tuple[int, ...]] = set()
        self._bounded = BoundedLayouts(search, dual_prices, lambda: self._left)
        self._layouts = self._bounded.layouts()
        self._stopped = False

    @property
    def expired(self) -> bool:
        """True if the time is up."""
        return self._search.control.expired or self._search.control.clock >= self._end

    @property
    def _left(self) -> float:
        """Seconds that are left."""
        return 0.0 if self.expired else self._end - self._search.control.clock

    @property
    def possible(self) -> bool:
        """True if the layouts are not too many."""
        return self._layouts is not None

    def work_through(self, at_most: int) -> bool:
        """Decide every assignment within so many ticks; return False if that was not possible."""
        self._stopped = False
        for grains, rounds in _DESCENTS:
            if not self._bounded.rule_out(self._within(at_most), at_most, grains, rounds):
                return False
        with ThreadPoolExecutor(self._search.control.workers) as pool:
            # Few layouts at a time: a better schedule makes the limit shorter for those that follow.
            few = self._search.control.workers
            layouts = sorted(self._within(at_most), key=lambda layout: layout.lower)
            for start in range(0, len(layouts), few):
                if not self._decide_all(layouts[start : start + few], at_most, pool):
                    self._stopped = True
                    return False
        return True

    def _within(self, at_most: int) -> list[BoundedLayout]:
        return [layout for layout in self._layouts or () if layout.lower <= at_most]

    def _decide_all(self, layouts: Sequence[BoundedLayout], at_most: int, pool: ThreadPoolExecutor) -> bool:
        """Decide the assignments of some layouts; return False if they are too many or the time is up."""
        search = self._search
        most = _FEW_CANDIDATES
        while True:
            limit = min(at_most, search.upper - 1)
            some = [layout for layout in layouts if layout.lower <= limit]
            work = functools.partial(self._assignments, tasks=self._bounded.tasks(limit), most=most)
            results = list(pool.map(work, some))
            for result in results:
                search.control.spend(_SECONDS_PER_LAYOUT + result.steps / _STEPS_PER_SECOND)
            found = {places for result in results for places in result.assignments} - self._decided
            # The shortest schedules first, since they exclude others.
            ranked = sorted(found, key=search.offer_nested)
            if all(result.complete for result in results):
                return all(self._decide(places) for places in ranked)
            if self.expired or not search.open:
                return False
            for places in ranked[:1]:
                search.polish(places, _POLISH)
            # If that has made the limit shorter, fewer are within it.
            if search.upper - 1 >= limit:
                if most == _MOST_CANDIDATES or any(result.too_large for result in results):
                    return False
                most = _MOST_CANDIDATES

    def _decide(self, places: tuple[int, ...]) -> bool:
        """Decide an assignment, as long as anything is open."""
        if not self._search.open or not decide(self._search, places):
            return False
        self._decided.add(places)
        return True

    def _assignments(self, layout: BoundedLayout, tasks: PricedTasks, most: int) -> _Found:
        """Find all assignments with some layouts that the loads allow within the limit."""
        problem = self._search.problem
        if layout.prices is not None:
            tasks = tasks.at_prices(layout.prices)
        sets = LayoutSets(layout.tree, tasks, _MOST_SETS, may_be_empty=problem.operations_take_no_time)

        def expired() -> bool:
            return self._stopped or self.expired

        if not sets.fill(expired):
            return _Found(sets.steps, (), complete=False, too_large=True)
        few = list(itertools.islice(sets.assignments(expired), most + 1))
        assignments = tuple(tuple(problem.canonical(places)) for places in few)
        return _Found(sets.steps, assignments, complete=len(few) <= most and not expired(), too_large=False)


class _Found(NamedTuple):
    """Assignments with some layouts, and the sets and pairs of sets that were looked at for them."""

    steps: int
    assignments: tuple[tuple[int, ...], ...]
    complete: bool  # false if there are more of them, or the time was up
    too_large: bool  # true if there are too many sets
