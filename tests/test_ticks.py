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

from mig_opt.batch import Batch, LiveInstance, Task
from mig_opt.gpu import OperationCosts, get_gpu
from mig_opt.ticks import RESOLUTION, Ticks

A30 = get_gpu("A30")
FREE = OperationCosts.zero(A30)

positive = st.floats(min_value=0, exclude_min=True, allow_infinity=False)


def value(seconds: float) -> Fraction:
    """The number that a float stands for: the shortest decimal that reads as it."""
    return Fraction(Decimal(repr(seconds)))


def ticks_of(*seconds: float, operations: OperationCosts = FREE) -> Ticks:
    return Ticks.of(
        Batch(tuple(Task(f"t{i}", {1: time}) for i, time in enumerate(seconds)), A30, operations=operations)
    )


def times_of(batch: Batch) -> list[float]:
    operations = [*batch.operations.create.values(), *batch.operations.destroy.values()]
    return [*operations, *(t for task in batch.tasks for t in task.times.values()), *(e.free for e in batch.initial)]


@pytest.mark.parametrize(
    ("seconds", "length"),
    [
        ((0.1,), Fraction(1, 10)),
        ((0.1, 0.2, 0.3), Fraction(1, 10)),
        ((0.2, 0.4), Fraction(1, 5)),
        ((3.0, 4.5), Fraction(3, 2)),
        ((3.0, 6.0), Fraction(3)),
        ((7.0,), Fraction(7)),
        ((0.000001,), Fraction(1, 10**6)),
        ((1.25, 0.000002), Fraction(1, 500_000)),
        ((1e3, 2.5e3), Fraction(500)),
    ],
)
def test_the_longest_exact_tick(seconds: tuple[float, ...], length: Fraction) -> None:
    ticks = ticks_of(*seconds)
    assert ticks.exact
    assert ticks.length == length
    assert [ticks.floor(time) * length for time in seconds] == [value(time) for time in seconds]


def test_operations_and_initial_states_count_too(tiny_batch: Batch) -> None:
    assert ticks_of(2.0, operations=A30.operation_costs).length == Fraction(1, 100)
    live = Batch((Task("a", {1: 2.0}),), A30, operations=FREE, initial=(LiveInstance(0, "1g.6gb", 0, 0.125),))
    assert Ticks.of(live).length == Fraction(1, 8)
    assert Ticks.of(tiny_batch).length == Fraction(1, 100)
    assert Ticks.of(tiny_batch).floor(tiny.OPTIMUM) == 634


def test_more_than_six_decimals_are_not_taken_as_exact() -> None:
    # Nanoseconds instead.
    assert ticks_of(1 / 3) == Ticks(9, 1, exact=False)
    assert ticks_of(0.1234567) == Ticks(9, 1, exact=False)
    assert ticks_of(0.123456).exact


def test_long_times_get_a_coarser_tick() -> None:
    # 2**42 ticks at most: 4398 s in nanoseconds, and 4398046 s in microseconds.
    assert ticks_of(4398.0, 1 / 3).decimals == 8
    assert ticks_of(4397.0, 1 / 3).decimals == 9
    assert ticks_of(4_398_046.0, 0.000001) == Ticks(6, 1, exact=True)
    assert ticks_of(4_398_047.0, 0.000001) == Ticks(5, 1, exact=False)
    assert ticks_of(1e20, 1.0) == Ticks(-8, 1, exact=False)
    assert ticks_of(1e20, 1.0).floor(1.0) == 0
    assert ticks_of(1e20, 1.0).floor(1e20) == 10**12


def test_all_rounding_of_a_hundred_tasks_stays_below_the_resolution() -> None:
    ticks = ticks_of(*(30 + 1 / (3 + index) for index in range(100)))
    assert not ticks.exact
    # Every task, and an operation before and after each of them, may lose almost a tick.
    assert 300 * ticks.length < RESOLUTION


@given(batches(max_gpus=3))
def test_floor_is_exact_or_less_by_less_than_a_tick(batch: Batch) -> None:
    ticks = Ticks.of(batch)
    for seconds in times_of(batch):
        below = value(seconds) - ticks.floor(seconds) * ticks.length
        assert 0 <= below < ticks.length
        assert below == 0 or not ticks.exact
    assert ticks.exact == all((value(seconds) * 10**6).denominator == 1 for seconds in times_of(batch))


@given(batches())
def test_an_exact_tick_could_not_be_longer(batch: Batch) -> None:
    ticks = Ticks.of(batch)
    if ticks.exact:
        assert math.gcd(*(ticks.floor(seconds) for seconds in times_of(batch))) == 1


@given(st.lists(positive, min_size=1, max_size=4))
@example([5e-324])
@example([1.7e308])
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


@given(st.integers(0, 2**42), st.integers(0, 9))
def test_whole_ticks_read_as_their_decimal(count: int, decimals: int) -> None:
    assert Ticks(decimals, 1, exact=True).seconds_below(count) == float(Decimal(count).scaleb(-decimals))
