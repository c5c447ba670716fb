"""Schedules and results as JSON."""

from __future__ import annotations

import math
from pathlib import Path

from mig_opt.batch.schedule import Schedule
from mig_opt.files.documents import Document, read_text, rendered, write_text
from mig_opt.files.reading import Findings, Raw, check_schema, check_stated, encoded, read_document, read_keys
from mig_opt.files.shapes import ResultFile, ScheduleFile
from mig_opt.result import Result, TrajectoryPoint

_TOLERANCE = 1e-6
"""Up to which a makespan or a gap that a file states may differ from that of its schedule."""


def read_schedule(path: str | Path) -> Schedule:
    """Read a schedule from a JSON file.

    The makespan that the file states becomes :attr:`Schedule.stated_makespan`. Whether the schedule is right for a
    batch is the question of :func:`mig_opt.validate`.

    Raises
    ------
    InputError
        With every problem of the file.
    """
    return schedule_from_json(read_text(path), source=str(path))


def schedule_from_json(document: Document, *, source: str = "") -> Schedule:
    """Return the schedule that a JSON document describes.

    Parameters
    ----------
    document : str, bytes or mapping
        JSON text, or the object that it stands for.
    source : str
        Where the document is from, for messages.

    Raises
    ------
    InputError
        With every problem of the document.

    Examples
    --------
    >>> schedule = schedule_from_json(
    ...     '{"schema": "mig-opt/schedule/1", "runs":'
    ...     ' [{"task": "lu", "gpu": 0, "profile": "2g.12gb", "start": 0, "begin": 0.12, "end": 2.62}]}'
    ... )
    >>> schedule.makespan, schedule.operations is None
    (2.62, True)
    """
    raw, findings = read_document(document, "schedule", source)
    schedule = schedule_at(raw, "", findings)
    findings.check()
    return schedule


def schedule_at(raw: Raw, path: str, findings: Findings) -> Schedule:
    """Return the schedule of an object at a path of a document, as far as it can be read."""
    check_schema(raw, "schedule", findings, path)
    values = read_keys(ScheduleFile, raw, findings, path)
    runs = tuple(run for run in values["runs"] or () if run)
    return Schedule(runs, values["operations"], stated_makespan=values["makespan"])


def schedule_to_json(schedule: Schedule) -> str:
    """Return a schedule as JSON text, one run or operation on each line; the makespan is that of the runs.

    Raises
    ------
    InputError
        If a time is not finite.

    Examples
    --------
    >>> print(schedule_to_json(Schedule((Run("lu", 0, "2g.12gb", 0, begin=0.12, end=2.62),))), end="")
    {
      "schema": "mig-opt/schedule/1",
      "makespan": 2.62,
      "runs": [
        {"task": "lu", "gpu": 0, "profile": "2g.12gb", "start": 0, "begin": 0.12, "end": 2.62}
      ]
    }
    """
    return rendered(schedule_document(schedule))


def schedule_document(schedule: Schedule) -> Raw:
    """Return a schedule as a document, or a part of one."""
    document: Raw = {
        "schema": "mig-opt/schedule/1",
        "makespan": schedule.makespan,
        "runs": [encoded(run) for run in schedule.runs],
    }
    if schedule.operations is not None:
        document["operations"] = [encoded(operation) for operation in schedule.operations]
    return document


def write_schedule(schedule: Schedule, path: str | Path) -> None:
    """Write a schedule to a JSON file; an existing file is replaced only when all is written.

    Raises
    ------
    InputError
        If a time is not finite, or the file cannot be written.
    """
    write_text(path, schedule_to_json(schedule))


def read_result(path: str | Path) -> Result:
    """Read a result from a JSON file.

    Raises
    ------
    InputError
        With every problem of the file.
    """
    return result_from_json(read_text(path), source=str(path))


def result_from_json(document: Document, *, source: str = "") -> Result:
    """Return the result that a JSON document describes.

    Parameters
    ----------
    document : str, bytes or mapping
        JSON text, or the object that it stands for.
    source : str
        Where the document is from, for messages.

    Raises
    ------
    InputError
        With every problem of the document. It is one, too, if ``makespan`` or ``gap`` contradict the schedule.
    """
    raw, findings = read_document(document, "result", source)
    values = read_keys(ResultFile, raw, findings, readers={"schedule": schedule_at})
    stated = {key: values.pop(key) for key in ("makespan", "gap")}
    findings.check()
    values["lower_bound"] = _infinite_if_null(values["lower_bound"])
    values["trajectory"] = tuple(
        TrajectoryPoint(point.seconds, point.makespan, _infinite_if_null(point.lower_bound))
        for point in values["trajectory"]
    )
    result = Result(**values)
    check_stated(raw, stated, result, "schedule", findings, same=_same)
    return result


def _infinite_if_null(bound: float | None) -> float:
    return math.inf if bound is None else bound


def _same(stated: float | None, actual: float | None) -> bool:
    if stated is None or actual is None:
        return stated is actual
    return math.isclose(stated, actual, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)


def result_to_json(result: Result, *, details: bool = True) -> str:
    """Return a result as JSON text.

    Parameters
    ----------
    result : Result
        The result. A lower bound that is infinite (there is no schedule) is written as null.
    details : bool
        Whether to add the name of the format, the seed, the trajectory and the versions. Only with them the text can
        be read again; without them it is what ``mig-opt solve --json`` prints.

    Raises
    ------
    InputError
        If a figure is not finite.

    Examples
    --------
    >>> print(result_to_json(Result(Status.NO_SOLUTION, "cp", None, 12.5, 60.0), details=False), end="")
    {
      "status": "no_solution",
      "method": "cp",
      "makespan": null,
      "lower_bound": 12.5,
      "gap": null,
      "runtime_s": 60.0,
      "schedule": null
    }
    """
    document: Raw = {
        "status": result.status.value,
        "method": result.method,
        "makespan": result.makespan,
        "lower_bound": _null_if_infinite(result.lower_bound),
        "gap": result.gap,
        "runtime_s": result.runtime_s,
        "schedule": None if result.schedule is None else schedule_document(result.schedule),
    }
    if details:
        points = [
            {
                "seconds": point.seconds,
                "makespan": point.objective,
                "lower_bound": _null_if_infinite(point.lower_bound),
            }
            for point in result.trajectory
        ]
        document = {
            "schema": "mig-opt/result/1",
            **document,
            "seed": result.seed,
            "trajectory": points,
            "versions": dict(result.versions),
        }
    return rendered(document)


def _null_if_infinite(bound: float) -> float | None:
    return None if bound == math.inf else bound


def write_result(result: Result, path: str | Path) -> None:
    """Write a result to a JSON file; an existing file is replaced only when all is written.

    Raises
    ------
    InputError
        If a figure is not finite, or the file cannot be written.
    """
    write_text(path, result_to_json(result))
