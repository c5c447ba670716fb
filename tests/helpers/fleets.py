"""Hypothesis strategies for deployments that run on fleets of GPUs, shared by the tests."""

from collections.abc import Sequence
from functools import cache

from hypothesis import strategies as st

from mig_opt import Deployment, Placement, Segment, get_gpu


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
