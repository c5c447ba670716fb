"""GPUs and nodes that ``defragment`` frees on random fleets of 200 A100 on 25 nodes in 10 s.

Each GPU has a random layout, of which each instance is there with a probability (the load); the instances belong to 40
owners, of which one instance at a time may migrate. Run it with: python -m bench.fleet.freeing
"""

import itertools
import random
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Literal

from bench.report import Page, parser_of, start, timed
from mig_opt import FleetState, HeldInstance, defragment, get_gpu

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


def measured() -> Iterator[list[object]]:
    """Defragment fleets of each load and seed, for each goal and limit of migrations."""
    kinds: tuple[Literal["gpus", "nodes"], ...] = ("gpus", "nodes")
    for load, free, most, seed in itertools.product((0.3, 0.6, 0.9), kinds, (10, 30, None), range(SEEDS)):
        state = fleet(seed, load)
        settings: dict[str, Any] = {"most_migrations": most, "per_owner": 1, "time_limit": SECONDS}
        found, taken = timed(partial(defragment, state, free=free, **settings), time.perf_counter)
        before, after = len(found.free_before), len(found.free)
        cells: list[object] = [f"{load:.0%}", free, "any" if most is None else most, seed, before, after]
        yield [*cells, found.most_free - after, found.objective, len(found.rounds), found.status, f"{taken:.1f}"]


@start
def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and write the table."""
    options = parser_of(__doc__, "freeing.md").parse_args(arguments)
    title = "GPUs and nodes that are freed"
    page = Page("freeing", title, "mig-opt", "highspy", "pulp", "ortools", folder=options.results)
    page.add(f"""By `python -m bench.fleet.freeing`, with a limit of {SECONDS:g} s. *Below bound* is how many more could
        be free at most.""")
    head = ["load", "free", "most migrations", "seed", "before", "after", "below bound", "migrations", "rounds"]
    page.table([*head, "status", "s"], measured(), range(11))
    page.save()
