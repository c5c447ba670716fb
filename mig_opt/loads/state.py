"""What runs where on the load trees of some GPUs, and how high that is: the ground of the local search."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mig_opt.loads.jit import loop
from mig_opt.loads.kernels import joint_height

Integers = npt.NDArray[np.int64]


class Costs(NamedTuple):
    """What takes how long, in ticks.

    Attributes
    ----------
    ticks : array of int32, shape (tasks, places)
        Each task in each place; NEVER where it cannot run.
    fixed : array of int64, shape (places,)
        A used place, besides its tasks.
    room : array of int64, shape (places,)
        An unused place, if something below it is used.
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
    """The load tree.

    Attributes
    ----------
    kind : array of int64, shape (nodes,)
        0 for a leaf, 1 for a stack, 2 for a split. The nodes of one GPU follow those of another, and each node those
        below it.
    place, one, two : array of int64, shape (nodes,)
        The place of a stack; what is below.
    first, last : array of int64, shape (gpus,)
        The first node of each GPU, and the last, its root.
    gpu : array of int64, shape (places,)
        The GPU of each place.
    wait_one, wait_two : array of int64, shape (nodes,)
        Ticks that one branch of a split loses if the other one comes first.
    tips : array of int64, shape (nodes,)
        Number of leaves in each branch: ways that lead through it.
    """

    kind: Integers
    place: Integers
    one: Integers
    two: Integers
    first: Integers
    last: Integers
    gpu: Integers
    wait_one: Integers
    wait_two: Integers
    tips: Integers


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
            height[node] = height[one]
            if state.tasks[place]:
                height[node] += state.load[place] + costs.fixed[place]
            elif busy[one]:
                height[node] += costs.room[place]
        else:
            busy[node] = busy[one] + busy[two]
            waits = busy[one] > 0 and busy[two] > 0
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
            node = one
        else:
            node = one if state.height[one] >= state.height[two] else two
