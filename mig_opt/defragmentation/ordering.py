"""Turns what fleets look like before and after into migrations that can be done one after the other.

Each migration creates an instance and then destroys one of the same profile, and instances of a profile are as good as
each other. So an arrival may happen once its place is free, and gives its profile a *credit*, for which an instance
that has to go anyway may leave. That the instance leaves later than it could does not matter to find an order: earlier
departures only make places free. Arrivals never stand in each other's way, so free ones happen at once, and all there
is to decide is for which blocked arrival credits are spent.

Where nothing is left to decide and arrivals are still blocked, an instance in their way makes a detour over a free
place, which costs a migration.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from mig_opt.gpu.geometry import Geometry, members

Spot = tuple[int, int]
"""GPU and placement."""

_MOST_TRIES = 3000


class Move(NamedTuple):
    """A migration, as GPU and placement before and after."""

    source: Spot
    target: Spot


def ordered(
    geometry: Geometry, masks: Sequence[int], targets: Sequence[int], *, detours: bool = False
) -> list[Move] | None:
    """Return migrations in an order in which each can be done; None if none is found.

    Parameters
    ----------
    geometry : Geometry
        Of the GPUs.
    masks, targets : sequence of int
        What is on each GPU before and after; of each profile there are as many.
    detours : bool
        Whether instances may move more often than once. Without detours there are as many migrations as GPUs get
        instances, and all orders are looked at if there are not too many.
    """
    progress = _Progress(geometry, masks, targets)
    if not detours:
        solved = _search(progress, _MOST_TRIES)
        return None if solved is None else solved.moves()
    for _ in range(2 * len(progress.arriving) + 1):
        progress.arrive()
        if not progress.arriving:
            return progress.moves()
        affordable = progress.affordable()
        if affordable:
            progress.clear(affordable[0])
        elif not progress.detour():
            return None
    return None


class _Progress:
    """How far migrations have come.

    Attributes
    ----------
    masks : list of int
        What is on each GPU, with those that could have left already.
    arriving, leaving : set of Spot
        What has still to come and to go.
    """

    def __init__(self, geometry: Geometry, masks: Sequence[int], targets: Sequence[int]) -> None:
        self._geometry = geometry
        self.masks = list(masks)
        pairs = list(enumerate(zip(masks, targets, strict=True)))
        self.arriving = {(gpu, place) for gpu, (mask, target) in pairs for place in members(target & ~mask)}
        self.leaving = {(gpu, place) for gpu, (mask, target) in pairs for place in members(mask & ~target)}
        self._arrived: list[Spot] = []
        self._left: dict[Spot, Spot] = {}
        self._credits: dict[int, list[Spot]] = {}

    def copy(self) -> _Progress:
        """Return a copy that goes its own way."""
        other = object.__new__(_Progress)
        other._geometry = self._geometry
        other.masks = list(self.masks)
        other.arriving, other.leaving = set(self.arriving), set(self.leaving)
        other._arrived, other._left = list(self._arrived), dict(self._left)
        other._credits = {profile: list(spots) for profile, spots in self._credits.items()}
        return other

    @property
    def key(self) -> tuple[frozenset[Spot], frozenset[Spot]]:
        """What is still to be done."""
        return frozenset(self.arriving), frozenset(self.leaving)

    def arrive(self) -> None:
        """Let everything arrive whose place is free."""
        for spot in sorted(self.arriving):
            if not self._obstacles(spot):
                self._take(spot)
                self.arriving.remove(spot)

    def affordable(self) -> list[Spot]:
        """Return the blocked arrivals for which there are credits, those with the fewest obstacles first."""
        found = []
        for spot in sorted(self.arriving):
            lacking = self._lacking(spot)
            if not lacking:
                found.append((len(self._obstacles(spot)), spot))
        return [spot for _, spot in sorted(found)]

    def clear(self, spot: Spot) -> None:
        """Let the obstacles of an arrival leave."""
        for obstacle in self._obstacles(spot):
            self._leave(obstacle)

    def detour(self) -> bool:
        """Let an obstacle make a detour; return whether there is a place for one."""
        ways = []
        for spot in self.arriving:
            lacking = self._lacking(spot)
            ways += [(lacking.total(), count, spot, profile) for profile, count in lacking.items()]
        for _, _, spot, profile in sorted(ways):
            place = self._free(profile)
            if place is None:
                continue
            own = [other for other in self._obstacles(spot) if self._profile(other) == profile]
            # Those that are paid for already leave first, so that the detour pays for the next one.
            while self._credits.get(profile):
                self._leave(own.pop())
            self._take(place)
            self.leaving.add(place)
            self._leave(own.pop())
            return True
        return False

    def moves(self) -> list[Move]:
        """Return the migrations; what may leave for any arrival leaves for one on its GPU if it can."""
        for spot in sorted(self.leaving):
            unspent = self._credits[self._profile(spot)]
            near = next((arrival for arrival in unspent if arrival[0] == spot[0]), None)
            if near is not None:
                unspent.remove(near)
                self._left[near] = spot
                self.leaving.remove(spot)
        for spot in sorted(self.leaving):
            self._left[self._credits[self._profile(spot)].pop(0)] = spot
        self.leaving.clear()
        return [Move(self._left[arrival], arrival) for arrival in self._arrived]

    def _profile(self, spot: Spot) -> int:
        return self._geometry.profile_of[spot[1]]

    def _obstacles(self, spot: Spot) -> list[Spot]:
        gpu, place = spot
        return [(gpu, other) for other in members(self._geometry.conflicts[place] & self.masks[gpu])]

    def _lacking(self, spot: Spot) -> Counter[int]:
        """Return how many credits of each profile lack to clear a place."""
        needed = Counter(map(self._profile, self._obstacles(spot)))
        needed.subtract({profile: len(self._credits.get(profile, ())) for profile in needed})
        return +needed

    def _take(self, spot: Spot) -> None:
        self.masks[spot[0]] |= 1 << spot[1]
        self._arrived.append(spot)
        self._credits.setdefault(self._profile(spot), []).append(spot)

    def _leave(self, spot: Spot) -> None:
        self.masks[spot[0]] &= ~(1 << spot[1])
        self.leaving.remove(spot)
        self._left[self._credits[self._profile(spot)].pop(0)] = spot

    def _free(self, profile: int) -> Spot | None:
        """Return a free place for a detour, best one that no arrival wants."""
        wanted = [0] * len(self.masks)
        for gpu, place in self.arriving:
            wanted[gpu] |= self._geometry.conflicts[place]
        found = None
        for gpu, mask in enumerate(self.masks):
            for place in self._geometry.placements_of[profile]:
                if not self._geometry.conflicts[place] & mask and (gpu, place) not in self.arriving:
                    if not wanted[gpu] >> place & 1:
                        return gpu, place
                    found = found or (gpu, place)
        return found


def _search(progress: _Progress, most: int) -> _Progress | None:
    """Return where all has arrived without detours; None if that is impossible, or after too many tries."""
    known: set[object] = set()
    ahead: list[tuple[_Progress, Spot | None]] = [(progress, None)]
    while ahead and len(known) < most:
        branch, spot = ahead.pop()
        if spot is not None:
            branch = branch.copy()
            branch.clear(spot)
        branch.arrive()
        if not branch.arriving:
            return branch
        if branch.key not in known:
            known.add(branch.key)
            ahead += [(branch, choice) for choice in reversed(branch.affordable())]
    return None
