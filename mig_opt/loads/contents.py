"""What fits into a branch, and what it is worth: whole tasks in place of divided ones.

Each task has a price. The best contents of a placement are a knapsack: its tasks run one after the other. All that is
inside of it shares the time that they leave. Prices are whole numbers, so what comes out is exact; times are rounded
down to a *grain* of some ticks, so it is never too little.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mig_opt.loads.jit import loop
from mig_opt.loads.state import Integers

Table = npt.NDArray[np.int32]


@loop
def fill(times: Table, prices: Table, table: Table) -> None:
    """Find the best contents of placements with the same footprint for every time that they have together.

    Parameters
    ----------
    times : array of int32, shape (tasks, kinds)
        Of each task in each kind of placement, in grains; times that are too long cannot be.
    prices : array of int32, shape (tasks,)
        Of each task.
    table : array of int32, shape (tasks + 1, grains + 1)
        Filled in place: row ``i`` has the highest sum of prices of the first ``i`` tasks.
    """
    most = table.shape[1] - 1
    table[0, :] = 0
    for task in range(times.shape[0]):
        before, after, price = table[task], table[task + 1], prices[task]
        after[:] = before
        for kind in range(times.shape[1]):
            time = times[task, kind]
            if time <= most and price > 0:
                # As slices, since the compiler then works on several at a time.
                shorter, longer = before[: most + 1 - time], after[time:]
                for at in range(most + 1 - time):
                    longer[at] = max(longer[at], shorter[at] + price)


@loop
def read_off(times: Table, prices: Table, table: Table, room: int) -> Integers:
    """Return the kind in which each task runs in the best contents within ``room`` grains, -1 if in none."""
    kinds = np.full(times.shape[0], -1, np.int64)
    for task in range(times.shape[0] - 1, -1, -1):
        if table[task + 1, room] != table[task, room]:
            for kind in range(times.shape[1]):
                time = times[task, kind]
                if time <= room and table[task, room - time] + prices[task] == table[task + 1, room]:
                    kinds[task] = kind
                    room -= time
                    break
    return kinds


@loop
def line_up(tables: Table, order: Integers, wait: int, best: Table) -> None:
    """Find what members that are first created in some order are worth together, where that is more than ``best``.

    Parameters
    ----------
    tables : array of int32, shape (branches, grains + 1)
        What each branch is worth within so many grains, -1 if it cannot be.
    order : array of int64
        The branches of the members.
    wait : int
        Grains that each of them takes from those behind it.
    best : array of int32, shape (grains + 1,)
        Raised in place.
    """
    together = np.zeros(best.shape[0], np.int32)
    for place in range(order.shape[0]):
        late = min(place * wait, best.shape[0])
        together[:late] = -1
        member, sums = tables[order[place]], together[late:]
        for at in range(sums.shape[0]):
            sums[at] = sums[at] + member[at] if sums[at] >= 0 and member[at] >= 0 else -1
    for at in range(best.shape[0]):
        best[at] = max(best[at], together[at])


@loop
def stack(contents: Table, inside: Table, operations: int, best: Table) -> None:
    """Find what a placement with its contents and all inside of it is worth, where that is more than ``best``.

    Parameters
    ----------
    contents, inside : array of int32, shape (grains + 1,)
        What the placement itself and what is inside of it are worth within so many grains, at least 0.
    operations : int
        Grains of its creation and destruction.
    best : array of int32, shape (grains + 1,)
        Raised in place.
    """
    last = -1
    for own in range(best.shape[0] - operations):
        if contents[own] > last:
            last = contents[own]
            longer = best[operations + own :]
            for at in range(longer.shape[0]):
                longer[at] = max(longer[at], last + inside[at])
