"""Search layout by layout, for batches with too many tasks for their sets: bounds and better schedules by CP-SAT.

In one layout (:mod:`mig_opt.loads.layouts`) all operations are known, so what remains is to assign each task to a
placement: a small model without order in time. With divided tasks it gives a bound at once, mostly a good one, and most
layouts are above the best schedule then (:mod:`mig_opt.loads.layout_loads`). The others are worked on one at a time,
the one with the least bound first: that raises the bound of the batch, and finds schedules close to it.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from ortools.sat.python import cp_model

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.loads.branches import Branches, branches_of
from mig_opt.loads.layout_loads import bound_by_divided_tasks
from mig_opt.loads.layouts import MOST_LAYOUTS, LayoutTree, layouts_in, number_of_layouts
from mig_opt.loads.tree import task_ticks
from mig_opt.models.batch.search import BlockSearch, M
from mig_opt.models.solvers.backend import IntegerOutcome, Request
from mig_opt.models.solvers.cpsat import run

_FIRST_SECONDS = 1.0
"""Seconds for a layout; each further time that it has the least bound, twice as many."""

_AT_A_TIME = 256
"""Layouts whose bounds are computed before the time is asked for."""

_SECONDS_PER_LAYOUT, _SECONDS_PER_MODEL = 3e-4, 0.01
"""Seconds to list a layout and to find its bound; to build its model."""

_POLISH = 0.05
"""Largest share of the time that is left, for the best order of operations of an assignment."""


def search_layouts(search: BlockSearch[M], share: float) -> None:
    """Raise the bound of a search and find better schedules, layout by layout.

    Parameters
    ----------
    search : BlockSearch
        With a schedule on one GPU. Nothing is live, and operations take time.
    share : float
        Largest share of the time that is left.
    """
    control, problem = search.control, search.problem
    end = None if control.remaining is None else control.clock + control.remaining * share
    branches = branches_of(problem)
    if number_of_layouts(branches) > MOST_LAYOUTS:
        return
    found = _bounds(search, branches)
    if found is None:
        return
    numbers = itertools.count()
    queue = [(lower, next(numbers), _FIRST_SECONDS, tree) for lower, tree in found]
    heapq.heapify(queue)
    least = search.upper  # the least bound of the layouts that are solved
    while search.open:
        search.raise_lower(min(least, queue[0][0] if queue else least, search.upper))
        remaining = None if end is None else end - control.clock
        if not search.open or not queue or queue[0][0] >= search.upper or (remaining is not None and remaining <= 0):
            return
        lower, _, seconds, tree = heapq.heappop(queue)
        outcome = _work_on(search, tree, lower, seconds if remaining is None else min(seconds, remaining))
        if outcome.proven:
            # Its operations may still take longer than its paths tell.
            least = min(least, outcome.bound)
        elif not outcome.infeasible:
            heapq.heappush(queue, (max(lower, outcome.bound), next(numbers), 2 * seconds, tree))


def _bounds(search: BlockSearch[M], branches: Branches) -> list[tuple[int, LayoutTree]] | None:
    """Return the layouts that may have a better schedule, with their bounds; None at the end of the time."""
    problem, control, limit = search.problem, search.control, search.upper - 1
    ticks = np.ascontiguousarray(task_ticks(problem, branches.places).T)

    def bound(tree: LayoutTree) -> tuple[int, LayoutTree]:
        return bound_by_divided_tasks(tree, ticks, limit), tree

    found = []
    with ThreadPoolExecutor(control.workers) as pool:
        for trees in _chunks(_trees(problem, branches), _AT_A_TIME):
            control.spend(_SECONDS_PER_LAYOUT * len(trees))
            if control.expired:
                return None
            found += [(lower, tree) for lower, tree in pool.map(bound, trees) if lower <= limit]
    return found


def _trees(problem: IntegerBatch, branches: Branches) -> Iterator[LayoutTree]:
    for order in branches.orders:
        if order:
            for layout in layouts_in(branches, order):
                yield LayoutTree(problem, branches, [layout])


def _chunks(trees: Iterator[LayoutTree], size: int) -> Iterator[list[LayoutTree]]:
    while chunk := list(itertools.islice(trees, size)):
        yield chunk


def _work_on(search: BlockSearch[M], tree: LayoutTree, lower: int, seconds: float) -> IntegerOutcome:
    """Look for a schedule of one layout for some seconds; infeasible: there is none better than the best one before."""
    control, remaining = search.control, search.control.remaining
    model = LayoutModel(search.problem, tree, max(lower, search.lower), search.upper - 1)
    control.spend(_SECONDS_PER_MODEL)

    def keep(values: Sequence[int]) -> None:
        search.offer_nested(model.places_of(values))

    share = 1.0 if remaining is None else min(1.0, seconds / max(remaining, 1e-9))
    outcome = run(model.model, control, Request(at_least=lower, share=share, on_solution=keep))
    if outcome.values is not None:
        search.polish(model.places_of(outcome.values), _POLISH)
    return outcome


class LayoutModel:
    """Model of the assignments of tasks to the placements of a layout, by their longest path.

    Parameters
    ----------
    problem : IntegerBatch
        Nothing is live.
    tree : LayoutTree
        Tree of the layout.
    at_least, at_most : int
        Ticks of the longest path.

    Attributes
    ----------
    model : CpModel
        Minimises the longest path.
    """

    def __init__(self, problem: IntegerBatch, tree: LayoutTree, at_least: int, at_most: int) -> None:
        self.model = model = cp_model.CpModel()
        longest = model.new_int_var(min(at_least, at_most), at_most, "longest path")
        stacks = [node for node in tree.nodes if node.kind == "stack"]
        self._choices: list[list[tuple[int, cp_model.IntVar]]] = []
        loads: dict[int, list[tuple[int, cp_model.IntVar]]] = {stack.place: [] for stack in stacks}
        for task in range(len(problem.batch.tasks)):
            choices = []
            for stack in stacks:
                ticks = problem.places[stack.place].durations.get(task)
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
