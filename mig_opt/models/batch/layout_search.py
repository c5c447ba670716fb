"""Search layout by layout, for batches with too many tasks for their sets: bounds and better schedules by CP-SAT.

In one layout (:mod:`mig_opt.batch.loads.layouts`) all operations are known, so what remains is to assign each task to a
placement: a small model without order in time. Dual prices of their own (:mod:`mig_opt.models.batch.bounded_layouts`)
rule out all but a few of the layouts that may have a schedule close to the bound, which rises with each step. The model
of each that is left is worked on for some seconds, again and again for longer: that finds the schedules close to the
bound.

Without dual prices, as with a hundred tasks, the bounds of divided tasks (:mod:`mig_opt.batch.loads.layout_bounds`) and
then of divided loads (:mod:`mig_opt.models.batch.layout_relaxation`) rule out nearly all choices of placements, in
whatever order they are created. The others become a layout for each order of their operations in which they may still
have a better schedule. The bound of the best one is mostly as long as a schedule, whose loads are divided to the tick:
that proves most batches of 100 to 10,000 tasks.
"""

from __future__ import annotations

import heapq
import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from ortools.sat.python import cp_model

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.branches import branches_of
from mig_opt.batch.loads.layout_values import OpenLayout
from mig_opt.batch.loads.layouts import (
    MAX_LAYOUTS,
    LayoutTree,
    in_one_order,
    layouts_in,
    number_of_layouts,
)
from mig_opt.batch.loads.tree import task_ticks
from mig_opt.models.batch.block_search import BlockSearch, M
from mig_opt.models.batch.bounded_layouts import (
    FINE_DESCENTS,
    SECONDS_PER_LAYOUT,
    BoundedLayout,
    BoundedLayouts,
    bound_layouts,
)
from mig_opt.models.batch.layout_relaxation import LayoutRelaxation
from mig_opt.models.solvers.backend import Request
from mig_opt.models.solvers.cpsat import run
from mig_opt.models.solvers.highs import Highs

_MAX_CHOICES = 100_000
"""Choices of placements that are looked at without dual prices, at most. Each order of first creations is a layout of
its own, but bounds rule out most choices in whatever order they are created."""

_LISTING_SHARE = 0.5
"""Share of the time that is left for a list of choices, at most: else it is not begun."""

_FIRST_SECONDS = 1.0
"""Seconds for a layout; each further time twice as many."""

_IDLE_SECONDS = 4.0
"""Seconds without a better bound or schedule, after which another search has its turn: in some batches one layout is as
good as hundreds of others."""

_STEPS, _MIN_LAYOUTS = 8, 8
"""Part of the gap by which schedules that dual prices are to rule out are longer than the bound; twice that, if they
leave fewer layouts than the second number."""

_LONGEST_STEP = 5e-4
"""The part of the bound that this is at most: dual prices rule out few layouts that are far above it."""

_PRICING_SHARE = 0.25
"""Share of the time that is left for one of these, at most."""

_BOUND_SECONDS = 0.5
"""Seconds for the bound of a layout with whole tasks and divided loads, at most: mostly a hundredth is enough, and the
others have schedules that are as good as the best one."""

_SECONDS_PER_MODEL, _SECONDS_PER_RELAXATION = 0.01, 0.005
"""Seconds to build the model of a layout, and to relax it."""

_AT_A_TIME = 32
"""Layouts of a thread that are relaxed, or bounded by their relaxation, before the time is asked for."""

_RELAXED_AT_ONCE, _DIVIDED_AT_ONCE = 64, 16
"""Layouts that are relaxed before anything else; and those of them whose loads are divided."""

_DIVIDED_PARTS = (256, 16, 4)
"""Parts of the gap of a layout within which it is to have schedules with divided loads, until it has some. Close to the
bound hardly any task has a choice left."""

_ORDER_SECONDS, _POLISHED = 2.0, 5
"""Seconds to find an order of operations where there are too many; assignments with divided loads that are put in
order."""

_SECONDS_PER_ORDER = 0.1
"""Seconds to find the good orders of a layout."""

_POLISH_SHARE = 0.05
"""Largest share of the time that is left, for the best order of operations of an assignment."""


