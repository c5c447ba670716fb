"""Layouts that may have a better schedule, each with a bound: what a proof or a search by layouts begins with.

Dual prices leave some hundred to some thousand layouts (:mod:`mig_opt.batch.loads.layout_values`). Dual prices of its
own (:mod:`mig_opt.batch.loads.layout_bounds`) raise the bound of each, and so rule out nearly all that are below a
limit of time. The best dual prices of like layouts are alike: the search for them begins where that of the one before
ended.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from mig_opt.batch.loads.branches import Branches
from mig_opt.batch.loads.columns import grain_of
from mig_opt.batch.loads.layout_bounds import fractional_bound, subgradient_prices
from mig_opt.batch.loads.layout_values import OpenLayout, PricedTasks, open_layouts, priced_tasks
from mig_opt.batch.loads.layouts import Layout, LayoutTree, whole_layout
from mig_opt.batch.loads.subsets import Reals, Table
from mig_opt.models.batch.block_search import BlockSearch, M

_GRAINS = 10_000
"""Grains of a schedule for the list of layouts, at most."""

_MAX_OPEN = 10_000
"""Layouts of all GPUs that dual prices leave, at most."""

_LISTED_AT_A_TIME, SECONDS_PER_LAYOUT = 256, 3e-4
"""Layouts that are listed before the time is asked for; seconds to list one, and to find its first bound."""

_AT_A_TIME = 4
"""Layouts of a thread between two looks at the time that all of them have spent."""

_CELLS_PER_SECOND = 4e9
"""Entries of tables for dual prices that a thread fills."""

_MAX_CELLS = 2**30
"""Entries of all tables that are filled at a time, a byte each; if need be, fewer threads fill them."""


class BoundedLayout:
    """Layouts of all GPUs that may have a better schedule."""

    def __init__(self, layout: Layout, tree: LayoutTree, lower: int) -> None:
        self.layout, self.tree = layout, tree
        self.lower = lower  # ticks that every schedule with them takes, or the best schedule if that is less
        self.prices: Reals | None = None  # their own dual prices, shape (tasks,), if they have some so far

    def in_order(self, ticks: Sequence[int]) -> BoundedLayout:
        """Return those of their schedules that have the operations in an order that takes some ticks on each path."""
        return BoundedLayout(self.layout, self.tree.with_operations(ticks), self.lower)

    @property
    def places(self) -> tuple[int, ...]:
        """The places of their placements."""
        return tuple(node.place for node in self.tree.nodes if node.kind == "stack")


def bound_layouts(
    search: BlockSearch[M], branches: Branches, found: Iterable[OpenLayout], ticks: Table, left: Callable[[], float]
) -> list[BoundedLayout] | None:
    """Bound layouts with divided tasks, and keep those that may have a better schedule; None at the end of the time."""
    problem, control, at_most, listed = search.problem, search.control, search.upper - 1, iter(found)

    def bound(entry: OpenLayout) -> BoundedLayout:
        tree = LayoutTree(problem, branches, [entry.layout])
        return BoundedLayout(entry.layout, tree, max(entry.lower, fractional_bound(tree, ticks, at_most)))

    bounded: list[BoundedLayout] = []
    with ThreadPoolExecutor(control.workers) as pool:
        while some := list(itertools.islice(listed, _LISTED_AT_A_TIME)):
            control.spend(SECONDS_PER_LAYOUT * len(some))
            if left() <= 0:
                return None
            bounded += [layout for layout in pool.map(bound, some) if layout.lower <= at_most]
    return bounded


class BoundedLayouts:
    """Source of the layouts that dual prices leave to one GPU on which nothing is live, and of bounds for them."""

    def __init__(self, search: BlockSearch[M], branches: Branches, prices: Reals) -> None:
        self._search = search
        self.branches, self._prices = branches, prices
        self.end = math.inf  # clock of the control at which the time is up; set by who has a share of it for them

    def left(self) -> float:
        """Return the seconds that are left."""
        return self._search.control.left_until(self.end)

    def tasks(self, at_most: int, grains: int) -> PricedTasks:
        """Return the tasks at the dual prices, for schedules within some ticks."""
        grain = grain_of(self.branches, self._search.upper - 1, grains)
        return priced_tasks(self._search.problem, self.branches, self._prices, at_most, grain)

    def layouts(self) -> list[BoundedLayout] | None:
        """List the layouts that may have a better schedule; None if they are too many, or at the end of the time."""
        problem, at_most = self._search.problem, self._search.upper - 1
        if self.left() <= 0:
            return None
        tasks = self.tasks(at_most, _GRAINS)
        if problem.operations_take_no_time:
            found: list[OpenLayout] | None = [OpenLayout(0, whole_layout(self.branches))]
        else:
            found = open_layouts(self.branches, tasks, tasks.value, _MAX_OPEN)
        return None if found is None else bound_layouts(self._search, self.branches, found, tasks.ticks, self.left)

    def rule_out(self, layouts: Sequence[BoundedLayout], at_most: int, grains: int, rounds: int) -> bool:
        """Look for dual prices that rule out layouts within ``at_most`` ticks, and raise the bounds of these.

        The values of a layout are computed at most as often as ``rounds``. Returned is False at the end of the time.
        """
        control = self._search.control
        tasks = self.tasks(at_most, grains)
        ranked = sorted((layout for layout in layouts if layout.lower <= at_most), key=lambda layout: layout.places)
        rows = max((len(layout.tree.rows()) for layout in ranked), default=1)
        threads = max(1, min(control.workers, _MAX_CELLS // (rows * (tasks.grains + 1) * len(self._prices))))
        # Each thread has a sequence of its own, so that the bounds do not depend on which one is faster.
        size = max(1, math.ceil(len(ranked) / threads))
        sequences = [_Sequence(ranked[at : at + size], self._prices) for at in range(0, len(ranked), size)]
        with ThreadPoolExecutor(threads) as pool:
            while any(sequence.layouts for sequence in sequences):
                if self.left() <= 0:
                    return False
                cells = pool.map(lambda sequence: sequence.improve(tasks, rounds, self.left), sequences)
                control.spend(max(cells) / _CELLS_PER_SECOND)
        return self.left() > 0


class _Sequence:
    """Layouts whose dual prices are improved one after the other."""

    def __init__(self, layouts: list[BoundedLayout], prices: Reals) -> None:
        self.layouts, self._latest = layouts, prices

    def improve(self, tasks: PricedTasks, rounds: int, seconds: Callable[[], float]) -> int:
        """Improve the dual prices of some layouts, each in at most ``seconds``; return the entries that this fills."""
        cells = 0
        some, self.layouts = self.layouts[:_AT_A_TIME], self.layouts[_AT_A_TIME:]
        for layout in some:
            in_a_round = len(layout.tree.rows()) * (tasks.grains + 1) * len(self._latest)
            possible = min(rounds, seconds() * _CELLS_PER_SECOND / in_a_round)
            if possible < 1:
                break
            start = self._latest if layout.prices is None else layout.prices
            found = subgradient_prices(layout.tree, tasks, start, int(possible))
            self._latest = layout.prices = found.prices
            layout.lower = max(layout.lower, found.lower)
            cells += found.cells
        return cells
