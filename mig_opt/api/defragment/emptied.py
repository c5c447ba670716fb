"""A quick plan that empties GPUs or nodes one after the other, those with the least weight first; and quick bounds."""

from __future__ import annotations

from itertools import accumulate

from mig_opt.api.defragment.problem import FleetMasks, Masks, Relocation, alike, relocated
from mig_opt.gpu.geometry import NumberedPlace, members


def emptying_moves(fleet: FleetMasks, most_moves: int | None) -> list[Relocation]:
    """Return migrations that empty GPUs, or nodes where these are told apart; each step can be done.

    Instances go to free places of GPUs that stay in use, where they cost the least fragmentation; nothing else moves.
    """
    nodes = fleet.nodes or tuple(range(len(fleet.masks)))
    units = _units(fleet)
    masks, moves = fleet.masks, list[Relocation]()
    closed: set[int] = set()
    for unit in sorted(units, key=lambda unit: _weight(fleet, units[unit])):
        gpus = units[unit]
        if any(fleet.pinned[gpu] or masks[gpu] != fleet.masks[gpu] for gpu in gpus) or not any(masks[g] for g in gpus):
            continue  # it cannot be emptied, others have come to it, or it is empty
        used = {node for gpu, node in enumerate(nodes) if masks[gpu]} - {unit} - closed
        found = _emptied(fleet, masks, gpus, [gpu for gpu, node in enumerate(nodes) if node in used])
        if found is None or (most_moves is not None and len(moves) + len(found) > most_moves):
            continue
        moves += found
        closed.add(unit)
        masks = relocated(masks, found)
    return moves


def least_used(fleet: FleetMasks, most_moves: int | None) -> int:
    """Return a lower bound on the GPUs or nodes that are used after a number of migrations.

    Every instance of a GPU or node has to leave it, so the migrations limit those that can be emptied. All instances
    need their slices.
    """
    units = _units(fleet).values()
    leaving = sorted(
        sum(fleet.masks[gpu].bit_count() for gpu in gpus)
        for gpus in units
        if any(fleet.masks[gpu] for gpu in gpus) and not any(fleet.pinned[gpu] for gpu in gpus)
    )
    emptied = sum(most_moves is None or total <= most_moves for total in accumulate(leaving))
    gpu = fleet.geometry.gpu
    held = list(zip(fleet.geometry.profiles, fleet.totals, strict=True))
    compute = sum(profile.compute_slices * number for profile, number in held)
    memory = sum(profile.memory_slices * number for profile, number in held)
    needed = max(-(-compute // gpu.compute_slices), -(-memory // gpu.memory_slices))
    roomy = accumulate(sorted(map(len, units), reverse=True))
    return max(fleet.used(fleet.masks) - emptied, sum(total < needed for total in roomy) + (needed > 0))


def least_weight(fleet: FleetMasks, used: int) -> int:
    """Return a lower bound on the weight of migrations after which ``used`` GPUs or nodes are used."""
    weights = sorted(_weight(fleet, gpus) for gpus in _units(fleet).values() if any(fleet.masks[gpu] for gpu in gpus))
    return sum(weights[: max(0, len(weights) - used)])


def _units(fleet: FleetMasks) -> dict[int, list[int]]:
    return alike(fleet.nodes or range(len(fleet.masks)))


def _weight(fleet: FleetMasks, gpus: list[int]) -> int:
    return sum(fleet.weights.get((gpu, place), 1) for gpu in gpus for place in members(fleet.masks[gpu]))


def _emptied(fleet: FleetMasks, masks: Masks, gpus: list[int], targets: list[int]) -> list[Relocation] | None:
    """Return migrations that empty some GPUs; None if there is no room for all of their instances."""
    geometry, now = fleet.geometry, dict(enumerate(masks))
    sources: list[NumberedPlace] = [(gpu, place) for gpu in gpus for place in members(masks[gpu])]
    found = []
    for source in sorted(sources, key=lambda source: -geometry.placements[source[1]].profile.memory_slices):
        options = (
            (geometry.usage(now[gpu] | 1 << place).cost - geometry.usage(now[gpu]).cost, gpu, place)
            for gpu in targets
            for place in geometry.usage(now[gpu]).available[geometry.profile_of[source[1]]]
        )
        if (best := min(options, default=None)) is None:
            return None
        _, gpu, place = best
        now[gpu] |= 1 << place
        found.append(Relocation(source, (gpu, place)))
    return found
