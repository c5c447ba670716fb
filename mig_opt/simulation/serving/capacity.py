"""Capacity of segments under a promise: the greatest rate at which the promised share of the requests is in time.

Queues need room. A segment that answers 1,000 requests per second when its batches are full may keep a promise for 99 %
of its requests up to 850; four of them that share their requests up to 920 each, since one of them is free more often
(pooling). A capacity depends on the segments, the SLO, the arrivals and the promise alone, so it is simulated once and
kept (:mod:`mig_opt.simulation.serving.capacity_cache`): a bisection of the rate, at each step with the same random
numbers.
"""

from __future__ import annotations

import dataclasses
import math
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from mig_opt.errors import Problem, raise_any
from mig_opt.rules import wrong_class, wrong_integer, wrong_number, wrong_share, wrong_type
from mig_opt.serving.arrivals import ArrivalKind, Arrivals
from mig_opt.serving.profile_table import Point
from mig_opt.simulation.serving.capacity_cache import kept
from mig_opt.simulation.serving.requests import (
    SERVERS,
    Batching,
    Server,
    separated,
    served_by,
    setting_problems,
    worker_at,
)
from mig_opt.simulation.serving.service import LATE, LATE_REQUESTS, REQUESTS, Floats, Router

CAPACITY_ERROR = 0.005
"""Share of a capacity up to which a bisection goes; the simulations at its steps vary by about as much."""

MARGIN = 0.8
"""Share of the late requests that are allowed up to which a capacity goes, since simulations vary."""
SHORT, LONG = (30_000, 50), (300_000, 200)
"""Requests and bursts of the simulations that find about where a capacity is, and of those that find it."""
_MOST_REQUESTS = 20_000_000
"""Requests of a simulation with bursts: at hundreds of thousands a second it has fewer of them."""
_LEAST_SLACK, _FIRST_STEPS, _WIDER, _LIGHTER = 1e-3, 6, 1.2, 4
_WARM_UP, _SEED = 0.1, 20_241
MOST_POOLED = 16
"""Segments that are simulated together; more gain hardly anything."""
_FEW, _APART, _MAX_KINDS_APART = 1 / 8, 8, 4_000_000
"""Simulation of requests that hardly ever meet: the most that meet, as a share of those that may be late, the SLOs from
one to the next, and the most of them. With longer times between them seconds are too large to tell latencies."""


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
        How batches are formed and how long they take, and whether processes share a queue.
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
        problems += wrong_class("batching", self.batching, Batching)
        raise_any([*problems, *setting_problems(self.router, None, None, 0)])

    def __str__(self) -> str:
        return f"{100 * self.share:.12g} % of the requests of each service in time, {self.arrivals.kind}"

    @property
    def server(self) -> str:
        """The server for which it is made: its name and what else is assumed of it."""
        batching = self.batching
        kind = Router(self.router), Batching(batching.patience, separate=batching.separate, look=batching.look)
        named = next((name for name, one in SERVERS.items() if one == kind), None)
        plain = [str(self.router), *(["a queue for each process"] if batching.separate else [])]
        plain += [f"patience {batching.patience:g}", *([f"look {batching.look:g} s"] if batching.look else [])]
        facts = [named] if named else plain
        facts += [] if batching.delay is None else [f"delay {batching.delay:g} s"]
        facts += [f"overhead {batching.overhead:g} s"] if batching.overhead else []
        return ", ".join(facts)

    @property
    def allowed(self) -> float:
        """Share of the requests that may be late."""
        return 1 - self.share


