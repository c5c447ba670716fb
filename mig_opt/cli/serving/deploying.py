"""The command deploy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from mig_opt.cli import options
from mig_opt.cli.inputs import check_outputs, load_costs, parsed_devices, plotted, written
from mig_opt.cli.outcome import (
    EXIT_CODES,
    Checks,
    hints_on_time,
    limit_of,
    options_named,
    print_json,
    print_text,
    say,
    say_infeasible,
)
from mig_opt.cli.screens import bullets, show, show_remarks
from mig_opt.cli.serving.daily import DayOptions, check_day_outputs, deploy_over_day
from mig_opt.cli.serving.exporting import FORMATS, Outputs, check_export, exported
from mig_opt.cli.serving.inputs import (
    check_deployment_names,
    check_names,
    load_services,
    read_deployment_for,
    read_running,
)
from mig_opt.cli.serving.promising import PromiseOptions, planned, promise_document, promise_rows
from mig_opt.cli.serving.screens import change_parts, deployment_table, result_card, services_table
from mig_opt.errors import InputError
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.gpu.model import OperationCosts
from mig_opt.method.options import run_options
from mig_opt.method.registry import AUTO, DEPLOY_METHODS, get_deploy_method
from mig_opt.method.result import Status
from mig_opt.serving.demand import Demand
from mig_opt.serving.deployment import Deployment, DeploymentResult

if TYPE_CHECKING:
    from mig_opt.serving.change_plan import ChangePlan, ChangeResult
    from mig_opt.simulation.serving.capacity import Promise

_CHANGE_TIME_LIMIT = 10.0
"""Seconds for the order of the steps from what is running."""


def deploy(
    services: options.ServicesArgument,
    room: PromiseOptions,
    over_time: DayOptions,
    *,
    profiles: options.Profiles = None,
    gpu: Annotated[str | None, options.in_place_of_gpu("GPUs that SERVICES")] = None,
    scenario: options.Scenario = None,
    slo_share: options.SloShare = None,
    whole_ms: options.WholeMs = None,
    max_processes: options.MaxProcesses = None,
    method: options.Method = AUTO,
    time_limit: options.ExactTimeLimit = None,
    seed: options.Seed = 0,
    running: Annotated[
        Path | None,
        Option("--from", metavar="OLD", help="What is running: as much as possible stays, the steps are shown."),
    ] = None,
    initial: Annotated[
        Path | None, options.file("Deployment to begin with; the result is no worse.", "--initial")
    ] = None,
    only: Annotated[
        list[str] | None,
        Option(
            "--only",
            metavar="SERVICE",
            help="With --from: only its segments change, by ParvaGPU's way to update a service; may be repeated.",
        ),
    ] = None,
    costs: options.Costs = None,
    export: Annotated[
        str | None, Option(metavar="FORMAT", help=f"{', '.join(FORMATS)}; to -o FILE or standard output.")
    ] = None,
    devices: options.Devices = None,
    output: Annotated[Path | None, options.output("Write the deployment (.json or .csv), or what is exported.")] = None,
    chart: Annotated[Path | None, options.plot("the deployment")] = None,
    as_json: options.Json = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="No progress, and no tables.")] = False,
) -> None:
    """Find the fewest GPUs that serve all services in time.

    With --rates the rates change over time: there is a deployment for each row, and a change between two of them.
    --headroom raises them, and --promise is kept in each row.

    With --promise each segment has the rate up to which so many of its requests are in time, in place of its
    throughput, and what is found is simulated.

    With --export nvidia-smi the script makes the deployment, or with --from changes what is running into it.

    Exits with 0 if there is a deployment, 1 if there is none, and 130 after Ctrl-C, which ends the run but keeps the
    best deployment found so far.
    """
    from mig_opt.api.deploy import updating
    from mig_opt.cli.progress import shown_progress

    checks = Checks()
    only = only or None
    method = method if only is None else updating(method)
    checks.attempt(run_options, DEPLOY_METHODS, method, time_limit=time_limit, seed=seed)
    checks.attempt(check_export, export, devices)
    checks.attempt(over_time.check, {"--from": running, "--only": only})
    daily = over_time.rates is not None
    to_stdout = export is not None and output is None and not daily
    message = "standard output is for the export already; give the export a file with -o, or leave out one of them"
    checks.require(not (as_json and to_stdout), "--json", message)
    names = checks.attempt(parsed_devices, devices, None)
    given = options.ServicesOptions(gpu, profiles, scenario, slo_share, whole_ms, max_processes)
    demand = checks.attempt(_load, services, given, export)
    promise, headroom = checks.attempt(room.read) or (None, 0.0)
    checks.require(only is None or room.promise is None, "--only", "is not for --promise; leave out one of them")
    inputs = [services, *(profiles or ()), *filter(None, [running, initial, over_time.rates])]
    day, old = checks.attempt(over_time.read, demand, headroom), None
    if daily:
        checks.attempt(check_day_outputs, inputs, output, export, chart)
    else:
        checks.attempt(check_outputs, inputs, chart, deployment=output)
        old = checks.attempt(_what_runs, running, demand, export, only, method)
    begun = None if initial is None else checks.attempt(read_deployment_for, demand, initial)
    plain = only is None and room.promise is None and not daily
    checks.require(initial is None or plain, "--initial", "is not for --only, --promise or --rates; leave it out")
    checks.require(costs is None or running is not None, "--costs", "is for the steps of --from; leave it out")
    kinds = {*(old.gpus if old else ()), *(pool.gpu.name for pool in (demand.pools if demand else ()))}
    seconds = checks.attempt(_costs, costs, kinds)
    checks.finish()

    outputs = Outputs(output, export, names, chart, as_json, quiet)
    limit = limit_of(get_deploy_method(method), time_limit)
    if day is not None:
        alone = over_time.step_by_step
        deploy_over_day(day, method, promise, outputs, step_by_step=alone, time_limit=limit, seed=seed)
    demand = planned(demand, headroom)
    with shown_progress(get_deploy_method(method).name, quiet=quiet or as_json):
        result = _run(demand, method, promise, running=old, only=only, initial=begun, time_limit=limit, seed=seed)
        change = _change(demand, old, result, seconds)

    hints, status = _hints(result, time_limit), result.status
    if change is not None and change.status is Status.INTERRUPTED and status is not Status.INTERRUPTED:
        hints, status = [*hints, "Interrupted while the steps were planned; better ones may exist."], change.status
    code = EXIT_CODES.get(status, 0)
    steps = None if change is None else change.plan
    _tell(demand, result, steps, outputs, hints=hints, running=old, code=code)


def _tell(
    demand: Demand,
    result: DeploymentResult,
    change: ChangePlan | None,
    outputs: Outputs,
    *,
    hints: list[str],
    running: Deployment | None,
    code: int,
) -> None:
    """Write, draw and show a result, and end with an exit code."""
    from mig_opt.files.documents import write_text
    from mig_opt.files.serving.deployment_results import change_document, deployment_result_summary
    from mig_opt.files.serving.deployments import write_deployment

    deployment, export = result.deployment, outputs.export
    to_stdout = export is not None and outputs.path is None
    text = "" if deployment is None or export is None else exported(export, deployment, change, outputs.devices)
    remarks = hints
    if export is None:
        remarks += written("deployment", deployment, outputs.path, write_deployment)
    else:
        remarks += written(
            "deployment", deployment, outputs.path, lambda _, path: write_text(path, text), f" for {export}"
        )
    remarks += plotted("deployment", deployment, outputs.chart, partial(_draw, demand))
    if to_stdout:
        print_text(text)
    elif outputs.as_json:
        steps = {} if running is None else {"change": None if change is None else change_document(change)}
        print_json(deployment_result_summary(result, demand) | promise_document(result) | steps)
    else:
        _show(demand, result, change, quiet=outputs.quiet)
        show_remarks(remarks)
    if deployment is None and (outputs.as_json or to_stdout):
        _say_why_not(demand, result)
    raise typer.Exit(code)


def _draw(demand: Demand, deployment: Deployment, chart: Path) -> None:
    from mig_opt.views import plot

    plot(deployment, to=chart, demand=demand)


def _run(
    demand: Demand,
    method: str,
    promise: Promise | None,
    *,
    only: Sequence[str] | None,
    initial: Deployment | None,
    **given: Any,
) -> DeploymentResult:
    """Return what the method finds, with the promise if there is one."""
    from mig_opt.api.deploy import deploy as run_method
    from mig_opt.api.deploy.promises import deploy_with_promise

    if promise is None:
        return run_method(demand, method, only=only, initial=initial, **given)
    return deploy_with_promise(demand, promise, method, **given)


def _load(services: str, given: options.ServicesOptions, export: str | None) -> Demand:
    """Return the demand, if a method and the export can work with it."""
    from mig_opt.api.deploy import check_size

    demand = load_services(services, given)
    if not demand.unservable():
        try:
            check_size(demand)
        except InputError as error:
            raise InputError(error.problems, services) from None
    names = ((f"services[{index}].name", service.name) for index, service in enumerate(demand.services))
    check_names(export, names, services)
    return demand


def _what_runs(
    running: Path | None, demand: Demand | None, export: str | None, only: Sequence[str] | None, method: str
) -> Deployment | None:
    """Return what is running; refuse it if more has to change than the services that may."""
    from mig_opt.api.deploy import what_stays

    old = None
    if running is not None:
        old = read_running(running, demand)
        check_deployment_names(export, old, running)
    if only is not None and demand is not None:
        with options_named({"only": "--only", "running": f"--from {running}"}):
            what_stays(get_deploy_method(method), old, only, demand)
    return old


def _costs(costs: str | None, kinds: Iterable[str]) -> dict[str, OperationCosts] | None:
    """Return the operation costs that are to count, by kind of GPU; None for those of the catalogue."""
    return None if costs is None else {name: load_costs(costs, get_gpu(name)) for name in sorted(kinds)}


def _change(
    demand: Demand,
    running: Deployment | None,
    result: DeploymentResult,
    costs: Mapping[str, OperationCosts] | None,
) -> ChangeResult | None:
    """Plan the steps from what is running to the deployment, if there are both."""
    if running is None or result.deployment is None:
        return None
    from mig_opt.api.change import plan_change

    # Who has pressed Ctrl-C does not want to wait much longer.
    limit = 1.0 if result.status is Status.INTERRUPTED else _CHANGE_TIME_LIMIT
    return plan_change(running, result.deployment, demand=demand, operations=costs, time_limit=limit)


def _hints(result: DeploymentResult, time_limit: float | None) -> list[str]:
    """Return what might lead to a better answer."""
    method = get_deploy_method(result.method)
    if method.kind == "heuristic" and result.status is Status.NO_SOLUTION:
        return [f"{method.name} finds no deployment; that there is none, only --method exact can tell."]
    return hints_on_time(method, result, time_limit)


def _show(demand: Demand, result: DeploymentResult, change: ChangePlan | None, *, quiet: bool) -> None:
    show(result_card(demand, result, promise_rows(result)))
    if result.deployment is None and (reasons := _reasons(demand, result)):
        show("", bullets(reasons))
    deployment = result.deployment
    if deployment is not None and not quiet:
        show("", deployment_table(deployment), "", services_table(demand, deployment))
        if change is not None:
            show("", *change_parts(change))


def _reasons(demand: Demand, result: DeploymentResult) -> list[str]:
    """Return why there is no deployment: a line for each service that cannot be served, or what was proven or tried."""
    from mig_opt.api.deploy import why_unservable
    from mig_opt.api.deploy.promises import PromiseResult
    from mig_opt.api.deploy.unkept import why_unkept

    promise = result.promise if isinstance(result, PromiseResult) else None
    lines = why_unservable(demand) if promise is None else why_unkept(demand, promise)
    tried = result.status is Status.INFEASIBLE or promise is not None
    return lines or ([result.reason] if tried and result.reason else [])


def _say_why_not(demand: Demand, result: DeploymentResult) -> None:
    if result.status is Status.INFEASIBLE:
        say_infeasible(_reasons(demand, result))
    else:
        say("\n".join(["no deployment was found", *_reasons(demand, result), *_hints(result, None)]))
