"""Goals of instances: what of a plan counts, who checks it, what bounds it, and how our own methods look for plans.

Every goal is to be least. A kind of instances with its goals is an entry of :data:`GOALS`; nothing else knows of kinds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mig_opt.batch.batch import Batch
from mig_opt.batch.bounds import best_lower_bound
from mig_opt.batch.schedule import Schedule
from mig_opt.errors import InputError, Problem
from mig_opt.files import KINDS
from mig_opt.files.documents import parsed, rendered
from mig_opt.files.values import EXAMPLES, Findings, read_listed
from mig_opt.fleet.state import FleetState, Migration
from mig_opt.instances.bundled import InstanceInfo, InstanceKind, digest_of, file_text
from mig_opt.instances.judgements import Attempt, Judgement
from mig_opt.instances.trace_goals import (
    SCHEDULERS,
    accept,
    flow_time_bound,
    judge_flow_time,
    judge_rejections,
    schedule_jobs,
)
from mig_opt.method.functions import imported
from mig_opt.method.registry import AUTO, DEPLOY_METHODS, METHODS
from mig_opt.serving.day import Day, DayPlan
from mig_opt.serving.demand import Demand
from mig_opt.serving.rates import RateTable
from mig_opt.validation import validate, validate_deployment, validate_migrations

EXAMPLES[Migration] = {"gpu": 0, "profile": "1g.5gb", "start": 6, "to_gpu": 1, "to_start": 2}


def content_digest(kind: InstanceKind, problem: Any, question: Mapping[str, Any] | None = None) -> str:
    """Return the SHA-256 of an instance: of its file, its question, and GPUs and costs that it only names.

    Examples
    --------
    >>> from mig_opt import instance_info, load
    >>> content_digest("batch", load("rodinia-a30"))[:12] == instance_info("rodinia-a30").sha256[:12]
    True
    """
    if kind == "demand":
        models = [pool.gpu for pool in problem.pools]
    else:  # of states, GPUs have a kind each, if there are several
        models = list(dict.fromkeys(getattr(problem, "kinds", ()) or [problem.gpu]))
    known = [
        {
            "profiles": [
                [p.name, p.compute_slices, p.memory_slices, float(p.memory_gb), p.max_count, list(p.starts)]
                for p in model.profiles
            ],
            "create": sorted(model.operation_costs.create.items()),
            "destroy": sorted(model.operation_costs.destroy.items()),
        }
        for model in models
    ]
    asked = json.dumps(dict(question), sort_keys=True) if question else ""
    return digest_of(file_text(kind, problem) + json.dumps(known) + asked)


@dataclass(frozen=True, slots=True)
class Goal:
    """Goal of instances of a kind; its functions take the problem, and the question of the instance."""

    unit: str  # of the values
    meaning: str  # what is to be least, in words
    plan: str  # name of the kind of file that holds a plan
    read: Callable[[Any, Mapping[str, Any], str, str], Any]  # the plan in a JSON text, which has the name of a file
    text: Callable[[Any], str]  # the JSON text of a plan
    judge: Callable[[Any, Any, Mapping[str, Any]], Judgement]  # of a problem, a plan and the question
    bound: Callable[[Any, Mapping[str, Any]], float]  # a lower bound without a solver
    attempt: Callable[..., Attempt]  # takes seconds, threads and the method, too
    methods: Sequence[str] = (AUTO,)  # names of the methods that it takes


def goal_of(info: InstanceInfo) -> Goal:
    """Return the goal of an instance; refuse one that there is not."""
    try:
        return GOALS[info.kind, info.goal]
    except KeyError:
        message = f"{info.goal!r} is no goal of instances of the kind {info.kind!r}"
        raise InputError([Problem(f"{info.name}.goal", message)]) from None


def _read(kind: str, problem: Any, text: str, source: str) -> Any:
    """Return the plan in a text: all of it, or that of a result as commands print it with ``--json``."""
    inner = parsed(text, source)[0].get(kind)
    given = {"demand": problem} if kind == "deployment" else {}
    read: Any = imported(KINDS[kind].place).from_json
    return read(json.dumps(inner) if isinstance(inner, dict) else text, source=source, **given)


def _plans(kind: str) -> Any:
    """Return the attributes of goals whose plans are files of a kind."""
    reads = {"read": lambda problem, _, text, source: _read(kind, problem, text, source)}
    return {"plan": kind, "text": lambda plan: imported(KINDS[kind].place).to_json(plan), **reads}


# Schedules of batches


def _judge_schedule(batch: Batch, schedule: Schedule, _: Mapping[str, Any]) -> Judgement:
    found = validate(batch, schedule)
    return Judgement.of(found.violations, found.makespan)


def _solve(batch: Batch, _: Mapping[str, Any], seconds: float, workers: int, method: str = AUTO) -> Attempt:
    from mig_opt.api.solve import solve

    return Attempt.of(solve(batch, method, time_limit=seconds, workers=workers))


# Deployments


def _cost_bound(demand: Demand, _: Mapping[str, Any]) -> float:
    from mig_opt.serving.bounds import fleet_bounds

    return fleet_bounds(demand)[0].cost


def _deploy(demand: Demand, _: Mapping[str, Any], seconds: float, workers: int, method: str = AUTO) -> Attempt:
    from mig_opt.api.deploy import deploy

    # Whether fewer compute slices would do is another question: the run ends once no deployment has fewer GPUs.
    ends: Any = {"time_limit": seconds, "workers": workers, "stop": lambda now: now.objective == now.lower_bound}
    return Attempt.of(deploy(demand, method, **ends))


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
    return Judgement.of(violations, 0.0 if violations else day.cost(plan))


def _day_bound(demand: Demand, question: Mapping[str, Any]) -> float:
    day = day_of(demand, question)
    return day.over_hours(0.0 if step is None else _cost_bound(step, question) for step in day.demands)


def _plan_day(demand: Demand, question: Mapping[str, Any], seconds: float, workers: int, method: str = AUTO) -> Attempt:
    from mig_opt.api.deploy.days import deploy_day

    day = day_of(demand, question)
    prices = {key: getattr(day, key) for key in ("margin", "creation_price", "interruption_price")}
    return Attempt.of(deploy_day(demand, day.rates, method, time_limit=seconds, workers=workers, **prices))


# Migrations


def _read_migrations(*given: Any) -> tuple[Migration, ...]:
    text, source = given[2:]
    findings = Findings(source)
    found = read_listed(Migration, parsed(text, source)[0].get("steps"), "steps", findings)
    findings.check()
    return found


def _migrations_text(migrations: tuple[Migration, ...]) -> str:
    keys = ("gpu", "profile", "start", "to_gpu", "to_start", "to_profile")
    steps = [{key: getattr(step, key) for key in keys if getattr(step, key) != ""} for step in migrations]
    return rendered({"steps": steps})


def _judge_migrations(state: FleetState, migrations: tuple[Migration, ...], question: Mapping[str, Any]) -> Judgement:
    room = _room_after(state, migrations, question["room"])
    if isinstance(room, str):
        return Judgement(False, None, (room,))
    return Judgement.of(validate_migrations(state, migrations, room=room).violations, len(migrations))


def _room_after(state: FleetState, migrations: tuple[Migration, ...], wanted: list[str]) -> Any:
    """Return places for the profiles that are wanted once all has migrated, or why there are none."""
    from mig_opt.api.defragment import defragment

    try:
        after = state.after(migrations)
    except InputError as error:
        return str(error)
    found = defragment(after, wanted, most_migrations=0)
    return found.room if found.plan is not None else f"there is no room for {', '.join(wanted)} at the end"


def _defragment(
    state: FleetState, question: Mapping[str, Any], seconds: float, workers: int, _method: str = AUTO
) -> Attempt:
    from mig_opt.api.defragment import defragment

    found = defragment(state, question["room"], time_limit=seconds, workers=workers).uninterrupted()
    value = None if found.migrations is None else float(len(found.migrations))
    return Attempt(found.migrations, value, found.lower_bound, "defragment", found.runtime_s, found.versions)


_SCHEDULE = _plans("schedule")
_DEPLOYMENT = _plans("deployment") | {"bound": _cost_bound, "attempt": _deploy, "methods": DEPLOY_METHODS.names}
_DEPLOYMENT["judge"] = lambda demand, plan, _: Judgement.of(
    validate_deployment(demand, plan).violations, plan.cost(demand)
)

GOALS: Mapping[tuple[str, str], Goal] = {
    ("batch", "makespan"): Goal(
        "s",
        "the last end of a task",
        judge=_judge_schedule,
        bound=lambda batch, _: best_lower_bound(batch),
        attempt=_solve,
        methods=METHODS.names,
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
        methods=DEPLOY_METHODS.names,
    ),
    ("trace", "flow time"): Goal(
        "s",
        "the mean of the times from arrival to end, without preemption and migration",
        judge=judge_flow_time,
        bound=flow_time_bound,
        attempt=schedule_jobs,
        methods=SCHEDULERS,
        **_SCHEDULE,
    ),
    ("trace", "rejected"): Goal(
        "jobs",
        "the number of jobs that do not run from their arrival on, where operations take no time",
        judge=judge_rejections,
        bound=lambda *_: 0.0,
        attempt=accept,
        **_SCHEDULE,
    ),
    ("state", "migrations"): Goal(
        "migrations",
        "the number of migrations until there is room",
        plan="migrations",
        read=_read_migrations,
        text=_migrations_text,
        judge=_judge_migrations,
        bound=lambda state, asked: float(isinstance(_room_after(state, (), asked["room"]), str)),  # 0 if there is room
        attempt=_defragment,
    ),
}
"""The goals of each kind of instances by their names."""
