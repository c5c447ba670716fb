"""Checks simulations that are to be drawn, draws them and writes the picture to a file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mig_opt.arguments import entries_of
from mig_opt.errors import InputError, Problem
from mig_opt.plotting.output import any_characters, check_plot_path, matplotlib_problems, save_figure
from mig_opt.simulation.simulator import Simulation
from mig_opt.texts import plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mig_opt.models.fleet.bounds import TraceBounds


def plot_simulation(
    simulations: Simulation | Sequence[Simulation], *, bounds: TraceBounds | None = None, title: str | None = None
) -> Figure:
    """Draw one simulation, or several of the same trace side by side.

    From top to bottom: what the fleet did, for up to four simulations; the fragmentation of all, with migrations
    marked; how long jobs waited; mean wait, mean time from arrival to end, and makespan beside their lower bounds.

    A fleet of up to 8 GPUs with up to 800 runs is drawn job by job over the memory slices; of others the share of the
    compute slices that was busy with each profile.

    Parameters
    ----------
    simulations : Simulation or sequence of Simulation
        What :func:`mig_opt.simulate` returned.
    bounds : TraceBounds, optional
        Lower bounds of the trace, if they are known already.
    title : str, optional
        By default the name of the trace, the fleet and the number of jobs.

    Returns
    -------
    matplotlib.figure.Figure
        The labels of the panels (``figure.axes``) are ``fleet 0``, ..., ``fragmentation``, ``migrations`` (where these
        are too many to mark each), ``waits``, ``mean wait``, ``mean time to end`` and ``makespan``. The group ids of
        the artists say what they are: ``run:<simulation>:<index in the log>``, ``label:...``, ``hop:...``,
        ``instance:...``, ``use:<simulation>:<profile>``, ``fragmentation:<simulation>``, ``migrations:<simulation>``,
        ``waits:<simulation>``, ``bar:<panel>:<simulation>``, ``lower-bound:<panel>``.

    Raises
    ------
    InputError
        If matplotlib is not installed, there is no simulation, or they are of different traces.

    Examples
    --------
    >>> from mig_opt import Job, Trace, get_gpu, plot_simulation, simulate
    >>> trace = Trace((Job("a", 0.0, {3: 10.0}, "3g.20gb"), Job("b", 1.0, {4: 5.0}, "4g.20gb")), get_gpu("A100"))
    >>> figure = plot_simulation([simulate(trace, "first-fit"), simulate(trace, "static", backfill=True)])
    >>> [axes.get_label() for axes in figure.axes][:4]
    ['fleet 0', 'fleet 1', 'fragmentation', 'waits']
    """
    from mig_opt.models.fleet.bounds import trace_bounds

    given = (simulations,) if isinstance(simulations, Simulation) else simulations
    problems = matplotlib_problems()
    found: tuple[Simulation, ...] = ()
    try:
        found = entries_of("simulations", given, Simulation, "what simulate() returned")
    except InputError as error:
        problems += error.problems
    else:
        problems += _problems(found)
    if problems:
        raise InputError(problems)
    from mig_opt.plotting.fleet.chart import SimulationChart

    known = trace_bounds(found[0].trace) if bounds is None else bounds
    with any_characters():
        return SimulationChart(found, known, _title(found[0]) if title is None else title).draw()


def save_simulation_plot(
    simulations: Simulation | Sequence[Simulation],
    path: str | os.PathLike[str],
    *,
    bounds: TraceBounds | None = None,
    title: str | None = None,
    dpi: float = 150,
) -> None:
    """Write the chart of :func:`plot_simulation` to a file, as :func:`save_plot` does for schedules.

    Parameters
    ----------
    simulations, bounds, title
        As for :func:`plot_simulation`.
    path : path-like
        The file; its suffix gives the format: png, pdf or svg.
    dpi : float
        Dots per inch of a png.

    Raises
    ------
    InputError
        As :func:`plot_simulation` and :func:`check_plot_path`, and if the file cannot be written.
    """
    check_plot_path(path)
    save_figure(plot_simulation(simulations, bounds=bounds, title=title), Path(path), dpi)


def _problems(simulations: Sequence[Simulation]) -> Iterator[Problem]:
    if not simulations:
        yield Problem("simulations", "needs at least one, is empty")
    for index, simulation in enumerate(simulations[1:], 1):
        if simulation.trace != simulations[0].trace:
            yield Problem(f"simulations[{index}]", "is of another trace than the first; draw each trace for itself")


def _title(simulation: Simulation) -> str:
    trace = simulation.trace
    fleet = f"{trace.gpus} x {trace.gpu.name}"
    return " · ".join(filter(None, [trace.name, fleet, plural(len(trace.jobs), "job")]))
