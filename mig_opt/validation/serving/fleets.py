"""Refuses deployments that nobody can change from or to."""

from __future__ import annotations

from mig_opt.errors import InputError, Problem
from mig_opt.gpu.model import get_gpu
from mig_opt.serving.deployment import Deployment, check_deployments
from mig_opt.validation.serving.instance_rules import fleet_violations

_MOST_THROUGHPUT = 1e15
_THROUGHPUT = f"a number of requests per second from 0 to {_MOST_THROUGHPUT:g}"


def check_fleets(**deployments: Deployment) -> None:
    """Refuse deployments, given by the names of arguments, with instances that cannot exist, or of another type.

    Raises
    ------
    InputError
        With everything that is wrong.
    """
    check_deployments(**deployments)
    problems = [
        Problem(violation.path, violation.message).below(name)
        for name, deployment in deployments.items()
        for violation in fleet_violations(deployment)
    ]
    if problems:
        raise InputError(problems)


def check_same_gpus(running: Deployment, deployment: Deployment) -> None:
    """Refuse legal deployments whose GPUs of the same number differ in kind.

    Raises
    ------
    InputError
        With every GPU that differs.
    """
    problems = [
        Problem(
            f"deployment.gpus[{gpu}]",
            f"is {new}, but GPU {gpu} of the running fleet is {old}; align(running, deployment) numbers them alike",
        )
        for gpu, (old, new) in enumerate(zip(running.gpus, deployment.gpus, strict=False))
        if get_gpu(old) != get_gpu(new)
    ]
    if problems:
        raise InputError(problems)


def check_throughputs(**deployments: Deployment) -> None:
    """Refuse deployments, given by the names of arguments, with throughput that nobody can count with.

    Raises
    ------
    InputError
        With every figure that is negative, not finite, or beyond all measure.
    """
    problems = [
        Problem(f"{name}.segments[{index}].throughput", f"must be {_THROUGHPUT}, is {segment.throughput}")
        for name, deployment in deployments.items()
        for index, segment in enumerate(deployment.segments)
        if not 0 <= segment.throughput <= _MOST_THROUGHPUT
    ]
    if problems:
        raise InputError(problems)
