"""Lower bounds on the number of GPUs."""

import pytest
from demands import A30, A100, demand_of, demands, flat_table
from fleet_model import fewest_gpus
from hypothesis import given, settings

from mig_opt import Demand, GpuPool, InputError, Service, SloRule, load
from mig_opt.serving.bounds import fleet_bounds


def test_prices_see_what_slices_do_not() -> None:
    """Four services with a 4g each: 16 slices would fit on three GPUs, but a GPU takes only one 4g."""
    names = ("a", "b", "c", "d")
    demand = demand_of(dict.fromkeys(names, 40.0), {name: {4: 40.0} for name in names})
    bounds = {bound.name: bound.cost for bound in fleet_bounds(demand)}
    assert bounds == {"compute slices": 3, "instance prices": 4}


@pytest.mark.parametrize(("name", "gpus"), [("s1", 2), ("s2", 3), ("s3", 5), ("s4", 7), ("s5", 12), ("s6", 15)])
def test_bounds_of_the_scenarios_are_their_optima(name: str, gpus: int) -> None:
    assert fleet_bounds(load(f"parvagpu-{name}"))[0].cost == gpus


def test_a_service_that_nothing_serves_has_no_bound() -> None:
    demand = Demand(
        (Service("late", 0.001, 1.0),), (flat_table("late", A100, {1: 5.0}),), (GpuPool(A100),), SloRule(0.5)
    )
    with pytest.raises(InputError, match=r"services\[0\]: no instance can serve 'late' in time"):
        fleet_bounds(demand)


@given(demands(max_services=3, gpus=(A100, A30)))
@settings(max_examples=25, deadline=None)
def test_no_bound_is_above_the_fewest_gpus(demand: Demand) -> None:
    best = max(bound.cost for bound in fleet_bounds(demand))
    if best <= 4:
        fewest = fewest_gpus(demand, best + 1)
        assert fewest is None or fewest >= best
