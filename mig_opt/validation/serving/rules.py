"""The rules for what a deployment gives to services: one small function per rule, each yielding its violations."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mig_opt.errors import nearest
from mig_opt.serving.demand import Demand, Service
from mig_opt.serving.profile_table import Point, ProfileTable
from mig_opt.texts import plural
from mig_opt.validation.serving.instance_rules import Fleet, PlacedSegment
from mig_opt.validation.violations import DeploymentViolationCode as Code
from mig_opt.validation.violations import Violation


@dataclass(frozen=True, slots=True)
class ProfiledSegment:
    """A segment that is somewhere and of a service, with what is known about it.

    Attributes
    ----------
    placed : PlacedSegment
        Where it is.
    service : Service
        Whom it serves.
    table : ProfileTable or None
        What was measured for its model on that kind of GPU.
    point : Point or None
        What was measured for just this way to fill the instance.
    """

    placed: PlacedSegment
    service: Service
    table: ProfileTable | None
    point: Point | None

    @property
    def path(self) -> str:
        """Its path in the deployment."""
        return f"segments[{self.placed.index}]"


@dataclass(frozen=True, slots=True)
class FleetCase:
    """A deployment and what it is for, sorted out for the rules.

    Attributes
    ----------
    demand : Demand
        What was asked for.
    fleet : Fleet
        The answer.
    tolerance : float
        Relative difference up to which two figures count as equal.
    profiled : tuple of ProfiledSegment
        The segments that are somewhere and of a service.
    """

    demand: Demand
    fleet: Fleet
    tolerance: float
    profiled: tuple[ProfiledSegment, ...]

    @classmethod
    def of(cls, demand: Demand, fleet: Fleet, tolerance: float) -> FleetCase:
        """Look up what is known about the segments of a fleet."""
        services = {service.name: service for service in demand.services}
        tables = {(table.model, table.gpu): table for table in demand.tables}
        points = {
            (key, point.size, point.batch, point.processes): point
            for key, table in tables.items()
            for point in table.points
        }
        profiled = []
        for placed in fleet.placed:
            segment, kind = placed.segment, fleet.kind(placed.segment.gpu)
            service = services.get(segment.service)
            if service is not None and kind is not None:
                key = service.model, kind.name
                way = key, placed.placement.profile.compute_slices, segment.batch, segment.processes
                profiled.append(ProfiledSegment(placed, service, tables.get(key), points.get(way)))
        return cls(demand, fleet, tolerance, tuple(profiled))


Rule = Callable[[FleetCase], Iterator[Violation]]


# Rules about what a segment achieves.


def _unknown_services(case: FleetCase) -> Iterator[Violation]:
    names = [service.name for service in case.demand.services]
    known = set(names)
    for index, segment in enumerate(case.fleet.deployment.segments):
        if segment.service not in known:
            message = f"the demand has no service {segment.service!r}; {nearest(segment.service, names)}"
            yield Violation(Code.UNKNOWN_SERVICE, f"segments[{index}].service", message)


def _unknown_ways(case: FleetCase) -> Iterator[Violation]:
    for profiled in case.profiled:
        segment, model = profiled.placed.segment, profiled.service.model
        profile = profiled.placed.placement.profile
        if profiled.table is None:
            message = f"{model!r} has no profile table for {case.fleet.deployment.gpus[segment.gpu]}"
            yield Violation(Code.MODEL_NOT_PROFILED, f"{profiled.path}.gpu", message)
        elif profiled.point is None:
            slices = plural(profile.compute_slices, "compute slice")
            points = [point for point in profiled.table.points if point.size == profile.compute_slices]
            if not points:
                sizes = ", ".join(map(str, sorted({point.size for point in profiled.table.points})))
                message = (
                    f"the profile table of {model!r} has no point for the {slices} of {profile.name}, only for {sizes}"
                )
                yield Violation(Code.SIZE_NOT_PROFILED, f"{profiled.path}.profile", message)
            else:
                message = (
                    f"the profile table of {model!r} has no point for batch size {segment.batch} and "
                    f"{plural(segment.processes, 'process', 'processes')} on {slices}"
                )
                yield Violation(Code.WAY_NOT_PROFILED, profiled.path, message)


def _wrong_figures(case: FleetCase) -> Iterator[Violation]:
    for profiled in case.profiled:
        if profiled.point is None:
            continue
        for name, code, unit in (
            ("throughput", Code.WRONG_THROUGHPUT, "requests/s"),
            ("latency", Code.WRONG_LATENCY, "s"),
        ):
            stated, measured = getattr(profiled.placed.segment, name), getattr(profiled.point, name)
            if not math.isclose(stated, measured, rel_tol=case.tolerance):
                message = f"the profile table says {measured:.12g} {unit}, the segment {stated:.12g} {unit}"
                yield Violation(code, f"{profiled.path}.{name}", message)


def _too_slow(case: FleetCase) -> Iterator[Violation]:
    rule = case.demand.rule
    for profiled in case.profiled:
        service, point = profiled.service, profiled.point
        if point is not None and not rule.allows(point.latency, service.slo):
            verb = "must be below" if rule.whole_ms else "must be at most"
            message = (
                f"{service.name!r} takes {point.latency:.12g} s for a batch of {point.batch}; within its SLO of "
                f"{service.slo:.12g} s latency {verb} {rule.limit(service.slo):.12g} s"
            )
            yield Violation(Code.TOO_SLOW, profiled.path, message)


def _too_many_processes(case: FleetCase) -> Iterator[Violation]:
    most = case.demand.max_processes
    for index, segment in enumerate(case.fleet.deployment.segments):
        if most is not None and segment.processes > most:
            message = f"{segment.processes} processes share the instance; at most {most} may"
            yield Violation(Code.TOO_MANY_PROCESSES, f"segments[{index}].processes", message)


def _memory(case: FleetCase) -> Iterator[Violation]:
    for profiled in case.profiled:
        needed = None if profiled.table is None else profiled.table.memory_gb
        profile = profiled.placed.placement.profile
        if needed is not None and needed > profile.memory_gb:
            message = f"{profiled.service.model!r} needs {needed:g} GB; {profile.name} has {profile.memory_gb:g} GB"
            yield Violation(Code.INSUFFICIENT_MEMORY, f"{profiled.path}.profile", message)


# Rules about services and pools.


def _services(case: FleetCase) -> Iterator[Violation]:
    """Compare what each service gets with what it needs.

    A segment counts with what was measured; where that is not known, which is reported, with what it states.
    """
    measured = {profiled.placed.index: profiled.point for profiled in case.profiled}
    given: dict[str, list[float]] = defaultdict(list)
    for index, segment in enumerate(case.fleet.deployment.segments):
        point = measured.get(index)
        given[segment.service].append(segment.throughput if point is None else point.throughput)
    for index, service in enumerate(case.demand.services):
        path, throughputs = f"services[{index}]", given[service.name]
        if not throughputs:
            yield Violation(Code.UNSERVED, path, f"no segment serves {service.name!r}")
            continue
        total = sum(throughputs)
        if not total >= service.rate * (1 - case.tolerance):
            message = (
                f"the segments of {service.name!r} answer {total:.12g} requests/s together, but "
                f"{service.rate:.12g} requests/s arrive"
            )
            yield Violation(Code.RATE_NOT_MET, path, message)
        if len(throughputs) < service.min_replicas:
            message = (
                f"{service.name!r} has {plural(len(throughputs), 'segment')}; it needs at least {service.min_replicas}"
            )
            yield Violation(Code.TOO_FEW_REPLICAS, path, message)


def _pools(case: FleetCase) -> Iterator[Violation]:
    """Compare the GPUs that have segments with the pools; a GPU without segments costs nothing."""
    counts = {pool.gpu.name: pool.count for pool in case.demand.pools}
    used: Counter[str] = Counter()
    for gpu in sorted({segment.gpu for segment in case.fleet.deployment.segments}):
        kind = case.fleet.kind(gpu)
        if kind is None:
            continue
        if kind.name not in counts:
            message = f"no pool has GPUs of the kind {kind.name}; the pools have {', '.join(counts)}"
            yield Violation(Code.NO_POOL, f"gpus[{gpu}]", message)
            continue
        used[kind.name] += 1
        count = counts[kind.name]
        if count is not None and used[kind.name] > count:
            message = f"this is {kind.name} number {used[kind.name]} with segments; the pool has {count}"
            yield Violation(Code.POOL_EXCEEDED, f"gpus[{gpu}]", message)


DEMAND_RULES: tuple[Rule, ...] = (
    _unknown_services,
    _unknown_ways,
    _wrong_figures,
    _too_slow,
    _too_many_processes,
    _memory,
    _services,
    _pools,
)
