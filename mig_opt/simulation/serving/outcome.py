"""Outcome of a simulation of requests: latencies and late shares of services, loads of segments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mig_opt.method.report import Facts
from mig_opt.method.result import card
from mig_opt.method.shown import Shown
from mig_opt.serving.deployment import Segment
from mig_opt.simulation.serving.service import (
    BATCHES,
    BINS_PER_UNIT,
    LATE_BATCHES,
    LEAST_LATENCY,
    REQUESTS,
    Floats,
    Served,
    Whole,
)

_DEVIATIONS = {50: 2.01, 25: 2.06, 10: 2.26, 5: 2.78}
"""Half of a 95 % interval of a mean, in its standard deviations, by the number of values (Student's distribution)."""


@dataclass(frozen=True, slots=True)
class ServiceLatencies:
    """Latencies of the requests of a service: seconds from the arrival of a request to its answer.

    Attributes
    ----------
    name : str
        Of the service.
    slo_s : float
        Its SLO.
    requests, late : int
        Requests that count, and those of them that were answered later than the SLO allows.
    late_share : float
        Share of late requests; 0 without requests.
    late_share_interval : tuple of float
        95 % interval of that share for a run without end. Late requests come together, so a request counts less than
        one: by the variance between 50 parts of the run, and at most as much as the batches that there were.
    batches, late_batches : int
        Batches of these requests, and those with a late request.
    slow_batches : int
        Batches that took longer than the SLO by themselves, whatever their requests had waited: what the ParvaGPU paper
        counts (section IV-C1, Figure 8).
    mean_s, p50_s, p95_s, p99_s, p999_s, longest_s : float or None
        Mean, quantiles (to 0.1 % of their value) and maximum of the latencies; None without requests.
    bins : tuple of tuple
        Histogram: the upper edges of bins in seconds, and the requests in each.
    """

    name: str
    slo_s: float
    requests: int
    late: int
    late_share: float
    late_share_interval: tuple[float, float]
    batches: int
    late_batches: int
    slow_batches: int
    mean_s: float | None
    p50_s: float | None
    p95_s: float | None
    p99_s: float | None
    p999_s: float | None
    longest_s: float | None
    bins: tuple[tuple[float, int], ...] = field(default=(), repr=False)

    @property
    def lateness(self) -> str:
        """The share of late requests with its interval, in words."""
        low, high = self.late_share_interval
        return f"{100 * self.late_share:.3f} % late, {100 * low:.2f} to {100 * high:.2f} %"


@dataclass(frozen=True, slots=True)
class SegmentLoad:
    """Work of a segment.

    Attributes
    ----------
    service, gpu, profile, start
        The segment, as in its deployment.
    requests, batches, late_batches : int
        Requests and batches that count, and batches with a late request.
    filling : float
        Mean requests of a batch as a share of its size; 0 without batches.
    utilisation : float
        Share of the time that its processes were busy, from 0 to 1.
    """

    service: str
    gpu: int
    profile: str
    start: int
    requests: int
    batches: int
    late_batches: int
    filling: float
    utilisation: float


@dataclass(frozen=True, slots=True)
class RequestSimulation(Shown):
    """Outcome of :func:`mig_opt.simulate_requests`.

    Attributes
    ----------
    services : tuple of ServiceLatencies
        In the order of the demand.
    segments : tuple of SegmentLoad
        In the order of the deployment; those of services that the demand does not have are left out.
    arrivals, router : str
        Names of the pattern of arrivals and of the rule for where requests go.
    seconds : float
        How long requests count, after the warm-up.
    warm_up : float
        Seconds before, from empty queues.
    seed : int
        The seed that was used.
    runtime_s : float
        Wall-clock seconds.
    separate : bool
        True if each process had a queue of its own.
    """

    services: tuple[ServiceLatencies, ...]
    segments: tuple[SegmentLoad, ...]
    arrivals: str
    router: str
    seconds: float
    warm_up: float
    seed: int
    runtime_s: float
    separate: bool = False

    @property
    def requests(self) -> int:
        """Requests of all services."""
        return sum(service.requests for service in self.services)

    @property
    def late(self) -> int:
        """Late requests of all services."""
        return sum(service.late for service in self.services)

    @property
    def late_share(self) -> float:
        """Share of all requests that are late."""
        return self.late / self.requests if self.requests else 0.0

    @property
    def worst(self) -> ServiceLatencies:
        """The service with the greatest share of late requests."""
        return max(self.services, key=lambda service: service.late_share)

    def keeps(self, promise: float) -> bool:
        """Return True if every service answers at least this share of its requests, such as 0.99, in time."""
        return all(service.late_share <= 1 - promise + 1e-12 for service in self.services)

    def facts(self) -> Facts:
        """Return requests, router, late requests and batches."""
        batches, late, slow = (
            sum(getattr(service, name) for service in self.services)
            for name in ("batches", "late_batches", "slow_batches")
        )
        return [
            ("requests", f"{self.requests:,} in {self.seconds:g} s, {self.arrivals}"),
            ("router", f"{self.router}{', to each process by itself' if self.separate else ''}"),
            ("late", f"{100 * self.late_share:.3f} % of all requests"),
            ("batches", f"{batches:,}; {late:,} with a late request, {slow:,} longer than the SLO by themselves"),
        ]

    def __str__(self) -> str:
        return card([*self.facts(), ("worst", f"{self.worst.name}: {self.worst.lateness}")])


def latencies_of(name: str, slo: float, served: Served) -> ServiceLatencies:
    """Return what was counted about the requests of one service."""
    counted = served.counted
    batches, requests, late_batches, slow_batches, late = (int(total) for total in counted.batches.sum(axis=0))
    quantiles: Sequence[float | None] = [None] * 4
    mean = longest = None
    if requests:
        quantiles = _quantiles(counted.histogram, counted.totals, (0.5, 0.95, 0.99, 0.999))
        mean, longest = float(counted.totals[0]) / requests, float(counted.totals[3])
    filled = np.flatnonzero(counted.histogram)
    edges = LEAST_LATENCY * np.exp((filled + 1) / BINS_PER_UNIT)
    bins = tuple((float(edge), int(counted.histogram[bin_])) for edge, bin_ in zip(edges, filled, strict=True))
    p50, p95, p99, p999 = quantiles
    shares = late / requests if requests else 0.0, late_interval(counted.blocks, batches, float(counted.totals[1]))
    of_batches = batches, late_batches, slow_batches
    return ServiceLatencies(name, slo, requests, late, *shares, *of_batches, mean, p50, p95, p99, p999, longest, bins)


def _quantiles(histogram: Whole, totals: Floats, shares: Sequence[float]) -> list[float]:
    reached = np.cumsum(histogram)
    found = []
    for share in shares:
        wanted = share * reached[-1]
        bin_ = int(np.searchsorted(reached, wanted))
        before = reached[bin_] - histogram[bin_]
        within = (wanted - before) / histogram[bin_]
        value = LEAST_LATENCY * math.exp((bin_ + within) / BINS_PER_UNIT)
        found.append(float(min(max(value, totals[2]), totals[3])))
    return found


def late_interval(blocks: Floats, batches: int, squares: float) -> tuple[float, float]:
    """Return the 95 % interval (Wilson's) of a late share, for requests that are late together.

    Requests count at most as much as the ``batches`` that there were, since those of a batch end together. They count
    less where queues are long for a long time: their number is then the one that explains how far their late share,
    or their mean latency, varies between parts of the run, whichever is less. Latencies tell it also
    where no request is late. ``blocks`` has requests, late ones and the sum of latencies in each of 50 equal parts of a
    run; ``squares`` is the sum of the squares of latencies. If nothing is known the interval is from 0 to 1.
    """
    requests, late, seconds = (float(total) for total in blocks.sum(axis=0))
    if not requests or not batches:
        return 0.0, 1.0
    share, mean = late / requests, seconds / requests
    told = [(1, share, share * (1 - share)), *([(2, mean, squares / requests - mean**2)] if squares < math.inf else [])]
    number, deviations = min(float(batches), requests), _DEVIATIONS[len(blocks)]
    for parts, wider in _DEVIATIONS.items():
        sums = blocks.reshape(parts, -1, 3).sum(axis=1)
        for column, middle, spread in told:
            apart = sums[:, column] - middle * sums[:, 0]
            variance = parts / (parts - 1) * float((apart**2).sum()) / requests**2
            # Without any spread nothing is known about how much requests depend on each other.
            if 1e-9 * middle**2 < spread < variance * number * (wider / deviations) ** 2:
                number, deviations = max(spread / variance, 1.0), wider
    square = deviations**2
    centre = (share + square / (2 * number)) / (1 + square / number)
    width = deviations / (1 + square / number) * math.sqrt(share * (1 - share) / number + square / (4 * number**2))
    return (max(centre - width, 0.0) if late else 0.0), min(centre + width, 1.0)


def load_of(segment: Segment, own: slice, served: Served, seconds: float) -> SegmentLoad:
    """Return what was counted about a segment, whose servers have these indices in its service."""
    counts, busy = served.counted.batches[own].sum(axis=0), float(served.counted.busy_seconds[own].sum())
    requests, batches = int(counts[REQUESTS]), int(counts[BATCHES])
    filling = requests / (batches * segment.batch) if batches else 0.0
    utilisation = min(busy / (segment.processes * seconds), 1.0)
    late_batches = int(counts[LATE_BATCHES])
    return SegmentLoad(segment.service, *segment.place, requests, batches, late_batches, filling, utilisation)
