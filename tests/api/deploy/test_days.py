"""Days: a deployment for each step, the changes between them, and what is proven about their cost."""

import math
from fractions import Fraction

import pytest
from day_search import least_cost
from demands import A30, flat_table, one_model
from documents import refused
from hypothesis import given, settings
from hypothesis import strategies as st

from mig_opt import Day, Deployment, Point, ProfileTable, RateTable, Segment, Status, deploy_day, load, plan_change
from mig_opt.api.deploy import days
from mig_opt.errors import InputError, UnknownMethodError
from mig_opt.method.control import Limits
from mig_opt.method.options import RunOptions
from mig_opt.method.report import data_of
from mig_opt.models.serving.day_counts import DayProblem
from mig_opt.models.serving.day_places import Span, best_places
from mig_opt.serving.demand import Demand, GpuPool, Service
from mig_opt.validation.serving.days import validate_day

THROUGHPUTS = {1: 100.0, 2: 210.0, 4: 440.0}


def table(*rows: tuple[float, ...], hours: float = 1.0) -> RateTable:
    """A row of rates for each of the services a, b, ..., in steps of some hours."""
    times = tuple(3600 * hours * step for step in range(len(rows[0]) + 1))
    return RateTable(times, dict(zip("abc", rows, strict=False)))


def one_gpu(**more: object) -> Demand:
    return one_model({"a": 1.0, "b": 1.0}, THROUGHPUTS, A30, count=1, **more)


def checked(day: Day, **more: object) -> days.DayResult:
    """Plan and bound of a day; it is valid, and no bound is above a cost."""
    prices = data_of(day, "margin", "creation_price", "interruption_price")
    result = deploy_day(day.demand, day.rates, **prices, **more)
    if result.plan is not None:
        verdict = validate_day(day, result.plan)
        assert verdict.valid, verdict
        assert math.isclose(verdict.gpu_hours, result.plan.gpu_hours)
        assert (verdict.created, verdict.interrupted) == (result.plan.created, result.plan.interrupted)
        assert result.lower_bound <= result.objective
        assert result.gpu_hours_bound <= result.plan.gpu_hours + 1e-9
    return result


RATES = st.sampled_from([0.0, 60.0, 100.0, 140.0, 210.0, 300.0])


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.tuples(RATES, RATES), min_size=2, max_size=4),
    st.sampled_from([0.0, 0.01, 0.3, 2.0]),
    st.sampled_from([0.0, 0.1]),
)
@pytest.mark.deep
def test_two_services_on_one_gpu_cost_what_enumeration_says(steps, price, margin):
    day = Day(one_gpu(), table(*zip(*steps, strict=True)), margin, creation_price=price, interruption_price=0.0)
    best = least_cost(day, 1)
    result = checked(day, time_limit=200)
    if best is None:
        assert result.status is Status.INFEASIBLE
        assert result.plan is None
    else:
        assert result.objective == pytest.approx(best)
        assert result.lower_bound <= best + 1e-9
        assert result.status is Status.OPTIMAL


@settings(max_examples=8, deadline=None)
@given(
    st.lists(st.sampled_from([0.0, 100.0, 310.0, 440.0, 520.0, 700.0]), min_size=2, max_size=4),
    st.sampled_from([0.01, 0.3, 2.0]),
    st.sampled_from([1, 3]),
)
@pytest.mark.deep
def test_one_service_on_two_gpus_costs_what_enumeration_says(rates, price, replicas):
    demand = one_model({"a": 1.0}, THROUGHPUTS, A30, count=2, replicas=replicas)
    day = Day(demand, table(tuple(rates)), creation_price=price, interruption_price=0.0)
    best = least_cost(day, 2)
    result = checked(day, time_limit=200)
    assert result.objective == pytest.approx(best)
    assert result.status is Status.OPTIMAL


