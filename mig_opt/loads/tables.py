"""The least height of every branch of the load tree, for every set of tasks: dynamic programming over subsets.

For each node of the tree and each set of tasks the table has the least height of that branch when exactly these tasks
run in it. On a stack the choice is which of them run in its place, and since their times just add up this takes one
pass for each task; on a split it is how they are shared out, 3^n cases for n tasks. The last instance on a slice need
not be destroyed: tables come in two forms, with every destruction paid for (*full*) and with that of the outermost used
place on each way spared (*spared*; it has the longest destruction, so no way is charged too much).

Most sets cannot be part of any schedule as short as the limit, because they are too long for the branch, or leave too
much for the rest of the tree: they are skipped.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import numpy.typing as npt

from mig_opt.batch.integer_batch import IntegerBatch, Place
from mig_opt.loads.kernels import NEVER, SKIPPED, Neighbours, Subsets, Table, add_tasks, split_heights
from mig_opt.loads.reach import least_amounts, sets_within
from mig_opt.loads.tree import LoadTree, Node

MOST_TASKS = 22
"""With more, the tables would not fit into a few hundred megabytes."""

_CASES_PER_CHUNK = 3 * 10**7
"""What a thread does at a time: some hundredths of a second."""


class HeightTables:
    """Least heights for every set of tasks.

    Parameters
    ----------
    problem : IntegerBatch
        The batch in ticks, with at most :data:`MOST_TASKS` tasks.
    at_most : int
        Heights above are not of interest, in ticks.

    Attributes
    ----------
    tree : LoadTree
        The branches.
    full, spared : dict of int to array of int32, shape (2**n,)
        The heights by shape of the node, with every destruction or without the last ones; at least
        :data:`~mig_opt.loads.kernels.NEVER` where there is none within the limit.
    """

    def __init__(self, problem: IntegerBatch, at_most: int) -> None:
        self._problem = problem
        self._count = len(problem.batch.tasks)
        self._at_most = at_most
        # No way spares more than one destruction.
        self._limit = at_most + max(place.destroy for place in problem.places)
        self.tree = LoadTree(problem)
        self.full: dict[int, Table] = {}
        self.spared: dict[int, Table] = {}
        self._nodes: dict[int, list[int]] = defaultdict(list)
        for index, node in enumerate(self.tree.nodes):
            self._nodes[node.shape].append(index)
        self._ticks = np.stack([ticks_of(place, self._count) for place in problem.places], axis=1)
        self._room = self._room_of_tips()

    @property
    def least(self) -> int:
        """Ticks below which no schedule ends; above the limit, if none is within it."""
        return int(self.spared[self.tree.nodes[-1].shape][-1])

    def cases(self) -> int:
        """Return how many cases there are to look at; some 10^9 take a second."""
        sizes = _sizes(self._count)
        return sum(
            int((np.int64(1) << sizes[self._worthwhile(shape)]).sum()) * (1 if self._saves_alike(shape) else 2)
            for shape, indices in self._nodes.items()
            if self.tree.nodes[indices[0]].kind == "split"
        )

    def fill(self, workers: int, expired: Callable[[], bool]) -> bool:
        """Compute the tables with so many threads; return whether they are complete, or ``expired`` came first."""
        with ThreadPoolExecutor(workers) as pool:
            for shape, indices in self._nodes.items():
                node = self.tree.nodes[indices[0]]
                if node.kind == "leaf":
                    self.full[shape] = self.spared[shape] = self._nothing()
                elif node.kind == "stack":
                    self._stack(node)
                elif not self._split(node, pool, expired):
                    return False
        return True

    def _nothing(self) -> Table:
        table = np.full(1 << self._count, NEVER, np.int32)
        table[0] = 0
        return table

    def _stack(self, node: Node) -> None:
        place, below = self._problem.places[node.place], self.tree.nodes[node.one].shape
        used = self.full[below].copy()
        add_tasks(used, ticks_of(place, self._count), self._limit)
        used += fixed_cost(place)
        for tables, spared, limit in (
            (self.full, 0, self._limit),
            (self.spared, self.longest_destruction(node), self._at_most),
        ):
            # A live instance makes room for what is below it, and for what is around it where all destructions count.
            table = np.minimum(used - spared, tables[below] + making_room(place))
            table[table > limit] = NEVER
            if tables is self.spared:
                table[0] = 0
            tables[node.shape] = table

    def _split(self, node: Node, pool: ThreadPoolExecutor, expired: Callable[[], bool]) -> bool:
        one, two = self.tree.nodes[node.one].shape, self.tree.nodes[node.two].shape
        subsets = self._worthwhile(node.shape)
        chunks = _chunks(subsets, self._count)
        for tables in (self.full, self.spared):
            if tables is self.spared and self._saves_alike(node.shape):
                saved = self._problem.places[self.tree.places_below(self._nodes[node.shape][0])[0]].destroy
                table = np.where(self.full[node.shape] < NEVER, self.full[node.shape] - saved, self.full[node.shape])
                table[(table > self._at_most) & (table < NEVER)] = NEVER
                table[0] = 0
                tables[node.shape] = table
                continue
            table = tables[node.shape] = np.full(1 << self._count, SKIPPED, np.int32)
            table[0] = 0
            limit = self._limit if tables is self.full else self._at_most
            neighbours = neighbours_of(node, same=one == two, spared=tables is self.spared)
            work = partial(_split_chunk, expired, tables[one], tables[two], neighbours, limit, table)
            if not all(pool.map(work, chunks)):
                return False
        return True

    def _worthwhile(self, shape: int) -> Subsets:
        """Return the sets that can run in one of the branches of a shape, whichever is best for each task.

        What runs on the way to an innermost branch has its *room*: the limit, less the time until a live instance on
        the way is free.
        """
        nodes, room = self._nodes[shape], self._room
        amounts = least_amounts(self.tree, self._ticks, nodes, range(len(self.tree.nodes)))
        within = [sum(room[tip] for tip in self.tree.tips[node]) for node in nodes]
        everywhere = sum(room.values())
        subsets: Subsets = sets_within(*amounts, (max(within), everywhere - min(within), everywhere))
        # Also where nothing runs in a branch, its live instances may have to go.
        return subsets if len(subsets) and not subsets[0] else np.concatenate([np.zeros(1, np.int32), subsets])

    def _room_of_tips(self) -> dict[int, int]:
        """Return the room of each innermost branch."""
        covers = {node.place: self.tree.tips[at] for at, node in enumerate(self.tree.nodes) if node.place >= 0}
        room = dict.fromkeys(self.tree.tips[-1], self._limit)
        for at in self._problem.live:
            for tip in covers[at]:
                room[tip] = max(0, self._limit - (self._problem.places[at].free or 0))
        return room

    def _saves_alike(self, shape: int) -> bool:
        """Whether every way through the branch spares the same, if anything runs in it."""
        places = [self._problem.places[at] for at in self.tree.places_below(self._nodes[shape][0])]
        return len({place.destroy for place in places}) == 1 and all(place.free is None for place in places)

    def longest_destruction(self, node: Node) -> int:
        """Return the longest destruction at and below a stack."""
        below = self.tree.places_below(self._nodes[node.shape][0])
        return max(self._problem.places[at].destroy for at in below)


def _split_chunk(
    expired: Callable[[], bool],
    one: Table,
    two: Table,
    neighbours: Neighbours,
    limit: int,
    table: Table,
    chunk: Subsets,
) -> bool:
    if expired():
        return False
    split_heights(one, two, chunk, neighbours, limit, table)
    return True


def neighbours_of(node: Node, *, same: bool, spared: bool) -> Neighbours:
    """Return what the branches of a split have to do with each other; ``same`` tells whether they are alike.

    Where not even the last destructions are spared there is something wider, for which live instances have to go: one
    of the two branches then waits, whatever runs in it.
    """
    if not spared and (node.late_one or node.late_two):
        return Neighbours(same, True, True, node.late_one, node.late_two)
    return Neighbours(same, False, False, node.wait_one, node.wait_two)


def ticks_of(place: Place, count: int) -> npt.NDArray[np.int32]:
    """Return the ticks of each of ``count`` tasks at a place; NEVER where it cannot run."""
    return np.array([min(place.durations.get(task, NEVER), NEVER) for task in range(count)], np.int32)


def fixed_cost(place: Place) -> int:
    """Return what a used place takes besides its tasks: creation (or the wait for a live instance) and destruction."""
    return (place.create if place.free is None else place.free) + place.destroy


def making_room(place: Place) -> int:
    """Return what a place takes on the way to those below it, if it runs nothing itself."""
    return 0 if place.free is None else place.free + place.destroy


def _sizes(count: int) -> npt.NDArray[np.int64]:
    """Return the number of tasks in each subset."""
    sizes = np.zeros(1, np.int64)
    for _ in range(count):
        sizes = np.concatenate([sizes, sizes + 1])
    return sizes


def _chunks(subsets: Subsets, count: int) -> list[Subsets]:
    """Cut ``subsets`` into parts of about equal work."""
    done = np.cumsum(np.int64(1) << _sizes(count)[subsets])
    cuts = np.searchsorted(done, np.arange(_CASES_PER_CHUNK, int(done[-1]) if len(done) else 0, _CASES_PER_CHUNK))
    return [chunk for chunk in np.split(subsets, cuts) if len(chunk)]
