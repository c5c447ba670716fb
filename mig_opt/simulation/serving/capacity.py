"""Capacity of segments under a promise: the greatest rate at which so large a share of the requests is in time.

Queues need room. A segment that answers 1,000 requests per second when its batches are full may keep a promise for 99 %
of its requests up to 850; four of them that share their requests up to 920 each, since one of them is free more often
(pooling). A capacity depends on the segments, the SLO, the arrivals and the promise alone, so it is simulated once and
kept (:mod:`mig_opt.simulation.serving.capacity_cache`): a bisection of the rate, at each step with the same random
numbers.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from mig_opt.errors import InputError, Problem
from mig_opt.rules import wrong_number, wrong_share, wrong_type
from mig_opt.serving.arrivals import ArrivalKind, Arrivals
from mig_opt.serving.profile_table import Point
from mig_opt.simulation.serving.capacity_cache import remembered
from mig_opt.simulation.serving.queues import LATE_REQUESTS, REQUESTS, Floats
from mig_opt.simulation.serving.requests import Batching, worker_at
from mig_opt.simulation.serving.service import Router, ServedRequests, Worker

CAPACITY_ERROR = 0.005
"""Share of a capacity up to which a bisection goes; the simulations at its steps vary by about as much."""

_MARGIN = 0.8
"""Share of the late requests that are allowed up to which a capacity goes, since simulations vary."""
_SHORT, _LONG = (30_000, 50), (300_000, 200)
"""Requests and bursts of the simulations that find about where a capacity is, and of those that find it."""
_LEAST_SLACK, _FIRST_STEPS, _WIDER = 1e-3, 6, 1.2
_WARM_UP = 0.1
_MOST_POOLED = 16
"""Segments that are simulated together; more gain hardly anything."""


@dataclass(frozen=True)
class Promise:
    """A share of the requests of each service that is to be in time, and how requests come and are served.

    Attributes
    ----------
    share : float
        Share of the requests, above 0 and below 1, such as 0.99.
    arrivals : Arrivals
        Pattern of arrivals at the rates of the services.
    router : Router
        Where requests go.
    batching : Batching
        How batches are formed and how long they take.
    reserve : float
        Share by which rates may be higher: the promise has to be kept then, too. Without any, a queue near its limit
        breaks its promise for minutes whenever a few more requests than usual come.

    Raises
    ------
    InputError
        If the share is 0 or 1 or outside, or the arrivals are rates over time or recorded.
    """

    share: float = 0.99
    arrivals: Arrivals = field(default_factory=Arrivals)
    router: Router = Router.LEAST_WORK
    batching: Batching = field(default_factory=Batching)
    reserve: float = 0.01

    def __post_init__(self) -> None:
        wanted = "a share of the requests above 0 and below 1, such as 0.99"
        problems = list(wrong_number("promise", self.share, wanted, above=0))
        if not problems and not self.share < 1:
            problems.append(Problem("promise", f"must be {wanted}, is {self.share:g}: no queue keeps such a promise"))
        if not isinstance(self.arrivals, Arrivals):
            problems.append(wrong_type("arrivals", self.arrivals, "an Arrivals"))
        elif self.arrivals.end is not None:
            message = "a promise is for the rates of the services; leave out rates over time and recorded requests"
            problems.append(Problem("arrivals", message))
        problems += wrong_share("reserve", self.reserve)
        if problems:
            raise InputError(problems)

    @property
    def allowed(self) -> float:
        """Share of the requests that may be late."""
        return 1 - self.share


@dataclass(frozen=True, slots=True)
class Capacity:
    """Capacity of a segment of some service.

    Attributes
    ----------
    service : str
        Name of the service.
    gpu, profile : str
        Names of the kind of GPU and of the instance.
    batch, processes : int
        Of the segment.
    throughput : float
        Requests per second that its full batches answer.
    capacity : float
        Requests per second up to which it keeps the promise, as one of the segments of its service.
    """

    service: str
    gpu: str
    profile: str
    batch: int
    processes: int
    throughput: float
    capacity: float


def pool_capacity(point: Point, slo: float, segments: int, promise: Promise) -> float:
    """Return the requests per second up to which some equal segments of one service keep a promise together.

    Parameters
    ----------
    point : Point
        Batch size, processes, throughput and latency of each segment.
    slo : float
        Seconds.
    segments : int
        How many share the requests.
    promise : Promise
        The promise, the arrivals, and how batches are formed.

    Returns
    -------
    float
        At most the throughput of all; 0 if the promise cannot be kept at any rate. It may be wrong by
        half a percent.

    Examples
    --------
    >>> point = Point(1, 8, 2, 400.0, 0.04)
    >>> one, four = (pool_capacity(point, 0.1, segments, Promise(0.99)) for segments in (1, 4))
    >>> 0.7 < one / 400 < four / 1600 < 1
    True
    """
    pooled = min(segments, _MOST_POOLED)
    # Time counts in SLOs, so that services that differ in nothing else share what was simulated.
    scaled = Point(1, point.batch, point.processes, point.throughput * slo, point.latency / slo)
    arrivals = dataclasses.replace(promise.arrivals, burst_seconds=promise.arrivals.burst_seconds / slo)
    return _scaled_capacity(scaled, pooled, dataclasses.replace(promise, arrivals=arrivals)) / slo / pooled * segments


@lru_cache(maxsize=100_000)
def _scaled_capacity(point: Point, segments: int, promise: Promise) -> float:
    workers = [worker_at(point, 1.0, promise.batching.patience)] * segments
    return remembered(("pool", point, segments, promise), lambda: _held_rate(workers, 1.0, promise))


def held_rate(workers: Sequence[Worker], slo: float, promise: Promise) -> float:
    """Return the requests per second up to which segments of one service keep a promise together.

    It is found once and kept.

    Parameters
    ----------
    workers : sequence of Worker
        The segments, in any order.
    slo : float
        Seconds.
    promise : Promise
        The promise, the arrivals, and how batches are formed.

    Returns
    -------
    float
        At most the throughput of all; 0 if the promise cannot be kept at any rate.
    """
    return _kept_held_rate(_ordered(workers), slo, promise)


@lru_cache(maxsize=10_000)
def _kept_held_rate(workers: tuple[Worker, ...], slo: float, promise: Promise) -> float:
    return remembered(("held", _digest(workers), slo, promise), lambda: _held_rate(workers, slo, promise))


def _held_rate(workers: Sequence[Worker], slo: float, promise: Promise) -> float:
    most = sum(worker.throughput for worker in workers)
    if min(worker.answer[-1] for worker in workers) > slo:
        return 0.0

    def kept(slack: float, length: tuple[int, int]) -> bool:
        return keeps_promise(workers, slo, most * (1 - slack), promise, length)

    # Nobody keeps a promise for long beyond the throughput, which the reserve would need.
    slack = promise.reserve / (1 + promise.reserve)
    if kept(slack, _LONG):
        return most * (1 - slack)
    # First roughly, by ratios of the slack: what is lacking at a load of 99 % is as much finer than at one of 50 %.
    low, high = _LEAST_SLACK, 1.0
    for _ in range(_FIRST_STEPS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if kept(middle, _SHORT) else (middle, high)
    # Then thoroughly, from there.
    if kept(high, _LONG):
        while (low := high / _WIDER) > _LEAST_SLACK and kept(low, _LONG):
            high = low
    else:
        while (high := (low := high) * _WIDER) < 1 and not kept(high, _LONG):
            pass
        if high >= 1:
            return 0.0
    while high - low > CAPACITY_ERROR * (1 - high):
        middle = (low + high) / 2
        low, high = (low, middle) if kept(middle, _LONG) else (middle, high)
    return most * (1 - high)


def keeps_promise(
    workers: Sequence[Worker], slo: float, rate: float, promise: Promise, length: tuple[int, int] = _LONG
) -> bool:
    """Return True if segments of one service keep a promise at a rate, with its reserve and a margin.

    Parameters
    ----------
    workers : sequence of Worker
        The segments.
    slo, rate : float
        Seconds, and requests per second.
    promise : Promise
        The promise, the arrivals, and how batches are formed.
    length : tuple of int
        Requests, and bursts, of the simulation, which has the same random numbers each time.

    Returns
    -------
    bool
        True if at most 0.8 of the late requests that are allowed are late.
    """
    rng = np.random.default_rng(20_241)
    requests, bursts = length
    arrivals, rate = promise.arrivals, rate * (1 + promise.reserve)
    seconds = requests / rate
    if arrivals.kind == ArrivalKind.BURSTY:
        seconds = max(seconds, bursts * arrivals.burst_seconds / arrivals.burst_share)
    # The same points each time, made once where that is possible.
    at_random = arrivals.kind == ArrivalKind.POISSON
    stream = [_poisson(requests) / rate] if at_random else arrivals.stream("", rate, seconds, rng)
    return _late_share(workers, slo, promise, seconds, stream=stream, rng=rng) <= promise.allowed * _MARGIN


def late_share(
    workers: Sequence[Worker], slo: float, rate: float, promise: Promise, *, seconds: float, seed: int
) -> float:
    """Return the share of late requests at the segments of one service, simulated once and kept.

    Parameters
    ----------
    workers : sequence of Worker
        The segments, in any order.
    slo, rate : float
        Seconds, and requests per second; the reserve of the promise does not count.
    promise : Promise
        The arrivals, and how batches are formed.
    seconds : float
        How long requests arrive. The first tenth does not count.
    seed : int
        Seed of the random numbers, which are others for each SLO and rate.

    Returns
    -------
    float
        From 0 to 1.
    """
    return _kept_late_share(_ordered(workers), slo, rate, promise, seconds=seconds, seed=seed)


@lru_cache(maxsize=10_000)
def _kept_late_share(
    workers: tuple[Worker, ...], slo: float, rate: float, promise: Promise, *, seconds: float, seed: int
) -> float:
    def simulate() -> float:
        rng = np.random.default_rng([seed, zlib.crc32(repr((slo, rate)).encode())])
        stream = promise.arrivals.stream("", rate, seconds, rng)
        return _late_share(workers, slo, promise, seconds, stream=stream, rng=rng)

    return remembered(("late", _digest(workers), slo, rate, promise, seconds, seed), simulate)


def _late_share(
    workers: Sequence[Worker],
    slo: float,
    promise: Promise,
    seconds: float,
    *,
    stream: Iterable[Floats],
    rng: np.random.Generator,
) -> float:
    served = ServedRequests(
        workers,
        slo,
        (_WARM_UP * seconds, seconds),
        router=promise.router,
        spread=promise.batching.spread,
        rng=rng,
        quantiles=False,
    )
    served.run(stream)
    counts = served.counted.batches.sum(axis=0)
    return float(counts[LATE_REQUESTS] / counts[REQUESTS]) if counts[REQUESTS] else 0.0


def _ordered(workers: Iterable[Worker]) -> tuple[Worker, ...]:
    """Return segments in an order that does not depend on where they are."""
    return tuple(sorted(workers, key=lambda one: (one.throughput, one.batch, one.processes, one.answer, one.busy)))


def _digest(workers: tuple[Worker, ...]) -> str:
    """Return a short text that tells segments from others."""
    return hashlib.sha256(repr(workers).encode()).hexdigest()


@lru_cache(maxsize=4)
def _poisson(requests: int) -> Floats:
    """Return so many random points of rate 1."""
    points: Floats = np.cumsum(np.random.default_rng(20_242).standard_exponential(requests))
    return points


def capacity_in_service(point: Point, slo: float, rate: float, promise: Promise, above: float = 0.0) -> float:
    """Return the capacity of one of the segments that serve a whole service, if all are alike.

    Parameters
    ----------
    point : Point
        Batch size, processes, throughput and latency of each segment.
    slo, rate : float
        Seconds, and requests per second of the service.
    promise : Promise
        The promise, the arrivals, and how batches are formed.
    above : float
        Capacities up to here are of no interest.

    Returns
    -------
    float
        Requests per second, for as few segments as keep the promise together; 0 if that is at most ``above``.
    """
    return _kept_capacity(point, slo, rate, promise, above)


@lru_cache(maxsize=100_000)
def _kept_capacity(point: Point, slo: float, rate: float, promise: Promise, above: float) -> float:
    key = "service", point, slo, rate, promise, above
    return remembered(key, lambda: _capacity_in_service(point, slo, rate, promise, above))


def _capacity_in_service(point: Point, slo: float, rate: float, promise: Promise, above: float) -> float:
    segments = max(math.ceil(rate / point.throughput * (1 - 1e-9)), 1)
    while True:
        pooled = min(segments, _MOST_POOLED)
        workers = [worker_at(point, slo, promise.batching.patience)] * pooled
        # Cheaper than the capacity: whether it is of interest.
        least = min(above, point.throughput) * pooled
        if above > 0 and not all(keeps_promise(workers, slo, least, promise, length) for length in (_SHORT, _LONG)):
            return 0.0
        capacity = pool_capacity(point, slo, segments, promise) / segments
        if capacity * segments >= rate or pooled < segments or capacity == 0:
            return capacity if capacity > above else 0.0
        # With more segments each has more capacity, so that so many are enough.
        segments = max(math.ceil(rate / capacity), segments + 1)
