"""All assignments of tasks to places whose loads stay within a limit, read off the height tables.

The tables know for every branch and every set of tasks whether it fits, so that the search never runs into a dead end.
Of two neighbours that are alike one assignment is as good as its mirror image: only one of them is found.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.loads.kernels import NEVER, add_up
from mig_opt.loads.tables import HeightTables, fixed_cost, making_room, neighbours_of, ticks_of

Choice = tuple[tuple[int, int], ...]
"""Pairs of a place and the set of tasks that run there, as bits."""


class Assignments:
    """The assignments that height tables allow.

    Parameters
    ----------
    problem : IntegerBatch
        The batch in ticks.
    tables : HeightTables
        Filled.
    """

    def __init__(self, problem: IntegerBatch, tables: HeightTables) -> None:
        self._problem = problem
        self._tables = tables
        self._tree = tables.tree
        self._count = len(problem.batch.tasks)
        self._loads = {at: add_up(ticks_of(place, self._count)) for at, place in enumerate(problem.places)}

    def within(self, at_most: int) -> Iterator[list[int]]:
        """Yield each assignment of height ``at_most`` or less, as the place of each task.

        Parameters
        ----------
        at_most : int
            Ticks, no more than the tables were made for.
        """
        everything = (1 << self._count) - 1
        for choice in self._branch(len(self._tree.nodes) - 1, everything, at_most, spared=True):
            places = [-1] * self._count
            for at, tasks in choice:
                for task in range(self._count):
                    if tasks >> task & 1:
                        places[task] = at
            yield places

    def _branch(self, index: int, tasks: int, at_most: int, *, spared: bool) -> Iterator[Choice]:
        """Yield how ``tasks`` can run in a branch."""
        node = self._tree.nodes[index]
        if not tasks:
            yield ()
        elif node.kind == "stack":
            yield from self._stack(index, tasks, at_most, spared=spared)
        elif node.kind == "split":
            yield from self._split(index, tasks, at_most, spared=spared)

    def _stack(self, index: int, tasks: int, at_most: int, *, spared: bool) -> Iterator[Choice]:
        node = self._tree.nodes[index]
        place = self._problem.places[node.place]
        below = self._tree.nodes[node.one].shape
        heights = (self._tables.spared if spared else self._tables.full)[below]
        if heights[tasks] < NEVER and heights[tasks] + making_room(place) <= at_most:
            yield from self._branch(node.one, tasks, at_most - making_room(place), spared=spared)
        fixed = fixed_cost(place) - (self._tables.longest_destruction(node) if spared else 0)
        here = _subsets(tasks)[1:]
        taken = self._loads[node.place][here] + fixed
        rest = self._tables.full[below][tasks ^ here]
        fits = (self._loads[node.place][here] < NEVER) & (rest < NEVER)
        fits &= taken.astype(np.int64) + rest <= at_most
        for part, height in zip(here[fits].tolist(), taken[fits].tolist(), strict=True):
            for choice in self._branch(node.one, tasks ^ part, at_most - height, spared=False):
                yield ((node.place, part), *choice)

    def _split(self, index: int, tasks: int, at_most: int, *, spared: bool) -> Iterator[Choice]:
        node = self._tree.nodes[index]
        one, two = self._tree.nodes[node.one].shape, self._tree.nodes[node.two].shape
        heights = self._tables.spared if spared else self._tables.full
        neighbours = neighbours_of(node, same=one == two, spared=spared)
        last = 1 << (tasks.bit_length() - 1) if neighbours.same else 0
        parts = _subsets(tasks ^ last) | last
        at_most = min(at_most, NEVER - 1)
        left, right = heights[one][parts], heights[two][tasks ^ parts]
        both = ((parts != 0) | neighbours.busy_one) & ((parts != tasks) | neighbours.busy_two)
        after, before = left + both * neighbours.wait_one <= at_most, right + both * neighbours.wait_two <= at_most
        fits = (after & (right <= at_most)) | (before & (left <= at_most))
        # Whichever of the two can come first, the other one has the less time.
        most_left = at_most - both * ~before * neighbours.wait_one
        most_right = at_most - both * ~after * neighbours.wait_two
        for at in np.nonzero(fits)[0].tolist():
            part = int(parts[at])
            for here in self._branch(node.one, part, int(most_left[at]), spared=spared):
                for there in self._branch(node.two, tasks ^ part, int(most_right[at]), spared=spared):
                    yield (*here, *there)


def _subsets(tasks: int) -> npt.NDArray[np.int64]:
    """Return every subset of a set, the empty one first."""
    subsets = np.zeros(1, np.int64)
    while tasks:
        bit = tasks & -tasks
        subsets = np.concatenate([subsets, subsets | bit])
        tasks ^= bit
    return subsets
