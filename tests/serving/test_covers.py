"""Cheap sets of instances for each service."""

import itertools
import math
import tracemalloc
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from demands import A30, A100, demands
from hypothesis import given, settings
from hypothesis import strategies as st

from mig_opt import Demand
from mig_opt.serving.covers import Covers, InstanceTypes
from mig_opt.serving.demand import ENOUGH


def covers_of(demand: Demand) -> tuple[InstanceTypes, Covers]:
    kinds = InstanceTypes.of(demand)
    return kinds, Covers.of(demand, kinds)


def cheapest_by_trial(covers: Covers, row: int, prices: np.ndarray) -> float:
    """The least price of a cover of one service, by trying every number of each kind."""
    shares = covers.shares[row]
    able = [kind for kind in range(len(prices)) if shares[kind] > 0]
    most = [max(math.ceil(1 / shares[kind]), covers.replicas[row]) for kind in able]
    return min(
        sum(count * prices[kind] for count, kind in zip(counts, able, strict=True))
        for counts in itertools.product(*(range(number + 1) for number in most))
        if sum(count * shares[kind] for count, kind in zip(counts, able, strict=True)) >= ENOUGH
        and sum(counts) >= covers.replicas[row]
    )


@given(demands(gpus=(A100, A30)), st.data())
@settings(max_examples=60, deadline=None)
def test_covers_serve_and_nothing_is_cheaper_than_least(demand, data):
    """Against trying everything; rates are small enough for that."""
    services = (replace(service, rate=min(service.rate, 12.0)) for service in demand.services)
    demand = demand.replace(services=tuple(services))
    kinds, covers = covers_of(demand)
    prices = np.array(data.draw(st.lists(st.integers(0, 20), min_size=kinds.count, max_size=kinds.count))) / 20
    counts = covers.cheapest(prices)
    assert (covers.given(counts) >= ENOUGH).all()
    assert (counts.sum(axis=1) >= covers.replicas).all()
    assert (counts[covers.shares < 0] == 0).all()
    least = covers.least(prices)
    for row in range(len(demand.services)):
        if np.prod(np.ceil(1 / covers.shares[row][covers.shares[row] > 0]) + 1) < 3000:
            best = cheapest_by_trial(covers, row, prices)
            assert least[row] <= best + 1e-9
            assert counts[row] @ prices >= best - 1e-9


@st.composite
def wild_covers(draw: st.DrawFn) -> tuple[list[float], float, Covers]:
    """One service with throughputs and a rate of any magnitude, often just at or just beside a sum of throughputs."""
    scale = draw(st.sampled_from([1e-9, 1.0, 1e9]))
    figure = st.one_of(
        st.integers(1, 9).map(float), st.floats(0.5, 3), st.integers(-2, 13).map(lambda n: 10.0**n), st.just(0.0)
    )
    throughput = [scale * value for value in draw(st.lists(figure, min_size=1, max_size=5))]
    if not any(throughput):
        throughput[0] = scale
    able = [value for value in throughput if value]
    rate = sum(draw(st.lists(st.sampled_from(able), min_size=1, max_size=6)))
    rate *= draw(st.sampled_from([1.0, 1.0, 1 + 1e-12, 1 - 1e-10, 1 + 1e-8, 1 / 3, 1e-6, 1e-12]))
    replicas = draw(st.sampled_from([1, 1, 2, 9]))
    return throughput, rate, Covers(np.array([throughput]), np.array([rate]), np.array([replicas]))


@given(wild_covers(), st.data())
@settings(max_examples=200, deadline=None)
def test_throughputs_of_any_magnitude_against_exact_arithmetic(drawn, data):
    throughput, rate, covers = drawn
    price, kinds = st.sampled_from([0.0, 1e-22, 1e-12, 1 / 7, 1 / 3, 0.5, 1.0]), len(throughput)
    prices = data.draw(st.lists(price, min_size=kinds, max_size=kinds))
    needed = Fraction(rate) * (1 - Fraction(1, 10**9))
    nothing = Fraction(0)

    def covered(counts: Iterable[int]) -> bool:
        given = sum((Fraction(value) * int(count) for value, count in zip(throughput, counts, strict=True)), nothing)
        none = all(value or not count for value, count in zip(throughput, counts, strict=True))
        return none and given >= needed and sum(counts) >= covers.replicas[0]

    assert covered(covers.cheapest(np.array(prices))[0])
    most = [
        max(math.ceil(Fraction(rate) / Fraction(value)), int(covers.replicas[0])) if value else 0
        for value in throughput
    ]
    if math.prod(number + 1 for number in most) < 2000:
        best = min(
            sum((Fraction(price) * count for price, count in zip(prices, counts, strict=True)), nothing)
            for counts in itertools.product(*(range(number + 1) for number in most))
            if covered(counts)
        )
        assert covers.least(np.array(prices))[0] <= float(best) * (1 + 1e-12)


def test_what_costs_nothing_is_not_taken_by_the_million():
    """A 1g that is free and answers a millionth of the rate: one 2g does what a million of them would."""
    covers = Covers(np.array([[1.0, 1e-6]]), np.array([1.0]), np.array([1]))
    assert covers.cheapest(np.array([0.25, 0.0])).tolist() == [[1, 0]]


def test_many_kinds_and_services_are_looked_at_a_few_at_a_time():
    """All at once would be arrays of 78 MB."""
    covers = Covers(np.ones((10_000, 16)), np.full(10_000, 2.0), np.ones(10_000, dtype=np.int64))
    tracemalloc.start()
    assert covers.least(np.full(16, 0.1)) == pytest.approx(0.2)
    assert tracemalloc.get_traced_memory()[1] < 150e6
    tracemalloc.stop()
