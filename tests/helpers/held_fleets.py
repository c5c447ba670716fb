"""Fleets with instances: as a test writes them down, and at random."""

import random
from collections.abc import Iterable

from migration_search import state_of

from mig_opt import FleetState, HeldInstance, get_gpu

A100 = get_gpu("A100")


def fleet(*gpus: Iterable[str], model: str = "A100") -> FleetState:
    """Instances such as ``1g.5gb@2`` GPU by GPU; a ``*`` at the end pins one."""
    held = []
    for gpu, instances in enumerate(gpus):
        for text in instances:
            profile, start = text.rstrip("*").split("@")
            held.append(HeldInstance(gpu, profile, int(start), text, text.endswith("*")))
    return FleetState(get_gpu(model), len(gpus), tuple(held))


def random_fleet(gpus: int, load: float, seed: int) -> FleetState:
    """A fleet that jobs of the paper's four sizes have come to, at random."""
    draw = random.Random(seed)
    looks: list[set[tuple[str, int]]] = [set() for _ in range(gpus)]
    used = 0
    for _ in range(200 * gpus):
        profile = A100.profile(draw.choice(["1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb"]))
        gpu, start = draw.randrange(gpus), draw.choice(profile.starts)
        placement = A100.placement(profile.name, start)
        if used < load * 7 * gpus and not any(placement.conflicts(A100.placement(*other)) for other in looks[gpu]):
            looks[gpu].add((profile.name, start))
            used += profile.compute_slices
    return state_of(A100, tuple(frozenset(look) for look in looks))
