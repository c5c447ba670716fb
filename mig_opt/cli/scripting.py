"""The command ``script``: a schedule or a deployment for the machines that carry it out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NoReturn

import typer

from mig_opt.cli.batch.solving import read_plan
from mig_opt.cli.inputs import CostFreeOption, GpuOption, GpusOption, PlanArgument, ProblemArgument, piped
from mig_opt.cli.outcome import ANSWER_IS_NO, Checks, say
from mig_opt.cli.serving.exporting import check_names
from mig_opt.cli.serving.fleets import read_services_and_deployment
from mig_opt.cli.serving.inputs import (
    DemandOptions,
    MaxProcessesOption,
    ProfilesOption,
    ScenarioOption,
    SloShareOption,
    WholeMsOption,
    about_services,
)
from mig_opt.errors import InputError, Problem
from mig_opt.texts import printable
from mig_opt.validation import validate, validate_deployment

DevicesOption = Annotated[
    str | None,
    typer.Option(
        "--devices",
        metavar="LIST",
        help="What nvidia-smi -i takes for each GPU, after HOST/ in other machines.  [default: 0,1,...]",
    ),
]


def parsed_devices(devices: str | None, count: int | None) -> list[str] | None:
    """Return the devices of a list such as ``0,1,node-2/0``.

    Parameters
    ----------
    devices : str or None
        The list, if there is one.
    count : int or None
        How many it has to have, if that is known.

    Raises
    ------
    InputError
        With everything that is wrong about it.
    """
    from mig_opt.rollout.devices import devices_of

    if devices is None:
        return None
    names = [name.strip() for name in devices.split(",")]
    try:
        devices_of(len(names) if count is None else count, names)
    except InputError as error:
        raise InputError(Problem(f"--{problem.path}", problem.message) for problem in error.problems) from None
    return names


def script(
    batch: ProblemArgument,
    schedule: PlanArgument,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="File for bash.", show_default=False)],
    *,
    gpu: GpuOption = None,
    gpus: GpusOption = None,
    cost_free: CostFreeOption = False,
    profiles: ProfilesOption = None,
    scenario: ScenarioOption = None,
    slo_share: SloShareOption = None,
    whole_ms: WholeMsOption = None,
    max_processes: MaxProcessesOption = None,
    devices: DevicesOption = None,
) -> None:
    """Write a bash script that carries out a schedule or a deployment: nvidia-smi commands, and hooks for the rest.

    A schedule without operations gets some. Exits with 1 if it or the deployment is not valid; nothing is written then.
    """
    document = piped(batch)
    options = DemandOptions(gpu, profiles, scenario, slo_share, whole_ms, max_processes)
    if about_services(batch, document, schedule, options, {"--gpus": gpus, "--cost-free": cost_free}):
        _script_fleet(batch, schedule, out, options, document=document, devices=devices)
        return
    from mig_opt.rollout import schedule_script

    checks, count = Checks(), None
    with checks.step():
        problem, plan = read_plan(
            batch, schedule, gpu=gpu, gpus=gpus, cost_free=cost_free, output=out, document=document
        )
        count = problem.gpus
    with checks.step():
        names = parsed_devices(devices, count)
    checks.finish()
    found = validate(problem, plan)
    if not found.valid:
        _refuse("schedule", len(found.violations))
    _write(out, schedule_script(problem, found.schedule, devices=names), "HOOKS")


def _script_fleet(
    services: str, deployment: Path, out: Path, options: DemandOptions, *, document: bytes | None, devices: str | None
) -> None:
    """Write the script of a deployment."""
    from mig_opt.rollout import deployment_script

    checks, count = Checks(), None
    with checks.step():
        demand, fleet = read_services_and_deployment(services, deployment, options, document, output=out)
        count = len(fleet.gpus)
        held = ((f"segments[{index}].service", segment.service) for index, segment in enumerate(fleet.segments))
        check_names("nvidia-smi", held, str(deployment))
    with checks.step():
        names = parsed_devices(devices, count)
    checks.finish()
    found = validate_deployment(demand, fleet)
    if not found.valid:
        _refuse("deployment", len(found.violations))
    _write(out, deployment_script(fleet, devices=names), "[HOOKS]")


def _refuse(what: str, count: int) -> NoReturn:
    say(f"The {what} is not valid ({count} violation{'s' * (count > 1)}); see: mig-opt validate")
    raise typer.Exit(ANSWER_IS_NO)


def _write(out: Path, text: str, arguments: str) -> None:
    from mig_opt.files.documents import write_text

    write_text(out, text)
    typer.echo(f"Script written to {printable(str(out))}. Usage: bash {printable(str(out))} {arguments}")
