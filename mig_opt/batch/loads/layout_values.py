"""Values of layouts: the tasks of most value that the placements of a layout can run within some time.

As in :mod:`mig_opt.batch.loads.columns`, each task has a dual price, and may be counted in several placements. If the
value of a layout within some time is less than that of all tasks together, no schedule has this layout and takes no
longer. The values inside of a branch, and outside of it, tell which sets of tasks it can run in such a schedule
(:mod:`mig_opt.batch.loads.task_sets`).

Values are whole numbers, and times are rounded down to a *grain* of some ticks, so no schedule is missed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.branches import Branches, Use
from mig_opt.batch.loads.columns import fill_knapsack
from mig_opt.batch.loads.layouts import Layout, LayoutTree, Member, Path, members_of
from mig_opt.batch.loads.subsets import NEVER, Table
from mig_opt.batch.loads.tree import task_ticks
from mig_opt.native import loop

NOTHING = -(2**30)
"""Value of what cannot be; together with any value of tasks it is still negative."""

_HIGHEST = 2**29
"""Limit of all values."""

_MOST_GUESSES, _FACTOR, _LOWER = 6, 4, 1.25e-4
"""Guesses of the value of the layouts that are wanted; how many times as many may be listed; and the share of the value
of all tasks by which the next guess is lower."""

_add_to_values = loop("add_to_values")


class PricedTasks(NamedTuple):
    """Tasks with their dual prices, and the limit of time."""

    ticks: npt.NDArray[np.int32]  # shape (profiles, tasks); NEVER where a task cannot run in such a schedule
    prices: Table  # dual prices as whole numbers
    value: int  # their sum
    at_most: int  # ticks of a schedule, at most
    grain: int  # ticks to which times are rounded down
    highest: int  # the sum of all of them, at most
    raised_by: int = 0  # ticks by which tasks are longer before they are rounded, where no proof is wanted

    def at_prices(self, prices: npt.NDArray[np.floating]) -> PricedTasks:
        """Return the tasks with other dual prices: not negative and not all 0, shape (tasks,)."""
        whole = np.floor(prices * (self.highest / float(prices.sum()))).astype(np.int32)
        return self._replace(prices=whole, value=int(whole.sum()))

    def only(self, members: Sequence[int]) -> PricedTasks:
        """Return some of the tasks, with times that are rounded down."""
        ticks, prices = np.ascontiguousarray(self.ticks[:, members]), self.prices[members]
        return self._replace(ticks=ticks, prices=prices, value=int(prices.sum()), raised_by=0)

    @property
    def grains(self) -> int:
        """The grains of a schedule, at most."""
        return self.at_most // self.grain

    @property
    def times(self) -> npt.NDArray[np.int32]:
        """The grains of each task in each profile, shape (profiles, tasks)."""
        return (self.ticks + np.int32(self.raised_by)) // np.int32(self.grain)

    def backwards(self) -> PricedTasks:
        """Return the tasks in reverse order."""
        ticks, prices = np.ascontiguousarray(self.ticks[:, ::-1]), np.ascontiguousarray(self.prices[::-1])
        return self._replace(ticks=ticks, prices=prices)

    def raised(self, profile: int, values: Table) -> Table:
        """Return values, shape (grains + 1,), with tasks of one more placement."""
        raised = values.copy()
        _add_to_values(self.times[profile], self.prices, raised, np.empty_like(raised))
        return raised


def priced_tasks(
    batch: IntegerBatch, branches: Branches, prices: npt.NDArray[np.floating], at_most: int, grain: int
) -> PricedTasks:
    """Return the tasks of a batch on which nothing is live with whole dual prices, so small that no value is too large.

    ``prices`` are not negative and not all 0; a schedule has ``at_most`` ticks.
    """
    ticks = task_ticks(batch, branches.places)
    ready = np.array([place.create for place in branches.places], np.int32)
    ticks[ticks > at_most - ready] = NEVER
    no_prices = np.zeros(len(prices), np.int32)
    tasks = PricedTasks(
        np.ascontiguousarray(ticks.T), no_prices, 0, at_most, grain, _HIGHEST // (len(batch.places) + 1)
    )
    return tasks.at_prices(prices)


class OpenLayout(NamedTuple):
    """Layout of a GPU that may have a schedule within the limit of time."""

    lower: int  # ticks that every schedule with it takes
    layout: Layout


def open_layouts(branches: Branches, tasks: PricedTasks, needed: int, most: int) -> list[OpenLayout] | None:
    """List the layouts of some value at least, least lower bound first; None if there are more than ``most``.

    With the value of all tasks these are all that one GPU may have.
    """
    found = [
        OpenLayout(int(np.searchsorted(table, needed)) * tasks.grain, layout)
        for table, layout in itertools.islice(_Listing(branches, tasks).layouts(needed), most + 1)
    ]
    return None if len(found) > most else sorted(found, key=lambda entry: entry.lower)


def best_layouts(
    branches: Branches, tasks: PricedTasks, guess: int, least: int, wanted: int
) -> tuple[list[Layout], int]:
    """List the layouts of most value, best first: about ``wanted`` ones, fewer if no more are worth ``least``.

    Returned is also the value that about as many have; a good ``guess`` of it saves time.
    """
    needed, listing = max(guess, least), _Listing(branches, tasks)
    for _ in range(_MOST_GUESSES):
        layouts = itertools.islice(listing.layouts(needed), _FACTOR * wanted + 1)
        found = [(int(table[-1]), layout) for table, layout in layouts]
        values = sorted((value for value, _ in found), reverse=True)
        if len(found) > _FACTOR * wanted:
            needed = values[len(found) // 2] + 1
        elif len(found) < wanted // 2 and needed > least:
            needed = max(least, needed - int(_LOWER * tasks.value))
        else:
            break
    found.sort(key=lambda entry: -entry[0])
    return [layout for _, layout in found], values[wanted] if len(values) > wanted else needed


class _Choice(NamedTuple):
    """Members of a branch, with the values of each for every number of grains, and the best ones."""

    members: list[tuple[Table, Member]]
    best: Table


class _Listing:
    """Listing of the layouts of one GPU, with their values for every number of grains."""

    def __init__(self, branches: Branches, tasks: PricedTasks) -> None:
        self._branches, self._tasks = branches, tasks
        self._wait = branches.wait // tasks.grain
        self._known: dict[tuple[Member, Path], Table] = {}
        self._members: dict[int, list[Member]] = {}
        self._choices: dict[tuple[int, Path, int], _Choice] = {}

    def layouts(self, needed: int) -> Iterator[tuple[Table, Layout]]:
        """Yield the layouts with this value at least."""
        for order in self._branches.orders:
            if len(order) != 1:
                yield from self._beside(order, Path(), None, needed)
                continue
            for at in order:
                branch = self._branches.branches[at]
                for use, inside in itertools.product(branch.uses, branch.orders):
                    own = self._added(use, np.zeros(self._tasks.grains + 1, np.int32))
                    for table, layout in self._beside(inside, Path().through(use), own, needed):
                        yield self._added(use, table), (Member(at, use, layout),)

    def _beside(
        self, order: Sequence[int], around: Path, own: Table | None, needed: int
    ) -> Iterator[tuple[Table, Layout]]:
        """Yield members beside each other that have enough value, with what is around them if that is given."""
        choices = [self._choice(at, around, place) for place, at in enumerate(order)]
        rest = [self._empty(around if not order else None)]
        for choice in reversed(choices):
            rest.append(_sum(rest[-1], choice.best))
        rest.reverse()

        def enough(table: Table) -> bool:
            value = int(table[-1] if own is None else (own + table[::-1]).max())
            return value >= needed

        def choose(place: int, table: Table, layout: Layout) -> Iterator[tuple[Table, Layout]]:
            if not enough(_sum(table, rest[place])):
                return
            if place == len(choices):
                yield _sum(table, rest[place]), layout
                return
            for more, member in choices[place].members:
                yield from choose(place + 1, _sum(table, more), (*layout, member))

        yield from choose(0, self._empty(None), ())

    def _choice(self, at: int, around: Path, place: int) -> _Choice:
        """Return the members of a branch that wait for ``place`` others."""
        key = (at, around, place)
        if key not in self._choices:
            if at not in self._members:
                self._members[at] = list(members_of(self._branches, at))
            members = [(self._late(self._value(member, around), place), member) for member in self._members[at]]
            self._choices[key] = _Choice(members, np.max([table for table, _ in members], axis=0))
        return self._choices[key]

    def _value(self, member: Member, around: Path) -> Table:
        key = (member, around)
        if key not in self._known:
            path = around.through(member.use)
            table = self._empty(None if member.inside else path)
            for place, one in enumerate(member.inside):
                table = _sum(table, self._late(self._value(one, path), place))
            self._known[key] = self._added(member.use, table)
        return self._known[key]

    def _added(self, use: Use, table: Table) -> Table:
        for profile in use.kinds:
            table = self._tasks.raised(profile, table)
        return table

    def _empty(self, path: Path | None) -> Table:
        """Return the values without a task: 0, but not before the operations of a path if that ends here."""
        table = np.zeros(self._tasks.grains + 1, np.int32)
        if path is not None:
            table[: path.needed // self._tasks.grain] = NOTHING
        return table

    def _late(self, table: Table, place: int) -> Table:
        """Return the values of a member that waits for ``place`` others."""
        wait = min(place * self._wait, len(table))
        if not wait:
            return table
        return np.concatenate([np.full(wait, NOTHING, np.int32), table[: len(table) - wait]])


def _sum(one: Table, two: Table) -> Table:
    """Return the sum of two values, no less than NOTHING."""
    total: Table = np.maximum(one + two, np.int32(NOTHING))
    return total


class LayoutValues:
    """Values inside and outside of each branch of a layout, at good dual prices."""

    def __init__(self, tree: LayoutTree, tasks: PricedTasks) -> None:
        size = tasks.grains + 1
        # Value of the branch of each node within each number of grains, those of all operations on its paths included.
        self.inside: list[Table] = []
        for node in tree.nodes:
            if node.kind == "stack":
                self.inside.append(tasks.raised(node.profile, self.inside[node.one]))
            elif node.kind == "split":
                self.inside.append(_sum(self.inside[node.one], self.inside[node.two]))
            else:
                table = np.zeros(size, np.int32)
                table[: node.ticks // tasks.grain] = NOTHING
                self.inside.append(table)
        self._nodes, self._backwards = tree.nodes, tasks.backwards()
        # Value of all else, if the branch takes that many grains.
        self.outside: list[Table] = [np.zeros(size, np.int32) for _ in tree.nodes]
        for at in range(len(tree.nodes) - 1, -1, -1):
            node = tree.nodes[at]
            if node.kind == "stack":
                self.outside[node.one] = np.ascontiguousarray(
                    tasks.raised(node.profile, np.ascontiguousarray(self.outside[at][::-1]))[::-1]
                )
            elif node.kind == "split":
                for one, other in ((node.one, node.two), (node.two, node.one)):
                    # The other branch may take longer than this one.
                    values = _sum(self.inside[other], self.outside[at])
                    self.outside[one] = np.maximum.accumulate(values[::-1])[::-1].copy()

    def outside_with_tasks(self, at: int) -> Table:
        """Return the best value outside of what a stack covers, with some of the last tasks alone in its place.

        It is given for each number of the last tasks, and each number of grains that are left for them and all else.
        """
        tasks, table = self._backwards, self.outside[at][::-1]
        rows = np.empty((len(tasks.prices) + 1, len(table)), np.int32)
        rows[0] = table
        fill_knapsack(np.ascontiguousarray(tasks.times[self._nodes[at].profile, :, np.newaxis]), tasks.prices, rows)
        return rows
