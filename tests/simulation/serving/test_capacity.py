"""Capacities under a promise: what they mean, what pooling gains, and the search for them."""

import dataclasses
import math

import numpy as np
import pytest
from documents import wrong_paths
from hypothesis import given, settings
from hypothesis import strategies as st

from mig_opt import Arrivals, Batching, Point, Promise, RateTable
from mig_opt.api.deploy.capacities import capacity_in_service
from mig_opt.simulation.serving.capacity import CAPACITY_ERROR, held_rate, late_alone, pool_capacity
from mig_opt.simulation.serving.queues import LATE_REQUESTS, REQUESTS
from mig_opt.simulation.serving.requests import worker_at
from mig_opt.simulation.serving.service import Router, ServedRequests, Worker

POINT = Point(1, 8, 2, 400.0, 0.04)


def servers(point: Point, slo: float, batching: Batching | None = None) -> tuple[Worker, ...]:
    return (worker_at(point, slo, batching or Batching()),)


def late_share(points, slo, rate, seed=1, requests=400_000, router=Router.LEAST_WORK) -> float:
    rng = np.random.default_rng(seed)
    seconds = requests / rate
    workers = [worker_at(point, slo, Batching()) for point in points]
    served = ServedRequests(workers, slo, (0.1 * seconds, seconds), router=router, rng=rng)
    served.run(Arrivals("poisson").stream("a", rate, seconds, rng))
    counts = served.counted.batches.sum(axis=0)
    return counts[LATE_REQUESTS] / counts[REQUESTS]


@pytest.mark.deep
@pytest.mark.parametrize("slo", [0.09, 0.15])
@pytest.mark.parametrize("segments", [1, 4])
def test_a_capacity_is_where_the_promise_ends(slo, segments):
    """With random numbers that the search does not know: kept at the capacity, broken a little beyond its reserve."""
    capacity = pool_capacity(POINT, slo, segments, Promise(0.99))
    assert 0.5 < capacity / (400 * segments) < 1
    assert late_share([POINT] * segments, slo, capacity * (1 - CAPACITY_ERROR), requests=4_000_000) <= 0.01
    assert late_share([POINT] * segments, slo, min(capacity * 1.04, 399.5 * segments)) > 0.01


def test_an_md1_queue_has_the_capacity_of_theory():
    """Batches of one and no wait: 99 % of the requests within 3 services up to a load of 0.47 (Crommelin)."""
    point, promise = Point(1, 1, 1, 1.0, 1.0), Promise(0.99, reserve=0.0)
    # Simulations allow for 0.8 of the late requests.
    low, high = 0.3, 0.7
    while high - low > 1e-6:
        middle = (low + high) / 2
        # P(wait <= 2) of M/D/1.
        terms = [1.0, middle * -1, (middle * 0) ** 2 / 2]
        share = (1 - middle) * sum(term * np.exp(middle * (2 - k)) for k, term in enumerate(terms))
        low, high = (middle, high) if share >= 0.992 else (low, middle)
    assert pool_capacity(point, 3.0, 1, promise) == pytest.approx(low, rel=0.015)


@pytest.mark.parametrize("share", [0.99, 0.999, 0.9999])
def test_capacities_below_a_tenth_of_the_throughput(share):
    """Of a queue that has room for one request: (1 - load) e^load of them find it within one service (Crommelin)."""
    late = 0.8 * (1 - share)
    low, high = 0.0, 1.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if 1 - (1 - middle) * np.exp(middle) <= late else (low, middle)
    found = pool_capacity(Point(1, 1, 1, 100.0, 0.01), 0.02, 1, Promise(share, reserve=0.0))
    assert found / 100 == pytest.approx(low, rel=0.1)


@pytest.mark.parametrize("kind", ["even", "poisson", "bursty"])
def test_batches_that_take_nearly_the_slo_have_some_capacity(kind):
    lengths = (0.55, 1.0)
    promise = Promise(0.99, Arrivals(kind))
    found = [pool_capacity(Point(1, 8, 1, 8 / (0.3 * one), 0.3 * one), 0.3, 1, promise) for one in lengths]
    assert found == sorted(found, reverse=True)
    assert 0 < found[-1] < 10


