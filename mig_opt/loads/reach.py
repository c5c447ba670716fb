"""Which sets of tasks can run in a branch at all, as part of an assignment within a height.

With any weights on the innermost branches, the weighted sum of the heights is at most the limit x the weights, and
each task adds at least its time x the weight of what it covers, at its best place. That is asked three times of a set:
with the weight inside of the branch, for the tasks in it; with the weight outside, for the others; and with the weight
everywhere, for all. Close to the optimum few sets pass, and all others need not be looked at.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mig_opt.loads.jit import loop
from mig_opt.loads.kernels import NEVER, Subsets
from mig_opt.loads.state import Costs, Integers, Shape, State
from mig_opt.loads.tree import LoadTree

CANNOT = 2**50
"""What a task adds where it cannot run: more than any limit x innermost branches, and sums still fit into 64 bits."""


class Reach(NamedTuple):
    """The least that each task adds to weighted heights, in ticks x innermost branches.

    Attributes
    ----------
    row : array of int64, shape (nodes,)
        Where the other arrays tell of a node. GPUs that are alike share their rows.
    inside : array of int64, shape (rows, tasks)
        In the branch: time x innermost branches below.
    around : array of int64, shape (rows, tasks)
        Elsewhere on the GPU: time x innermost branches below, but for those of the branch.
    beside : array of int64, shape (rows, tasks)
        Elsewhere on the GPU: time x innermost branches below.
    """

    row: Integers
    inside: Integers
    around: Integers
    beside: Integers


def reach(tree: LoadTree, shape: Shape, ticks: npt.NDArray[np.int32]) -> Reach:
    """Return what each task adds at least, of ``ticks`` in each place, shape (tasks, places)."""
    row = np.empty(tree.roots[-1] + 1, np.int64)
    rows: dict[int, int] = {}
    found: list[tuple[Integers, Integers, Integers]] = []
    for before, root in itertools.pairwise([-1, *tree.roots]):
        first = before + 1
        known = rows.setdefault(tree.nodes[root].shape, len(found))
        row[first : root + 1] = known + np.arange(root + 1 - first)
        if known == len(found):
            branches = range(first, root + 1)
            found += [least_amounts(tree, ticks, [node], branches) for node in branches]
    inside, around, beside = (np.stack(rows) for rows in zip(*found, strict=True))
    return Reach(row[shape.origin], inside, around, beside)


def least_amounts(
    tree: LoadTree, ticks: npt.NDArray[np.int32], nodes: Sequence[int], branches: Iterable[int]
) -> tuple[Integers, Integers, Integers]:
    """Return what each task adds at least in a branch, and elsewhere without and with what it adds in the branch.

    Parameters
    ----------
    tree : LoadTree
        The branches.
    ticks : array of int32, shape (tasks, places)
        Each task in each place; NEVER where it cannot run.
    nodes : sequence of int
        Branches that are alike; the least counts of what a task adds in any of them.
    branches : iterable of int
        The nodes among whose places tasks may run.

    Returns
    -------
    tuple of array of int64, shape (tasks,)
        In ticks x innermost branches, :data:`CANNOT` where it can run on none: what :func:`sets_within` takes.
    """
    stacks = [node for node in branches if tree.nodes[node].kind == "stack"]
    tips = tree.tips
    inside, around, beside = (np.full(len(ticks), CANNOT, np.int64) for _ in range(3))
    for node in nodes:
        below = set(tree.places_below(node))
        for stack in stacks:
            place = tree.nodes[stack].place
            if place in below:
                _lower(inside, ticks[:, place], len(tips[stack]))
            else:
                _lower(around, ticks[:, place], len(tips[stack] - tips[node]))
                _lower(beside, ticks[:, place], len(tips[stack]))
    return inside, around, beside


def _lower(least: Integers, ticks: npt.NDArray[np.int32], weight: int) -> None:
    """Lower ``least`` to ticks x weight, where that is less and a task can run at all."""
    np.minimum(least, np.where(ticks < NEVER, ticks.astype(np.int64) * weight, CANNOT), out=least)


@loop
def taken(costs: Costs, shape: Shape, state: State, gpu: int) -> tuple[Integers, Integers]:
    """Return the sum of the heights of the innermost branches, in and above each branch of a GPU.

    The first is the sum over the innermost branches of a branch of what runs in it; the second what runs above it.
    """
    first, last = shape.first[gpu], shape.last[gpu]
    within, above = np.zeros(last + 1 - first, np.int64), np.zeros(last + 1 - first, np.int64)
    for node in range(first, last + 1):
        if shape.kind[node]:
            within[node - first] = within[shape.one[node] - first]
        if shape.kind[node] == 2:
            within[node - first] += within[shape.two[node] - first]
        elif shape.kind[node] == 1 and state.tasks[shape.place[node]]:
            place = shape.place[node]
            within[node - first] += shape.tips[node] * (state.load[place] + costs.fixed[place])
    for node in range(last, first - 1, -1):
        if shape.kind[node]:
            here = above[node - first]
            if shape.kind[node] == 2:
                above[shape.two[node] - first] = here
            elif state.tasks[shape.place[node]]:
                here += state.load[shape.place[node]] + costs.fixed[shape.place[node]]
            above[shape.one[node] - first] = here
            if shape.kind[node] == 1:
                above[shape.inside[node] - first] = here
    return within, above


@loop
def _sums(amounts: Integers) -> Integers:
    """Return the sum of ``amounts`` over each subset."""
    sums = np.zeros(1 << amounts.shape[0], np.int64)
    for index in range(amounts.shape[0]):
        bit = 1 << index
        for part in range(bit):
            sums[bit | part] = sums[part] + amounts[index]
    return sums


@loop
def sets_within(inside: Integers, around: Integers, beside: Integers, room: tuple[int, int, int]) -> Subsets:
    """Return the sets of tasks that can run in a branch.

    Parameters
    ----------
    inside, around, beside : array of int64, shape (k,)
        What each task adds at least in the branch, and elsewhere without and with what it adds in the branch.
    room : tuple of int
        Ticks x innermost branches that are left: in the branch, elsewhere, and in all.
    """
    in_branch, outside, in_all = _sums(inside), _sums(around), _sums(beside)
    everything = in_branch.shape[0] - 1
    result = np.empty(in_branch.shape[0], np.int32)
    count = 0
    for subset in range(everything + 1):
        rest = everything ^ subset
        if (
            in_branch[subset] <= room[0]
            and outside[rest] <= room[1]
            and in_branch[subset] + in_all[rest] <= room[2]
        ):  # fmt: skip
            result[count] = subset
            count += 1
    return result[:count]
