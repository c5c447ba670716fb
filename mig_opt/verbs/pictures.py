"""Pictures of whatever there is to see, as figures of matplotlib or as files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from mig_opt.batch.batch import Batch
    from mig_opt.batch.schedule import Schedule
    from mig_opt.fleet.admission import Acceptance
    from mig_opt.fleet.bounds import TraceBounds
    from mig_opt.serving.day import DayResult
    from mig_opt.serving.demand import Demand
    from mig_opt.serving.deployment import Deployment
    from mig_opt.simulation import Simulation
    from mig_opt.simulation.serving.outcome import RequestSimulation

    Path = str | os.PathLike[str]


@overload
def plot(
    batch: Batch, schedule: Schedule, /, *, lower_bound: float | None = None, title: str | None = None
) -> Figure: ...
@overload
def plot(
    batch: Batch,
    schedule: Schedule,
    /,
    *,
    to: Path,
    lower_bound: float | None = None,
    title: str | None = None,
    dpi: float = 150,
) -> None: ...
@overload
def plot(batch: Batch, plan: Schedule, measured: Schedule, /, *, title: str | None = None) -> Figure: ...
@overload
def plot(
    batch: Batch, plan: Schedule, measured: Schedule, /, *, to: Path, title: str | None = None, dpi: float = 150
) -> None: ...
@overload
def plot(content: Batch | DayResult, /, *, title: str | None = None) -> Figure: ...
@overload
def plot(content: Batch | DayResult, /, *, to: Path, title: str | None = None, dpi: float = 150) -> None: ...
@overload
def plot(deployment: Deployment, /, *, demand: Demand | None = None, title: str | None = None) -> Figure: ...
@overload
def plot(
    deployment: Deployment, /, *, to: Path, demand: Demand | None = None, title: str | None = None, dpi: float = 150
) -> None: ...
@overload
def plot(requests: RequestSimulation, /, *, promise: float | None = None, title: str | None = None) -> Figure: ...
@overload
def plot(
    requests: RequestSimulation,
    /,
    *,
    to: Path,
    promise: float | None = None,
    title: str | None = None,
    dpi: float = 150,
) -> None: ...
@overload
def plot(
    simulations: Simulation | Sequence[Simulation],
    /,
    *,
    bounds: TraceBounds | Acceptance | None = None,
    title: str | None = None,
) -> Figure: ...
@overload
def plot(
    simulations: Simulation | Sequence[Simulation],
    /,
    *,
    to: Path,
    bounds: TraceBounds | Acceptance | None = None,
    title: str | None = None,
    dpi: float = 150,
) -> None: ...
def plot(content: Any, /, *more: Any, to: Path | None = None, **options: Any) -> Any:
    """Draw a batch, a schedule, an execution, a deployment, a day, latencies, or simulations.

    Parameters
    ----------
    content : Batch, Deployment, DayResult, RequestSimulation, Simulation or sequence of Simulation
        What to draw.
    *more : Schedule
        With a batch: its schedule, or the plan of an execution and what was measured.
    to : path-like, optional
        The file to write; its suffix gives the format: png, pdf, svg, or html for a page to explore.
    **options
        ``title`` in place of the usual one, and ``dpi`` of a png; ``lower_bound`` of a schedule, ``demand`` of a
        deployment, ``promise`` of latencies, ``bounds`` of simulations: as for :func:`mig_opt.views.batch_scene`,
        :func:`mig_opt.views.schedule_scene`, :func:`mig_opt.views.execution_scene`,
        :func:`mig_opt.views.deployment_scene`, :func:`mig_opt.views.day_scene`, :func:`mig_opt.views.latency_scene`
        and :func:`mig_opt.views.simulation_scene`.

    Returns
    -------
    matplotlib.figure.Figure or None
        The figure, or None if a file was written.

    Raises
    ------
    InputError
        If there is nothing to draw, what draws it (matplotlib, or bokeh for html) is not installed, or the file cannot
        be written.

    Examples
    --------
    >>> from mig_opt import load, solve
    >>> batch = load("rodinia-a30")
    >>> figure = plot(batch, solve(batch, "far").schedule)
    >>> figure.axes[0].get_xlabel()
    'time in seconds'
    """
    from mig_opt.views import plot

    return plot(content, *more, to=to, **options)
