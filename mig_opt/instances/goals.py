"""Goals of instances: what of a plan counts, who checks it, what bounds it, and how our own methods look for plans.

Every goal is to be least. A kind of instances with its goals is an entry of :data:`GOALS`; nothing else knows of kinds.
"""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mig_opt.batch.batch import Batch
from mig_opt.batch.schedule import Run, Schedule
from mig_opt.errors import InputError, Problem
from mig_opt.files import KINDS
from mig_opt.files.documents import parsed, rendered
from mig_opt.files.values import EXAMPLES, Findings, read_listed
from mig_opt.fleet.admission import AcceptedJob, Admission
from mig_opt.fleet.state import FleetState, Migration
from mig_opt.fleet.trace import Trace, batch_of
from mig_opt.instances.bundled import InstanceInfo
from mig_opt.method.registry import AUTO, imported
from mig_opt.method.result import versions_with
from mig_opt.serving.day import Day, DayPlan
from mig_opt.serving.demand import Demand
from mig_opt.serving.deployment import Deployment
from mig_opt.serving.rates import RateTable
from mig_opt.validation import validate, validate_deployment, validate_migrations

_TOLERANCE = 1e-6
"""Seconds by which a job may begin before it arrives, as times may differ for the validator of schedules."""

_POLICIES: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("first-fit", {}),
    ("best-fit", {"backfill": True}),
    ("load-balancing", {"backfill": True}),
    ("fragmentation-aware", {"migration": False, "backfill": True}),
    ("planner", {}),
)
"""Schedulers for traces, each with its options: none of them migrates a job, so each log is a schedule."""

_MOST_JOBS_EXACTLY = 20
"""Jobs up to which the best schedule in hindsight is looked for."""


EXAMPLES[Migration] = {"gpu": 0, "profile": "1g.5gb", "start": 6, "to_gpu": 1, "to_start": 2}


@dataclass(frozen=True, slots=True)
class Judgement:
    """Judgement of a plan by the validator.

    Attributes
    ----------
    valid : bool
        True if the plan keeps every rule of its problem.
    value : float or None
        The figure that counts, computed anew; None for a plan that is not valid.
    violations : tuple of str
        Everything that is wrong.
    """

    valid: bool
    value: float | None
    violations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Attempt:
    """Result of our own methods: a plan with its value, a lower bound, and who found them in which time."""

    plan: Any
    value: float | None
    lower_bound: float
    method: str
    seconds: float
    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Goal:
    """Goal of instances of a kind.

    Attributes
    ----------
    unit : str
        Unit of the values.
    meaning : str
        What is to be least, in words.
    plan : str
        Name of the kind of file that holds a plan.
    read : callable
        Returns the plan in a JSON text; takes the problem, the question, the text and the name of the file.
    text : callable
        Returns the JSON text of a plan.
    judge : callable
        Returns the :class:`Judgement` of a plan; takes the problem, the plan and the question of the instance.
    bound : callable
        Returns a lower bound without a solver; takes the problem and the question.
    attempt : callable
        Returns an :class:`Attempt`; takes the problem, the question, seconds, threads and the method.
    """

    unit: str
    meaning: str
    plan: str
    read: Callable[[Any, Mapping[str, Any], str, str], Any]
    text: Callable[[Any], str]
    judge: Callable[[Any, Any, Mapping[str, Any]], Judgement]
    bound: Callable[[Any, Mapping[str, Any]], float]
    attempt: Callable[..., Attempt]


def goal_of(info: InstanceInfo) -> Goal:
    """Return the goal of an instance; refuse one that there is not."""
    try:
        return GOALS[info.kind, info.goal]
    except KeyError:
        message = f"{info.goal!r} is no goal of instances of the kind {info.kind!r}"
        raise InputError([Problem(f"{info.name}.goal", message)]) from None


def _judged(violations: Any, value: float) -> Judgement:
    found = tuple(map(str, violations))
    return Judgement(not found, None if found else value, found)


