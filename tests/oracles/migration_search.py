"""Migrations by brute force: every state that can be reached, with plain sets of places in place of masks."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache

from mig_opt import FleetState, GpuModel, HeldInstance
from mig_opt.validation import validate_migrations

Place = tuple[str, int]
Look = frozenset[Place]
Looks = tuple[Look, ...]


def looks_of(state: FleetState) -> Looks:
    return tuple(frozenset((held.profile, held.start) for held in state.on(gpu)) for gpu in range(state.gpus))


def state_of(gpu: GpuModel, looks: Looks, pinned: frozenset[tuple[int, Place]] = frozenset()) -> FleetState:
    held = [
        HeldInstance(index, profile, start, f"{profile}-{index}-{start}", (index, (profile, start)) in pinned)
        for index, look in enumerate(looks)
        for profile, start in sorted(look)
    ]
    return FleetState(gpu, len(looks), tuple(held))


@cache
def fits(gpu: GpuModel, look: Look, profile: str) -> tuple[int, ...]:
    """The starts at which one more instance can exist."""
    there = [gpu.placement(*place) for place in look]
    kind = gpu.profile(profile)
    if sum(other.profile == kind for other in there) >= kind.max_count:
        return ()
    return tuple(s for s in kind.starts if not any(gpu.placement(profile, s).conflicts(other) for other in there))


@cache
def cost(gpu: GpuModel, look: Look) -> float:
    return validate_migrations(state_of(gpu, (look,)), ()).fragmentation


def fragmentation(gpu: GpuModel, looks: Looks) -> float:
    return sum(cost(gpu, look) for look in looks) / len(looks)


def has_room(gpus: Sequence[GpuModel], looks: Sequence[Look], wanted: tuple[str, ...]) -> bool:
    return not wanted or any(
        has_room(gpus, [*looks[:index], look | {(wanted[0], start)}, *looks[index + 1 :]], wanted[1:])
        for index, (gpu, look) in enumerate(zip(gpus, looks, strict=True))
        if any(profile.name == wanted[0] for profile in gpu.profiles)
        for start in fits(gpu, look, wanted[0])
    )


def steps(gpu: GpuModel, looks: Looks, pinned: frozenset[tuple[int, Place]], *, within: bool) -> Iterator[Looks]:
    for index, look in enumerate(looks):
        for place in look:
            for other in range(len(looks)) if (index, place) not in pinned else ():
                for start in fits(gpu, looks[other], place[0]) if other == index or not within else ():
                    after = list(looks)
                    after[index] = after[index] - {place}
                    after[other] = after[other] | {(place[0], start)}
                    yield tuple(after)


def distances(
    gpu: GpuModel,
    looks: Looks,
    pinned: frozenset[tuple[int, Place]] = frozenset(),
    *,
    within: bool = False,
    most: float = math.inf,
) -> dict[Looks, int]:
    """The fewest migrations to each state that can be reached, with ``most`` of them."""
    found = {looks: 0}
    frontier = [looks]
    while frontier and found[frontier[0]] < most:
        following = []
        for reached in frontier:
            for after in steps(gpu, reached, pinned, within=within):
                if after not in found:
                    found[after] = found[reached] + 1
                    following.append(after)
        frontier = following
    return found


def fewest(reached: dict[Looks, int], good: Callable[[Looks], bool]) -> int | None:
    return min((moves for looks, moves in reached.items() if good(looks)), default=None)
