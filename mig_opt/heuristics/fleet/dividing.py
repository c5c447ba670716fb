"""How a GPU on which nothing runs is best divided for the jobs that wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mig_opt.gpu.geometry import Geometry
from mig_opt.gpu.model import GpuModel, Profile

_Found = tuple[int, int, tuple[int, ...]]


def smallest_instances(gpu: GpuModel) -> tuple[tuple[Profile, int], ...]:
    """Return profile and start of as many of the smallest instances as a GPU can have.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> [f"{profile.name}@{start}" for profile, start in smallest_instances(get_gpu("A30"))]
    ['1g.6gb@0', '1g.6gb@1', '1g.6gb@2', '1g.6gb@3']
    """
    least = gpu.profiles_of("base")[-1]
    found: list[tuple[Profile, int]] = []
    free = 0
    for start in sorted(least.starts):
        if start >= free and len(found) < least.max_count:
            found.append((least, start))
            free = start + least.memory_slices
    return tuple(found)


class Divider:
    """Divides GPUs; what has been asked before is known.

    Parameters
    ----------
    geometry : Geometry
        The tables of the GPU.
    """

    def __init__(self, geometry: Geometry) -> None:
        self._geometry = geometry
        self.most = tuple(self._most(profile) for profile in range(len(geometry.profiles)))
        """How many instances of each profile a GPU can have."""
        fillers = smallest_instances(geometry.gpu)
        self._fillers = tuple(geometry.index(profile.name, start) for profile, start in fillers)
        self._known: dict[tuple[int, tuple[tuple[int, int], ...], int | None], tuple[int, ...]] = {}

    def divide(self, idle: int, waiting: Mapping[int, int], first: int | None = None) -> tuple[int, ...]:
        """Return the instances to create on a GPU, so that the most waiting jobs find one of their profile.

        Among equals, the instances that are there are kept. What is left is filled with the smallest instances, so
        that nothing lies fallow.

        Parameters
        ----------
        idle : int
            Mask of the instances that are there.
        waiting : mapping of int to int
            How many jobs wait for each profile.
        first : int, optional
            A profile of which there has to be an instance, whatever it costs the others.

        Returns
        -------
        tuple of int
            Placements; those that are in the way have to be destroyed.
        """
        wanted = tuple((profile, min(count, self.most[profile])) for profile, count in sorted(waiting.items()))
        key = idle, wanted, first
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._divide(idle, dict(wanted), first)
        return found

    def _divide(self, idle: int, wanted: Mapping[int, int], first: int | None) -> tuple[int, ...]:
        conflicts = self._geometry.conflicts
        chosen = self._serve_most(idle, wanted, first)
        new = [place for place in chosen if not idle >> place & 1]
        there = self._geometry.mask(chosen) | idle
        for place in new:
            there &= ~(conflicts[place] ^ 1 << place)
        for place in self._fillers:
            if not conflicts[place] & there:
                new.append(place)
                there |= 1 << place
        return tuple(new)

    def _serve_most(self, idle: int, wanted: Mapping[int, int], first: int | None) -> tuple[int, ...]:
        """Return the placements on which the most jobs run, by dynamic programming from the last slice to the first."""
        profiles = tuple(wanted)
        starts = self._starts_of(profiles)
        # The first instance of the one that has to be there is worth more than all others.
        urgent = len(starts) + 1
        known: dict[tuple[int, tuple[int, ...]], _Found] = {}

        def best(start: int, left: tuple[int, ...]) -> _Found:
            """Return jobs served, instances kept and placements from a slice on, when so many jobs of each wait."""
            if start == len(starts) or not any(left):
                return 0, 0, ()
            found = known.get((start, left))
            if found is None:
                found = best(start + 1, left)
                for number, place, stop in starts[start]:
                    if left[number]:
                        jobs, kept, rest = best(stop, (*left[:number], left[number] - 1, *left[number + 1 :]))
                        profile = profiles[number]
                        jobs += urgent if profile == first and left[number] == wanted[profile] else 1
                        found = max(found, (jobs, kept + (idle >> place & 1), (place, *rest)), key=_worth)
                known[start, left] = found
            return found

        return best(0, tuple(wanted.values()))[2]

    def _starts_of(self, profiles: Sequence[int]) -> list[list[tuple[int, int, int]]]:
        """Return for each memory slice what can start there: number of the profile, placement, slice after it."""
        starts: list[list[tuple[int, int, int]]] = [[] for _ in range(self._geometry.gpu.memory_slices)]
        for number, profile in enumerate(profiles):
            for place in self._geometry.placements_of[profile]:
                placement = self._geometry.placements[place]
                starts[placement.start].append((number, place, placement.footprint.stop))
        return starts

    def _most(self, profile: int) -> int:
        """Intervals of one length: as many as possible fit if each is as far left as it can be."""
        taken = count = 0
        for place in self._geometry.placements_of[profile]:
            if not self._geometry.conflicts[place] & taken and count < self._geometry.profiles[profile].max_count:
                taken |= 1 << place
                count += 1
        return count


def _worth(found: _Found) -> tuple[int, int]:
    return found[:2]
