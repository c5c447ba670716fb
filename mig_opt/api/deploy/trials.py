"""Simulations that tell whether deployments keep a promise to the requests, and services for which none can.

Services can be such that no instance answers their requests in time as often as promised, even if none meets another.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from functools import cache

from mig_opt.api.deploy.capacities import rounded_up
from mig_opt.api.deploy.deployment import usable, why_unservable
from mig_opt.errors import Problem
from mig_opt.gpu.model import Profile
from mig_opt.serving.arrivals import ArrivalKind
from mig_opt.serving.demand import Demand, Service, measured_points
from mig_opt.serving.deployment import Deployment
from mig_opt.serving.profile_table import Point
from mig_opt.simulation.serving.capacity import MARGIN, Promise, late_alone, late_share
from mig_opt.simulation.serving.continuous import is_continuous
from mig_opt.simulation.serving.outcome import RequestSimulation
from mig_opt.simulation.serving.requests import Batching, servers_at, simulate_requests, workers_of

_LEAST_REQUESTS, _LEAST_SECONDS = 400_000, 30.0
"""Requests of each service in the simulation of a deployment, and its seconds."""
_LEAST_BURSTS = 120
"""Bursts of such a simulation at least, where requests come in bursts: late requests come with a few of them."""
_SURE, _HOPELESS, _LONGER = 0.2, 3.0, 10
"""Least and greatest multiple of the allowed late share with which a service is simulated again, and how many times as
long: most are far from the limit, and those near it differ from one short run to the next."""
_STEP, _SMALLEST_STEP, _STEEPNESS = 0.995, 0.9, 0.1
"""Greatest and least factor for capacities that a simulation shows to be too large, and the power to which the ratio of
the share that may be late to the one that is gives the factor."""
_MOST_SHOWN = 5_000_000, 50_000_000
"""Requests of all services in the simulation that is shown, and where they come in bursts."""
_MOST_REQUESTS = 100_000_000
"""Requests of any simulation: at millions a second it takes fewer seconds, and fewer bursts."""
_VALIDATION, _REPORT = 1_000_003, 2_000_003
"""Numbers that are added to the seed of the simulations that decide, and of those that are shown."""

_DOUBLED, _HALVED = 10, 6
"""Times that an SLO is doubled at most to find one that can be kept, and that its distance from one that cannot is
halved then."""


class PromiseTrials:
    """Simulations of deployments, with other random numbers than those that capacities are found with.

    Services do not depend on each other, so each is simulated by itself, and once for all deployments in which it has
    the same segments.
    """

    def __init__(self, promise: Promise, seed: int) -> None:
        self._promise, self._seed = promise, seed
        self.shown = cache(self._simulated)  # made once
        bursty = promise.arrivals.kind == ArrivalKind.BURSTY
        self._bursts_seconds = promise.arrivals.burst_seconds / promise.arrivals.burst_share if bursty else 0.0

    def late(self, demand: Demand, deployment: Deployment) -> dict[str, float]:
        """Return the late share of each service that breaks the promise, at rates that are higher by its reserve.

        Where none does, those that break it in the simulation that is shown.
        """
        allowed = self._promise.allowed
        found = {one.name: self._late_share(demand, deployment, one) for one in demand.services}
        if max(found.values()) < _HOPELESS * allowed:
            near = [one for one in demand.services if found[one.name] > _SURE * allowed]
            found = {one.name: self._late_share(demand, deployment, one, longer=_LONGER) for one in near}
        if max(found.values(), default=0.0) <= allowed + 1e-12:
            found = {one.name: one.late_share for one in self.shown(demand, deployment).services}
        return {name: share for name, share in found.items() if share > allowed + 1e-12}

    def factor(self, late_share: float) -> float:
        """Return the factor for capacities with which a share of the requests is late."""
        step = math.pow(self._promise.allowed / late_share, _STEEPNESS)
        return min(max(step, _SMALLEST_STEP), _STEP)

    def _simulated(self, demand: Demand, deployment: Deployment) -> RequestSimulation:
        """Return a simulation at the rates of the services, for the result."""
        rates = [service.rate for service in demand.services]
        bursts, total = _LEAST_BURSTS * self._bursts_seconds, sum(rates)
        most = _MOST_SHOWN[bursts > 0] / total
        seconds = max(min(max(_LEAST_REQUESTS / min(rates), _LONGER * bursts), most), _LEAST_SECONDS, bursts)
        return simulate_requests(
            demand,
            deployment,
            arrivals=self._promise.arrivals,
            router=self._promise.router,
            batching=self._promise.batching,
            seconds=min(seconds, _MOST_REQUESTS / total),
            seed=self._seed + _REPORT,
        )

    def _late_share(self, demand: Demand, deployment: Deployment, service: Service, *, longer: int = 1) -> float:
        """Return the late share of a service in a deployment, at a rate that is higher by the reserve."""
        rate = service.rate * (1 + self._promise.reserve)
        own = (segment for segment in deployment.segments if segment.service == service.name)
        seconds = max(_LEAST_REQUESTS / rate, _LEAST_SECONDS, _LEAST_BURSTS * self._bursts_seconds) * longer
        workers = [one for each in own for one in workers_of(demand, service, deployment, each, self._promise.batching)]
        length = min(seconds, _MOST_REQUESTS / rate), self._seed + _VALIDATION
        return late_share(workers, service.slo, rate, self._promise, length)


# Services that no instance serves as promised

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
        f"no instance keeps {100 * promise.share:.12g} % of the requests of {service.name!r} in time, at any rate: at "
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
