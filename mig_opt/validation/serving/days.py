"""The validator of days: each step's deployment, each change, and that they belong together."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from mig_opt.errors import InputError, raise_any
from mig_opt.rules import wrong_class
from mig_opt.serving.day import Day, DayPlan
from mig_opt.serving.demand import Demand
from mig_opt.texts import plural
from mig_opt.validation.serving.changes import validate_change
from mig_opt.validation.serving.deployments import PlacedDeployment, validate_deployment
from mig_opt.validation.violations import DayViolationCode as Code
from mig_opt.validation.violations import DeploymentViolationCode, Verdict, Violation


@dataclass(frozen=True, slots=True)
class DayValidation(Verdict):
    """Verdict of the validator about the plan of a day.

    Attributes
    ----------
    gpu_hours : float
        GPUs with a segment times hours, counted again.
    created : int
        Segments that are in a step and not in the one before, counted again.
    interrupted : int
        Segments after whose end their service lacks throughput, counted again.
    violations : tuple of Violation
        Everything that is wrong; empty if the plan is valid.
    """

    gpu_hours: float
    created: int
    interrupted: int
    violations: tuple[Violation, ...]

    @property
    def _figures(self) -> str:
        return f"{self.gpu_hours:.6g} GPU-hours, {self.created} created, {self.interrupted} interrupted"


def validate_day(day: Day, plan: DayPlan) -> DayValidation:
    """Check the plan of a day: every deployment against the rates of its step, every change from one to the next.

    Parameters
    ----------
    day : Day
        Services, rates and prices.
    plan : DayPlan
        A deployment for each step, and the changes.

    Returns
    -------
    DayValidation
        All violations, not only the first: those of deployments with paths such as ``deployments[3].segments[0]``,
        those of changes such as ``changes[2].steps[1]``.

    Raises
    ------
    InputError
        If an argument is of another type.

    Examples
    --------
    >>> from mig_opt import RateTable, deploy_day, load
    >>> demand = load("parvagpu-s1")
    >>> rows = {service.name: (service.rate, 2 * service.rate) for service in demand.services}
    >>> result = deploy_day(demand, RateTable((0, 1800, 3600), rows))
    >>> validate_day(result.day, result.plan).valid
    True
    """
    raise_any([*wrong_class("day", day, Day), *wrong_class("plan", plan, DayPlan, "deploy_day(demand, rates).plan")])
    violations = [violation for rule in _RULES for violation in rule(day, plan)]
    steps = zip(plan.deployments, plan.times, plan.times[1:], strict=False)
    gpu_hours = sum(len({one.gpu for one in step.segments}) * (end - begin) / 3600 for step, begin, end in steps)
    identities = [{one.identity for one in deployment.segments} for deployment in plan.deployments]
    created = sum(len(after - before) for before, after in itertools.pairwise(identities))
    interrupted = sum(len(change.interrupted) for change in plan.changes)
    return DayValidation(gpu_hours, created, interrupted, tuple(violations))


def _asked(day: Day, step: int) -> Demand | None:
    """Return what a step has to serve, straight from the table; None if nobody asks for anything."""
    services = tuple(
        dataclasses.replace(service, rate=rate * (1 + day.margin))
        for service in day.demand.services
        if (rate := day.rates.rates[service.name][step]) > 0
    )
    return day.demand.replace(services=services) if services else None


def _lengths(day: Day, plan: DayPlan) -> Iterator[Violation]:
    if plan.times != day.rates.times:
        yield Violation(Code.WRONG_TIMES, "times", "are not those of the table of rates")
    for name, found, wanted in (
        ("deployments", len(plan.deployments), day.steps),
        ("changes", len(plan.changes), day.steps - 1),
    ):
        if found != wanted:
            yield Violation(Code.WRONG_LENGTH, name, f"has {found} for {plural(day.steps, 'step')}, needs {wanted}")


def _fleet(_: Day, plan: DayPlan) -> Iterator[Violation]:
    for step, deployment in enumerate(plan.deployments):
        if deployment.gpus != plan.deployments[0].gpus:
            message = "has other GPUs than the first step; they must have the same numbers all day"
            yield Violation(Code.OTHER_GPUS, f"deployments[{step}].gpus", message)


def _deployments(day: Day, plan: DayPlan) -> Iterator[Violation]:
    for step, deployment in enumerate(plan.deployments[: day.steps]):
        demand = _asked(day, step)
        if demand is not None:
            found = validate_deployment(demand, deployment).violations
        else:
            message = f"nobody asks for {{!r}} at {day.clock(step)}"
            unknown, names = DeploymentViolationCode.UNKNOWN_SERVICE, (one.service for one in deployment.segments)
            found = tuple(
                Violation(unknown, f"segments[{index}].service", message.format(name))
                for index, name in enumerate(names)
            )
        for violation in found:
            yield dataclasses.replace(violation, path=f"deployments[{step}].{violation.path}")


def _changes(day: Day, plan: DayPlan) -> Iterator[Violation]:
    steps = zip(plan.deployments, plan.deployments[1 : day.steps], plan.changes, strict=False)
    for at, (before, after, change) in enumerate(steps):
        try:
            found = validate_change(before, after, change, demand=_asked(day, at + 1)).violations
        except InputError as error:
            for problem in error.problems:
                yield Violation(Code.WRONG_CHANGE, f"changes[{at}].{problem.path}", problem.message)
            continue
        for violation in found:
            yield dataclasses.replace(violation, path=f"changes[{at}].{violation.path}")


def _pools(day: Day, plan: DayPlan) -> Iterator[Violation]:
    """Count the GPUs that have segments before or after a change, for then they are needed during the change."""
    counts = {pool.kind.name: pool.count for pool in day.demand.pools}
    placed = (PlacedDeployment.of(each).placed for each in plan.deployments)
    used = [{(one.entry.gpu, one.placement.profile.gpu) for one in own} for own in placed]
    for at, gpus in enumerate(map(set.union, used, used[1:])):
        for name, number in Counter(name for _, name in gpus).items():
            most = counts.get(name)
            if most is not None and number > most:
                message = f"{number} GPUs of the kind {name} are needed during the change; the pool has {most}"
                yield Violation(Code.POOL_EXCEEDED, f"changes[{at}]", message)


_RULES = (_lengths, _fleet, _deployments, _changes, _pools)
