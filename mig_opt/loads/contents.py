"""What fits on a way, and what it is worth: whole tasks in place of divided ones.

Each task has a price for each kind of placement it can run in. The best contents of a way are a knapsack: at most one
kind for each task, within the ticks that are left. Prices are whole numbers, so what comes out is exact; times are
rounded down to a *grain* of some ticks, so it is never too little.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mig_opt.loads.jit import loop
from mig_opt.loads.state import Integers

Table = npt.NDArray[np.int32]


@loop
def fill(times: Table, prices: Table, table: Table) -> None:
    """Find the best contents for every length of a way.

    Parameters
    ----------
    times, prices : array of int32, shape (tasks, kinds)
        Of each task in each kind of placement, in grains; times that are too long cannot be.
    table : array of int32, shape (tasks + 1, grains + 1)
        Filled in place: row ``i`` has the highest sum of prices of the first ``i`` tasks.
    """
    most = table.shape[1] - 1
    table[0, :] = 0
    for task in range(times.shape[0]):
        before, after = table[task], table[task + 1]
        after[:] = before
        for kind in range(times.shape[1]):
            time, price = times[task, kind], prices[task, kind]
            if time <= most and price > 0:
                # As slices, since the compiler then works on several at a time.
                shorter, longer = before[: most + 1 - time], after[time:]
                for at in range(most + 1 - time):
                    longer[at] = max(longer[at], shorter[at] + price)


@loop
def read_off(times: Table, prices: Table, table: Table, room: int) -> Integers:
    """Return the kind in which each task runs in the best contents of a way with ``room`` grains, -1 if in none."""
    kinds = np.full(times.shape[0], -1, np.int64)
    for task in range(times.shape[0] - 1, -1, -1):
        if table[task + 1, room] != table[task, room]:
            for kind in range(times.shape[1]):
                time = times[task, kind]
                if time <= room and table[task, room - time] + prices[task, kind] == table[task + 1, room]:
                    kinds[task] = kind
                    room -= time
                    break
    return kinds


@loop
def sums(rows: Table, values: Integers) -> Integers:
    """Return the sum of the ``values`` that each of the ``rows`` names."""
    total = np.zeros(rows.shape[0], np.int64)
    for row in range(rows.shape[0]):
        for at in rows[row]:
            total[row] += values[at]
    return total
