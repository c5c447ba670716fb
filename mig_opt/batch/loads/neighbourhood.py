"""Large neighbourhoods searched exactly: the best new places for some ten tasks at once.

This is the destroy-and-repair step of a large-neighbourhood search (Shaw, 1998; Pisinger and Ropke, 2010). Some tasks
are *free* to move, all others stay where they are. For every subset of the free tasks the shortest longest path through
each branch is found by dynamic programming, as in :mod:`mig_opt.models.batch.subset_proof`, in some tenths of a
millisecond; of all best assignments one is drawn. One GPU or two take part at a time, mostly the one with the longest
path among them. The *length* of a GPU is that of the longest path through it.

The loops in C work on arrays, so the load tree and the ticks of a batch are given here as arrays too; the structures of
``mig_opt/native/loops.h`` have the same fields.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.subsets import Integers
from mig_opt.batch.loads.tree import KINDS, LoadTree, least_weighted_loads
from mig_opt.native import loop

_MAX_PLACES = 62
"""Number of places of a GPU above which the length of an assignment is its longest path: a place is one of 64 bits."""

_greedy_assignment, _improve = loop("greedy_assignment"), loop("improve")


class Costs(NamedTuple):
    """Ticks of tasks and places, and the same weighted by the dual prices of the slices that they cover."""

    ticks: npt.NDArray[np.int32]  # each task in each place; NEVER where it cannot run
    used: Integers  # a used place, besides its tasks
    spared: Integers  # part of that, if nothing comes after it: its destruction
    clearing: Integers  # an unused place, if something below or around it is used
    weighted: npt.NDArray[np.float64]  # ticks of each task in each place x dual prices: what is left for others counts
    weighted_used: npt.NDArray[np.float64]  # the same for a used place, besides its tasks


class Operations(NamedTuple):
    """Ticks of operations, and which places have to wait for which: for the makespan of an assignment."""

    # of each place
    create: Integers
    destroy: Integers
    free: Integers  # -1 where nothing is live
    later: Integers  # bits of the places of its GPU that come after it, counted from the first one
    # of each GPU
    first: Integers  # its first place
    places: Integers  # number of its places
    parallel: bool  # true if operations do not wait for each other


def operations_of(batch: IntegerBatch) -> Operations:
    """Return the operations of a batch."""
    places, later = batch.places, list[int]()
    for there in batch.on_gpu.values():
        for at in there:
            after = (
                other
                for other in (there if places[at].free is not None else range(at + 1, there[-1] + 1))
                if places[other].free is None and other != at and places[other].conflicts(places[at])
            )
            later.append(sum(1 << (other - there[0]) for other in after) if len(there) <= _MAX_PLACES else 0)
    return Operations(
        create=np.array([place.create for place in places]),
        destroy=np.array([place.destroy for place in places]),
        free=np.array([-1 if place.free is None else place.free for place in places]),
        later=np.array(later),
        first=np.array([there[0] for there in batch.on_gpu.values()]),
        places=np.array(list(map(len, batch.on_gpu.values()))),
        parallel=batch.batch.parallel_operations,
    )


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
            if node != root and not batch.live.isdisjoint(tree.places_below(node)):
                around[node] = len(rows)
                rows.append((node, True))
            single[node] = len(rows)
            around.setdefault(node, len(rows))
            rows.append((node, False))
    nodes = [tree.nodes[node] for node, _ in rows]
    cases = [around if case else single for _, case in rows]
    return FlatTree(
        kind=np.array([KINDS.index(node.kind) for node in nodes]),
        origin=np.array([node for node, _ in rows]),
        place=np.array([node.place for node in nodes]),
        one=np.array([case[node.one] for node, case in zip(nodes, cases, strict=True)]),
        two=np.array([case[node.two] for node, case in zip(nodes, cases, strict=True)]),
        inside=np.array([around[node.one] for node in nodes]),
        around=np.array([case for _, case in rows]),
        first=np.array(first),
        last=np.array([single[root] for root in tree.roots]),
        gpu=np.repeat(np.arange(len(batch.gpus)), list(map(len, batch.on_gpu.values()))),
        wait_one=np.array([tree.nodes[node].late_one if case else tree.nodes[node].wait_one for node, case in rows]),
        wait_two=np.array([tree.nodes[node].late_two if case else tree.nodes[node].wait_two for node, case in rows]),
        leaves=np.array([len(tree.leaves[node]) for node, _ in rows]),
    )


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


def greedy_assignment(costs: Costs, tree: FlatTree) -> Integers:
    """Assign all tasks, the most expensive first, each to the one of its places that lengthens paths least.

    The ticks of ``costs`` are NEVER in all but the cheap places of a task; no instance is live.
    """
    places = np.empty(len(costs.weighted), np.int64)
    if not _greedy_assignment(costs, tree, places):
        raise MemoryError
    return places


def improve(
    costs: Costs,
    tree: FlatTree,
    least: LeastLoads,
    operations: Operations,
    places: Integers,
    most: int,
    rounds: int,
    seed: int,
    target: int,
    slack: int,
) -> int:
    """Improve an assignment for a number of rounds, and return its longest path in ticks.

    ``places`` has the place of each task, shape (tasks,), and is changed in place. In a round ``most`` tasks may move,
    and its result may be ``slack`` ticks longer than necessary; a length of ``target`` ticks ends the rounds.
    """
    length: int = _improve(costs, tree, least, operations, places, most, rounds, seed, target, slack)
    if length < 0:
        raise MemoryError
    return length
