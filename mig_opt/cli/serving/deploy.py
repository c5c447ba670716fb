"""The command deploy."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from mig_opt import Demand, Deployment, DeploymentResult, Status, get_gpu
from mig_opt.cli import options
from mig_opt.cli.answers import EXIT_CODES, Answer, Call, File, chart_of, hints_on_time, infeasible, limit_of
from mig_opt.cli.checks import file_named, options_named, refuse
from mig_opt.cli.errors import say
from mig_opt.cli.inputs import idle_as_free, load_costs, parsed_devices
from mig_opt.cli.serving.day import DayOptions, day_answer, day_folder, run_day
from mig_opt.cli.serving.inputs import (
    check_deployment_names,
    check_names,
    load_services,
    read_deployment_for,
    read_running_and_state,
)
from mig_opt.cli.serving.promise import PromiseOptions, promise_document
from mig_opt.cli.serving.reports import change_report, demand_facts, deployment_table, services_table
from mig_opt.errors import nearest
from mig_opt.method.options import run_options
from mig_opt.method.registry import AUTO, DEPLOY_METHODS, get_deploy_method
from mig_opt.method.report import Part, Points, Report

if TYPE_CHECKING:
    from mig_opt.serving.change_plan import ChangePlan
    from mig_opt.simulation.serving.capacity import Promise

FORMATS = {"json": ".json", "csv": ".csv", "mig-parted": ".yaml", "nvidia-smi": ".sh", "kubernetes": ".yaml"}
"""The formats of exports, with the ends of names of their files."""

_WITH_DEVICES = ("mig-parted", "nvidia-smi", "kubernetes")  # formats that name GPUs of machines
CHANGE_TIME_LIMIT = 10.0  # seconds for the order of the steps from what is running


def deploy(
    call: Call,
    services: options.ServicesArgument,
    room: PromiseOptions,
    over_time: DayOptions,
    given: options.ServicesOptions,
    *,
    method: options.Method = AUTO,
    time_limit: options.ExactTimeLimit = None,
    seed: options.Seed = 0,
    running: Annotated[
        Path | None, "OLD", "--from", "What is running: as much as possible stays, the steps are shown."
    ] = None,
    initial: Annotated[Path | None, "Deployment to begin with; the result is no worse."] = None,
    only: Annotated[
        list[str] | None,
        "SERVICE",
        "With --from: only its segments change, by ParvaGPU's way to update a service; may be repeated.",
    ] = None,
    costs: options.Costs = None,
    export: Annotated[str | None, "FORMAT", f"{', '.join(FORMATS)}; to -o FILE or standard output."] = None,
    devices: options.Devices = None,
    output: Annotated[Path | None, "Write the deployment (.json or .csv), or what is exported."] = None,
    chart: Annotated[Path | None, options.plot("the deployment")] = None,
    quiet: Annotated[bool, "No progress, and no tables."] = False,
) -> Answer:
    """Find the fewest GPUs that serve all services in time.

    With --rates the rates change over time: there is a deployment for each row, and a change between two of them.
    --headroom raises them, and --promise is kept in each row.

    With --promise each segment has the rate up to which that share of its requests is in time, in place of its
    throughput, and what is found is simulated.

    With --export nvidia-smi the script makes the deployment, or with --from changes what is running into it.

    Exits with 0 if there is a deployment, 1 if there is none, and 130 after Ctrl-C, which ends the run but keeps the
    best deployment found so far.

    Examples
    --------
    mig-opt deploy parvagpu-s3
    mig-opt deploy services.json -o fleet.json --plot fleet.png
    mig-opt deploy services.json --promise 99% -o fleet.json
    mig-opt deploy services.json --from fleet.json --export nvidia-smi -o go.sh
    """
    # Early: where calls are nested deeply already, CPython may get and free memory in each of thousands of small ones.
    importlib.import_module("numpy")
    from mig_opt.api.change import plan_change
    from mig_opt.api.deploy import updating

    only = only or None
    method = method if only is None else updating(method)
    call.attempt(run_options, DEPLOY_METHODS, method, time_limit=time_limit, seed=seed)
    call.attempt(_check_export, export, devices)
    over_time.check(call)
    daily = over_time.rates is not None
    to_stdout = export is not None and output is None and not daily
    message = "standard output is for the export already; give the export a file with -o, or leave out one of them"
    call.require(not (call.as_json and to_stdout), "--json", message)
    names = call.attempt(parsed_devices, devices, None)
    demand = call.attempt(_load, services, given, export)
    promise, headroom = room.read(call)
    call.require(only is None or room.promise is None, "--only", "is not for --promise; leave out one of them")
    day, old = over_time.read(call, demand, headroom or 0.0), None
    call.check_outputs(deployment=None if daily else output, chart=chart)
    if daily:
        call.check_folder(output)
    else:
        old = call.attempt(_what_runs, running, demand, export, only, method)
    begun = None if initial is None else call.attempt(read_deployment_for, demand, initial)
    plain = only is None and room.promise is None and not daily
    call.require(initial is None or plain, "--initial", "is not for --only, --promise or --rates; leave it out")
    call.require(costs is None or running is not None, "--costs", "is for the steps of --from; leave it out")
    kinds = {*(old.gpus if old else ()), *(pool.kind.name for pool in (demand.pools if demand else ()))}
    with call.step():
        seconds = None if costs is None else {name: load_costs(costs, get_gpu(name)) for name in sorted(kinds)}
    call.finish()

    entry = get_deploy_method(method)
    times: dict[str, Any] = {"time_limit": limit_of(entry, time_limit), "seed": seed}
    if day is not None:
        form = export or "json"
        with call.progress(entry.name), file_named(services):
            found = run_day(day, method, promise, lookahead=not over_time.step_by_step, **times)
        noun = "script" if form == "nvidia-smi" else "deployment"
        folder = day_folder(found.plan, output, noun, FORMATS[form], partial(_exported, form, names))
        return day_answer(found, time_limit, folder, chart, tables=not quiet)
    demand = demand.with_headroom(headroom) if headroom else demand
    with call.progress(entry.name), file_named(services):
        result = _run(demand, method, promise, {**times, "running": old}, only=only, initial=begun)
        # Who has pressed Ctrl-C does not want to wait much longer.
        limit = 1.0 if result.status is Status.INTERRUPTED else CHANGE_TIME_LIMIT
        steps_of = partial(plan_change, demand=demand, operations=seconds, time_limit=limit)
        change = None if old is None or result.plan is None else steps_of(old, result.plan)

    hints, status = _hints(result, time_limit), result.status
    if change is not None and change.status is Status.INTERRUPTED and status is not Status.INTERRUPTED:
        hints, status = [*hints, "Interrupted while the steps were planned; better ones may exist."], change.status
    steps = None if change is None else change.plan
    text = None if export is None or result.plan is None else _exported(export, names, result.plan, steps)
    return Answer(
        _report(demand, result, steps, hints, from_running=old is not None, tables=not quiet),
        EXIT_CODES.get(status, 0),
        [
            File("deployment", output, result.plan if export is None else text, f" for {export}." if export else "."),
            chart_of("deployment", chart, result.plan, demand=demand),
        ],
        _why_not(demand, result),
        text=(text or "") if to_stdout else None,
    )


def _check_export(form: str | None, devices: str | None) -> None:
    """Refuse a format that does not exist, and devices where no format takes them."""
    if form is not None and form not in FORMATS:
        refuse("--export", f"unknown format {form!r}; {nearest(form, FORMATS)}")
    if devices is not None and form not in _WITH_DEVICES:
        refuse("--devices", f"is for --export {', '.join(_WITH_DEVICES)}; leave it out")


def _exported(form: str, devices: Sequence[str] | None, deployment: Deployment, change: ChangePlan | None) -> str:
    """Return a deployment in a format, and say what the format cannot hold.

    With ``change``, the steps from what is running, ``nvidia-smi`` is a script for them.
    """
    from mig_opt.files.serving.deployments import DEPLOYMENT
    from mig_opt.verbs.files import export

    if form in ("json", "csv"):
        return (DEPLOYMENT.to_json if form == "json" else DEPLOYMENT.to_csv)(deployment)
    if form == "nvidia-smi":
        return str(export(change or deployment, "script", devices=devices))
    converted = export(deployment, cast("Literal['kubernetes']", form), devices=devices)
    for remark in converted.remarks:
        say(f"note: {remark}")
    return str(converted)


def _run(demand: Demand, method: str, promise: Promise | None, given: dict[str, Any], **plain: Any) -> DeploymentResult:
    """Return what the method finds, with the promise if there is one; ``plain`` does not go with one."""
    from mig_opt.api.deploy import deploy as run_method
    from mig_opt.api.deploy.promises import deploy_with_promise

    if promise is None:
        return run_method(demand, method, **plain, **given)
    return deploy_with_promise(demand, promise, method, **given)


def _load(services: str, given: options.ServicesOptions, export: str | None) -> Demand:
    """Return the demand, if a method and the export can work with it."""
    from mig_opt.api.deploy import check_size

    demand = load_services(services, given)
    if not demand.unservable():
        with file_named(services):
            check_size(demand)
    names = ((f"services[{index}].name", service.name) for index, service in enumerate(demand.services))
    check_names(export, names, services)
    return demand


def _what_runs(
    running: Path | None, demand: Demand | None, export: str | None, only: Sequence[str] | None, method: str
) -> Deployment | None:
    """Return what is running; refuse it if more has to change than the services that may."""
    from mig_opt.api.deploy import retained_segments

    old = None
    if running is not None:
        old, state = read_running_and_state(running, demand)
        for remark in idle_as_free(state):
            say(f"note: {remark}")
        check_deployment_names(export, old, running)
    if only is not None and demand is not None:
        with options_named({"running": f"--from {running}"}):
            retained_segments(get_deploy_method(method), old, only, demand)
    return old


def _hints(result: DeploymentResult, time_limit: float | None) -> list[str]:
    """Return what might lead to a better answer."""
    method = get_deploy_method(result.method)
    if method.kind == "heuristic" and result.status is Status.NO_SOLUTION:
        return [f"{method.name} finds no deployment; that there is none, only --method exact can tell."]
    return hints_on_time(method, result, time_limit)


def _report(
    demand: Demand,
    result: DeploymentResult,
    change: ChangePlan | None,
    hints: Sequence[str],
    *,
    from_running: bool,
    tables: bool,
) -> Report:
    from mig_opt.files.serving.deployment_results import change_document, deployment_result_summary

    data = deployment_result_summary(result, demand) | promise_document(result)
    parts: list[Part] = []
    if result.plan is None and (reasons := _reasons(demand, result)):
        parts.append(Points(reasons))
    if result.plan is not None and tables:
        parts += [deployment_table(result.plan), services_table(demand, result.plan)]
        parts += [] if change is None else [change_report(change)]
    if from_running:
        data["change"] = None if change is None else change_document(change)
    return Report([*demand_facts(demand), *result.facts()], parts, hints, data)


def _reasons(demand: Demand, result: DeploymentResult) -> list[str]:
    """Return why there is no deployment: a line for each service that cannot be served, or what was proven or tried."""
    from mig_opt.api.deploy import why_unservable
    from mig_opt.api.deploy.promises import PromiseResult
    from mig_opt.api.deploy.trials import why_unkept

    promise = result.promise if isinstance(result, PromiseResult) else None
    lines = why_unservable(demand) if promise is None else why_unkept(demand, promise)
    tried = result.status is Status.INFEASIBLE or promise is not None
    return lines or ([result.reason] if tried and result.reason else [])


def _why_not(demand: Demand, result: DeploymentResult) -> str:
    if result.plan is not None:
        return ""
    reasons = _reasons(demand, result)
    if result.status is Status.INFEASIBLE:
        return infeasible(reasons)
    return "\n".join(["no deployment was found", *reasons, *_hints(result, None)])