def as_promise(promise: Promise | float) -> Promise:
    """Return a promise; a number stands for that share of requests that come at random."""
    return promise if isinstance(promise, Promise) else Promise(promise)


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
        half a percent, and by more where it is a small part of the throughput.

    Raises
    ------
    InputError
        If an argument is wrong.

    Examples
    --------
    >>> point = Point(1, 8, 2, 400.0, 0.04)
    >>> one, four = (pool_capacity(point, 0.1, segments, Promise(0.99)) for segments in (1, 4))
    >>> 0.7 < one / 400 < four / 1600 < 1
    True
    """
    problems = list(wrong_number("slo", slo, "a finite number of seconds > 0", above=0))
    problems += wrong_integer("segments", segments, 1, 2**31 - 1)
    raise_any([*problems, *wrong_class("point", point, Point), *wrong_class("promise", promise, Promise)])
    servers = separated(worker_at(point, slo, promise.batching), promise.batching)
    return capacity_of(servers, slo, segments, promise)


def capacity_of(servers: tuple[Server, ...], slo: float, segments: int, promise: Promise) -> float:
    """Return what :func:`pool_capacity` does, of segments each of which is some servers."""
    # So services that differ in nothing else share what was simulated.
    scaled, promise = _scaled(servers, slo, promise)
    pooled = min(segments, max(MOST_POOLED // len(servers), 1))
    return held_rate(scaled * pooled, 1.0, promise) / slo / pooled * segments


def _scaled(servers: tuple[Server, ...], slo: float, promise: Promise) -> tuple[tuple[Server, ...], Promise]:
    """Return servers and a promise whose time counts in SLOs."""
    arrivals = dataclasses.replace(promise.arrivals, burst_seconds=promise.arrivals.burst_seconds / slo)
    # What else there is about batches is in the servers.
    scaled = dataclasses.replace(promise, arrivals=arrivals, batching=Batching(spread=promise.batching.spread))
    return tuple(one.scaled(1 / slo) for one in servers), scaled


@kept("held")
def held_rate(workers: Sequence[Server], slo: float, promise: Promise) -> float:
    """Return the requests per second up to which segments of one service keep a promise together.

    It is at most the throughput of all, and 0 if the promise cannot be kept at any rate. The SLO is in seconds.
    """
    most = sum(worker.throughput for worker in workers)
    if min(worker.answer[0] for worker in workers) > slo * LATE:
        return 0.0

    def keeps(slack: float, length: tuple[int, int]) -> bool:
        return keeps_promise(workers, slo, most * (1 - slack), promise, length)

    # Nobody keeps a promise for long beyond the throughput, which the reserve would need.
    slack = promise.reserve / (1 + promise.reserve)
    if keeps(slack, LONG):
        return most * (1 - slack)
    # First roughly, by ratios of the slack: what is lacking at a load of 99 % is as much finer than at one of 50 %.
    low, high = _LEAST_SLACK, 1.0
    for _ in range(_FIRST_STEPS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if keeps(middle, SHORT) else (middle, high)
    # Then thoroughly, from there.
    if high < 1 and keeps(high, LONG):
        while (low := high / _WIDER) > _LEAST_SLACK and keeps(low, LONG):
            high = low
    else:
        low = high if high < 1 else low
        # Loads may have to be far below a tenth: where a batch takes nearly as long as the SLO, nobody can wait for it.
        while not keeps(high := min(low * _WIDER, 1 - (1 - low) / _LIGHTER), LONG):
            if most * (1 - high) < _least_rate(slo, promise):
                return 0.0
            low = high
    while high - low > CAPACITY_ERROR * (1 - high):
        middle = (low + high) / 2
        low, high = (low, middle) if keeps(middle, LONG) else (middle, high)
    return most * (1 - high)


def _least_rate(slo: float, promise: Promise) -> float:
    """Return the requests per second below which hardly any request comes within an SLO of another.

    A promise that is not kept then is kept at no rate, and one that is kept is kept at all lower rates.
    """
    arrivals = promise.arrivals
    peak = arrivals.peak if arrivals.kind == ArrivalKind.BURSTY else 1.0
    return promise.allowed * _FEW / (peak * slo)


def keeps_promise(
    workers: Sequence[Server], slo: float, rate: float, promise: Promise, length: tuple[int, int]
) -> bool:
    """Return True if segments of one service keep a promise at a rate, with its reserve and a margin.

    At most 0.8 of the late requests that are allowed are late then. ``length`` has the requests, and the bursts, of the
    simulation, which has the same random numbers each time.
    """
    requests, bursts = length
    arrivals, rate = promise.arrivals, rate * (1 + promise.reserve)
    seconds = requests / rate
    if arrivals.kind == ArrivalKind.BURSTY:
        bursts_seconds = bursts * arrivals.burst_seconds / arrivals.burst_share
        seconds = max(seconds, min(bursts_seconds, _MOST_REQUESTS / rate))
    # The same points each time, made once where that is possible.
    stream = [_poisson(requests) / rate] if arrivals.kind == ArrivalKind.POISSON else None
    rng = np.random.default_rng(_SEED)
    return _late_share(workers, slo, rate, promise, seconds, rng=rng, stream=stream) <= promise.allowed * MARGIN


@lru_cache(maxsize=10_000)
def late_alone(servers: tuple[Server, ...], slo: float, promise: Promise) -> float:
    """Return the share of late requests at a segment with so few that none meets another.

    A promise that allows for fewer is kept at no rate.
    """
    scaled, promise = _scaled(servers, slo, promise)
    rate, requests = _least_rate(1.0, promise) / 2, LONG[0] if promise.batching.spread else 1
    return _late_share(scaled, 1.0, rate, promise, requests / rate, rng=np.random.default_rng(_SEED))


@kept("late")
def late_share(
    workers: Sequence[Server], slo: float, rate: float, promise: Promise, length: tuple[float, int]
) -> float:
    """Return the share of late requests at the segments of one service, without the reserve of the promise.

    The ``length`` is the seconds in which requests arrive, of which the first tenth does not count, and a seed, which
    gives other random numbers for each SLO and rate.
    """
    seconds, seed = length
    rng = np.random.default_rng([seed, zlib.crc32(repr((slo, rate)).encode())])
    return _late_share(workers, slo, rate, promise, seconds, rng=rng)


def _late_share(
    workers: Sequence[Server],
    slo: float,
    rate: float,
    promise: Promise,
    seconds: float,
    *,
    rng: np.random.Generator,
    stream: Iterable[Floats] | None = None,
) -> float:
    if rate < _least_rate(slo, promise):
        apart = _APART * slo
        moments = np.arange(1.0, min(max(round(rate * seconds), 1), _MAX_KINDS_APART) + 1) * apart
        stream, seconds = [moments], float(moments[-1])
    elif stream is None:
        stream = promise.arrivals.stream("", rate, seconds, rng)
    window, how = (_WARM_UP * seconds, seconds), {"router": promise.router, "spread": promise.batching.spread}
    served = served_by(workers, slo, window, **how, rng=rng, quantiles=False)
    served.run(stream)
    counts = served.counted.batches.sum(axis=0)
    return float(counts[LATE_REQUESTS] / counts[REQUESTS]) if counts[REQUESTS] else 0.0


@lru_cache(maxsize=4)
def _poisson(requests: int) -> Floats:
    """Return random points of rate 1, one for each request."""
    points: Floats = np.cumsum(np.random.default_rng(20_242).standard_exponential(requests))
    return points
