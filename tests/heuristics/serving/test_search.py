"""Our own heuristic for fleets."""

from dataclasses import replace

import pytest
from demands import A100, control_for, demand_of

from mig_opt import Demand, GpuPool, SloRule, deploy, load
from mig_opt.heuristics.serving.search import search

PUBLISHED_RULE = SloRule(0.45, whole_ms=True)


@pytest.mark.parametrize(
    ("rule", "expected"), [(SloRule(), (2, 3, 5, 7, 12, 15)), (PUBLISHED_RULE, (2, 3, 5, 7, 12, 16))]
)
def test_reaches_the_exact_count_on_the_scenarios(rule: SloRule, expected: tuple[int, ...]) -> None:
    found = [deploy(load(f"parvagpu-s{number}").replace(rule=rule), "search").gpus for number in range(1, 7)]
    assert tuple(found) == expected


def copies(demand: Demand, number: int) -> Demand:
    services = (replace(one, name=f"{one.name}-{copy}") for copy in range(number) for one in demand.services)
    return demand.replace(services=tuple(services))


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


def test_a_pool_that_is_too_small_gives_no_deployment() -> None:
    demand = demand_of({"a": 80.0}, {"a": {4: 40.0}})
    few = demand.replace(pools=(GpuPool(A100, 1),))
    control = control_for(few)
    search(few, control)  # which does not compare the bound with the pools
    assert control.plan is None


@pytest.mark.deep
def test_one_service_for_thousands_of_gpus() -> None:
    """A 4g and a 3g answer 78 requests/s on a GPU, and nothing answers more."""
    demand = demand_of({"a": 700_000.0}, {"a": {1: 10.0, 2: 21.0, 3: 33.0, 4: 45.0, 7: 70.0}})
    assert deploy(demand, "search").gpus == 8975
