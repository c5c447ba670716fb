"""Commands for deployments: services validate, services bound, services plot, services script."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from mig_opt.cli import options
from mig_opt.cli.inputs import piped
from mig_opt.cli.planning import bound_problem, plot_plan, script_plan, validate_plan
from mig_opt.cli.plans import ServingPlans


def validate(
    services: options.ServicesArgument,
    deployment: options.DeploymentArgument,
    *,
    given: options.ServicesOptions,
    tolerance: Annotated[
        float | None, Option(metavar="S", help="Share by which figures may differ.  [default: 1e-9]")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Check a deployment of services against every rule.

    Exits with 0 if it is valid, else 1.
    """
    validate_plan(_plans(services, given), deployment, tolerance, as_json=as_json)


def bound(services: options.ServicesArgument, *, given: options.ServicesOptions, as_json: options.Json = False) -> None:
    """Show lower bounds on the number of GPUs.

    Exits with 1 if they show that there is no deployment at all.
    """
    bound_problem(_plans(services, given), as_json=as_json)


def plot(
    services: options.ServicesArgument,
    deployment: options.DeploymentArgument,
    out: options.PictureArgument,
    *,
    given: options.ServicesOptions,
) -> None:
    """Draw which services are on which GPU of a deployment."""
    plot_plan(_plans(services, given), deployment, out)


def script(
    services: options.ServicesArgument,
    deployment: options.DeploymentArgument,
    out: options.ScriptArgument,
    *,
    given: options.ServicesOptions,
    devices: options.Devices = None,
) -> None:
    """Write a bash script that makes a deployment.

    It has nvidia-smi commands, and hooks for the processes of services. Exits with 1 if the deployment is not valid;
    nothing is written then.
    """
    script_plan(_plans(services, given), deployment, out, devices)


def _plans(services: str, given: options.ServicesOptions) -> ServingPlans:
    return ServingPlans(services, piped(services), given)
