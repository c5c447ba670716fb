"""What a defragmentation is for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from mig_opt.gpu.geometry import Geometry


@dataclass(frozen=True)
class Goal:
    """What has to hold at the end.

    Attributes
    ----------
    geometry : Geometry
        Of the GPUs.
    profiles : tuple of int
        The profiles for which room is wanted.
    wanted : tuple of int
        For how many instances of each.
    most_cost : int or None
        The fragmentation cost that the GPUs may have together; None if that is no goal, or the least is wanted.
    """

    geometry: Geometry
    profiles: tuple[int, ...] = ()
    wanted: tuple[int, ...] = ()
    most_cost: int | None = None
    _rooms: dict[int, tuple[tuple[int, ...], ...]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def least(self) -> bool:
        """Whether least fragmentation is wanted, whatever that is."""
        return not self.wanted and self.most_cost is None

    def rooms(self, mask: int) -> tuple[tuple[int, ...], ...]:
        """Return for what there is room at once on a GPU with these instances, without what has less of everything."""
        found = self._rooms.get(mask)
        if found is None:
            every = {self._counted(places) for places in self._ways(mask, self.wanted)}
            found = self._rooms[mask] = tuple(
                room
                for room in sorted(every, reverse=True)
                if not any(other != room and all(map(int.__le__, room, other)) for other in every)
            )
        return found

    def places(self, masks: Iterable[int]) -> list[tuple[int, int]] | None:
        """Return GPU and placement of the wanted instances, where all fit at once; None if they do not."""
        if not self.wanted:
            return []
        masks = list(masks)
        # For each amount of what is still wanted the rooms that were taken, GPU by GPU.
        reached: dict[tuple[int, ...], tuple[tuple[int, tuple[int, ...]], ...]] = {self.wanted: ()}
        nothing = (0,) * len(self.wanted)
        for gpu, mask in enumerate(masks):
            for left, way in list(reached.items()):
                for room in self.rooms(mask):
                    if any(room):
                        rest = tuple(max(0, have - give) for have, give in zip(left, room, strict=True))
                        reached.setdefault(rest, (*way, (gpu, room)))
            if nothing in reached:
                break
        if nothing not in reached:
            return None
        left = self.wanted
        found = []
        for gpu, room in reached[nothing]:
            take = tuple(map(min, left, room))
            left = tuple(have - give for have, give in zip(left, take, strict=True))
            places = next(places for places in self._ways(masks[gpu], take) if self._counted(places) == take)
            found += [(gpu, place) for place in places]
        return found

    def _counted(self, places: tuple[int, ...]) -> tuple[int, ...]:
        chosen = [self.geometry.profile_of[place] for place in places]
        return tuple(chosen.count(profile) for profile in self.profiles)

    def _ways(self, mask: int, most: tuple[int, ...], least: int = 0) -> Iterator[tuple[int, ...]]:
        """Yield the sets of placements that fit beside a mask, with no more of each wanted profile than ``most``."""
        yield ()
        for number, profile in enumerate(self.profiles):
            if not most[number]:
                continue
            rest = (*most[:number], most[number] - 1, *most[number + 1 :])
            for place in self.geometry.placements_of[profile]:
                if place >= least and not self.geometry.conflicts[place] & mask:
                    for more in self._ways(mask | 1 << place, rest, place + 1):
                        yield (place, *more)
