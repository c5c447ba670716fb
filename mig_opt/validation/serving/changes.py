"""The validator of changes: replays the steps of a plan, with one small function per rule."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mig_opt.errors import raise_any
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.gpu.model import GpuModel, GpuPlacement, Location, OperationCosts, Placement
from mig_opt.rules import wrong_class, wrong_number
from mig_opt.serving.change_plan import ENOUGH, ChangePlan, ChangeStep, needs_during, operation_costs
from mig_opt.serving.demand import Demand, wrong_demand
from mig_opt.serving.deployment import Deployment, Segment
from mig_opt.texts import plural
from mig_opt.validation.placed import (
    Placed,
    Span,
    clash_message,
    clashes,
    in_seconds,
    leeway,
    overlaps,
    placed_entries,
    placement_problems,
    time_problems,
)
from mig_opt.validation.serving.deployments import check_change
from mig_opt.validation.violations import ChangeViolationCode as Code
from mig_opt.validation.violations import Verdict, Violation


@dataclass(frozen=True, slots=True)
class ChangeValidation(Verdict):
    """Verdict of the validator about the plan of a change.

    Attributes
    ----------
    duration : float
        Seconds until the last step ends, recomputed.
    interrupted : tuple of Segment
        The segments that are interrupted, found again.
    violations : tuple of Violation
        Everything that is wrong; empty if the plan is valid.
    """

    duration: float
    interrupted: tuple[Segment, ...]
    violations: tuple[Violation, ...]

    @property
    def _figures(self) -> str:
        return f"{len(self.interrupted)} interrupted, {in_seconds(self.duration)}"


@dataclass(frozen=True, slots=True)
class ChangeCase:
    """A change with its plan, sorted out for the rules."""

    # before and after
    running: Deployment
    deployment: Deployment
    plan: ChangePlan  # the steps between
    tolerance: float  # seconds by which two times may differ and still count as equal
    kinds: tuple[GpuModel, ...]  # the kind of each GPU of the fleet
    costs: Mapping[str, OperationCosts]  # by kind of GPU
    steps: tuple[Placed[ChangeStep], ...]  # the steps that make sense in themselves


def validate_change(
    running: Deployment,
    deployment: Deployment,
    plan: ChangePlan,
    *,
    demand: Demand | None = None,
    operations: Mapping[str, OperationCosts] | None = None,
    tolerance: float = 1e-6,
) -> ChangeValidation:
    """Check the plan of a change: replay its steps, and compare what it says with what happens.

    Parameters
    ----------
    running, deployment : Deployment
        Before and after, as in :func:`mig_opt.plan_change`.
    plan : ChangePlan
        The steps between. Its claims about what is proven are not checked.
    demand : Demand, optional
        Has the rates of the services.
    operations : mapping of str to OperationCosts, optional
        The times of creations and destructions, where they differ from those of the catalogue.
    tolerance : float
        Seconds by which two times may differ and still count as equal.

    Returns
    -------
    ChangeValidation
        All violations, not only the first. The throughput of a segment is the one that the deployments state.

    Raises
    ------
    InputError
        If a deployment has instances that cannot exist or no throughput, their GPUs are not the same, or an argument is
        wrong.

    Examples
    --------
    >>> old = Segment("chat", 0, "2g.20gb", 0, batch=8, processes=1, throughput=230.0, latency=0.034)
    >>> running, nothing = Deployment(("H100-80GB",), (old,)), Deployment(("H100-80GB",), ())
    >>> step = ChangeStep("destroy", 0, "2g.20gb", 0, begin=0.0, end=0.23, ends=old)
    >>> print(validate_change(running, nothing, ChangePlan(("H100-80GB",), (), (step,), (), 0.23)))
    valid, 0 interrupted, 0.23 s
    """
    check_change(running, deployment)
    problems = [*wrong_number("tolerance", tolerance, "a finite number of seconds >= 0", at_least=0)]
    problems += () if demand is None else wrong_demand(demand)
    raise_any([*problems, *wrong_class("plan", plan, ChangePlan, "plan_change().plan")])
    gpus = max(running.gpus, deployment.gpus, key=len)
    kinds = tuple(map(get_gpu, gpus))
    steps = tuple(
        placed for placed in placed_entries(kinds, plan.steps) if not any(time_problems(placed.entry, tolerance))
    )
    costs = operation_costs(gpus, operations)
    case = ChangeCase(running, deployment, plan, tolerance, kinds, costs, steps)
    violations = [violation for rule in _RULES for violation in rule(case)]
    interrupted = tuple(_interrupted(case, needs_during(running, deployment, demand)))
    if [segment.identity for segment in interrupted] != [segment.identity for segment in plan.interrupted]:
        message = f"the plan says that {_named(plan.interrupted)} are interrupted; it is {_named(interrupted)}"
        violations.append(Violation(Code.WRONG_INTERRUPTED, "interrupted", message))
    return ChangeValidation(_duration(plan), interrupted, tuple(violations))


def _duration(plan: ChangePlan) -> float:
    return max((step.end for step in plan.steps), default=0.0)


def _named(segments: tuple[Segment, ...]) -> str:
    return ", ".join(f"{s.service} in {s.profile}@{s.start} of GPU {s.gpu}" for s in segments) or "none"


# Rules about single steps.


def _gpus(case: ChangeCase) -> Iterator[Violation]:
    if len(case.plan.gpus) != len(case.kinds):
        message = f"the fleet has {len(case.kinds)} GPUs, the plan {len(case.plan.gpus)}"
        yield Violation(Code.WRONG_GPUS, "gpus", message)
    for gpu, (kind, name) in enumerate(zip(case.kinds, case.plan.gpus, strict=False)):
        if name.casefold() not in {known.casefold() for known in (kind.name, *kind.aliases)}:
            yield Violation(Code.WRONG_GPUS, f"gpus[{gpu}]", f"is {name}; GPU {gpu} of the fleet is {kind.name}")


def _places(case: ChangeCase) -> Iterator[Violation]:
    for index, step in enumerate(case.plan.steps):
        if not 0 <= step.gpu < len(case.kinds):
            message = f"the fleet has {len(case.kinds)} GPUs, numbered from 0; there is no GPU {step.gpu}"
            yield Violation(Code.UNKNOWN_GPU, f"steps[{index}].gpu", message)
            continue
        for problem in placement_problems(case.kinds[step.gpu], step):
            yield Violation(Code.UNKNOWN_PLACEMENT, problem.below(f"steps[{index}]").path, problem.message)


def _times(case: ChangeCase) -> Iterator[Violation]:
    latest = 0.0
    for index, step in enumerate(case.plan.steps):
        problems = list(time_problems(step, case.tolerance))
        for problem in problems:
            yield Violation(Code.BAD_TIME, problem.below(f"steps[{index}]").path, problem.message)
        if problems:
            continue
        if step.moment < latest - leeway(latest, case.tolerance):
            message = f"comes at {in_seconds(step.moment)}, after a step that comes at {in_seconds(latest)}"
            yield Violation(Code.WRONG_ORDER, f"steps[{index}]", message)
        latest = max(latest, step.moment)


def _forms(case: ChangeCase) -> Iterator[Violation]:
    for index, step in enumerate(case.plan.steps):
        for name, segment, wanted in (
            ("ends", step.ends, step.kind != "create"),
            ("begins", step.begins, step.kind != "destroy"),
        ):
            if (segment is not None) != wanted:
                message = f"a step of kind {step.kind} {name} {'a' if wanted else 'no'} segment"
                yield Violation(Code.WRONG_STEP, f"steps[{index}].{name}", message)
            elif segment is not None and segment.place != step.place:
                message = f"the segment is in {segment.profile}@{segment.start} of GPU {segment.gpu}, not in the step's"
                yield Violation(Code.WRONG_STEP, f"steps[{index}].{name}", message)


def _durations(case: ChangeCase) -> Iterator[Violation]:
    for placed in case.steps:
        step, costs = placed.entry, case.costs[case.kinds[placed.entry.gpu].name]
        seconds = 0.0 if step.kind == "switch" else costs.of(step.kind, placed.placement.profile)
        if abs(step.end - step.begin - seconds) > leeway(step.end, case.tolerance):
            message = f"takes {in_seconds(seconds)}, but is {in_seconds(step.end - step.begin)} long here"
            yield Violation(Code.OPERATION_DURATION, f"steps[{placed.index}]", message)


def _stated_duration(case: ChangeCase) -> Iterator[Violation]:
    duration = _duration(case.plan)
    if not abs(case.plan.duration - duration) <= leeway(duration, case.tolerance):
        message = f"is said to be {in_seconds(case.plan.duration)}, but the last step ends at {in_seconds(duration)}"
        yield Violation(Code.WRONG_DURATION, "duration", message)


# Rules about what exists and serves at the same time.


def _operations_overlap(case: ChangeCase) -> Iterator[Violation]:
    operations = (placed for placed in case.steps if placed.entry.kind != "switch")
    spans = (Span(each.entry.begin, each.entry.end, each.entry.gpu, None, each.index) for each in operations)
    for earlier, later in overlaps(spans, case.tolerance):
        message = (
            f"begins at {in_seconds(later.begin)} on a GPU whose driver is at steps[{earlier.item}] until "
            f"{in_seconds(earlier.end)}"
        )
        yield Violation(Code.OPERATIONS_OVERLAP, f"steps[{later.item}]", message)


def _instances_exclude(case: ChangeCase) -> Iterator[Violation]:
    begins: dict[GpuPlacement, tuple[float, str]] = {
        (segment.gpu, case.kinds[segment.gpu].placement(segment.profile, segment.start)): (-math.inf, "running")
        for segment in case.running.segments
    }
    spans: list[Span[Placement, str]] = []
    for placed in case.steps:
        step, where = placed.entry, (placed.entry.gpu, placed.placement)
        if step.kind == "create" and where not in begins:
            begins[where] = step.begin, f"steps[{placed.index}]"
        elif step.kind == "destroy" and where in begins:
            begin, path = begins.pop(where)
            spans.append(Span(begin, step.end, *where, path))
    spans += [Span(begin, math.inf, *where, path) for where, (begin, path) in begins.items()]
    for later, earlier in clashes(spans, case.tolerance):
        shared = later.key.conflicts(earlier[0].key)
        code = Code.INSTANCES_OVERLAP if shared else Code.TOO_MANY_INSTANCES
        yield Violation(code, later.item, clash_message(later, earlier))


def _segments(case: ChangeCase) -> Iterator[Violation]:
    live = {segment.place: segment.identity for segment in case.running.segments}
    ended = set()
    for index, step in enumerate(case.plan.steps):
        there = live.pop(step.place, None)
        ended.add(there)
        stated = None if step.ends is None else step.ends.identity
        if there != stated:
            message = "nothing serves there then" if there is None else f"it is {there[0]!r} that serves there then"
            if there is not None and stated is not None and there[0] == stated[0]:
                message += ", with another batch size or number of processes"
            yield Violation(Code.WRONG_SEGMENT, f"steps[{index}]", message)
        if step.begins is not None:
            live[step.place] = step.begins.identity
    wanted = {segment.identity for segment in case.deployment.segments}
    if set(live.values()) != wanted:
        more, less = len(set(live.values()) - wanted), len(wanted - set(live.values()))
        message = f"after the last step {plural(more, 'segment')} too many and {less} too few serve"
        yield Violation(Code.WRONG_END, "steps", message)
    kept = {segment.identity for segment in case.running.segments} - ended
    if {segment.identity for segment in case.plan.kept} != kept:
        message = (
            f"must name {plural(len(kept), 'segment')}, what goes on all the time; names {len(case.plan.kept)}, not "
            "all of them these"
        )
        yield Violation(Code.WRONG_KEPT, "kept", message)


def _interrupted(case: ChangeCase, needs: Mapping[str, float]) -> Iterator[Segment]:
    """Yield the segments after whose end their service lacks throughput."""
    stated = {segment.identity: segment for segment in (*case.running.segments, *case.deployment.segments)}
    live: dict[str, dict[Location, float]] = defaultdict(dict)
    serving: dict[Location, Segment] = {}

    def begin(segment: Segment) -> None:
        known = serving[segment.place] = stated.get(segment.identity, segment)
        live[known.service][known.place] = known.throughput

    for segment in case.running.segments:
        begin(segment)
    for step in case.plan.steps:
        ends = serving.pop(step.place, None)
        if ends is not None:
            del live[ends.service][step.place]
            if math.fsum(live[ends.service].values()) < needs.get(ends.service, 0.0) * ENOUGH:
                yield ends
        if step.begins is not None:
            begin(step.begins)


_RULES = (
    *(_gpus, _places, _times, _forms, _durations, _operations_overlap, _instances_exclude, _segments),
    _stated_duration,
)
