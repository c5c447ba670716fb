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
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import numpy.typing as npt

from mig_opt.loads.kernels import NEVER, SKIPPED, Neighbours, Subsets, Table, add_tasks, add_up, split_heights
from mig_opt.loads.tree import LoadTree, Node
from mig_opt.ticked import Place, TickedBatch

MOST_TASKS = 22
"""With more, the tables would not fit into a few hundred megabytes."""

_CASES_PER_CHUNK = 3 * 10**7
"""What a thread does at a time: some hundredths of a second."""


class HeightTables:
    """Least heights for every set of tasks.

    Parameters
    ----------
    problem : TickedBatch
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

    def __init__(self, problem: TickedBatch, at_most: int) -> None:
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
        self._filters = _Filters(problem, self.tree, self._limit)

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
            # A live instance makes room for what is below it.
            table = np.minimum(used - spared, tables[below] + making_room(place))
            table[table > limit] = NEVER
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
            neighbours = Neighbours(one == two, False, False, node.wait_one, node.wait_two)
            work = partial(_split_chunk, expired, tables[one], tables[two], neighbours, limit, table)
            if not all(pool.map(work, chunks)):
                return False
        return True

    def _worthwhile(self, shape: int) -> Subsets:
        return self._filters.subsets(self._nodes[shape])

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


def ticks_of(place: Place, count: int) -> npt.NDArray[np.int32]:
    """Return the ticks of each of ``count`` tasks at a place; NEVER where it cannot run."""
    return np.array([min(place.durations.get(task, NEVER), NEVER) for task in range(count)], np.int32)


def fixed_cost(place: Place) -> int:
    """Return what a used place takes besides its tasks: creation (or the wait for a live instance) and destruction."""
    return (place.create if place.free is None else place.free) + place.destroy


def making_room(place: Place) -> int:
    """Return what a place takes on the way to those below it, if it runs nothing itself."""
    return 0 if place.free is None else place.free + place.destroy


class _Filters:
    """Which sets of tasks can be in a branch at all, as part of a schedule within the limit.

    With any weights on the innermost branches, in sum 1, the weighted mean of the loads is at most the limit, and each
    task adds at least its time x the weight of what it covers, at its best place. That is asked three times: with the
    weight inside of the branch for the tasks in it; with the weight outside for the others; and with the weight
    everywhere for all.
    """

    def __init__(self, problem: TickedBatch, tree: LoadTree, limit: int) -> None:
        self._limit = limit
        self._count = len(problem.batch.tasks)
        self._tree = tree
        covered = tree.tips
        self._covers = {node.place: covered[at] for at, node in enumerate(tree.nodes) if node.place >= 0}
        self._tips_below = covered
        self._ticks = {at: ticks_of(place, self._count).astype(np.int64) for at, place in enumerate(problem.places)}

    def subsets(self, nodes: Sequence[int]) -> Subsets:
        """Return the sets that can be in one of these branches, all of one shape."""
        everything = (1 << self._count) - 1
        able = np.ones(1 << self._count, bool)
        for inside, outside in zip(*(list(self._amounts(nodes, within)) for within in (True, False)), strict=True):
            in_branch = None if inside is None else add_up(inside)
            in_rest = None if outside is None else add_up(outside)[::-1]  # the complement of a set
            if in_branch is not None and in_rest is not None:
                able &= in_branch.astype(np.int64) + in_rest <= self._limit
            elif in_branch is not None:
                able &= in_branch <= self._limit
            elif in_rest is not None:
                able &= in_rest <= self._limit
        able[0] = True
        if not self._outside(nodes[0]):
            able[:everything] = False
        return np.nonzero(able)[0].astype(np.int32)

    def _outside(self, node: int) -> list[int]:
        below = set(self._tree.places_below(node))
        return [at for at in self._covers if at not in below]

    def _amounts(self, nodes: Sequence[int], within: bool) -> Iterator[npt.NDArray[np.int32] | None]:
        """Yield the least weighted times of each task for the three questions; None where it is not asked."""
        tips = [self._tips_below[node] for node in nodes]
        everywhere = self._tips_below[len(self._tree.nodes) - 1]
        for weighted in (tips if within else None, None if within else [everywhere - t for t in tips], [everywhere]):
            if weighted is None:
                yield None
                continue
            rows = []
            for node, on in zip(nodes, weighted * (len(nodes) // len(weighted)), strict=True):
                places = self._tree.places_below(node) if within else self._outside(node)
                rows += [self._ticks[at] * len(self._covers[at] & on) // max(len(on), 1) for at in places]
                # Where a task cannot run it is not light, whatever the weight.
                rows[len(rows) - len(places) :] = [
                    np.where(self._ticks[at] >= NEVER, NEVER, row)
                    for at, row in zip(places, rows[len(rows) - len(places) :], strict=True)
                ]
            least = np.min(rows, axis=0) if rows else np.full(self._count, NEVER)
            yield np.minimum(least, NEVER).astype(np.int32)


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
