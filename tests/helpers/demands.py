"""Demands for tests of the serving problem: by hand, drawn at random, and what a deployment has to be for them."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from mig_opt import Demand, Deployment, GpuModel, GpuPool, Point, ProfileTable, Service, SloRule, get_gpu
from mig_opt.method.control import Control
from mig_opt.method.options import RunOptions
from mig_opt.serving.demand import Option

A100 = get_gpu("A100-80GB")
A30 = get_gpu("A30")
H100 = get_gpu("H100-80GB")
RTX = get_gpu("RTX-PRO-6000-96GB")


def flat_table(
    model: str, gpu: GpuModel, throughput: Mapping[int, float], memory_gb: float | None = None, batch: int = 1
) -> ProfileTable:
    """A table with one point for each size, of latency 10 ms."""
    points = tuple(Point(size, batch, 1, rate, 0.01) for size, rate in throughput.items())
    return ProfileTable(model, gpu.name, points, memory_gb)


def demand_of(
    services: dict[str, float], throughput: dict[str, dict[int, float]], gpu: GpuModel = A100, **more: object
) -> Demand:
    """A demand of services with rates, each with its own model whose throughput by size is given."""
    return Demand(
        tuple(Service(name, 1.0, rate) for name, rate in services.items()),
        tuple(flat_table(name, gpu, throughput[name]) for name in services),
        (GpuPool(gpu),),
        **more,
    )


def options(throughputs: Mapping[int, float], gpu: GpuModel = A100) -> tuple[Option, ...]:
    """Options that a demand makes of such a table."""
    return Demand((Service("a", 1.0, 1.0),), (flat_table("a", gpu, throughputs, batch=8),), (GpuPool(gpu),)).options[0]


def one_model(
    rates: Mapping[str, float],
    throughputs: Mapping[int, float],
    gpu: GpuModel = A100,
    *,
    count: int | None = None,
    replicas: int = 1,
    memory: float | None = None,
) -> Demand:
    """Services of these rates that run the same model, on GPUs of one kind."""
    services = tuple(Service(name, 1.0, rate, "m", replicas) for name, rate in rates.items())
    return Demand(services, (flat_table("m", gpu, throughputs, memory, 8),), (GpuPool(gpu, count),))


def with_room(rate: float, slo: float = 0.2, count: int | None = None) -> Demand:
    """A service on A30s whose batches of 8 take 80 ms on a slice, less on more of them, so that some SLOs need room."""
    points = tuple(Point(size, 8, 1, 100.0 * size, 0.08 / size) for size in (1, 2, 4))
    table = ProfileTable("m", A30.name, points)
    return Demand((Service("a", slo, rate, "m"),), (table,), (GpuPool(A30, count),))


def control_for(demand: Demand, options: RunOptions | None = None) -> Control[Deployment]:
    """A control that judges deployments of a demand, for methods that are called directly."""
    return Control(options, judge=lambda deployment: deployment.goals(demand))


def places(deployment: Deployment | None) -> list[list[str]]:
    """The segments of each GPU by start slice, such as ``a:3@4``."""
    assert deployment is not None
    return [
        [f"{s.service}:{deployment.placement(s).profile.compute_slices}@{s.start}" for s in deployment.on(gpu)]
        for gpu in range(len(deployment.gpus))
    ]


def assert_serves(demand: Demand, deployment: Deployment) -> None:
    """Every rule of the problem, written down once more."""
    for gpu, name in enumerate(deployment.gpus):
        held = deployment.on(gpu)
        assert held, "a GPU without segments"
        placements = [deployment.placement(segment) for segment in held]
        for one, two in itertools.combinations(placements, 2):
            assert not set(one.footprint) & set(two.footprint), (name, str(one), str(two))
        for placement in placements:
            assert placements.count(placement) == 1
            alike = [other for other in placements if other.profile == placement.profile]
            assert len(alike) <= placement.profile.max_count
    for pool in demand.pools:
        assert pool.count is None or deployment.gpus.count(pool.gpu.name) <= pool.count
    assert set(deployment.gpus) <= {pool.gpu.name for pool in demand.pools}
    assert {segment.service for segment in deployment.segments} == {service.name for service in demand.services}
    tables = {(table.model, table.gpu): table for table in demand.tables}
    for service in demand.services:
        segments = [segment for segment in deployment.segments if segment.service == service.name]
        assert len(segments) >= service.min_replicas
        assert math.fsum(segment.throughput for segment in segments) >= service.rate * (1 - 1e-9)
        for segment in segments:
            profile = deployment.placement(segment).profile
            measured = tables[service.model, deployment.gpus[segment.gpu]]
            assert measured.memory_gb is None or profile.memory_gb >= measured.memory_gb
            figures = segment.batch, segment.processes, segment.throughput, segment.latency
            assert Point(profile.compute_slices, *figures) in measured.points
            assert demand.rule.allows(segment.latency, service.slo)
            assert demand.max_processes is None or segment.processes <= demand.max_processes


figures = st.integers(1, 400).map(lambda n: n / 4)


@st.composite
def tables(draw: st.DrawFn, model: str, gpu: GpuModel, latencies: Sequence[float]) -> ProfileTable:
    """Any throughput of any sizes, with one or two batch sizes and processes each, and memory that some size has."""
    sizes = draw(st.lists(st.sampled_from(gpu.sizes), min_size=1, unique=True))
    ways = st.sampled_from([((1, 1),), ((8, 2),), ((1, 1), (1, 2)), ((4, 1), (8, 3))])
    points = [
        Point(size, batch, processes, draw(figures) * size * processes, draw(st.sampled_from(latencies)))
        for size in sizes
        for batch, processes in draw(ways)
    ]
    memory = draw(st.sampled_from([None, None, gpu.profiles_of("base")[-1].memory_gb + 1]))
    if max(sizes) == 1 and gpu.profiles_of("base") == gpu.profiles_of("double-memory"):
        memory = None  # nothing of that size has as much
    return ProfileTable(model, gpu.name, tuple(points), memory)


@st.composite
def featured_demands(
    draw: st.DrawFn,
    *,
    limited: bool = True,
    max_services: int = 6,
    gpus: Sequence[GpuModel] = (A100, A30, H100, RTX),
    max_pools: int = 3,
) -> Demand:
    """A demand with every feature that demands have; rates are up to a few GPUs' worth.

    Parameters
    ----------
    limited : bool
        Whether there may be too few GPUs, and services that nothing can serve.
    """
    kinds = draw(st.lists(st.sampled_from(gpus), min_size=1, max_size=max_pools, unique_by=lambda gpu: gpu.name))
    models = ["m0", "m1", "m2"][: draw(st.integers(1, 3))]
    latencies = [0.01, 0.02, 0.05] if limited else [0.01]
    drawn = tuple(draw(tables(model, kind, latencies)) for kind, model in itertools.product(kinds, models))
    services = tuple(
        Service(
            f"s{index}",
            draw(st.sampled_from([0.1, 0.05])) if limited else 0.1,
            draw(st.one_of(figures, figures.map(lambda rate: rate * 10))),
            draw(st.sampled_from(models)),
            draw(st.sampled_from([1, 1, 1, 2, 3])),
        )
        for index in range(draw(st.integers(1, max_services)))
    )
    counts = st.one_of(st.none(), st.integers(1, 4)) if limited else st.none()
    processes = draw(st.sampled_from([None, None, 1, 2])) if limited else None
    return Demand(services, drawn, tuple(GpuPool(kind, draw(counts)) for kind in kinds), SloRule(), processes)


def servable(demand: Demand) -> Demand:
    bad = demand.unservable()
    return demand.replace(services=tuple(one for index, one in enumerate(demand.services) if index not in bad))


def demands(*, limited: bool = False, **more: Any) -> st.SearchStrategy[Demand]:
    """Demands with a few services; each can be served by some instance of some pool."""
    drawn = featured_demands(limited=limited, **{"max_services": 4, "gpus": (A100, A30, RTX), "max_pools": 2, **more})
    return drawn.filter(lambda demand: len(demand.unservable()) < len(demand.services)).map(servable)
