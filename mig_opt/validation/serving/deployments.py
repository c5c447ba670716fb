"""The validator of deployments, and checks of deployments by its rules for the instances, whatever they serve.

Each rule is one small function that yields its violations. Rules for instances look at a :class:`PlacedDeployment`, in
which the segments without a place are set aside: they are reported as that and cannot upset the other rules.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from mig_opt.errors import Problem, nearest, problems_of, raise_any
from mig_opt.gpu.catalogue import get_gpu, known_gpu
from mig_opt.gpu.model import GpuModel, Profile
from mig_opt.rules import wrong_number
from mig_opt.serving.demand import Demand, Service, wrong_demand
from mig_opt.serving.deployment import Deployment, Segment, check_deployments
from mig_opt.serving.profile_table import Point, ProfileTable
from mig_opt.texts import plural
from mig_opt.validation.placed import Placed, Span, clashes, placed_entries, placement_problems
from mig_opt.validation.violations import DeploymentViolationCode as Code
from mig_opt.validation.violations import Verdict, Violation

_MOST_THROUGHPUT = 1e15


@dataclass(frozen=True, slots=True)
class PlacedDeployment:
    """A deployment, sorted out for the rules."""

    deployment: Deployment  # the deployment
    kinds: tuple[GpuModel | None, ...]  # the kind of each GPU, where the catalogue has it
    placed: tuple[Placed[Segment], ...]  # the segments whose GPU and placement exist

    @classmethod
    def of(cls, deployment: Deployment) -> PlacedDeployment:
        """Return ``deployment``, sorted out."""
        kinds = tuple(map(known_gpu, deployment.gpus))
        return cls(deployment, kinds, tuple(placed_entries(kinds, deployment.segments)))

    def kind(self, gpu: int) -> GpuModel | None:
        """Return the kind of a GPU; None if there is no such GPU, or no such kind."""
        return self.kinds[gpu] if 0 <= gpu < len(self.kinds) else None


# Rules for instances.


def _unknown_kinds(case: PlacedDeployment) -> Iterator[Violation]:
    for gpu, name in enumerate(case.deployment.gpus):
        for problem in problems_of(get_gpu, name):
            yield Violation(Code.UNKNOWN_GPU_KIND, f"gpus[{gpu}]", problem.message)


def _unknown_gpus(case: PlacedDeployment) -> Iterator[Violation]:
    count = len(case.deployment.gpus)
    known = {0: "no GPUs", 1: "only GPU 0"}.get(count, f"GPUs 0 to {count - 1}")
    for index, segment in enumerate(case.deployment.segments):
        if not 0 <= segment.gpu < count:
            message = f"the deployment has {known}, not GPU {segment.gpu}"
            yield Violation(Code.UNKNOWN_GPU, f"segments[{index}].gpu", message)


def _unknown_placements(case: PlacedDeployment) -> Iterator[Violation]:
    for index, segment in enumerate(case.deployment.segments):
        kind = case.kind(segment.gpu)
        for problem in () if kind is None else placement_problems(kind, segment):
            path = problem.below(f"segments[{index}]").path
            yield Violation(Code.UNKNOWN_PLACEMENT, path, f"GPU {segment.gpu}: {problem.message}")


def _instances_exclude(case: PlacedDeployment) -> Iterator[Violation]:
    ordered = sorted(case.placed, key=lambda placed: (placed.entry.gpu, placed.placement.start, placed.index))
    spans = (Span(0.0, math.inf, placed.entry.gpu, placed.placement, placed) for placed in ordered)
    for later, (earlier, *_) in clashes(spans, 0.0):
        gpu, profile, path = later.gpu, later.key.profile, f"segments[{later.item.index}]"
        one, two = f"{earlier.item.entry.service!r} (segments[{earlier.item.index}])", later.item.entry.service
        if earlier.key == later.key:
            message = f"the segment of {two!r} is in {later.key} of GPU {gpu}, in which is that of {one} already"
            yield Violation(Code.INSTANCE_USED_TWICE, path, message)
        elif earlier.key.conflicts(later.key):
            message = f"{later.key} of GPU {gpu}, for {two!r}, shares memory slices with {earlier.key}, for {one}"
            yield Violation(Code.INSTANCES_OVERLAP, path, message)
        else:
            message = f"GPU {gpu} has more than {profile.max_count} of {profile.name}, which is all that may exist"
            yield Violation(Code.TOO_MANY_INSTANCES, f"{path}.profile", message)


INSTANCE_RULES = (_unknown_kinds, _unknown_gpus, _unknown_placements, _instances_exclude)


def deployment_problems(deployment: Deployment) -> list[Problem]:
    """Return everything that keeps the instances of a deployment from existing together."""
    case = PlacedDeployment.of(deployment)
    return [violation.problem() for rule in INSTANCE_RULES for violation in rule(case)]


def check_instances(**deployments: Deployment) -> None:
    """Refuse deployments, by the names of arguments, with every instance that cannot exist, or of another type."""
    check_deployments(**deployments)
    raise_any(problem.below(name) for name, one in deployments.items() for problem in deployment_problems(one))


def check_change(running: Deployment, deployment: Deployment) -> None:
    """Refuse deployments between which there is no change.

    Their instances cannot exist, GPUs of the same number differ in kind, or throughputs are negative or immense.
    """
    both = {"running": running, "deployment": deployment}
    check_instances(**both)
    differ = [
        Problem(
            f"deployment.gpus[{gpu}]",
            f"is {new}, but GPU {gpu} of the running fleet is {old}; align(running, deployment) numbers them alike",
        )
        for gpu, (old, new) in enumerate(zip(running.gpus, deployment.gpus, strict=False))
        if get_gpu(old) != get_gpu(new)
    ]
    wanted = f"a number of requests per second from 0 to {_MOST_THROUGHPUT:g}"
    raise_any(
        differ
        or [
            Problem(f"{name}.segments[{index}].throughput", f"must be {wanted}, is {segment.throughput}")
            for name, one in both.items()
            for index, segment in enumerate(one.segments)
            if not 0 <= segment.throughput <= _MOST_THROUGHPUT
        ]
    )


# All rules.


@dataclass(frozen=True, slots=True)
class DeploymentValidation(Verdict):
    """Verdict of the validator about a deployment.

    Attributes
    ----------
    gpus : int
        GPUs with a segment, counted again.
    violations : tuple of Violation
        Everything that is wrong; empty if the deployment is valid.
    """

    gpus: int
    violations: tuple[Violation, ...]

    @property
    def _figures(self) -> str:
        return plural(self.gpus, "GPU")


def validate_deployment(demand: Demand, deployment: Deployment, *, tolerance: float = 1e-9) -> DeploymentValidation:
    """Check a deployment against every rule of the serving problem.

    Parameters
    ----------
    demand : Demand
        The services, what their models achieve, and the GPUs that there are.
    deployment : Deployment
        The segments and where they are. GPUs without segments do not count against the pools.
    tolerance : float
        Relative difference up to which throughput and rate, or a stated and a measured figure, count as equal.

    Returns
    -------
    DeploymentValidation
        All violations, not only the first. A segment that is nowhere (unknown GPU or placement) is reported as that,
        and does not make its service lack throughput besides. A service's throughput is the sum of what was measured
        for its segments, whatever they state.

    Raises
    ------
    InputError
        If the tolerance is negative or not finite, or an argument is of another type.

    Examples
    --------
    >>> from mig_opt.serving.deployment import Segment
    >>> from mig_opt.gpu.catalogue import get_gpu
    >>> from mig_opt.serving.profile_table import Point, ProfileTable
    >>> from mig_opt import Demand, Pool, Service
    >>> table = ProfileTable("bert", "A100-80GB", (Point(1, 1, 1, 74.4, 0.013), Point(2, 8, 1, 230.0, 0.034)))
    >>> demand = Demand((Service("chat", 0.1, 300, "bert"),), (table,), (Pool(get_gpu("A100-80GB")),))
    >>> small = Segment("chat", 0, "1g.10gb", 6, batch=1, processes=1, throughput=74.4, latency=0.013)
    >>> large = Segment("chat", 0, "2g.20gb", 0, batch=8, processes=1, throughput=230.0, latency=0.034)
    >>> print(validate_deployment(demand, Deployment(("A100-80GB",), (large, small))))
    valid, 1 GPU
    >>> print(validate_deployment(demand, Deployment(("A100-80GB",), (large,))).violations[0])
    services[0]: the segments of 'chat' answer 230 requests/s together, but 300 requests/s arrive (rate-not-met)
    """
    raise_any([*wrong_demand(demand), *wrong_number("tolerance", tolerance, "a finite number >= 0", at_least=0)])
    check_deployments(deployment=deployment)
    placed = PlacedDeployment.of(deployment)
    case = _Case(demand, placed, tolerance, _profiled(demand, placed), deployment)
    violations = [violation for rule in INSTANCE_RULES for violation in rule(placed)]
    violations += [violation for demand_rule in _RULES for violation in demand_rule(case)]
    return DeploymentValidation(deployment.used_gpus, tuple(violations))


@dataclass(frozen=True, slots=True)
class _ProfiledSegment:
    """A segment that has a place and a service, with what was measured."""

    path: str  # its path in the deployment
    segment: Segment  # the segment
    profile: Profile  # the profile of its instance
    service: Service  # its service
    table: ProfileTable | None  # the profile table of its model on that kind of GPU
    point: Point | None  # the figures measured for just this batch size, number of processes and size


@dataclass(frozen=True, slots=True)
class _Case:
    """A deployment and its demand, sorted out for the rules."""

    demand: Demand
    placed: PlacedDeployment
    tolerance: float
    profiled: tuple[_ProfiledSegment, ...]
    deployment: Deployment


def _profiled(demand: Demand, deployment: PlacedDeployment) -> tuple[_ProfiledSegment, ...]:
    """Look up what was measured for the segments that have a place and a service."""
    services = {service.name: service for service in demand.services}
    tables = {(table.model, table.gpu): table for table in demand.measured}
    points = {
        (key, point.size, point.batch, point.processes): point
        for key, table in tables.items()
        for point in table.points
    }
    found = []
    for placed in deployment.placed:
        segment, profile = placed.entry, placed.placement.profile
        if (service := services.get(segment.service)) is not None:
            key = service.model, profile.gpu
            point = points.get((key, profile.compute_slices, segment.batch, segment.processes))
            path = f"segments[{placed.index}]"
            found.append(_ProfiledSegment(path, segment, profile, service, tables.get(key), point))
    return tuple(found)


# Rules about what a segment achieves.


def _unknown_services(case: _Case) -> Iterator[Violation]:
    names = [service.name for service in case.demand.services]
    known = set(names)
    for index, segment in enumerate(case.deployment.segments):
        if segment.service not in known:
            message = f"the demand has no service {segment.service!r}; {nearest(segment.service, names)}"
            yield Violation(Code.UNKNOWN_SERVICE, f"segments[{index}].service", message)


def _unknown_ways(case: _Case) -> Iterator[Violation]:
    for profiled in case.profiled:
        segment, model, profile = profiled.segment, profiled.service.model, profiled.profile
        if profiled.table is None:
            message = f"{model!r} has no profile table for {case.deployment.gpus[segment.gpu]}"
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


def _wrong_figures(case: _Case) -> Iterator[Violation]:
    for profiled in case.profiled:
        if profiled.point is None:
            continue
        for name, code, unit in (
            ("throughput", Code.WRONG_THROUGHPUT, "requests/s"),
            ("latency", Code.WRONG_LATENCY, "s"),
        ):
            stated, measured = getattr(profiled.segment, name), getattr(profiled.point, name)
            if not math.isclose(stated, measured, rel_tol=case.tolerance):
                message = f"the profile table says {measured:.12g} {unit}, the segment {stated:.12g} {unit}"
                yield Violation(code, f"{profiled.path}.{name}", message)


def _too_slow(case: _Case) -> Iterator[Violation]:
    rule = case.demand.rule
    for profiled in case.profiled:
        service, point = profiled.service, profiled.point
        if point is None:
            continue
        for name, seconds, limit in rule.too_slow(point, service):
            verb = "must be below" if rule.whole_ms and name != "itl" else "must be at most"
            if seconds is None:
                message = f"the profile table of {service.model!r} has no {name} for it; it {verb} {limit:.12g} s"
            else:
                what = f"for a batch of {point.batch}" if name == "latency" else f"of {name} with {point.batch} at once"
                message = (
                    f"{service.name!r} takes {seconds:.12g} s {what}; within its SLO of "
                    f"{service.slos[name]:.12g} s {name} {verb} {limit:.12g} s"
                )
            yield Violation(Code.TOO_SLOW, profiled.path, message)


def _too_many_processes(case: _Case) -> Iterator[Violation]:
    most = case.demand.max_processes
    for index, segment in enumerate(case.deployment.segments):
        if most is not None and segment.processes > most:
            message = f"{segment.processes} processes share the instance; at most {most} may"
            yield Violation(Code.TOO_MANY_PROCESSES, f"segments[{index}].processes", message)


def _memory(case: _Case) -> Iterator[Violation]:
    for profiled in case.profiled:
        needed = None if profiled.table is None else profiled.table.memory_gb
        profile = profiled.profile
        if needed is not None and needed > profile.memory_gb:
            message = f"{profiled.service.model!r} needs {needed:g} GB; {profile.name} has {profile.memory_gb:g} GB"
            yield Violation(Code.INSUFFICIENT_MEMORY, f"{profiled.path}.profile", message)


# Rules about services and pools.


def _services(case: _Case) -> Iterator[Violation]:
    """Compare what each service gets with what it needs.

    A segment counts with what was measured; where that is not known, which is reported, with what it states.
    """
    measured = {profiled.path: profiled.point for profiled in case.profiled}
    given: dict[str, list[float]] = defaultdict(list)
    for index, segment in enumerate(case.deployment.segments):
        point = measured.get(f"segments[{index}]")
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


def _pools(case: _Case) -> Iterator[Violation]:
    """Compare the GPUs that have segments with the pools; a GPU without segments costs nothing."""
    counts = {pool.kind.name: pool.count for pool in case.demand.pools}
    used: Counter[str] = Counter()
    for gpu in sorted({segment.gpu for segment in case.deployment.segments}):
        kind = case.placed.kind(gpu)
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


_RULES = (_unknown_services, _unknown_ways, _wrong_figures, _too_slow, _too_many_processes, _memory, _services, _pools)
