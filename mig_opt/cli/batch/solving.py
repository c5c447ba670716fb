"""Commands about one batch, some of them also about services: solve, validate, bound, plot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mig_opt.batch.batch import Batch, Task
from mig_opt.batch.bounds import lower_bounds
from mig_opt.batch.schedule import Schedule
from mig_opt.cli.inputs import (
    BatchArgument,
    CostFreeOption,
    GpuOption,
    GpusOption,
    JsonOption,
    PlanArgument,
    ProblemArgument,
    SeedOption,
    WorkersOption,
    check_outputs,
    load_batch,
    parsed_share,
    piped,
)
from mig_opt.cli.interruption import INTERRUPTED
from mig_opt.cli.outcome import ANSWER_IS_NO, Checks, as_options, options_named, print_json, say
from mig_opt.cli.progress import shown_progress
from mig_opt.cli.serving.fleets import bound_fleet, plot_fleet, validate_fleet, violations_document
from mig_opt.cli.serving.inputs import (
    DemandOptions,
    MaxProcessesOption,
    ProfilesOption,
    ScenarioOption,
    SloShareOption,
    WholeMsOption,
    about_services,
)
from mig_opt.registry import AUTO, get_method
from mig_opt.result import Result, Status
from mig_opt.solving import check_options, check_partition
from mig_opt.solving import solve as run_method
from mig_opt.texts import printable
from mig_opt.validation import Validation
from mig_opt.validation import validate as check_schedule

DEFAULT_TIME_LIMIT = 60.0
"""Seconds that exact methods get on the command line, which should always end; the library has no limit by default."""

_SOLVE_OPTIONS = as_options("method", "time_limit", "seed", "workers", "partition")
_NO_PARTITION = "No partition has an instance for every task; methods that change partitions may find a schedule."
_OPEN = (Status.FEASIBLE, Status.NO_SOLUTION)
EXIT_CODES = {Status.INFEASIBLE: ANSWER_IS_NO, Status.NO_SOLUTION: ANSWER_IS_NO, Status.INTERRUPTED: INTERRUPTED}
"""The exit code by how a run ended, if it is not 0."""


def solve(
    batch: BatchArgument,
    *,
    gpu: GpuOption = None,
    gpus: GpusOption = None,
    cost_free: CostFreeOption = False,
    method: Annotated[str, typer.Option(metavar="NAME", help="One of: mig-opt methods.")] = AUTO,
    partition: Annotated[
        str | None, typer.Option(metavar="P", help="For --method fixpart: instances in order, such as 4+2+1.")
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(metavar="S", help=f"Seconds.  [default: {DEFAULT_TIME_LIMIT:g} for exact methods]"),
    ] = None,
    seed: SeedOption = 0,
    workers: WorkersOption = None,
    gap: Annotated[
        str, typer.Option(metavar="SHARE", help="End as soon as the gap is so small, e.g. 0.3% or 0.003.")
    ] = "0",
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="Same plan on every run; S counts work, in one thread.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the schedule as JSON.")
    ] = None,
    chart: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw the schedule as .png, .pdf or .svg.")
    ] = None,
    as_json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, and no table of the plan.")] = False,
) -> None:
    """Find a schedule of least makespan.

    Exits with 0 if there is a schedule, 1 if there is none, and 130 after Ctrl-C, which ends the run but keeps the
    best schedule found so far.
    """
    checks = Checks()
    with checks.step(), options_named(_SOLVE_OPTIONS):
        check_options(method, time_limit=time_limit, seed=seed, workers=workers)
    with checks.step():
        share = parsed_share("--gap", gap)
    read: Batch | None = None
    with checks.step():
        read = load_batch(batch, gpu, gpus, cost_free=cost_free)
    with checks.step(), options_named(_SOLVE_OPTIONS):
        check_partition(method, partition, read)
    with checks.step():
        check_outputs(output, chart, batch)
    checks.finish()
    assert read is not None
    problem = read

    exact = get_method(method).kind == "exact"
    limit = DEFAULT_TIME_LIMIT if time_limit is None and exact else time_limit
    with shown_progress(quiet=quiet or as_json) as callbacks:
        result = run_method(
            problem,
            method,
            time_limit=limit,
            seed=seed,
            workers=workers,
            callbacks=callbacks,
            gap=share,
            deterministic=deterministic,
            partition=partition,
        )

    remarks = []
    open_still = result.status in _OPEN and (result.gap is None or result.gap > share)
    # Seconds of work may be shorter than those of the clock.
    long = result.runtime_s > (0.3 if deterministic else 0.9) * DEFAULT_TIME_LIMIT
    if time_limit is None and exact and open_still and long:
        remarks.append(f"Stopped after the default of {DEFAULT_TIME_LIMIT:g} s; --time-limit S allows for more.")
    with checks.step():
        remarks += _write_schedule(result, output)
    if result.status is Status.NO_SOLUTION and result.method == "fixpart-best":
        remarks.append(_NO_PARTITION)
    if chart is not None and result.schedule is None:
        remarks.append(f"There is no schedule to draw in {chart}.")
    _show_result(problem, result, remarks, as_json=as_json, quiet=quiet)
    if result.status is Status.INFEASIBLE and as_json:
        say(_infeasible(problem))
    if _NO_PARTITION in remarks and as_json:
        say(_NO_PARTITION)
    with checks.step():
        _draw_result(problem, result, chart, quiet=as_json)
    checks.finish()
    raise typer.Exit(EXIT_CODES.get(result.status, 0))


def _write_schedule(result: Result, output: Path | None) -> list[str]:
    """Write the schedule if it is wanted and there is one; return what to say about it."""
    if output is None:
        return []
    if result.schedule is None:
        return [f"There is no schedule to write to {output}."]
    from mig_opt.files import write_schedule

    write_schedule(result.schedule, output)
    return [f"Schedule written to {output}."]


def _draw_result(batch: Batch, result: Result, chart: Path | None, *, quiet: bool) -> None:
    if chart is None or result.schedule is None:
        return
    from mig_opt.plotting import save_plot

    save_plot(batch, result.schedule, chart, lower_bound=result.lower_bound)
    if not quiet:
        typer.echo(f"Chart written to {printable(str(chart))}.")


def _show_result(batch: Batch, result: Result, remarks: list[str], *, as_json: bool, quiet: bool) -> None:
    if as_json:
        from mig_opt.files.batch.schedules import result_summary
        from mig_opt.files.documents import rendered

        print_json(rendered(result_summary(result)))
        return
    from mig_opt.cli import screens

    screens.show(screens.result_card(batch, result))
    if result.status is Status.INFEASIBLE:
        screens.show("", screens.bullets(_unplaceable(batch)))
    if result.schedule is not None and not quiet:
        screens.show("", screens.plan(batch, result.schedule))
    if remarks:
        screens.show("", *map(printable, remarks))


def _unplaceable(batch: Batch) -> list[str]:
    """Return a line for each task that fits no instance of the GPU."""
    return [_why_nowhere(batch, batch.tasks[index]) for index in batch.unplaceable()]


def _infeasible(batch: Batch) -> str:
    return "\n  ".join(["infeasible:", *_unplaceable(batch)])


def _why_nowhere(batch: Batch, task: Task) -> str:
    profiles = batch.gpu.profiles_of("double-memory")
    most = max(profile.memory_gb for profile in profiles if profile.compute_slices in task.times)
    sizes = " or ".join(map(str, task.times))
    # Every size of a task exists on the GPU of its batch: only memory can stand in the way.
    return (
        f"task {task.name!r} fits nowhere on {batch.gpu.name}: it needs {task.memory_gb:.12g} GB, but instances of "
        f"{sizes} compute slices have at most {most:g} GB"
    )


def validate(
    batch: ProblemArgument,
    schedule: PlanArgument,
    *,
    gpu: GpuOption = None,
    gpus: GpusOption = None,
    cost_free: CostFreeOption = False,
    profiles: ProfilesOption = None,
    scenario: ScenarioOption = None,
    slo_share: SloShareOption = None,
    whole_ms: WholeMsOption = None,
    max_processes: MaxProcessesOption = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            help="By how much times may differ, or a share for figures of services.  [default: 1e-6 s; 1e-9]",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the schedule with the operations that were found."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check a schedule of a batch, or a deployment of services, against every rule.

    A schedule without operations is valid if there are operations that make it so; they are looked for.
    Exits with 0 if it is valid, else 1.
    """
    document = piped(batch)
    options = DemandOptions(gpu, profiles, scenario, slo_share, whole_ms, max_processes)
    for_batches = {"--gpus": gpus, "--cost-free": cost_free, "-o": output}
    if about_services(batch, document, schedule, options, for_batches):
        validate_fleet(batch, schedule, options, document=document, tolerance=tolerance, as_json=as_json)
        return
    problem, plan = read_plan(
        batch, schedule, gpu=gpu, gpus=gpus, cost_free=cost_free, output=output, document=document
    )
    with options_named(as_options("tolerance")):
        found = check_schedule(problem, plan, tolerance=1e-6 if tolerance is None else tolerance)
    if output is not None and found.valid:
        from mig_opt.files import write_schedule

        write_schedule(found.schedule, output)
    if as_json:
        from mig_opt.files.documents import rendered

        violations = violations_document(found.violations)
        print_json(rendered({"valid": found.valid, "makespan": found.makespan, "violations": violations}))
    else:
        _show_validation(problem, plan, found, output)
    raise typer.Exit(0 if found.valid else ANSWER_IS_NO)


