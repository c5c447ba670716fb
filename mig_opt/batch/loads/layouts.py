"""Layouts of GPUs: the placements in use, and the order in which they are first created.

For a given layout all operations are known, so what remains is to assign each task to one of its placements. The layout
is a tree for that: a *stack* is a placement on top of what it covers, a *split* joins branches beside each other, and a
*leaf* has the ticks that all operations and waits on its path take.
"""

from __future__ import annotations

import copy
import heapq
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.branches import Branches, Region, Use
from mig_opt.batch.loads.tree import KINDS, Kind

MAX_LAYOUTS = 50_000
"""Layouts of a GPU that are looked at one by one, at most."""


class Member(NamedTuple):
    """Member of a layout: the placements that cover a region, and the members inside."""

    branch: int  # the index of its branch
    use: Use  # the placements with its footprint that are used
    inside: Layout


Layout = tuple[Member, ...]
"""Members beside each other, in the order of their first creations."""


class Path(NamedTuple):
    """Operations around a member, on the paths through it."""

    ticks: int = 0  # of all creations and destructions
    longest: int = 0  # the longest destruction among them

    def through(self, use: Use) -> Path:
        """Return the operations with those of the member itself."""
        return Path(self.ticks + use.full, max(self.longest, use.full - use.spared))

    @property
    def needed(self) -> int:
        """Ticks of all operations without one destruction, as the last instance may stay."""
        return self.ticks - self.longest


@dataclass(frozen=True, slots=True)
class LayoutNode:
    """Node of the tree of a layout."""

    kind: Kind
    one: int = -1  # index of the node below, -1 for a leaf
    two: int = -1  # of a split: index of the other node below
    profile: int = -1  # of a stack: the index of its profile
    place: int = -1  # of a stack: the index of its place
    ticks: int = 0  # of a leaf: the operations and waits on its path
    leaves: int = 1  # number of leaves at and below it


class LayoutTree:
    """Tree of the layouts of all GPUs, one for each of them, on which nothing is live."""

    def __init__(self, batch: IntegerBatch, branches: Branches, layouts: Sequence[Layout]) -> None:
        self._wait = branches.wait
        self._places = [(place.gpu, place.placement) for place in batch.places]
        self._index = {key: at for at, key in enumerate(self._places)}
        self.nodes: list[LayoutNode] = []  # every node after those below it; the last one is the root
        roots = []
        for gpu, layout in zip(batch.gpus, layouts, strict=True):
            regions = regions_for(layout, branches.regions)
            assert regions is not None, "every layout has regions for its members"
            roots.append(self._add_members(layout, regions, gpu, Path(), 0))
        self._join(roots)

    def rows(self) -> npt.NDArray[np.int64]:
        """Return the nodes for loops in C: kind (leaf 0, stack 1, split 2), one, two, profile, ticks."""
        return np.array(
            [(KINDS.index(node.kind), node.one, node.two, node.profile, node.ticks) for node in self.nodes], np.int64
        )

    def paths(self) -> list[tuple[int, frozenset[int]]]:
        """Return the ticks of operations and waits on each path, and the indices of its places."""
        return [(self.nodes[leaf].ticks, places) for leaf, places in self._leaves()]

    def with_operations(self, ticks: Iterable[int]) -> LayoutTree:
        """Return the same tree with other ticks on each path, in the order of :meth:`paths`."""
        other = copy.copy(self)
        other.nodes = list(self.nodes)
        for (leaf, _), own in zip(self._leaves(), ticks, strict=True):
            other.nodes[leaf] = replace(self.nodes[leaf], ticks=own)
        return other

    def _leaves(self) -> Iterator[tuple[int, frozenset[int]]]:
        """Yield the index of each leaf, and the indices of the places on its path."""
        open_nodes: list[tuple[int, frozenset[int]]] = [(len(self.nodes) - 1, frozenset())]
        while open_nodes:
            at, places = open_nodes.pop()
            node = self.nodes[at]
            if node.kind == "leaf":
                yield at, places
                continue
            below = places | {node.place} if node.kind == "stack" else places
            open_nodes += [(one, below) for one in (node.one, node.two) if one >= 0]

    def _add_members(self, layout: Layout, regions: Sequence[PlacedMember], gpu: int, around: Path, wait: int) -> int:
        """Add members beside each other, and return the index of the node that joins them."""
        tops = [] if layout else [self._add(LayoutNode("leaf"))]
        for number, (member, (region, inside)) in enumerate(zip(layout, regions, strict=True)):
            path, waits = around.through(member.use), wait + number * self._wait
            if member.inside:
                top = self._add_members(member.inside, inside, gpu, path, waits)
            else:
                top = self._add(LayoutNode("leaf", ticks=path.needed + waits))
            for profile in member.use.kinds:
                _, placement = self._places[region.places[profile]]
                top = self._add(LayoutNode("stack", top, profile=profile, place=self._index[gpu, placement]))
            tops.append(top)
        return self._join(tops)

    def _join(self, tops: list[int]) -> int:
        """Join nodes pairwise, those with the fewest leaves first, so that both sides of a split have about as many."""
        queue = [(self.nodes[top].leaves, top) for top in tops]
        heapq.heapify(queue)
        while len(queue) > 1:
            (_, one), (_, two) = heapq.heappop(queue), heapq.heappop(queue)
            top = self._add(LayoutNode("split", one, two))
            heapq.heappush(queue, (self.nodes[top].leaves, top))
        return queue[0][1]

    def _add(self, node: LayoutNode) -> int:
        leaves = sum(self.nodes[below].leaves for below in (node.one, node.two) if below >= 0) or 1
        self.nodes.append(replace(node, leaves=leaves))
        return len(self.nodes) - 1


