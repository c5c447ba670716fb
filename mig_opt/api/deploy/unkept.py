"""Services whose requests no instance answers in time as often as promised, even if none meets another."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

from mig_opt.api.deploy.capacities import rounded_up, usable
from mig_opt.api.deploy.deployment import why_unservable
from mig_opt.errors import Problem
from mig_opt.gpu.model import Profile
from mig_opt.serving.demand import Demand, Service, measured_points
from mig_opt.serving.profile_table import Point
from mig_opt.simulation.serving.capacity import MARGIN, Promise, late_alone
from mig_opt.simulation.serving.continuous import is_continuous
from mig_opt.simulation.serving.requests import Batching, servers_at

_DOUBLED, _HALVED = 10, 6
"""Times that an SLO is doubled at most to find one that can be kept, and that its distance from one that cannot is
halved then."""


_Way = tuple[str, Profile, Point]


def why_unkept(demand: Demand, promise: Promise) -> list[str]:
    """Return a line for each service that no instance can serve, or not as promised at any rate, with what would do."""
    lines = why_unservable(demand)
    for service in demand.services:
        ways = [way for way in _ways(demand, service) if demand.rule.serves(way[-1], service)]
        if ways and not any(_kept(demand, service, way, promise) for way in ways):
            lines.append(_line(demand, service, promise, ways))
    return lines


def unpromised(demand: object) -> Iterator[Problem]:
    """Yield a problem for each service with SLOs on tokens whose tables do not say that it is batched continuously."""
    if not isinstance(demand, Demand):
        return
    for index, service in enumerate(demand.services):
        if len(service.slos) > 1 and not is_continuous(demand, service):
            message = (
                f"{service.name!r} has SLOs on tokens, which are simulated only of models that are batched "
                'continuously; say "continuous": true in their profile tables, or leave the promise out'
            )
            yield Problem(f"services[{index}]", message)


def refusal(demand: Demand, promise: Promise, method: str) -> tuple[bool, str] | None:
    """Return whether no method has anything to work with, and why this one has not; None if it has."""
    if lines := why_unkept(demand, promise):
        return True, "; ".join(lines)
    # Other methods may use what this one cannot.
    if lines := why_unkept(usable(demand, method), promise):
        return False, f"for {method}: {'; '.join(lines)}"
    return None


def _ways(demand: Demand, service: Service) -> list[_Way]:
    """Return all that a service can run on, however long it takes."""
    measured = measured_points(demand, service.model, demand.max_processes)
    return [
        (demand.pools[pool].kind.name, profile, point)
        for (pool, profile), points in measured.items()
        for point in points
    ]


def _late(demand: Demand, service: Service, way: _Way, promise: Promise) -> float:
    return late_alone(servers_at(demand, service, way[0], way[-1], promise.batching), service.slo, promise)


def _kept(demand: Demand, service: Service, way: _Way, promise: Promise) -> bool:
    return _late(demand, service, way, promise) <= promise.allowed * MARGIN


def _line(demand: Demand, service: Service, promise: Promise, ways: list[_Way]) -> str:
    slo, everywhere = service.slo, _ways(demand, service)

    def seconds_of(way: _Way) -> float:
        return servers_at(demand, service, way[0], way[-1], Batching())[0].answer[-1]

    late, seconds, best = min(
        (_late(demand, service, way, promise), seconds_of(way), index) for index, way in enumerate(ways)
    )
    _, profile, point = ways[best]
    would = []
    # Rounded down to hundredths of a per cent, since no more can be kept.
    if (most := math.floor((1 - late / MARGIN) * 1e4) / 1e4) > 0:
        would.append(f"a promise of {100 * most:g} %")
    shares = [
        math.ceil(100 * way[-1].latency / slo) / 100 for way in everywhere if _kept(demand, service, way, promise)
    ]
    if shares and min(shares) <= 1:
        would.append(f"latencies of up to {min(shares):g} of the SLO (--slo-share) in place of {demand.rule.share:g}")
    enough = (_enough(demand, service, way, max(slo, seconds_of(way)), promise) for way in everywhere)
    if slos := [found for found in enough if found is not None]:
        would.append(f"an SLO of {min(slos):g} s")
    by = "by its throughput" if seconds > point.latency else "on average"
    takes = f"a batch of {point.batch} takes {seconds:.6g} s {by}"
    if is_continuous(demand, service):
        takes = f"a request alone takes {seconds:.6g} s" if math.isfinite(seconds) else "an SLO on tokens is broken"
    return (
        f"no instance keeps {100 * promise.share:g} % of the requests of {service.name!r} in time, at any rate: at "
        f"best {100 * (1 - late):.4g} % are, on {profile.name}, where {takes}, and the SLO is {slo:g} s"
        + (f"; what can be kept: {', or '.join(would)}" if would else "")
    )


def _enough(demand: Demand, service: Service, way: _Way, least: float, promise: Promise) -> float | None:
    """Return an SLO, longer than it is, with which the promise would be kept; None if none is found."""
    latency = way[-1].latency

    def enough(longer: float) -> bool:
        relaxed = dataclasses.replace(service, slo=rounded_up(longer))
        return demand.rule.allows(latency, relaxed.slo) and _kept(demand, relaxed, way, promise)

    low = high = max(least, latency / demand.rule.share)
    if not math.isfinite(high):
        return None
    for _ in range(_DOUBLED):
        if enough(high):
            break
        low, high = high, 2 * high
    else:
        return None
    for _ in range(_HALVED if high > low else 0):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return rounded_up(high)