def test_lookahead_keeps_a_segment_that_is_needed_again():
    """In the second hour one slice less would do, but the third hour needs it again."""
    day = Day(one_gpu(), table((200.0, 90.0, 200.0), (150.0, 150.0, 150.0)))
    ahead = checked(day)
    alone = checked(day, lookahead=False)
    assert (ahead.status, ahead.objective, ahead.plan.changed) == (Status.OPTIMAL, 3.0, ())
    assert alone.plan.created > 0
    assert alone.objective > ahead.objective
    assert alone.method == "exact"
    assert ahead.fewest_gpus == (1, 1, 1)


def test_idle_gpus_save_a_change_from_interruptions():
    """Both slices of 2g change their service: on one GPU something must end first, on two nothing is interrupted."""
    points = flat_table("m", A30, {2: 100.0})
    services = Service("a", 1.0, 1.0, "m"), Service("b", 1.0, 1.0, "m")
    rates = table((100.0, 90.0, 100.0), (100.0, 190.0, 100.0))
    day = Day(Demand(services, (points,), (GpuPool(A30),)), rates)
    result = checked(day)
    assert result.plan.interrupted == 0
    assert max(len(one.gpus) for one in result.plan.deployments) >= 2


def test_changes_without_interruption_are_preferred_where_every_gpu_is_in_use():
    """One GPU: at first a 4g or two 2g serve the first service; only from the latter nothing is interrupted."""
    points = flat_table("m", A30, {2: 210.0, 4: 430.0})
    services = Service("a", 1.0, 1.0, "m"), Service("b", 1.0, 1.0, "m")
    demand = Demand(services, (points,), (GpuPool(A30, 1),))
    day = Day(demand, table((400.0, 200.0, 200.0), (0.0, 200.0, 200.0)), creation_price=0.0)
    problem = DayProblem(day, (1, 1, 1))
    priced = Day(demand.replace(pools=(GpuPool(A30, 1, 5.2),)), day.rates)
    assert all(each.needs_all(0) for each in (problem, DayProblem(priced, (5.2, 5.2, 5.2))))
    gpus = ("A30-24GB",)
    whole = Deployment(gpus, (Segment("a", 0, "4g.24gb", 0, 1, 1, 430.0, 0.01),))
    after = checked(day).plan.deployments[1]
    assert checked(day).plan.interrupted == 0
    assert plan_change(whole, after, demand=day.demands[1]).objective == 1
    span = Span(range(1), gpus, (0,), None, after)
    for undisturbed in (True, False):
        found = best_places(problem, span, Limits(RunOptions(time_limit=20.0)), known=[whole], undisturbed=undisturbed)
        assert found.bound is None
        (first,) = found.deployments
        if undisturbed:
            assert {segment.profile for segment in first.segments} == {"2g.12gb"}
            assert plan_change(first, after, demand=day.demands[1]).objective == 0


def test_a_service_that_ends_makes_room_for_one_that_has_to_move():
    """One GPU: b changes from two 1g to a 2g, undisturbed only where the first service was; c takes its place."""
    own = flat_table("m", A30, {2: 210.0}), flat_table("n", A30, {1: 100.0, 2: 210.0})
    services = Service("a", 1.0, 1.0, "m"), Service("b", 1.0, 1.0, "n"), Service("c", 1.0, 1.0, "m")
    demand = Demand(services, own, (GpuPool(A30, 1),))
    day = Day(demand, table((200.0, 0.0), (200.0, 205.0), (0.0, 200.0)))
    moving = (Segment("b", 0, "1g.6gb", at, 1, 1, 100.0, 0.01) for at in (2, 3))
    before = Deployment(("A30-24GB",), (Segment("a", 0, "2g.12gb", 0, 1, 1, 210.0, 0.01), *moving))
    span = Span(range(1, 2), before.gpus, (0,), before)
    found = best_places(
        DayProblem(day, (1, 1)), span, Limits(RunOptions(time_limit=20.0)), undisturbed=True, proves=True
    )
    assert found.bound == Fraction("1.02")
    (after,) = found.deployments
    assert {(segment.service, segment.start) for segment in after.segments} == {("b", 0), ("c", 2)}
    assert plan_change(before, after, demand=day.demands[1]).objective == 0