def _read(kind: str, problem: Any, text: str, source: str) -> Any:
    """Return the plan in a text: all of it, or that of a result as commands print it with ``--json``."""
    inner = parsed(text, source)[0].get(kind)
    given = {"demand": problem} if kind == "deployment" else {}
    read: Any = imported(KINDS[kind].place).from_json
    return read(json.dumps(inner) if isinstance(inner, dict) else text, source=source, **given)


def _text(kind: str, plan: Any) -> str:
    text: str = imported(KINDS[kind].place).to_json(plan)
    return text


def _plans(kind: str) -> Any:
    """Return the attributes of goals whose plans are files of a kind."""
    reads = {"read": lambda problem, _, text, source: _read(kind, problem, text, source)}
    return {"plan": kind, "text": lambda plan: _text(kind, plan), **reads}


# Schedules of batches


def _judge_schedule(batch: Batch, schedule: Schedule, _: Mapping[str, Any]) -> Judgement:
    found = validate(batch, schedule)
    return _judged(found.violations, found.makespan)


def _schedule_bound(batch: Batch, _: Mapping[str, Any]) -> float:
    from mig_opt.batch.bounds import best_lower_bound

    return best_lower_bound(batch)


def _solve(batch: Batch, _: Mapping[str, Any], seconds: float, workers: int, method: str = AUTO) -> Attempt:
    from mig_opt.api.solve import solve

    found = solve(batch, method, time_limit=seconds, workers=workers)
    plan = found.schedule
    return Attempt(plan, found.makespan, found.lower_bound, found.method, found.runtime_s, found.versions)


# Deployments


def _judge_deployment(demand: Demand, deployment: Deployment, _: Mapping[str, Any]) -> Judgement:
    return _judged(validate_deployment(demand, deployment).violations, deployment.cost(demand))


def _cost_bound(demand: Demand, _: Mapping[str, Any]) -> float:
    from mig_opt.serving.bounds import fleet_bounds

    return fleet_bounds(demand)[0].cost


def _deploy(demand: Demand, _: Mapping[str, Any], seconds: float, workers: int, method: str = AUTO) -> Attempt:
    from mig_opt.api.deploy import deploy

    # Whether fewer compute slices would do is another question: the run ends once no deployment has fewer GPUs.
    found = deploy(demand, method, time_limit=seconds, workers=workers, stop=lambda p: p.objective == p.lower_bound)
    plan = found.deployment
    return Attempt(plan, found.objective, found.lower_bound, found.method, found.runtime_s, found.versions)


# Days


def day_of(demand: Demand, question: Mapping[str, Any]) -> Day:
    """Return the day of an instance: its question has the rates and the prices of changes."""
    given = dict(question)
    return Day(demand, RateTable(tuple(given.pop("times")), given.pop("rates")), **given)


def _read_day(demand: Demand, question: Mapping[str, Any], text: str, source: str) -> DayPlan:
    from mig_opt.files.serving.days import day_plan_from_json

    return day_plan_from_json(text, day_of(demand, question), source=source)


def _day_text(plan: DayPlan) -> str:
    from mig_opt.files.serving.days import day_document

    return rendered(day_document(plan))


def _judge_day(demand: Demand, plan: DayPlan, question: Mapping[str, Any]) -> Judgement:
    from mig_opt.validation.serving.days import validate_day

    day = day_of(demand, question)
    violations = validate_day(day, plan).violations
    return _judged(violations, 0.0 if violations else day.cost(plan))


def _day_bound(demand: Demand, question: Mapping[str, Any]) -> float:
    day = day_of(demand, question)
    return day.over_hours(0.0 if step is None else _cost_bound(step, question) for step in day.demands)


