"""Orders the migrations that lead from given instances to given targets, so that each can be done.

Each migration creates an instance and then destroys one of the same profile, and instances of a profile are
interchangeable. So an arrival may happen once its place is free, and gives its profile a *credit*, for which an
instance that has to go anyway may leave. It may leave later than that, but earlier departures only make places free.
Arrivals never block each other, so those whose place is free happen at once, and the only decision is for which blocked
arrival credits are spent: a depth-first search over these decisions is complete.

Where credits are short and arrivals are still blocked, an instance in their way makes a detour over a free place, which
costs a migration.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence

from mig_opt.api.defragment.problem import Relocation
from mig_opt.gpu.geometry import Geometry, NumberedPlace, members

_MOST_TRIES = 3000


def ordered(
    geometry: Geometry, masks: Sequence[int], targets: Sequence[int], *, detours: bool = False
) -> list[Relocation] | None:
    """Return migrations in an order in which each can be done; None if none is found.

    ``masks`` and ``targets`` are the instances on each GPU before and after; of each profile there are as many. Without
    detours there are as many migrations as arrivals, and the search is complete up to a number of tries.
    """
    order = _PartialOrder(geometry, masks, targets)
    if not detours:
        return _search(order)
    for _ in range(2 * len(order.arriving) + 1):
        order.arrive()
        if not order.arriving:
            return order.moves()
        affordable = order.affordable()
        if affordable:
            order.clear(affordable[0])
        elif not order.detour():
            return None
    return None


def _search(order: _PartialOrder) -> list[Relocation] | None:
    """Return migrations without detours; None if there are none, or after too many tries."""
    known: set[object] = set()
    stack: list[tuple[_PartialOrder, NumberedPlace | None]] = [(order, None)]
    while stack and len(known) < _MOST_TRIES:
        branch, cleared = stack.pop()
        if cleared is not None:
            branch = branch.copy()
            branch.clear(cleared)
        branch.arrive()
        if not branch.arriving:
            return branch.moves()
        if branch.key not in known:
            known.add(branch.key)
            stack += [(branch, place) for place in reversed(branch.affordable())]
    return None


class _PartialOrder:
    """The first migrations of an order, and the arrivals and departures that are left."""

    def __init__(self, geometry: Geometry, masks: Sequence[int], targets: Sequence[int]) -> None:
        self._geometry = geometry
        self.masks = list(masks)  # instances on each GPU now; those for which a credit was spent have left
        pairs = list(enumerate(zip(masks, targets, strict=True)))
        # places that have still to be taken and to be left
        self.arriving = {(gpu, place) for gpu, (mask, target) in pairs for place in members(target & ~mask)}
        self.leaving = {(gpu, place) for gpu, (mask, target) in pairs for place in members(mask & ~target)}
        self._arrived: list[NumberedPlace] = []
        self._left: dict[NumberedPlace, NumberedPlace] = {}
        self._credits: dict[int, list[NumberedPlace]] = {}

    def copy(self) -> _PartialOrder:
        other = copy.copy(self)
        other.masks = list(self.masks)
        other.arriving, other.leaving = set(self.arriving), set(self.leaving)
        other._arrived, other._left = list(self._arrived), dict(self._left)
        other._credits = {profile: list(arrivals) for profile, arrivals in self._credits.items()}
        return other

    @property
    def key(self) -> tuple[frozenset[NumberedPlace], frozenset[NumberedPlace]]:
        return frozenset(self.arriving), frozenset(self.leaving)

    def arrive(self) -> None:
        for place in sorted(self.arriving):
            if not self._obstacles(place):
                self._take(place)
                self.arriving.remove(place)

    def affordable(self) -> list[NumberedPlace]:
        """Return the blocked arrivals for which there are credits, those with the fewest obstacles first."""
        places = [place for place in self.arriving if not self._lacking(place)]
        return sorted(places, key=lambda place: (len(self._obstacles(place)), place))

    def clear(self, place: NumberedPlace) -> None:
        for obstacle in self._obstacles(place):
            self._leave(obstacle)

    def detour(self) -> bool:
        """Let an obstacle make a detour, where the fewest credits lack; return whether there is a place for one."""
        options = []
        for arrival in self.arriving:
            lacking = self._lacking(arrival)
            options += [(lacking.total(), count, arrival, profile) for profile, count in lacking.items()]
        for _, _, arrival, profile in sorted(options):
            place = self._free(profile)
            if place is None:
                continue
            own = [other for other in self._obstacles(arrival) if self._profile(other) == profile]
            # Those that are paid for already leave first, so that the detour pays for the next one.
            while self._credits.get(profile):
                self._leave(own.pop())
            self._take(place)
            self.leaving.add(place)
            self._leave(own.pop())
            return True
        return False

    def moves(self) -> list[Relocation]:
        """Return the migrations; an instance that may leave for any arrival leaves for one on its GPU if it can."""
        for place in sorted(self.leaving):
            unspent = self._credits[self._profile(place)]
            near = next((arrival for arrival in unspent if arrival[0] == place[0]), None)
            if near is not None:
                unspent.remove(near)
                self._left[near] = place
                self.leaving.remove(place)
        for place in sorted(self.leaving):
            self._left[self._credits[self._profile(place)].pop(0)] = place
        self.leaving.clear()
        return [Relocation(self._left[arrival], arrival) for arrival in self._arrived]

    def _profile(self, place: NumberedPlace) -> int:
        return self._geometry.profile_of[place[1]]

    def _obstacles(self, arrival: NumberedPlace) -> list[NumberedPlace]:
        gpu, place = arrival
        return [(gpu, other) for other in members(self._geometry.conflicts[place] & self.masks[gpu])]

    def _lacking(self, arrival: NumberedPlace) -> Counter[int]:
        """Return how many credits of each profile lack to clear a place."""
        needed = Counter(map(self._profile, self._obstacles(arrival)))
        needed.subtract({profile: len(self._credits.get(profile, ())) for profile in needed})
        return +needed

    def _take(self, place: NumberedPlace) -> None:
        self.masks[place[0]] |= 1 << place[1]
        self._arrived.append(place)
        self._credits.setdefault(self._profile(place), []).append(place)

    def _leave(self, place: NumberedPlace) -> None:
        self.masks[place[0]] &= ~(1 << place[1])
        self.leaving.remove(place)
        self._left[self._credits[self._profile(place)].pop(0)] = place

    def _free(self, profile: int) -> NumberedPlace | None:
        """Return a free place for a detour, if possible one that blocks no arrival."""
        reserved = [0] * len(self.masks)
        for gpu, place in self.arriving:
            reserved[gpu] |= self._geometry.conflicts[place]
        free = [
            (gpu, place)
            for gpu, mask in enumerate(self.masks)
            for place in self._geometry.placements_of[profile]
            if not self._geometry.conflicts[place] & mask and (gpu, place) not in self.arriving
        ]
        return next((place for place in free if not reserved[place[0]] >> place[1] & 1), next(iter(free), None))
