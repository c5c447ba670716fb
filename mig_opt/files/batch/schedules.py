"""Schedules and results as JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from mig_opt.batch.schedule import Operation, Run, Schedule, ScheduleResult
from mig_opt.files.kinds import FileKind, check_stated
from mig_opt.files.shapes import INSTANCE, WORDS, Seconds, Versions, Words
from mig_opt.files.values import Findings, Raw, encoded, read_keys
from mig_opt.method.result import Result, Status, TrajectoryPoint


@dataclass(frozen=True, slots=True)
class ScheduleFile:
    """Times at which each task runs on an instance, and at which the instances are created and destroyed."""

    schema: Literal["mig-opt/schedule/1"]
    runs: tuple[Run, ...]
    makespan: Annotated[float | None, Field(description="Seconds until the last run ends, as the file states it.")] = (
        None
    )
    operations: tuple[Operation, ...] | None = None


@dataclass(frozen=True, slots=True)
class PointEntry:
    """Best makespan and best lower bound at one moment of a run."""

    seconds: float
    makespan: Annotated[float | None, Field(description="Of the best schedule so far, in seconds; null: none yet.")]
    lower_bound: Annotated[float | None, Field(description="Best lower bound so far in seconds; null: infinite.")]


@dataclass(frozen=True, slots=True)
class ResultFile:
    """Outcome of a method: the schedule that it found, and the lower bound that it proved."""

    schema: Literal["mig-opt/result/1"]
    status: Status
    method: str
    lower_bound: Annotated[
        float | None, Field(description="Seconds; no schedule is shorter. null: infinite, there is no schedule.")
    ]
    runtime_s: Seconds
    schedule: Annotated[ScheduleFile | None, Field(description="The best schedule; null if there is none.")]
    makespan: Annotated[float | None, Field(description="Seconds, of the schedule; null without one.")] = None
    gap: Annotated[float | None, Field(description="(makespan - lower_bound) / makespan; null without one.")] = None
    seed: int = 0
    trajectory: tuple[PointEntry, ...] = ()
    versions: Versions = field(default_factory=dict)


_SPAN = {**INSTANCE, "begin": 0.12, "end": 2.62}
_RESULT_EXAMPLE = {
    "schema": "mig-opt/result/1",
    "status": "feasible",
    "method": "cp",
    "lower_bound": 12.5,
    "runtime_s": 0.5,
    "schedule": None,
}
WORDS[Run] = Words({"task": "lu", **_SPAN})
WORDS[Operation] = Words(
    {"kind": "create", **_SPAN}, {"kind": {"description": "Creation or destruction."}}, described_by=Run
)
WORDS[ScheduleFile] = Words({"schema": "mig-opt/schedule/1", "runs": []}, described_by=Schedule)
WORDS[PointEntry] = Words({"seconds": 0.1, "makespan": 20.0, "lower_bound": 12.5}, described_by=TrajectoryPoint)
WORDS[ResultFile] = Words(_RESULT_EXAMPLE, described_by=Result)

_TOLERANCE = 1e-6
"""Up to which a makespan or a gap that a file states may differ from that of its schedule."""


def _schedule(raw: Raw, path: str, findings: Findings) -> Schedule:
    values = read_keys(ScheduleFile, raw, findings, path)
    runs = tuple(run for run in values["runs"] or () if run)
    return Schedule(runs, values["operations"], stated_makespan=values["makespan"])


def _encoded_schedule(schedule: Schedule) -> Raw:
    document: Raw = {
        "makespan": schedule.makespan,
        "runs": [encoded(run) for run in schedule.runs],
    }
    if schedule.operations is not None:
        document["operations"] = [encoded(operation) for operation in schedule.operations]
    return document


SCHEDULE = FileKind("schedule", _schedule, _encoded_schedule)
read_schedule, write_schedule = SCHEDULE.read, SCHEDULE.write
schedule_from_json, schedule_to_json = SCHEDULE.from_json, SCHEDULE.to_json


def _result(raw: Raw, path: str, findings: Findings) -> ScheduleResult:
    values = read_keys(ResultFile, raw, findings, path, readers={"schedule": SCHEDULE.part})
    stated = {key: values.pop(key) for key in ("makespan", "gap")}
    findings.check()
    values["lower_bound"] = _infinite_if_null(values["lower_bound"])
    values["trajectory"] = tuple(
        TrajectoryPoint(point.seconds, point.makespan, _infinite_if_null(point.lower_bound))
        for point in values["trajectory"]
    )
    result = ScheduleResult(plan=values.pop("schedule"), **values)
    check_stated(raw, stated, result, "schedule", findings, same=_same)
    return result


def _infinite_if_null(bound: float | None) -> float:
    return math.inf if bound is None else bound


def _same(stated: float | None, actual: float | None) -> bool:
    if stated is None or actual is None:
        return stated is actual
    return math.isclose(stated, actual, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)


def result_summary(result: ScheduleResult) -> Raw:
    """Return a result as ``mig-opt solve --json`` prints it: without its seed, its trajectory and the versions."""
    return {
        "status": result.status.value,
        "method": result.method,
        "makespan": result.makespan,
        "lower_bound": _null_if_infinite(result.lower_bound),
        "gap": result.gap,
        "runtime_s": result.runtime_s,
        "schedule": None if result.schedule is None else SCHEDULE.document(result.schedule),
    }


def _encoded_result(result: ScheduleResult) -> Raw:
    points = [
        {"seconds": point.seconds, "makespan": point.objective, "lower_bound": _null_if_infinite(point.lower_bound)}
        for point in result.trajectory
    ]
    versions = dict(result.versions)
    return {**result_summary(result), "seed": result.seed, "trajectory": points, "versions": versions}


def _null_if_infinite(bound: float) -> float | None:
    return None if bound == math.inf else bound


RESULT = FileKind("result", _result, _encoded_result)
read_result, write_result = RESULT.read, RESULT.write
result_from_json, result_to_json = RESULT.from_json, RESULT.to_json
