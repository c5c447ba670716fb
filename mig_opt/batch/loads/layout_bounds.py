"""Bounds of a layout, from steps along a subgradient: with divided tasks, and with dual prices of its own.

*Divided tasks.* Give the paths of a layout weights that sum to 1. The longest path is no shorter than the weighted mean
of all, and this is no shorter than if each task runs where it adds least to it.

*Dual prices.* For given prices, :mod:`mig_opt.batch.loads.layout_values` gives the best value of a layout within some
time, and a pattern that has it. A task that is in this pattern several times is worth too much, one that is not in it
too little: a step in this direction lowers the value of the best pattern, relative to that of all tasks.

Steps are as Held, Wolfe and Crowder (1974) propose, of a length after Polyak (1969); after some without gain they begin
anew, shorter, from the best weights or dual prices. Whatever these are, the bound follows from them in whole numbers.
The loops are in C: ``mig_opt/native/layout_loads.c`` and ``mig_opt/native/layouts.c``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mig_opt.batch.loads.layout_values import PricedTasks
from mig_opt.batch.loads.layouts import LayoutTree
from mig_opt.batch.loads.subsets import Integers, Reals, Table
from mig_opt.native import loop

_MAX_WEIGHTS = 300
"""Weights of paths that are tried, at most."""

_IDLE_STEPS = 4
"""Steps without gain after which they begin anew."""


class _Steps(NamedTuple):
    above: float  # share by which steps look beyond what rules the layout out: with 0, dual prices that do come late
    shrinking: float  # factor of their length when they begin anew


_WEIGHT_STEPS, _PRICE_STEPS = _Steps(0.0002, 0.7), _Steps(0.001, 0.6)

_fractional_bound, _subgradient_prices = loop("fractional_bound"), loop("subgradient_prices")


class _WeightWork(NamedTuple):
    weights: Reals  # of each node; so are the next three
    best: Reals
    loads: Reals
    whole: Integers
    least_weight: Integers  # of each profile; so is the next one
    choice: Integers


def fractional_bound(tree: LayoutTree, ticks: npt.NDArray[np.int32], at_most: int) -> int:
    """Return ticks that every schedule of a layout takes; one more than ``at_most``, if none is within it.

    ``ticks`` has those of each task, shape (profiles, tasks); at least :data:`mig_opt.batch.loads.subsets.NEVER` where
    it cannot run.
    """
    nodes, profiles = tree.rows(), len(ticks)
    weights, best, loads = (np.empty(len(nodes)) for _ in range(3))
    whole, least_weight, choice = (np.empty(size, np.int64) for size in (len(nodes), profiles, profiles))
    work = _WeightWork(weights, best, loads, whole, least_weight, choice)
    lower = _fractional_bound(nodes, ticks, at_most, _MAX_WEIGHTS, _IDLE_STEPS, _WEIGHT_STEPS, work)
    return min(int(lower), at_most + 1)


class LayoutPrices(NamedTuple):
    """Dual prices of a layout."""

    prices: Reals  # the best dual prices, shape (tasks,)
    lower: int  # ticks that every schedule of the layout takes, as far as is within the limit
    cells: int  # entries of tables that were filled


class _Descent(NamedTuple):
    highest: float  # sum of the dual prices as whole numbers, at most
    above: float
    shrinking: float


class _PriceWork(NamedTuple):
    values: npt.NDArray[np.int32]  # shape (nodes + 1, grains + 1)
    taken: npt.NDArray[np.bool_]  # for each node, task and number of grains
    whole: Table  # shape (tasks,)
    prices: Reals  # dual prices, shape (tasks,)
    counts: Integers  # shape (tasks,)


def subgradient_prices(tree: LayoutTree, tasks: PricedTasks, prices: Reals, rounds: int) -> LayoutPrices:
    """Look for dual prices with which no schedule of a layout is within the limit of time.

    ``prices`` are those to begin with, shape (tasks,), not negative and not all 0, whatever those of ``tasks`` are. The
    values of the layout are computed at most ``rounds`` times.
    """
    nodes, count, size = tree.rows(), len(prices), tasks.grains + 1
    work = _PriceWork(
        np.empty((len(nodes) + 1, size), np.int32),
        np.empty(len(nodes) * count * size, np.bool_),
        np.empty(count, np.int32),
        np.empty(count),
        np.empty(count, np.int64),
    )
    best = prices.astype(np.float64)
    descent = _Descent(float(tasks.highest), *_PRICE_STEPS)
    lower = _subgradient_prices(nodes, tasks.times, best, (tasks.grain, rounds, _IDLE_STEPS), descent, work)
    cells = int(work.counts[0]) * len(nodes) * count * size
    return LayoutPrices(best, min(lower * tasks.grain, tasks.at_most + 1), cells)
