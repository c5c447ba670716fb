"""Days on which a promise to the requests is kept."""

from __future__ import annotations

import pytest
from demands import A30

from mig_opt.api.deploy.day_promises import DayPromiseResult, deploy_day_with_promise
from mig_opt.api.deploy.days import deploy_day
from mig_opt.errors import InputError
from mig_opt.method.result import Status
from mig_opt.serving.day import Day
from mig_opt.serving.demand import Demand, GpuPool, Service
from mig_opt.serving.profile_table import Point, ProfileTable
from mig_opt.serving.rates import RateTable
from mig_opt.simulation.serving.requests import simulate_requests
from mig_opt.validation.serving.days import validate_day

POINTS = tuple(Point(size, 8, 1, 100.0 * size, 0.08 / size) for size in (1, 2, 4))
TABLE = ProfileTable("m", "A30-24GB", POINTS)


def demand(slo: float = 0.2, count: int | None = None) -> Demand:
    return Demand((Service("a", slo, 1.0, "m"),), (TABLE,), (GpuPool(A30, count),))


def rates(*row: float) -> RateTable:
    return RateTable(tuple(3600.0 * step for step in range(len(row) + 1)), {"a": row})


def planned(*row: float, promise: float = 0.999, **more: object) -> DayPromiseResult:
    """What is found; it is valid for the day, and every step keeps the promise with random numbers of its own."""
    result = deploy_day_with_promise(demand(), rates(*row), promise, **more)
    assert result.day == Day(demand(), rates(*row))
    assert validate_day(result.day, result.plan).valid
    assert result.lower_bound <= result.objective
    for asked, deployment in zip(result.day.demands, result.plan.deployments, strict=True):
        if asked is not None:
            assert simulate_requests(asked, deployment, seconds=60, seed=5).keeps(promise)
    return result


def test_room_for_queues_takes_another_gpu_where_it_is_needed():
    """Throughput alone covers 799 requests per second with two GPUs, with hardly any room for a queue."""
    assert deploy_day(demand(), rates(300.0, 799.0, 300.0)).plan.gpus == (1, 2, 1)
    found = planned(300.0, 799.0, 300.0)
    assert found.plan.gpus == found.fewest_gpus == (1, 3, 1)
    assert found.gpu_hours_bound == 5
    step, worst = found.worst
    assert (step, worst.name) in {(0, "a"), (1, "a"), (2, "a")}
    assert worst.late_share <= 0.001
    assert found.rows()[-1][0] == "worst"


def test_a_step_without_requests_needs_nothing():
    found = planned(0.0, 300.0)
    assert found.plan.gpus == (0, 1)
    assert found.simulations[0] is None
    nothing = planned(0.0, 0.0)
    assert (nothing.plan.gpus, nothing.simulations, nothing.worst) == ((0, 0), (None, None), None)


def test_other_methods_plan_step_by_step():
    assert planned(300.0, 799.0, method="first-fit").plan.gpus == (1, 3)


def test_too_few_gpus_for_the_promise():
    found = deploy_day_with_promise(demand(count=2), rates(300.0, 799.0), 0.999)
    assert (found.status, found.plan, found.simulations) == (Status.INFEASIBLE, None, ())
    assert found.reason.startswith("with the capacities of the promise: at 1:00: ")


def test_a_limit_that_no_instance_keeps():
    found = deploy_day_with_promise(demand(slo=0.001), rates(10.0))
    assert found.status is Status.INFEASIBLE
    assert "needs a latency" in found.reason


def test_all_that_is_wrong_is_said_at_once():
    with pytest.raises(InputError) as caught:
        deploy_day_with_promise(demand(), rates(1.0), 1.0, margin=-1, lookahead=3, time_limit=-1)  # type: ignore[arg-type]
    assert [problem.path for problem in caught.value.problems] == ["margin", "promise", "lookahead", "time_limit"]
