"""Proofs for up to some twenty tasks: dynamic programming over subsets, then every assignment that is left.

Dynamic programming (Held and Karp, 1962) on the load tree gives the shortest longest path through it exactly. No
schedule is shorter than that, and few assignments of tasks to places have paths as short as the best schedule: often
none, and then it is optimal. Otherwise they are listed, and for each of them a block model decides whether any order in
time, with any re-creations, is shorter.

For each node of the tree and each set of tasks the table has the *length*: the shortest that the longest path through
the branch can be when exactly these tasks run in it. On a stack the choice is which of them run in its place, and since
their times just add up this takes one pass for each task; on a split it is how they are shared out, 3^n cases for n
tasks. The last instance on a slice need not be destroyed: tables come in two forms, with every destruction paid for
(*full*) and with that of the outermost used place on each path spared (*spared*; it has the longest destruction, so no
path is charged too much).

Most sets cannot be part of any schedule as short as the limit, because they are too long for the branch, or leave too
much for the rest of the tree: they are skipped. The loops over subsets are in C: ``mig_opt/native/subsets.c``.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.subsets import NEVER, Choice, Integers, Table, places_of_tasks
from mig_opt.batch.loads.tree import LoadTree, Node, clearing_ticks, least_weighted_loads, task_ticks, used_ticks
from mig_opt.models.batch.block_search import BlockSearch, M
from mig_opt.native import loop

MAX_TASKS_OF_TABLES, _MAX_ENTRIES = 22, 2**28
"""Number of tasks above which the tables would not fit into a few hundred megabytes; and their entries, at most,
one GiB: each GPU with something live has tables of its own."""

_CASES_PER_CHUNK = 3 * 10**7
"""Cases that a thread looks at before it asks for the time: some hundredths of a second."""

_CASES_PER_SECOND = 4e8
"""Cases that a thread looks at."""

_TABLES_SHARE = 0.5
"""Largest share of the time for the tables; else it is not worth to begin."""

_MAX_CASES = 3e11
"""Cases above which the tables would take many minutes even where there is no limit of time."""

_SECONDS_PER_CANDIDATE, _SECONDS_PER_DECISION = 1e-4, 0.01
"""Seconds to list an assignment, and to decide it beside what the solver counts: measured 0.04 to 0.4 ms where many are
listed, and 8 to 20 ms, with 14 to 20 tasks."""

_MAX_CANDIDATES = 20_000
"""Assignments above which the block model with all of them at once is quicker."""

SKIPPED = 2**30
"""Table entry of a subset that was not looked at."""

Subsets = npt.NDArray[np.int32]

_split_tasks = loop("split_tasks")
_add_tasks = loop("add_tasks")
_subset_sums = loop("subset_sums")
_sets_within = loop("sets_within")


def prove_by_subsets(search: BlockSearch[M]) -> None:
    """Prove the best schedule of a search optimal, or find a better one, if the batch is small enough.

    All that is proven is reported to the search; it may be less than that, where the time is up or too many assignments
    are left. The better the schedule, the quicker.
    """
    problem, control = search.problem, search.control
    if len(problem.batch.tasks) > MAX_TASKS_OF_TABLES or not search.open:
        return
    tables = SubsetTables(problem, search.upper - 1)
    if tables.entries > _MAX_ENTRIES:
        return
    time, total = control.remaining, 0
    most = _MAX_CASES if time is None else time * _TABLES_SHARE * _CASES_PER_SECOND
    for cases in tables.cases():
        total += cases
        if total > most * control.workers or control.expired:
            return
    control.spend(total / _CASES_PER_SECOND / control.workers)
    if not tables.fill(control.workers, lambda: control.expired):
        return
    if tables.least >= NEVER:
        search.raise_lower(search.upper)
        return
    search.raise_lower(tables.least)
    _decide_all(search, Assignments(problem, tables))


def _decide_all(search: BlockSearch[M], assignments: Assignments) -> None:
    """Decide one assignment after the other; if all are, the best schedule is optimal."""
    # Shortest paths first: they are the most likely to give a better schedule, after which fewer are left.
    for places in itertools.islice(assignments.within(search.lower), 1):
        search.polish(places)
    while search.open:
        upper = search.upper
        if not _few(search, assignments.within(upper - 1)):
            return
        for places in assignments.within(upper - 1):
            search.control.spend(_SECONDS_PER_DECISION)
            if not search.decide(places):
                return
            if search.upper < upper:
                break
        else:
            search.raise_lower(upper)


def _few(search: BlockSearch[M], assignments: Iterator[list[int]]) -> bool:
    """Return True if few enough assignments are left to look at each; False if the time is up before."""
    for number, _ in enumerate(assignments):
        search.control.spend(_SECONDS_PER_CANDIDATE)
        if number == _MAX_CANDIDATES or search.control.expired:
            return False
    return True


class SubsetTables:
    """Tables of lengths, up to a limit, for every set of at most :data:`MAX_TASKS_OF_TABLES` tasks."""

    def __init__(self, problem: IntegerBatch, at_most: int) -> None:
        self._problem = problem
        self._count = len(problem.batch.tasks)
        self._at_most = at_most
        # No path spares more than one destruction.
        self._limit = at_most + max(place.destroy for place in problem.places)
        self.tree = LoadTree(problem)
        # the lengths by shape of the node, with every destruction or without the last ones; at least
        # NEVER where there is none within the limit
        self.full: dict[int, Table] = {}
        self.spared: dict[int, Table] = {}
        self._nodes: dict[int, list[int]] = defaultdict(list)
        for index, node in enumerate(self.tree.nodes):
            self._nodes[node.shape].append(index)
        self._ticks = task_ticks(problem, problem.places)
        self._room = self._room_of_leaves()

    @property
    def least(self) -> int:
        """Ticks below which no schedule ends; above the limit, if none is within it."""
        return int(self.spared[self.tree.nodes[-1].shape][-1])

    @property
    def entries(self) -> int:
        """Entries of all tables."""
        return 2 * len(self._nodes) << self._count

    def cases(self) -> Iterator[int]:
        """Yield the number of cases to look at for each split; some 10^9 take a second."""
        sizes = self._sizes()
        for shape, indices in self._nodes.items():
            if self.tree.nodes[indices[0]].kind == "split":
                both = 1 if self._saves_alike(shape) else 2
                yield int((np.int64(1) << sizes[self._worthwhile(shape)]).sum()) * both

    def fill(self, workers: int, expired: Callable[[], bool]) -> bool:
        """Compute the tables by some threads; return whether they are complete, or ``expired`` came first."""
        with ThreadPoolExecutor(workers) as pool:
            for shape, indices in self._nodes.items():
                node = self.tree.nodes[indices[0]]
                if expired():
                    return False
                if node.kind == "leaf":
                    self.full[shape] = self.spared[shape] = np.full(1 << self._count, NEVER, np.int32)
                    self.full[shape][0] = 0
                elif node.kind == "stack":
                    self._stack(node)
                elif not self._split(node, pool, expired):
                    return False
        return True

    def _stack(self, node: Node) -> None:
        place, below = self._problem.places[node.place], self.tree.nodes[node.one].shape
        used = self.full[below].copy()
        add_tasks(used, np.ascontiguousarray(self._ticks[:, node.place]), self._limit)
        used += used_ticks(place)
        for tables, spared, limit in (
            (self.full, 0, self._limit),
            (self.spared, self.longest_destruction(node), self._at_most),
        ):
            # A live instance makes room for what is below it, and for what is around it where all destructions count.
            table = np.minimum(used - spared, tables[below] + clearing_ticks(place))
            table[table > limit] = NEVER
            if tables is self.spared:
                table[0] = 0
            tables[node.shape] = table

    def _split(self, node: Node, pool: ThreadPoolExecutor, expired: Callable[[], bool]) -> bool:
        one, two = self.tree.nodes[node.one].shape, self.tree.nodes[node.two].shape
        subsets = self._worthwhile(node.shape)
        chunks = self._chunks(subsets)
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
            siblings = siblings_of(node, same=one == two, spared=tables is self.spared)
            work = partial(_split_chunk, expired, tables[one], tables[two], siblings, limit, table)
            if not all(pool.map(work, chunks)):
                return False
        return True

    def _worthwhile(self, shape: int) -> Subsets:
        """Return the sets that can run in one of the branches of a shape, whichever is best for each task.

        The path to a leaf has *room*: the limit, less the time until a live instance on it is free.
        """
        nodes, room = self._nodes[shape], self._room
        amounts = least_weighted_loads(self.tree, self._ticks, nodes, range(len(self.tree.nodes)))
        within = [sum(room[leaf] for leaf in self.tree.leaves[node]) for node in nodes]
        everywhere = sum(room.values())
        subsets: Subsets = sets_within(*amounts, (max(within), everywhere - min(within), everywhere))
        # Also where nothing runs in a branch, its live instances may have to go.
        return subsets if len(subsets) and not subsets[0] else np.concatenate([np.zeros(1, np.int32), subsets])

    def _room_of_leaves(self) -> dict[int, int]:
        """Return the room of the path to each leaf."""
        covers = {node.place: self.tree.leaves[at] for at, node in enumerate(self.tree.nodes) if node.place >= 0}
        room = dict.fromkeys(self.tree.leaves[-1], self._limit)
        for at in self._problem.live:
            for leaf in covers[at]:
                room[leaf] = max(0, self._limit - (self._problem.places[at].free or 0))
        return room

    def _saves_alike(self, shape: int) -> bool:
        """Return True if every path through the branch spares the same, given that anything runs in it."""
        places = [self._problem.places[at] for at in self.tree.places_below(self._nodes[shape][0])]
        return len({place.destroy for place in places}) == 1 and all(place.free is None for place in places)

    def _sizes(self) -> Table:
        """Return the number of tasks in each subset."""
        return subset_sums(np.ones(self._count, np.int32))

    def _chunks(self, subsets: Subsets) -> list[Subsets]:
        """Cut ``subsets`` into parts of about equal work."""
        done = np.cumsum(np.int64(1) << self._sizes()[subsets])
        cuts = np.searchsorted(done, np.arange(_CASES_PER_CHUNK, int(done[-1]) if len(done) else 0, _CASES_PER_CHUNK))
        return [chunk for chunk in np.split(subsets, cuts) if len(chunk)]

    def longest_destruction(self, node: Node) -> int:
        """Return the longest destruction at and below a stack."""
        below = self.tree.places_below(self._nodes[node.shape][0])
        return max(self._problem.places[at].destroy for at in below)


def _split_chunk(
    expired: Callable[[], bool],
    one: Table,
    two: Table,
    siblings: Siblings,
    limit: int,
    table: Table,
    chunk: Subsets,
) -> bool:
    if expired():
        return False
    split_tasks(one, two, chunk, siblings, limit, table)
    return True


def siblings_of(node: Node, *, same: bool, spared: bool) -> Siblings:
    """Return the relation of the branches of a split, which are alike if ``same``.

    Where not even the last destructions are spared there is something wider, for which live instances have to go: one
    of the two branches then waits, whatever runs in it.
    """
    if not spared and (node.late_one or node.late_two):
        return Siblings(same, True, True, node.late_one, node.late_two)
    return Siblings(same, False, False, node.wait_one, node.wait_two)


class Assignments:
    """Listing of all assignments of tasks to places whose paths stay within a limit.

    The tables tell for every branch and every set of tasks whether it fits, so that the search never runs into a dead
    end. Of two siblings that are alike only one of an assignment and its mirror image is found.
    """

    def __init__(self, problem: IntegerBatch, tables: SubsetTables) -> None:
        self._problem = problem
        self._tables = tables
        self._tree = tables.tree
        self._count = len(problem.batch.tasks)
        ticks = task_ticks(problem, problem.places)
        self._loads = [subset_sums(np.ascontiguousarray(column)) for column in ticks.T]

    def within(self, at_most: int) -> Iterator[list[int]]:
        """Yield the place of each task in each assignment with short paths: the limit of the tables at most."""
        everything = (1 << self._count) - 1
        for choice in self._branch(len(self._tree.nodes) - 1, everything, at_most, spared=True):
            yield places_of_tasks(choice)

    def _branch(self, index: int, tasks: int, at_most: int, *, spared: bool) -> Iterator[Choice]:
        """Yield the choices of places for ``tasks`` in a branch."""
        node = self._tree.nodes[index]
        if not tasks:
            yield ()
        elif node.kind == "stack":
            yield from self._stack(index, tasks, at_most, spared=spared)
        elif node.kind == "split":
            yield from self._split(index, tasks, at_most, spared=spared)

    def _stack(self, index: int, tasks: int, at_most: int, *, spared: bool) -> Iterator[Choice]:
        node = self._tree.nodes[index]
        place = self._problem.places[node.place]
        below = self._tree.nodes[node.one].shape
        lengths = (self._tables.spared if spared else self._tables.full)[below]
        if lengths[tasks] < NEVER and lengths[tasks] + clearing_ticks(place) <= at_most:
            yield from self._branch(node.one, tasks, at_most - clearing_ticks(place), spared=spared)
        fixed = used_ticks(place) - (self._tables.longest_destruction(node) if spared else 0)
        here = _subsets(tasks)[1:]
        taken = self._loads[node.place][here] + fixed
        rest = self._tables.full[below][tasks ^ here]
        fits = (self._loads[node.place][here] < NEVER) & (rest < NEVER)
        fits &= taken.astype(np.int64) + rest <= at_most
        for part, length in zip(here[fits].tolist(), taken[fits].tolist(), strict=True):
            for choice in self._branch(node.one, tasks ^ part, at_most - length, spared=False):
                yield ((node.place, part), *choice)

    def _split(self, index: int, tasks: int, at_most: int, *, spared: bool) -> Iterator[Choice]:
        node = self._tree.nodes[index]
        one, two = self._tree.nodes[node.one].shape, self._tree.nodes[node.two].shape
        lengths = self._tables.spared if spared else self._tables.full
        siblings = siblings_of(node, same=one == two, spared=spared)
        last = 1 << (tasks.bit_length() - 1) if siblings.same else 0
        parts = _subsets(tasks ^ last) | last
        at_most = min(at_most, NEVER - 1)
        left, right = lengths[one][parts], lengths[two][tasks ^ parts]
        both = ((parts != 0) | siblings.busy_one) & ((parts != tasks) | siblings.busy_two)
        after, before = left + both * siblings.wait_one <= at_most, right + both * siblings.wait_two <= at_most
        fits = (after & (right <= at_most)) | (before & (left <= at_most))
        # Whichever of the two can come first, the other one has the less time.
        most_left = at_most - both * ~before * siblings.wait_one
        most_right = at_most - both * ~after * siblings.wait_two
        for at in np.nonzero(fits)[0].tolist():
            part = int(parts[at])
            for here in self._branch(node.one, part, int(most_left[at]), spared=spared):
                for there in self._branch(node.two, tasks ^ part, int(most_right[at]), spared=spared):
                    yield (*here, *there)


def _subsets(tasks: int) -> Integers:
    """Return every subset of a set, the empty one first."""
    subsets = np.zeros(1, np.int64)
    while tasks:
        bit = tasks & -tasks
        subsets = np.concatenate([subsets, subsets | bit])
        tasks ^= bit
    return subsets


class Siblings(NamedTuple):
    """Relation of the two branches of a split."""

    same: bool  # true if they are alike: the last task then goes to the first of them
    # true if something runs in them already
    busy_one: bool
    busy_two: bool
    # ticks that the first one loses if the second one comes first, and the other way round; only where both run
    # something
    wait_one: int
    wait_two: int


def split_tasks(one: Table, two: Table, subsets: Subsets, siblings: Siblings, at_most: int, result: Table) -> None:
    """For each of ``subsets`` find the shortest longest path over all ways to split it between two siblings.

    Smaller subsets say nothing about larger ones: where subsets were skipped, since they leave too much for the rest of
    the tree, the path that remains for a small subset may be longer than that of a larger one. Lengths above
    ``at_most`` become NEVER; what is not looked at stays as it is in ``result``.
    """
    _split_tasks(one, two, subsets, siblings, at_most, np.empty_like(one), result)


def add_tasks(table: Table, ticks: npt.NDArray[np.int32], most: int) -> None:
    """Let any part of each subset run in one more place, which covers what ``table`` stands for.

    The table, paths without that place, is replaced by the least sums of a path and of the ``ticks`` of tasks in that
    place; those above ``most`` are not of interest.
    """
    _add_tasks(table, ticks, most)


def subset_sums(amounts: Table) -> Table:
    """Return the sum of ``amounts`` over each subset, at most :data:`NEVER`."""
    sums = np.empty(1 << len(amounts), np.int32)
    _subset_sums(amounts, sums)
    return sums


def sets_within(inside: Integers, around: Integers, beside: Integers, room: tuple[int, int, int]) -> Subsets:
    """Return the sets of tasks that can run in a branch, as part of an assignment within a limit.

    With any weights on the leaves, the weighted sum of the loads of their paths is at most the limit x the weights, and
    each task adds at least its time x the weight of the leaves that it covers, at its best place. That is asked three
    times of a set: with the weight inside of the branch, for the tasks in it; with the weight outside, for the others;
    and with the weight everywhere, for all. Close to the optimum few sets pass, and all others need not be looked at.

    ``inside``, ``around`` and ``beside`` have the least weighted load of each task in the branch, and elsewhere without
    and with its load in the branch; ``room`` the ticks x leaves that are left in the branch, elsewhere, and in all.
    """
    sets = 1 << len(inside)
    result = np.empty(sets, np.int32)
    count = _sets_within(inside, around, beside, room, np.empty(3 * sets, np.int64), result)
    return result[:count].copy()
