"""The one way to a picture: the scene of what is given, drawn as a figure or written to a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mig_opt.batch.batch import Batch
from mig_opt.batch.schedule import Schedule, ScheduleResult
from mig_opt.errors import InputError, Problem
from mig_opt.serving.day import DayResult
from mig_opt.serving.deployment import Deployment, DeploymentResult
from mig_opt.simulation.fleet.simulator import Simulation
from mig_opt.simulation.serving.outcome import RequestSimulation
from mig_opt.views.batch.schedules import execution_scene, schedule_scene
from mig_opt.views.batch.tasks import batch_scene
from mig_opt.views.fleet.simulations import simulation_scene
from mig_opt.views.output import check_plot_path, draw, missing, save
from mig_opt.views.scene import Scene
from mig_opt.views.serving.days import day_scene
from mig_opt.views.serving.deployments import deployment_scene
from mig_opt.views.serving.latencies import latency_scene

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SCENES: dict[tuple[type, int], Callable[..., Scene]] = {
    (Batch, 0): batch_scene,
    (Batch, 1): schedule_scene,
    (Batch, 2): execution_scene,
    (Deployment, 0): deployment_scene,
    (DayResult, 0): day_scene,
    (RequestSimulation, 0): latency_scene,
    (Simulation, 0): simulation_scene,
}
"""The picture of a class with a number of schedules."""


def plot(
    content: Any,
    *more: Any,
    to: str | os.PathLike[str] | None = None,
    title: str | None = None,
    dpi: float = 150,
    **options: Any,
) -> Figure | None:
    """Draw what :func:`mig_opt.plot` draws, as a figure or into a file; a title takes the place of the usual one.

    Equal arguments give equal files. An existing file is replaced only when the new one is complete.
    """
    first = content[0] if isinstance(content, list | tuple) and content else content
    given = len(more)
    made = next((made for (kind, number), made in _SCENES.items() if isinstance(first, kind) and number == given), None)
    if made is None:
        known = ", ".join(dict.fromkeys(kind.__name__ for kind, _ in _SCENES))
        names = " with ".join(type(each).__name__ for each in (first, *more))
        raise InputError([Problem("content", f"there is no picture of {names:.60}; there are some of {known}")])
    if to is not None:
        check_plot_path(to)
    lacking = missing("png") if to is None else []
    try:
        scene = made(content, *more, **options)
    except InputError as error:
        raise InputError([*lacking, *error.problems]) from None
    if lacking:
        raise InputError(lacking)
    if title is not None:
        scene = replace(scene, title=title)
    if to is None:
        return draw(scene)
    save(scene, to, dpi)
    return None


def plotted(thing: Any, *of: Any, **options: Any) -> Any:
    """Draw something with the problem that it is of; a result draws its plan, with all that it knows."""
    match thing:
        case ScheduleResult(plan=None) | DeploymentResult(plan=None):
            noun = "schedule" if isinstance(thing, ScheduleResult) else "deployment"
            raise InputError([Problem(noun, f"there is none to draw: the result is {thing.status.value}")])
        case ScheduleResult(batch=None):
            message = "is not known, as the result comes from a file: plot(batch, result.schedule) draws it"
            raise InputError([Problem("batch", message)])
        case ScheduleResult():
            return plot(thing.batch, thing.plan, lower_bound=thing.lower_bound, **options)
        case DeploymentResult():
            return plot(thing.plan, demand=thing.demand, **options)
        case Schedule():
            return plot(*of, thing, **options)
        case Deployment():
            return plot(thing, **dict(zip(["demand"], of, strict=False)), **options)
    return plot(thing, *of, **options)
