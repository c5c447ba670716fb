"""Pictures of days."""

import dataclasses

import pytest
from demands import A30, one_model

from mig_opt import DayResult, InputError, RateTable, deploy_day
from mig_opt.views import plot


@pytest.fixture(scope="module")
def result() -> DayResult:
    demand = one_model({"a": 1.0, "b": 1.0}, {1: 100.0, 2: 210.0, 4: 440.0}, A30)
    rates = RateTable((0.0, 3600.0, 7200.0, 10800.0), {"a": (90.0, 400.0, 90.0), "b": (200.0, 200.0, 300.0)})
    return deploy_day(demand, rates, time_limit=20)


def drawn(figure: object, gid: str) -> list[object]:
    return [part for part in figure.axes[0].get_children() if part.get_gid() == gid]  # type: ignore[attr-defined]


def test_a_change_that_interrupts_is_drawn_as_such(result):
    step = result.plan.changed[0]
    broken = list(result.plan.changes)
    segment = result.plan.deployments[0].segments[0]
    broken[step - 1] = dataclasses.replace(broken[step - 1], interrupted=(segment,))
    plan = dataclasses.replace(result.plan, changes=tuple(broken))
    assert drawn(plot(dataclasses.replace(result, plan=plan)), "interruptions")


def test_only_plans_are_drawn(result):
    with pytest.raises(InputError, match="with a plan"):
        plot(dataclasses.replace(result, plan=None))
