"""Hypothesis strategies for deployments that run on fleets of GPUs, shared by the tests."""

import math
from collections.abc import Sequence
from functools import cache

from hypothesis import strategies as st

from mig_opt import Demand, Deployment, Placement, Segment, get_gpu


@cache
def states(kind: str) -> tuple[tuple[Placement, ...], ...]:
    """Every set of plain instances that a GPU may have, few large ones first."""
    return tuple(sorted(get_gpu(kind).placed_states("double-memory"), key=lambda state: (len(state), str(state))))


@st.composite
def deployments(
    draw: st.DrawFn, gpus: Sequence[str], services: Sequence[str] = ("a", "b", "c"), ways: int = 2
) -> Deployment:
    """Any legal deployment on GPUs of these kinds; some may be idle, and throughput follows from size and way."""
    segments = []
    for gpu, kind in enumerate(gpus):
        for place in draw(st.sampled_from(states(kind))):
            way = draw(st.integers(1, ways))
            throughput = 10.0 * place.profile.compute_slices + way
            service = draw(st.sampled_from(services))
            segments.append(Segment(service, gpu, place.profile.name, place.start, way, 1, throughput, 0.1 * way))
    return Deployment(tuple(gpus), tuple(draw(st.permutations(segments))))


def first_fit(demand: Demand) -> Deployment:
    """A deployment for a demand with one pool: the size with most throughput per memory slice, large ones first."""
    (pool,) = demand.pools
    chosen = []
    for service, options in zip(demand.services, demand.options, strict=True):
        best = max(options, key=lambda option: option.point.throughput / option.profile.memory_slices)
        count = max(math.ceil(service.rate / best.point.throughput), service.min_replicas)
        chosen += [(service.name, best)] * count
    fleet: list[list[Placement]] = []
    segments = []
    for name, option in sorted(chosen, key=lambda entry: -entry[1].profile.memory_slices):
        places = [Placement(option.profile, start) for start in option.profile.starts]
        found = (
            (gpu, place)
            for gpu, there in enumerate([*fleet, []])
            for place in places
            if not any(place.conflicts(other) for other in there)
        )
        gpu, place = next(found)
        fleet += [[]] if gpu == len(fleet) else []
        fleet[gpu].append(place)
        figures = (getattr(option.point, key) for key in ("batch", "processes", "throughput", "latency"))
        segments.append(Segment(name, gpu, place.profile.name, place.start, *figures))
    return Deployment((pool.gpu.name,) * len(fleet), tuple(segments))
