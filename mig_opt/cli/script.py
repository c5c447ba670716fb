"""The commands script and services script."""

from __future__ import annotations

from pathlib import Path

from mig_opt.cli import options
from mig_opt.cli.answers import ANSWER_IS_NO, Call, Product, script_of
from mig_opt.cli.inputs import parsed_devices
from mig_opt.cli.problems import Given, given_problem, given_services


def script(
    call: Call,
    batch: options.BatchArgument,
    schedule: options.ScheduleArgument,
    out: options.ScriptArgument,
    *,
    given: options.ProblemOptions,
    devices: options.Devices = None,
) -> Product:
    """Write a bash script that carries out a schedule.

    It has nvidia-smi commands, and hooks for the rest. A schedule without operations gets some. Exits with 1 if the
    schedule is not valid; nothing is written then. For deployments: mig-opt services script.

    Examples
    --------
    mig-opt script batch.json plan.json plan.sh
    mig-opt script batch.json plan.json plan.sh --devices 2,3
    """
    return _scripted(call, given_problem(batch, schedule, given), schedule, out, devices)


def services_script(
    call: Call,
    services: options.ServicesArgument,
    deployment: options.DeploymentArgument,
    out: options.ScriptArgument,
    *,
    given: options.ServicesOptions,
    devices: options.Devices = None,
) -> Product:
    """Write a bash script that makes a deployment.

    It has nvidia-smi commands, and hooks for the processes of services. Exits with 1 if the deployment is not valid;
    nothing is written then.

    Examples
    --------
    mig-opt services script services.json fleet.json fleet.sh
    """
    return _scripted(call, given_services(services, given), deployment, out, devices)


def _scripted(call: Call, given: Given, path: Path, out: Path, devices: str | None) -> Product:
    """Return the script that carries out a plan in a file."""
    given.read(call, path)
    count = None
    if not call.errors:
        count = given.kind.number_of_gpus(given)
        if given.kind.check_script is not None:
            call.attempt(given.kind.check_script, given, path)
    names = call.attempt(parsed_devices, devices, count)
    call.begin(output=out)
    if wrong := given.validate():
        said = f"The {given.kind.noun} is not valid ({wrong}); see: mig-opt validate"
        return Product(code=ANSWER_IS_NO, said=[said])
    return Product(files=[script_of(out, given.kind.script(given, names), given.kind.hooks)])
