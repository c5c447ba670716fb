"""The command profile."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from mig_opt.batch.batch import Batch
from mig_opt.cli import options
from mig_opt.cli.batch.running import shown_execution
from mig_opt.cli.inputs import check_outputs
from mig_opt.cli.outcome import Checks, finish, print_json, refuse
from mig_opt.cli.screens import Part, bullets, card, seconds, show, show_remarks, table
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.texts import number_in, plural


def profile(
    *,
    commands: Annotated[Path, Option("--commands", metavar="FILE", help="Programs: mig-opt schema commands.")],
    gpu: Annotated[str, Option("--gpu", metavar="NAME", help="The kind of GPU: mig-opt gpus.")],
    output: Annotated[Path, options.output("Write the batch of the tasks; of models, the profiles.")],
    device: Annotated[str, Option("--device", metavar="GPU", help="Index, UUID or PCI address of the GPU.")] = "0",
    sizes: Annotated[str, Option(metavar="LIST", help="Compute slices, such as 1,2,7.  [default: all]")] = "",
    repetitions: Annotated[int, Option(metavar="N", help="Runs that count.")] = 3,
    warm_up: Annotated[int, Option(metavar="N", help="Runs before them.")] = 1,
    isolated: Annotated[bool, Option("--isolated", help="One run at a time, nothing beside it.")] = False,
    batches: Annotated[str, Option(metavar="LIST", help="Batch sizes of models.")] = "1,2,4,8,16,32,64,128",
    processes: Annotated[str, Option(metavar="LIST", help="Processes of models.")] = "1,2,3",
    journal: Annotated[
        Path | None, Option(metavar="FILE", help="File for everything that happens.  [default: OUTPUT.journal]")
    ] = None,
    as_json: options.Json = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Measure each task on each size of instance of a GPU.

    It is a GPU of this machine, and the batch of the tasks is written. The same command goes on where an earlier one
    was interrupted. A size on which a task runs out of memory is left
    out. Exits with 0 if all is measured, 1 if a task has failed otherwise or something could not be done.
    """
    from mig_opt.files.batch.batches import write_batch
    from mig_opt.files.batch.journals import read_commands
    from mig_opt.files.serving.profiles import write_profiles
    from mig_opt.operations.execute.profiles import ProfilePlan, profile_tasks

    checks = Checks()
    words = checks.attempt(read_commands, commands)
    model = checks.attempt(get_gpu, gpu)
    checks.attempt(check_outputs, [commands], output=output)
    lists = [
        checks.attempt(_numbers, option, text)
        for option, text in (("--sizes", sizes), ("--batches", batches), ("--processes", processes))
    ]
    if words is not None:
        one = bool(words.tasks) != bool(words.models)
        checks.require(one, "--commands", "has tasks and models, which are different files; split it into two")
    checks.finish()
    plan = ProfilePlan(model, lists[0], repetitions, warm_up, isolated, lists[1], lists[2])
    path = journal or output.with_name(f"{output.name}.journal")
    with shown_execution(quiet=quiet or as_json) as observe:
        found = profile_tasks(words, plan, journal=path, device=device, observe=observe)
    remarks = []
    if found.batch is not None:
        write_batch(found.batch, output)
        remarks.append(f"Batch written to {output}.")
    elif found.tables:
        write_profiles(found.tables, output)
        remarks.append(f"Profiles written to {output}.")
    else:
        remarks.append(f"Nothing written to {output}.")
    if not found.execution.complete:
        remarks.append(f"Not everything could be measured; the same command goes on, {path} has what is known.")
    if as_json:
        points = {entry.model: len(entry.points) for entry in found.tables}
        times = {} if found.batch is None else {task.name: _keyed(task.times) for task in found.batch.tasks}
        document = {"complete": found.execution.complete, "times": times, "points": points}
        print_json({**document, "left_out": found.left_out, "refusals": found.execution.refusals})
    else:
        done = found.execution.journal
        show(card([("GPU", model.name), ("runs", f"{len(done.runs())} of {len(done.batch.tasks)}")]))
        if found.batch is not None:
            show("", _times(found.batch))
        for entry in found.tables:
            show("", f"{entry.model}: {plural(len(entry.points), 'point')}")
        troubles = [f"{way}: {reason}" for way, reason in found.left_out.items()] + found.execution.refusals
        if troubles:
            show("", bullets(troubles))
        show_remarks(remarks)
    finish(good=found.execution.complete and not found.failed)


def _keyed(times: object) -> dict[str, float]:
    assert isinstance(times, dict)
    return {str(size): value for size, value in times.items()}


def _numbers(option: str, text: str) -> tuple[int, ...]:
    """Return the numbers of a list such as ``1,2,7``."""
    numbers = [number_in(word.strip()) for word in text.split(",") if word.strip()]
    whole = [number for number in numbers if isinstance(number, int) and number >= 0]
    if len(whole) < len(numbers):
        refuse(option, f"must be whole numbers with commas between them, is {text!r}")
    return tuple(whole)


def _times(batch: Batch) -> Part:
    """Return the times by size, each with its spread."""
    sizes = sorted({size for task in batch.tasks for size in task.times})
    rows = []
    for task in batch.tasks:
        spread = batch.spread.get(task.name, {})
        cells = {size: f"{seconds(time)} ±{spread.get(size, 0) / 2:.3f}" for size, time in task.times.items()}
        rows.append([task.name, *(cells.get(size, "-") for size in sizes)])
    return table(["/task", *(f">{size}g s" for size in sizes)], rows)
