"""Promises to the requests of demands drawn at random: a plan that keeps them, or a reason."""

import random

import pytest
from demands import A30, A100, H100, assert_serves

from mig_opt import Arrivals, Point, ProfileTable, Promise, Status, deploy_with_promise
from mig_opt.api.deploy.unkept import why_unkept
from mig_opt.serving.demand import Demand, GpuPool, Service, SloRule
from mig_opt.validation import validate_deployment

METHODS = ("exact", "exact", "search", "parvagpu", "first-fit")


def drawn(seed: int) -> tuple[Demand, Promise, str]:
    """A demand, a promise of 90 to 99.99 %, and a method; batches may take up to the whole SLO, or longer."""
    rng = random.Random(seed)
    gpu, share = rng.choice([A30, A30, A100, H100]), rng.choice([0.5, 0.7, 1.0, 1.0])
    services, tables = [], []
    for name in "abc"[: rng.choice([1, 1, 1, 2, 3])]:
        slo = 10 ** rng.uniform(-1, 1)
        points = {}
        for size in rng.sample(gpu.sizes, rng.randint(1, len(gpu.sizes))):
            for _ in range(rng.choice([1, 1, 2, 4])):
                batch, processes = rng.choice([1, 2, 4, 8, 8, 16]), rng.choice([1, 1, 2, 3])
                latency = slo * rng.uniform(0.1, 1.1 * share)
                # Throughputs and latencies of profiles do not always agree.
                throughput = batch * processes / latency * rng.choice([1, 1, 1, 1.1, 0.7, 0.2])
                points[size, batch, processes] = Point(size, batch, processes, throughput, latency)
        best = max(point.throughput for point in points.values())
        services.append(Service(name, slo, best * 10 ** rng.uniform(-3, 0.7), name, rng.choice([1, 1, 1, 2])))
        tables.append(ProfileTable(name, gpu.name, tuple(points.values())))
    pool = GpuPool(gpu, rng.choice([None, None, rng.randint(1, 6)]))
    promise = Promise(1 - 10 ** rng.uniform(-4, -1), Arrivals(rng.choice(["even", "poisson", "bursty"])))
    return Demand(tuple(services), tuple(tables), (pool,), SloRule(share)), promise, rng.choice(METHODS)


def assert_plan_or_reason(seed: int) -> None:
    demand, promise, method = drawn(seed)
    found = deploy_with_promise(demand, promise, method)
    if found.deployment is None:
        assert found.reason
        assert found.status in {Status.INFEASIBLE, Status.NO_SOLUTION}
        # With as many GPUs as it takes there is always a plan, unless no instance is in time even without a queue.
        assert demand.pools[0].count is not None or found.reason == "; ".join(why_unkept(demand, promise)) != ""
        return
    assert validate_deployment(demand, found.deployment).valid
    assert_serves(demand, found.deployment)
    assert found.lower_bound <= found.gpus
    assert found.simulation.keeps(promise.share), found.simulation.worst


@pytest.mark.parametrize("seed", [9, 17, 27, 29, 31, 58, 60, 70, 71, 75, 95])
def test_a_plan_or_a_reason(seed):
    assert_plan_or_reason(seed)


@pytest.mark.deep
@pytest.mark.parametrize("first", range(0, 500, 10))
def test_a_plan_or_a_reason_for_each_of_500(first):
    for seed in range(first, first + 10):
        assert_plan_or_reason(seed)
