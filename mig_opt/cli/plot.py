"""The commands plot and services plot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from mig_opt.cli import options
from mig_opt.cli.answers import Call, Product, chart_of
from mig_opt.cli.errors import say
from mig_opt.cli.problems import Given, given_problem, given_services


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

    A schedule without operations is drawn with some that make it feasible, what is not valid as it is. For
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
    return _drawn(call, given_services(services, given), deployment, out)


def _drawn(call: Call, given: Given, path: Path, out: Path, **more: float) -> Product:
    """Return the picture of a plan in a file."""
    given.read(call, path)
    call.begin(chart=out)
    if wrong := given.validate():
        say(f"warning: the {given.kind.noun} is not valid ({wrong}); see: mig-opt validate")
    content, known = given.kind.drawn(given)
    return Product(files=[chart_of(given.kind.noun, out, *content, **known, **more)])
