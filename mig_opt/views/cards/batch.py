"""Batches and schedules in a notebook."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from mig_opt.batch.batch import Batch
from mig_opt.batch.schedule import Run, Schedule, ScheduleResult
from mig_opt.errors import InputError, Problem
from mig_opt.texts import plural
from mig_opt.views import plot
from mig_opt.views.batch.schedules import batch_title, schedule_problems, schedule_scene
from mig_opt.views.cards.cards import card, card_of, facts, frame_of, picture, plotted, result_card, table
from mig_opt.views.cards.frames import frame
from mig_opt.views.texts import spell_seconds


@card_of.register
def batch_card(batch: Batch) -> str:
    """Return the card of a batch: its GPUs, and the seconds of each task on each size of instance."""
    sizes, memory = batch.gpu.sizes, any(task.memory_gb is not None for task in batch.tasks)
    rows = [
        [task.name, *(_figure(task.times.get(size)) for size in sizes), *([_figure(task.memory_gb)] if memory else [])]
        for task in batch.tasks
    ]
    head = ["seconds of", *(f"on {plural(size, 'slice')}" for size in sizes), *(["needs GB"] if memory else [])]
    title = batch_title(batch, plural(len(batch.tasks), "task"))
    known = [("source", batch.source), ("at the start", _running(batch))]
    return card(title, facts((label, text) for label, text in known if text), table(head, rows, "tasks"))


def _running(batch: Batch) -> str:
    return plural(len(batch.initial), "live instance") if batch.initial else ""


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"


@frame_of.register
def batch_frame(batch: Batch) -> Any:
    """Return the tasks of a batch as a frame, with the columns of a CSV file."""
    columns = ["task", *(f"t{size}_s" for size in batch.gpu.sizes), "memory_gb"]
    rows = [
        {"task": task.name, **{f"t{size}_s": seconds for size, seconds in task.times.items()}}
        | ({} if task.memory_gb is None else {"memory_gb": task.memory_gb})
        for task in batch.tasks
    ]
    return frame(columns, rows)


@card_of.register
def schedule_card(schedule: Schedule) -> str:
    """Return the card of a schedule: the runs, from the first to the last."""
    rows = [
        [run.task, run.gpu, f"{run.profile}@{run.start}", f"{run.begin:.6g}", f"{run.end:.6g}"]
        for run in sorted(schedule.runs, key=lambda run: (run.begin, run.gpu, run.start))
    ]
    title = f"makespan {spell_seconds(schedule.makespan)} · {plural(len(rows), 'run')}"
    return card(title, table(["task", "GPU", "instance", "begin s", "end s"], rows, "runs"))


@frame_of.register
def schedule_frame(schedule: Schedule) -> Any:
    """Return the runs of a schedule as a frame, by GPU and begin."""
    columns = [field.name for field in fields(Run)]
    runs = sorted(schedule.runs, key=lambda run: (run.gpu, run.begin, run.start))
    return frame(columns, [{name: getattr(run, name) for name in columns} for run in runs])


@plotted.register
def plotted_schedule(schedule: Schedule, batch: Batch, **options: Any) -> Any:
    """Draw the runs and operations of a schedule on the GPUs of its batch."""
    return plot(batch, schedule, **options)


@card_of.register
def schedule_result_card(result: ScheduleResult) -> str:
    """Return the card of a result, with a small picture of its schedule if the batch is known."""
    batch, schedule = result.batch, result.plan
    if batch is None or schedule is None or any(schedule_problems(batch, schedule, None)):
        return result_card(result)
    return result_card(result, picture(schedule_scene(batch, schedule), "run"))


@frame_of.register
def result_frame(result: ScheduleResult) -> Any:
    """Return the runs of a result's schedule as a frame, without lines if there is none."""
    return schedule_frame(result.plan or Schedule(()))


@plotted.register
def plotted_result(result: ScheduleResult, **options: Any) -> Any:
    """Draw the schedule of a result, with its lower bound."""
    if result.plan is None:
        raise InputError([Problem("schedule", f"there is none to draw: the result is {result.status.value}")])
    if result.batch is None:
        message = "is not known, as the result comes from a file: plot(batch, result.schedule) draws it"
        raise InputError([Problem("batch", message)])
    return plot(result.batch, result.plan, lower_bound=result.lower_bound, **options)
