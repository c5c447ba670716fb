"""The command profile."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from mig_opt import Batch, Commands, get_gpu, read
from mig_opt.cli import options
from mig_opt.cli.answers import NOTHING, Answer, Call, File, code_of
from mig_opt.cli.batch.execution import shown_execution
from mig_opt.cli.checks import options_named, refuse
from mig_opt.method.report import Part, Points, Report, Table
from mig_opt.texts import number_in, plural, seconds


def profile(
    call: Call,
    *,
    commands: Annotated[Path | None, "Programs: mig-opt schema commands."] = None,
    triton: Annotated[str | None, "HOST:PORT", "In their place: gRPC of a Triton, whose models are measured."] = None,
    gpu: Annotated[str, "NAME", "The kind of GPU: mig-opt gpus."],
    output: Annotated[Path, "Write the batch of the tasks; of models, the profiles."],
    device: Annotated[str, "GPU", "Index, UUID or PCI address of the GPU."] = "0",
    sizes: Annotated[str, "LIST", "Compute slices, such as 1,2,7.  [default: all]"] = "",
    repetitions: Annotated[int, "N", "Runs that count."] = 3,
    warm_up: Annotated[int, "N", "Runs before them."] = 1,
    isolated: Annotated[bool, "One run at a time, nothing beside it."] = False,
    batches: Annotated[str, "LIST", "Batch sizes of models."] = "1,2,4,8,16,32,64,128",
    processes: Annotated[str, "LIST", "Processes of models."] = "1,2,3",
    model: Annotated[list[str] | None, "NAME", "With --triton: which models; may be repeated.  [default: all]"] = None,
    shape: Annotated[
        list[str] | None, "INPUT:N,N", "With --triton: shape of an input with open dimensions; may be repeated."
    ] = None,
    run_seconds: Annotated[float, "S", "--seconds", "With --triton: length of a run."] = 2.0,
    journal: Annotated[Path | None, "File for everything that happens.  [default: OUTPUT.journal]"] = None,
    user: Annotated[str, "NAME", options.TASKS_USER] = "",
    quiet: Annotated[bool, "No progress."] = False,  # noqa: ARG001  # the call heeds it
) -> Answer:
    """Measure each task on each size of instance of a GPU.

    It is a GPU of this machine, and the batch of the tasks is written. The same command goes on where an earlier one
    was interrupted. A size on which a task runs out of memory is left
    out. Exits with 0 if all is measured, 1 if a task has failed otherwise or something could not be done.

    With --triton the models of a running server are measured, which is on an instance of --sizes. Profiles of other
    ways that OUTPUT has are kept. A server with --model-control-mode=explicit loads models for each batch size and
    number of processes.

    Examples
    --------
    mig-opt profile --commands commands.json --gpu A100 -o batch.json
    mig-opt profile --commands commands.json --gpu A30 -o b.json --sizes 1,2
    mig-opt profile --triton localhost:8001 --gpu A100 --sizes 2 -o p.json
    """
    from mig_opt.operations.execute.profiles import ProfilePlan, profile_tasks

    call.require(commands is None or triton is None, "--triton", "is in place of --commands; give one of them")
    call.require(commands is not None or triton is not None, "--commands", "is missing; give it, or --triton HOST:PORT")
    if triton is None:
        call.none_of(("--model", "--shape", "--seconds"), "is for --triton; leave it out")
    else:
        call.none_of(("--device", "--isolated", "--journal", "--user"), "is for --commands; leave it out")
    words = None if commands is None else call.attempt(read, Commands, commands)
    kind = call.attempt(get_gpu, gpu)
    path = journal or output.parent / f"{output.name}.journal"
    call.check_outputs(batch=output, journal=path if triton is None else None)
    lists = [
        call.attempt(_numbers, option, text)
        for option, text in (("--sizes", sizes), ("--batches", batches), ("--processes", processes))
    ]
    if words is not None:
        one = bool(words.tasks) != bool(words.models)
        call.require(one, "--commands", "has tasks and models, which are different files; split it into two")
        if words.tasks:
            call.none_of(("--batches", "--processes"), "is for models, and --commands has tasks; leave it out")
    shapes = dict(filter(None, (call.attempt(_shape, text) for text in shape or ())))
    call.finish()
    plan = ProfilePlan(kind, lists[0], repetitions, warm_up, isolated, lists[1], lists[2])
    if triton is not None:
        from mig_opt.cli.profiles import profiled_server

        return profiled_server(call, triton, plan, output, models=model or (), shapes=shapes, seconds=run_seconds)
    assert words is not None
    with shown_execution(quiet=call.quiet) as observe, options_named({"devices[0]": "--device"}):
        found = profile_tasks(words, plan, journal=path, device=device, user=user, observe=observe)
    complete, journal_of, batch = found.execution.complete, found.execution.journal, found.batch
    facts = [("GPU", kind.name), ("runs", f"{len(journal_of.runs())} of {len(journal_of.batch.tasks)}")]
    troubles = [f"{way}: {reason}" for way, reason in found.left_out.items()] + found.execution.refusals
    parts: list[Part] = [] if batch is None else [_times(batch)]
    parts += [f"{entry.model}: {plural(len(entry.points), 'point')}" for entry in found.tables]
    parts.append(Points(troubles))
    tasks = () if batch is None else batch.tasks
    times = {task.name: {str(size): time for size, time in task.times.items()} for task in tasks}
    points = {entry.model: len(entry.points) for entry in found.tables}
    known = {"complete": complete, "times": times, "points": points, "left_out": found.left_out}
    more = "" if complete else f"Not everything could be measured; the same command goes on, {path} has what is known."
    file = File(
        "profiles" if found.tables else "batch", output, batch or found.tables or None, advice=more, absent=NOTHING
    )
    data = {**known, "refusals": found.execution.refusals}
    return Answer(Report(facts, parts, data=data), code_of(good=complete and not found.failed), [file])


def _numbers(option: str, text: str) -> tuple[int, ...]:
    """Return the numbers of a list such as ``1,2,7``."""
    numbers = [number_in(word.strip()) for word in text.split(",") if word.strip()]
    whole = [number for number in numbers if isinstance(number, int) and number >= 0]
    if len(whole) < len(numbers):
        refuse(option, f"must be whole numbers with commas between them, is {text!r}")
    return tuple(whole)


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    """Return the input and its shape of ``x:3,224,224``."""
    name, colon, numbers = text.rpartition(":")
    if not colon:
        refuse("--shape", f"must be an input and its shape, such as x:3,224,224, is {text!r}")
    return name, _numbers("--shape", numbers)


def _times(batch: Batch) -> Table:
    """Return the times by size, each with its spread."""
    sizes = sorted({size for task in batch.tasks for size in task.times})
    rows = []
    for task in batch.tasks:
        spread = batch.spread.get(task.name, {})
        cells = {size: f"{seconds(time)} ±{spread.get(size, 0) / 2:.3f}" for size, time in task.times.items()}
        rows.append([task.name, *(cells.get(size, "-") for size in sizes)])
    return Table(["/task", *(f">{size}g s" for size in sizes)], rows)