def _show_validation(batch: Batch, plan: Schedule, found: Validation, output: Path | None) -> None:
    from mig_opt.cli import screens

    screens.show(screens.validation_card(batch, found))
    if not found.valid:
        screens.show("", screens.bullets(map(str, found.violations)))
    remarks = []
    if plan.operations is None and found.schedule.operations is not None:
        count = len(found.schedule.operations)
        remarks.append(f"The schedule came without operations; {count} that are in time for its runs were found.")
    if output is not None:
        remarks.append(f"Schedule written to {output}." if found.valid else f"Nothing written to {output}.")
    if remarks:
        screens.show("", *map(printable, remarks))


def read_plan(
    batch: str,
    schedule: Path,
    *,
    gpu: str | None,
    gpus: int | None,
    cost_free: bool,
    output: Path | None = None,
    chart: Path | None = None,
    document: bytes | None = None,
) -> tuple[Batch, Schedule]:
    """Return the batch and the schedule that the arguments name, and see to it that outputs can be written.

    Raises
    ------
    WrongInputsError
        With everything that is wrong about any of them.
    """
    from mig_opt.files import read_schedule

    checks = Checks()
    with checks.step():
        problem = load_batch(batch, gpu, gpus, cost_free=cost_free, document=document)
    with checks.step():
        plan = read_schedule(schedule)
    with checks.step():
        check_outputs(output, chart, batch, schedule)
    checks.finish()
    return problem, plan


