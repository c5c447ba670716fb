"""Capacity of one of the segments that serve a whole service: of as few as keep the promise together."""

from __future__ import annotations

import math

from mig_opt.serving.profile_table import Point
from mig_opt.simulation.serving.capacity import LONG, MOST_POOLED, SHORT, Promise, keeps_promise, pool_capacity
from mig_opt.simulation.serving.capacity_cache import kept
from mig_opt.simulation.serving.requests import worker_at

LITTLE = 1 / 3
"""Share of the throughput that is little capacity: there, one more segment may hold many times as much."""
_ANY_NUMBER = 1e9
"""More segments than any deployment has."""


def capacity_in_service(point: Point, slo: float, rate: float, promise: Promise, above: float = 0.0) -> float:
    """Return the capacity of one of the segments that serve a whole service, if all are alike.

    It is that of as few segments as keep the promise together at the rate of the service; 0 if it is at most ``above``,
    since smaller ones are of no interest.
    """
    return _capacity_in_service(point, slo, rate, promise, above)


@kept("service")
def _capacity_in_service(point: Point, slo: float, rate: float, promise: Promise, above: float) -> float:
    segments = _needed(rate, point.throughput)
    while True:
        if above > 0:
            # Cheaper than the capacity: whether it is of interest, also to as many segments as that would take.
            each = min(above, point.throughput)
            pooled = min(segments if each > LITTLE * point.throughput else _needed(rate, each), MOST_POOLED)
            workers = [worker_at(point, slo, promise.batching.patience)] * pooled
            if not all(keeps_promise(workers, slo, each * pooled, promise, length) for length in (SHORT, LONG)):
                return 0.0
        total = pool_capacity(point, slo, segments, promise)
        if total >= rate or segments > MOST_POOLED or total == 0:
            capacity = total / segments
            break
        if total < LITTLE * rate:
            capacity = _capacity_of_more(point, slo, rate, promise, segments)
            break
        # With more segments each has more capacity, so that so many are enough.
        segments = max(math.ceil(rate / total * segments), segments + 1)
    return capacity if capacity > above else 0.0


def _capacity_of_more(point: Point, slo: float, rate: float, promise: Promise, few: int) -> float:
    """Return the capacity of one of as few segments as keep the promise, where a few hold little of the rate."""

    def held(segments: int) -> float:
        return pool_capacity(point, slo, segments, promise)

    many = MOST_POOLED
    if few >= many or held(many) < rate:
        return held(many) / many
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if held(middle) >= rate else (middle, many)
    # One less has to be too few by the sum of their capacities, too.
    return min(held(many) / many, rate / few * (1 - 1e-6))


def _needed(rate: float, each: float) -> int:
    """Return how many segments of some requests per second it takes."""
    return max(math.ceil(min(rate / each * (1 - 1e-9), _ANY_NUMBER)), 1)
