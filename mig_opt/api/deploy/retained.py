"""The part of a running deployment that stays if only some services may change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mig_opt.errors import InputError, Problem, nearest
from mig_opt.method.registry import DEPLOY_METHODS, Method
from mig_opt.rules import entries_of
from mig_opt.serving.demand import Demand
from mig_opt.serving.deployment import Deployment
from mig_opt.validation.serving.deployments import validate_deployment
from mig_opt.validation.violations import DeploymentViolationCode as Code
from mig_opt.validation.violations import Violation


def retained_segments(method: Method, running: Deployment | None, only: Iterable[str], demand: Demand) -> Deployment:
    """Return the running fleet with the segments that stay, those of all services but those named in ``only``.

    They may be services of the demand, or running and no longer demanded.

    Raises
    ------
    InputError
        If the method cannot leave segments where they are, nothing is running, a name is unknown, or the segments that
        stay break a rule, so that no deployment has them; each service that has to be named as well is told.

    Examples
    --------
    >>> from mig_opt import deploy, load
    >>> from mig_opt.method.registry import get_deploy_method
    >>> demand = load("parvagpu-s1")
    >>> running = deploy(demand, "parvagpu").deployment
    >>> kept = retained_segments(get_deploy_method("parvagpu"), running, ["vgg19"], demand)
    >>> len(running.segments), len(kept.segments)
    (6, 5)
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
    if problems:
        raise InputError(problems)
    return retained


def _broken(violations: Iterable[Violation]) -> Iterator[Problem]:
    """Yield a problem for each rule that what stays breaks."""
    for violation in violations:
        if violation.code is Code.UNKNOWN_SERVICE:
            continue  # it has ended, which is told already
        if violation.path.startswith("services"):
            yield Problem("only", f"{violation.message}; name this service as well")
        else:
            yield Problem(f"running.{violation.path}", f"stays, but {violation.message}")
