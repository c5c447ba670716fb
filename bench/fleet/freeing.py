"""How many GPUs and nodes ``defragment`` frees on random fleets of 200 A100 on 25 nodes in 10 s.

Each GPU has a random layout, of which each instance is there with a probability (the load); the instances belong to 40
owners, of which one instance at a time may migrate. Run it with: python -m bench.fleet.freeing
"""

from __future__ import annotations

import random
import time
from typing import Literal

from bench import report
from mig_opt import FleetState, HeldInstance, defragment, get_gpu
from mig_opt.cli.errors import say

A100 = get_gpu("A100")
GPUS, PER_NODE, OWNERS, SEEDS, SECONDS = 200, 8, 40, 3, 10.0


def fleet(seed: int, load: float) -> FleetState:
    """Return a random fleet."""
    rng = random.Random(seed)
    layouts = list(A100.placed_states())
    held = [
        HeldInstance(gpu, p.profile.name, p.start, f"pod-{gpu}-{p.start}", owner=f"app-{rng.randrange(OWNERS)}")
        for gpu in range(GPUS)
        for p in rng.choice(layouts)
        if rng.random() < load
    ]
    return FleetState(A100, GPUS, tuple(held), nodes=tuple(f"node-{gpu // PER_NODE}" for gpu in range(GPUS)))


def main() -> None:
    """Measure and write the table."""
    rows = []
    kinds: tuple[Literal["gpus", "nodes"], ...] = ("gpus", "nodes")
    for load in (0.3, 0.6, 0.9):
        for free in kinds:
            for most in (10, 30, None):
                for seed in range(SEEDS):
                    state = fleet(seed, load)
                    began = time.perf_counter()
                    found = defragment(state, free=free, most_migrations=most, per_owner=1, time_limit=SECONDS)
                    taken = time.perf_counter() - began
                    before, after = len(found.free_before), len(found.free)
                    cells: list[object] = [f"{load:.0%}", free, "any" if most is None else most, seed, before, after]
                    cells += [found.most_free - after, found.objective, len(found.rounds), found.status, f"{taken:.1f}"]
                    rows.append(f"| {' | '.join(map(str, cells))} |")
                    say(rows[-1])
    head = (
        "# GPUs and nodes that are freed\n\n"
        f"{report.describe('mig-opt', 'highspy', 'pulp', 'ortools')}\n\n"
        f"By `python -m bench.fleet.freeing`, with a limit of {SECONDS:g} s. *Below bound* is how many more could be "
        "free at most.\n\n"
        "| load | free | most migrations | seed | before | after | below bound | migrations | rounds | status | s |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|\n"
    )
    report.save("freeing", head + "\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
