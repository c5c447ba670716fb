"""Reports of problems, plans and results, for notebooks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from typing import Any

from mig_opt.batch.batch import Batch
from mig_opt.batch.schedule import Run, Schedule, ScheduleResult
from mig_opt.method.report import Report, Table
from mig_opt.method.result import Result, Status
from mig_opt.serving.deployment import Deployment, DeploymentResult, Segment
from mig_opt.simulation.fleet.simulator import Simulation
from mig_opt.simulation.serving.outcome import RequestSimulation, ServiceLatencies
from mig_opt.texts import plural
from mig_opt.views.batch.schedules import batch_title, schedule_problems, schedule_scene
from mig_opt.views.scene import Scene
from mig_opt.views.serving.deployments import deployment_problems, deployment_scene, deployment_title, spell_rate
from mig_opt.views.serving.latencies import latency_title
from mig_opt.views.texts import spell_seconds

_MARKS = {Status.OPTIMAL: "●", Status.FEASIBLE: "◐", Status.INFEASIBLE: "✕"}


def report_of(thing: Any) -> Report:
    """Return the report of something that a notebook shows."""
    return next(made for kind, made in _REPORTS.items() if isinstance(thing, kind))(thing)


def _batch(batch: Batch) -> Report:
    """Return the GPUs of a batch, and the seconds of each task on each size of instance; entries as in a CSV file."""
    sizes = batch.gpu.sizes
    needs = ["needs GB"] if any(task.memory_gb is not None for task in batch.tasks) else []
    rows, entries = [], []
    for task in batch.tasks:
        figures = [*map(task.times.get, sizes), *([task.memory_gb] if needs else [])]
        rows.append([task.name, *("-" if figure is None else f"{figure:.6g}" for figure in figures)])
        seconds = {f"t{size}_s": time for size, time in task.times.items()}
        entries.append(
            {"task": task.name, **seconds, "memory_gb": math.nan if task.memory_gb is None else task.memory_gb}
        )
    return Report(
        [
            ("source", batch.source),
            ("at the start", plural(len(batch.initial), "live instance") if batch.initial else None),
        ],
        [Table(["seconds of", *(f"on {plural(size, 'slice')}" for size in sizes), *needs], rows, noun="tasks")],
        title=batch_title(batch, plural(len(batch.tasks), "task")),
        keys=["task", *(f"t{size}_s" for size in sizes), "memory_gb"],
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
    spans = {"mean wait": metrics.wait.mean, "mean flow time": metrics.completion.mean, "makespan": metrics.makespan}
    keys = ["job", "arrival", "scheduled", "finished", "wait", "flow_time", "done"]
    jobs = zip(trace.jobs, log.scheduled, log.finished, strict=True)
    moments = ((job.name, job.arrival, scheduled, finished) for job, scheduled, finished in jobs)
    fleet = f"{trace.gpus} x {trace.gpu.name}"
    return Report(
        [
            ("jobs done", f"{metrics.finished} of {metrics.jobs}"),
            *((label, spell_seconds(float(f"{seconds:.4g}"))) for label, seconds in spans.items()),
            ("slices busy", f"{100 * metrics.utilisation:.1f} %"),
            ("fragmentation", f"{100 * metrics.fragmentation:.1f} %"),
            ("migrations", str(metrics.migrations)),
        ],
        title=" · ".join(filter(None, [simulation.label, trace.name, fleet, plural(len(trace.jobs), "job")])),
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
