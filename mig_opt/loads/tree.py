"""The footprints of a batch as a tree, on which loads add up.

The footprints of a GPU are nested or disjoint. A schedule of makespan C gives every memory slice at most C seconds of
creations, runs and destructions, so the *height* of a branch, the longest way through it from the outermost placement
to an innermost one, is a bound. The tree has three kinds of nodes: a *stack* is a place on top of what it covers, a
*split* joins two neighbours, and a *leaf* is where nothing can run any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.gpu.model import Placement


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a load tree.

    Attributes
    ----------
    kind : str
        ``leaf``, ``stack`` or ``split``.
    place : int
        Of a stack: index of its place, else -1.
    one, two : int
        Indices of the nodes below, -1 where there are none; a stack has ``one`` only.
    shape : int
        Nodes with the same shape have the same heights for the same tasks.
    wait_one, wait_two : int
        Of a split: ticks that the branch below ``one`` loses if that below ``two`` comes first, and the other way
        round.
    late_one, late_two : int
        Of a split: ticks that the branch below ``one`` loses if that below ``two`` is the last to be cleared for
        something wider, and the other way round; 0 unless something is live in both.
    """

    kind: Literal["leaf", "stack", "split"]
    place: int
    one: int
    two: int
    shape: int
    wait_one: int = 0
    wait_two: int = 0
    late_one: int = 0
    late_two: int = 0


class LoadTree:
    """The places of all GPUs as one tree.

    Parameters
    ----------
    problem : IntegerBatch
        The batch in ticks.

    Attributes
    ----------
    nodes : list of Node
        Every node after those below it; the last one is the root.
    roots : list of int
        The topmost node of each GPU.
    tips : list of frozenset of int
        For each node the innermost nodes of its branch: the ends of the ways through it.
    """

    def __init__(self, problem: IntegerBatch) -> None:
        self._problem = problem
        self._at = {(place.gpu, place.placement): index for index, place in enumerate(problem.places)}
        self._lived_in = {place.gpu for place in problem.places if place.free is not None}
        self._tree = problem.batch.gpu.repartition_tree(problem.batch.profile_set)
        self._shapes: dict[tuple[object, ...], int] = {}
        self.nodes: list[Node] = []
        tops = [placement for placement in self._tree.nodes if not self._tree.in_degree(placement)]
        self.roots = [self._join([self._branch(gpu, top) for top in tops]) for gpu in range(problem.batch.gpus)]
        root = self._join(list(self.roots))
        # Leaves that were left out can have come after it.
        del self.nodes[root + 1 :]
        self.tips: list[frozenset[int]] = []
        for index, node in enumerate(self.nodes):
            below = [self.tips[child] for child in (node.one, node.two) if child >= 0]
            self.tips.append(frozenset().union(*below) if below else frozenset([index]))

    def places_below(self, node: int) -> list[int]:
        """Return the indices of the places in the branch of ``node``."""
        entry = self.nodes[node]
        below = [at for child in (entry.one, entry.two) if child >= 0 for at in self.places_below(child)]
        return [entry.place, *below] if entry.place >= 0 else below

    def _branch(self, gpu: int, top: Placement) -> int:
        below = self._join([self._branch(gpu, child) for child in self._tree.successors(top)])
        at = self._at.get((gpu, top))
        if at is None:
            return below
        place = self._problem.places[at]
        looks = (id(place.durations), place.create, place.destroy, place.free, self.nodes[below].shape)
        return self._add("stack", looks, place=at, one=below)

    def _join(self, branches: list[int]) -> int:
        """Join neighbours pairwise, those of the same shape first."""
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
        waits = (
            *(self._first_creation(one, two), self._first_creation(two, one)),
            *(self._last_destruction(one, two), self._last_destruction(two, one)),
        )
        return self._add("split", (self.nodes[one].shape, self.nodes[two].shape, *waits), one=one, two=two, waits=waits)

    def _first_creation(self, waiting: int, first: int) -> int:
        """Return what the slices of one branch lose if the other one comes first.

        When the first instance in either branch is created there is nothing on the slices of the other one, nor can
        there be anything wider; and the driver creates nothing for them meanwhile.
        """
        places = self._problem.places
        there = self.places_below(first)
        gpus = {places[at].gpu for at in (*there, *self.places_below(waiting))}
        if len(gpus) > 1 or gpus & self._lived_in or self._problem.batch.parallel_operations:
            return 0
        return min(places[at].create for at in there)

    def _last_destruction(self, waiting: int, last: int) -> int:
        """Return what the slices of one branch lose if the other one is cleared later, before something wider comes.

        When the last instance in either branch is destroyed there is nothing on the slices of the other one any more,
        nor can there be anything wider yet. That there was something before is certain only for live instances.
        """
        places = self._problem.places
        there, here = self.places_below(last), self.places_below(waiting)
        gpus = {places[at].gpu for at in (*there, *here)}
        both_live = all(any(places[at].free is not None for at in side) for side in (there, here))
        if len(gpus) > 1 or not both_live or self._problem.batch.parallel_operations:
            return 0
        return min(places[at].destroy for at in there)

    def _add(
        self,
        kind: Literal["leaf", "stack", "split"],
        looks: tuple[object, ...],
        *,
        place: int = -1,
        one: int = -1,
        two: int = -1,
        waits: tuple[int, int, int, int] = (0, 0, 0, 0),
    ) -> int:
        shape = self._shapes.setdefault((kind, *looks), len(self._shapes))
        self.nodes.append(Node(kind, place, one, two, shape, *waits))
        return len(self.nodes) - 1
