"""Plan of a change from one deployment to another: steps in time that end and begin segments."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from mig_opt.errors import InputError, Problem, problems_of, raise_any
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.gpu.devices import Device
from mig_opt.gpu.model import Location, OperationCosts
from mig_opt.gpu.problems import operation_problems
from mig_opt.method.report import Facts, good, unclear
from mig_opt.method.result import Result, card
from mig_opt.rules import wrong_type
from mig_opt.serving.demand import Demand
from mig_opt.serving.deployment import Deployment, Segment
from mig_opt.texts import plural

StepKind = Literal["destroy", "switch", "create"]

_GOALS = {"interruptions": "fewest interruptions", "duration": "shortest"}

ENOUGH = 1 - 1e-9
"""A service has what it needs if its throughput is at least this share of it: the rest is rounding."""


@dataclass(frozen=True, slots=True)
class ChangeStep:
    """Something that happens to one instance.

    A ``destroy`` ends the segment of its instance when it begins, and frees the memory slices when it ends. A
    ``create`` takes the memory slices when it begins, and its segment serves when it ends. A ``switch`` fills an
    instance that stays in another way: one segment ends, another begins, and the driver has nothing to do.

    Attributes
    ----------
    kind : str
        ``destroy``, ``switch`` or ``create``.
    gpu : int
        Index of the GPU.
    profile : str
        Profile name of the instance.
    start : int
        Start slice of the instance.
    begin, end : float
        Seconds after the change begins.
    ends : Segment or None
        The segment that ends; a creation ends none.
    begins : Segment or None
        The segment that begins; a destruction begins none.
    """

    kind: StepKind
    gpu: int
    profile: str
    start: int
    begin: float
    end: float
    ends: Segment | None = None
    begins: Segment | None = None

    @property
    def place(self) -> Location:
        """GPU, profile name and start slice."""
        return self.gpu, self.profile, self.start

    @property
    def moment(self) -> float:
        """The second at which segments end or begin."""
        return self.end if self.kind == "create" else self.begin


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """The way from a running deployment to a new one.

    Attributes
    ----------
    gpus : tuple of str
        The kind of each GPU of the fleet.
    kept : tuple of Segment
        The segments that go on all the time.
    steps : tuple of ChangeStep
        By the moments at which segments end and begin; of steps with the same moment, one after the other.
    interrupted : tuple of Segment
        The segments after whose end their service lacks throughput, by the order of the steps.
    duration : float
        Seconds until the last step ends.
    proven : tuple of str
        The goals in which no plan is better, each given those before it: ``interruptions``, ``duration``.
    method : str
        ``exact`` if a solver was asked for what greedy rounds could not settle, else ``heuristic``.
    devices : tuple of Device
        What the first GPUs are, as for :class:`mig_opt.Deployment`.
    """

    gpus: tuple[str, ...]
    kept: tuple[Segment, ...]
    steps: tuple[ChangeStep, ...]
    interrupted: tuple[Segment, ...]
    duration: float
    proven: tuple[str, ...] = ()
    method: Literal["exact", "heuristic"] = "heuristic"
    devices: tuple[Device, ...] = ()

    def state_after(self, steps: int) -> Deployment:
        """Return the segments that serve after a number of steps.

        Raises
        ------
        InputError
            If the plan does not have that many steps.
        """
        if not 0 <= steps <= len(self.steps):
            raise InputError([Problem("steps", f"must be from 0 to {len(self.steps)}, is {steps}")])
        live: dict[Location, Segment | None] = {segment.place: segment for segment in self.kept}
        for step in self.steps:
            live.setdefault(step.place, step.ends)  # the first step at a place tells what was there before
        for step in self.steps[:steps]:
            live[step.place] = step.begins
        return Deployment(self.gpus, tuple(segment for segment in live.values() if segment is not None), self.devices)

    def figures(self) -> Facts:
        """Return what becomes of segments and instances, the duration, and what is proven."""
        kinds = Counter(step.kind for step in self.steps)
        unchanged = f"{plural(len(self.kept), 'segment')} as {'it is' if len(self.kept) == 1 else 'they are'}"
        names = ", ".join(dict.fromkeys(segment.service for segment in self.interrupted))
        return [
            ("kept", unchanged if self.kept else "no segment"),
            ("switched", f"{plural(kinds['switch'], 'instance')} to another service, batch size or processes"),
            ("destroyed", plural(kinds["destroy"], "instance")),
            ("created", plural(kinds["create"], "instance")),
            ("interrupted", unclear(names) if names else good("no service")),
            ("duration", f"{self.duration:.3f} s"),
            ("proven", ", then ".join(_GOALS[goal] for goal in self.proven) or None),
        ]

    def __str__(self) -> str:
        return card(self.figures())


@dataclass(frozen=True, slots=True)
class ChangeResult(Result[ChangePlan]):
    """Outcome of :func:`mig_opt.plan_change`: its plan is a :class:`ChangePlan`.

    The lower bound is a number of interrupted segments. The status is ``optimal`` if no plan has fewer of them, or as
    few and a shorter duration. There always is a plan.
    """

    plan: ChangePlan
    lower_bound: int

    @property
    def objective(self) -> int:
        """Number of interrupted segments."""
        return len(self.plan.interrupted)

    def figures(self) -> Facts:
        """Return method and the figures of the plan."""
        return [("method", self.method), *self.plan.figures()]


def needs_during(running: Deployment, deployment: Deployment, demand: Demand | None = None) -> dict[str, float]:
    """Return the requests per second that each running service needs during a change.

    That is what it has before, but no more than its rate; without a demand no more than what it has after. A service
    that is not in the demand, or gets no segment, needs nothing. A segment that stays counts with the throughput that
    the new deployment states.
    """
    stated = {segment.identity: segment for segment in deployment.segments}
    before = throughputs(stated.get(segment.identity, segment) for segment in running.segments)
    wanted = throughputs(deployment.segments)
    if demand is not None:
        wanted = {service.name: service.rate for service in demand.services}
    return {service: min(throughput, wanted.get(service, 0.0)) for service, throughput in before.items()}


def throughputs(segments: Iterable[Segment]) -> dict[str, float]:
    """Return the requests per second of segments together, by service."""
    parts: dict[str, list[float]] = defaultdict(list)
    for segment in segments:
        parts[segment.service].append(segment.throughput)
    return {service: math.fsum(part) for service, part in parts.items()}


def operation_costs(
    gpus: Iterable[str], operations: Mapping[str, OperationCosts] | None = None
) -> dict[str, OperationCosts]:
    """Return the operation costs for each kind of GPU, those of the catalogue where nothing else is given."""
    problems = []
    if not (operations is None or isinstance(operations, Mapping)):
        raise InputError([wrong_type("operations", operations, "OperationCosts by the names of GPUs")])
    costs = {kind.name: kind.operation_costs for kind in map(get_gpu, gpus)}
    for name, given in (operations or {}).items():
        path, unknown = f"operations.{name}", problems_of(get_gpu, name)
        problems += [Problem(path, problem.message) for problem in unknown]
        if not unknown and not isinstance(given, OperationCosts):
            problems.append(wrong_type(path, given, "OperationCosts"))
        elif not unknown:
            kind = get_gpu(name)
            problems += operation_problems(kind, given, path)
            costs[kind.name] = given
    raise_any(problems)
    return costs
