"""The commands bound, validate, plot and script, of batches and of services."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from mig_opt.cli import options
from mig_opt.cli.answers import (
    ANSWER_IS_NO,
    NOTHING,
    Answer,
    Call,
    File,
    Product,
    chart_of,
    code_of,
    infeasible,
    script_of,
)
from mig_opt.cli.errors import say
from mig_opt.cli.inputs import parsed_devices
from mig_opt.cli.problems import SERVICES, Given, given_problem
from mig_opt.method.report import Points, Report, data_of


def bound(batch: options.BatchArgument, *, given: options.ProblemOptions) -> Answer:
    """Show lower bounds on the makespan that need no solver.

    Exits with 1 if they show that there is no schedule at all. For services: mig-opt services bound.

    Examples
    --------
    mig-opt bound rodinia-a30
    mig-opt bound tasks.csv --gpu H100
    """
    return _bounded(given_problem(batch, None, given))


def services_bound(services: options.ServicesArgument, *, given: options.ServicesOptions) -> Answer:
    """Show lower bounds on the number of GPUs.

    Exits with 1 if they show that there is no deployment at all.

    Examples
    --------
    mig-opt services bound parvagpu-s3
    mig-opt services bound services.json --slo-share 0.4
    """
    return _bounded(Given(SERVICES, services, given))


def _bounded(given: Given) -> Answer:
    """Return the lower bounds of a problem."""
    problem = given.load()
    found = given.kind.bounds(problem)
    why = infeasible(found.remarks) if found.remarks else ""
    facts = [*given.kind.facts(problem), *found.facts, (given.kind.noun, "there is none" if why else None)]
    return Answer(Report(facts, found.parts, data=found.data), code_of(good=not why), why=why)


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
    return _validated(call, given_problem(batch, schedule, given, **{"-o": output}), schedule, tolerance, output)


def services_validate(
    call: Call,
    services: options.ServicesArgument,
    deployment: options.DeploymentArgument,
    *,
    given: options.ServicesOptions,
    tolerance: Annotated[float | None, "SHARE", "Share by which figures may differ.  [default: 1e-9]"] = None,
) -> Answer:
    """Check a deployment of services against every rule.

    Exits with 0 if it is valid, else 1.

    Examples
    --------
    mig-opt services validate services.json fleet.json
    """
    return _validated(call, Given(SERVICES, services, given), deployment, tolerance)


def _validated(call: Call, given: Given, path: Path, tolerance: float | None, output: Path | None = None) -> Answer:
    """Return whether a plan in a file is valid."""
    given.read(call, path)
    call.begin(output=output)
    given.validate(tolerance)
    found, report = given.found, given.kind.validation(given)
    parts = report.parts if found.valid else [Points(list(map(str, found.violations)))]
    data = {**data_of(found, "valid", given.kind.figure), **report.data, **data_of(found, "violations")}
    file = File("schedule", output, found.schedule if output and found.valid else None, absent=NOTHING)
    return Answer(Report(report.facts, parts, report.remarks, data), code_of(good=found.valid), [file])


def plot(
    call: Call,
    batch: options.BatchArgument,
    schedule: options.ScheduleArgument,
    out: options.PictureArgument,
    *,
    given: options.ProblemOptions,
    lower_bound: Annotated[float | None, "S", "Seconds, drawn as a line."] = None,
) -> Product:
    """Draw a schedule as a Gantt chart.

    A schedule without operations is drawn with some that make it feasible; one that is not valid is drawn as it is. For
    deployments: mig-opt services plot.

    Examples
    --------
    mig-opt plot batch.json plan.json plan.svg
    """
    problem = given_problem(batch, schedule, given, **{"--lower-bound": lower_bound})
    more = {} if lower_bound is None else {"lower_bound": lower_bound}
    return _drawn(call, problem, schedule, out, **more)


def services_plot(
    call: Call,
    services: options.ServicesArgument,
    deployment: options.DeploymentArgument,
    out: options.PictureArgument,
    *,
    given: options.ServicesOptions,
) -> Product:
    """Draw which services are on which GPU of a deployment.

    Examples
    --------
    mig-opt services plot services.json fleet.json fleet.svg
    """
    return _drawn(call, Given(SERVICES, services, given), deployment, out)


def _drawn(call: Call, given: Given, path: Path, out: Path, **more: float) -> Product:
    """Return the picture of a plan in a file."""
    given.read(call, path)
    call.begin(chart=out)
    if wrong := given.validate():
        say(f"warning: the {given.kind.noun} is not valid ({wrong}); see: mig-opt validate")
    content, known = given.kind.drawn(given)
    return Product(files=[chart_of(given.kind.noun, out, *content, source=path, **known, **more)])


def script(
    call: Call,
    batch: options.BatchArgument,
    schedule: options.ScheduleArgument,
    out: options.ScriptArgument,
    *,
    given: options.ProblemOptions,
    devices: options.Devices = None,
) -> Product:
    """Write a bash script that carries out a schedule.

    It has nvidia-smi commands, and hooks for the rest. A schedule without operations gets some. Exits with 1 if the
    schedule is not valid; nothing is written then. For deployments: mig-opt services script.

    Examples
    --------
    mig-opt script batch.json plan.json plan.sh
    mig-opt script batch.json plan.json plan.sh --devices 2,3
    """
    return _scripted(call, given_problem(batch, schedule, given), schedule, out, devices)


def services_script(
    call: Call,
    services: options.ServicesArgument,
    deployment: options.DeploymentArgument,
    out: options.ScriptArgument,
    *,
    given: options.ServicesOptions,
    devices: options.Devices = None,
) -> Product:
    """Write a bash script that makes a deployment.

    It has nvidia-smi commands, and hooks for the processes of services. Exits with 1 if the deployment is not valid;
    nothing is written then.

    Examples
    --------
    mig-opt services script services.json fleet.json fleet.sh
    """
    return _scripted(call, Given(SERVICES, services, given), deployment, out, devices)


def _scripted(call: Call, given: Given, path: Path, out: Path, devices: str | None) -> Product:
    """Return the script that carries out a plan in a file."""
    given.read(call, path)
    count = None
    if not call.errors:
        count = given.kind.number_of_gpus(given)
        if given.kind.check_script is not None:
            call.attempt(given.kind.check_script, given, path)
    names = call.attempt(parsed_devices, devices, count)
    call.begin(output=out)
    if wrong := given.validate():
        said = f"The {given.kind.noun} is not valid ({wrong}); see: mig-opt validate"
        return Product(code=ANSWER_IS_NO, said=[said])
    return Product(files=[script_of(out, given.kind.script(given, names), given.kind.hooks)])