def bound(
    batch: ProblemArgument,
    *,
    gpu: GpuOption = None,
    gpus: GpusOption = None,
    cost_free: CostFreeOption = False,
    profiles: ProfilesOption = None,
    scenario: ScenarioOption = None,
    slo_share: SloShareOption = None,
    whole_ms: WholeMsOption = None,
    max_processes: MaxProcessesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show lower bounds that need no solver: on the makespan, or on the number of GPUs for services.

    Exits with 1 if they show that there is no schedule or deployment at all.
    """
    document = piped(batch)
    options = DemandOptions(gpu, profiles, scenario, slo_share, whole_ms, max_processes)
    if about_services(batch, document, None, options, {"--gpus": gpus, "--cost-free": cost_free}):
        bound_fleet(batch, options, document=document, as_json=as_json)
        return
    problem = load_batch(batch, gpu, gpus, cost_free=cost_free, document=document)
    nowhere = _unplaceable(problem)
    bounds = () if nowhere else lower_bounds(problem)
    best = bounds[0].value if bounds else None
    if as_json:
        from mig_opt.files.documents import rendered

        entries = [{"name": entry.name, "value": entry.value, "reason": entry.reason} for entry in bounds]
        print_json(rendered({"lower_bound": best, "bounds": entries}))
        if nowhere:
            say(_infeasible(problem))
    else:
        from mig_opt.cli import screens

        if bounds:
            screens.show(screens.card([*screens.batch_rows(problem), ("lower bound", f"{screens.seconds(best)} s")]))
            screens.show("", screens.bounds_table(bounds))
        else:
            screens.show(screens.card([*screens.batch_rows(problem), ("schedule", "there is none")]))
            screens.show("", screens.bullets(nowhere))
    raise typer.Exit(ANSWER_IS_NO if nowhere else 0)


def plot(
    batch: ProblemArgument,
    schedule: PlanArgument,
    out: Annotated[Path, typer.Argument(metavar="OUT", help=".png, .pdf or .svg file.", show_default=False)],
    *,
    gpu: GpuOption = None,
    gpus: GpusOption = None,
    cost_free: CostFreeOption = False,
    profiles: ProfilesOption = None,
    scenario: ScenarioOption = None,
    slo_share: SloShareOption = None,
    whole_ms: WholeMsOption = None,
    max_processes: MaxProcessesOption = None,
    lower_bound: Annotated[float | None, typer.Option(metavar="S", help="Seconds, drawn as a line.")] = None,
) -> None:
    """Draw a schedule as a Gantt chart, or which services are on which GPU of a deployment.

    A schedule without operations is drawn with some that make it feasible, what is not valid as it is.
    """
    document = piped(batch)
    options = DemandOptions(gpu, profiles, scenario, slo_share, whole_ms, max_processes)
    for_batches = {"--gpus": gpus, "--cost-free": cost_free, "--lower-bound": lower_bound}
    if about_services(batch, document, schedule, options, for_batches):
        plot_fleet(batch, schedule, out, options, document=document)
        return
    problem, plan = read_plan(batch, schedule, gpu=gpu, gpus=gpus, cost_free=cost_free, chart=out, document=document)
    found = check_schedule(problem, plan)
    if not found.valid:
        count = len(found.violations)
        say(f"warning: the schedule is not valid ({count} violation{'s' * (count > 1)}); see: mig-opt validate")
    from mig_opt.plotting import save_plot

    with options_named(as_options("lower_bound")):
        save_plot(problem, found.schedule, out, lower_bound=lower_bound)
    typer.echo(f"Chart written to {printable(str(out))}.")
