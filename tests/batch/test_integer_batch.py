"""Integer time, the horizon and lower bounds: exact where they can be, never above the truth."""

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest
import strategies
import tiny
from controlled import controlled
from documents import refused
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import A30, A100, any_gpu, batches, decisions, late_things, places, spread_batches, tiny_batches

from mig_opt import Batch, LiveInstance, OperationCosts, Schedule, Task, generate_batch, plan_stream, solve, validate
from mig_opt.batch.bounds import _Coverage, _Measured, best_lower_bound, lower_bounds
from mig_opt.batch.horizon import Horizon
from mig_opt.batch.integer_batch import IntegerBatch, Ticks, equal_within_resolution
from mig_opt.batch.timing import nested_schedule, timed_schedule
from mig_opt.gpu.model import GpuModel
from mig_opt.heuristics.batch.far import far
from mig_opt.rules.decimals import as_fraction

FREE = OperationCosts.zero(A30)

positive = st.floats(min_value=0, max_value=1e299, exclude_min=True)


def value(seconds: float) -> Fraction:
    """The number that a float stands for: the shortest decimal that reads as it."""
    return Fraction(Decimal(repr(seconds)))


def ticks_of(*seconds: float, operations: OperationCosts = FREE) -> Ticks:
    tasks = tuple(Task(f"t{i}", {1: time}) for i, time in enumerate(seconds))
    return Ticks.of(Batch(tasks, A30, operations=operations))


