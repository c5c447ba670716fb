"""Compiled loops over subsets of tasks.

A *table* holds one height in ticks for each subset of a handful of tasks, with bit ``i`` of its index standing for
task ``i``. Heights of :data:`NEVER` and more stand for what cannot be.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mig_opt.loads.jit import loop

Table = npt.NDArray[np.int32]
Subsets = npt.NDArray[np.int32]

NEVER = 2**30 - 1
"""Higher than any schedule; the sum of two still fits into 32 bits."""

SKIPPED = 2**30
"""The height of a subset that was not looked at."""


class Neighbours(NamedTuple):
    """What is to be known of the two branches of a split.

    Attributes
    ----------
    same : bool
        Whether they are alike: the last task then goes to the first of them.
    busy_one, busy_two : bool
        Whether something runs in them already.
    wait_one, wait_two : int
        Ticks that the first one loses if the second one comes first, and the other way round; only where both run
        something.
    """

    same: bool
    busy_one: bool
    busy_two: bool
    wait_one: int
    wait_two: int


@loop
def joint_height(one: int, two: int, wait_one: int, wait_two: int) -> int:
    """Return the height of two branches of which one has to wait."""
    return min(max(one + wait_one, two), max(one, two + wait_two))


@loop
def split_heights(
    one: Table, two: Table, subsets: Subsets, neighbours: Neighbours, at_most: int, result: Table
) -> None:
    """For each subset find the lowest height at which it can be split between two neighbours.

    Smaller subsets say nothing about larger ones: where subsets were skipped, since they leave too much for the rest of
    the tree, what is left over for a small subset may be higher than a larger one is.

    Parameters
    ----------
    one, two : array of int32, shape (2**n,)
        Heights of the neighbours.
    subsets : array of int32
        What to look at; everything else in ``result`` stays as it is.
    neighbours : Neighbours
        What they have to do with each other.
    at_most : int
        Heights above become NEVER.
    result : array of int32, shape (2**n,)
        Filled in place.
    """
    for whole in subsets:
        fixed = 0
        if neighbours.same:
            fixed = whole
            while fixed & (fixed - 1):
                fixed &= fixed - 1
        rest = whole ^ fixed
        lowest = at_most + 1
        part = rest
        while True:
            first, second = one[part | fixed], two[rest ^ part]
            if max(first, second) < lowest:
                height = max(first, second)
                if (part | fixed or neighbours.busy_one) and (rest ^ part or neighbours.busy_two):
                    height = joint_height(first, second, neighbours.wait_one, neighbours.wait_two)
                lowest = min(lowest, height)
            if part == 0:
                break
            part = (part - 1) & rest
        result[whole] = lowest if lowest <= at_most else NEVER


@loop
def add_tasks(heights: Table, ticks: npt.NDArray[np.int32], most: int) -> None:
    """Let any part of each subset run in one more place, which covers what ``heights`` stands for.

    Parameters
    ----------
    heights : array of int32, shape (2**n,)
        Heights without that place; replaced by the lowest sums of a height and of the ticks of tasks in that place.
    ticks : array of int32, shape (n,)
        What each task takes there.
    most : int
        Sums above are not of interest.
    """
    for task in range(ticks.shape[0]):
        longer = ticks[task]
        if longer > most:
            continue
        bit = 1 << task
        for block in range(bit, heights.shape[0], 2 * bit):
            # As slices, since the compiler then works on several at a time.
            without, including = heights[block - bit : block], heights[block : block + bit]
            for index in range(bit):
                including[index] = min(including[index], without[index] + longer)


@loop
def choose_use(used: Table, unused: Table, taken: int, room: int, most: int) -> None:
    """Take the lower of two heights for each subset: of a place that is used, or is not.

    Parameters
    ----------
    used, unused : array of int32, shape (2**n,)
        Heights without what the place takes itself; the first is replaced.
    taken, room : int
        What it takes if it is used, and if it is not.
    most : int
        Heights above become NEVER.
    """
    for subset in range(used.shape[0]):
        height = min(used[subset] + taken, unused[subset] + room)
        used[subset] = height if height <= most else NEVER


@loop
def add_up(amounts: npt.NDArray[np.int32]) -> Table:
    """Return the sum of ``amounts`` over each subset, at most :data:`NEVER`."""
    sums = np.zeros(1 << amounts.shape[0], np.int32)
    for task in range(amounts.shape[0]):
        bit = 1 << task
        amount = min(amounts[task], NEVER)
        for part in range(bit):
            sums[bit | part] = min(sums[part] + amount, NEVER)
    return sums
