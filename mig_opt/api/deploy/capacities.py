"""Capacities of all ways to serve the services of a demand, and the demand that has them in place of throughputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import NamedTuple

from mig_opt.gpu.catalogue import get_gpu
from mig_opt.serving.demand import Demand, Service
from mig_opt.serving.deployment import Deployment, Segment
from mig_opt.serving.profile_table import Point, ProfileTable, smallest_profile
from mig_opt.simulation.serving.capacity import Capacity, Promise, capacity_in_service, held_rate
from mig_opt.simulation.serving.requests import worker_of

_SIMILAR = 0.85
"""Of the points of a size those with so much of the greatest throughput are tried."""


class _Way(NamedTuple):
    """Point that keeps the promise at the greatest rate, on instances of one size."""

    gpu: str
    memory_gb: float | None
    point: Point
    capacity: float  # before it is corrected


class CapacityTables:
    """Capacities under a promise, with a correction for each service.

    Parameters
    ----------
    demand : Demand
        Each service has an option.
    promise : Promise
        The promise that the capacities are for.

    Attributes
    ----------
    corrections : dict of str to float
        What the capacities of each service are multiplied by.
    """

    def __init__(self, demand: Demand, promise: Promise) -> None:
        self._demand, self._promise = demand, promise
        self._ways = {service.name: list(self._best_ways(service)) for service in demand.services}
        self.corrections = dict.fromkeys(self._ways, 1.0)

    @property
    def hopeless(self) -> str | None:
        """Name of a service that keeps the promise on no instance, at any rate; None if there is none."""
        return next((name for name, ways in self._ways.items() if not ways), None)

    def _best_ways(self, service: Service) -> Iterator[_Way]:
        """Yield the way of greatest capacity for each kind of GPU and instance size."""
        demand = self._demand
        tables = ((pool.gpu, table) for pool in demand.pools for table in demand.tables)
        for gpu, table in tables:
            if (table.model, table.gpu) != (service.model, gpu.name):
                continue
            for size in gpu.sizes:
                if smallest_profile(gpu, size, table.memory_gb) is not None:
                    points = [
                        point
                        for point in table.points
                        if point.size == size
                        and (demand.max_processes is None or point.processes <= demand.max_processes)
                        and demand.rule.allows(point.latency, service.slo)
                    ]
                    best, chosen = self._best(service, points)
                    if chosen is not None:
                        yield _Way(table.gpu, table.memory_gb, chosen, best)

    def _best(self, service: Service, points: list[Point]) -> tuple[float, Point | None]:
        best, chosen = 0.0, None
        most = max((point.throughput for point in points), default=0.0)
        for point in sorted(points, key=lambda point: -point.throughput):
            # No capacity is above the throughput.
            if point.throughput > max(best, _SIMILAR * most):
                capacity = capacity_in_service(point, service.slo, service.rate, self._promise, best)
                if capacity > best:
                    best, chosen = capacity, point
        return best, chosen

    def demand(self) -> Demand:
        """Return the demand with corrected capacities in place of throughputs: each service is a model of its own."""
        tables = []
        services = []
        for service in self._demand.services:
            services.append(dataclasses.replace(service, model=service.name))
            points: dict[tuple[str, float | None], list[Point]] = {}
            for way in self._ways[service.name]:
                corrected = dataclasses.replace(way.point, throughput=self._corrected(service.name, way))
                points.setdefault((way.gpu, way.memory_gb), []).append(corrected)
            tables += [ProfileTable(service.name, gpu, tuple(own), memory) for (gpu, memory), own in points.items()]
        return self._demand.replace(services=tuple(services), tables=tuple(tables))

    def _corrected(self, name: str, way: _Way) -> float:
        return min(way.capacity * self.corrections[name], way.point.throughput)

    def with_throughputs(self, deployment: Deployment) -> Deployment:
        """Return a deployment for :meth:`demand` with the throughputs of the profiles."""
        points = {(name, way.gpu, way.point.size): way.point for name, ways in self._ways.items() for way in ways}

        def measured(segment: Segment) -> Segment:
            size = deployment.placement(segment).profile.compute_slices
            point = points[segment.service, deployment.gpus[segment.gpu], size]
            return dataclasses.replace(segment, throughput=point.throughput)

        return deployment.replace(segments=map(measured, deployment.segments))

    def correct(self, service: Service, deployment: Deployment, choose: Callable[[float, float], float]) -> None:
        """Correct the capacities of a service by the rate at which its segments in a deployment keep the promise.

        Parameters
        ----------
        service : Service
            One of the demand.
        deployment : Deployment
            With the throughputs of the profiles.
        choose : callable
            Takes the correction until now and the one with which the capacities of these segments add up to that rate;
            returns the new one.
        """
        own = [segment for segment in deployment.segments if segment.service == service.name]
        workers = [worker_of(self._demand, service, deployment, segment, self._promise.batching) for segment in own]
        held = max(held_rate(workers, service.slo, self._promise), service.rate * 1e-3)
        capacities = {(way.gpu, way.point.size): way.capacity for way in self._ways[service.name]}
        kinds = [(deployment.gpus[s.gpu], deployment.placement(s).profile.compute_slices) for s in own]
        total = sum(capacities.get(kind, 0.0) for kind in kinds)
        if total > 0:
            self.corrections[service.name] = choose(self.corrections[service.name], held / total)

    def entries(self) -> tuple[Capacity, ...]:
        """Return the corrected capacities."""
        return tuple(
            Capacity(
                name,
                way.gpu,
                _profile(way),
                way.point.batch,
                way.point.processes,
                way.point.throughput,
                self._corrected(name, way),
            )
            for name, ways in self._ways.items()
            for way in ways
        )


def _profile(way: _Way) -> str:
    profile = smallest_profile(get_gpu(way.gpu), way.point.size, way.memory_gb)
    assert profile is not None
    return profile.name
