"""The command services export: deployments for servers that answer requests."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from mig_opt import export
from mig_opt.cli import options
from mig_opt.cli.answers import ANSWER_IS_NO, Call, File, Product, word_of
from mig_opt.cli.checks import file_named
from mig_opt.cli.inputs import idle_as_free, parsed_devices
from mig_opt.cli.problems import SERVICES, Given
from mig_opt.cli.serving.deploy import CHANGE_TIME_LIMIT
from mig_opt.cli.serving.inputs import read_running_and_state
from mig_opt.errors import nearest

if TYPE_CHECKING:
    from mig_opt.serving.demand import Demand
    from mig_opt.serving.deployment import Deployment

_FORMATS = {
    "triton": ("--models", "--patience", "--delay", "--from", "--port", "--devices"),
    "kubernetes": ("--models", "--patience", "--delay", "--image"),
    "haproxy": ("--port", "--devices"),
    "slurm": ("--from",),
}
"""The formats with the options that are for them."""


def services_export(
    call: Call,
    services: options.ServicesArgument,
    deployment: options.DeploymentArgument,
    folder: Annotated[Path, options.argument("DIR", "Folder for the files.")],
    *,
    form: Annotated[str, Option("--format", metavar="FORMAT", help=f"{', '.join(_FORMATS)}.", show_default=False)],
    given: options.ServicesOptions,
    models: Annotated[Path | None, "DIR", "Model repository; the plan is put over its config.pbtxt files."] = None,
    patience: Annotated[
        float | None, "P", "Share of its spare time that a request waits for its batch to fill.  [default: 0]"
    ] = None,
    delay: Annotated[float | None, "S", "Seconds that it waits, in place of the patience."] = None,
    running: Annotated[
        Path | None, "OLD", "--from", "What is running: a script changes it, and loses no request."
    ] = None,
    port: Annotated[
        int | None, "N", "Port of the first service; those of servers are 1000 above.  [default: 8000]"
    ] = None,
    image: Annotated[str | None, "IMAGE", "Image of the containers.  [default: NVIDIA's of 24.10]"] = None,
    devices: options.Devices = None,
) -> Product:
    """Write what serves a deployment: Tritons, HAProxy, manifests, scripts for Slurm.

    The format triton has for each segment a model repository and a script that starts its server, and a script that
    does it for all. haproxy is the proxy before them, kubernetes the same as Deployments and Services. slurm changes
    the instances of Slurm's nodes from what is running. Exits with 1 if the deployment is not valid; nothing is written
    then.

    Examples
    --------
    mig-opt services export s.json fleet.json servers --format triton --models m
    mig-opt services export services.json fleet.json servers --format haproxy
    mig-opt services export s.json new.json to --format triton --from fleet.json
    """
    from mig_opt.api.change import plan_change
    from mig_opt.simulation.serving.requests import Batching

    every = dict.fromkeys(option for own in _FORMATS.values() for option in own)
    call.require(form in _FORMATS, "--format", f"unknown format {form!r}; {nearest(form, _FORMATS)}")
    foreign = [option for option in every if option not in _FORMATS.get(form, every)]
    call.none_of(foreign, f"is not for --format {form}; leave it out")
    call.require(delay is None or patience is None, "--delay", "is in place of --patience; give one of them")
    call.require(
        form != "slurm" or running is not None, "--from", "is needed for --format slurm: a state with its nodes"
    )
    problem = Given(SERVICES, services, given)
    problem.read(call, deployment)
    batching = call.attempt(Batching, 0.0 if patience is None else patience, delay=delay)
    names = call.attempt(parsed_devices, devices, None)
    old = state = None
    with call.step():
        if running is not None:
            old, state = read_running_and_state(running, problem.problem)
    call.check_folder(folder)
    call.finish()
    if wrong := problem.validate():
        said = f"The deployment is not valid ({wrong}); see: mig-opt services validate"
        return Product(code=ANSWER_IS_NO, said=[said])
    more: dict[str, Any] = {"models": models, "port": port, "devices": names, "image": image}
    more |= {"batching": None if form == "haproxy" else batching}
    if form == "slurm":
        more = {"running": state or old}
    elif old is not None:
        more["change"] = plan_change(old, problem.plan, demand=problem.problem, time_limit=CHANGE_TIME_LIMIT).plan
    where = file_named(running) if form == "slurm" else contextlib.nullcontext()  # what runs lacks nodes
    with where:
        files = _files(form, problem.plan, problem.problem, more)
    first = word_of(folder / next(iter(files), ""))
    usage = {
        "triton": f"bash {first} {word_of(folder / 'hooks.sh')}",
        "kubernetes": f"kubectl apply -f {first}",
        "haproxy": f"cd {word_of(folder)} && haproxy -f haproxy.cfg",
        "slurm": f"bash {word_of(folder / 'controller.sh')} check",
    }
    absent = "Nothing changes for Slurm: nothing written to"
    noun = "scripts" if form == "slurm" else "servers"
    # A change of Slurm's nodes destroys them itself.
    remarks = [] if form == "slurm" else [f"note: {remark}" for remark in idle_as_free(state)]
    purpose = f" for {form}. Usage: {usage[form]}"
    return Product(files=[File(noun, folder, files or None, purpose, absent=absent)], said=remarks)


def _files(form: str, deployment: Deployment, demand: Demand, more: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the texts of the files of a format by their paths in the folder; the script to be called is the first."""
    from mig_opt.operations.rollout.slurm import slurm_change

    given: dict[str, Any] = {name: value for name, value in more.items() if value is not None}
    if form == "slurm":
        return slurm_change(deployment=deployment, **given)
    if form == "triton":
        return export(deployment, "triton", demand, **given)
    if form == "haproxy":
        return {"haproxy.cfg": export(deployment, "haproxy", demand, **given)}
    return {"kubernetes.yaml": export(deployment, "manifests", demand, **given)}
