"""Days on which a promise to the requests is kept."""

import pytest
from demands import A30, with_room
from documents import wrong_paths

from mig_opt import Arrivals, Day, Point, ProfileTable, Promise, RateTable, Status, simulate_requests
from mig_opt.api.deploy.days import DayPromiseResult, deploy_day, deploy_day_with_promise
from mig_opt.serving.demand import Demand, GpuPool, Service, SloRule
from mig_opt.validation.serving.days import validate_day


def rates(*row: float) -> RateTable:
    return RateTable(tuple(3600.0 * step for step in range(len(row) + 1)), {"a": row})


def planned(*row: float, promise: float = 0.999, **more: object) -> DayPromiseResult:
    """A plan that is valid for the day; every step keeps the promise, also with other random numbers."""
    result = deploy_day_with_promise(with_room(1.0), rates(*row), promise, **more)
    assert result.day == Day(with_room(1.0), rates(*row))
    assert validate_day(result.day, result.plan).valid
    assert result.lower_bound <= result.objective
    for asked, deployment in zip(result.day.demands, result.plan.deployments, strict=True):
        if asked is not None:
            assert simulate_requests(asked, deployment, seconds=60, seed=5).keeps(promise)
    return result


def test_room_for_queues_takes_another_gpu_where_it_is_needed():
    """Throughput alone covers 799 requests per second with two GPUs, with hardly any room for a queue."""
    assert deploy_day(with_room(1.0), rates(300.0, 799.0, 300.0)).plan.gpus == (1, 2, 1)
    found = planned(300.0, 799.0, 300.0)
    assert found.plan.gpus == found.fewest_gpus == (1, 3, 1)
    assert found.gpu_hours_bound == 5
    step, worst = found.worst
    assert (step, worst.name) in {(0, "a"), (1, "a"), (2, "a")}
    assert worst.late_share <= 0.001
    assert found.figures()[-1][0] == "simulated"


def test_a_step_without_requests_needs_nothing():
    found = planned(0.0, 300.0)
    assert found.plan.gpus == (0, 1)
    assert found.simulations[0] is None
    nothing = planned(0.0, 0.0)
    assert (nothing.plan.gpus, nothing.simulations, nothing.worst) == ((0, 0), (None, None), None)


def test_other_methods_plan_step_by_step():
    assert planned(300.0, 799.0, method="first-fit").plan.gpus == (1, 3)


def test_too_few_gpus_for_the_promise():
    found = deploy_day_with_promise(with_room(1.0, count=2), rates(300.0, 799.0), 0.999)
    assert (found.status, found.plan, found.simulations) == (Status.INFEASIBLE, None, ())
    assert found.reason.startswith("with the capacities of the promise: at 1:00: ")


TWO = Demand(
    (Service("a", 0.2, 1.0, "m"), Service("b", 0.2, 1.0, "m")),
    (ProfileTable("m", "A30-24GB", (Point(1, 8, 1, 50.0, 0.16),)),),
    (GpuPool(A30, None),),
    SloRule(1.0),
)
"""Batches take 0.8 of the SLO: segments have a capacity of a few requests per second together, and of 0.06 alone."""


@pytest.mark.parametrize("kind", ["even", "poisson", pytest.param("bursty", marks=pytest.mark.deep)])
def test_segments_of_little_capacity_are_enough_at_any_rate(kind):
    table = RateTable((0.0, 3600.0, 7200.0, 10800.0), {"a": (20.0, 0.3, 1e-6), "b": (0.0, 2.0, 0.02)})
    found = deploy_day_with_promise(TWO, table, Promise(0.99, Arrivals(kind)), "first-fit")
    assert validate_day(found.day, found.plan).valid
    assert all(simulation.keeps(0.99) for simulation in found.simulations)


@pytest.mark.parametrize(("rate", "text"), [(20.0, "with an SLO of 0.32 s"), (4e6, "rate needs at least")])
def test_rates_that_take_more_than_there_is(rate, text):
    few = TWO.replace(pools=(GpuPool(A30, 1 if rate < 1e6 else None),))
    found = deploy_day_with_promise(few, RateTable((0.0, 1.0), {"a": (rate,), "b": (1.0,)}), 0.9999)
    assert found.status is Status.INFEASIBLE
    assert text in found.reason


def test_days_have_the_capacities_that_the_method_can_use():
    points = (Point(1, 8, 2, 200.0, 0.08), Point(1, 8, 1, 100.0, 0.08))
    both = with_room(1.0).replace(tables=(ProfileTable("m", "A30-24GB", points),))
    found = deploy_day_with_promise(both, rates(50.0), 0.99, "parvagpu-single")
    assert {segment.processes for segment in found.plan.deployments[0].segments} == {1}


def test_all_that_is_wrong_is_said_at_once():
    found = wrong_paths(deploy_day_with_promise, with_room(1.0), rates(1.0), 1.0, margin=-1, lookahead=3, time_limit=-1)
    assert found == ["margin", "promise", "lookahead", "time_limit"]
