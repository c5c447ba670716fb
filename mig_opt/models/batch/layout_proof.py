"""Proofs for some dozens of tasks: every layout that dual prices leave, and every assignment to its placements.

A *layout* says which placements each GPU uses, and in which order they are first created
(:mod:`mig_opt.batch.loads.layouts`). Dual prices rule out most of them within a limit of time; prices of their own
(:mod:`mig_opt.batch.loads.layout_bounds`) rule out nearly all of the others. For each layout that is left, they exclude
nearly all sets of tasks (:mod:`mig_opt.batch.loads.task_sets`). The assignments that are left, mostly none, are
decided by block models. If all are, no better schedule is within the limit.

The limit begins close to the bound and grows, since the work does as well: so the bound rises step by step, and where
some assignment is left, its schedule is mostly the best.

With more than some 35 tasks the sets of a layout are too many, but each layout is decided in an order of its operations
(:mod:`mig_opt.models.batch.layout_search`).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from mig_opt.batch.loads.layout_values import PricedTasks
from mig_opt.batch.loads.layouts import MAX_LAYOUTS, number_of_layouts
from mig_opt.batch.loads.task_sets import MAX_TASKS_OF_SETS, TaskSets
from mig_opt.models.batch.block_search import BlockSearch, M
from mig_opt.models.batch.bounded_layouts import BoundedLayout, BoundedLayouts

_GRAINS_OF_PRICES, _ROUNDS, _GRAINS = 5_000, 12, 10_000
"""Grains of a schedule, and times that the values of a layout are computed, for its own dual prices, at most; grains
where sets are listed."""

_MAX_SETS, _MAX_PAIRS = 2**22, 2**62
"""Sets of a branch, and pairs of them that are looked at in a layout, at most."""

_FIRST_STEP = 16
"""Part of the gap by which the limit grows at first."""

_FIRST_CANDIDATES, _MAX_CANDIDATES = 20, 500
"""Assignments with some layouts that are taken at first, as their schedules may make the limit shorter; and at most."""

_GROWTH, _SHRINKING = 2, 4
"""Factor of each further step of the limit; divisor of the next one after a step that was too long."""

_POLISH_SHARE = 0.05
"""Share of the time that is left for the best order of operations of one assignment, where they are too many."""

_STEPS_PER_SECOND, _SECONDS_PER_GRAIN = 4e8, 5e-7
"""Sets and pairs of them that a thread looks at; seconds for the tables of a layout, for each of their grains."""


def prove_by_layouts(search: BlockSearch[M], bounded: BoundedLayouts, share: float = 1.0) -> None:
    """Prove the best schedule of a search optimal, or find a better one, or at least raise the bound.

    The better the schedule of the search, the quicker. Its layouts get better bounds.
    """
    if len(search.problem.batch.tasks) > MAX_TASKS_OF_SETS or number_of_layouts(bounded.branches) > MAX_LAYOUTS:
        return
    bounded.end = search.control.end_of(share)
    layouts = bounded.layouts()
    if layouts is None:
        return
    _LayoutProof(search, bounded, layouts).raise_lower()


class _LayoutProof:
    """Proof by all layouts, within limits of time that grow."""

    def __init__(self, search: BlockSearch[M], bounded: BoundedLayouts, layouts: Sequence[BoundedLayout]) -> None:
        self._search, self._bounded, self._layouts = search, bounded, layouts
        self._decided: set[tuple[int, ...]] = set()
        self._stopped = False

    @property
    def expired(self) -> bool:
        """True if the time is up."""
        return self._bounded.left() <= 0

    def raise_lower(self) -> None:
        """Raise the bound step by step, until the least step is too long."""
        search = self._search
        step, failed = max(1, (search.upper - search.lower) // _FIRST_STEP), search.upper
        while search.open and not self.expired and search.lower < min(failed, search.upper):
            at_most = min(search.lower + step, failed, search.upper) - 1
            if self._decide_within(at_most):
                search.raise_lower(min(at_most + 1, search.upper))
                step *= _GROWTH
            else:
                # Better schedules may have been found, but the bound needs smaller steps.
                failed, step = at_most, max(1, (at_most - search.lower) // _SHRINKING)

    def _decide_within(self, at_most: int) -> bool:
        """Decide every assignment within some ticks; return False if that was not possible.

        Layouts without one get a higher bound; better schedules go to the search.
        """
        search, layouts = self._search, [layout for layout in self._layouts if layout.lower <= at_most]
        if not self._bounded.rule_out(layouts, min(at_most, search.upper - 1), _GRAINS_OF_PRICES, _ROUNDS):
            return False
        with ThreadPoolExecutor(search.control.workers) as pool:
            # Few layouts at a time: a better schedule makes the limit shorter for those that follow.
            few = search.control.workers
            ranked = sorted((one for one in layouts if one.lower <= at_most), key=lambda layout: layout.lower)
            return all(
                self._decide_all(ranked[start : start + few], at_most, pool) for start in range(0, len(ranked), few)
            )

    def _decide_all(self, layouts: Sequence[BoundedLayout], at_most: int, pool: ThreadPoolExecutor) -> bool:
        """Decide the assignments of some layouts; return False if they are too many or the time is up."""
        search = self._search
        most = _FIRST_CANDIDATES
        while True:
            limit = min(at_most, search.upper - 1)
            some = [layout for layout in layouts if layout.lower <= limit]
            results = self._all_assignments(some, self._bounded.tasks(limit, _GRAINS), most, pool)
            found = {places for result in results for places in result.assignments} - self._decided
            # The shortest schedules first, since they exclude others.
            ranked = sorted(found, key=search.report_nested)
            if all(result.complete for result in results):
                if not all(self._decide(places) for places in ranked):
                    return False
                for layout in some:
                    layout.lower = min(limit + 1, search.upper)
                return True
            if self.expired or not search.open:
                return False
            for places in ranked[:1]:
                search.polish(places, _POLISH_SHARE)
            # If that has made the limit shorter, fewer are within it.
            if search.upper - 1 >= limit:
                if most == _MAX_CANDIDATES or any(result.too_large for result in results):
                    return False
                most = _MAX_CANDIDATES

    def _all_assignments(
        self, layouts: Sequence[BoundedLayout], tasks: PricedTasks, most: int, pool: ThreadPoolExecutor
    ) -> list[_Found]:
        """Find the assignments with each of some layouts, in several threads."""
        control = self._search.control
        work = functools.partial(self._assignments, tasks=tasks, most=most)
        try:
            results = list(pool.map(work, layouts))
        except BaseException:  # Ctrl-C: the threads have to know
            self._stopped = True
            raise
        for result in results:
            control.spend(_SECONDS_PER_GRAIN * tasks.grains + result.steps / _STEPS_PER_SECOND)
        return results

    def _decide(self, places: tuple[int, ...]) -> bool:
        """Decide an assignment, as long as anything is open."""
        if not self._search.open or not self._search.decide(places):
            return False
        self._decided.add(places)
        return True

    def _assignments(self, layout: BoundedLayout, tasks: PricedTasks, most: int) -> _Found:
        """Find all assignments with some layouts that the loads allow within the limit."""
        problem = self._search.problem
        if layout.prices is not None:
            tasks = tasks.at_prices(layout.prices)
        # In deterministic runs the clock stands still meanwhile.
        left = self._bounded.left() if self._search.control.deterministic else math.inf
        most_pairs = int(min(_MAX_PAIRS, left * _STEPS_PER_SECOND))
        may_be_empty = problem.operations_take_no_time or not self._bounded.branches.tell_all
        sets = TaskSets(layout.tree, tasks, _MAX_SETS, most_pairs, may_be_empty=may_be_empty)

        def expired() -> bool:
            return self._stopped or self.expired

        if not sets.fill(expired):
            return _Found(sets.steps, (), complete=False, too_large=True)
        few = list(itertools.islice(sets.assignments(expired), most + 1))
        assignments = tuple(tuple(problem.symmetry_reduced(places)) for places in few)
        return _Found(sets.steps, assignments, complete=len(few) <= most and not expired(), too_large=False)


class _Found(NamedTuple):
    """Assignments with some layouts, and the sets and pairs of sets that were looked at for them."""

    steps: int
    assignments: tuple[tuple[int, ...], ...]
    complete: bool  # false if there are more of them, or the time was up
    too_large: bool  # true if there are too many sets or pairs, or the time was up
