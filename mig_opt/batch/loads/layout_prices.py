"""Dual prices of its own for a layout: steps along a subgradient, until they rule it out or gain nothing.

For given dual prices, :mod:`mig_opt.batch.loads.layout_values` gives the best value of a layout within some time, and a
pattern that has it. A task that is in this pattern several times is worth too much, one that is not in it too little: a
step in this direction lowers the value of the best pattern, relative to that of all tasks (Held, Wolfe and Crowder,
1974; length of the steps after Polyak, 1969). Whatever the prices, the bound is computed from them in whole numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mig_opt.batch.loads.layout_values import PricedTasks
from mig_opt.batch.loads.layouts import LayoutTree
from mig_opt.batch.loads.subsets import Integers, Reals, Table
from mig_opt.native import loop

_AIM = 0.001
"""Share of the value of all tasks by which steps aim at less than it: with 0, prices that rule out come late."""

_PATIENCE, _SHRINKING = 4, 0.6
"""After so many steps without gain the steps begin anew from the best prices, so many times as long."""

_improve_prices = loop("improve_prices")


class ImprovedPrices(NamedTuple):
    """Dual prices of a layout."""

    prices: Reals  # the best ones, shape (tasks,)
    lower: int  # ticks that every schedule of the layout takes, as far as is within the limit
    cells: int  # entries of tables that were filled


class _Descent(NamedTuple):
    highest: float  # sum of the prices as whole numbers, at most
    aim: float
    shrinking: float


class _Work(NamedTuple):
    values: npt.NDArray[np.int32]  # shape (nodes + 1, grains + 1)
    taken: npt.NDArray[np.bool_]  # for each node, task and number of grains
    whole: Table  # shape (tasks,)
    prices: Reals  # shape (tasks,)
    counts: Integers  # shape (tasks,)


def improve_prices(tree: LayoutTree, tasks: PricedTasks, prices: Reals, rounds: int) -> ImprovedPrices:
    """Look for dual prices with which no schedule of a layout is within the limit of time.

    Parameters
    ----------
    tree : LayoutTree
        Tree of the layout.
    tasks : PricedTasks
        The tasks and the limit; their prices do not matter.
    prices : array of float, shape (tasks,)
        Dual prices to begin with, not negative and not all 0.
    rounds : int
        Times that the values of the layout are computed, at most.
    """
    nodes, count, size = tree.rows(), len(prices), tasks.grains + 1
    work = _Work(
        np.empty((len(nodes) + 1, size), np.int32),
        np.empty(len(nodes) * count * size, np.bool_),
        np.empty(count, np.int32),
        np.empty(count),
        np.empty(count, np.int64),
    )
    best = prices.astype(np.float64)
    descent = _Descent(float(tasks.highest), _AIM, _SHRINKING)
    limits = (tasks.grain, rounds, _PATIENCE)
    lower = _improve_prices(nodes, tasks.times, best, limits, descent, work)
    cells = int(work.counts[0]) * len(nodes) * count * size
    return ImprovedPrices(best, min(lower * tasks.grain, tasks.at_most + 1), cells)