def test_a_promise_that_cannot_be_kept_alone_has_no_capacity():
    """Lognormal times of batches: 2.3 % of those that take half the SLO on average take longer than it."""
    varied = Promise(0.95, batching=Batching(patience=0.0, spread=0.4))
    point = Point(1, 1, 1, 10.0, 0.1)
    assert late_alone(servers(point, 0.2, varied.batching), 0.2, varied) == pytest.approx(0.0228, rel=0.1)
    assert pool_capacity(point, 0.2, 1, varied) > 0
    assert pool_capacity(point, 0.2, 1, dataclasses.replace(varied, share=0.98)) == 0.0
    assert late_alone(servers(Point(1, 8, 1, 10.0, 0.1), 0.2), 0.2, Promise()) == 1.0


def test_where_few_segments_hold_little_as_few_as_are_needed_count():
    point, promise = Point(1, 8, 1, 50.0, 0.16), Promise(0.999)
    for rate in (0.05, 8.0):
        needed = math.ceil(rate / capacity_in_service(servers(point, 0.2), 0.2, rate, promise, 0.0))
        few, enough = (pool_capacity(point, 0.2, count, promise) for count in (needed - 1, needed))
        assert few < rate <= enough


@pytest.mark.deep
@settings(max_examples=12)
@given(st.lists(st.tuples(st.sampled_from([1, 4, 16]), st.integers(1, 3), st.integers(10, 45)), min_size=2, max_size=5))
def test_segments_together_hold_the_sum_of_what_they_hold_alone(figures):
    """For sets of different segments: pooled, the promise is kept at the sum of their capacities."""
    points = [
        Point(1, batch, processes, batch * processes / (ms / 1000), ms / 1000) for batch, processes, ms in figures
    ]
    promise = Promise(0.99)
    total = sum(pool_capacity(point, 0.1, 1, promise) for point in points)
    if total > 0:
        workers = [worker_at(point, 0.1, Batching()) for point in points]
        assert held_rate(workers, 0.1, promise) >= total * 0.99


@pytest.mark.deep
def test_split_at_random_the_sum_is_kept_too():
    """Thinned Poisson arrivals are Poisson arrivals: what theory says of the sum."""
    points = [POINT, Point(1, 1, 1, 90.0, 0.011), Point(1, 16, 1, 380.0, 0.042)]
    promise = Promise(0.99)
    capacities = [pool_capacity(point, 0.1, 1, promise) for point in points]
    # Each gets its share of the requests: at most its capacity by the least ratio to its throughput.
    ratio = min(c / p.throughput for c, p in zip(capacities, points, strict=True))
    rate = ratio * sum(point.throughput for point in points)
    assert late_share(points, 0.1, rate, router=Router.RANDOM) <= 0.01


def test_a_service_gets_the_capacity_of_as_many_segments_as_it_needs():
    few, many = (capacity_in_service(servers(POINT, 0.1), 0.1, rate, Promise(), 0.0) for rate in (300.0, 2500.0))
    assert few == pytest.approx(pool_capacity(POINT, 0.1, 1, Promise()))
    assert many > few
    assert capacity_in_service(servers(POINT, 0.1), 0.1, 2500.0, Promise(), 399.9) == 0.0


@pytest.mark.parametrize(
    ("figures", "path"),
    [
        ({"share": 1.0}, "promise"),
        ({"share": 0.0}, "promise"),
        ({"share": float("nan")}, "promise"),
        ({"arrivals": "poisson"}, "arrivals"),
        ({"arrivals": Arrivals(rates=RateTable((0.0, 1.0), {"a": (1.0,)}))}, "arrivals"),
        ({"reserve": -0.1}, "reserve"),
    ],
)
def test_wrong_promises_are_refused(figures, path):
    assert wrong_paths(Promise, **figures) == [path]


def test_wrong_arguments_are_refused_all_at_once():
    assert wrong_paths(pool_capacity, "1g", 0.0, 0, 0.99) == ["slo", "segments", "point", "promise"]
