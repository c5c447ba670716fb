"""Deployments in the formats of other tools."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from mig_opt.cli.outcome import as_options, options_named
from mig_opt.errors import InputError, Problem, nearest
from mig_opt.serving.deployment import Deployment

if TYPE_CHECKING:
    from mig_opt.serving.change_plan import ChangePlan

FORMATS = ("json", "csv", "mig-parted", "nvidia-smi", "kubernetes")
WITH_DEVICES = FORMATS[2:]
"""Those that name GPUs of machines."""

ExportOption = Annotated[
    str | None,
    typer.Option("--export", metavar="FORMAT", help=f"{', '.join(FORMATS)}; to -o FILE or standard output."),
]


def check_export(form: str | None, devices: str | None) -> None:
    """Refuse a format that does not exist, and devices where no format takes them.

    Raises
    ------
    InputError
        With both, if need be.
    """
    problems = []
    if form is not None and form not in FORMATS:
        problems.append(Problem("--export", f"unknown format {form!r}; {nearest(form, FORMATS)}"))
    elif devices is not None and form not in WITH_DEVICES:
        problems.append(Problem("--devices", f"is for --export {', '.join(WITH_DEVICES)}; leave it out"))
    if problems:
        raise InputError(problems)


def check_names(form: str | None, names: Iterable[tuple[str, str]], source: str) -> None:
    """Refuse names of services (with their paths) that a format cannot hold, once each.

    Raises
    ------
    InputError
        With all of them.
    """
    from mig_opt.rollout.shell import name_problems

    first = {name: path for path, name in reversed(list(names))}
    problems = list(name_problems((path, name) for name, path in first.items())) if form == "nvidia-smi" else []
    if problems:
        raise InputError(problems, source)


@options_named(as_options("devices"))
def exported(
    form: str, deployment: Deployment, change: ChangePlan | None, devices: Sequence[str] | None
) -> tuple[str, Sequence[str]]:
    """Return a deployment in a format, and what the format cannot say about it.

    Parameters
    ----------
    form : str
        One of :data:`FORMATS`.
    deployment : Deployment
        What is wanted.
    change : ChangePlan, optional
        The way from what is running: ``nvidia-smi`` is a script for it then.
    devices : sequence of str, optional
        What each GPU is called.

    Raises
    ------
    InputError
        If the devices are not as many as the GPUs, or a name cannot be given to a program.
    """
    from mig_opt.files import deployment_to_csv, deployment_to_json
    from mig_opt.rollout import change_script, deployment_script, kubernetes_resources, mig_parted_config

    match form:
        case "json":
            return deployment_to_json(deployment), ()
        case "csv":
            return deployment_to_csv(deployment), ()
        case "mig-parted":
            config = mig_parted_config(deployment, devices=devices)
            return str(config), config.remarks
        case "kubernetes":
            resources = kubernetes_resources(deployment, devices=devices)
            return str(resources), resources.remarks
        case _ if change is None:
            return deployment_script(deployment, devices=devices), ()
        case _:
            return change_script(change, devices=devices), ()