@given(
    st.lists(
        positive
        | st.integers(min_value=1, max_value=10**17).map(float)
        | st.tuples(st.integers(1, 10**16), st.integers(0, 12)).map(lambda time: time[0] / 10.0 ** time[1]),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from([1, 1000]),
)
@example([999999999999999.0], 1000)
@example([0.1 + 0.2], 1000)
@example([123456.789012345], 1000)
@example([0.5, 0.25], 1000)
def test_the_exact_tick_is_what_decimal_arithmetic_gives(seconds: list[float], times: int) -> None:
    digits = [value(time) for time in seconds]
    common = math.lcm(*(time.denominator for time in digits))
    decimals = next(number for number in range(400) if 10**number % common == 0)
    ticks = Ticks.for_times(seconds * times, 5e-324)
    assert ticks.exact
    assert (ticks.decimals, ticks.step) == (decimals, math.gcd(*(int(time * 10**decimals) for time in digits)))


def test_operations_and_initial_states_count_too() -> None:
    assert ticks_of(2.0, operations=A30.operation_costs).length == Fraction(1, 100)
    live = Batch((Task("a", {1: 2.0}),), A30, operations=FREE, initial=(LiveInstance(0, "4g.24gb", 0, 0.125),))
    assert Ticks.of(live).length == Fraction(1, 8)
    assert Ticks.of(tiny.BATCH).length == Fraction(1, 100)
    assert Ticks.of(tiny.BATCH).floor(tiny.OPTIMUM) == 634


def test_times_of_many_digits_are_exact_only_where_ticks_can_be_counted() -> None:
    assert ticks_of(0.1234567).exact
    assert ticks_of(1 / 3).exact  # it is the only time, so it is the tick
    assert not ticks_of(1 / 3, 1 / 7).exact
    assert ticks_of(1 / 3, 1 / 7).length <= Fraction(1, 10**7)
    assert ticks_of(2.26e-6, 1.29e-6).length == Fraction(1, 10**8)


def test_long_times_get_a_coarser_tick() -> None:
    lengths = [ticks_of(longest, 1 / 3).length for longest in (1.0, 1e3, 1e6, 1e9, 1e20)]
    assert lengths == sorted(set(lengths))
    # Exact microseconds of months are more ticks than a solver can count.
    assert not ticks_of(4_398_047.0, 0.000001).exact
    assert ticks_of(4_398_047.0, 1.0).exact
    assert ticks_of(1e20, 1.0).floor(1.0) == 0
    assert ticks_of(1e20, 1.0).floor(1e20) > 10**6


def test_all_rounding_of_a_hundred_tasks_stays_below_the_resolution() -> None:
    # 25 tasks of 30 s follow each other on each slice, between two operations.
    ticks = ticks_of(*(30 + 1 / (3 + index) for index in range(100)), operations=A30.operation_costs)
    assert not ticks.exact
    assert equal_within_resolution(750.0, float(750 - 27 * ticks.length))


def test_makespans_that_meet_a_bound() -> None:
    met = [(0.5, 0.5), (0.5, 0.4999996), (1000.0, 999.9991), (5.0, 6.0)]
    assert all(equal_within_resolution(*pair) for pair in met)
    assert not any(equal_within_resolution(*pair) for pair in [(0.5, 0.499999), (1000.0, 999.998)])


@given(batches(max_gpus=3))
def test_floor_is_exact_or_less_by_less_than_a_tick(batch: Batch) -> None:
    ticks, times = Ticks.of(batch), list(Horizon.of(batch).times())  # those that matter
    for seconds in times:
        below = value(seconds) - ticks.floor(seconds) * ticks.length
        assert 0 <= below < ticks.length
        assert below == 0 or not ticks.exact
    assert ticks.exact or not all((value(seconds) * 100).denominator == 1 for seconds in times)
    # An exact tick could not be longer.
    assert not ticks.exact or math.gcd(*map(ticks.floor, times)) == 1


@given(st.lists(positive, min_size=1, max_size=4))
@example([5e-324])
@example([9e299])
@example([1e300, 1e-300])
@example([9007199254740993.0, 0.1])
def test_any_floats_at_all(seconds: list[float]) -> None:
    ticks = ticks_of(*seconds)
    for time in seconds:
        assert 0 <= value(time) - ticks.floor(time) * ticks.length < ticks.length
        assert ticks.floor(time) <= 2**42


@given(st.fractions(min_value=0, max_value=10**15), st.integers(-3, 9), st.integers(1, 10**6))
@example(Fraction(1, 3), 9, 1)
@example(Fraction(0), 2, 1)
@example(Fraction(2**53 + 1), 0, 1)
def test_seconds_below_never_stands_for_more(count: Fraction, decimals: int, step: int) -> None:
    ticks = Ticks(decimals, step, exact=True)
    seconds = ticks.seconds_below(count)
    exact = count * ticks.length
    assert value(seconds) <= exact
    near = float(exact)
    assert seconds == near or (value(near) > exact and seconds == math.nextafter(near, 0))


def test_exact_makespans_meet_a_bound_less_than_a_tick_below() -> None:
    ticks = ticks_of(0.25, 1.5)
    assert ticks.length == Fraction(1, 4)
    assert ticks.meet(1.75, 1.51)
    assert not ticks.meet(1.75, 1.5)
    assert ticks.meet(1.75, 1.75)


@given(st.one_of(batches(any_gpu, max_gpus=3), spread_batches()))
def test_a_valid_schedule_ends_there_and_is_one_of_the_problem(batch: Batch) -> None:
    horizon = Horizon.of(batch)
    assert validate(batch, horizon.schedule).valid
    assert horizon.schedule.makespan == pytest.approx(horizon.seconds, rel=1e-9, abs=1e-9)
    problem = IntegerBatch(batch)
    assert len(problem.places_of(horizon.schedule)) == len(batch.tasks)
    if problem.ticks.exact:
        assert problem.ticks.of_sum(horizon.schedule.makespan).denominator == 1


def lost(batch: Batch, schedule: Schedule) -> set[str]:
    """The tasks that a schedule runs where they cannot end by the horizon."""
    index = {task.name: number for number, task in enumerate(batch.tasks)}
    reached = {
        (place.gpu, place.placement.shape, task) for place in Horizon.of(batch).places for task in place.durations
    }
    shape = batch.gpu.placement
    return {
        run.task
        for run in schedule.runs
        if (run.gpu, shape(run.profile, run.start).shape, index[run.task]) not in reached
    }


@given(decisions())
def test_no_shorter_schedule_is_lost(case: strategies.Decisions) -> None:
    schedule = timed_schedule(case.batch, case.instances, case.operations)
    horizon = Horizon.of(case.batch)
    # GPUs that nobody needs are left out.
    if schedule.makespan <= horizon.seconds and case.batch.gpus == horizon.batch.gpus:
        assert not lost(case.batch, schedule)


@given(spread_batches(), st.data())
def test_what_ends_later_changes_nothing(batch: Batch, data: st.DataObject) -> None:
    later = data.draw(late_things(batch))
    assert Ticks.of(later) == Ticks.of(batch)
    one, two = (Horizon.of(each) for each in (batch, later))
    assert one.seconds == two.seconds
    # GPUs that nobody needs may be left out of one of the two.
    first, second = (
        {(place.placement, place.free is None, *place.durations.items()) for place in each.places}
        for each in (one, two)
    )
    assert first == second


@pytest.mark.parametrize("far", [generate_batch(n, seed=n).replace(gpus=gpus) for n in (20, 200) for gpus in (1, 4)])
def test_it_is_not_far_from_the_best(far: Batch) -> None:
    assert Horizon.of(far).seconds <= 1.3 * solve(far, "far").makespan


def test_operations_that_take_long_are_few() -> None:
    costs = OperationCosts({1: 1000.0, 2: 900.0, 4: 40.0}, {1: 10.0, 2: 25e3, 4: 30e3})
    tasks = Task("a", {1: 75e3, 2: 0.05, 4: 2.8}), Task("b", {1: 0.6, 4: 0.01}), Task("c", {1: 0.8, 4: 0.18})
    assert Horizon.of(Batch(tasks, A30, operations=costs)).seconds == pytest.approx(42.99)


@pytest.mark.parametrize(("free", "sizes"), [(86400.0, (1, 2)), (5.0, (1, 2, 4))])
def test_sizes_that_nobody_waits_for(free: float, sizes: tuple[int, ...]) -> None:
    """The least work is on four slices, of which one is busy: for a day nobody waits, for some seconds everybody."""
    tasks = tuple(Task(f"t{at}", {1: 8.0, 2: 5.0, 4: 1.5}) for at in range(4))
    batch = Batch(tasks, A30, initial=(LiveInstance(0, "1g.6gb", 0, free),))
    assert tuple(Horizon.of(batch).in_reach.tasks[0].times) == sizes
    assert all(solve(batch, method, workers=1).makespan < 40 for method in ("far", "list", "lpt", "search"))


def test_tasks_that_can_run_nowhere_do_not_count() -> None:
    nowhere = Task("nowhere", {1: 1.0}, memory_gb=20.0)
    one = Batch((Task("a", {1: 2.5}), nowhere), A30)
    assert Horizon.of(one).seconds == 2.61
    assert Ticks.of(one.replace(tasks=(nowhere,))).exact


EPS = 2e-9
"""Schedules are rounded to nanoseconds, bounds are not."""


def by_name(batch: Batch) -> dict[str, float]:
    return {bound.name: bound.value for bound in lower_bounds(batch)}


def test_a_live_variant_saves_the_creation() -> None:
    variant = Batch((Task("a", {1: 1.0}),), A100, initial=(LiveInstance(0, "1g.5gb+me", 3),))
    assert by_name(variant)["critical task"] == 1.0
    large, own = A100.profile("1g.10gb"), []
    for gb in (8, 10):
        own.append(replace(large, name=f"1g.{gb}gb+me", id=90 + gb, memory_gb=gb, attributes=("me",)))
    media = replace(A100, name="media", aliases=(), profiles=(*A100.profiles, *own))
    assert solve(Batch((Task("a", {1: 1.0}),), media, initial=(LiveInstance(0, "1g.10gb+me", 2),))).makespan == 1.0
    small = Batch((Task("a", {1: 1.0}, 9.0),), media, initial=(LiveInstance(0, "1g.8gb+me", 2),))
    assert refused(solve, small, match="1g.8gb[+]me has too little memory for 'a'") == ["batch.initial[0]"]
    assert refused(plan_stream, [small]) == ["batches[0].initial[0]"]


def test_a_task_that_can_run_nowhere_is_an_error() -> None:
    batch = Batch((Task("a", {1: 1.0}), Task("b", {1: 1.0}, memory_gb=20)), A100)
    for bound in (lower_bounds, best_lower_bound):
        assert refused(bound, batch, match="task 'b' can run nowhere") == ["tasks[1]"]


def area(batch: Batch) -> Fraction:
    """Section 6.4 of the FAR paper: sum over tasks of min over sizes of size x time, over the number of slices."""
    work = Fraction(0)
    for task in batch.tasks:
        sizes = {placement.profile.compute_slices for placement, _ in batch.options(task)}
        work += min(size * as_fraction(task.times[size]) for size in sizes)
    return work / (batch.gpus * batch.gpu.compute_slices)


@pytest.mark.deep
@given(batches(max_gpus=3))
def test_the_area_is_the_formula_of_the_paper(batch: Batch) -> None:
    assert by_name(batch)["area"] == Ticks(0, 1, exact=True).seconds_below(area(batch))


@pytest.mark.deep
@given(batches(any_gpu, max_tasks=20, max_gpus=3))
def test_the_slice_load_is_at_least_the_area_and_with_empty_gpus_a_creation_more(batch: Batch) -> None:
    profiles = {placement.profile for task in batch.tasks for placement, _ in batch.options(task)}
    creation = 0.0 if batch.initial else min(batch.operations.of("create", profile) for profile in profiles)
    bounds = by_name(batch)
    # Weights are rounded to 10**-6.
    assert bounds["slice load"] >= (bounds["area"] + creation) * (1 - 1e-5) - 1e-12


@pytest.mark.deep
@given(tiny_batches)
def test_never_above_the_optimum(batch: Batch) -> None:
    makespan = solve(batch, "brute-force", workers=1).makespan
    for bound in lower_bounds(batch):
        assert 0 < bound.value <= makespan + EPS, bound


@pytest.mark.deep
@given(st.data(), any_gpu)
def test_any_weights_give_a_bound(data: st.DataObject, gpu: GpuModel) -> None:
    """Also without operation costs, where the load has nothing in reserve, and against the best of some schedules."""
    batch = data.draw(batches(st.just(gpu), initial=False, zero_costs=True))
    coverage = _Coverage.of(_Measured.of(batch))
    weights = tuple(data.draw(st.integers(0, 5)) for _ in coverage.orbits)
    total = sum(weight * len(orbit) for weight, orbit in zip(weights, coverage.orbits, strict=True))
    if not total:
        return
    load = Fraction(coverage.load(weights), total * batch.gpus) * coverage.ticks.length
    for chosen in data.draw(st.lists(places(batch), min_size=1, max_size=3)):
        assert float(load) <= nested_schedule(batch, chosen).makespan + EPS


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 1e6, 1e12])
@pytest.mark.parametrize("costs", [OperationCosts.zero, lambda gpu: gpu.operation_costs])
def test_times_of_any_magnitude(scale: float, costs: Callable[[GpuModel], OperationCosts]) -> None:
    tasks = tuple(Task(f"t{n}", {size: scale * (3 + n) / (size + n / 3) for size in A100.sizes}) for n in range(6))
    batch = Batch(tasks, A100, operations=costs(A100))
    makespan = controlled(far, batch).objective
    assert best_lower_bound(batch) <= makespan * (1 + 1e-12) + EPS
    if not any(batch.operations.create.values()):  # else the many creations of FAR may cost more than the tasks
        assert best_lower_bound(batch) >= makespan / 3 - 2e-8