class PlacedMember(NamedTuple):
    """Region of a member, and those of the members inside."""

    region: Region
    inside: tuple[PlacedMember, ...]


def regions_for(layout: Layout, regions: Sequence[Region]) -> tuple[PlacedMember, ...] | None:
    """Return a region for each member, disjoint and nested as they are; None if there are none.

    Which of several it is makes no difference: only how placements are nested, and what operations and runs take.
    """
    if not layout:
        return ()
    first, *others = layout
    for region in regions:
        if region.branch != first.branch:
            continue
        inside = regions_for(first.inside, [other for other in regions if other.slices < region.slices])
        rest = regions_for(tuple(others), [other for other in regions if not other.slices & region.slices])
        if inside is not None and rest is not None:
            return (PlacedMember(region, inside), *rest)
    return None


def members_of(branches: Branches, at: int) -> Iterator[Member]:
    """Yield every member that a branch can be."""
    for use in branches.branches[at].uses:
        for order in branches.branches[at].orders:
            for inside in layouts_in(branches, order):
                yield Member(at, use, inside)


def layouts_in(branches: Branches, order: Sequence[int]) -> Iterator[Layout]:
    """Yield every layout with members of some branches, in this order."""
    yield from itertools.product(*(list(members_of(branches, at)) for at in order))


def in_one_order(layout: Layout) -> Layout:
    """Return the layout with the same members, in the order that is the same for all of these."""
    return tuple(sorted(member._replace(inside=in_one_order(member.inside)) for member in layout))


def number_of_layouts(branches: Branches) -> int:
    """Return how many layouts a GPU has."""
    counts: list[int] = []
    for branch in branches.branches:
        counts.append(len(branch.uses) * sum(math.prod(counts[at] for at in order) for order in branch.orders))
    return sum(math.prod(counts[at] for at in order) for order in branches.orders)


def whole_layout(branches: Branches) -> Layout:
    """Return the layout in which everything is used: the only one of interest where operations take no time."""

    def placements(layout: Layout) -> int:
        return sum(len(member.use.kinds) + placements(member.inside) for member in layout)

    def largest(orders: Sequence[Sequence[int]]) -> Layout:
        found = [tuple(known[at] for at in order) for order in orders]
        return max(found, key=placements)

    known: list[Member] = []
    for at, branch in enumerate(branches.branches):
        known.append(Member(at, max(branch.uses, key=lambda use: len(use.kinds)), largest(branch.orders)))
    return largest(branches.orders)
