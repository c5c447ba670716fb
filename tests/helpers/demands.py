"""Demands for tests of the serving problem: by hand, drawn at random, and what a deployment has to be for them."""

import itertools
import math
from collections.abc import Mapping

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
        **more,  # type: ignore[arg-type]
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


@st.composite
def tables(draw: st.DrawFn, model: str, gpu: GpuModel) -> ProfileTable:
    """Throughput that grows with size more or less, latency anything, sizes missing now and then."""
    sizes = draw(st.lists(st.sampled_from(gpu.sizes), min_size=1, unique=True))
    points = []
    for size in sizes:
        for processes in range(1, draw(st.integers(1, 2)) + 1):
            throughput = draw(st.integers(1, 30)) * size * draw(st.sampled_from([0.7, 1.0, 1.3]))
            points.append(Point(size, 4, processes, throughput, draw(st.sampled_from([0.01, 0.04, 0.06]))))
    memory = draw(st.none() | st.sampled_from([8.0, 11.0, 20.0]))
    return ProfileTable(model, gpu.name, tuple(points), memory)


@st.composite
def demands(
    draw: st.DrawFn,
    *,
    max_services: int = 4,
    gpus: tuple[GpuModel, ...] = (A100, A30, RTX),
    max_pools: int = 2,
    limited: bool = False,
) -> Demand:
    """Demands with a few services; each can be served by some instance of some pool."""
    kinds = draw(st.lists(st.sampled_from(gpus), min_size=1, max_size=max_pools, unique_by=lambda gpu: gpu.name))
    names = [f"s{index}" for index in range(draw(st.integers(1, max_services)))]
    drawn = tuple(draw(tables(f"m{index % 3}", gpu)) for index in range(min(3, len(names))) for gpu in kinds)
    services = tuple(
        Service(name, 0.1, draw(st.integers(1, 200)) / 2, f"m{index % 3}", draw(st.sampled_from([1, 1, 1, 2, 3])))
        for index, name in enumerate(names)
    )
    count = st.none() | st.integers(1, 4) if limited else st.none()
    pools = tuple(GpuPool(gpu, draw(count)) for gpu in kinds)
    demand = Demand(services, drawn, pools, SloRule(draw(st.sampled_from([0.3, 0.5, 0.7]))))
    bad = set(demand.unservable())
    kept = tuple(service for index, service in enumerate(services) if index not in bad)
    if not kept:
        table = ProfileTable("m0", kinds[0].name, (Point(kinds[0].sizes[0], 1, 1, 5.0, 0.01),))
        return Demand((Service("s0", 0.1, 12.0, "m0"),), (table,), (GpuPool(kinds[0]),))
    return demand.replace(services=kept)


@st.composite
def featured_demands(draw: st.DrawFn, *, limited: bool = True) -> Demand:
    """A demand with every feature that demands have; rates are up to a few GPUs' worth.

    Parameters
    ----------
    limited : bool
        Whether there may be too few GPUs, and services that nothing can serve.
    """
    kinds = draw(
        st.lists(
            st.sampled_from(["A100-80GB", "A30", "H100", "RTX-PRO-6000"]).map(get_gpu),
            min_size=1,
            max_size=3,
            unique=True,
        )
    )
    models = ["m0", "m1", "m2"][: draw(st.integers(1, 3))]
    figures = st.integers(1, 400).map(lambda n: n / 4)
    tables = []
    for kind, model in itertools.product(kinds, models):
        sizes = draw(st.lists(st.sampled_from(kind.sizes), min_size=1, unique=True))
        points = []
        for size in sizes:
            for batch, processes in draw(st.sampled_from([((1, 1),), ((8, 2),), ((1, 1), (1, 2)), ((4, 1), (8, 3))])):
                latency = draw(st.sampled_from([0.01, 0.02, 0.05])) if limited else 0.01
                points.append(Point(size, batch, processes, draw(figures) * size * processes, latency))
        memory = draw(st.sampled_from([None, None, kind.profiles_of("base")[-1].memory_gb + 1]))
        if max(sizes) == 1 and kind.profiles_of("base") == kind.profiles_of("double-memory"):
            memory = None  # nothing of that size has as much
        tables.append(ProfileTable(model, kind.name, tuple(points), memory))
    services = tuple(
        Service(
            f"s{index}",
            draw(st.sampled_from([0.1, 0.05])) if limited else 0.1,
            draw(st.one_of(figures, figures.map(lambda rate: rate * 10))),
            draw(st.sampled_from(models)),
            draw(st.sampled_from([1, 1, 1, 2, 3])),
        )
        for index in range(draw(st.integers(1, 6)))
    )
    counts = st.one_of(st.none(), st.integers(1, 4)) if limited else st.none()
    processes = draw(st.sampled_from([None, None, 1, 2])) if limited else None
    pools = tuple(GpuPool(kind, draw(counts)) for kind in kinds)
    return Demand(services, tuple(tables), pools, SloRule(), processes)
