"""Proven costs of GPUs of several kinds, against a model that shares nothing with the package's."""

import random
from collections import Counter

import pytest
from demands import A30, A100, H100, flat_table
from fleet_model import least_cost

from mig_opt import Demand, Pool, Service, Status, deploy
from mig_opt.method.registry import DEPLOY_METHODS
from mig_opt.serving.bounds import fleet_bounds
from mig_opt.validation import validate_deployment

_MOST = 4


def mixed_demand(seed: int) -> Demand:
    """Services on GPUs of two or three kinds, some of them few, free, or without MIG."""
    rng = random.Random(seed)
    kinds = rng.sample([A30, A100, H100], rng.randint(2, 3))
    tables = [
        flat_table(
            model, kind, {size: rng.randint(2, 12) * size for size in kind.sizes if rng.random() < 0.8} or {1: 9}
        )
        for model in ("m0", "m1")
        for kind in kinds
    ]
    services = tuple(
        Service(f"s{number}", 1.0, rng.randint(5, 160) / 2, rng.choice(["m0", "m1"]), rng.choice([1, 1, 1, 2]))
        for number in range(rng.randint(1, 4))
    )
    pools = tuple(
        Pool(kind, rng.choice([None, None, 1, 2]), rng.choice([0, 0.5, 1, 1, 2.2, 3]), rng.random() < 0.8)
        for kind in kinds
    )
    return Demand(services, tuple(tables), pools)


def check(demand: Demand) -> None:
    """Compare what is proven with the other model, and every bound and method with what is proven."""
    result = deploy(demand)
    if result.status is Status.INFEASIBLE:
        assert least_cost(demand, _MOST) is None
        return
    assert result.status is Status.OPTIMAL
    assert result.plan is not None
    assert result.cost == result.lower_bound == result.plan.cost(demand)
    kinds = Counter(result.plan.gpus)
    expected = least_cost(demand, _MOST)
    if max(kinds.values()) <= _MOST:
        assert expected == pytest.approx(result.cost)
    for pool in demand.pools:
        assert pool.count is None or kinds[pool.kind.name] <= pool.count
    assert all(bound.cost <= result.cost for bound in fleet_bounds(demand))
    for method in DEPLOY_METHODS.entries:
        if method.kind == "heuristic":
            found = deploy(demand, method.name)
            assert found.cost is None or found.lower_bound <= result.cost <= found.cost, method.name


@pytest.mark.parametrize("seed", range(12))
def test_the_same_cost_as_a_model_of_every_gpu(seed: int) -> None:
    check(mixed_demand(seed))


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(12, 200))
def test_the_same_cost_as_a_model_of_every_gpu_at_length(seed: int) -> None:
    check(mixed_demand(seed))


TABLES = flat_table("a", A30, {1: 10.0, 4: 42.0}), flat_table("a", A100, {1: 12.0, 7: 80.0})


@pytest.mark.parametrize(
    ("rate", "pools", "expected"),
    [
        # Two A100 or four A30 serve 160 requests per second; at 2.2 to 1 these cost less.
        (160.0, (Pool(A30), Pool(A100, cost=2.2)), (4, {"A30-24GB": 4})),
        (160.0, (Pool(A30), Pool(A100, cost=1.9)), (3.8, {"A100-80GB": 2})),
        # What is there already costs nothing: it serves 84, and one A100 does the rest.
        (160.0, (Pool(A30, 2, 0), Pool(A100, cost=2.2)), (2.2, {"A30-24GB": 2, "A100-80GB": 1})),
        # Of GPUs that cost nothing the fewest are taken.
        (160.0, (Pool(A30, cost=0), Pool(A100, cost=0)), (0, {"A100-80GB": 2})),
        # Costs with many decimals are exact: 0.1 three times is 0.3, and real offers are compared to the cent.
        (120.0, (Pool(A30, cost=0.1), Pool(A100, cost=2.2)), (0.3, {"A30-24GB": 3})),
        (160.0, (Pool(A30, cost=9999.99), Pool(A100, cost=19999.97)), (39999.94, {"A100-80GB": 2})),
    ],
)
def test_the_cheapest_gpus_are_taken(rate: float, pools: tuple[Pool, ...], expected: object) -> None:
    result = deploy(Demand((Service("a", 1.0, rate),), TABLES, pools))
    assert result.proven[:2] == ("cost", "gpus")
    assert result.plan is not None
    assert (result.cost, Counter(result.plan.gpus)) == expected


def test_bounds_know_that_there_are_few_of_the_cheap_gpus() -> None:
    """Without the counts 800 requests per second would cost nothing."""
    demand = Demand((Service("a", 1.0, 800.0),), TABLES, (Pool(A30, 2, 0), Pool(A100, cost=2.2)))
    best = fleet_bounds(demand)[0]
    assert (best.name, best.cost) == ("instance prices", 19.8)
    assert "premium" in best.reason
    assert deploy(demand).cost == 19.8


def test_a_gpu_without_mig_serves_one_service() -> None:
    """Two services of 10 requests per second share an A30, but not if its MIG is off; nothing is created there."""
    services = Service("a", 1.0, 10.0, "a"), Service("b", 1.0, 10.0, "a")
    for mig, cost in ((True, 1), (False, 2)):
        demand = Demand(services, TABLES, (Pool(A30, mig=mig, cost=1.0), Pool(A100, cost=9.0)))
        result = deploy(demand)
        assert result.cost == cost
        assert result.plan is not None
        assert validate_deployment(demand, result.plan).valid
        assert set(result.plan.gpus) == {"A30-24GB" if mig else "A30-24GB without MIG"}


def test_more_gpus_than_there_are_is_infeasible_whatever_they_cost() -> None:
    result = deploy(Demand((Service("a", 1.0, 500.0),), TABLES, (Pool(A30, 2, 0), Pool(A100, 3, 2.2))))
    assert result.status is Status.INFEASIBLE
    assert "need at least 6 GPUs" in result.reason