def _plan_day(demand: Demand, question: Mapping[str, Any], seconds: float, workers: int, method: str = AUTO) -> Attempt:
    from mig_opt.api.deploy.days import deploy_day

    day = day_of(demand, question)
    prices = {key: getattr(day, key) for key in ("margin", "creation_price", "interruption_price")}
    found = deploy_day(demand, day.rates, method, time_limit=seconds, workers=workers, **prices)
    return Attempt(found.plan, found.objective, found.lower_bound, found.method, found.runtime_s, found.versions)


# Traces


def _judge_flow_time(trace: Trace, schedule: Schedule, _: Mapping[str, Any]) -> Judgement:
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
    return _judged(violations, math.fsum(waits) / len(waits))


def _flow_time_bound(trace: Trace, _: Mapping[str, Any]) -> float:
    from mig_opt.fleet.bounds import trace_bounds

    return trace_bounds(trace, resizing=False).mean_completion


def _schedule_jobs(trace: Trace, question: Mapping[str, Any], seconds: float, _: int, method: str = AUTO) -> Attempt:
    from mig_opt.models.fleet.optimum import trace_optimum
    from mig_opt.simulation import simulate

    begin = time.perf_counter()
    bound = _flow_time_bound(trace, question)
    best = Attempt(None, None, bound, "", 0.0, versions_with(["ortools"]))
    for policy, options in _POLICIES:
        if method not in (AUTO, policy):
            continue
        if time.perf_counter() - begin > seconds:
            break
        done = simulate(trace, policy, **options)
        schedule = _logged_schedule(trace, done.log)
        judged = _judge_flow_time(trace, schedule, question)
        if judged.value is not None and (best.value is None or judged.value < best.value):
            best = dataclasses.replace(best, plan=schedule, value=judged.value, method=policy)
    left = seconds - (time.perf_counter() - begin)
    if method == AUTO and len(trace.jobs) <= _MOST_JOBS_EXACTLY and left > 0:
        found = trace_optimum(trace, "completion", time_limit=left)
        arrivals = math.fsum(job.arrival for job in trace.jobs)
        least = max(bound, (found.lower_bound - arrivals) / len(trace.jobs))
        best = dataclasses.replace(best, lower_bound=least)
        if found.plan is not None:
            value = _judge_flow_time(trace, found.plan, question).value
            if value is not None and (best.value is None or value < best.value):
                best = dataclasses.replace(best, plan=found.plan, value=value, method="optimum")
    return dataclasses.replace(best, seconds=time.perf_counter() - begin)


def _logged_schedule(trace: Trace, log: Any) -> Schedule:
    runs = tuple(
        Run(trace.jobs[run.job].name, run.gpu, run.placement.profile.name, run.placement.start, run.begin, run.end)
        for run in log.runs()
        if run.end > run.begin
    )
    return Schedule(runs, tuple(log.operations()))


def _judge_rejections(trace: Trace, schedule: Schedule, _: Mapping[str, Any]) -> Judgement:
    from mig_opt.validation.fleet.admissions import check_admission

    jobs = {job.name: job for job in trace.jobs}
    violations = [
        f"runs[{index}]: {run.task!r} must run from its arrival for as long as it takes there"
        for index, run in enumerate(schedule.runs)
        if run.task in jobs and not _at_once(trace, jobs[run.task], run)
    ]
    accepted = tuple(AcceptedJob(run.task, run.gpu, run.profile, run.start) for run in schedule.runs)
    violations += map(str, check_admission(trace, Admission(accepted)))
    return _judged(violations, len(trace.jobs) - len(accepted))


def _at_once(trace: Trace, job: Any, run: Run) -> bool:
    try:
        seconds = job.times.get(trace.one_kind.profile(run.profile).compute_slices)
    except InputError:  # told by the validator
        return True
    there = abs(run.begin - job.arrival) <= _TOLERANCE
    return there and seconds is not None and abs(run.end - run.begin - seconds) <= _TOLERANCE


def _accept(trace: Trace, _: Mapping[str, Any], seconds: float, workers: int, _method: str = AUTO) -> Attempt:
    from mig_opt.models.fleet.admission import admission_optimum

    found = admission_optimum(trace, time_limit=seconds, workers=workers)
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


