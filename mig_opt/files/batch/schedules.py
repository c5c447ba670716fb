"""Schedules, results and certificates as JSON."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

from mig_opt.batch.certificate import Certificate
from mig_opt.batch.schedule import Schedule, ScheduleResult
from mig_opt.files.kinds import FileKind, check_stated
from mig_opt.files.reading import Findings, Raw, encoded, read_keys
from mig_opt.files.shapes import CertificateFile, ResultFile, ScheduleFile
from mig_opt.result import TrajectoryPoint

_TOLERANCE = 1e-6
"""Up to which a makespan or a gap that a file states may differ from that of its schedule."""


def read_schedule(path: str | Path) -> Schedule:
    """Read a schedule from a JSON file.

    The makespan that the file states becomes ``stated_makespan`` of the schedule. Whether the schedule is right for a
    batch is the question of :func:`mig_opt.validate`.

    Raises
    ------
    InputError
        With every problem of the file.
    """
    return SCHEDULE.read(path)


def write_schedule(schedule: Schedule, path: str | Path) -> None:
    """Write a schedule to a JSON file; an existing file is replaced only when all is written.

    Parameters
    ----------
    schedule : Schedule
        The schedule.
    path : str or Path
        The file.

    Raises
    ------
    InputError
        If a time is not finite, or the file cannot be written.
    """
    SCHEDULE.write(schedule, path)


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
schedule_from_json, schedule_to_json = SCHEDULE.from_json, SCHEDULE.to_json


def read_result(path: str | Path) -> ScheduleResult:
    """Read a result from a JSON file.

    Raises
    ------
    InputError
        With every problem of the file. It is one, too, if ``makespan`` or ``gap`` contradict the schedule.
    """
    return RESULT.read(path)


def write_result(result: ScheduleResult, path: str | Path) -> None:
    """Write a result to a JSON file; an existing file is replaced only when all is written.

    Parameters
    ----------
    result : ScheduleResult
        The result. A lower bound that is infinite (there is no schedule) is written as null.
    path : str or Path
        The file.

    Raises
    ------
    InputError
        If a figure is not finite, or the file cannot be written.
    """
    RESULT.write(result, path)


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
result_from_json, result_to_json = RESULT.from_json, RESULT.to_json


def read_certificate(path: str | Path) -> Certificate:
    """Read a certificate from a JSON file.

    Whether it is right is the question of :func:`mig_opt.check`.

    Raises
    ------
    InputError
        With every problem of the file.
    """
    return CERTIFICATE.read(path)


def write_certificate(certificate: Certificate, path: str | Path) -> None:
    """Write a certificate to a JSON file; an existing file is replaced only when all is written.

    Parameters
    ----------
    certificate : Certificate
        The certificate.
    path : str or Path
        The file.

    Raises
    ------
    InputError
        If a figure is not finite, or the file cannot be written.
    """
    CERTIFICATE.write(certificate, path)


def _certificate(raw: Raw, path: str, findings: Findings) -> Certificate:
    values = read_keys(CertificateFile, raw, findings, path, readers={"better": SCHEDULE.part})
    findings.check()
    return Certificate(**values)


def _encoded_certificate(certificate: Certificate) -> Raw:
    document = {field.name: getattr(certificate, field.name) for field in dataclasses.fields(CertificateFile)[1:]}
    weights = list(certificate.slice_load.weights)
    document |= {
        "slice_load": {"weights": weights, "value": certificate.slice_load.value},
        "critical_task": encoded(certificate.critical_task),
        "versions": dict(certificate.versions),
        "better": certificate.better and SCHEDULE.document(certificate.better),
    }
    return document


CERTIFICATE = FileKind("certificate", _certificate, _encoded_certificate)
certificate_from_json, certificate_to_json = CERTIFICATE.from_json, CERTIFICATE.to_json
