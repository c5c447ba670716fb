"""Reports of problems, plans and results as a notebook shows them: as cards, on light and dark pages, and as frames."""

from __future__ import annotations

import html
import importlib.util
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from typing import Any

from mig_opt.batch.batch import Batch
from mig_opt.batch.schedule import Run, Schedule, ScheduleResult
from mig_opt.errors import InputError, Problem
from mig_opt.method.report import Report, Table
from mig_opt.method.result import Result, Status
from mig_opt.serving.deployment import Deployment, DeploymentResult, Segment
from mig_opt.simulation.fleet.simulator import Simulation
from mig_opt.simulation.serving.outcome import RequestSimulation, ServiceLatencies
from mig_opt.texts import plural
from mig_opt.views.batch.schedules import batch_title, schedule_problems, schedule_scene
from mig_opt.views.scene import Boxes, Scene
from mig_opt.views.serving.deployments import deployment_problems, deployment_scene, deployment_title, spell_rate
from mig_opt.views.serving.latencies import latency_title
from mig_opt.views.texts import one_line, spell_seconds

MOST_ROWS = 10
"""Lines of a table in a card."""

# Everything takes the ink of the page, so that no colour is wrong in the dark.
_STYLE = """<style>
.mig-opt {font-size: 13px; line-height: 1.4; max-width: 46em}
.mig-opt table {border-collapse: collapse; margin: 0.3em 0}
.mig-opt td, .mig-opt th {text-align: right; padding: 1px 10px 1px 0; background: none}
.mig-opt td:first-child, .mig-opt th:first-child, .mig-opt .facts td {text-align: left}
.mig-opt tr {background: none}
.mig-opt thead th {border-bottom: 1px solid color-mix(in srgb, currentColor 35%, transparent)}
.mig-opt .facts td:first-child {white-space: nowrap; vertical-align: top}
.mig-opt .facts td:first-child, .mig-opt .note {opacity: 0.65}
.mig-opt svg {display: block; width: 100%; margin: 0.4em 0}
</style>"""
_MOST_BOXES = 400
_ROW = 10  # units of the small picture for each memory slice; a row has at least 2.2 of them


def card_of(thing: Any) -> str:
    """Return the card of something: title, facts, a small picture, and tables."""
    report = report_of(thing)
    rows = "".join(_row("td", [label, value]) for label, value in report.facts if value)
    facts = f'<table class="facts"><tbody>{rows}</tbody></table>' if report.facts else ""
    picture = _picture(*drawn) if (drawn := report.picture()) else ""
    tables = "".join(_table(part) for part in report.parts if isinstance(part, Table))
    return f'<div class="mig-opt">{_STYLE}<b>{html.escape(report.title)}</b>{facts}{picture}{tables}</div>'


def _table(table: Table) -> str:
    """Return the first lines of a table, and how many more there are."""
    lines = "".join(_row("td", [one_line(str(cell), sys.maxsize) for cell in row]) for row in table.rows[:MOST_ROWS])
    left = len(table.rows) - MOST_ROWS
    more = f'<div class="note">… and {left} more {table.noun}</div>' if left > 0 else ""
    return f"<table><thead>{_row('th', table.headers)}</thead><tbody>{lines}</tbody></table>{more}"


