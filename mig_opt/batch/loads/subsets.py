"""Loops over subsets of tasks, in C: ``mig_opt/native/subsets.c``.

A *table* holds one number of ticks for each subset of a handful of tasks, with bit ``i`` of its index standing for task
``i``: the length of the longest path through a node of the load tree in which exactly these tasks run. Lengths of
:data:`NEVER` and more stand for what cannot be.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mig_opt.gpu.geometry import members
from mig_opt.native import loop

_split_tasks = loop("split_tasks")
_add_tasks = loop("add_tasks")
_subset_sums = loop("subset_sums")
_long_subset_sums = loop("long_subset_sums")
_sets_within = loop("sets_within")

Integers = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]
Table = npt.NDArray[np.int32]
Subsets = npt.NDArray[np.int32]

Choice = tuple[tuple[int, int], ...]
"""Pairs of a place and the set of tasks that run there, as bits."""

NEVER = 2**30 - 1
"""Longer than any schedule; the sum of two still fits into 32 bits."""

SKIPPED = 2**30
"""Table entry of a subset that was not looked at."""

IMPOSSIBLE = 2**50
"""Least weighted load of a task that cannot run: above any limit x leaves, and sums still fit into 64 bits."""


class Siblings(NamedTuple):
    """Relation of the two branches of a split."""

    same: bool  # true if they are alike: the last task then goes to the first of them
    # true if something runs in them already
    busy_one: bool
    busy_two: bool
    # ticks that the first one loses if the second one comes first, and the other way round; only where both run
    # something
    wait_one: int
    wait_two: int


def split_tasks(one: Table, two: Table, subsets: Subsets, siblings: Siblings, at_most: int, result: Table) -> None:
    """For each of ``subsets`` find the shortest longest path over all ways to split it between two siblings.

    Smaller subsets say nothing about larger ones: where subsets were skipped, since they leave too much for the rest of
    the tree, the path that remains for a small subset may be longer than that of a larger one. Lengths above
    ``at_most`` become NEVER; what is not looked at stays as it is in ``result``.
    """
    _split_tasks(one, two, subsets, siblings, at_most, result)


def add_tasks(table: Table, ticks: npt.NDArray[np.int32], most: int) -> None:
    """Let any part of each subset run in one more place, which covers what ``table`` stands for.

    The table, paths without that place, is replaced by the least sums of a path and of the ``ticks`` of tasks in that
    place; those above ``most`` are not of interest.
    """
    _add_tasks(table, ticks, most)


def subset_sums(amounts: Table) -> Table:
    """Return the sum of ``amounts`` over each subset, at most :data:`NEVER`."""
    sums = np.empty(1 << len(amounts), np.int32)
    _subset_sums(amounts, sums)
    return sums


def long_subset_sums(amounts: Integers) -> Integers:
    """Return the sum of ``amounts`` over each subset; with 64 bits there is nothing to check, which saves time."""
    sums = np.empty(1 << len(amounts), np.int64)
    _long_subset_sums(amounts, sums)
    return sums


def sets_within(inside: Integers, around: Integers, beside: Integers, room: tuple[int, int, int]) -> Subsets:
    """Return the sets of tasks that can run in a branch, as part of an assignment within a limit.

    With any weights on the leaves, the weighted sum of the loads of their paths is at most the limit x the weights, and
    each task adds at least its time x the weight of the leaves that it covers, at its best place. That is asked three
    times of a set: with the weight inside of the branch, for the tasks in it; with the weight outside, for the others;
    and with the weight everywhere, for all. Close to the optimum few sets pass, and all others need not be looked at.

    ``inside``, ``around`` and ``beside`` have the least weighted load of each task in the branch, and elsewhere without
    and with its load in the branch; ``room`` the ticks x leaves that are left in the branch, elsewhere, and in all.
    """
    sets = 1 << len(inside)
    result = np.empty(sets, np.int32)
    count = _sets_within(inside, around, beside, room, np.empty(3 * sets, np.int64), result)
    return result[:count].copy()


def places_of_tasks(choice: Choice) -> list[int]:
    """Return the place of each task in a choice, which has all of them."""
    places = {task: place for place, tasks in choice for task in members(tasks)}
    return [places[task] for task in range(len(places))]
