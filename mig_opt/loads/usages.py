"""Which placements of a GPU are used, and in which order they are first created: all the ways to do that.

A *way* through the repartition tree of a GPU leads from the outside to one memory slice. What a schedule does on it
depends on three things: the placements around the slice that are used at all, each of which takes a creation and a
destruction; how long the slice has to wait for first creations elsewhere, since the driver does one at a time; and the
tasks. A *usage* is the first two of these for every way of a GPU. (The argument for the waits is in docs/theory.md.)
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mig_opt.ticked import Place, TickedBatch

_MOST_PLACES = 14
"""With more placements on a GPU it is not told apart which of those with the same footprint are used."""


class Kind(NamedTuple):
    """Placements that are alike: of one profile, with as many ways through them."""

    profile: str
    ways: int


class Way(NamedTuple):
    """A way of a usage.

    Attributes
    ----------
    kinds : tuple of int
        The kinds of placements on it that are used, in order.
    operations : int
        Ticks of their creations and destructions.
    queue : int
        First creations elsewhere that it waits for.
    """

    kinds: tuple[int, ...]
    operations: int
    queue: int


class _Branch(NamedTuple):
    """What is used in a branch of the tree, as far as it matters for what is around it.

    Attributes
    ----------
    members : tuple of tuple of Way
        Parts of the branch whose first creations queue up, each with its ways.
    idle : int
        Ways on which nothing is used.
    """

    members: tuple[tuple[Way, ...], ...]
    idle: int


@dataclass(frozen=True, slots=True)
class Usages:
    """The usages of a GPU on which nothing is live.

    Attributes
    ----------
    kinds : tuple of Kind
        Of placements.
    places : tuple of Place
        One of each kind.
    ways : tuple of Way
        Every way that comes up in a usage, once.
    rows : array of int32, shape (usages, ways of a GPU)
        The index of each way of each usage.
    wait : int
        Ticks of a place in the queue: the shortest creation; 0 if creations do not wait for each other.
    """

    kinds: tuple[Kind, ...]
    places: tuple[Place, ...]
    ways: tuple[Way, ...]
    rows: npt.NDArray[np.int32]
    wait: int

    @property
    def chains(self) -> list[tuple[int, ...]]:
        """The kinds of placements that come together on a way, each such set once."""
        return sorted({way.kinds for way in self.ways if way.kinds})

    def ticks_around(self, way: Way) -> int:
        """Return the ticks of a way that no task can have: waits, creations and all destructions but the longest."""
        last = max((self.places[kind].destroy for kind in way.kinds), default=0)
        return way.queue * self.wait + way.operations - last


def usages_of(batch: TickedBatch) -> Usages:
    """List the usages of the first GPU of a batch, on which nothing is live."""
    return _Listing(batch).usages()


class _Listing:
    """Lists the usages of the first GPU of a batch."""

    def __init__(self, batch: TickedBatch) -> None:
        covering = [frozenset(at) for at in batch.slices() if batch.places[at[0]].gpu == 0]
        # A slice that only some of the placements around another one cover is never the longer way.
        ways = [at for at in covering if not any(at < other for other in covering)]
        self._count = len(ways)
        self._regions: dict[frozenset[int], list[Place]] = {}
        for at, place in enumerate(batch.places):
            if place.gpu == 0:
                region = frozenset(number for number, way in enumerate(ways) if at in way)
                self._regions.setdefault(region, []).append(place)
        kinds = {self._kind(region, place): place for region, places in self._regions.items() for place in places}
        self._kinds, self._places = tuple(kinds), tuple(kinds.values())
        self._apart = sum(map(len, self._regions.values())) <= _MOST_PLACES
        self._wait = 0 if batch.batch.parallel_operations else min(place.create for place in self._places)

    @staticmethod
    def _kind(region: frozenset[int], place: Place) -> Kind:
        return Kind(place.placement.profile.name, len(region))

    def usages(self) -> Usages:
        """Return them."""
        whole = self._below(frozenset(range(self._count)), whole=True)
        found = set[tuple[Way, ...]]().union(*map(self._in_order, whole))
        ways = {way: index for index, way in enumerate(sorted({way for usage in found for way in usage}))}
        rows = np.array([[ways[way] for way in usage] for usage in sorted(found)], np.int32)
        return Usages(self._kinds, self._places, tuple(ways), rows, self._wait)

    def _below(self, region: frozenset[int], *, whole: bool = False) -> set[_Branch]:
        """Return what can be used inside of a region (or of the whole GPU), without what covers all of it."""
        inner = [other for other in self._regions if other < region or (whole and other == region)]
        children = [one for one in inner if not any(one < other for other in inner)]
        found = {_Branch((), len(region) - sum(map(len, children)))}
        for child in children:
            branches = self._branch(child)
            found = {
                _Branch(tuple(sorted(one.members + two.members)), one.idle + two.idle)
                for one in found
                for two in branches
            }
        return found

    def _branch(self, region: frozenset[int]) -> set[_Branch]:
        """Return what can be used in a region, with what covers all of it."""
        below = self._below(region)
        inside = set[tuple[Way, ...]]().union(*map(self._in_order, below))
        found = set(below)
        for kinds, operations in self._uses(region):
            for ways in inside:
                around = (Way(tuple(sorted(way.kinds + kinds)), way.operations + operations, way.queue) for way in ways)
                # Whatever covers the region makes it one member for what is around.
                found.add(_Branch((tuple(sorted(around)),), 0))
        return found

    def _uses(self, region: frozenset[int]) -> Iterator[tuple[tuple[int, ...], int]]:
        """Yield each choice of placements that cover just a region, and the ticks of their operations."""
        places = self._regions[region]
        kinds = [self._kinds.index(self._kind(region, place)) for place in places]
        operations = [place.create + place.destroy for place in places]
        if not self._apart:
            yield tuple(kinds), min(operations)
            return
        for count in range(1, len(kinds) + 1):
            for used in itertools.combinations(range(len(kinds)), count):
                yield tuple(kinds[at] for at in used), sum(operations[at] for at in used)

    def _in_order(self, branch: _Branch) -> set[tuple[Way, ...]]:
        """Return the ways of a branch for every order in which its members can be created first."""
        idle = (Way((), 0, 0),) * branch.idle
        if not self._wait:
            return {tuple(sorted((*idle, *itertools.chain(*branch.members))))}
        found: set[tuple[Way, ...]] = set()
        for order in _orders(branch.members):
            late = (way._replace(queue=way.queue + at) for at, ways in enumerate(order) for way in ways)
            found.add(tuple(sorted((*idle, *late))))
        return found


def _orders(members: Sequence[tuple[Way, ...]]) -> Iterator[tuple[tuple[Way, ...], ...]]:
    """Yield every order of some members, those that are alike in one order only."""
    if not members:
        yield ()
    for member in sorted(set(members)):
        rest = list(members)
        rest.remove(member)
        for order in _orders(rest):
            yield (member, *order)
