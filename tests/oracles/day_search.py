"""The least cost of a tiny day by complete enumeration: every deployment on every step, every pair of steps.

Written from the rules alone: it shares no model with the package, only the geometry of the GPU and the profile tables.
"""

import itertools

from mig_opt import Day, GpuModel

State = frozenset[tuple[int, str, int, str]]
"""GPU, profile, start slice and service of each segment."""


def least_cost(day: Day, gpus: int) -> float | None:
    """The least cost on some GPUs of the only pool, interruptions not counted; None if a step cannot be served."""
    (pool,) = day.demand.pools
    one = list(_fillings(pool.gpu, [service.name for service in day.demand.services]))
    everything = [
        frozenset((gpu, *segment) for gpu, filling in enumerate(fillings) for segment in filling)
        for fillings in itertools.product(one, repeat=gpus)
    ]
    costs: dict[State, float] = {}
    for step in range(day.rates.steps):
        hours = (day.rates.times[step + 1] - day.rates.times[step]) / 3600
        now: dict[State, float] = {}
        for state in everything:
            if _serves(day, step, state):
                own = hours * len({gpu for gpu, *_ in state})
                before = min(
                    (cost + day.creation_price * len(state - old) for old, cost in costs.items()),
                    default=None if step else 0.0,
                )
                if before is not None:
                    now[state] = before + own
        costs = now
    return min(costs.values(), default=None)


def _fillings(gpu: GpuModel, services: list[str]) -> list[frozenset[tuple[str, int, str]]]:
    """Every set of segments of one GPU."""
    found: set[frozenset[tuple[str, int, str]]] = {frozenset()}
    places = gpu.placements("base")
    for count in range(1, 5):
        for chosen in itertools.combinations(places, count):
            apart = all(not set(a.footprint) & set(b.footprint) for a, b in itertools.combinations(chosen, 2))
            if apart:
                for names in itertools.product(services, repeat=count):
                    pairs = zip(chosen, names, strict=True)
                    found.add(frozenset((place.profile.name, place.start, name) for place, name in pairs))
    return list(found)


def _serves(day: Day, step: int, state: State) -> bool:
    """True if every service gets its rate, and one that nobody asks for has no segment."""
    (pool,) = day.demand.pools
    for service in day.demand.services:
        rate = day.rates.rates[service.name][step] * (1 + day.margin)
        own = [profile for _, profile, _, name in state if name == service.name]
        if rate == 0:
            if own:
                return False
            continue
        table = next(table for table in day.demand.tables if table.model == service.model)
        best = {
            size: max(
                point.throughput
                for point in table.points
                if point.size == size and day.demand.rule.allows(point.latency, service.slo)
            )
            for size in {point.size for point in table.points}
        }
        sizes = [pool.gpu.profile(profile).compute_slices for profile in own]
        if any(size not in best for size in sizes) or len(own) < service.min_replicas:
            return False
        if sum(best[size] for size in sizes) < rate * (1 - 1e-9):
            return False
    return True
