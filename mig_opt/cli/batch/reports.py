"""Reports of batches and their schedules."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mig_opt import Batch, Schedule, ScheduleResult
from mig_opt.batch.schedule import lifetimes_with_runs
from mig_opt.cli.figures import MOST_ROWS, verdict
from mig_opt.gpu.devices import gpu_name
from mig_opt.method.report import Facts, Part, Points, Report, Table, dim
from mig_opt.texts import plural, seconds
from mig_opt.validation import Validation


def batch_facts(batch: Batch) -> Facts:
    """Return the facts about a batch."""
    source = re.split("[:;] ", batch.operations.source)[0]
    return [
        ("batch", f"{batch.name} ({plural(len(batch.tasks), 'task')})"),
        ("GPU", batch.label),
        ("costs", None if batch.usual_operations else source or None),
    ]


def result_report(batch: Batch, result: ScheduleResult, remarks: Sequence[str], *, tables: bool) -> Report:
    """Return the report of a result, with tables if they are wanted."""
    from mig_opt.files.batch.schedules import result_summary

    parts: list[Part] = [Points(unplaceable(batch) if result.status == "infeasible" else ())]
    parts += [schedule_table(batch, result.plan)] if result.plan is not None and tables else []
    return Report([*batch_facts(batch), *result.facts()], parts, remarks, result_summary(result))


def validation_facts(batch: Batch, validation: Validation) -> Facts:
    """Return the facts about a validation."""
    makespan = f"{seconds(validation.makespan)} s"
    return [*batch_facts(batch), ("schedule", verdict(validation.violations)), ("makespan", makespan)]


def unplaceable(batch: Batch) -> list[str]:
    """Return a line for each task that fits no instance of the GPU."""
    profiles, lines = [each for kind in batch.kinds for each in kind.profiles_of("double-memory")], []
    for task in (batch.tasks[index] for index in batch.unplaceable()):
        able = [profile for profile in profiles if task.profiled(profile) is not None]
        most = max(profile.memory_gb for profile in able)
        sizes = " or ".join(map(str, sorted({profile.compute_slices for profile in able})))
        # Every size of a task exists on the GPU of its batch: only memory can stand in the way.
        lines.append(
            f"task {task.name!r} fits nowhere on {batch.kind_names}: it needs {task.memory_gb:.12g} GB, but instances "
            f"of {sizes} compute slices have at most {most:g} GB"
        )
    return lines


def schedule_table(batch: Batch, schedule: Schedule) -> Table:
    """Return the schedule by GPU and instance; a long one has one row for each instance, with a note that says so."""
    instances, several = lifetimes_with_runs(batch, schedule), batch.gpus > 1
    columns = [">GPU", "instance"] if several else ["instance"]
    full = sum(len(instance.steps) for instance in instances) <= MOST_ROWS
    rows: list[list[str]] = []
    for instance in instances if full else instances[:MOST_ROWS]:
        place = [gpu_name(batch.devices, instance.gpu), str(instance)] if several else [str(instance)]
        if not full:
            figures = [seconds(instance.begin), seconds(instance.last), str(len(instance.runs))]
            rows.append([*place, *figures, ", ".join(run.task for run in instance.runs)])
            continue
        for step in instance.steps:
            label = step.label if step.is_run else dim(step.label)
            rows.append([*place, label, seconds(step.begin), seconds(step.end)])
            place = [""] * len(place)
    if full:
        return Table([*columns, "~task", ">begin s", ">end s"], rows)
    note = "One line for each instance"
    if len(instances) > MOST_ROWS:
        note = f"The first {MOST_ROWS} of {len(instances)} instances, one line for each"
    notes = [f"{note}: -o FILE or --json gives every run and operation."]
    return Table([*columns, ">begin s", ">end s", ">runs", "/tasks"], rows, notes)
