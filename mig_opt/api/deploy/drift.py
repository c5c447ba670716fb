"""Services that have drifted from their plan: rates, and times of batches that profiles do not tell."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mig_opt.serving.demand import Demand, Service
from mig_opt.serving.deployment import Deployment
from mig_opt.serving.profile_table import LATENCIES

_DRIFT = 0.1  # share by which rates and times may differ before they count as drifted
_DEVIATIONS = 2.0  # standard deviations of the number of requests that are chance


@dataclass(frozen=True, slots=True)
class Observed:
    """Requests of a service over some time, by the counters of its servers; None for means that they do not have."""

    seconds: float  # for how long was counted
    # requests that were answered, and those that failed
    requests: int
    failures: int = 0
    # mean seconds from the arrival of a request at the server to its answer, and in which its batch was computed
    latency: float | None = None
    batch_seconds: float | None = None
    batch: float | None = None  # mean number of requests of a batch
    # mean seconds to the first token, and from token to token
    ttft: float | None = None
    itl: float | None = None

    @property
    def rate(self) -> float:
        """Requests per second."""
        return self.requests / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class Drift:
    """A service beside its plan."""

    service: Service  # as planned
    observed: Observed | None  # what it did; None if nothing tells
    batch_seconds: float  # mean seconds of a batch, by the profiles of its segments
    reasons: tuple[str, ...]  # where it has drifted; empty if it has not

    @property
    def slower(self) -> float:
        """Factor by which batches take longer than planned; 1 within what may be chance."""
        seconds = self.observed.batch_seconds if self.observed else None
        return seconds / self.batch_seconds if seconds and 0 < self.batch_seconds * (1 + _DRIFT) < seconds else 1.0


def drifts_of(demand: Demand, deployment: Deployment, observed: Mapping[str, Observed]) -> tuple[Drift, ...]:
    """Return each service of a demand beside what was observed of it, by its name."""
    drifts = []
    for service in demand.services:
        own = [segment for segment in deployment.segments if segment.service == service.name]
        total = sum(segment.throughput for segment in own)
        planned = sum(segment.throughput * segment.latency for segment in own) / total if total else 0.0
        drift = Drift(service, observed.get(service.name), planned, ())
        drifts.append(dataclasses.replace(drift, reasons=tuple(_reasons(drift))))
    return tuple(drifts)


def _reasons(drift: Drift) -> Iterator[str]:
    service, seen = drift.service, drift.observed
    if seen is None:
        yield "no counters"
        return
    more = seen.rate / service.rate - 1
    if abs(more) > _DRIFT + _DEVIATIONS / math.sqrt(max(service.rate * seen.seconds, 1.0)):
        yield f"{abs(more):.0%} {'more' if more > 0 else 'fewer'} requests".replace("%", " %")
    if drift.slower > 1:
        yield f"batches take {drift.slower:.3g} times as long"
    for name, slo in service.slos.items():
        mean = getattr(seen, name)
        if mean is not None and mean > slo:
            yield f"mean {name} above its SLO"
    if seen.failures:
        yield f"{seen.failures} failed"


def demand_now(demand: Demand, drifts: tuple[Drift, ...]) -> Demand:
    """Return a demand with the rates that were observed, and profiles as much slower as batches are.

    Where a model serves several services, the slowest one counts. Services without requests keep their rates.
    """
    slower: dict[str, float] = {}
    services = []
    for drift in drifts:
        service, seen = drift.service, drift.observed
        slower[service.model] = max(slower.get(service.model, 1.0), drift.slower)
        rate = seen.rate if seen and seen.rate and drift.reasons else service.rate
        services.append(dataclasses.replace(service, rate=rate))
    tables = []
    for table in demand.tables:
        factor = slower.get(table.model, 1.0)
        points = (
            dataclasses.replace(
                point,
                throughput=point.throughput / factor,
                **{name: seconds * factor for name in LATENCIES if (seconds := getattr(point, name)) is not None},
            )
            for point in table.points
        )
        tables.append(dataclasses.replace(table, points=tuple(points)))
    return demand.replace(services=tuple(services), tables=tuple(tables))
