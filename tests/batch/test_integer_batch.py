"""Integer time: exact where it can be, never above the truth elsewhere."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest
import tiny
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import batches

from mig_opt.batch.batch import Batch, LiveInstance, Task
from mig_opt.batch.horizon import Horizon
from mig_opt.batch.integer_batch import Ticks, equal_within_resolution
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.gpu.model import OperationCosts

A30 = get_gpu("A30")
FREE = OperationCosts.zero(A30)

positive = st.floats(min_value=0, max_value=1e299, exclude_min=True)


def value(seconds: float) -> Fraction:
    """The number that a float stands for: the shortest decimal that reads as it."""
    return Fraction(Decimal(repr(seconds)))


def ticks_of(*seconds: float, operations: OperationCosts = FREE) -> Ticks:
    return Ticks.of(
        Batch(tuple(Task(f"t{i}", {1: time}) for i, time in enumerate(seconds)), A30, operations=operations)
    )


def times_of(batch: Batch) -> list[float]:
    """Those that matter."""
    return list(Horizon.of(batch).times())


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


def test_operations_and_initial_states_count_too(tiny_batch: Batch) -> None:
    assert ticks_of(2.0, operations=A30.operation_costs).length == Fraction(1, 100)
    live = Batch((Task("a", {1: 2.0}),), A30, operations=FREE, initial=(LiveInstance(0, "4g.24gb", 0, 0.125),))
    assert Ticks.of(live).length == Fraction(1, 8)
    assert Ticks.of(tiny_batch).length == Fraction(1, 100)
    assert Ticks.of(tiny_batch).floor(tiny.OPTIMUM) == 634


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


@pytest.mark.parametrize(
    ("makespan", "bound", "equal"),
    [
        (0.5, 0.5, True),
        (0.5, 0.4999996, True),
        (0.5, 0.499999, False),
        (1000.0, 999.9991, True),
        (1000.0, 999.998, False),
        (5.0, 6.0, True),
    ],
)
def test_makespans_that_meet_a_bound(makespan: float, bound: float, equal: bool) -> None:
    assert equal_within_resolution(makespan, bound) == equal


@given(batches(max_gpus=3))
def test_floor_is_exact_or_less_by_less_than_a_tick(batch: Batch) -> None:
    ticks = Ticks.of(batch)
    for seconds in times_of(batch):
        below = value(seconds) - ticks.floor(seconds) * ticks.length
        assert 0 <= below < ticks.length
        assert below == 0 or not ticks.exact
    if all((value(seconds) * 100).denominator == 1 for seconds in times_of(batch)):
        assert ticks.exact


@given(batches())
def test_an_exact_tick_could_not_be_longer(batch: Batch) -> None:
    ticks = Ticks.of(batch)
    if ticks.exact:
        assert math.gcd(*(ticks.floor(seconds) for seconds in times_of(batch))) == 1


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
