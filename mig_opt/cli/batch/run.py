"""The command run."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

from mig_opt import Batch, Commands, DriverError, InputError, Journal, Schedule, read
from mig_opt.batch.schedule import lifetimes_with_runs
from mig_opt.cli import options
from mig_opt.cli.answers import Answer, Call, File, chart_of, code_of
from mig_opt.cli.batch.execution import shown_execution
from mig_opt.cli.batch.reports import batch_facts
from mig_opt.cli.checks import refuse
from mig_opt.cli.inputs import load_batch, parsed_devices, parsed_share
from mig_opt.errors import raise_any
from mig_opt.gpu.devices import gpu_name
from mig_opt.method.report import Part, Points, Report, Table, bad, good
from mig_opt.texts import in_seconds, plural, seconds

if TYPE_CHECKING:
    from mig_opt.operations.execute.report import Execution

_JOURNAL = "run.journal"


def run(
    call: Call,
    batch: Annotated[str | None, options.argument("BATCH", "The batch that was planned.")] = None,
    schedule: Annotated[Path | None, options.argument("SCHEDULE", "A schedule of it, also that of a result.")] = None,
    *,
    given: options.BatchOptions,
    commands: Annotated[Path | None, "The command of each task: mig-opt schema commands."] = None,
    devices: Annotated[
        str | None,
        "LIST",
        "Index, UUID or PCI address of each GPU, after HOST/ in nodes of an engine.  [default: known, or 0,1,...]",
    ] = None,
    engine: Annotated[str, "NAME", "What runs a part on each node: dask://HOST:PORT or slurm."] = "",
    user: Annotated[str, "NAME", options.TASKS_USER] = "",
    journal: Annotated[Path | None, f"New file for everything that happens.  [default: {_JOURNAL}]"] = None,
    dry_run: Annotated[bool, "Check everything and show the steps; change nothing."] = False,
    resume: Annotated[Path | None, "JOURNAL", "Go on with an execution."] = None,
    undo: Annotated[Path | None, "JOURNAL", "End its tasks; destroy the instances that it made."] = None,
    replan: Annotated[
        str | None,
        "[=SHARE]",
        "--replan",
        "Plan anew what has not begun when a task deviates by more than a share of its time: 20%, or SHARE.",
    ] = None,
    restartable: Annotated[
        bool, "Go on if the journal exists; wait while another process has it; SIGTERM is Ctrl-C."
    ] = False,
    split: Annotated[Path | None, "DIR", "Write a part for each node, for whatever starts it there."] = None,
    gather: Annotated[Path | None, "DIR", "Make one journal of those that the parts have left."] = None,
    measured: Annotated[Path | None, "Write the batch with the times and costs as measured."] = None,
    measured_costs: Annotated[Path | None, "Write the costs of operations as measured, for --costs."] = None,
    chart: Annotated[Path | None, options.plot("plan and execution")] = None,
    quiet: Annotated[bool, "No progress, and no table of the steps."] = False,
) -> Answer:
    """Run a schedule on the GPUs of this machine.

    It creates instances, runs tasks on them, and destroys instances. Killed at any moment, it goes on with --resume
    JOURNAL, which needs no other argument. --split cuts a plan for several nodes into one for each; --gather makes one
    journal of theirs.
    Exits with 0 if all is done, 1 if tasks have failed or something could not be done, 130 after Ctrl-C.

    Examples
    --------
    mig-opt run batch.json plan.json --commands commands.json --dry-run
    mig-opt run batch.json plan.json --commands commands.json
    mig-opt run --resume run.journal
    mig-opt run b.json p.json --commands c.json --devices n1/0,n2/0 --split dir
    mig-opt run --gather dir
    """
    from mig_opt.files.batch.journals import write_journal
    from mig_opt.operations.execute.parts import alone
    from mig_opt.operations.execute.parts import gather as gathered
    from mig_opt.operations.execute.report import Execution
    from mig_opt.operations.execute.schedules import plan_of_nodes, resume_schedule, run_schedule, undo_schedule

    call.require(resume is None or undo is None, "--undo", "and --resume exclude each other; give one of them")
    elsewhere = ("--dry-run", "--engine", "--journal", "--restartable") if split else ()
    call.none_of(elsewhere, "and --split exclude each other; give one of them")
    told = ("--measured", "--measured-costs", "--plot") if split or dry_run or undo else ()
    why = "tells of an execution; leave it out with --split, --dry-run and --undo"
    call.none_of(told, why)
    path = resume or undo or journal or (gather or Path()) / _JOURNAL
    new = not (resume or undo or gather or split or dry_run)
    call.check_outputs(batch=measured, costs=measured_costs, chart=chart, journal=path if new else None)
    if resume or undo or gather:
        fresh = ["--commands", "--devices", "--dry-run", "--split", "--replan", *([] if resume else ["--user"])]
        fresh += ["BATCH", "SCHEDULE", "--resume", "--undo", "--engine", "--restartable"] if gather else ["--journal"]
        fresh += [] if batch else ["--gpu", "--gpus", "--costs"]
        call.none_of(fresh, f"is for a new execution; {'DIR' if gather else 'the journal'} has all of that")
    answer = partial(_answer, measured=measured, measured_costs=measured_costs, chart=chart, quiet=quiet)
    if gather is not None:
        call.finish()
        found = gathered(gather)
        write_journal(found, path)
        return answer(Execution(found), path, parts_in=gather)
    restartable = restartable and not dry_run  # which goes on with nothing
    with alone(path) if restartable else contextlib.nullcontext():
        begun = resume or undo or (restartable and path.exists())
        if resume or (undo and (batch or schedule)):
            call.attempt(_check_same, path, batch, given, schedule)
        if begun:
            call.finish()
        if undo is not None:
            return _undone([] if restartable and not undo.exists() else undo_schedule(undo, engine=engine), undo)
        if begun:
            with shown_execution(quiet=call.quiet) as observe:
                execution = resume_schedule(path, observe=observe, user=user, engine=engine, ended=restartable)
            return answer(execution, path)
        for name, there in (("BATCH", batch), ("SCHEDULE", schedule), ("--commands", commands)):
            call.require(there is not None, name, "is missing; see: mig-opt run --help")
        call.finish()
        problem = call.attempt(load_batch, str(batch), given)
        plan, words = call.attempt(read, Schedule, str(schedule)), call.attempt(read, Commands, str(commands))
        names = call.attempt(parsed_devices, devices, None if problem is None else problem.gpus)
        share = None if replan is None else call.attempt(parsed_share, "--replan", replan)
        call.finish()
        if split is not None:
            return _split(plan_of_nodes(problem, plan, words, names, user=user, replan=share), split)
        if dry_run:
            return Answer(_rehearsal(problem, plan, words, names, engine=engine, user=user))
        with shown_execution(quiet=call.quiet) as observe:
            execution = run_schedule(
                problem,
                plan,
                words,
                journal=path,
                devices=names,
                user=user,
                engine=engine,
                replan=share,
                observe=observe,
            )
    return answer(execution, path)


def _split(plan: Journal, folder: Path) -> Answer:
    from mig_opt.operations.execute.parts import split

    nodes = split(plan, folder)
    lines = [f"On {node}: {quote(f'{folder}/nodes/{node}/run.sh')}" for node in nodes]
    data = {"folder": str(folder), "nodes": nodes}
    remark = (
        f"Afterwards bring the files run.journal back to these folders; then: mig-opt run --gather {quote(str(folder))}"
    )
    return Answer(Report(batch_facts(plan.batch), [Points(lines)], [remark], data))


def _rehearsal(
    batch: Batch, schedule: Schedule, commands: Commands, devices: list[str] | None, *, engine: str, user: str
) -> Report:
    """Return the steps; everything that is in their way is refused."""
    from mig_opt.operations.execute.machines import check_plan, check_this_machine
    from mig_opt.operations.execute.parts import cut
    from mig_opt.operations.execute.schedules import checked_engine, plan_of_nodes

    plan, problems = check_plan(batch, schedule, commands, devices, user)
    remark = "Everything is ready for it; nothing was changed."
    if engine:
        with checked_engine(engine, cut(plan_of_nodes(batch, plan, commands, devices, user=user)), begun=False):
            pass
    else:
        try:
            problems += check_this_machine(batch, plan, devices)
        except (InputError, DriverError) as error:
            remark = f"The GPUs were not checked: {error}"
    raise_any(problems)
    steps = [(step, each) for each in lifetimes_with_runs(batch, plan) for step in each.steps]
    rows = [
        [
            seconds(step.begin),
            gpu_name(batch.devices, each.gpu),
            f"{each.profile}@{each.start}",
            step.label.strip("()"),
            " ".join(commands.tasks[step.label]) if step.is_run else "",
        ]
        for step, each in sorted(steps, key=lambda entry: entry[0].begin)
    ]
    table = Table([">at s", "GPU", "instance", "step", "/command"], rows)
    data = {"steps": [dict(zip(table.headers, row, strict=True)) for row in rows], "remark": remark}
    return Report(batch_facts(batch), [table], [remark], data)


def _check_same(journal: Path, batch: str | None, given: options.BatchOptions, schedule: Path | None) -> None:
    """Refuse a batch or a schedule that is not the one of the journal."""
    found = read(Journal, journal)
    if batch is not None and load_batch(batch, given) != found.batch:
        refuse("BATCH", f"is not the batch of {journal}; leave it out: the journal has the plan")
    if schedule is not None and read(Schedule, schedule).runs != found.schedule.runs:
        refuse("SCHEDULE", f"is not the schedule of {journal}; leave it out: the journal has the plan")


def _undone(refusals: list[str], journal: Path) -> Answer:
    data = {"undone": not refusals, "refusals": refusals}
    if refusals:
        said = ["\n  ".join(["error: some instances are still there:", *refusals])]
        return Answer(Report(data=data), code_of(good=False), said=said)
    return Answer(
        Report(parts=[f"What the execution of {journal} had made is gone; nothing else was touched."], data=data)
    )


def _answer(
    execution: Execution,
    journal: Path,
    *,
    measured: Path | None,
    measured_costs: Path | None,
    chart: Path | None,
    quiet: bool,
    parts_in: Path | None = None,
) -> Answer:
    from mig_opt.files.costs import COSTS

    batch, plan = execution.journal.batch, execution.journal.schedule
    troubles = [f"task {task!r} has failed with exit code {code}" for task, code in execution.failed.items()]
    troubles += execution.refusals
    parts: list[Part] = [*([] if quiet else [_steps(execution)]), Points(troubles)]
    printed = f"in {journal}.tasks" if not execution.journal.engine else f"on the nodes (run {execution.journal.run})"
    remarks = [f"Everything that happened is in {journal}; what the tasks printed is {printed}."]
    if parts_in is not None:
        remarks = [f"Everything that happened is in {journal}."]
        if not execution.complete:
            remarks.append(
                f"Start run.sh of nodes that are not done again, then: mig-opt run --gather {quote(str(parts_in))}"
            )
    elif not execution.complete:
        name = quote(str(journal))
        remarks.append(f"Go on with: mig-opt run --resume {name}; take it back with: mig-opt run --undo {name}")
    files = [
        File("batch", measured, execution.journal.measured_batch(), " with measured times and costs."),
        File(
            *("table of costs", measured_costs, execution.costs() if batch.gpu else None),
            absent="Costs of several kinds of GPUs, which --measured has, are no table: nothing written to",
            writer=partial(COSTS.write, gpu=batch.gpu),
        ),
        chart_of("execution", chart, batch, plan, execution.measured()[1] if chart else None),
    ]
    report = Report(_facts(execution), parts, remarks, execution.document())
    return Answer(report, code_of(good=execution.complete and not execution.failed), files)


def _facts(execution: Execution) -> list[tuple[str, str | None]]:
    journal, difference = execution.journal, execution.difference()
    done, total = len(journal.runs()), len(journal.batch.tasks)
    okay = execution.complete and not execution.failed
    status = "complete" if okay else "complete, tasks have failed" if execution.complete else "not complete"
    late = execution.makespan - execution.planned_makespan
    share = f" ({late / execution.planned_makespan:+.1%})" if execution.planned_makespan else ""
    parts = {"tasks": difference.tasks, "operations": difference.operations, "waits": difference.waits}
    because = ", ".join(f"{name} {value:+.3f} s" for name, value in parts.items()) + ", on the critical path"
    costs = execution.costs()
    return [
        *batch_facts(journal.batch),
        ("status", good(status) if okay else bad(status)),
        ("tasks", f"{done} of {plural(total, 'task')} ended"),
        ("planned", in_seconds(execution.planned_makespan)),
        ("measured", in_seconds(execution.makespan)),
        ("planned anew", None if journal.replan is None else plural(len(journal.stages) - 1, "time")),
        ("difference", f"{late:+.3f} s{share}" if execution.complete else None),
        ("of that", because if execution.complete else None),
        ("create s", _spelled(costs.create)),
        ("destroy s", _spelled(costs.destroy)),
    ]


def _spelled(costs: Mapping[Any, Any]) -> str:
    """Return seconds by size, or by kind of GPU and size."""
    return ", ".join(
        f"{key}: {_spelled(own)}" if isinstance(own, Mapping) else f"{key}g {own:.3f}" for key, own in costs.items()
    )


def _steps(execution: Execution) -> Table:
    batch = execution.journal.batch
    rows = [
        [
            f"{step.profile}@{step.start}" + (f" of {gpu_name(batch.devices, step.gpu)}" if batch.gpus > 1 else ""),
            step.task or step.kind,
            *(f"{value:.3f}" for value in (*step.planned, *step.measured)),
            f"{step.longer:+.3f}",
        ]
        for step in execution.steps
    ]
    return Table(["instance", "/step", ">plan s", ">to", ">measured s", ">to", ">longer"], rows)
