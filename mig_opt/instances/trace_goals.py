"""Goals of traces: flow time, and jobs that are rejected; what schedulers make of them as schedules."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Mapping
from typing import Any

from mig_opt.batch.kinds import no_costs
from mig_opt.batch.schedule import Run, Schedule
from mig_opt.errors import InputError, Problem
from mig_opt.fleet.admission import AcceptedJob, Admission
from mig_opt.fleet.trace import Trace, batch_of
from mig_opt.instances.judgements import Attempt, Judgement
from mig_opt.method.registry import AUTO
from mig_opt.method.result import versions_with
from mig_opt.simulation import Policy
from mig_opt.validation import validate

_TOLERANCE = 1e-6
"""Seconds by which a job may begin before it arrives, as times may differ for the validator of schedules."""

_POLICIES: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("first-fit", {}),
    ("best-fit", {"backfill": True}),
    ("load-balancing", {"backfill": True}),
    ("fragmentation-aware", {"migration": False, "backfill": True}),
    ("planner", {"goal": "flow"}),
)
"""Schedulers for traces, each with its options: none of them migrates a job, so each log is a schedule."""

SCHEDULERS = (AUTO, *(policy for policy, _ in _POLICIES))
"""Names of them, and of the best of all."""

_MOST_JOBS_EXACTLY = 20  # jobs up to which the best schedule in hindsight is looked for


def judge_flow_time(trace: Trace, schedule: Schedule, _: Mapping[str, Any]) -> Judgement:
    """Judge a schedule of the jobs of a trace by their mean flow time."""
    if any(job.pcie_gbps for job in trace.jobs):
        raise InputError([Problem("jobs", "must not slow each other down: a schedule does not say how long they run")])
    arrivals = {job.name: job.arrival for job in trace.jobs}
    violations = list(map(str, validate(batch_of(trace), schedule).violations))
    violations += [
        f"runs[{index}].begin: {run.task!r} runs at {run.begin:g} s, and arrives at {arrivals[run.task]:g} s"
        for index, run in enumerate(schedule.runs)
        if run.begin < arrivals.get(run.task, -math.inf) - _TOLERANCE
    ]
    waits = [run.end - arrivals[run.task] for run in schedule.runs] if not violations else [0.0]
    return Judgement.of(violations, math.fsum(waits) / len(waits))


def flow_time_bound(trace: Trace, _: Mapping[str, Any]) -> float:
    """Return a lower bound on the mean flow time."""
    from mig_opt.fleet.bounds import trace_bounds

    return trace_bounds(trace, resizing=False).mean_completion


def schedule_jobs(trace: Trace, question: Mapping[str, Any], seconds: float, _: int, method: str = AUTO) -> Attempt:
    """Return the best schedule of our own schedulers, and of a solver if there are few jobs."""
    from mig_opt.models.fleet.optimum import trace_optimum
    from mig_opt.simulation import simulate

    begin = time.perf_counter()
    bound = flow_time_bound(trace, question)
    best = Attempt(None, None, bound, "", 0.0, versions_with(["ortools"]))
    for policy, options in _POLICIES:
        if method not in (AUTO, policy):
            continue
        if time.perf_counter() - begin > seconds:
            break
        schedule = _logged_schedule(trace, simulate(trace, policy, **options).log)
        judged = judge_flow_time(trace, schedule, question)
        if judged.value is not None and (best.value is None or judged.value < best.value):
            best = dataclasses.replace(best, plan=schedule, value=judged.value, method=policy)
    left = seconds - (time.perf_counter() - begin)
    if method == AUTO and len(trace.jobs) <= _MOST_JOBS_EXACTLY and left > 0:
        found = trace_optimum(trace, "completion", time_limit=left).uninterrupted()
        arrivals = math.fsum(job.arrival for job in trace.jobs)
        least = max(bound, (found.lower_bound - arrivals) / len(trace.jobs))
        best = dataclasses.replace(best, lower_bound=least, bound_method="optimum")
        if found.plan is not None:
            value = judge_flow_time(trace, found.plan, question).value
            if value is not None and (best.value is None or value < best.value):
                best = dataclasses.replace(best, plan=found.plan, value=value, method="optimum")
    return dataclasses.replace(best, seconds=time.perf_counter() - begin)


def is_policy(function: object) -> bool:
    """Return True for a scheduler of traces, such as a trained agent."""
    return callable(getattr(function, "arrived", None))


def scheduled_by(trace: Trace, goal: str, policy: Policy) -> Schedule:
    """Return the schedule that a scheduler makes of the jobs of a trace, for a goal of traces."""
    from mig_opt.simulation import simulate

    if goal != "rejected":
        return _logged_schedule(trace, simulate(trace, policy).log)
    free = trace.replace(operations=no_costs(trace.kinds))
    return dataclasses.replace(_logged_schedule(free, simulate(free, policy, reject=True).log), operations=())


def _logged_schedule(trace: Trace, log: Any) -> Schedule:
    runs = tuple(
        Run(trace.jobs[run.job].name, run.gpu, run.placement.profile.name, run.placement.start, run.begin, run.end)
        for run in log.runs()
        if run.end > run.begin
    )
    return Schedule(runs, tuple(log.operations()))


def judge_rejections(trace: Trace, schedule: Schedule, _: Mapping[str, Any]) -> Judgement:
    """Judge a schedule by the number of jobs that do not run from their arrival on."""
    from mig_opt.validation.fleet.admissions import check_admission

    jobs = {job.name: job for job in trace.jobs}
    violations = [
        f"runs[{index}]: {run.task!r} must run from its arrival for as long as it takes there"
        for index, run in enumerate(schedule.runs)
        if run.task in jobs and not _at_once(trace, jobs[run.task], run)
    ]
    accepted = tuple(AcceptedJob(run.task, run.gpu, run.profile, run.start) for run in schedule.runs)
    violations += map(str, check_admission(trace, Admission(accepted)))
    return Judgement.of(violations, len(trace.jobs) - len(accepted))


def _at_once(trace: Trace, job: Any, run: Run) -> bool:
    try:
        seconds = job.times.get(trace.one_kind.profile(run.profile).compute_slices)
    except InputError:  # told by the validator
        return True
    there = abs(run.begin - job.arrival) <= _TOLERANCE
    return there and seconds is not None and abs(run.end - run.begin - seconds) <= _TOLERANCE


def accept(trace: Trace, _: Mapping[str, Any], seconds: float, workers: int, _method: str = AUTO) -> Attempt:
    """Return the most jobs that can run from their arrival on."""
    from mig_opt.models.fleet.admission import admission_optimum

    found = admission_optimum(trace, time_limit=seconds, workers=workers).uninterrupted()
    plan = None if found.admission is None else _accepted_schedule(trace, found.admission)
    rejected = None if plan is None else float(len(trace.jobs) - len(plan.runs))
    least = math.ceil(len(trace.jobs) - found.upper_bound - _TOLERANCE)
    return Attempt(plan, rejected, least, "admission", found.runtime_s, found.versions)


def _accepted_schedule(trace: Trace, admission: Admission) -> Schedule:
    jobs = {job.name: job for job in trace.jobs}
    runs = []
    for entry in admission.accepted:
        job = jobs[entry.job]
        end = job.arrival + job.times[trace.one_kind.profile(entry.profile).compute_slices]
        runs.append(Run(entry.job, entry.gpu, entry.profile, entry.start, job.arrival, end))
    return Schedule(tuple(runs), ())
