"""Search layout by layout: bounds, better schedules and proofs, for some three dozen tasks and more on one GPU.

For given placements (:mod:`mig_opt.batch.loads.layouts`) all operations are known, so what remains is to assign each
task to one of them. The bounds of divided tasks (:mod:`mig_opt.batch.loads.layout_bounds`) and then of divided loads
(:mod:`mig_opt.models.batch.layout_relaxation`) rule out nearly all choices of placements. The others become a layout
for each order of their operations in which they may have a schedule close to their bound; what would take longer stays
behind, with that bound. The layout of the least bound is always the next one, and the bound of the batch rises with it.

The bound of a layout in order is mostly as long as a schedule, or nearly. With up to some sixty tasks all its
assignments are decided by dividing loads to the tick (:mod:`mig_opt.batch.loads.layout_divisions`), within few ticks
more than its bound at a time. With more, some division is nearly always there, which proves most batches of 100 to
10,000 tasks. What is left is searched by CP-SAT for some seconds, again and again for longer.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import math
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from ortools.sat.python import cp_model

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.branches import branches_of
from mig_opt.batch.loads.division import divide_exactly
from mig_opt.batch.loads.layout_values import OpenLayout
from mig_opt.batch.loads.layouts import LayoutTree, in_one_order, layouts_in, number_of_layouts
from mig_opt.batch.loads.tree import task_ticks
from mig_opt.models.batch.block_search import BlockSearch, M
from mig_opt.models.batch.bounded_layouts import SECONDS_PER_LAYOUT, BoundedLayout, bound_layouts
from mig_opt.models.batch.layout_relaxation import LayoutRelaxation
from mig_opt.models.solvers.backend import Request
from mig_opt.models.solvers.cpsat import run
from mig_opt.models.solvers.highs import Highs

_MAX_CHOICES = 100_000
"""Choices of placements that are looked at without dual prices, at most. Each order of first creations is a layout of
its own, but bounds rule out most choices in whatever order they are created."""

_LISTING_SHARE = 0.5
"""Share of the time that is left for a list of choices, at most: else it is not begun."""

_QUICK_SECONDS, _FIRST_SECONDS = 0.2, 1.0
"""Seconds for a layout, where it was decided as far as possible, and else; each further time twice as many."""

_IDLE_SECONDS = 4.0
"""Seconds without a better bound or schedule, after which another search has its turn: in some batches one layout is as
good as hundreds of others."""

_BOUND_SECONDS = 0.5
"""Seconds for the bound of a layout with whole tasks and divided loads, at most: mostly a hundredth is enough, and the
others have schedules that are as good as the best one."""

_SECONDS_PER_MODEL, _SECONDS_PER_RELAXATION = 0.01, 0.005
"""Seconds to build the model of a layout, and to relax it."""

_AT_A_TIME = 32
"""Layouts of a thread that are relaxed, or bounded by their relaxation, before the time is asked for."""

_DIVIDED_PARTS = (256, 16, 4)
"""Parts of the gap of a layout within which it is to have schedules with divided loads, until it has some. Close to the
bound hardly any task has a choice left."""

_DIVIDED_AT_ONCE = 16
"""Other layouts whose loads are divided with those of the first one that cannot be decided."""

_ORDER_SECONDS, _POLISHED = 2.0, 5
"""Seconds to find an order of operations where there are too many; assignments with divided loads that are put in
order."""

_SECONDS_PER_ORDER = 0.02
"""Seconds to find the good orders of a layout."""

_ORDERED_WITHIN, _FEWER_ORDERS, _LISTINGS = 3e-4, 4, 3
"""Share of the bound of a layout, within which its orders are listed, where each of them is decided; divisor of that
where they are too many, and how often they may be listed."""

_MAX_TASKS_IN_ORDER = 62
"""Number of tasks above which loads are divided to the tick in any order: a set of tasks does not fit into a number."""

_GROWTH, _SHRINKING = 2, 4
"""Factor of the next step of ticks of a decision, and divisor after one that was too long."""

_POLISH_SHARE = 0.05
"""Largest share of the time that is left, for the best order of operations of an assignment."""


def has_choices(problem: IntegerBatch) -> bool:
    """Return True if layouts can be searched: there is one GPU on which nothing is live, with not too many of them."""
    if len(problem.gpus) > 1 or not problem.alike or problem.operations_take_no_time or Highs().missing():
        return False
    return number_of_layouts(branches_of(problem).unordered) <= _MAX_CHOICES


def search_layouts(search: BlockSearch[M], take_turns: Callable[[], bool]) -> None:
    """Raise the bound of a search and find better schedules, layout by layout.

    The search has a schedule; its problem :func:`has_choices`. ``take_turns`` is called from time to time when the
    layouts bring nothing: it searches for better schedules by other means, until that brings nothing any more, or
    returns False for the end of the search.
    """
    _LayoutSearch(search, take_turns).run()


class _LayoutSearch:
    """Search by the layouts that may have a better schedule."""

    def __init__(self, search: BlockSearch[M], take_turns: Callable[[], bool]) -> None:
        control, tasks = search.control, len(search.problem.batch.tasks)
        self._search, self._control, self._take_turns = search, control, take_turns
        self._branches = branches_of(search.problem)
        self._least = search.upper  # the least bound of the layouts that are solved
        self._seconds: dict[BoundedLayout, float] = {}  # of the last time that each was worked on
        self._relaxed: dict[BoundedLayout, LayoutRelaxation] = {}
        self._bounded_by_relaxation: set[BoundedLayout] = set()
        # of each layout, the ticks within which its operations were put in order; 0 once they are in a known one
        self._ordered: dict[BoundedLayout, int] = {}
        self._known_orders: defaultdict[BoundedLayout, set[tuple[int, ...]]] = defaultdict(set)
        self._divided: set[BoundedLayout] = set()
        self._draw = random.Random(control.seed)
        self._all_used = self._branches.tell_all
        self._ticks = task_ticks(search.problem, search.problem.places)
        self._in_order = tasks <= _MAX_TASKS_IN_ORDER
        self._gained = control.clock  # when the layouts brought something
        # of each layout, the ticks of the next decision; 0 if that is not possible for now
        self._steps: dict[BoundedLayout, int] = {}

    def run(self) -> None:
        """Work on the layouts until nothing is open, or the time is up."""
        search, control = self._search, self._control
        layouts = self._layouts()
        if layouts is None:
            return
        gap, over = search.upper - search.lower, False
        while search.open and not over:
            upper = search.upper
            layouts = [layout for layout in layouts if layout.lower < upper]
            lower = min([self._least, search.upper, *(layout.lower for layout in layouts)])
            search.raise_lower(lower)
            if not search.open or not layouts:
                return
            if search.upper - search.lower < gap:
                gap, self._gained = search.upper - search.lower, control.clock
            elif control.clock - self._gained > _IDLE_SECONDS:
                over = not self._take_turns()
                gap, self._gained = search.upper - search.lower, control.clock
                continue
            layout = min(layouts, key=self._rank)
            # The schedules of the first layout make the bounds of the others a matter of milliseconds.
            if layout not in self._bounded_by_relaxation and (self._divided or layout not in self._relaxed):
                self._relax(layouts, layout)
                self._gained = control.clock  # that is progress, too
            else:
                layouts += self._go_on(layouts.pop(layouts.index(layout)), layouts)

    def _go_on(self, layout: BoundedLayout, others: Sequence[BoundedLayout]) -> list[BoundedLayout]:
        """Take the next step with a layout; return what is left of it."""
        layout.lower = max(layout.lower, self._search.lower)
        if not self._divided:
            self._divide(layout)
        elif self._ordered.get(layout, sys.maxsize) >= self._search.upper:
            return self._order(layout)
        elif self._in_order and self._steps.get(layout, 1):
            self._decide(layout)
        elif layout not in self._divided:
            open_ones = [one for one in others if one in self._relaxed and one not in self._divided]
            more = heapq.nsmallest(_DIVIDED_AT_ONCE if self._in_order else 0, open_ones, key=self._rank)
            for one in [layout, *more]:
                if self._search.open:
                    self._divide(one)
        elif self._work_on(layout):
            return []
        return [layout]

    def _layouts(self) -> list[BoundedLayout] | None:
        """List the choices of placements that may have a better schedule; None at the end of the time.

        Each order of first creations would be a layout of its own, but bounds rule out most choices in any order.
        """
        branches = self._branches.unordered
        seconds = number_of_layouts(branches) * SECONDS_PER_LAYOUT / self._control.workers
        if seconds > _LISTING_SHARE * self._control.left:
            return None
        layouts = (layout for order in branches.orders if order for layout in layouts_in(branches, order))
        every = (OpenLayout(0, layout) for layout in layouts if layout == in_one_order(layout))
        ticks = np.ascontiguousarray(task_ticks(self._search.problem, branches.places).T)
        return bound_layouts(self._search, branches, every, ticks, lambda: self._control.left_until(math.inf))

    def _rank(self, layout: BoundedLayout) -> tuple[float, float]:
        """Return what is less for the layout that is next: the bound of the batch is raised one by one."""
        return layout.lower, self._seconds.get(layout, 0.0)

    def _relax(self, layouts: Sequence[BoundedLayout], first: BoundedLayout) -> None:
        """Relax the next ones of some layouts; if that is done for the first one, bound them by their relaxations."""
        at_most, control = self._search.upper - 1, self._control
        begun = first in self._relaxed

        def relax(layout: BoundedLayout) -> None:
            if begun:
                layout.lower = max(layout.lower, self._relaxed[layout].bound(control, at_most, _BOUND_SECONDS))
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
        """Put the operations of a layout in order; return it in each order that is new, and what may be left of it."""
        upper, relaxed = self._search.upper, self._relaxed[layout]
        within = int(_ORDERED_WITHIN * layout.lower) if self._in_order else upper
        for _ in range(_LISTINGS if self._in_order else 1):
            at_most = min(layout.lower + max(1, within), upper) - 1
            found = relaxed.in_orders(at_most)
            self._control.spend(_SECONDS_PER_ORDER)
            layout.lower = max(layout.lower, min(found.lower, upper))
            if found.ticks is not None or layout.lower > at_most:
                break
            within //= _FEWER_ORDERS
        if found.ticks is None and layout.lower <= at_most:
            self._ordered[layout] = upper - 1
            divided = relaxed.divisions_in_order(self._control, layout.lower, upper - 1, _ORDER_SECONDS)
            for places in itertools.islice(divided, _POLISHED):
                self._search.polish(places, _POLISH_SHARE)
            return [layout]
        known = self._known_orders[layout]
        ordered = {one: layout.in_order(one) for one in (tuple(own.tolist()) for own in found.ticks or ())}
        new = [piece for one, piece in ordered.items() if one not in known]
        known.update(ordered)
        self._ordered |= dict.fromkeys(new, 0)
        layout.lower = max(layout.lower, at_most + 1)
        return [*new, layout]

    def _decide(self, layout: BoundedLayout) -> None:
        """Decide the assignments of a layout within some ticks more than its bound, by dividing tasks to the tick."""
        search, control, step = self._search, self._control, self._steps.get(layout, 1)
        at_most = min(layout.lower + step, search.upper) - 1
        effort = 1 + 2 * int(self._seconds.get(layout, 0.0))
        divide = functools.partial(divide_exactly, draw=self._draw, effort=effort, expired=lambda: control.expired)
        found = self._relaxed[layout].assignment(at_most, divide)
        control.spend(_SECONDS_PER_ORDER)
        if found.instances is not None and search.report_nested(found.instances) > at_most:
            search.polish(found.instances, _POLISH_SHARE)
        if found.instances is None and found.complete:
            layout.lower = min(at_most + 1, search.upper)
            self._steps[layout], self._gained = step * _GROWTH, control.clock
        elif search.upper > at_most:
            self._steps[layout] = step // _SHRINKING

    def _divide(self, layout: BoundedLayout) -> None:
        """Look for schedules of a layout whose loads are divided to the tick, mostly in about the best order."""
        search, relaxed, control = self._search, self._relaxed[layout], self._control
        layout.lower = max(layout.lower, relaxed.lower)
        order = relaxed.best_order() if self._ordered.get(layout) != 0 else None
        if order is not None:
            relaxed = self._relaxation(layout.in_order(order.tolist()))
            control.spend(_SECONDS_PER_ORDER)
        seconds = _QUICK_SECONDS if self._in_order else _FIRST_SECONDS
        lower, divided = max(layout.lower, relaxed.lower), list[tuple[int, list[int]]]()
        for part in _DIVIDED_PARTS:
            if not divided and lower < search.upper:
                at_most = min(lower + (search.upper - lower) // part, search.upper - 1)
                lower, found = relaxed.divisions(control, at_most, seconds)
                divided = sorted((search.report_nested(places), places) for places in found)
        if order is None:
            layout.lower = max(layout.lower, min(lower, search.upper))
        for _, places in divided[:_POLISHED] if search.open else ():
            search.polish(places, _POLISH_SHARE)
        self._divided.add(layout)

    def _work_on(self, layout: BoundedLayout) -> bool:
        """Look for schedules of a layout for some seconds; return True if its best ones are known."""
        search, control = self._search, self._control
        seconds = 2 * self._seconds.get(layout, _FIRST_SECONDS / 2)
        at_most = search.upper - 1
        left = self._relaxed[layout].places_left(at_most)
        model = LayoutModel(search.problem, layout.tree, layout.lower, at_most, left)
        control.spend(_SECONDS_PER_MODEL)

        def keep(values: Sequence[int]) -> None:
            search.report_nested(model.places_of(values))

        request = Request(at_least=layout.lower, seconds=seconds, tight=True, on_solution=keep)
        outcome = run(model.model, control, request)
        if outcome.values is not None:
            search.polish(model.places_of(outcome.values), _POLISH_SHARE)
        self._seconds[layout] = seconds
        self._steps[layout] = 1
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
