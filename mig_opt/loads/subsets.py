"""Compiled loops over subsets of tasks.

A *table* holds one number of ticks for each subset of a handful of tasks, with bit ``i`` of its index standing for task
``i``: the length of the longest path through a node of the load tree in which exactly these tasks run. Lengths of
:data:`NEVER` and more stand for what cannot be.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mig_opt.loads import loop

Integers = npt.NDArray[np.int64]
Table = npt.NDArray[np.int32]
Subsets = npt.NDArray[np.int32]

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


@loop
def joint_path(one: int, two: int, wait_one: int, wait_two: int) -> int:
    """Return the longest path through two branches of which one has to wait."""
    return min(max(one + wait_one, two), max(one, two + wait_two))


@loop
def split_tasks(one: Table, two: Table, subsets: Subsets, siblings: Siblings, at_most: int, result: Table) -> None:
    """For each subset find the shortest longest path over all ways to split it between two siblings.

    Smaller subsets say nothing about larger ones: where subsets were skipped, since they leave too much for the rest of
    the tree, the path that remains for a small subset may be longer than that of a larger one.

    Parameters
    ----------
    one, two : array of int32, shape (2**n,)
        Tables of the siblings.
    subsets : array of int32
        Subsets to look at; everything else in ``result`` stays as it is.
    siblings : Siblings
        Relation of the two.
    at_most : int
        Lengths above become NEVER.
    result : array of int32, shape (2**n,)
        Filled in place.
    """
    for whole in subsets:
        fixed = 0
        if siblings.same:
            fixed = whole
            while fixed & (fixed - 1):
                fixed &= fixed - 1
        rest = whole ^ fixed
        shortest = at_most + 1
        part = rest
        while True:
            first, second = one[part | fixed], two[rest ^ part]
            if max(first, second) < shortest:
                length = max(first, second)
                if (part | fixed or siblings.busy_one) and (rest ^ part or siblings.busy_two):
                    length = joint_path(first, second, siblings.wait_one, siblings.wait_two)
                shortest = min(shortest, length)
            if part == 0:
                break
            part = (part - 1) & rest
        result[whole] = shortest if shortest <= at_most else NEVER


@loop
def add_tasks(table: Table, ticks: npt.NDArray[np.int32], most: int) -> None:
    """Let any part of each subset run in one more place, which covers what ``table`` stands for.

    Parameters
    ----------
    table : array of int32, shape (2**n,)
        Paths without that place; replaced by the least sums of a path and of the ticks of tasks in that place.
    ticks : array of int32, shape (n,)
        Ticks of each task there.
    most : int
        Sums above are not of interest.
    """
    for task in range(ticks.shape[0]):
        longer = ticks[task]
        if longer > most:
            continue
        bit = 1 << task
        for block in range(bit, table.shape[0], 2 * bit):
            # As slices, since the compiler then works on several at a time.
            without, including = table[block - bit : block], table[block : block + bit]
            for index in range(bit):
                including[index] = min(including[index], without[index] + longer)


@loop
def choose_use(used: Table, unused: Table, used_ticks: int, clearing_ticks: int, most: int) -> None:
    """Take the shorter of two paths for each subset: through a place that is used, or is not.

    Parameters
    ----------
    used, unused : array of int32, shape (2**n,)
        Paths without the ticks of the place itself; the first is replaced.
    used_ticks, clearing_ticks : int
        Ticks of the place if it is used, and if it is not.
    most : int
        Lengths above become NEVER.
    """
    for subset in range(used.shape[0]):
        length = min(used[subset] + used_ticks, unused[subset] + clearing_ticks)
        used[subset] = length if length <= most else NEVER


@loop
def subset_sums(amounts: Table) -> Table:
    """Return the sum of ``amounts`` over each subset, at most :data:`NEVER`."""
    sums = np.zeros(1 << amounts.shape[0], np.int32)
    for index in range(amounts.shape[0]):
        bit, amount = 1 << index, min(amounts[index], NEVER)
        for part in range(bit):
            sums[bit | part] = min(sums[part] + amount, NEVER)
    return sums


@loop
def long_subset_sums(amounts: Integers) -> Integers:
    """Return the sum of ``amounts`` over each subset; with 64 bits there is nothing to check, which saves time."""
    sums = np.zeros(1 << amounts.shape[0], np.int64)
    for index in range(amounts.shape[0]):
        bit = 1 << index
        for part in range(bit):
            sums[bit | part] = sums[part] + amounts[index]
    return sums


@loop
def sets_within(inside: Integers, around: Integers, beside: Integers, room: tuple[int, int, int]) -> Subsets:
    """Return the sets of tasks that can run in a branch, as part of an assignment within a limit.

    With any weights on the leaves, the weighted sum of the loads of their paths is at most the limit x the weights, and
    each task adds at least its time x the weight of the leaves that it covers, at its best place. That is asked three
    times of a set: with the weight inside of the branch, for the tasks in it; with the weight outside, for the others;
    and with the weight everywhere, for all. Close to the optimum few sets pass, and all others need not be looked at.

    Parameters
    ----------
    inside, around, beside : array of int64, shape (k,)
        Least weighted load of each task in the branch, and elsewhere without and with its load in the branch.
    room : tuple of int
        Ticks x leaves that are left: in the branch, elsewhere, and in all.
    """
    in_branch, outside, in_all = long_subset_sums(inside), long_subset_sums(around), long_subset_sums(beside)
    everything = in_branch.shape[0] - 1
    result = np.empty(in_branch.shape[0], np.int32)
    count = 0
    for subset in range(everything + 1):
        rest = everything ^ subset
        if (
            in_branch[subset] <= room[0]
            and outside[rest] <= room[1]
            and in_branch[subset] + in_all[rest] <= room[2]
        ):  # fmt: skip
            result[count] = subset
            count += 1
    return result[:count]
