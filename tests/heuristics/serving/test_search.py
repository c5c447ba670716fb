"""Our own heuristic for fleets."""

from __future__ import annotations

import pytest
from demands import control_for, demand_of, demands
from hypothesis import given, settings

from mig_opt import Demand, Status, deploy
from mig_opt.heuristics.serving.search import search
from mig_opt.instances.bundled import load
from mig_opt.serving.demand import SloRule

PUBLISHED_RULE = SloRule(0.45, whole_ms=True)


@pytest.mark.parametrize(
    ("rule", "expected"), [(SloRule(), (2, 3, 5, 7, 12, 15)), (PUBLISHED_RULE, (2, 3, 5, 7, 12, 16))]
)
def test_reaches_the_exact_count_on_the_scenarios(rule: SloRule, expected: tuple[int, ...]) -> None:
    found = [deploy(load(f"parvagpu-s{number}").replace(rule=rule), "search").gpus for number in range(1, 7)]
    assert tuple(found) == expected


def copies(demand: Demand, number: int) -> Demand:
    services = tuple(
        type(service)(f"{service.name}-{copy}", service.slo, service.rate, service.model)
        for copy in range(number)
        for service in demand.services
    )
    return demand.replace(services=services)


@pytest.mark.parametrize(("number", "gpus"), [(2, 24), (5, 59), (10, 118)])
def test_many_copies_of_a_scenario(number: int, gpus: int) -> None:
    """The counts that integer programming proves."""
    demand = copies(load("parvagpu-s5").replace(rule=PUBLISHED_RULE), number)
    assert deploy(demand, "search").gpus == gpus


@pytest.mark.deep
def test_a_thousand_services() -> None:
    result = deploy(copies(load("parvagpu-s5"), 100), "search", time_limit=20)
    assert result.gpus is not None
    assert result.gpus <= result.lower_bound * 1.005


@pytest.mark.deep
@given(demands(limited=True))
@settings(max_examples=60, deadline=None)
def test_every_deployment_is_valid_and_not_below_the_optimum(demand: Demand) -> None:
    """``deploy`` validates what it returns and compares it with the bound."""
    found, proven = deploy(demand, "search"), deploy(demand, "exact", time_limit=20)
    if found.gpus is not None:
        assert proven.gpus is not None
        assert proven.lower_bound <= proven.gpus <= found.gpus


def test_a_pool_that_is_too_small_gives_no_deployment() -> None:
    demand = demand_of({"a": 80.0}, {"a": {4: 40.0}})
    pool = type(demand.pools[0])(demand.pools[0].gpu, 1)
    few = demand.replace(pools=(pool,))
    assert (deploy(few, "search").status, deploy(few, "search").deployment) == (Status.INFEASIBLE, None)
    control = control_for(few)
    search(few, control)  # which does not compare the bound with the pools
    assert control.plan is None


@pytest.mark.deep
def test_one_service_for_thousands_of_gpus() -> None:
    """A 4g and a 3g answer 78 requests/s on a GPU, and nothing answers more."""
    demand = demand_of({"a": 700_000.0}, {"a": {1: 10.0, 2: 21.0, 3: 33.0, 4: 45.0, 7: 70.0}})
    assert deploy(demand, "search").gpus == 8975
