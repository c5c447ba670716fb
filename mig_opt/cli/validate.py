"""The commands validate and services validate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from mig_opt.cli import options
from mig_opt.cli.answers import NOTHING, Answer, Call, File, code_of
from mig_opt.cli.problems import Given, given_problem, given_services
from mig_opt.method.report import Points, Report, data_of


def validate(
    call: Call,
    batch: options.BatchArgument,
    schedule: options.ScheduleArgument,
    *,
    given: options.ProblemOptions,
    tolerance: Annotated[float | None, "S", "Seconds by which times may differ.  [default: 1e-6]"] = None,
    output: Annotated[Path | None, "Write the schedule with the operations that were found."] = None,
) -> Answer:
    """Check a schedule of a batch against every rule.

    A schedule without operations is valid if there are operations that make it so; they are looked for.
    Exits with 0 if it is valid, else 1. For deployments: mig-opt services validate.

    Examples
    --------
    mig-opt validate batch.json plan.json
    mig-opt validate batch.json plan.json --json
    """
    problem = given_problem(batch, schedule, given, **{"-o": output})
    return _validated(call, problem, schedule, tolerance, output)


def services_validate(
    call: Call,
    services: options.ServicesArgument,
    deployment: options.DeploymentArgument,
    *,
    given: options.ServicesOptions,
    tolerance: Annotated[float | None, "S", "Share by which figures may differ.  [default: 1e-9]"] = None,
) -> Answer:
    """Check a deployment of services against every rule.

    Exits with 0 if it is valid, else 1.

    Examples
    --------
    mig-opt services validate services.json fleet.json
    """
    return _validated(call, given_services(services, given), deployment, tolerance)


def _validated(call: Call, given: Given, path: Path, tolerance: float | None, output: Path | None = None) -> Answer:
    """Return whether a plan in a file is valid."""
    given.read(call, path)
    call.begin(output=output)
    given.validate(tolerance)
    found, report = given.found, given.kind.validation(given)
    parts = report.parts if found.valid else [Points(list(map(str, found.violations)))]
    data = {**data_of(found, "valid", given.kind.figure), **report.data, **data_of(found, "violations")}
    plan = given.kind.valid_plan(given) if found.valid else None
    file = File("schedule", output, plan, absent=NOTHING)
    return Answer(Report(report.facts, parts, report.remarks, data), code_of(good=found.valid), [file])
