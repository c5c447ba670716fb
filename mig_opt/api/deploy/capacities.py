"""Capacities of all ways to serve the services of a demand, and the demand that has them in place of throughputs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

from mig_opt.gpu.model import Profile
from mig_opt.serving.demand import Demand, Service, measured_points
from mig_opt.serving.deployment import Deployment, Segment
from mig_opt.serving.profile_table import Point, ProfileTable
from mig_opt.simulation.serving.capacity import (
    LONG,
    MOST_POOLED,
    SHORT,
    Capacity,
    Promise,
    capacity_of,
    held_rate,
    keeps_promise,
)
from mig_opt.simulation.serving.capacity_cache import kept
from mig_opt.simulation.serving.continuous import is_continuous
from mig_opt.simulation.serving.requests import Server, servers_at, workers_of

_SIMILAR = 0.85
"""Least share of the greatest throughput of a size with which a point is tried; all are if those have too little."""
_LITTLE = 1 / 3  # share of the throughput that is little capacity: there, one more segment may hold many times as much
_ANY_NUMBER = 1e9  # more segments than any deployment has


def rounded_up(seconds: float) -> float:
    """Return seconds, rounded up to three digits."""
    step = 10.0 ** (math.floor(math.log10(seconds)) - 2)
    return float(f"{math.ceil(seconds / step * (1 - 1e-9)) * step:.6g}")


class _Way(NamedTuple):
    """Point that keeps the promise at the greatest rate, on instances of one size."""

    gpu: str
    profile: Profile
    point: Point
    capacity: float  # before it is corrected


class CapacityTables:
    """Capacities under a promise, with a correction for each service by which they are multiplied.

    Each service has an instance that keeps the promise at some rate (:mod:`mig_opt.api.deploy.trials`).
    """

    def __init__(self, demand: Demand, promise: Promise) -> None:
        self._demand, self._promise = demand, promise
        self._ways = {
            service.name: {(way.gpu, way.point.size): way for way in self._best_ways(service)}
            for service in demand.services
        }
        self.corrections = dict.fromkeys(self._ways, 1.0)

    def _best_ways(self, service: Service) -> Iterator[_Way]:
        """Yield the way of greatest capacity for each kind of GPU and instance."""
        demand = self._demand
        for (pool, profile), points in measured_points(demand, service.model, demand.max_processes).items():
            in_time = [point for point in points if demand.rule.serves(point, service)]
            gpu = demand.pools[pool].kind.name
            best, chosen = self._best(service, gpu, in_time)
            if chosen is not None:
                yield _Way(gpu, profile, chosen, best)

    def _best(self, service: Service, gpu: str, points: list[Point]) -> tuple[float, Point | None]:
        best, chosen = 0.0, None
        most = max((point.throughput for point in points), default=0.0)
        for point in sorted(points, key=lambda point: -point.throughput):
            # No capacity is above the throughput. Where those of large batches are little, small ones may have more.
            if point.throughput > max(best, _SIMILAR * most if best > _LITTLE * most else 0.0):
                servers = servers_at(self._demand, service, gpu, point, self._promise.batching)
                capacity = capacity_in_service(servers, service.slo, service.rate, self._promise, best)
                if capacity > best:
                    best, chosen = capacity, point
        return best, chosen

    def demand(self) -> Demand:
        """Return the demand with corrected capacities in place of throughputs: each service is a model of its own."""
        tables, services = [], []
        memory = {(table.model, table.gpu): table.memory_gb for table in self._demand.measured}
        for service in self._demand.services:
            services.append(dataclasses.replace(service, model=service.name))
            points: dict[str, list[Point]] = {}
            for way in self._ways[service.name].values():
                corrected = dataclasses.replace(way.point, throughput=self._corrected(service.name, way))
                points.setdefault(way.gpu, []).append(corrected)
            for gpu, own in points.items():
                tables.append(ProfileTable(service.name, gpu, tuple(own), memory[service.model, gpu]))
        return self._demand.replace(services=tuple(services), tables=tuple(tables))

    def _corrected(self, name: str, way: _Way) -> float:
        return min(way.capacity * self.corrections[name], way.point.throughput)

    def with_throughputs(self, deployment: Deployment) -> Deployment:
        """Return a deployment for :meth:`demand` with the throughputs of the profiles."""
        measured = (
            dataclasses.replace(
                segment, throughput=self._ways[segment.service][_kind(deployment, segment)].point.throughput
            )
            for segment in deployment.segments
        )
        return deployment.replace(segments=measured)

    def total(self, service: Service, deployment: Deployment) -> float:
        """Return the requests per second that the capacities of the segments of a service add up to, uncorrected."""
        ways = self._ways[service.name]
        kinds = (_kind(deployment, segment) for segment in deployment.segments if segment.service == service.name)
        return sum(ways[kind].capacity for kind in kinds if kind in ways)

    def correct(
        self, service: Service, deployment: Deployment, choose: Callable[[float, float], float], *, kept: bool = True
    ) -> None:
        """Correct the capacities of a service by the rate at which its segments in a deployment keep the promise.

        The deployment has the throughputs of the profiles. ``choose`` takes the correction until now and the one with
        which the capacities of these segments add up to that rate, and returns the new one. Where the promise to the
        service is not ``kept``, it holds less than its rate.
        """
        own = [segment for segment in deployment.segments if segment.service == service.name]
        batching = self._promise.batching
        workers = [one for each in own for one in workers_of(self._demand, service, deployment, each, batching)]
        held = max(held_rate(workers, service.slo, self._promise), service.rate * 1e-3)
        if not kept:
            held = min(held, service.rate * (1 - 1e-6))
        total = self.total(service, deployment)
        if total > 0:
            self.corrections[service.name] = choose(self.corrections[service.name], held / total)

    def why_little(self) -> list[str]:
        """Return a line for each service that has little capacity wherever it runs, with an SLO that has more."""
        lines = []
        for service in self._demand.services:
            way = max(self._ways[service.name].values(), key=lambda way: way.capacity)
            point, capacity = way.point, self._corrected(service.name, way)
            if capacity > _LITTLE * point.throughput:
                continue
            demand, batching = self._demand, self._promise.batching
            seconds = servers_at(demand, service, way.gpu, point, batching)[0].answer[-1]
            longer = rounded_up(2 * (seconds if seconds > 0.51 * service.slo else service.slo))
            servers = servers_at(demand, dataclasses.replace(service, slo=longer), way.gpu, point, batching)
            more = capacity_in_service(servers, longer, service.rate, self._promise, 0.0)
            if more <= capacity:
                continue
            what = "a request alone" if is_continuous(demand, service) else "a batch"
            lines.append(
                f"{service.name!r} keeps it up to {capacity:.3g} requests per second for each {way.profile.name}, "
                f"which answers {point.throughput:.3g}: {what} takes {seconds / service.slo:.2g} of its SLO, so few "
                f"may wait for one; with an SLO of {longer:g} s it would be up to {more:.3g}"
            )
        return lines

    def entries(self) -> tuple[Capacity, ...]:
        """Return the corrected capacities."""
        found = []
        for name, ways in self._ways.items():
            for way in ways.values():
                figures = way.point.batch, way.point.processes, way.point.throughput, self._corrected(name, way)
                found.append(Capacity(name, way.gpu, way.profile.name, *figures))
        return tuple(found)


def _kind(deployment: Deployment, segment: Segment) -> tuple[str, int]:
    """Return the GPU and the size of a segment."""
    profile = deployment.placement(segment).profile
    return profile.gpu, profile.compute_slices


@kept("service")
def capacity_in_service(servers: tuple[Server, ...], slo: float, rate: float, promise: Promise, above: float) -> float:
    """Return the capacity of one of the segments that serve a whole service, if all are alike.

    It is that of as few segments as keep the promise together at the rate of the service; 0 if it is at most ``above``,
    since smaller ones are of no interest.
    """
    throughput = sum(one.throughput for one in servers)
    segments = _needed(rate, throughput)
    while True:
        if above > 0:
            # Cheaper than the capacity: whether it is of interest, also to as many segments as that would take.
            each = min(above, throughput)
            most = max(MOST_POOLED // len(servers), 1)
            pooled = min(segments if each > _LITTLE * throughput else _needed(rate, each), most)
            workers = servers * pooled
            if not all(keeps_promise(workers, slo, each * pooled, promise, length) for length in (SHORT, LONG)):
                return 0.0
        total = capacity_of(servers, slo, segments, promise)
        if total >= rate or segments > MOST_POOLED or total == 0:
            capacity = total / segments
            break
        if total < _LITTLE * rate:
            capacity = _capacity_of_more(servers, slo, rate, promise, segments)
            break
        # With more segments each has more capacity, so that this number is enough.
        segments = max(math.ceil(rate / total * segments), segments + 1)
    return capacity if capacity > above else 0.0


def _capacity_of_more(servers: tuple[Server, ...], slo: float, rate: float, promise: Promise, few: int) -> float:
    """Return the capacity of one of as few segments as keep the promise, where a few hold little of the rate."""

    def held(segments: int) -> float:
        return capacity_of(servers, slo, segments, promise)

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
