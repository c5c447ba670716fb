"""The validator of days finds what is wrong with a plan, whatever it is."""

import dataclasses

import pytest
from demands import A30, one_model

from mig_opt import Day, GpuPool, RateTable, deploy_day
from mig_opt.serving.day import DayPlan
from mig_opt.validation.serving.days import validate_day

DEMAND = one_model({"a": 1.0, "b": 1.0}, {1: 100.0, 2: 210.0, 4: 440.0}, A30)
RATES = RateTable((0.0, 3600.0, 7200.0, 10800.0), {"a": (90.0, 400.0, 0.0), "b": (200.0, 200.0, 300.0)})
DAY = Day(DEMAND, RATES)


@pytest.fixture(scope="module")
def plan() -> DayPlan:
    return deploy_day(DEMAND, RATES, time_limit=20).plan


def codes(day: Day, plan: DayPlan) -> set[tuple[str, str]]:
    return {(str(violation.code), violation.path) for violation in validate_day(day, plan).violations}


def with_step(plan: DayPlan, step: int, **changes: object) -> DayPlan:
    """The plan with one deployment changed."""
    deployments = list(plan.deployments)
    deployments[step] = deployments[step].replace(**changes)
    return dataclasses.replace(plan, deployments=tuple(deployments))


def test_a_plan_is_valid_and_its_figures_are_counted_again(plan):
    verdict = validate_day(DAY, plan)
    assert verdict.valid
    assert str(verdict) == f"valid, {plan.gpu_hours:g} GPU-hours, {plan.created} created, 0 interrupted"


def test_a_service_that_nobody_asks_for_must_have_no_segment(plan):
    left = [one for one in plan.deployments[0].segments if one.service == "a"][:1]
    free = [one for one in plan.deployments[2].segments if one.gpu != left[0].gpu]
    found = codes(DAY, with_step(plan, 2, segments=[*free, *left]))
    assert any(code == "unknown-service" and path.startswith("deployments[2]") for code, path in found)
    idle = dataclasses.replace(RATES, rates={"a": (0.0, 0.0, 0.0), "b": (0.0, 0.0, 0.0)})
    found = codes(Day(DEMAND, idle), dataclasses.replace(plan, times=()))
    assert ("unknown-service", "deployments[0].segments[0].service") in found


def test_each_mistake_is_found_where_it_is(plan):
    shorter = dataclasses.replace(plan, deployments=plan.deployments[:2], changes=plan.changes[:1])
    assert {("wrong-length", "deployments"), ("wrong-length", "changes")} <= codes(DAY, shorter)
    longer = dataclasses.replace(plan, deployments=plan.deployments * 2, changes=plan.changes * 2)
    assert {("wrong-length", "deployments"), ("wrong-length", "changes")} <= codes(DAY, longer)
    nowhere = with_step(plan, 1, segments=[dataclasses.replace(plan.deployments[1].segments[0], gpu=9)])
    assert ("unknown-gpu", "deployments[1].segments[0].gpu") in codes(DAY, nowhere)
    late = dataclasses.replace(plan, times=(0.0, 3600.0, 7200.0, 10900.0))
    assert ("wrong-times", "times") in codes(DAY, late)
    more = with_step(plan, 1, gpus=(*plan.deployments[1].gpus, "A30-24GB"))
    assert ("other-gpus", "deployments[1].gpus") in codes(DAY, more)
    # A change has to lead from one step to the next, and to state who is interrupted.
    changed = [dataclasses.replace(change, steps=change.steps[1:]) for change in plan.changes]
    found = codes(DAY, dataclasses.replace(plan, changes=tuple(changed)))
    assert any(code == "wrong-end" and path.startswith("changes[0]") for code, path in found)
    stated = dataclasses.replace(plan.changes[0], interrupted=plan.deployments[0].segments[:1])
    found = codes(DAY, dataclasses.replace(plan, changes=(stated, *plan.changes[1:])))
    assert "wrong-interrupted" in dict(found)
    # No instance exists twice.
    segments = plan.deployments[1].segments
    assert "wrong-change" in dict(codes(DAY, with_step(plan, 1, segments=[*segments, segments[0]])))


def test_a_change_between_two_fleets_needs_both(plan):
    """A pool of two GPUs is not enough for three that are in use before or after a change."""
    few = dataclasses.replace(DAY, demand=DEMAND.replace(pools=(GpuPool(A30, 2),)))
    fleet = ("A30",) * 4
    moved = [dataclasses.replace(one, gpu=one.gpu + 2) for one in plan.deployments[1].segments]
    deployments = [deployment.replace(gpus=fleet) for deployment in plan.deployments]
    deployments[1] = deployments[1].replace(segments=moved)
    found = codes(few, dataclasses.replace(plan, deployments=tuple(deployments)))
    assert ("pool-exceeded", "changes[0]") in found
