"""Slices that a deployment leaves unused, lower bounds on the number of GPUs, and days."""

import dataclasses

import pytest
from demands import A30, A100, demand_of, demands, flat_table, one_model
from documents import refused
from fleet_model import fewest_gpus
from hypothesis import given, settings
from hypothesis import strategies as st

from mig_opt import Day, Demand, Deployment, GpuPool, RateTable, Service, SloRule, deploy
from mig_opt.serving.bounds import fleet_bounds


def test_slices_of_services_that_nobody_asks_for_are_idle():
    wanted = one_model({"a": 105.0, "b": 45.0}, {7: 420.0})
    found = deploy(wanted, "first-fit").deployment
    assert found.internal_slack(wanted.replace(services=wanted.services[:1])) == pytest.approx((7 * 0.75 + 7) / 14)
    assert Deployment(found.gpus, ()).internal_slack(wanted) == 0.0


@pytest.mark.deep
@settings(max_examples=40)
@given(demands(), st.floats(0.1, 1.0))
def test_internal_slack_falls_as_rates_rise(wanted, share):
    found = deploy(wanted, "first-fit").deployment
    less = wanted.replace(services=tuple(dataclasses.replace(s, rate=s.rate * share) for s in wanted.services))
    used, idle = 1 - found.internal_slack(wanted), found.internal_slack(less)
    assert 0 <= found.internal_slack(wanted) <= idle <= 1
    assert 1 - idle == pytest.approx(used * share), "activity is in proportion to the rates"


def test_prices_see_what_slices_do_not():
    """Four services with a 4g each: 16 slices would fit on three GPUs, but a GPU takes only one 4g."""
    names = ("a", "b", "c", "d")
    demand = demand_of(dict.fromkeys(names, 40.0), {name: {4: 40.0} for name in names})
    bounds = {bound.name: bound.cost for bound in fleet_bounds(demand)}
    assert bounds == {"compute slices": 3, "instance prices": 4}


def test_a_service_that_nothing_serves_has_no_bound():
    demand = Demand(
        (Service("late", 0.001, 1.0),), (flat_table("late", A100, {1: 5.0}),), (GpuPool(A100),), SloRule(0.5)
    )
    refused(fleet_bounds, demand, match=r"services\[0\]: no instance can serve 'late' in time")


@given(demands(max_services=3, gpus=(A100, A30)))
@settings(max_examples=25, deadline=None)
def test_no_bound_is_above_the_fewest_gpus(demand):
    best = max(bound.cost for bound in fleet_bounds(demand))
    if best <= 4:
        fewest = fewest_gpus(demand, best + 1)
        assert fewest is None or fewest >= best


DEMAND = one_model({"a": 1.0, "b": 1.0}, {1: 100.0}, A30)


def test_problems_are_told_all_at_once():
    wrong = {"margin": 101, "creation_price": -1.0, "interruption_price": "much"}
    assert refused(Day, DEMAND, RateTable((0.0, 1.0), {"a": (1.0,)}), **wrong) == [*wrong, "rates"]