def _row(tag: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"


def _picture(scene: Scene, role: str) -> str:
    """Return the boxes of one role in the first panel as a small picture; none if there are too many to see."""
    panel = scene.panels[0]
    boxes = [box for group in panel.marks if isinstance(group, Boxes) and group.role == role for box in group.boxes]
    if not 0 < len(boxes) <= _MOST_BOXES or panel.rows is None or panel.x.limits is None:
        return ""
    # What lies before the first second is of no schedule that a method returns.
    across, down = 1000 / panel.x.limits[1], _ROW * max(1.0, 2.2 / panel.rows.step)
    drawn = "".join(
        f'<rect x="{across * box.left:.1f}" y="{down * box.top:.1f}" width="{across * (box.right - box.left):.1f}"'
        f' height="{down * (box.bottom - box.top) - 1:.1f}" fill="{box.colour}">'
        f"<title>{html.escape(', '.join([box.head, *box.facts]))}</title></rect>"
        for box in boxes
    )
    tall = down * panel.rows.height
    return (
        f'<svg viewBox="0 0 1000 {tall:.0f}" preserveAspectRatio="none" role="img"'
        f' style="height: {min(160, 0.9 * tall + 4):.0f}px">{drawn}</svg>'
    )


def frame_of(thing: Any) -> Any:
    """Return the entries of something as a pandas frame; what an entry lacks is missing."""
    if importlib.util.find_spec("pandas") is None:
        message = 'tables as frames need pandas, which is not installed: pip install "mig-opt[frames]"'
        raise InputError([Problem("", message)])
    import pandas as pd

    report = report_of(thing)
    return pd.DataFrame(list(report.entries), columns=list(report.keys))


# What is told of each

_MARKS = {Status.OPTIMAL: "●", Status.FEASIBLE: "◐", Status.INFEASIBLE: "✕"}


def report_of(thing: Any) -> Report:
    """Return the report of something that a notebook shows."""
    return next(made for kind, made in _REPORTS.items() if isinstance(thing, kind))(thing)


def _batch(batch: Batch) -> Report:
    """Return the GPUs of a batch, and the seconds of each task on each size of instance; entries as in a CSV file."""
    sizes = sorted({size for kind in batch.kinds for size in kind.sizes})
    several = len(batch.kinds) > 1
    header = ["seconds of", *["on GPU"] * several, *(f"on {plural(n, 'slice')}" for n in sizes)]
    needs = ["needs GB"] if any(task.memory_gb is not None for task in batch.tasks) else []
    rows, entries = [], []
    for task, kind in ((task, kind) for task in batch.tasks for kind in batch.kinds if task.times_on(kind)):
        times = task.times_on(kind)
        figures = [*map(times.get, sizes), *([task.memory_gb] if needs else [])]
        on = {"gpu": kind.name} if several else {}
        rows.append([task.name, *on.values(), *("-" if figure is None else f"{figure:.6g}" for figure in figures)])
        seconds = {f"t{size}_s": time for size, time in times.items()}
        entries.append(
            {"task": task.name, **on, **seconds, "memory_gb": math.nan if task.memory_gb is None else task.memory_gb}
        )
    live = [held for held in batch.initial if held.free or batch.has_mig(held.gpu)]  # not just a whole GPU
    return Report(
        [("source", batch.source), ("at the start", plural(len(live), "live instance") if live else None)],
        [Table([*header, *needs], rows, noun="lines" if several else "tasks")],
        title=batch_title(batch, plural(len(batch.tasks), "task")),
        keys=["task", *(["gpu"] if several else []), *(f"t{size}_s" for size in sizes), "memory_gb"],
        entries=entries,
    )


def _schedule(schedule: Schedule) -> Report:
    """Return the runs of a schedule, from the first to the last; entries by GPU and begin."""
    rows = [
        [run.task, str(run.gpu), f"{run.profile}@{run.start}", f"{run.begin:.6g}", f"{run.end:.6g}"]
        for run in sorted(schedule.runs, key=lambda run: (run.begin, run.gpu, run.start))
    ]
    return Report(
        parts=[Table(["task", "GPU", "instance", "begin s", "end s"], rows, noun="runs")],
        title=f"makespan {spell_seconds(schedule.makespan)} · {plural(len(rows), 'run')}",
        **_entries(Run, sorted(schedule.runs, key=lambda run: (run.gpu, run.begin, run.start))),
    )


def _deployment(deployment: Deployment) -> Report:
    """Return the GPUs of a deployment, and what each service has; entries by GPU and start slice."""
    entries = _entries(Segment, sorted(deployment.segments, key=lambda segment: (segment.gpu, segment.start)))
    if any(deployment_problems(deployment)):
        places = [[segment.service, str(segment.gpu), segment.profile] for segment in deployment.segments]
        return Report(
            parts=[Table(["service", "GPU", "profile"], places, noun="segments")], title="Deployment", **entries
        )
    rows = []
    for name in sorted({segment.service for segment in deployment.segments}):
        profiles = sorted(segment.profile for segment in deployment.segments if segment.service == name)
        rows.append([name, ", ".join(profiles), spell_rate(deployment.throughput(name))])
    table = Table(["service", "instances", "requests/s"], rows, noun="services")
    title, picture = deployment_title(deployment, None), lambda: (deployment_scene(deployment), "segment")
    return Report(parts=[table], title=title, picture=picture, **entries)


def _result(result: Result[Any]) -> Report:
    """Return the facts about a result, and why it is so where none of them says it."""
    facts = result.facts()[1:]
    said = any(text is not None and result.reason in text for _, text in facts)
    title = f"{_MARKS.get(result.status, '○')} {result.status.value}"
    return Report([*facts, ("because", None if said else result.reason)], title=title)


def _of_schedule(result: ScheduleResult) -> Report:
    """Return a result with a small picture of its schedule, if the batch is known; entries are those of the plan."""
    batch, plan, runs = result.batch, result.plan, _schedule(result.plan or Schedule(()))

    def picture() -> tuple[Scene, str] | None:
        if batch is None or plan is None or any(schedule_problems(batch, plan, None)):
            return None
        return schedule_scene(batch, plan), "run"

    return replace(_result(result), picture=picture, keys=runs.keys, entries=runs.entries)


def _of_deployment(result: DeploymentResult) -> Report:
    """Return a result with a small picture of its deployment; entries are those of the plan."""
    plan = _deployment(result.plan or Deployment((), ()))
    shown = _result(result) if result.plan is None else replace(_result(result), picture=plan.picture)
    return replace(shown, keys=plan.keys, entries=plan.entries)


def _requests(simulation: RequestSimulation) -> Report:
    """Return how late the requests of each service are."""
    rows = []
    for service in simulation.services:
        spans = (service.p50_s, service.p99_s, service.slo_s)
        milliseconds = ("-" if seconds is None else f"{1000 * seconds:.4g}" for seconds in spans)
        rows.append([service.name, f"{service.requests:,}", f"{100 * service.late_share:.3g}", *milliseconds])
    table = Table(["service", "requests", "late %", "median ms", "p99 ms", "limit ms"], rows, noun="services")
    entries = _entries(ServiceLatencies, simulation.services, without={"bins", "late_share_interval"})
    return Report(parts=[table], title=latency_title(simulation), **entries)


def _simulation(simulation: Simulation) -> Report:
    """Return the figures by which schedulers are compared; entries say when each job arrived, had a place, was done."""
    metrics, trace, log = simulation.metrics, simulation.trace, simulation.log
    kinds = () if trace.gpu else simulation.kinds.items()
    spans = {"mean wait": metrics.wait.mean, "mean flow time": metrics.completion.mean, "makespan": metrics.makespan}
    keys = ["job", "arrival", "scheduled", "finished", "wait", "flow_time", "done"]
    jobs = zip(trace.jobs, log.scheduled, log.finished, strict=True)
    moments = ((job.name, job.arrival, scheduled, finished) for job, scheduled, finished in jobs)
    return Report(
        [
            ("jobs done", f"{metrics.finished} of {metrics.jobs}"),
            *((label, spell_seconds(float(f"{seconds:.4g}"))) for label, seconds in spans.items()),
            ("slices busy", f"{100 * metrics.utilisation:.1f} %"),
            ("fragmentation", f"{100 * metrics.fragmentation:.1f} %"),
            ("migrations", str(metrics.migrations)),
            *((name, f"{plural(own.finished, 'job')} done, {100 * own.utilisation:.1f} % busy") for name, own in kinds),
        ],
        title=" · ".join(filter(None, [simulation.label, trace.name, trace.label, plural(len(trace.jobs), "job")])),
        keys=keys,
        entries=[
            dict(zip(keys, (name, begin, start, end, start - begin, end - begin, not math.isnan(end)), strict=True))
            for name, begin, start, end in moments
        ],
    )


def _entries(kind: Any, records: Iterable[Any], without: Iterable[str] = ()) -> dict[str, Any]:
    """Return records as entries with a key for each attribute."""
    keys = [field.name for field in fields(kind) if field.name not in {*without}]
    return {"keys": keys, "entries": [{key: getattr(record, key) for key in keys} for record in records]}


_REPORTS: dict[type, Callable[[Any], Report]] = {
    Batch: _batch,
    Schedule: _schedule,
    Deployment: _deployment,
    ScheduleResult: _of_schedule,
    DeploymentResult: _of_deployment,
    Result: _result,
    RequestSimulation: _requests,
    Simulation: _simulation,
}
"""Function that makes the report, by the class of a result; others have one, too."""
