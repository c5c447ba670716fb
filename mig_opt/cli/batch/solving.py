"""The command solve."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from mig_opt.api.solve import partition_problems
from mig_opt.api.solve import solve as run_method
from mig_opt.batch.batch import Batch
from mig_opt.batch.schedule import Schedule, ScheduleResult
from mig_opt.cli import options
from mig_opt.cli.batch.screens import result_card, schedule_table, unplaceable
from mig_opt.cli.inputs import (
    check_outputs,
    is_table,
    load_batch,
    load_schedule,
    load_state,
    parsed_share,
    plotted,
    started,
    written,
)
from mig_opt.cli.outcome import (
    EXIT_CODES,
    Checks,
    hints_on_time,
    limit_of,
    print_json,
    say,
    say_infeasible,
)
from mig_opt.cli.screens import bullets, show, show_remarks
from mig_opt.method.options import run_options
from mig_opt.method.registry import AUTO, METHODS, get_method
from mig_opt.method.result import Status


def solve(
    batch: options.BatchArgument,
    *,
    gpu: options.Gpu = None,
    gpus: options.Gpus = None,
    cost_free: options.CostFree = False,
    costs: options.Costs = None,
    start: Annotated[
        str | None, Option("--from", metavar="STATE", help="Instances that there are: a file of mig-opt state import.")
    ] = None,
    busy_until: Annotated[
        float | None, Option(metavar="S", help="For --from: seconds after which instances in use are free.")
    ] = None,
    initial: Annotated[
        Path | None, options.file("Schedule to begin with; if its times do not fit, its places are kept.")
    ] = None,
    method: options.Method = AUTO,
    partition: Annotated[
        str | None, Option(metavar="P", help="For --method fixpart: instances in order, such as 4+2+1.")
    ] = None,
    time_limit: options.ExactTimeLimit = None,
    seed: options.Seed = 0,
    workers: options.Workers = None,
    gap: Annotated[str, Option(metavar="SHARE", help="End as soon as the gap is so small, e.g. 0.3% or 0.003.")] = "0",
    deterministic: Annotated[
        bool, Option("--deterministic", help="Same plan on every run; S counts work, in one thread.")
    ] = False,
    output: Annotated[Path | None, options.output("Write the schedule as JSON.")] = None,
    save_batch: Annotated[
        Path | None, options.file("Write the batch as planned, with --from: for validate, plot, script and run.")
    ] = None,
    chart: Annotated[Path | None, options.plot("the schedule")] = None,
    as_json: options.Json = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="No progress, and no table of the plan.")] = False,
) -> None:
    """Find a schedule of least makespan.

    Exits with 0 if there is a schedule, 1 if there is none, and 130 after Ctrl-C, which ends the run but keeps the
    best schedule found so far.
    """
    checks = Checks()
    checks.attempt(run_options, METHODS, method, time_limit=time_limit, seed=seed, workers=workers)
    share = checks.attempt(parsed_share, "--gap", gap)
    state = checks.attempt(load_state, start, None, None) if start is not None else None
    if state is not None and is_table(batch):
        gpu = gpu or state.gpu.name
    problem = checks.attempt(load_batch, batch, gpu, gpus, costs=costs, cost_free=cost_free)
    checks.require(busy_until is None or start is not None, "--busy-until", "is for --from; leave it out")
    if state is not None:
        with checks.step():
            problem = started(problem, state, busy_until, str(start))
    checks.attempt(run_options, also=partition_problems(method, partition, problem))
    begun = None if initial is None else checks.attempt(load_schedule, initial)
    inputs: list[str | Path | None] = [batch, start, costs, initial]
    checks.attempt(check_outputs, [name for name in inputs if name], chart, schedule=output, batch=save_batch)
    checks.finish()
    from mig_opt.cli.progress import shown_progress
    from mig_opt.files.batch.batches import write_batch
    from mig_opt.files.batch.schedules import result_summary, write_schedule

    entry = get_method(method)
    with shown_progress(quiet=quiet or as_json) as callbacks:
        result = run_method(
            problem,
            method,
            time_limit=limit_of(entry, time_limit),
            seed=seed,
            workers=workers,
            callbacks=callbacks,
            gap=share,
            deterministic=deterministic,
            partition=partition,
            initial=begun,
        )

    reached = result.gap is not None and result.gap <= share
    remarks = [] if reached else hints_on_time(entry, result, time_limit, deterministic=deterministic)
    with checks.step():
        remarks += written("schedule", result.schedule, output, write_schedule)
    with checks.step():
        remarks += written("batch", problem, save_batch, write_batch)
    with checks.step():
        remarks += plotted("schedule", result.schedule, chart, partial(_draw, problem, result))
    no_partition = _no_partition(problem, result)
    remarks += no_partition
    if start is not None and output is not None and save_batch is None:
        remarks.append("validate, plot, script and run need the instances too: add --save-batch FILE.")
    if as_json:
        print_json(result_summary(result))
        if result.status is Status.INFEASIBLE:
            say_infeasible(unplaceable(problem))
        for remark in no_partition:
            say(remark)
    else:
        show(result_card(problem, result))
        if result.status is Status.INFEASIBLE:
            show("", bullets(unplaceable(problem)))
        if result.schedule is not None and not quiet:
            show("", schedule_table(problem, result.schedule))
        show_remarks(remarks)
    checks.finish()
    raise typer.Exit(EXIT_CODES.get(result.status, 0))


def _no_partition(batch: Batch, result: ScheduleResult) -> list[str]:
    """Return why fixpart-best has no schedule, if that is so."""
    if result.status is not Status.NO_SOLUTION or result.method != "fixpart-best":
        return []
    each = ", even with one of its own for each GPU" if batch.gpus > 1 else ""
    return [f"No partition has an instance for every task{each}; methods that change partitions may find a schedule."]


def _draw(batch: Batch, result: ScheduleResult, schedule: Schedule, chart: Path) -> None:
    from mig_opt.views import plot

    plot(batch, schedule, to=chart, lower_bound=result.lower_bound)
