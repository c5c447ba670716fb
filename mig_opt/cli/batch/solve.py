"""The command solve."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

from mig_opt import Schedule, Status, read
from mig_opt import solve as run_method
from mig_opt.api.solve import partition_problems
from mig_opt.cli import options
from mig_opt.cli.answers import EXIT_CODES, Answer, Call, File, chart_of, hints_on_time, infeasible, limit_of
from mig_opt.cli.batch.reports import result_report, unplaceable
from mig_opt.cli.inputs import is_table, load_batch, load_state, parsed_share, started
from mig_opt.method.options import run_options
from mig_opt.method.registry import AUTO, METHODS, get_method
from mig_opt.texts import plural


def solve(
    call: Call,
    batch: options.BatchArgument,
    *,
    given: options.CostOptions,
    start: options.Start = None,
    busy_until: Annotated[float | None, "S", "For --from: seconds after which instances in use are free."] = None,
    initial: Annotated[Path | None, "Schedule to begin with; if its times do not fit, its places are kept."] = None,
    method: options.Method = AUTO,
    partition: options.Partition = None,
    time_limit: options.ExactTimeLimit = None,
    seed: options.Seed = 0,
    workers: options.Workers = None,
    gap: Annotated[str, "SHARE", "End as soon as the gap is so small, e.g. 0.3% or 0.003."] = "0",
    deterministic: Annotated[bool, "Same plan on every run; S counts work, in one thread."] = False,
    output: Annotated[Path | None, "Write the schedule as JSON."] = None,
    save_batch: Annotated[
        Path | None, "Write the batch as planned, with --from: for validate, plot, script and run."
    ] = None,
    chart: Annotated[Path | None, options.plot("the schedule")] = None,
    quiet: Annotated[bool, "No progress, and no table of the plan."] = False,
) -> Answer:
    """Find a schedule of least makespan.

    Exits with 0 if there is a schedule, 1 if there is none, and 130 after Ctrl-C, which ends the run but keeps the
    best schedule found so far.

    Examples
    --------
    mig-opt solve rodinia-a30
    mig-opt solve batch.json --time-limit 30 -o plan.json --plot plan.png
    mig-opt solve tasks.csv --gpu A100 --gpus 2 --method far
    """
    call.attempt(run_options, METHODS, method, time_limit=time_limit, seed=seed, workers=workers)
    share = call.attempt(parsed_share, "--gap", gap)
    state = None if start is None else call.attempt(load_state, start)
    if state is not None and is_table(batch):
        given = dataclasses.replace(given, gpu=given.gpu or (state.gpu.name if state.gpu else None))
    problem = call.attempt(load_batch, batch, given)
    call.require(busy_until is None or start is not None, "--busy-until", "is for --from; leave it out")
    if state is not None:
        message = f"is {given.gpus}, but the state of --from has {plural(state.gpus, 'GPU')}; leave it out"
        call.require(given.gpus in (None, state.gpus), "--gpus", message)
        with call.step():
            problem = started(problem, state, busy_until, str(start))
    call.attempt(run_options, also=partition_problems(method, partition, problem))
    begun = None if initial is None else call.attempt(read, Schedule, initial)
    call.begin(schedule=output, batch=save_batch, chart=chart)

    entry = get_method(method)
    with call.progress() as callbacks:
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
    hints = [] if reached else hints_on_time(entry, result, time_limit, deterministic=deterministic)
    no_partition = []
    if result.status is Status.NO_SOLUTION and result.method == "fixpart-best":
        each = ", even with one of its own for each GPU" if problem.gpus > 1 else ""
        more = "methods that change partitions may find a schedule."
        no_partition = [f"No partition has an instance for every task{each}; {more}"]
    advice = "validate, plot, script and run need the instances too: add --save-batch FILE."
    return Answer(
        result_report(problem, result, [*hints, *no_partition], tables=not quiet),
        EXIT_CODES.get(result.status, 0),
        [
            File("schedule", output, result.schedule, advice=advice if start and save_batch is None else ""),
            File("batch", save_batch, problem),
            chart_of("schedule", chart, problem, result.schedule, lower_bound=result.lower_bound),
        ],
        infeasible(unplaceable(problem)) if result.status is Status.INFEASIBLE else "".join(no_partition),
    )
