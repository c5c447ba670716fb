"""State of the local search: an assignment of tasks to places, and the paths through the load tree that follow.

Compiled loops work on arrays, so the load tree and the ticks of a batch are given here as arrays too.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.loads import loop
from mig_opt.loads.subsets import IMPOSSIBLE, NEVER, Integers, joint_path
from mig_opt.loads.tree import LoadTree

SPLIT = 2
_KINDS = {"leaf": 0, "stack": 1, "split": SPLIT}


class Costs(NamedTuple):
    """Ticks of tasks and places, and the same weighted by the dual prices of the slices that they cover."""

    ticks: npt.NDArray[np.int32]  # each task in each place; NEVER where it cannot run
    used: Integers  # a used place, besides its tasks
    clearing: Integers  # an unused place, if something below or around it is used
    weighted: npt.NDArray[np.float64]  # ticks of each task in each place x dual prices: what is left for others counts
    weighted_used: npt.NDArray[np.float64]  # the same for a used place, besides its tasks


class FlatTree(NamedTuple):
    """Load tree as arrays, with a second node for each branch that has something live.

    Live instances have to go as soon as something around them is used. So the paths through such a branch have two
    cases, and each is a node: *around* for the case that something around it is used.
    """

    # 0 for a leaf, 1 for a stack, 2 for a split. The nodes of one GPU follow those of another, and each node those
    # below it.
    kind: Integers
    origin: Integers  # the node of the load tree
    # the place of a stack; the nodes below
    place: Integers
    one: Integers
    two: Integers
    inside: Integers  # the node below a stack whose place is used
    around: npt.NDArray[np.bool_]  # true for the case that something around it is used
    # the first node of each GPU, and the last, its root
    first: Integers
    last: Integers
    gpu: Integers  # the GPU of each place
    # ticks that one branch of a split loses if the other one comes first, where both have something; in the case
    # around, if the other one is cleared later
    wait_one: Integers
    wait_two: Integers
    leaves: Integers  # number of leaves in each branch: paths that lead through it


def flat_tree(batch: IntegerBatch, tree: LoadTree) -> FlatTree:
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
    return FlatTree(
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
        leaves=np.array([len(tree.leaves[node]) for node, _ in rows]),
    )


class State(NamedTuple):
    """Loads of the places, and longest paths through the branches."""

    # ticks and number of the tasks in each place
    load: Integers
    tasks: Integers
    # of each branch: the length of the longest path through it, and the number of tasks in it
    longest: Integers
    busy: Integers


@loop
def add_task(costs: Costs, state: State, task: int, place: int, sign: int) -> None:
    """Add a task to a place (``sign`` 1), or remove it (-1)."""
    state.load[place] += sign * costs.ticks[task, place]
    state.tasks[place] += sign


@loop
def state_of(costs: Costs, tree: FlatTree, places: Integers) -> State:
    """Return the state in which each task runs in its given place; a task with place -1 runs nowhere."""
    count, nodes = costs.used.shape[0], tree.kind.shape[0]
    state = State(
        np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    )
    for task in range(places.shape[0]):
        if places[task] >= 0:
            add_task(costs, state, task, places[task], 1)
    return state


@loop
def update_paths(costs: Costs, tree: FlatTree, state: State, gpu: int) -> None:
    """Find the longest path through each branch of a GPU, and the number of tasks in it."""
    longest, busy = state.longest, state.busy
    for node in range(tree.first[gpu], tree.last[gpu] + 1):
        one, two = tree.one[node], tree.two[node]
        if tree.kind[node] == 0:
            longest[node] = busy[node] = 0
        elif tree.kind[node] == 1:
            place = tree.place[node]
            busy[node] = busy[one] + state.tasks[place]
            if state.tasks[place]:
                longest[node] = longest[tree.inside[node]] + state.load[place] + costs.used[place]
            else:
                longest[node] = longest[one] + (costs.clearing[place] if busy[one] or tree.around[node] else 0)
        else:
            busy[node] = busy[one] + busy[two]
            waits = tree.around[node] or (busy[one] > 0 and busy[two] > 0)
            longest[node] = joint_path(
                longest[one], longest[two], tree.wait_one[node] * waits, tree.wait_two[node] * waits
            )


@loop
def mark_longest_path(tree: FlatTree, state: State, gpu: int, on_path: npt.NDArray[np.bool_]) -> None:
    """Mark the places on the longest path through a GPU."""
    on_path[:] = False
    node = tree.last[gpu]
    while tree.kind[node]:
        one, two = tree.one[node], tree.two[node]
        if tree.kind[node] == 1:
            on_path[tree.place[node]] = True
            node = tree.inside[node] if state.tasks[tree.place[node]] else one
        else:
            node = one if state.longest[one] >= state.longest[two] else two


class LeastLoads(NamedTuple):
    """Least weighted load of each task in a branch and outside: its ticks x the leaves that its place covers."""

    row: Integers  # Row of the other arrays for each node. GPUs that are alike share their rows.
    inside: Integers  # in the branch
    around: Integers  # elsewhere on the GPU, without the leaves of the branch
    beside: Integers  # elsewhere on the GPU, with all leaves


def least_loads(tree: LoadTree, flat: FlatTree, ticks: npt.NDArray[np.int32]) -> LeastLoads:
    """Return the least weighted loads for ``ticks`` of each task in each place, shape (tasks, places)."""
    row = np.empty(tree.roots[-1] + 1, np.int64)
    rows: dict[int, int] = {}
    found: list[tuple[Integers, Integers, Integers]] = []
    for before, root in itertools.pairwise([-1, *tree.roots]):
        first = before + 1
        known = rows.setdefault(tree.nodes[root].shape, len(found))
        row[first : root + 1] = known + np.arange(root + 1 - first)
        if known == len(found):
            branches = range(first, root + 1)
            found += [least_weighted_loads(tree, ticks, [node], branches) for node in branches]
    inside, around, beside = (np.stack(rows) for rows in zip(*found, strict=True))
    return LeastLoads(row[flat.origin], inside, around, beside)


def least_weighted_loads(
    tree: LoadTree, ticks: npt.NDArray[np.int32], nodes: Sequence[int], among: Iterable[int]
) -> tuple[Integers, Integers, Integers]:
    """Return the least weighted load of each task in a branch, and elsewhere without and with the leaves of the branch.

    Parameters
    ----------
    tree : LoadTree
        The tree.
    ticks : array of int32, shape (tasks, places)
        Each task in each place; NEVER where it cannot run.
    nodes : sequence of int
        Branches that are alike: the least over all of them counts.
    among : iterable of int
        Nodes in whose places tasks may run.

    Returns
    -------
    tuple of array of int64, shape (tasks,)
        In ticks x leaves, :data:`IMPOSSIBLE` where a task cannot run: the arguments of :func:`sets_within`.
    """
    stacks = [node for node in among if tree.nodes[node].kind == "stack"]
    leaves = tree.leaves
    inside, around, beside = (np.full(len(ticks), IMPOSSIBLE, np.int64) for _ in range(3))

    def lower(least: Integers, place: int, weight: int) -> None:
        loads = np.where(ticks[:, place] < NEVER, ticks[:, place].astype(np.int64) * weight, IMPOSSIBLE)
        np.minimum(least, loads, out=least)

    for node in nodes:
        below = set(tree.places_below(node))
        for stack in stacks:
            place = tree.nodes[stack].place
            if place in below:
                lower(inside, place, len(leaves[stack]))
            else:
                lower(around, place, len(leaves[stack] - leaves[node]))
                lower(beside, place, len(leaves[stack]))
    return inside, around, beside


@loop
def path_sums(costs: Costs, tree: FlatTree, state: State, gpu: int) -> tuple[Integers, Integers]:
    """Return for each branch of a GPU the sum of the paths to its leaves, in two parts.

    The first is the sum over its leaves of the ticks within the branch, the second the ticks above it on each path.
    """
    first, last = tree.first[gpu], tree.last[gpu]
    within, above = np.zeros(last + 1 - first, np.int64), np.zeros(last + 1 - first, np.int64)
    for node in range(first, last + 1):
        if tree.kind[node]:
            within[node - first] = within[tree.one[node] - first]
        if tree.kind[node] == 2:
            within[node - first] += within[tree.two[node] - first]
        elif tree.kind[node] == 1 and state.tasks[tree.place[node]]:
            place = tree.place[node]
            within[node - first] += tree.leaves[node] * (state.load[place] + costs.used[place])
    for node in range(last, first - 1, -1):
        if tree.kind[node]:
            here = above[node - first]
            if tree.kind[node] == 2:
                above[tree.two[node] - first] = here
            elif state.tasks[tree.place[node]]:
                here += state.load[tree.place[node]] + costs.used[tree.place[node]]
            above[tree.one[node] - first] = here
            if tree.kind[node] == 1:
                above[tree.inside[node] - first] = here
    return within, above


@loop
def greedy_assignment(costs: Costs, tree: FlatTree) -> Integers:
    """Assign all tasks, the most expensive first, each to the one of its places that lengthens paths least.

    Parameters
    ----------
    costs : Costs
        Ticks, NEVER in all but the cheap places of a task; no instance is live.
    tree : FlatTree
        The load tree.

    Returns
    -------
    array of int64, shape (tasks,)
        The place of each task.
    """
    tasks, number = costs.weighted.shape
    cheapest = np.empty(tasks)
    for task in range(tasks):
        cheapest[task] = np.inf
        for place in range(number):
            if costs.ticks[task, place] < NEVER:
                cheapest[task] = min(cheapest[task], costs.weighted[task, place])
    places = np.full(tasks, -1)
    state = state_of(costs, tree, places)
    for task in np.argsort(-cheapest):
        shortest, chosen = np.int64(NEVER), -1
        for place in range(number):
            if costs.ticks[task, place] < NEVER:
                add_task(costs, state, task, place, 1)
                update_paths(costs, tree, state, tree.gpu[place])
                length = state.longest[tree.last[tree.gpu[place]]]
                add_task(costs, state, task, place, -1)
                if length < shortest:
                    shortest, chosen = length, place
        places[task] = chosen
        add_task(costs, state, task, chosen, 1)
    return places
