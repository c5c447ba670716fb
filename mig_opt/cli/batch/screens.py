"""Cards and tables about batches and their schedules."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from mig_opt.batch.batch import Batch
from mig_opt.batch.lifetimes import Lifetime, lifetimes_with_runs
from mig_opt.batch.schedule import Schedule, ScheduleResult
from mig_opt.cli.screens import (
    MOST_ROWS,
    Cell,
    Part,
    Rows,
    card,
    noted,
    runtime,
    seconds,
    status,
    styled,
    table,
    verdict,
)
from mig_opt.gpu.devices import gpu_name
from mig_opt.texts import plural
from mig_opt.validation import Validation


def batch_rows(batch: Batch) -> Rows:
    """Return the rows of a card that describe the batch."""
    source = re.split("[:;] ", batch.operations.source)[0]
    return [
        ("batch", f"{batch.name} ({plural(len(batch.tasks), 'task')})"),
        ("GPU", f"{batch.gpus} x {batch.gpu.name}"),
        ("costs", None if batch.operations == batch.gpu.operation_costs else source or None),
    ]


def result_card(batch: Batch, result: ScheduleResult) -> Part:
    """Return the card of a result."""
    schedule, gap = result.schedule, result.gap
    return card(
        [
            *batch_rows(batch),
            ("status", status(result.status)),
            ("method", result.method),
            ("makespan", None if schedule is None else f"{seconds(schedule.makespan)} s"),
            ("lower bound", None if math.isinf(result.lower_bound) else f"{seconds(result.lower_bound)} s"),
            ("gap", None if gap is None else "< 0.001%" if 0 < gap < 5e-6 else f"{gap:.3%}"),
            ("utilisation", None if schedule is None else f"{schedule.utilisation(batch):.1%}"),
            ("runtime", runtime(result)),
        ]
    )


def validation_card(batch: Batch, validation: Validation) -> Part:
    """Return the card of a validation."""
    valid = verdict(len(validation.violations), "valid")
    return card([*batch_rows(batch), ("schedule", valid), ("makespan", f"{seconds(validation.makespan)} s")])


def unplaceable(batch: Batch) -> list[str]:
    """Return a line for each task that fits no instance of the GPU."""
    profiles, lines = batch.gpu.profiles_of("double-memory"), []
    for task in (batch.tasks[index] for index in batch.unplaceable()):
        most = max(profile.memory_gb for profile in profiles if profile.compute_slices in task.times)
        sizes = " or ".join(map(str, task.times))
        # Every size of a task exists on the GPU of its batch: only memory can stand in the way.
        lines.append(
            f"task {task.name!r} fits nowhere on {batch.gpu.name}: it needs {task.memory_gb:.12g} GB, but instances of "
            f"{sizes} compute slices have at most {most:g} GB"
        )
    return lines


def schedule_table(batch: Batch, schedule: Schedule) -> Part:
    """Return the schedule by GPU and instance; a long one has one row for each instance, with a line that says so."""
    instances = lifetimes_with_runs(batch, schedule)
    places = [">GPU", "instance"] if batch.gpus > 1 else ["instance"]
    if sum(len(instance.steps) for instance in instances) <= MOST_ROWS:
        return table([*places, "~task", ">begin s", ">end s"], _steps(batch, instances))
    shown = instances[:MOST_ROWS]
    rows = (
        [
            *_place(batch, instance),
            seconds(instance.begin),
            seconds(instance.last),
            str(len(instance.runs)),
            ", ".join(run.task for run in instance.runs),
        ]
        for instance in shown
    )
    remark = "One line for each instance"
    if len(shown) < len(instances):
        remark = f"The first {len(shown)} of {len(instances)} instances, one line for each"
    shown_table = table([*places, ">begin s", ">end s", ">runs", "/tasks"], rows)
    return noted(shown_table, [f"{remark}: -o FILE or --json gives every run and operation."])


def _steps(batch: Batch, instances: Sequence[Lifetime]) -> Iterator[list[Cell]]:
    for instance in instances:
        place = _place(batch, instance)
        for step in instance.steps:
            label = styled(step.label, "" if step.is_run else "dim")
            yield [*place, label, seconds(step.begin), seconds(step.end)]
            place = [""] * len(place)


def _place(batch: Batch, instance: Lifetime) -> list[str]:
    return [gpu_name(batch.devices, instance.gpu), str(instance)] if batch.gpus > 1 else [str(instance)]