def test_a_method_that_needs_more_gpus_than_there_are_finds_no_plan():
    demand = load("parvagpu-s3")
    few = demand.replace(pools=(GpuPool(demand.pools[0].gpu, 5),))
    rates = RateTable((0.0, 60.0), {service.name: (service.rate,) for service in demand.services})
    result = checked(Day(few, rates), method="mig-serving-fast")
    assert (result.status, result.plan, result.lower_bound) == (Status.NO_SOLUTION, None, pytest.approx(5 / 60))


def test_one_more_gpu_for_some_seconds_saves_a_segment():
    tables = [ProfileTable(f"{size}g", A30.name, (Point(size, 1, 1, 10.0, 0.01),)) for size in (1, 2)]
    active = {"a": (1, 0, 1, 1), "b": (1, 0, 1, 0), "c": (1, 1, 1, 1), "d": (1, 1, 1, 0)}
    active |= {"x": (0, 1, 0, 0), "y": (0, 0, 0, 1)}
    services = tuple(Service(name, 1.0, 10.0, "2g" if name in "xy" else "1g") for name in active)
    rates = RateTable((0, 3600, 3603.6, 7200, 10800), {name: [10.0 * at for at in own] for name, own in active.items()})
    # c and d stay on one GPU, x is on a second one meanwhile; then a and b are created again, and y in their place.
    cost = 3 + 0.001 + 4 * 0.01
    result = checked(Day(Demand(services, tuple(tables), (GpuPool(A30),)), rates))
    assert result.lower_bound <= cost + 1e-9
    assert result.objective <= cost + 1e-9


def test_bounds_of_spans_count_half_steps():
    rates = RateTable(
        [900.0 * step for step in range(15)], {"a": [30.0] * 3 + [10.0] * 11, "b": [10.0] * 3 + [30.0] * 11}
    )
    demand = one_model({"a": 10.0, "b": 10.0}, {1: 10.0}, A30)
    result = checked(Day(demand, rates))
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(3.52)


def test_a_longer_day_is_planned_in_spans():
    demand = one_model({"a": 1.0, "b": 1.0}, THROUGHPUTS, A30)
    wave = tuple(300 + 250 * math.sin(step / 16 * 2 * math.pi) for step in range(16))
    other = tuple(300 + 250 * math.sin(step / 16 * 2 * math.pi + 2) for step in range(16))
    day = Day(demand, table(wave, other, hours=0.5))
    ahead, alone = checked(day, time_limit=20), checked(day, lookahead=False)
    assert ahead.objective <= alone.objective
    assert ahead.gap < 0.02
    assert ahead.plan.interrupted == 0


def test_what_no_day_can_be_planned_with():
    demand, rates = one_gpu(), table((1.0,), (1.0,))
    wrong = {"margin": -0.1, "creation_price": math.nan, "interruption_price": 1e9, "time_limit": 0}
    assert refused(deploy_day, demand, rates, **wrong) == [*wrong]
    with pytest.raises(InputError, match="the demand has no service 'c'"):
        deploy_day(demand, RateTable((0.0, 1.0), {"a": (1.0,), "b": (1.0,), "c": (1.0,)}))
    refused(deploy_day, demand, RateTable((0.0, 1.0), {"a": (1.0,)}), match="nothing about 'b'")
    refused(deploy_day, demand, "rates.csv", match="must be a RateTable")
    with pytest.raises(UnknownMethodError):
        deploy_day(demand, rates, "no-such")


def test_a_deterministic_run_can_be_repeated():
    day = Day(one_gpu(), table((200.0, 90.0, 200.0), (150.0, 150.0, 50.0)))
    one, two = (checked(day, deterministic=True, time_limit=5) for _ in range(2))
    assert one.plan == two.plan
