"""Orders of the operations of a layout, and for how long they leave each path without an instance.

The driver does one operation at a time. An order says which instances are live during each operation, so also which
paths have none: these run nothing meanwhile, however long each instance has tasks. The sum of that over all operations
is the *idle time* of a path, creations and destructions of its own included. A path takes its loads and its idle time
at least.

With weights on the paths the best order is a shortest path from "nothing is created" to "all have been created", by
dynamic programming over the instances that are live and those that have been created so far (Held and Karp, 1962). It
spares the last destructions, and tells all waits for the driver, as the paths of a layout do not
(:mod:`mig_opt.batch.loads.layouts`). What is created may be created again, so no order is left out.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mig_opt.batch.loads.subsets import Integers
from mig_opt.native import loop

_least_idle = loop("least_idle")

_MAX_PATHS = 16
"""Number of paths above which orders are not looked at: each set of paths has an entry."""

_MAX_STATES = 2**22
"""States of the dynamic programming at which orders are not looked at; 50,000 are common."""

_MAX_PARTS = 4_000
"""Number of parts of orders at which their listing is given up."""

Cover = npt.NDArray[np.bool_]


class _Moves(NamedTuple):
    """All operations: from each set of live instances, one after the other."""

    live: Integers  # bits of the instances of each set
    first: Integers  # first move from each set, and from behind the last
    # columns: set after it, bit of what it creates or 0, ticks, bits of the paths that are idle, and bits of the
    # instances that have to be created before
    moves: Integers


class OperationOrders:
    """Orders in which some instances are created, and destroyed for others.

    Parameters
    ----------
    create, destroy : array of shape (instances,)
        Ticks of the operations.
    conflicts : array of shape (instances, instances)
        True for two that cannot exist together.
    cover : array of shape (paths, instances)
        True where a path goes through an instance.
    like : array of shape (paths,)
        Equal for paths that are alike: they have equal weights, and it makes no difference which is which. Where this
        holds for instances on them, too, these are first created in turn.

    Attributes
    ----------
    too_many : bool
        True if there are too many orders to look at them: then nothing can be asked.
    """

    def __init__(self, create: Integers, destroy: Integers, conflicts: Cover, cover: Cover, like: Integers) -> None:
        paths, count = cover.shape
        sets = [0]
        against = [sum(1 << at for at in np.nonzero(row)[0].tolist()) for row in conflicts]
        self.too_many = paths > _MAX_PATHS
        for at in range(count):
            if not self.too_many:
                sets += [live | 1 << at for live in sets if not live & against[at]]
                self.too_many = len(sets) << count > _MAX_STATES
        if self.too_many:
            return
        self._created = 1 << count
        # the paths of each set of them, shape (sets, paths)
        self._paths = (np.arange(1 << paths)[:, np.newaxis] >> np.arange(paths) & 1).astype(np.int64)
        needed = _created_before(np.array([create, destroy]), conflicts, cover, like)
        covers = [sum(1 << path for path in np.nonzero(column)[0].tolist()) for column in cover.T]
        number, first, moves = {live: at for at, live in enumerate(sets)}, [0], list[tuple[int, ...]]()
        for live in sets:
            idle = (1 << paths) - 1
            for at in range(count):
                idle &= ~covers[at] if live >> at & 1 else -1
            for at in range(count):
                if live >> at & 1:
                    moves.append((number[live ^ 1 << at], 0, int(destroy[at]), idle | covers[at], 0))
                elif not live & against[at]:
                    moves.append((number[live | 1 << at], 1 << at, int(create[at]), idle, needed[at]))
            first.append(len(moves))
        self._moves = _Moves(np.array(sets), np.array(first), np.array(moves))

    def least(self, weights: Integers) -> Integers:
        """Return the idle time of each path in an order in which the weighted sum of them is least."""
        moves, (_, choice) = self._moves.moves, self._ahead(weights)
        idle, live, created = np.zeros(self._paths.shape[1], np.int64), 0, 0
        while choice[live, created] >= 0:
            after, new, ticks, without, _ = moves[choice[live, created]].tolist()
            idle += ticks * self._paths[without]
            live, created = after, created | new
        return idle

    def _ahead(self, weights: Integers) -> tuple[Integers, npt.NDArray[np.int32]]:
        """Return the least weighted idle time from each state on, and the next move, -1 at the end."""
        shape = len(self._moves.live), self._created
        ahead, choice = np.empty(shape, np.int64), np.empty(shape, np.int32)
        _least_idle(*self._moves, self._paths @ weights, ahead, choice)
        return ahead, choice

    def within(self, weights: Integers, at_most: int) -> list[Integers] | None:
        """Return the idle time of each path in each order whose weighted sum is at most that, the least ones first.

        Those are left out that are no less on any path than others; None is returned if they are too many.
        """
        ahead, moves = self._ahead(weights)[0].ravel(), self._moves
        end, paths = self._created - 1, self._paths.shape[1]
        # state and idle time of each path, of parts of orders
        known, latest = np.zeros((0, 1 + paths), np.int64), np.zeros((1, 1 + paths), np.int64)
        while len(latest):
            known = np.concatenate([known, latest])
            live, created = np.divmod(latest[:, 0], self._created)
            counts = np.where(created == end, 0, np.diff(moves.first)[live])
            part = np.repeat(np.arange(len(latest)), counts)
            begin = moves.first[live] - np.cumsum(counts) + counts
            rows = moves.moves[np.arange(len(part)) + begin[part]]
            possible = rows[:, 4] & ~created[part] == 0
            part, (after, new, ticks, without, _) = part[possible], rows[possible].T
            state = after * self._created + (created[part] | new)
            idle = latest[part, 1:] + ticks[:, np.newaxis] * self._paths[without]
            within = idle @ weights + ahead[state] <= at_most
            found = np.unique(np.column_stack([state[within], idle[within]]), axis=0)
            known, latest = _undominated(known, found)
            if len(known) + len(latest) > _MAX_PARTS:
                return None
        found = known[known[:, 0] % self._created == end]
        found[:, 0] = 0  # whatever is live in the end
        _, found = _undominated(found[:0], np.unique(found, axis=0))
        return sorted(found[:, 1:], key=lambda row: int(row @ weights))


def _created_before(ticks: Integers, conflicts: Cover, cover: Cover, like: Integers) -> list[int]:
    """Return for each instance the bit of the one before it that is alike, 0 if there is none.

    ``ticks`` are those of its operations, a column for each instance. Alike are two with equal ones, each on one path,
    of paths that are alike: if they and their paths are exchanged, all is as before.
    """
    needed = [0] * cover.shape[1]
    for one, two in itertools.combinations(range(cover.shape[1]), 2):
        first, second = np.nonzero(cover[:, one])[0], np.nonzero(cover[:, two])[0]
        alone = len(first) == len(second) == 1 and like[first[0]] == like[second[0]]
        if alone and (ticks[:, one] == ticks[:, two]).all():
            exchanged, paths = np.arange(cover.shape[1]), np.arange(len(cover))
            exchanged[[one, two]], paths[[first[0], second[0]]] = [two, one], [second[0], first[0]]
            if (conflicts[np.ix_(exchanged, exchanged)] == conflicts).all() and (
                cover[np.ix_(paths, exchanged)] == cover
            ).all():
                needed[two] = 1 << one
    return needed


def _undominated(known: Integers, rows: Integers) -> tuple[Integers, Integers]:
    """Return the known rows and the new ones that are less somewhere than all others that begin with the same entry."""
    both = np.concatenate([known, rows])
    kept = np.ones(len(both), np.bool_)
    order = np.argsort(both[:, 0], kind="stable")
    for group in np.split(order, np.nonzero(np.diff(both[order, 0]))[0] + 1):
        if len(group) > 1:
            some = both[group]
            no_less = (some[:, np.newaxis] >= some[np.newaxis]).all(axis=2)
            # Of equal rows the first one stays.
            equal = no_less & no_less.T
            kept[group] = ~((no_less & ~equal) | (equal & np.tri(len(group), k=-1, dtype=np.bool_))).any(axis=1)
    return both[: len(known)][kept[: len(known)]], rows[kept[len(known) :]]
