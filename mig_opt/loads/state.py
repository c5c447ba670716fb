"""What runs where on the load trees of some GPUs, and how high that is: the ground of the local search."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.loads.jit import loop
from mig_opt.loads.kernels import joint_height
from mig_opt.loads.tree import LoadTree

Integers = npt.NDArray[np.int64]

SPLIT = 2
_KINDS = {"leaf": 0, "stack": 1, "split": SPLIT}


class Costs(NamedTuple):
    """What takes how long, in ticks.

    Attributes
    ----------
    ticks : array of int32, shape (tasks, places)
        Each task in each place; NEVER where it cannot run.
    fixed : array of int64, shape (places,)
        A used place, besides its tasks.
    room : array of int64, shape (places,)
        An unused place, if something below or around it is used.
    price : array of float64, shape (tasks, places)
        Each task in each place, weighted by what it covers: what is left for others counts.
    rent : array of float64, shape (places,)
        The same for a used place, besides its tasks.
    """

    ticks: npt.NDArray[np.int32]
    fixed: Integers
    room: Integers
    price: npt.NDArray[np.float64]
    rent: npt.NDArray[np.float64]


class Shape(NamedTuple):
    """The load tree, with a second node for each branch that has something live.

    Live instances have to go as soon as something around them is used. So the height of such a branch has two cases,
    and each is a node: *around* for the case that something around it is used.

    Attributes
    ----------
    kind : array of int64, shape (nodes,)
        0 for a leaf, 1 for a stack, 2 for a split. The nodes of one GPU follow those of another, and each node those
        below it.
    origin : array of int64, shape (nodes,)
        The node of the tree.
    place, one, two : array of int64, shape (nodes,)
        The place of a stack; what is below.
    inside : array of int64, shape (nodes,)
        What is below a stack whose place is used.
    around : array of bool, shape (nodes,)
        Whether the node stands for the case that something around it is used.
    first, last : array of int64, shape (gpus,)
        The first node of each GPU, and the last, its root.
    gpu : array of int64, shape (places,)
        The GPU of each place.
    wait_one, wait_two : array of int64, shape (nodes,)
        Ticks that one branch of a split loses if the other one comes first, where both have something; in the case
        around, if the other one is cleared later.
    tips : array of int64, shape (nodes,)
        Number of leaves in each branch: ways that lead through it.
    """

    kind: Integers
    origin: Integers
    place: Integers
    one: Integers
    two: Integers
    inside: Integers
    around: npt.NDArray[np.bool_]
    first: Integers
    last: Integers
    gpu: Integers
    wait_one: Integers
    wait_two: Integers
    tips: Integers


def shape_of(batch: IntegerBatch, tree: LoadTree) -> Shape:
    """Return the tree of a batch as arrays."""
    single: dict[int, int] = {-1: -1}
    around: dict[int, int] = {-1: -1}
    rows: list[tuple[int, bool]] = []
    first = []
    for before, root in itertools.pairwise([-1, *tree.roots]):
        first.append(len(rows))
        for node in range(before + 1, root + 1):
            if node != root and not batch.live.keys().isdisjoint(tree.places_below(node)):
                around[node] = len(rows)
                rows.append((node, True))
            single[node] = len(rows)
            around.setdefault(node, len(rows))
            rows.append((node, False))
    nodes = [tree.nodes[node] for node, _ in rows]
    cases = [around if case else single for _, case in rows]
    return Shape(
        kind=np.array([_KINDS[node.kind] for node in nodes]),
        origin=np.array([node for node, _ in rows]),
        place=np.array([node.place for node in nodes]),
        one=np.array([case[node.one] for node, case in zip(nodes, cases, strict=True)]),
        two=np.array([case[node.two] for node, case in zip(nodes, cases, strict=True)]),
        inside=np.array([around[node.one] for node in nodes]),
        around=np.array([case for _, case in rows]),
        first=np.array(first),
        last=np.array([single[root] for root in tree.roots]),
        gpu=np.array([place.gpu for place in batch.places]),
        wait_one=np.array([tree.nodes[node].late_one if case else tree.nodes[node].wait_one for node, case in rows]),
        wait_two=np.array([tree.nodes[node].late_two if case else tree.nodes[node].wait_two for node, case in rows]),
        tips=np.array([len(tree.tips[node]) for node, _ in rows]),
    )


class State(NamedTuple):
    """What runs where.

    Attributes
    ----------
    load, tasks : array of int64, shape (places,)
        Ticks and number of the tasks in each place.
    height, busy : array of int64, shape (nodes,)
        Of each branch: the longest way through it, and the number of tasks in it.
    """

    load: Integers
    tasks: Integers
    height: Integers
    busy: Integers


@loop
def nothing(costs: Costs, shape: Shape) -> State:
    """Return the state in which nothing runs."""
    places, nodes = costs.fixed.shape[0], shape.kind.shape[0]
    return State(
        np.zeros(places, np.int64), np.zeros(places, np.int64), np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    )


@loop
def put(costs: Costs, state: State, task: int, place: int, sign: int) -> None:
    """Put a task into a place (``sign`` 1), or take it out (-1)."""
    state.load[place] += sign * costs.ticks[task, place]
    state.tasks[place] += sign


@loop
def measure(costs: Costs, shape: Shape, state: State, gpu: int) -> None:
    """Find the height of each branch of a GPU, and how many tasks run in it."""
    height, busy = state.height, state.busy
    for node in range(shape.first[gpu], shape.last[gpu] + 1):
        one, two = shape.one[node], shape.two[node]
        if shape.kind[node] == 0:
            height[node] = busy[node] = 0
        elif shape.kind[node] == 1:
            place = shape.place[node]
            busy[node] = busy[one] + state.tasks[place]
            if state.tasks[place]:
                height[node] = height[shape.inside[node]] + state.load[place] + costs.fixed[place]
            else:
                height[node] = height[one] + (costs.room[place] if busy[one] or shape.around[node] else 0)
        else:
            busy[node] = busy[one] + busy[two]
            waits = shape.around[node] or (busy[one] > 0 and busy[two] > 0)
            height[node] = joint_height(
                height[one], height[two], shape.wait_one[node] * waits, shape.wait_two[node] * waits
            )


@loop
def highest_way(shape: Shape, state: State, gpu: int, on_way: npt.NDArray[np.bool_]) -> None:
    """Mark the places on the highest way through a GPU."""
    on_way[:] = False
    node = shape.last[gpu]
    while shape.kind[node]:
        one, two = shape.one[node], shape.two[node]
        if shape.kind[node] == 1:
            on_way[shape.place[node]] = True
            node = shape.inside[node] if state.tasks[shape.place[node]] else one
        else:
            node = one if state.height[one] >= state.height[two] else two
