"""Partitions of all tasks into sets of tasks, each of which one GPU can run."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait

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


def partition_of_sets(
    found: GpuSets, tasks: PricedTasks, count: int, most_steps: int, workers: int, expired: Callable[[], bool]
) -> tuple[tuple[int, ...] | None, int]:
    """Find a partition of all tasks into some of the sets.

    A depth-first search: the lowest task that is left is in one of the next sets, and those that are still to come are
    worth no more than the best one each.

    Parameters
    ----------
    found : GpuSets
        Sets that are not empty, each once, with their values at the prices of the tasks.
    tasks : PricedTasks
        All tasks.
    count : int
        Number of sets of a partition.
    most_steps : int
        Sets that are looked at, at most.
    workers : int
        Number of threads.
    expired : callable
        Returns True once the time is up.

    Returns
    -------
    partition : tuple of int, optional
        An empty one if there is none; None, if it takes too many steps or the time is up.
    steps : int
        Sets that were looked at.
    """
    everything, left, over = (1 << len(tasks.prices)) - 1, most_steps, False
    if count == 1:
        return ((everything,) if everything in found.sets else ()), len(found)
    order = np.argsort(-found.values, kind="stable")
    sets, values = np.ascontiguousarray(found.sets[order]), np.ascontiguousarray(found.values[order])
    rising = np.sort(sets)
    begun: list[Integers] = []  # by search: its steps, and what is not 0 once it is to end
    firsts = np.nonzero((sets & 1 != 0) & (values >= tasks.value - (count - 1) * values[:1].sum()))[0]

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
            for each in [pool.submit(search, chunk) for chunk in chunks]:
                while not wait([each], _SECONDS_PER_LOOK).done:
                    if expired():
                        end()
                ended, parts = each.result()
                if ended:
                    return tuple(parts.tolist()) if ended > 0 else None, most_steps - left
        finally:
            end()
    return (), most_steps - left
