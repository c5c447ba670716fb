"""Partitions of all tasks into sets of tasks, each of which one GPU can run."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import NamedTuple

import numpy as np

from mig_opt.batch.loads.gpu_sets import GpuSets
from mig_opt.batch.loads.layout_values import PricedTasks
from mig_opt.batch.loads.subsets import Integers
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


def _with_bits(sets: Integers, bits: Integers) -> Integers:
    """Return sets whose bits are some of the bits before, in this order."""
    moved = np.zeros(len(sets), np.int64)
    for at, bit in enumerate(bits.tolist()):
        moved |= (sets >> bit & 1) << at
    return moved


def partition_of_sets(
    found: GpuSets,
    tasks: PricedTasks,
    count: int,
    most_steps: int,
    workers: int,
    expired: Callable[[], bool],
    begin: int = 0,
) -> Partition:
    """Find a partition of all tasks into some of the sets.

    A depth-first search, which tells 64 sets at a time whether they are disjoint from those before: of the tasks that
    are left, the one that is in the fewest sets is in the next one, and those that are still to come are worth no more
    than the best one each.

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

    Returns
    -------
    Partition
        Its parts are None also if the time is up.
    """
    everything, left, over = (1 << len(tasks.prices)) - 1, most_steps, False
    if count == 1:
        return Partition((everything,) if everything in found.sets else (), len(found), 0)
    # Tasks of the fewest sets first: fewer sets begin a partition then.
    rare = np.argsort([int((found.sets >> task & 1).sum()) for task in range(len(tasks.prices))], kind="stable")
    sets = _with_bits(found.sets, rare)
    order = np.lexsort([-found.values, sets & -sets])
    sets, values, rising = sets[order], np.ascontiguousarray(found.values[order]), np.sort(sets)
    begun: list[Integers] = []  # by search: its steps, and what is not 0 once it is to end
    firsts = np.nonzero((sets & 1 != 0) & (values >= tasks.value - (count - 1) * values.max(initial=0)))[0]
    # The less a set is worth, the more freely the others can be divided.
    firsts = firsts[::-1]

    def search(chunk: Integers) -> tuple[int, Integers]:
        nonlocal left
        parts, steps = np.zeros(count, np.int64), np.array([left, 0])
        begun.append(steps)
        if over or left <= 0 or expired():
            return -1, parts
        found = _partition_of_sets(sets, values, rising, chunk, (everything, tasks.value), steps, parts)
        left -= most_steps if found < 0 else int(steps[0])
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
                if ended:
                    back = tuple(_with_bits(parts, np.argsort(rare)).tolist())
                    return Partition(back if ended > 0 else None, most_steps - left, at)
        finally:
            end()
    return Partition((), most_steps - left, len(chunks))
