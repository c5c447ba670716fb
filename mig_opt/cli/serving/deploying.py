"""The command deploy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mig_opt.cli.batch.solving import DEFAULT_TIME_LIMIT, EXIT_CODES
from mig_opt.cli.inputs import JsonOption, SeedOption, check_outputs
from mig_opt.cli.outcome import Checks, as_options, options_named, print_document, print_json, say
from mig_opt.cli.progress import shown_time
from mig_opt.cli.scripting import DevicesOption, parsed_devices
from mig_opt.cli.serving.exporting import ExportOption, check_export, check_names, exported
from mig_opt.cli.serving.inputs import (
    DemandOptions,
    MaxProcessesOption,
    PoolOption,
    ProfilesOption,
    ScenarioOption,
    ServicesArgument,
    SloShareOption,
    WholeMsOption,
    load_services,
    read_fleet,
)
from mig_opt.errors import InputError, Problem
from mig_opt.registry import AUTO, get_deploy_method
from mig_opt.result import DeploymentResult, Status
from mig_opt.serving.demand import Demand
from mig_opt.serving.deployment import Deployment
from mig_opt.texts import printable

if TYPE_CHECKING:
    from mig_opt.serving.change_plan import ChangePlan

_OPTIONS = as_options("method", "time_limit", "seed")

_CHANGE_TIME_LIMIT = 10.0
"""Seconds for the order of the steps from what is running."""


def deploy(
    services: ServicesArgument,
    *,
    profiles: ProfilesOption = None,
    gpu: PoolOption = None,
    scenario: ScenarioOption = None,
    slo_share: SloShareOption = None,
    whole_ms: WholeMsOption = None,
    max_processes: MaxProcessesOption = None,
    method: Annotated[str, typer.Option(metavar="NAME", help="One of: mig-opt methods.")] = AUTO,
    time_limit: Annotated[
        float | None,
        typer.Option(metavar="S", help=f"Seconds.  [default: {DEFAULT_TIME_LIMIT:g} for exact methods]"),
    ] = None,
    seed: SeedOption = 0,
    running: Annotated[
        Path | None,
        typer.Option("--from", metavar="OLD", help="What is running: as much as possible stays, the steps are shown."),
    ] = None,
    export: ExportOption = None,
    devices: DevicesOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write the deployment (.json or .csv), or what is exported."
        ),
    ] = None,
    chart: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw the deployment as .png, .pdf or .svg.")
    ] = None,
    as_json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, and no tables.")] = False,
) -> None:
    """Find the fewest GPUs that serve all services in time.

    With --export nvidia-smi the script makes the deployment, or with --from changes what is running into it.

    Exits with 0 if there is a deployment, 1 if there is none, and 130 after Ctrl-C, which ends the run but keeps the
    best deployment found so far.
    """
    from mig_opt.deploying import check_deploy_options
    from mig_opt.deploying import deploy as run_method

    checks = Checks()
    with checks.step(), options_named(_OPTIONS):
        check_deploy_options(method, time_limit=time_limit, seed=seed)
    with checks.step():
        check_export(export, devices)
    with checks.step():
        _check_json(export, output, as_json=as_json)
    names: list[str] | None = None
    with checks.step():
        names = parsed_devices(devices, None)
    options = DemandOptions(gpu, profiles, scenario, slo_share, whole_ms, max_processes)
    read: tuple[Demand, Deployment | None] | None = None
    with checks.step():
        read = _read(services, options, running, export)
    with checks.step():
        inputs: list[str | Path] = [services, *(profiles or ()), *filter(None, [running])]
        check_outputs(output, chart, *inputs, what="deployment")
    checks.finish()
    assert read is not None
    demand, old = read

    exact = get_deploy_method(method).kind == "exact"
    limit = DEFAULT_TIME_LIMIT if time_limit is None and exact else time_limit
    with shown_time(get_deploy_method(method).name, quiet=quiet or as_json):
        result = run_method(demand, method, running=old, time_limit=limit, seed=seed)
        outcome = _Outcome(demand, result, _change(demand, old, result), running=old is not None)

    remarks = _hints(result, default_limit=time_limit is None)
    remarks += outcome.written(output, export, names)
    if chart is not None and result.deployment is None:
        remarks.append(f"There is no deployment to draw in {chart}.")
    piped = output is None and export is not None
    if output is None and export is not None:
        outcome.print_export(export, names)
    else:
        outcome.show(remarks, as_json=as_json, quiet=quiet)
    if chart is not None and result.deployment is not None:
        from mig_opt.plotting import save_deployment_plot

        save_deployment_plot(result.deployment, chart, demand=demand)
        if not (as_json or piped):
            typer.echo(f"Chart written to {printable(str(chart))}.")
    raise typer.Exit(EXIT_CODES.get(result.status, 0))


def _check_json(export: str | None, output: Path | None, *, as_json: bool) -> None:
    if as_json and export is not None and output is None:
        message = "standard output is for the export already; give the export a file with -o, or leave out one of them"
        raise InputError([Problem("--json", message)])


def _read(
    services: str, options: DemandOptions, running: Path | None, export: str | None
) -> tuple[Demand, Deployment | None]:
    """Return the demand and what is running, if a method and the export can do something with them."""
    checks = Checks()
    demand: Demand | None = None
    old: Deployment | None = None
    with checks.step():
        demand = load_services(services, options)
        _check_size(demand, services)
        names = ((f"services[{index}].name", service.name) for index, service in enumerate(demand.services))
        check_names(export, names, services)
    if running is not None:
        with checks.step():
            old = read_fleet(running, demand)
            held = ((f"segments[{index}].service", segment.service) for index, segment in enumerate(old.segments))
            check_names(export, held, str(running))
    checks.finish()
    assert demand is not None
    return demand, old


def _check_size(demand: Demand, source: str) -> None:
    from mig_opt.deploying import check_size

    if not demand.unservable():
        try:
            check_size(demand)
        except InputError as error:
            raise InputError(error.problems, source) from None


def _change(demand: Demand, running: Deployment | None, result: DeploymentResult) -> ChangePlan | None:
    """Return the way from what is running to the deployment, if there are both."""
    if running is None or result.deployment is None:
        return None
    from mig_opt.change import plan_change

    # Who has pressed Ctrl-C does not want to wait much longer.
    limit = 1.0 if result.status is Status.INTERRUPTED else _CHANGE_TIME_LIMIT
    return plan_change(running, result.deployment, demand=demand, time_limit=limit)


def _hints(result: DeploymentResult, *, default_limit: bool) -> list[str]:
    """Return what might lead to a better answer."""
    if result.status not in (Status.FEASIBLE, Status.NO_SOLUTION):
        return []
    if get_deploy_method(result.method).kind == "heuristic":
        if result.status is Status.FEASIBLE:
            return []
        return [f"{result.method} finds no deployment; that there is none, only --method exact can tell."]
    if default_limit and result.runtime_s > 0.9 * DEFAULT_TIME_LIMIT:
        return [f"Stopped after the default of {DEFAULT_TIME_LIMIT:g} s; --time-limit S allows for more."]
    return []


@dataclass(frozen=True)
class _Outcome:
    """What came out, and where it goes."""

    demand: Demand
    result: DeploymentResult
    change: ChangePlan | None
    running: bool

    def written(self, output: Path | None, export: str | None, devices: Sequence[str] | None) -> list[str]:
        """Write the file that is wanted, if there is a deployment; return what to say about it."""
        deployment = self.result.deployment
        if output is None:
            return []
        if deployment is None:
            return [f"There is no deployment to write to {output}."]
        if export is None:
            from mig_opt.files import write_deployment

            write_deployment(deployment, output)
            return [f"Deployment written to {output}."]
        from mig_opt.files.documents import write_text

        text, remarks = exported(export, deployment, self.change, devices)
        write_text(output, text)
        _say_remarks(remarks)
        return [f"Deployment written to {output} for {export}."]

    def print_export(self, export: str, devices: Sequence[str] | None) -> None:
        """Print the deployment in the format that is wanted; without one, say why there is none."""
        deployment = self.result.deployment
        if deployment is None:
            say(self._why_not())
            return
        text, remarks = exported(export, deployment, self.change, devices)
        print_document(text)
        _say_remarks(remarks)

    def show(self, remarks: Sequence[str], *, as_json: bool, quiet: bool) -> None:
        """Show everything on the screen, or print it as JSON."""
        if as_json:
            self._print_json()
            if self.result.deployment is None:
                say(self._why_not())
            return
        from mig_opt.cli import screens
        from mig_opt.cli.serving import screens as fleet_screens

        screens.show(fleet_screens.result_card(self.demand, self.result))
        if self.result.status is Status.INFEASIBLE:
            screens.show("", screens.bullets(self._reasons()))
        deployment = self.result.deployment
        if deployment is not None and not quiet:
            screens.show("", fleet_screens.fleet(deployment), "", fleet_screens.services(self.demand, deployment))
            if self.change is not None:
                screens.show("", fleet_screens.change(self.change))
        if remarks:
            screens.show("", *map(printable, remarks))

    def _print_json(self) -> None:
        from mig_opt.files.documents import rendered
        from mig_opt.files.serving.results import change_document, deployment_result_summary

        document = deployment_result_summary(self.result)
        if self.running:
            document["change"] = None if self.change is None else change_document(self.change)
        print_json(rendered(document))

    def _reasons(self) -> list[str]:
        """Return why there is no deployment: a line for each service that cannot be served, or what proves it."""
        from mig_opt.deploying import why_unservable

        return why_unservable(self.demand) or [self.result.reason]

    def _why_not(self) -> str:
        if self.result.status is Status.INFEASIBLE:
            return "\n  ".join(["infeasible:", *self._reasons()])
        return "\n".join(["no deployment was found", *_hints(self.result, default_limit=True)])


def _say_remarks(remarks: Sequence[str]) -> None:
    for remark in remarks:
        say(f"note: {remark}")
