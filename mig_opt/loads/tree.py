"""The footprints of a batch as a tree, on which loads add up.

The footprints of a GPU are nested or disjoint. A schedule of makespan C gives every memory slice at most C seconds of
creations, runs and destructions, so the *height* of a branch, the longest way through it from the outermost placement
to an innermost one, is a bound. The tree has three kinds of nodes: a *stack* is a place on top of what it covers, a
*split* joins two neighbours, and a *leaf* is where nothing can run any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mig_opt.gpu import Placement
from mig_opt.ticked import TickedBatch


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
    """

    kind: Literal["leaf", "stack", "split"]
    place: int
    one: int
    two: int
    shape: int


class LoadTree:
    """The places of all GPUs as one tree.

    Parameters
    ----------
    problem : TickedBatch
        The batch in ticks.

    Attributes
    ----------
    nodes : list of Node
        Every node after those below it; the last one is the root.
    roots : list of int
        The topmost node of each GPU.
    """

    def __init__(self, problem: TickedBatch) -> None:
        self._problem = problem
        self._at = {(place.gpu, place.placement): index for index, place in enumerate(problem.places)}
        self._tree = problem.batch.gpu.repartition_tree(problem.batch.profile_set)
        self._shapes: dict[tuple[object, ...], int] = {}
        self.nodes: list[Node] = []
        tops = [placement for placement in self._tree.nodes if not self._tree.in_degree(placement)]
        self.roots = [self._join([self._branch(gpu, top) for top in tops]) for gpu in range(problem.batch.gpus)]
        self._join(list(self.roots))

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
        return self._add("split", (self.nodes[one].shape, self.nodes[two].shape), one=one, two=two)

    def _add(
        self,
        kind: Literal["leaf", "stack", "split"],
        looks: tuple[object, ...],
        *,
        place: int = -1,
        one: int = -1,
        two: int = -1,
    ) -> int:
        shape = self._shapes.setdefault((kind, *looks), len(self._shapes))
        self.nodes.append(Node(kind, place, one, two, shape))
        return len(self.nodes) - 1
