"""Formats in which deployments and their changes are written for other tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mig_opt.cli.checks import refuse
from mig_opt.cli.errors import say
from mig_opt.errors import nearest
from mig_opt.serving.deployment import Deployment

if TYPE_CHECKING:
    from mig_opt.serving.change_plan import ChangePlan

FORMATS = ("json", "csv", "mig-parted", "nvidia-smi", "kubernetes")
WITH_DEVICES = FORMATS[2:]
"""Those that name GPUs of machines."""


def check_export(form: str | None, devices: str | None) -> None:
    """Refuse a format that does not exist, and devices where no format takes them."""
    if form is not None and form not in FORMATS:
        refuse("--export", f"unknown format {form!r}; {nearest(form, FORMATS)}")
    if devices is not None and form not in WITH_DEVICES:
        refuse("--devices", f"is for --export {', '.join(WITH_DEVICES)}; leave it out")


def exported(form: str, deployment: Deployment, change: ChangePlan | None, devices: Sequence[str] | None) -> str:
    """Return a deployment in a format, and say what the format cannot hold.

    With ``change``, the steps from what is running, ``nvidia-smi`` is a script for them.
    """
    from mig_opt.files.serving.deployments import deployment_to_csv, deployment_to_json
    from mig_opt.operations.rollout.changes import change_script
    from mig_opt.operations.rollout.kubernetes import kubernetes_resources, mig_parted_config
    from mig_opt.operations.rollout.nvidia_smi import deployment_script

    match form:
        case "json":
            return deployment_to_json(deployment)
        case "csv":
            return deployment_to_csv(deployment)
        case "mig-parted" | "kubernetes":
            convert = mig_parted_config if form == "mig-parted" else kubernetes_resources
            converted = convert(deployment, devices=devices)
            for remark in converted.remarks:
                say(f"note: {remark}")
            return str(converted)
        case _ if change is None:
            return deployment_script(deployment, devices=devices)
        case _:
            return change_script(change, devices=devices)
