"""Which sets of tasks can run in a branch at all, as part of an assignment within a height.

With any weights on the innermost branches, the weighted sum of the heights is at most the limit x the weights, and
each task adds at least its time x the weight of what it covers, at its best place. That is asked three times of a set:
with the weight inside of the branch, for the tasks in it; with the weight outside, for the others; and with the weight
everywhere, for all. Close to the optimum few sets pass, and all others need not be looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mig_opt.loads.jit import loop
from mig_opt.loads.kernels import NEVER, Subsets
from mig_opt.loads.state import Costs, Integers, Shape, State
from mig_opt.loads.tree import LoadTree


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
    inside: list[Integers] = []
    around: list[Integers] = []
    beside: list[Integers] = []
    for first, root in zip(shape.first.tolist(), tree.roots, strict=True):
        known = rows.setdefault(tree.nodes[root].shape, len(inside))
        row[first : root + 1] = known + np.arange(root + 1 - first)
        if known < len(inside):
            continue
        stacks = [node for node in range(first, root + 1) if tree.nodes[node].kind == "stack"]
        tips = tree.tips
        for node in range(first, root + 1):
            below = set(tree.places_below(node))
            outer = [stack for stack in stacks if tree.nodes[stack].place not in below]
            inner = [stack for stack in stacks if tree.nodes[stack].place in below]
            inside.append(_least(tree, ticks, inner, [len(tips[stack]) for stack in inner]))
            around.append(_least(tree, ticks, outer, [len(tips[stack] - tips[node]) for stack in outer]))
            beside.append(_least(tree, ticks, outer, [len(tips[stack]) for stack in outer]))
    return Reach(row, np.stack(inside), np.stack(around), np.stack(beside))


def _least(
    tree: LoadTree, ticks: npt.NDArray[np.int32], stacks: Sequence[int], weights: Sequence[int]
) -> npt.NDArray[np.int64]:
    """Return for each task the least of its ticks x weight on some places; NEVER where it cannot run on any."""
    least = np.full(len(ticks), NEVER, np.int64)
    for stack, weight in zip(stacks, weights, strict=True):
        here = ticks[:, tree.nodes[stack].place].astype(np.int64)
        np.minimum(least, np.where(here < NEVER, here * weight, NEVER), out=least)
    return least


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