def search_layouts(
    search: BlockSearch[M], bounded: BoundedLayouts | None, share: float, take_turns: Callable[[], bool]
) -> None:
    """Raise the bound of a search and find better schedules, layout by layout.

    The search has a schedule on one GPU; nothing is live, and operations take time. The layouts are ``bounded`` if
    there are dual prices. ``take_turns`` is called from time to time when the layouts bring nothing: it searches for
    better schedules by other means, until that brings nothing any more, or returns False for the end of the search.
    """
    branches = branches_of(search.problem)
    if bounded is None:
        possible = number_of_layouts(branches.unordered) <= _MAX_CHOICES
    else:
        possible = number_of_layouts(branches) <= MAX_LAYOUTS
    if possible:
        _LayoutSearch(search, bounded, share, take_turns).run()


def divide_layouts(search: BlockSearch[M], bounded: BoundedLayouts) -> None:
    """Find better schedules of the layouts with the least bounds, whose loads are divided to the tick."""
    if number_of_layouts(bounded.branches) <= MAX_LAYOUTS:
        _LayoutSearch(search, bounded, 1.0, lambda: False).divide()


class _LayoutSearch:
    """Search by the layouts that may have a better schedule."""

    def __init__(
        self, search: BlockSearch[M], bounded: BoundedLayouts | None, share: float, take_turns: Callable[[], bool]
    ) -> None:
        control = search.control
        self._search, self._control, self._take_turns = search, control, take_turns
        self._end = control.end_of(share)
        self._branches, self._bounded = branches_of(search.problem), bounded
        if bounded is not None:
            bounded.end = self._end
        self._priced = 0  # ticks of schedules up to which no more prices are sought
        self._least = search.upper  # the least bound of the layouts that are solved
        self._seconds: dict[BoundedLayout, float] = {}  # of the last time that each was worked on
        self._relaxed: dict[BoundedLayout, LayoutRelaxation] = {}
        self._bounded_by_relaxation: set[BoundedLayout] = set()
        # of each layout, the ticks within which its operations were put in order; 0 once they are in a known one
        self._ordered: dict[BoundedLayout, int] = {}
        self._divided: set[BoundedLayout] = set()
        self._relaxes = not Highs().missing()
        self._all_used = self._branches.tell_all
        self._ticks = task_ticks(search.problem, search.problem.places)

    @property
    def _left(self) -> float:
        """Seconds that are left."""
        return self._control.left_until(self._end)

    def run(self) -> None:
        """Work on the layouts until nothing is open, or the time is up."""
        search, control = self._search, self._control
        layouts = self._layouts()
        if layouts is None:
            return
        gap, gained, over = search.upper - search.lower, control.clock, False
        while search.open and self._left > 0 and not over:
            upper = search.upper
            layouts = [layout for layout in layouts if layout.lower < upper]
            lower = min([self._least, search.upper, *(layout.lower for layout in layouts)])
            search.raise_lower(lower)
            if not search.open or not layouts:
                return
            if search.upper - search.lower < gap:
                gap, gained = search.upper - search.lower, control.clock
            elif control.clock - gained > _IDLE_SECONDS:
                over = not self._take_turns()
                gap, gained = search.upper - search.lower, control.clock
                continue
            within = [layout for layout in layouts if layout.lower < self._priced]
            most_priced = min(search.lower + 2 * self._step, search.upper)
            if self._bounded is not None and len(within) < _MIN_LAYOUTS and self._priced < most_priced:
                self._price(self._bounded, layouts)
            else:
                layout = min(within or layouts, key=self._rank)
                # The schedules of the first layout make the bounds of the others a matter of milliseconds.
                unbounded = layout not in self._bounded_by_relaxation and (self._divided or layout not in self._relaxed)
                if self._relaxes and unbounded:
                    self._relax(layouts if self._bounded is None else within or [layout], layout)
                    gained = control.clock  # that is progress, too
                else:
                    layouts += self._go_on(layouts.pop(layouts.index(layout)))

    def _go_on(self, layout: BoundedLayout) -> list[BoundedLayout]:
        """Take the next step with a layout; return what is left of it."""
        if self._relaxed and not self._divided:
            self._divide(layout)
            return [layout]
        if layout in self._relaxed and self._ordered.get(layout, sys.maxsize) >= self._search.upper:
            return self._order(layout)
        if layout in self._relaxed and layout not in self._divided:
            self._divide(layout)
            return [layout]
        return [] if self._work_on(layout) else [layout]

    def divide(self) -> None:
        """Divide the loads of the layouts with the least bounds."""
        layouts = (self._layouts() or []) if self._relaxes else []
        for layout in heapq.nsmallest(_RELAXED_AT_ONCE, layouts, key=lambda layout: layout.lower):
            if self._left > 0:
                self._relaxed[layout] = self._relaxation(layout)
                self._control.spend(_SECONDS_PER_RELAXATION)
        for layout in heapq.nsmallest(_DIVIDED_AT_ONCE, self._relaxed, key=lambda layout: self._relaxed[layout].lower):
            if self._search.open and self._left > 0:
                self._divide(layout, in_order=False)

    def _layouts(self) -> list[BoundedLayout] | None:
        """List the layouts that may have a better schedule; None at the end of the time."""
        found = None if self._bounded is None else self._bounded.layouts()
        if found is None:
            self._bounded, branches = None, self._branches.unordered
            seconds = number_of_layouts(branches) * SECONDS_PER_LAYOUT / self._control.workers
            if seconds > _LISTING_SHARE * self._left:
                return None
            layouts = (layout for order in branches.orders if order for layout in layouts_in(branches, order))
            every = (OpenLayout(0, layout) for layout in layouts if layout == in_one_order(layout))
            ticks = np.ascontiguousarray(task_ticks(self._search.problem, branches.places).T)
            found = bound_layouts(self._search, branches, every, ticks, lambda: self._left)
        return found

    def _rank(self, layout: BoundedLayout) -> tuple[float, float]:
        """Return what is less for the layout that is next."""
        seconds = self._seconds.get(layout, 0.0)
        # The bounds of divided tasks tell less: the bound of the batch is raised one by one.
        return (layout.lower, seconds) if self._bounded is None else (seconds, layout.lower)

    @property
    def _step(self) -> int:
        gap = self._search.upper - self._search.lower
        return max(1, min(gap // _STEPS, int(self._search.lower * _LONGEST_STEP)))

    def _price(self, bounded: BoundedLayouts, layouts: Sequence[BoundedLayout]) -> None:
        """Look for dual prices that rule out the layouts with the least bounds."""
        search = self._search
        at_most = min(max(self._priced, search.lower) + self._step, search.upper - 1)
        for grains, rounds in FINE_DESCENTS:
            bounded.rule_out(layouts, at_most, grains, rounds, _PRICING_SHARE)
        self._priced = at_most + 1

    def _relax(self, layouts: Sequence[BoundedLayout], first: BoundedLayout) -> None:
        """Relax the next ones of some layouts; if that is done for the first one, bound them by their relaxations."""
        at_most, control = self._search.upper - 1, self._control
        begun = first in self._relaxed

        def relax(layout: BoundedLayout) -> None:
            if begun:
                layout.lower = max(
                    layout.lower, self._relaxed[layout].bound(control, at_most, self._share_of(_BOUND_SECONDS))
                )
                self._bounded_by_relaxation.add(layout)
            else:
                relaxed = self._relaxation(layout)
                layout.lower = max(layout.lower, min(relaxed.lower, at_most + 1))
                self._relaxed[layout] = relaxed

        open_ones = [
            layout
            for layout in layouts
            if layout not in self._bounded_by_relaxation and (layout in self._relaxed) == begun
        ]
        some = heapq.nsmallest(_AT_A_TIME * control.workers, open_ones, key=self._rank)
        with ThreadPoolExecutor(control.workers) as pool:
            list(pool.map(relax, some))
        control.spend(0.0 if begun else _SECONDS_PER_RELAXATION * len(some) / control.workers)

    def _relaxation(self, layout: BoundedLayout) -> LayoutRelaxation:
        """Relax a layout."""
        return LayoutRelaxation(self._search.problem, layout.tree, self._ticks, all_used=self._all_used)

    def _order(self, layout: BoundedLayout) -> list[BoundedLayout]:
        """Put the operations of a layout in order; return it in each good order, or itself where these are too many."""
        at_most = self._ordered[layout] = self._search.upper - 1
        found = self._relaxed[layout].in_orders(at_most)
        self._control.spend(_SECONDS_PER_ORDER)
        layout.lower = max(layout.lower, min(found.lower, at_most + 1))
        if found.ticks is None:
            share = self._share_of(_ORDER_SECONDS)
            divided = self._relaxed[layout].divisions_in_order(self._control, layout.lower, at_most, share)
            for places in itertools.islice(divided, _POLISHED) if layout.lower <= at_most else ():
                self._search.polish(places, _POLISH_SHARE)
            return [layout]
        ordered = [layout.in_order(ticks.tolist()) for ticks in found.ticks]
        self._ordered |= dict.fromkeys(ordered, 0)
        return ordered

    def _divide(self, layout: BoundedLayout, *, in_order: bool = True) -> None:
        """Look for schedules of a layout whose loads are divided to the tick, mostly in about the best order."""
        search, relaxed, control = self._search, self._relaxed[layout], self._control
        layout.lower = max(layout.lower, relaxed.lower)
        order = relaxed.best_order() if in_order and self._ordered.get(layout) != 0 else None
        if order is not None:
            relaxed = self._relaxation(layout.in_order(order.tolist()))
            control.spend(_SECONDS_PER_ORDER)
        lower, divided = max(layout.lower, relaxed.lower), list[tuple[int, list[int]]]()
        for part in _DIVIDED_PARTS:
            if not divided and lower < search.upper:
                at_most = min(lower + (search.upper - lower) // part, search.upper - 1)
                lower, found = relaxed.divisions(control, at_most, self._share_of(_FIRST_SECONDS))
                divided = sorted((search.report_nested(places), places) for places in found)
        if order is None:
            layout.lower = max(layout.lower, min(lower, search.upper))
        for _, places in divided[:_POLISHED] if search.open else ():
            search.polish(places, _POLISH_SHARE)
        self._divided.add(layout)
        self._seconds[layout] = _FIRST_SECONDS / 2

    def _share_of(self, seconds: float) -> float:
        """Return some seconds as a share of the time that remains."""
        remaining = self._control.remaining
        return 1.0 if remaining is None else min(1.0, min(seconds, self._left) / max(remaining, 1e-9))

    def _work_on(self, layout: BoundedLayout) -> bool:
        """Look for schedules of a layout for some seconds; return True if its best ones are known."""
        search, control = self._search, self._control
        seconds = 2 * self._seconds.get(layout, _FIRST_SECONDS / 2)
        layout.lower = max(layout.lower, search.lower)
        at_most = search.upper - 1
        relaxed = self._relaxed.get(layout)
        left = None if relaxed is None else relaxed.places_left(at_most)
        model = LayoutModel(search.problem, layout.tree, layout.lower, at_most, left)
        control.spend(_SECONDS_PER_MODEL)

        def keep(values: Sequence[int]) -> None:
            search.report_nested(model.places_of(values))

        request = Request(at_least=layout.lower, share=self._share_of(seconds), tight=True, on_solution=keep)
        outcome = run(model.model, control, request)
        if outcome.values is not None:
            search.polish(model.places_of(outcome.values), _POLISH_SHARE)
        self._seconds[layout] = seconds
        layout.lower = max(layout.lower, outcome.bound)
        if outcome.proven:
            # Its operations may still take longer than its paths tell.
            self._least = min(self._least, outcome.bound)
        return outcome.proven or outcome.infeasible


class LayoutModel:
    """Model of the assignments of tasks to the placements of a layout: the ticks of the longest path are minimised.

    ``left`` has for each task the places that are left to it, with its ticks there; by default all of them.
    """

    def __init__(
        self,
        problem: IntegerBatch,
        tree: LayoutTree,
        at_least: int,
        at_most: int,
        left: Sequence[Mapping[int, int]] | None = None,
    ) -> None:
        self.model = model = cp_model.CpModel()
        longest = model.new_int_var(min(at_least, at_most), at_most, "longest path")
        stacks = [node for node in tree.nodes if node.kind == "stack"]
        self._choices: list[list[tuple[int, cp_model.IntVar]]] = []
        loads: dict[int, list[tuple[int, cp_model.IntVar]]] = {stack.place: [] for stack in stacks}
        for task in range(len(problem.batch.tasks)):
            choices = []
            for stack in stacks:
                durations = problem.places[stack.place].durations
                ticks = durations.get(task) if left is None else left[task].get(stack.place)
                if ticks is not None and ticks <= at_most:
                    here = model.new_bool_var(f"{task} in {stack.place}")
                    choices.append((stack.place, here))
                    loads[stack.place].append((ticks, here))
            model.add_exactly_one(here for _, here in choices)
            self._choices.append(choices)
        for ticks, places in tree.paths():
            terms = [term for place in places for term in loads[place]]
            model.add(ticks + sum(amount * here for amount, here in terms) <= longest)
        model.minimize(longest)

    def places_of(self, values: Sequence[int]) -> list[int]:
        """Return the place of each task in a solution."""
        return [next(place for place, here in choices if values[here.index]) for choices in self._choices]
