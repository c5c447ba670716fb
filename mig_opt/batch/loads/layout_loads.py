"""Bound of a layout from the loads of its paths, with tasks divided among placements.

Give the paths of a layout weights that sum to 1. The longest path is no shorter than the weighted mean of all, and this
is no shorter than if each task runs where it adds least to it. Good weights come from steps along a subgradient, as in
:mod:`mig_opt.batch.loads.layout_prices`; whatever they are, the bound is computed from them in whole numbers. The loop
is in C: ``mig_opt/native/layout_loads.c``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mig_opt.batch.loads.layouts import LayoutTree
from mig_opt.batch.loads.subsets import Integers
from mig_opt.native import loop

_ROUNDS = 300
"""Weights that are tried, at most."""

_AIM = 0.0002
"""Share by which steps aim above the limit."""

_PATIENCE, _SHRINKING = 4, 0.7
"""After so many steps without gain the steps begin anew from the best weights, so many times as long."""

_bound_by_divided_tasks = loop("bound_by_divided_tasks")


class _Ascent(NamedTuple):
    aim: float
    shrinking: float


class _Work(NamedTuple):
    weights: npt.NDArray[np.float64]  # of each node; so are the next three
    best: npt.NDArray[np.float64]
    loads: npt.NDArray[np.float64]
    whole: Integers
    least_weight: Integers  # of each profile; so is the next one
    choice: Integers


def bound_by_divided_tasks(tree: LayoutTree, ticks: npt.NDArray[np.int32], at_most: int) -> int:
    """Return ticks that every schedule of a layout takes; one more than the limit, if none is within it.

    Parameters
    ----------
    tree : LayoutTree
        Tree of the layout.
    ticks : array of int32, shape (profiles, tasks)
        Ticks of each task; at least :data:`mig_opt.batch.loads.subsets.NEVER` where it cannot run.
    at_most : int
        The limit.
    """
    nodes, profiles = tree.rows(), len(ticks)
    work = _Work(
        weights=np.empty(len(nodes)),
        best=np.empty(len(nodes)),
        loads=np.empty(len(nodes)),
        whole=np.empty(len(nodes), np.int64),
        least_weight=np.empty(profiles, np.int64),
        choice=np.empty(profiles, np.int64),
    )
    lower = _bound_by_divided_tasks(nodes, ticks, at_most, _ROUNDS, _PATIENCE, _Ascent(_AIM, _SHRINKING), work)
    return min(int(lower), at_most + 1)
