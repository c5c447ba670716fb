"""Deployments in the formats of other tools."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from mig_opt.cli.outcome import refuse
from mig_opt.errors import InputError, nearest
from mig_opt.serving.deployment import Deployment

if TYPE_CHECKING:
    from mig_opt.serving.change_plan import ChangePlan

FORMATS = ("json", "csv", "mig-parted", "nvidia-smi", "kubernetes")
WITH_DEVICES = FORMATS[2:]
"""Those that name GPUs of machines."""

ExportOption = Annotated[
    str | None, Option(metavar="FORMAT", help=f"{', '.join(FORMATS)}; to -o FILE or standard output.")
]


def check_export(form: str | None, devices: str | None) -> None:
    """Refuse a format that does not exist, and devices where no format takes them."""
    if form is not None and form not in FORMATS:
        refuse("--export", f"unknown format {form!r}; {nearest(form, FORMATS)}")
    if devices is not None and form not in WITH_DEVICES:
        refuse("--devices", f"is for --export {', '.join(WITH_DEVICES)}; leave it out")


def check_deployment_names(form: str | None, deployment: Deployment, source: Path) -> None:
    """Refuse names of services of a deployment that a format cannot hold."""
    names = ((f"segments[{index}].service", segment.service) for index, segment in enumerate(deployment.segments))
    check_names(form, names, source)


def check_names(form: str | None, names: Iterable[tuple[str, str]], source: str | Path) -> None:
    """Refuse names of services (with their paths) that a format cannot hold, once each."""
    from mig_opt.rollout.shell import name_problems

    first = {name: path for path, name in reversed(list(names))}
    problems = list(name_problems((path, name) for name, path in first.items())) if form == "nvidia-smi" else []
    if problems:
        raise InputError(problems, str(source))


def exported(
    form: str, deployment: Deployment, change: ChangePlan | None, devices: Sequence[str] | None
) -> tuple[str, Sequence[str]]:
    """Return a deployment in a format, and remarks on what the format cannot say about it.

    Parameters
    ----------
    form : str
        One of :data:`FORMATS`.
    deployment : Deployment
        The segments that are wanted.
    change : ChangePlan, optional
        The steps from what is running: ``nvidia-smi`` is a script for them then.
    devices : sequence of str, optional
        The name of each GPU.

    Raises
    ------
    InputError
        If the devices are not as many as the GPUs, or a name cannot be given to a program.
    """
    from mig_opt.files.serving.deployments import deployment_to_csv, deployment_to_json
    from mig_opt.rollout import change_script, deployment_script, kubernetes_resources, mig_parted_config

    match form:
        case "json":
            return deployment_to_json(deployment), ()
        case "csv":
            return deployment_to_csv(deployment), ()
        case "mig-parted" | "kubernetes":
            convert = mig_parted_config if form == "mig-parted" else kubernetes_resources
            converted = convert(deployment, devices=devices)
            return str(converted), converted.remarks
        case _ if change is None:
            return deployment_script(deployment, devices=devices), ()
        case _:
            return change_script(change, devices=devices), ()
