"""The command run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from mig_opt.batch.batch import Batch
from mig_opt.batch.journal import Commands, Event, Journal
from mig_opt.batch.lifetimes import lifetimes_with_runs
from mig_opt.batch.schedule import Schedule
from mig_opt.cli import options
from mig_opt.cli.batch.screens import batch_rows
from mig_opt.cli.inputs import check_outputs, load_batch, parsed_devices, written
from mig_opt.cli.outcome import Checks, finish, print_json, refuse, say
from mig_opt.cli.screens import (
    BAD,
    GOOD,
    Part,
    Rows,
    bullets,
    card,
    seconds,
    show,
    show_remarks,
    show_written,
    styled,
    table,
)
from mig_opt.errors import DriverError, InputError
from mig_opt.gpu.devices import gpu_name
from mig_opt.texts import plural

if TYPE_CHECKING:
    from mig_opt.operations.execute import Execution
    from mig_opt.operations.execute.executor import Observer

_JOURNAL = "run.journal"


def run(
    batch: Annotated[
        str | None, Argument(metavar="[BATCH]", help="The batch that was planned.", show_default=False)
    ] = None,
    schedule: Annotated[
        Path | None, Argument(metavar="[SCHEDULE]", help="A schedule of it, or a result.", show_default=False)
    ] = None,
    *,
    gpu: options.Gpu = None,
    gpus: options.Gpus = None,
    costs: options.Costs = None,
    commands: Annotated[
        Path | None, Option("--commands", metavar="FILE", help="The command of each task: mig-opt schema commands.")
    ] = None,
    devices: Annotated[
        str | None,
        Option(
            "--devices",
            metavar="LIST",
            help="Index, UUID or PCI address of each GPU, after HOST/ in other machines.  [default: known, or 0,1,...]",
        ),
    ] = None,
    journal: Annotated[
        Path | None,
        Option("--journal", metavar="FILE", help=f"New file for everything that happens.  [default: {_JOURNAL}]"),
    ] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Check everything and show the steps; change nothing.")] = False,
    resume: Annotated[Path | None, Option("--resume", metavar="JOURNAL", help="Go on with an execution.")] = None,
    undo: Annotated[
        Path | None, Option("--undo", metavar="JOURNAL", help="End its tasks; destroy the instances that it made.")
    ] = None,
    measured: Annotated[
        Path | None, Option("--measured", metavar="FILE", help="Write the batch with the times and costs as measured.")
    ] = None,
    measured_costs: Annotated[
        Path | None, options.file("Write the costs of operations as measured, for --costs.", "--measured-costs")
    ] = None,
    chart: Annotated[Path | None, options.plot("plan and execution")] = None,
    as_json: options.Json = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="No progress, and no table of the steps.")] = False,
) -> None:
    """Run a schedule on the GPUs of this machine.

    It creates instances, runs tasks on them, and destroys instances. Killed at any moment, it goes on with --resume
    JOURNAL, which needs no other argument.
    Exits with 0 if all is done, 1 if tasks have failed or something could not be done, 130 after Ctrl-C.
    """
    from mig_opt.operations.execute import resume_schedule, undo_schedule

    checks = Checks()
    checks.require(resume is None or undo is None, "--undo", "and --resume exclude each other; give one of them")
    inputs = [name for name in (batch, schedule, commands, costs) if name]
    checks.attempt(check_outputs, inputs, chart, batch=measured, costs=measured_costs)
    earlier = resume or undo
    if earlier is not None:
        fresh = {"--commands": commands, "--devices": devices, "--journal": journal, "--dry-run": dry_run or None}
        for name, value in fresh.items():
            checks.require(value is None, name, "is for a new execution; the journal has all of that")
        load = None if batch is None else partial(load_batch, batch, gpu, gpus, costs=costs)
        checks.attempt(_check_same, earlier, load, schedule)
        checks.finish()
        if undo is not None:
            _finish_undo(undo_schedule(undo), undo)
        with shown_execution(quiet=quiet or as_json) as observe:
            execution = resume_schedule(earlier, observe=observe)
    else:
        for name, given in (("BATCH", batch), ("SCHEDULE", schedule), ("--commands", commands)):
            checks.require(given is not None, name, "is missing; see: mig-opt run --help")
        checks.finish()
        assert batch is not None
        assert schedule is not None
        assert commands is not None
        execution = _begin(
            batch,
            schedule,
            commands,
            gpu=gpu,
            gpus=gpus,
            costs=costs,
            devices=devices,
            journal=journal or Path(_JOURNAL),
            dry_run=dry_run,
            quiet=quiet or as_json,
        )
    with checks.step():
        files = {"batch": measured, "costs": measured_costs, "chart": chart}
        _show(execution, earlier or journal or Path(_JOURNAL), files, as_json=as_json, quiet=quiet)
    checks.finish()
    finish(good=execution.complete and not execution.failed)


def _begin(
    batch: str,
    schedule: Path,
    commands: Path,
    *,
    gpu: str | None,
    gpus: int | None,
    costs: str | None,
    devices: str | None,
    journal: Path,
    dry_run: bool,
    quiet: bool,
) -> Execution:
    from mig_opt.files.batch.journals import read_commands
    from mig_opt.files.batch.schedules import read_schedule
    from mig_opt.operations.execute import run_schedule

    checks = Checks()
    problem = checks.attempt(load_batch, batch, gpu, gpus, costs=costs)
    plan = checks.attempt(read_schedule, schedule)
    words = checks.attempt(read_commands, commands)
    names = checks.attempt(parsed_devices, devices, None if problem is None else problem.gpus)
    checks.finish()
    if dry_run:
        _rehearse(problem, plan, words, names)
    with shown_execution(quiet=quiet) as observe:
        return run_schedule(problem, plan, words, journal=journal, devices=names, observe=observe)


def _rehearse(batch: Batch, schedule: Schedule, commands: Commands, devices: list[str] | None) -> None:
    """Show the steps and everything that is in their way, and end the command."""
    from mig_opt.operations.driver import Patience
    from mig_opt.operations.execute.machines import Machines
    from mig_opt.operations.execute.schedules import check_machines, check_plan, device_names

    plan, problems = check_plan(batch, schedule, commands, devices)
    unchecked = ""
    try:
        with Machines("rehearsal", Path(), ".", Patience(limit=0)) as machines:
            if any("/" not in name for name in device_names(batch, devices) or [""]):
                machines.driver("")
            problems += check_machines(machines, batch, plan, devices)[1]
    except InputError as error:
        unchecked = str(error)
    except DriverError as error:
        unchecked = str(error)
    if problems:
        raise InputError(problems)
    rows = []
    for each in lifetimes_with_runs(batch, plan):
        place = f"{each.profile}@{each.start}"
        for step in each.steps:
            command = " ".join(commands.tasks[step.label]) if step.is_run else ""
            where = gpu_name(batch.devices, each.gpu), place
            rows.append((step.begin, [seconds(step.begin), *where, step.label.strip("()"), command]))
    rows.sort(key=lambda row: row[0])
    show(card(batch_rows(batch)), "", table([">at s", "GPU", "instance", "step", "/command"], [row for _, row in rows]))
    remark = (
        f"The GPUs were not checked: {unchecked}" if unchecked else "Everything is ready for it; nothing was changed."
    )
    show_remarks([remark])
    raise typer.Exit


def _check_same(journal: Path, load: Callable[[], Batch] | None, schedule: Path | None) -> None:
    """Refuse a batch or a schedule that is not the one of the journal."""
    from mig_opt.files.batch.journals import read_journal
    from mig_opt.files.batch.schedules import read_schedule

    found = read_journal(journal)
    if load is not None and load() != found.batch:
        refuse("BATCH", f"is not the batch of {journal}; leave it out: the journal has the plan", "")
    if schedule is not None and read_schedule(schedule).runs != found.schedule.runs:
        refuse("SCHEDULE", f"is not the schedule of {journal}; leave it out: the journal has the plan", "")


def _finish_undo(refusals: list[str], journal: Path) -> None:
    if refusals:
        say("\n  ".join(["error: some instances are still there:", *refusals]))
    else:
        show(f"What the execution of {journal} had made is gone; nothing else was touched.")
    finish(good=not refusals)


# The live view


class _View:
    """Progress of an execution: what runs now, and how far that is behind the plan."""

    def __init__(self) -> None:
        self._journal: Journal | None = None
        self._running: dict[str, float] = {}
        self._ended = 0
        self._late = 0.0
        self._doing: dict[int, str] = {}

    def take(self, journal: Journal, event: Event) -> None:
        """Follow an event."""
        self._journal = journal
        if event.kind == "run" and event.task is not None:
            self._running = {**self._running, event.task: event.time}
        elif event.kind in ("ran", "died") and event.task is not None:
            self._running = {task: begun for task, begun in self._running.items() if task != event.task}
            self._ended += event.kind == "ran"
            (planned,) = (one.end for one in journal.schedule.runs if one.task == event.task)
            self._late = event.time - journal.began - planned
        elif event.kind in ("create", "destroy") and event.instance is not None:
            place = journal.lifetimes[event.instance]
            name = gpu_name(journal.batch.devices, place.gpu)
            self._doing = {**self._doing, place.gpu: f"{event.kind} {place} of GPU {name}"}
        elif event.instance is not None:
            gpu = journal.lifetimes[event.instance].gpu
            self._doing = {key: text for key, text in self._doing.items() if key != gpu}

    def __rich__(self) -> Part:
        import time

        from rich.text import Text

        journal = self._journal
        if journal is None:
            return Text()
        now = time.time() - journal.began
        total, late = len(journal.batch.tasks), self._late
        behind = f"{abs(late):.1f} s {'behind' if late > 0 else 'ahead of'} the plan"
        lines = [f"{now:.1f} s of {journal.schedule.makespan:.1f} s   {self._ended} of {total} tasks   {behind}"]
        planned = {one.task: one for one in journal.schedule.runs}
        for task, begun in list(self._running.items())[:8]:
            one = planned[task]
            begin = begun - journal.began
            lines.append(
                f"  {one.profile}@{one.start} {task}: since {begin:.1f} s (plan {one.begin:.1f} to {one.end:.1f} s)"
            )
        lines += [f"  {text}" for text in self._doing.values()]
        return Text("\n".join(lines), no_wrap=True, overflow="ellipsis")


@contextlib.contextmanager
def shown_execution(*, quiet: bool) -> Iterator[Observer | None]:
    """Show an execution while it goes on, on a terminal; without one, a line for each event on standard error."""
    if quiet:
        yield None
        return
    from rich.console import Console
    from rich.live import Live

    from mig_opt.cli.progress import REFRESHES_PER_SECOND, can_take_lines_back

    if not can_take_lines_back():
        yield _say_event
        return
    view = _View()
    console = Console(stderr=True, highlight=False)
    with Live(console=console, get_renderable=lambda: view, refresh_per_second=REFRESHES_PER_SECOND, transient=True):
        yield view.take


def _say_event(journal: Journal, event: Event) -> None:
    if event.kind in ("run", "create", "destroy", "begin", "end"):
        return
    what = event.task or ("" if event.instance is None else str(journal.lifetimes[event.instance]))
    code = f", exit code {event.code}" if event.code else ""
    text = f": {event.text}" if event.text else ""
    say(f"{event.time - journal.began:9.3f} s  {event.kind} {what}{code}{text}".rstrip())


# The report


def _show(execution: Execution, journal: Path, files: Mapping[str, Path | None], *, as_json: bool, quiet: bool) -> None:
    from mig_opt.files.batch.batches import write_batch
    from mig_opt.files.costs import write_costs

    remarks = [f"Everything that happened is in {journal}; what the tasks printed is in {journal}.tasks."]
    if not execution.complete:
        remarks.append(f"Go on with: mig-opt run --resume {journal}; take it back with: mig-opt run --undo {journal}")
    remarks += written(
        "batch", execution.journal.measured_batch(), files["batch"], write_batch, " with measured times and costs"
    )
    save_costs = partial(write_costs, gpu=execution.journal.batch.gpu)
    remarks += written("table of costs", execution.costs(), files["costs"], save_costs)
    if as_json:
        print_json(execution.document())
    else:
        show(card(_rows(execution)))
        if not quiet:
            show("", _steps(execution))
        troubles = [f"task {task!r} has failed with exit code {code}" for task, code in execution.failed.items()]
        troubles += execution.refusals
        if troubles:
            show("", bullets(troubles))
        show_remarks(remarks)
    chart = files["chart"]
    if chart is not None:
        from mig_opt.views import plot

        journal_of = execution.journal
        plot(journal_of.batch, journal_of.schedule, execution.measured()[1], to=chart)
        show_written("Chart", chart, quiet=as_json)


def _rows(execution: Execution) -> Rows:
    journal, difference = execution.journal, execution.difference()
    done, total = len(journal.runs()), len(journal.batch.tasks)
    good = execution.complete and not execution.failed
    status = "complete" if good else "complete, tasks have failed" if execution.complete else "not complete"
    late = execution.makespan - execution.planned_makespan
    share = f" ({late / execution.planned_makespan:+.1%})" if execution.planned_makespan else ""
    parts = {"tasks": difference.tasks, "operations": difference.operations, "waits": difference.waits}
    costs = execution.costs()
    return [
        *batch_rows(journal.batch),
        ("status", styled(status, GOOD if good else BAD)),
        ("tasks", f"{done} of {plural(total, 'task')} ended"),
        ("planned", f"{seconds(execution.planned_makespan)} s"),
        ("measured", f"{seconds(execution.makespan)} s"),
        ("difference", f"{late:+.3f} s{share}" if execution.complete else None),
        (
            "of that",
            ", ".join(f"{name} {value:+.3f} s" for name, value in parts.items()) + ", on the critical path"
            if execution.complete
            else None,
        ),
        ("create s", ", ".join(f"{size}g {cost:.3f}" for size, cost in costs.create.items())),
        ("destroy s", ", ".join(f"{size}g {cost:.3f}" for size, cost in costs.destroy.items())),
    ]


def _steps(execution: Execution) -> Part:
    batch = execution.journal.batch
    rows = []
    for step in execution.steps:
        place = f"{step.profile}@{step.start}" + (f" of {gpu_name(batch.devices, step.gpu)}" if batch.gpus > 1 else "")
        name = step.task or step.kind
        rows.append(
            [place, name, *(f"{value:.3f}" for value in (*step.planned, *step.measured)), f"{step.longer:+.3f}"]
        )
    return table(["instance", "/step", ">plan s", ">to", ">measured s", ">to", ">longer"], rows)
