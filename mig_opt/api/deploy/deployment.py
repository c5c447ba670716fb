"""Entry point for services: :func:`deploy` runs any method on a demand."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Unpack

from mig_opt.api.change import align
from mig_opt.errors import InputError, Problem, nearest, problems_of, raise_any
from mig_opt.method.control import Control, call, run
from mig_opt.method.options import RunKeywords, run_options
from mig_opt.method.registry import AUTO, DEPLOY_METHODS, Method, get_deploy_method
from mig_opt.method.result import Status
from mig_opt.rules import entries_of, wrong_type
from mig_opt.serving.bounds import Relaxation, shortage
from mig_opt.serving.costs import plain
from mig_opt.serving.demand import MOST_SEGMENTS, Demand, Service, measured_points, wrong_demand
from mig_opt.serving.deployment import Deployment, DeploymentResult
from mig_opt.texts import plural
from mig_opt.validation import validate_deployment
from mig_opt.validation.serving.deployments import check_instances
from mig_opt.validation.violations import DeploymentViolationCode, Violation


def deploy(
    demand: Demand,
    method: str | Callable[..., Deployment | None] = AUTO,
    *,
    running: Deployment | None = None,
    only: Iterable[str] | None = None,
    time_limit: float | None = None,
    initial: Deployment | None = None,
    **options: Unpack[RunKeywords],
) -> DeploymentResult:
    """Find a deployment of least cost that serves every service in time: of fewest GPUs, if each costs 1.

    Among deployments of the least cost, ``exact`` looks for one of fewest GPUs, among those for one of fewest compute
    slices, and among these for one of fewest changes to what is running.

    Parameters
    ----------
    demand : Demand
        Services, what their models achieve, and the GPUs that there are.
    method : str or callable
        One of :func:`mig_opt.methods`, or ``auto``: ``exact``, or with ``only`` the method ``parvagpu``. Or one of your
        own: a function of a demand, or of a demand and the seconds that it has, that returns a deployment or None.
    running : Deployment, optional
        What is running now. GPUs keep their numbers, and as much as possible stays where it is.
    only : iterable of str, optional
        Names of the services whose segments may change; all others of ``running`` stay where they are (ParvaGPU,
        section III-F). By default every service may change. For the methods ``parvagpu``, ``parvagpu-single`` and
        ``parvagpu-unoptimized``.
    time_limit : float, optional
        Seconds; by default there is no limit.
    initial : Deployment, optional
        Where the run begins, a valid deployment: the result is no worse. Unlike ``running`` it need not be kept to.
    **options
        The other :class:`~mig_opt.method.options.RunOptions`, as for :func:`mig_opt.solve`. The objective is the cost
        of the GPUs; with a ``gap`` of 0, fewer GPUs, compute slices and changes are looked for even where no deployment
        costs less. The methods of today have one thread.

    Returns
    -------
    DeploymentResult
        Also after Ctrl-C, with the best deployment until then.

    Raises
    ------
    InputError
        If an argument is wrong, the segments that are to stay break a rule, or a demand needs more than
        a million segments.
    SolverError
        If a method breaks its contract.

    Examples
    --------
    >>> from mig_opt import deploy, load
    >>> result = deploy(load("parvagpu-s1"))
    >>> result.status.value, result.gpus, result.lower_bound
    ('optimal', 2, 2)

    One service has twice as many requests, and only its segments change:

    >>> import dataclasses
    >>> demand = load("parvagpu-s1")
    >>> running = deploy(demand, "parvagpu").deployment
    >>> services = list(demand.services)
    >>> services[5] = dataclasses.replace(services[5], rate=2 * services[5].rate)  # vgg19
    >>> updated = deploy(demand.replace(services=tuple(services)), running=running, only=["vgg19"])
    >>> changed = set(updated.deployment.segments) ^ set(running.segments)
    >>> updated.method, updated.gpus, {segment.service for segment in changed}
    ('parvagpu', 2, {'vgg19'})
    """
    method = updating(method) if only is not None else method
    problems = [*wrong_demand(demand), *wrong_deployments(running=running, initial=initial)]
    settings = run_options(DEPLOY_METHODS, method, also=problems, functions=True, time_limit=time_limit, **options)
    if running is not None:
        check_instances(running=running)
    if initial is not None:
        refused = [violation.problem("initial") for violation in validate_deployment(demand, initial).violations]
        if only is not None:
            refused.append(Problem("initial", "is not for runs in which only some services may change; leave it out"))
        raise_any(refused)
    found = get_deploy_method(method)
    retained = None if only is None else retained_segments(found, running, only, demand)
    unservable = why_unservable(demand)
    if not unservable:
        check_size(usable(demand, found.name))
    control = Control[Deployment](
        settings,
        judge=lambda deployment: deployment.goals(demand, running),
        adjust=None if running is None or retained is not None else functools.partial(align, running),
    )

    def make_result(*, status: Status, proven: tuple[str, ...], lower_bound: float, **known: Any) -> DeploymentResult:
        least = "gpus" if demand.costs.counted else "cost"
        proven = proven or ((least,) if status is Status.OPTIMAL else ())
        known |= {"cost": control.objective, "lower_bound": plain(lower_bound)}
        return DeploymentResult(status=status, proven=proven, demand=demand, **known)

    return run(
        control,
        demand,
        found,
        lambda: _work(demand, found, control, unservable, initial, running=running, retained=retained),
        violations=lambda deployment: validate_deployment(demand, deployment).violations,
        make_result=make_result,
    )


def wrong_deployments(**given: object) -> Iterator[Problem]:
    """Yield a problem for each argument, by name, that is no deployment and not left out."""
    for name, value in given.items():
        if not isinstance(value, Deployment | None):
            yield wrong_type(name, value, "a Deployment (or left out)")


def retained_segments(method: Method, running: Deployment | None, only: Iterable[str], demand: Demand) -> Deployment:
    """Return the running fleet with the segments that stay, those of all services but those named in ``only``.

    They may be services of the demand, or running and no longer demanded. Refused are methods that cannot leave
    segments where they are, a missing fleet, unknown names, and segments that stay and break a rule, so that no
    deployment has them; each service that has to be named as well is told.
    """
    if "retained" not in method.options:
        able = ", ".join(one.name for one in DEPLOY_METHODS.entries if "retained" in one.options)
        raise InputError([Problem("only", f"method {method.name!r} cannot leave segments where they are; {able} can")])
    if running is None:
        message = "nothing is running that could stay; give a running deployment (--from OLD), or leave this out"
        raise InputError([Problem("only", message)])
    names = set(entries_of("only", only, str, "the name of a service"))
    demanded = [service.name for service in demand.services]
    known = dict.fromkeys([*demanded, *(segment.service for segment in running.segments)])
    problems = [
        Problem("only", f"there is no service {name!r}; {nearest(name, known)}")
        for name in sorted(names.difference(known))
    ]
    retained = running.replace(segments=(one for one in running.segments if one.service not in names))
    ended = dict.fromkeys(one.service for one in retained.segments if one.service not in set(demanded))
    problems += [
        Problem("only", f"{name!r} is running and no longer demanded; name it as well, so that it ends")
        for name in ended
    ]
    others = tuple(service for service in demand.services if service.name not in names)
    if others:
        problems += _broken(validate_deployment(demand.replace(services=others), retained).violations)
    raise_any(problems)
    return retained


def _broken(violations: Iterable[Violation]) -> Iterator[Problem]:
    """Yield a problem for each rule that what stays breaks."""
    for violation in violations:
        if violation.code is DeploymentViolationCode.UNKNOWN_SERVICE:
            continue  # it has ended, which is told already
        if violation.path.startswith("services"):
            yield Problem("only", f"{violation.message}; name this service as well")
        else:
            yield Problem(f"running.{violation.path}", f"stays, but {violation.message}")


def _work(
    demand: Demand,
    method: Method,
    control: Control[Deployment],
    unservable: Sequence[str],
    initial: Deployment | None,
    **fleets: Deployment | None,
) -> None:
    if unservable:
        control.report_infeasible("; ".join(unservable))
        return
    if initial is not None:
        control.report_plan(initial)
    relaxation = Relaxation(demand)
    best = relaxation.bounds[0]
    control.raise_bound(best.cost, best.reason)
    lacking = shortage(demand, best)
    if lacking:
        control.report_infeasible(lacking)
        return
    for each in (get_deploy_method("search"), method) if method.warm_start else (method,):
        if not control.done:
            call(each, demand, control, relaxation=relaxation, **fleets)


def updating(method: Any) -> Any:
    """Return the method that updates some services: ``parvagpu`` in place of ``auto``."""
    return "parvagpu" if method == AUTO else method


_PROCESSES = {"parvagpu-single": 1}  # most processes of an instance, where a method has fewer than the demand allows


def usable(demand: Demand, method: str) -> Demand:
    """Return a demand with what a method uses of it."""
    return demand.replace(max_processes=_PROCESSES.get(method, demand.max_processes))


def check_size(demand: Demand) -> None:
    """Refuse a demand that needs too many segments, with the services that can be served and need most."""
    least = []
    for service, options in zip(demand.services, demand.options, strict=True):
        most = max((option.point.throughput for option in options), default=math.inf)
        least.append(max(math.ceil(min(service.rate / most, 1e300)), service.min_replicas))
    if sum(least) > MOST_SEGMENTS:
        share = MOST_SEGMENTS / len(least)
        raise InputError(
            Problem(
                f"services[{index}].{'rate' if count > service.min_replicas else 'min_replicas'}",
                f"needs at least {count:.6g} segments; deployments have at most {MOST_SEGMENTS:,}, so give a smaller "
                "one",
            )
            for index, (service, count) in enumerate(zip(demand.services, least, strict=True))
            if count > share
        )


def why_too_many(demand: Demand) -> str:
    """Return which rates need more segments than any deployment has; empty if none does."""
    return "; ".join(f"{problem.path} {problem.message}" for problem in problems_of(check_size, demand))


def why_unservable(demand: Demand) -> list[str]:
    """Return a line for each service that no instance can serve, with the best latency that it could have.

    Examples
    --------
    >>> from mig_opt import SloRule, load
    >>> why_unservable(load("parvagpu-s1").replace(rule=SloRule(0.001)))[0].partition("; ")[2]
    'the best is 0.013 s, on 1g.10gb'
    """
    lines = []
    for index in demand.unservable():
        service = demand.services[index]
        best = demand.best_latency(service)
        if best is None:
            lines.append(f"service {service.name!r} fits on no instance: {_why_nowhere(demand, service)}")
            continue
        latency, profile = best
        if len(service.slos) > 1:
            lines.append(_why_not_at_once(demand, service))
            continue
        word = "below" if demand.rule.whole_ms else "of at most"
        lines.append(
            f"service {service.name!r} needs a latency {word} {demand.rule.limit(service.slo):.6g} s "
            f"({demand.rule.share:g} of its SLO of {service.slo:g} s); the best is {latency:g} s, on {profile.name}"
        )
    return lines


def _why_not_at_once(demand: Demand, service: Service) -> str:
    """Return the limits of the latencies of a service that no point meets together, each with the best there is."""
    word = "below" if demand.rule.whole_ms else "of at most"
    parts = []
    for name, slo in service.slos.items():
        limit = f"of at most {slo:.6g}" if name == "itl" else f"{word} {demand.rule.limit(slo):.6g}"
        best = demand.best_latency(service, name)
        there = f"{best[0]:g} s, on {best[1].name}" if best else "not measured where it fits"
        parts.append(f"{name} {limit} s (the best is {there})")
    return f"service {service.name!r} needs at once {', '.join(parts)}; no instance has all of them"


def _why_nowhere(demand: Demand, service: Service) -> str:
    """Return which of memory and processes keeps a service from every instance."""
    processes = [point.processes for points in measured_points(demand, service.model).values() for point in points]
    if not processes:
        on = {table.gpu for table in demand.measured if table.model == service.model}
        if on.isdisjoint(pool.kind.name for pool in demand.pools):
            return f"its model {service.model!r} was not profiled on a whole GPU, and MIG is off"
        return f"its model {service.model!r} needs more memory than any that it was profiled on has"
    return (
        f"where it has enough memory its model {service.model!r} was profiled with "
        f"{plural(min(processes), 'process', 'processes')} or more, and at most {demand.max_processes} may share an "
        "instance"
    )
