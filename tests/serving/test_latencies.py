"""Several latencies: points that have them, services that limit them, deployments that keep all limits."""

import dataclasses
import itertools
from random import Random

from documents import refused

from mig_opt import Point, ProfileTable, Status, deploy, get_gpu, validate
from mig_opt.method.registry import DEPLOY_METHODS
from mig_opt.serving.demand import NEEDED, Demand, GpuPool, Service, SloRule
from mig_opt.serving.profile_table import front

A30 = get_gpu("A30")
MOST_GPUS = 3


def chat(points: tuple[Point, ...], **slos: float) -> Demand:
    service = Service("chat", **{"slo": 8.0, "rate": 5.0, **slos})
    return Demand((service,), (ProfileTable("chat", A30.name, points, continuous=True),), (GpuPool(A30),))


POINTS = (
    Point(2, 8, 1, 2.0, 2.0, ttft=0.1, itl=0.010),
    Point(2, 32, 1, 4.0, 3.0, ttft=0.5, itl=0.020),
    Point(2, 64, 1, 5.0, 3.5, ttft=0.3, itl=0.040),
)


def test_points_of_a_front_are_not_dominated_in_any_latency():
    worse = Point(2, 16, 1, 1.9, 2.5, ttft=0.1, itl=0.010)
    unmeasured = Point(2, 4, 1, 1.8, 1.5)
    table = ProfileTable("chat", A30.name, (*POINTS, worse, unmeasured))
    assert front(table, 2) == (unmeasured, *POINTS)


def test_an_unmeasured_latency_keeps_no_slo():
    demand = chat((*POINTS, Point(2, 128, 1, 9.0, 1.0)), slo_itl=0.05)
    assert [option.point.batch for option in demand.options[0]] == [64]
    late = dataclasses.replace(demand.services[0], slo_itl=0.05)
    assert list(SloRule().too_slow(Point(2, 128, 1, 9.0, 1.0), late)) == [("itl", None, 0.05)]
    assert SloRule(whole_ms=True).allows(1e300, 1e308)


def test_an_slo_on_a_latency_that_no_point_has_is_refused():
    points = (Point(2, 8, 1, 2.0, 2.0, ttft=0.1),)
    assert refused(chat, points, slo_ttft=1.0, slo_itl=0.1) == ["services[0].slo_itl"]


def test_the_limits_that_no_point_keeps_at_once_are_named():
    result = deploy(chat(POINTS, slo_ttft=0.2, slo_itl=0.009))
    assert result.status is Status.INFEASIBLE
    assert result.reason == (
        "service 'chat' needs at once latency of at most 4 s (the best is 2 s, on 2g.12gb), ttft of at most 0.1 s "
        "(the best is 0.1 s, on 2g.12gb), itl of at most 0.009 s (the best is 0.01 s, on 2g.12gb); no instance has all "
        "of them"
    )


def test_the_validator_names_each_latency_that_is_too_long():
    fast = chat(POINTS)
    deployment = deploy(fast).deployment
    strict = chat(POINTS, slo_ttft=0.4, slo_itl=0.03)
    found = [violation.message for violation in validate(strict, deployment).violations]
    assert found == [
        "'chat' takes 0.3 s of ttft with 64 at once; within its SLO of 0.4 s ttft must be at most 0.2 s",
        "'chat' takes 0.04 s of itl with 64 at once; within its SLO of 0.03 s itl must be at most 0.03 s",
    ]


def random_demand(random: Random) -> Demand:
    services, tables = [], []
    for name in ("chat", "code")[: random.choice([1, 2])]:
        points = [
            Point(
                size,
                batch,
                1,
                round(size**0.9 * batch**0.5 * random.uniform(0.5, 1.5), 2),
                round(random.uniform(1, 3), 2),
                ttft=random.choice([None, round(random.uniform(0.05, 0.4), 2)]),
                itl=round(random.uniform(0.01, 0.04), 3),
            )
            for size in A30.sizes
            for batch in (1, 4, 16)
            if random.random() < 0.8
        ] or [Point(4, 1, 1, 3.0, 1.5, ttft=0.2, itl=0.02)]
        slos = {"slo": random.choice([4.0, 5.0, 6.0]), "slo_itl": random.choice([None, 0.02, 0.03])}
        if any(point.ttft is not None for point in points):
            slos["slo_ttft"] = random.choice([None, 0.5, 0.7])
        services.append(Service(name, rate=round(random.uniform(1, 12), 2), **slos))
        tables.append(ProfileTable(name, A30.name, tuple(points), quantile=0.99, continuous=True))
    return Demand(tuple(services), tuple(tables), (GpuPool(A30),))


def within(point: Point, service: Service) -> bool:
    """Return whether a point keeps the SLOs, written out: a half of them, and the whole of that between tokens."""
    if point.latency > service.slo / 2:
        return False
    if service.slo_ttft is not None and (point.ttft is None or point.ttft > service.slo_ttft / 2):
        return False
    return service.slo_itl is None or (point.itl is not None and point.itl <= service.slo_itl)


def fewest_gpus(demand: Demand) -> int | None:
    """Return the fewest GPUs, of a few at most, by trying all ways to share out their instances."""
    held = [
        {
            size: max((p.throughput for p in table.points if p.size == size and within(p, service)), default=0.0)
            for size in A30.sizes
        }
        for service, table in zip(demand.services, demand.tables, strict=True)
    ]
    sizes = {
        tuple(sorted(placement.profile.compute_slices for placement in partition))
        for partition in A30.maximal_partitions()
    }
    for gpus in range(1, MOST_GPUS + 1):
        for partitions in itertools.combinations_with_replacement(sorted(sizes), gpus):
            count = {size: sum(partition.count(size) for partition in partitions) for size in A30.sizes}
            for firsts in itertools.product(*(range(count[size] + 1) for size in A30.sizes)):
                own = dict(zip(A30.sizes, firsts, strict=True))
                shares = [own, {size: count[size] - own[size] for size in A30.sizes}]
                if all(
                    sum(each[size] * share[size] for size in A30.sizes) >= service.rate * NEEDED
                    for service, each, share in zip(demand.services, held, shares, strict=False)
                ):
                    return gpus
    return None


def test_exact_has_as_few_gpus_as_all_ways_together_and_no_heuristic_fewer():
    random = Random(39)
    heuristics = [method.name for method in DEPLOY_METHODS.entries if method.kind == "heuristic"]
    proven = limited = refused = 0
    for number in range(200):
        demand = random_demand(random)
        fewest = fewest_gpus(demand)
        result = deploy(demand)
        if result.status is Status.INFEASIBLE:
            assert fewest is None
            refused += 1
            continue
        assert result.status is Status.OPTIMAL
        assert result.gpus == fewest if fewest is not None else result.gpus > MOST_GPUS
        proven += fewest is not None
        single = demand.replace(
            services=tuple(dataclasses.replace(one, slo_ttft=None, slo_itl=None) for one in demand.services)
        )
        limited += [o.point for o in single.options[0]] != [o.point for o in demand.options[0]]
        other = deploy(demand, heuristics[number % len(heuristics)])
        if other.deployment is not None:
            assert other.gpus >= result.gpus  # and the validator has seen that it keeps every SLO
    # The demands are such that the further SLOs matter, and most are small enough for all ways to be tried.
    assert proven + refused > 190
    assert limited > 50
