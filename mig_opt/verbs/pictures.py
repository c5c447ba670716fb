"""Pictures of whatever there is to see, as figures of matplotlib or as files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, overload

from mig_opt.errors import InputError, Problem
from mig_opt.method.registry import imported

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

PICTURES = {
    ("Batch", 0): ("plot_batch", ""),
    ("Batch", 1): ("plot_schedule", "save_plot"),
    ("Batch", 2): ("plot_execution", "save_execution_plot"),
    ("Deployment", 0): ("plot_deployment", "save_deployment_plot"),
    ("DayResult", 0): ("plot_day", "save_day_plot"),
    ("RequestSimulation", 0): ("plot_latencies", "save_latency_plot"),
    ("Simulation", 0): ("plot_simulation", "save_simulation_plot"),
}
"""For a class and a number of schedules: what draws it, and what saves it."""


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
def plot(batch: Batch, plan: Schedule, measured: Schedule, /, *, to: Path, dpi: float = 150) -> None: ...
@overload
def plot(content: Batch | DayResult, /, *, title: str | None = None) -> Figure: ...
@overload
def plot(content: DayResult, /, *, to: Path, title: str | None = None, dpi: float = 150) -> None: ...
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
        ``title``, and ``dpi`` of a png; ``lower_bound`` of a schedule, ``demand`` of a deployment, ``promise`` of
        latencies, ``bounds`` of simulations: as for :func:`mig_opt.views.plot_batch`,
        :func:`mig_opt.views.plot_schedule`, :func:`mig_opt.views.plot_execution`,
        :func:`mig_opt.views.plot_deployment`, :func:`mig_opt.views.plot_day`, :func:`mig_opt.views.plot_latencies` and
        :func:`mig_opt.views.plot_simulation`.

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
    first = content[0] if isinstance(content, list | tuple) and content else content
    bases = [base.__name__ for base in type(first).__mro__ if base.__module__.startswith("mig_opt.")]
    drawn, saved = next((PICTURES[name, len(more)] for name in bases if (name, len(more)) in PICTURES), ("", ""))
    if not drawn:
        known = ", ".join(dict.fromkeys(name for name, _ in PICTURES))
        given = " with ".join([type(first).__name__, *(type(other).__name__ for other in more)])
        raise InputError([Problem("content", f"there is no picture of {given:.60}; there are some of {known}")])
    if to is None:
        return imported(f"mig_opt.views:{drawn}")(content, *more, **options)
    if not saved:
        raise InputError([Problem("to", "a batch alone is drawn as a figure only; call its savefig")])
    return imported(f"mig_opt.views:{saved}")(content, *more, to, **options)