# Migrations


def _read_migrations(*given: Any) -> tuple[Migration, ...]:
    text, source = given[2:]
    findings = Findings(source)
    found = read_listed(Migration, parsed(text, source)[0].get("steps"), "steps", findings)
    findings.check()
    return found


def _migrations_text(migrations: tuple[Migration, ...]) -> str:
    keys = ("gpu", "profile", "start", "to_gpu", "to_start")
    return rendered({"steps": [{key: getattr(step, key) for key in keys} for step in migrations]})


def _judge_migrations(state: FleetState, migrations: tuple[Migration, ...], question: Mapping[str, Any]) -> Judgement:
    room = _room_after(state, migrations, question["room"])
    if isinstance(room, str):
        return Judgement(False, None, (room,))
    return _judged(validate_migrations(state, migrations, room=room).violations, len(migrations))


def _room_after(state: FleetState, migrations: tuple[Migration, ...], wanted: list[str]) -> Any:
    """Return places for the profiles that are wanted once all has migrated, or why there are none."""
    from mig_opt.api.defragment import defragment

    try:
        after = state.after(migrations)
    except InputError as error:
        return str(error)
    found = defragment(after, wanted, most_migrations=0)
    return found.room if found.plan is not None else f"there is no room for {', '.join(wanted)} at the end"


def _migrations_bound(state: FleetState, question: Mapping[str, Any]) -> float:
    """Return 1 unless there is room already."""
    return float(isinstance(_room_after(state, (), question["room"]), str))


def _defragment(
    state: FleetState, question: Mapping[str, Any], seconds: float, workers: int, _method: str = AUTO
) -> Attempt:
    from mig_opt.api.defragment import defragment

    found = defragment(state, question["room"], time_limit=seconds, workers=workers)
    value = None if found.migrations is None else float(len(found.migrations))
    return Attempt(found.migrations, value, found.lower_bound, "defragment", found.runtime_s, found.versions)


_SCHEDULE = _plans("schedule")
_DEPLOYMENT = _plans("deployment") | {"judge": _judge_deployment, "bound": _cost_bound, "attempt": _deploy}

GOALS: Mapping[tuple[str, str], Goal] = {
    ("batch", "makespan"): Goal(
        "s",
        "the last end of a task",
        judge=_judge_schedule,
        bound=_schedule_bound,
        attempt=_solve,
        **_SCHEDULE,
    ),
    ("demand", "gpus"): Goal("GPUs", "the number of GPUs with a segment", **_DEPLOYMENT),
    ("demand", "cost"): Goal("", "the cost of the GPUs with a segment", **_DEPLOYMENT),
    ("demand", "GPU-hours"): Goal(
        "",
        "the hours of the GPUs of a day times their cost, and the price of segments that begin or are interrupted",
        plan="day",
        read=_read_day,
        text=_day_text,
        judge=_judge_day,
        bound=_day_bound,
        attempt=_plan_day,
    ),
    ("trace", "flow time"): Goal(
        "s",
        "the mean of the times from arrival to end, without preemption and migration",
        judge=_judge_flow_time,
        bound=_flow_time_bound,
        attempt=_schedule_jobs,
        **_SCHEDULE,
    ),
    ("trace", "rejected"): Goal(
        "jobs",
        "the number of jobs that do not run from their arrival on, where operations take no time",
        judge=_judge_rejections,
        bound=lambda *_: 0.0,
        attempt=_accept,
        **_SCHEDULE,
    ),
    ("state", "migrations"): Goal(
        "migrations",
        "the number of migrations until there is room",
        plan="migrations",
        read=_read_migrations,
        text=_migrations_text,
        judge=_judge_migrations,
        bound=_migrations_bound,
        attempt=_defragment,
    ),
}
"""The goals of each kind of instances by their names."""
