"""Partitions of all tasks into sets of tasks, each of which one GPU can run."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import NamedTuple

import numpy as np

from mig_opt.batch.loads.gpu_sets import GpuSets
from mig_opt.batch.loads.layout_values import PricedTasks
from mig_opt.batch.loads.subsets import Integers, contents, rows_of_contents, sets_of_rows
from mig_opt.native import loop

_FIRSTS_AT_A_TIME = 64
"""Sets with the first task that a thread gets at a time."""

_SECONDS_PER_LOOK = 0.05
"""Seconds between two looks at the time."""

_partition_of_sets = loop("partition_of_sets")


class Partition(NamedTuple):
    """Outcome of a search for a partition."""

    parts: tuple[int, ...] | None  # its sets, none if there is no partition; None after too many steps
    steps: int  # words of 64 sets that were looked at
    at: int  # where the search ended: the next one for another partition of the same sets can begin there


def _in_order(found: GpuSets, tasks: PricedTasks, count: int) -> tuple[Integers, Integers, Integers, Integers]:
    """Return all tasks, the sets in that order of tasks, their values, and which of them may begin a partition.

    The first task is the one that the fewest sets have.
    """
    inside = contents(found.sets, len(tasks.prices))
    # Fewer sets begin a partition then.
    rare = np.argsort(inside.sum(axis=0, dtype=np.int64), kind="stable")
    inside = inside[:, rare]
    first = inside.argmax(axis=1)
    order = np.lexsort([-found.values, first])
    values = np.ascontiguousarray(found.values[order])
    firsts = np.nonzero((first[order] == 0) & (values >= tasks.value - (count - 1) * values.max(initial=0)))[0]
    # The less a set is worth, the more freely the others can be divided.
    return rare, rows_of_contents(inside[order]), values, firsts[::-1]


def partition_of_sets(
    found: GpuSets,
    tasks: PricedTasks,
    count: int,
    most_steps: int,
    workers: int,
    expired: Callable[[], bool],
    begin: int = 0,
    most_of_first: int | None = None,
) -> Partition:
    """Find a partition of all tasks into some of the sets.

    A depth-first search, which tells 64 sets at a time whether they are disjoint from those before: of the tasks that
    are left, the one that is in the fewest sets is in the next one, and those that are still to come are worth no more
    than the best one each. With more than three sets to come, the sets that are left are counted again each time.

    Parameters
    ----------
    found : GpuSets
        Sets that are not empty, each once, with their values at the prices of the tasks.
    tasks : PricedTasks
        All tasks.
    count : int
        Number of sets of a partition.
    most_steps : int
        Words of 64 sets that are looked at, at most.
    workers : int
        Number of threads.
    expired : callable
        Returns True once the time is up.
    begin : int
        Where another search ended, if partitions before that are not wanted.
    most_of_first : int, optional
        Words of 64 sets for the partitions that begin with the same set, at most: none is missed if not given.

    Returns
    -------
    Partition
        Its parts are None also if the time is up.
    """
    left, over, complete = most_steps, False, True
    if count == 1:
        everything = contents(found.sets, len(tasks.prices)).all(axis=1)
        return Partition(tuple(sets_of_rows(found.sets[everything])), len(found), 0)
    rare, sets, values, firsts = _in_order(found, tasks, count)
    begun: list[Integers] = []  # by search: its steps, and what is not 0 once it is to end

    def search(chunk: Integers) -> tuple[int, Integers]:
        nonlocal left
        parts, steps = np.zeros((count, sets.shape[1]), np.int64), np.array([left, 0])
        begun.append(steps)
        if over or left <= 0 or expired():
            return -1, parts
        limits = len(rare), tasks.value, most_of_first or most_steps
        found = _partition_of_sets(sets, values, chunk, limits, steps, parts)
        left -= int(steps[0])
        return found, parts

    def end() -> None:
        nonlocal over
        over = True
        for steps in begun:
            steps[1] = 1

    chunks = [np.ascontiguousarray(some) for some in np.array_split(firsts, 1 + len(firsts) // _FIRSTS_AT_A_TIME)]
    with ThreadPoolExecutor(workers) as pool:
        try:
            for at, each in enumerate([pool.submit(search, chunk) for chunk in chunks[begin:]], begin):
                while not wait([each], _SECONDS_PER_LOOK).done:
                    if expired():
                        end()
                ended, parts = each.result()
                complete &= not ended
                if ended > 0 or (not complete and (over or left <= 0)):
                    back = rows_of_contents(contents(parts, len(rare))[:, np.argsort(rare)])
                    return Partition(tuple(sets_of_rows(back)) if ended > 0 else None, most_steps - left, at)
        finally:
            end()
    return Partition(() if complete else None, most_steps - left, len(chunks))
