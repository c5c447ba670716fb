"""Schedules and results as JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from mig_opt.batch.schedule import Operation, Run, Schedule, ScheduleResult
from mig_opt.files.kinds import INSTANCE, FileKind, check_stated
from mig_opt.files.values import Findings, Raw, made
from mig_opt.method.result import Result, TrajectoryPoint
from mig_opt.rules.vocabulary import NullIs

_TOLERANCE = 1e-6
"""Difference that a makespan or a gap that a file states may have from that of its schedule."""

_SPAN = {**INSTANCE, "begin": 0.12, "end": 2.62}


def _schedule(values: dict[str, Any], _: Raw, path: str, findings: Findings) -> Schedule:
    values["stated_makespan"] = values.pop("makespan")
    schedule: Schedule = made(Schedule, values, path, findings, good=not findings.problems)
    return schedule


SCHEDULE = FileKind(
    "schedule",
    Schedule,
    {Schedule: {"runs": []}, Run: {"task": "lu", **_SPAN}, Operation: {"kind": "create", **_SPAN}},
    ("makespan", "runs", "operations"),
    {"makespan": Annotated[float | None, Field(description="Seconds until the last run ends, as the file states it.")]},
    defaults={"makespan": None},
    described_by={Operation: Run},
    build=_schedule,
    in_results="result",
)


@dataclass(frozen=True, slots=True)
class PointEntry:
    """Best makespan and best lower bound at one moment of a run."""

    seconds: float
    makespan: Annotated[float | None, Field(description="Of the best schedule so far, in seconds; null: none yet.")]
    lower_bound: Annotated[
        float, NullIs(math.inf), Field(description="Best lower bound so far in seconds; null: infinite.")
    ]


def _result(values: dict[str, Any], raw: Raw, _: str, findings: Findings) -> ScheduleResult:
    stated = {key: values.pop(key) for key in ("makespan", "gap")}
    findings.check()
    points = [TrajectoryPoint(point.seconds, point.makespan, point.lower_bound) for point in values.pop("trajectory")]
    result = ScheduleResult(plan=values.pop("schedule"), trajectory=tuple(points), **values)
    check_stated(raw, stated, result, "schedule", findings, same=_same)
    return result


def _same(stated: float | None, actual: float | None) -> bool:
    if stated is None or actual is None:
        return stated is actual
    return math.isclose(stated, actual, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)


def result_summary(result: ScheduleResult) -> Raw:
    """Return a result as ``mig-opt solve --json`` prints it: without its seed, its trajectory and the versions."""
    document = RESULT.document(result)
    return {key: document[key] for key in RESULT.keys[:-3]}


RESULT = FileKind(
    "result",
    ScheduleResult,
    {
        ScheduleResult: {"status": "feasible", "method": "cp", "lower_bound": 12.5, "runtime_s": 0.5, "schedule": None},
        PointEntry: {"seconds": 0.1, "makespan": 20.0, "lower_bound": 12.5},
    },
    ("status", "method", "makespan", "lower_bound", "gap", "runtime_s", "schedule", "seed", "trajectory", "versions"),
    {
        "makespan": Annotated[float | None, Field(description="Seconds, of the schedule; null without one.")],
        "lower_bound": Annotated[
            float,
            NullIs(math.inf),
            Field(description="Seconds; no schedule is shorter. null: infinite, there is no schedule."),
        ],
        "gap": Annotated[float | None, Field(description="(makespan - lower_bound) / makespan; null without one.")],
        "schedule": Annotated[Schedule | None, Field(description="The best schedule; null if there is none.")],
        "trajectory": tuple[PointEntry, ...],
    },
    defaults={"makespan": None, "gap": None},
    described_by={ScheduleResult: Result, PointEntry: TrajectoryPoint},
    build=_result,
    complete=True,
)
