"""The footprints of a batch as a tree, on which loads add up.

The footprints of a GPU are nested or disjoint. A schedule of makespan C gives every memory slice at most C seconds of
creations, runs and destructions, so the longest path through the tree, from the outermost placement to an innermost
one, is a bound. The tree has three kinds of nodes: a *stack* is a place on top of what it covers, a *split* joins two
siblings, and a *leaf* is where nothing can run any more. The *branch* of a node is all that is at and below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from mig_opt.batch.horizon import Place
from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.subsets import NEVER, Integers
from mig_opt.gpu.model import Placement

Kind = Literal["leaf", "stack", "split"]
"""Kind of a node."""

KINDS: tuple[Kind, ...] = get_args(Kind)
"""The kinds in the order of their numbers, which the loops in C know."""


IMPOSSIBLE = 2**50
"""Least weighted load of a task that cannot run: above any limit x leaves, and sums still fit into 64 bits."""


@dataclass(frozen=True, slots=True)
class Node:
    """Node of a load tree."""

    kind: Kind
    shape: int  # number that nodes share if their paths have the same lengths for the same tasks
    place: int = -1  # of a stack: index of its place
    # indices of the nodes below, -1 where there are none; a stack has ``one`` only
    one: int = -1
    two: int = -1
    # of a split: ticks that the branch below ``one`` loses if that below ``two`` comes first, and the other way round
    wait_one: int = 0
    wait_two: int = 0
    # of a split: ticks that the branch below ``one`` loses if that below ``two`` is the last to be cleared for
    # something wider, and the other way round; 0 unless something is live in both
    late_one: int = 0
    late_two: int = 0


class LoadTree:
    """Tree of the places of all GPUs."""

    def __init__(self, problem: IntegerBatch) -> None:
        self._problem = problem
        self._at = {(place.gpu, place.placement): index for index, place in enumerate(problem.places)}
        self._gpus_in_use = {place.gpu for place in problem.places if place.free is not None}
        self._shapes: dict[tuple[object, ...], int] = {}
        self.nodes: list[Node] = []  # every node after those below it; the last one is the root
        # the topmost node of each GPU
        self.roots = [self._root(gpu) for gpu in problem.gpus]
        root = self._join(list(self.roots))
        # Leaves that were left out can have come after it.
        del self.nodes[root + 1 :]
        # for each node the leaves of its branch, by index: the ends of the paths through it
        self.leaves: list[frozenset[int]] = []
        for index, node in enumerate(self.nodes):
            below = [self.leaves[child] for child in (node.one, node.two) if child >= 0]
            self.leaves.append(frozenset().union(*below) if below else frozenset([index]))

    def places_below(self, node: int) -> list[int]:
        """Return the indices of the places in the branch of ``node``."""
        entry = self.nodes[node]
        below = [at for child in (entry.one, entry.two) if child >= 0 for at in self.places_below(child)]
        return [entry.place, *below] if entry.place >= 0 else below

    def _root(self, gpu: int) -> int:
        kind, profiles = self._problem.batch.kind(gpu), self._problem.batch.profile_set
        children = kind.children(profiles)
        return self._join([self._branch(gpu, top, children) for top in kind.outermost(profiles)])

    def _branch(self, gpu: int, top: Placement, children: Mapping[Placement, Sequence[Placement]]) -> int:
        below = self._join([self._branch(gpu, child, children) for child in children[top]])
        at = self._at.get((gpu, top))
        if at is None:
            return below
        place = self._problem.places[at]
        alike = (id(place.durations), place.create, place.destroy, place.free, self.nodes[below].shape)
        return self._add("stack", alike, at, below)

    def _join(self, branches: list[int]) -> int:
        """Join siblings pairwise, those of the same shape first."""
        if not branches:
            return self._add("leaf", ())
        # A branch in which nothing can run would only cost time.
        branches = [node for node in branches if self.nodes[node].kind != "leaf"] or branches[:1]
        while len(branches) > 1:
            branches.sort(key=lambda node: self.nodes[node].shape)
            pairs = [branches[start : start + 2] for start in range(0, len(branches), 2)]
            branches = [pair[0] if len(pair) == 1 else self._split(*pair) for pair in pairs]
        return branches[0]

    def _split(self, one: int, two: int) -> int:
        waits = self._waits(one, two)
        return self._add("split", (self.nodes[one].shape, self.nodes[two].shape, *waits), -1, one, two, *waits)

    def _waits(self, one: int, two: int) -> tuple[int, int, int, int]:
        """Return the ticks that the slices of each of two branches lose if the other comes first, or is cleared later.

        When the first instance in either branch is created there is nothing on the slices of the other one, nor can
        there be anything wider; and the driver creates nothing for them meanwhile. When the last instance in either
        branch is destroyed, before something wider comes, there is nothing on the slices of the other one any more.
        Only live instances make sure that there was something before.
        """
        first, second = ([self._problem.places[at] for at in self.places_below(node)] for node in (one, two))
        if self._problem.batch.parallel_operations or len({place.gpu for place in (*first, *second)}) > 1:
            return 0, 0, 0, 0
        creations = destructions = 0, 0
        if first[0].gpu not in self._gpus_in_use:
            creations = min(place.create for place in second), min(place.create for place in first)
        if all(any(place.free is not None for place in side) for side in (first, second)):
            destructions = min(place.destroy for place in second), min(place.destroy for place in first)
        return *creations, *destructions

    def _add(self, kind: Kind, alike: tuple[object, ...], *fields: int) -> int:
        """Add a node with the fields from its place on; ``alike`` is what nodes of its shape share."""
        shape = self._shapes.setdefault((kind, *alike), len(self._shapes))
        self.nodes.append(Node(kind, shape, *fields))
        return len(self.nodes) - 1


def task_ticks(problem: IntegerBatch, places: Iterable[Place[int]]) -> npt.NDArray[np.int32]:
    """Return the ticks of each task in each of some places, shape (tasks, places); NEVER where it cannot run."""
    tasks = range(len(problem.batch.tasks))
    ticks = [[min(place.durations.get(task, NEVER), NEVER) for task in tasks] for place in places]
    return np.ascontiguousarray(np.array(ticks, np.int32).T)


def used_ticks(place: Place[int]) -> int:
    """Return the ticks of a used place without its tasks: creation (or wait for a live instance) and destruction."""
    return (place.create if place.free is None else place.free) + place.destroy


def clearing_ticks(place: Place[int]) -> int:
    """Return the ticks of a place on the path to those below it, if it runs nothing itself."""
    return 0 if place.free is None else place.free + place.destroy


def least_weighted_loads(
    tree: LoadTree, ticks: npt.NDArray[np.int32], nodes: Sequence[int], among: Iterable[int]
) -> tuple[Integers, Integers, Integers]:
    """Return the least weighted load of each task in a branch, and elsewhere without and with the leaves of the branch.

    They are in ticks x leaves, and
    :data:`IMPOSSIBLE` where a task cannot run. ``ticks`` are those of each task in each place, ``nodes`` branches that
    are alike: the least over all of them counts. Tasks may run in the places of the nodes ``among``.
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
