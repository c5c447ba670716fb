"""Matching of two sets of things for the greatest gain: the transportation problem, as a flow of least cost.

With all counts 1 it is the assignment problem. Things that are alike form a group, so that a fleet of thousands of GPUs
of a few dozen kinds is a small problem. The network simplex of OR-Tools is exact: gains and counts are whole numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

from mig_opt.errors import SolverError


def best_matching(gains: NDArray[np.int64], left: Sequence[int], right: Sequence[int]) -> NDArray[np.int64]:
    """Return the number of pairs of each group on the left with each on the right that give the greatest gain.

    ``gains`` has the gain of a pair, >= 0, for each group on the left (rows) and on the right, whose sizes the
    other arguments are. Those without a gain stay alone.
    """
    pairs = np.zeros(gains.shape, dtype=np.int64)
    rows, columns = np.nonzero(gains)
    if not len(rows):
        return pairs
    ours, theirs = np.asarray(left, dtype=np.int64), np.asarray(right, dtype=np.int64)
    sink = len(ours) + len(theirs)
    # Whatever stays alone goes to the sink directly, at no gain; what is matched, by way of its partner.
    alone, partners = np.arange(len(ours)), len(ours) + np.arange(len(theirs))
    flow = SimpleMinCostFlow()
    tails = np.concatenate([rows, alone, partners])
    heads = np.concatenate([len(ours) + columns, np.full(len(ours) + len(theirs), sink)])
    capacities = np.concatenate([np.minimum(ours[rows], theirs[columns]), ours, theirs])
    costs = np.concatenate([-gains[rows, columns], np.zeros(len(ours) + len(theirs), dtype=np.int64)])
    arcs = flow.add_arcs_with_capacity_and_unit_cost(tails, heads, capacities, costs)
    flow.set_nodes_supplies(np.append(alone, sink), np.append(ours, -ours.sum()))
    status = flow.solve()
    if status != flow.OPTIMAL:
        raise SolverError(f"the flow that matches groups ends with status {status}")
    pairs[rows, columns] = flow.flows(arcs[: len(rows)])
    return pairs
