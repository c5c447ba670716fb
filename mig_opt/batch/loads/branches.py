"""Branches of a GPU, and the orders in which the instances used in them are first created.

The placements of a GPU form a tree; a *branch* is what covers some memory slices, with all that is inside. If something
is used that covers all of it, the branch is one *member* of the branch around it; if not, its inner branches are
members in its place. The driver creates one instance at a time, so the first creations of the members queue up (the
argument is in docs/explanation/bounds.md).

What is live at the start needs no creation, so creations do not queue up on such a GPU, and what it still runs is like
a task that only its placement can run.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from mig_opt.batch.horizon import Place
from mig_opt.batch.integer_batch import IntegerBatch

_MAX_KINDS_APART = 3
"""Kinds of placements on the same slices above which the choices among them are treated as one."""

_MAX_ORDERS = 5_000
"""Orders of the members of a GPU above which creations are taken not to queue up: a bound that holds as well."""

T = TypeVar("T")

Order = tuple[int, ...]
"""Members in the order of their first creations, each by the index of its branch."""


class Use(NamedTuple):
    """Choice of the placements with the same footprint that are used."""

    kinds: tuple[int, ...]  # the index of the profile of each
    # ticks of their creations and destructions: without the longest destruction, and with all
    spared: int
    full: int


class Branch(NamedTuple):
    """Branch of a GPU in which something is used that covers all of it."""

    uses: tuple[Use, ...]  # each choice of the placements that cover it
    orders: tuple[Order, ...]  # each choice and order of the members inside; one of them is empty


class Region(NamedTuple):
    """Slices of the first GPU that some placements cover, and no more."""

    slices: frozenset[int]  # by number
    branch: int  # the index of its branch
    places: dict[int, int]  # the index of the place of each kind


@dataclass(frozen=True, slots=True)
class Branches:
    """Branches of GPUs that are alike; branches that are alike are one."""

    gpus: tuple[int, ...]  # by index
    # One of each kind: all places of a profile are of one, but live ones by themselves, which need no creation.
    places: tuple[Place[int], ...]
    live: tuple[tuple[int, int], ...]  # the kind of each live instance, and the ticks until it is free
    branches: tuple[Branch, ...]  # inner ones first
    orders: tuple[Order, ...]  # each choice and order of the members of the whole GPU
    wait: int  # ticks that each creation waits for the one before: the shortest creation, or 0 if they do not wait
    regions: tuple[Region, ...]  # inner ones first

    @property
    def uses(self) -> list[Use]:
        """All uses of all branches, each once."""
        return sorted({use for branch in self.branches for use in branch.uses})

    @property
    def tell_all(self) -> bool:
        """True if each use tells which placements are used, and not just of which kinds some are."""
        return all(len(use.kinds) <= _MAX_KINDS_APART for use in self.uses)

    @property
    def unordered(self) -> Branches:
        """The same branches with one order for each choice of members, so that none waits for others."""
        branches = tuple(branch._replace(orders=_in_one_order(branch.orders)) for branch in self.branches)
        return replace(self, branches=branches, orders=_in_one_order(self.orders), wait=0)

    @property
    def inner(self) -> frozenset[int]:
        """The branches that can be beside or inside of others."""
        inside = (order for branch in self.branches for order in branch.orders)
        beside = (order for order in self.orders if len(order) > 1)
        return frozenset(itertools.chain(*inside, *beside))


def branches_of(batch: IntegerBatch, gpus: tuple[int, ...] = ()) -> Branches:
    """List the branches of GPUs of a batch that are alike, by default all of them."""
    gpus = gpus or batch.gpus
    covering = [frozenset(at) for at in batch.slices(gpus[:1])]
    # A slice that only some of the placements around another one cover is never on the longer path.
    paths = [at for at in covering if not any(at < other for other in covering)]
    kinds: dict[tuple[str, int, bool], Place[int]] = {}
    regions: dict[frozenset[int], dict[int, int]] = {}
    live = dict[int, int]()
    for at in batch.on_gpu[gpus[0]]:
        place = batch.places[at]
        start = -1 if place.free is None else place.placement.start
        key = (place.placement.profile.name, start, bool(place.durations))
        kinds.setdefault(key, place if place.free is None else replace(place, create=0))
        kind = list(kinds).index(key)
        if place.free is not None:
            live[kind] = place.free
        region = frozenset(number for number, path in enumerate(paths) if at in path)
        regions.setdefault(region, {})[kind] = at
    listing = _Listing(tuple(kinds.values()))
    number: dict[frozenset[int], int] = {}
    for region in sorted(regions, key=len):
        inside = [number[other] for other in _outer([other for other in number if other < region])]
        number[region] = listing.add(sorted(regions[region]), sorted(inside))
    whole = sorted(number[region] for region in _outer(list(regions)))
    found = tuple(Region(region, at, regions[region]) for region, at in number.items())
    places, orders, branches = tuple(kinds.values()), listing.choices(whole), tuple(listing.branches)
    number_of_orders = sum(
        math.factorial(len(members)) // math.prod(map(math.factorial, Counter(members).values())) for members in orders
    )
    in_turn = not live and not batch.batch.parallel_operations and number_of_orders <= _MAX_ORDERS
    wait = min(place.create for place in places) if in_turn else 0
    if wait:
        orders = _in_every_order(orders)
        branches = tuple(branch._replace(orders=_in_every_order(branch.orders)) for branch in branches)
    return Branches(gpus, places, tuple(live.items()), branches, orders, wait, found)


def orders_of(members: tuple[T, ...]) -> Iterator[tuple[T, ...]]:
    """Yield each order of some members once; some of them may be equal."""
    if not members:
        yield ()
    for at, first in enumerate(members):
        if first not in members[:at]:
            yield from ((first, *rest) for rest in orders_of(members[:at] + members[at + 1 :]))


def _in_every_order(choices: Iterable[Order]) -> tuple[Order, ...]:
    """Return the orders of all choices of members."""
    return tuple(sorted(order for members in choices for order in orders_of(members)))


def _in_one_order(orders: Iterable[Order]) -> tuple[Order, ...]:
    """Return one order for each choice of members."""
    return tuple(sorted({tuple(sorted(members)) for members in orders}))


def _outer(regions: list[frozenset[int]]) -> list[frozenset[int]]:
    """Return the regions that are not inside of others."""
    return [region for region in regions if not any(region < other for other in regions)]


class _Listing:
    """Collection of branches, those that are alike once."""

    def __init__(self, places: tuple[Place[int], ...]) -> None:
        self._places = places
        self.branches: list[Branch] = []
        self._inside: list[list[int]] = []

    def add(self, kinds: list[int], inside: list[int]) -> int:
        """Add a branch with these kinds around it and these branches directly inside; return its index."""
        branch = Branch(tuple(self._uses(kinds)), self.choices(inside))
        if branch not in self.branches:
            self.branches.append(branch)
            self._inside.append(inside)
        return self.branches.index(branch)

    def _uses(self, kinds: list[int]) -> Iterator[Use]:
        operations = [(self._places[kind].create, self._places[kind].destroy) for kind in kinds]
        if len(kinds) > _MAX_KINDS_APART:
            create = min(create for create, _ in operations)
            yield Use(tuple(kinds), create, min(map(sum, operations)))
            return
        for count in range(1, len(kinds) + 1):
            for used in itertools.combinations(range(len(kinds)), count):
                full = sum(sum(operations[at]) for at in used)
                yield Use(tuple(kinds[at] for at in used), full - max(operations[at][1] for at in used), full)

    def choices(self, branches: list[int]) -> tuple[Order, ...]:
        """Return every choice of members in some branches beside each other, sorted."""
        return tuple(sorted(self._choices(branches)))

    def _choices(self, branches: list[int]) -> set[Order]:
        found: set[Order] = {()}
        for branch in branches:
            more = {(branch,), *self._choices(self._inside[branch])}
            found = {tuple(sorted(one + two)) for one in found for two in more}
        return found
