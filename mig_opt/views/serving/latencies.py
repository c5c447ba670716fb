"""Charts of simulated requests: the share of each service's requests that takes longer than any time."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from mig_opt.rules import wrong_type
from mig_opt.simulation.serving.outcome import RequestSimulation
from mig_opt.views.output import draw_figure, save_chart
from mig_opt.views.serving.layout import FARTHEST, LEAST_SHARE, latency_lines, latency_title
from mig_opt.views.serving.pages import latency_page
from mig_opt.views.sheet import Sheet
from mig_opt.views.texts import BOUND, GRID, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH, _HEIGHT, _LEFT, _RIGHT = 9.0, 3.6, 0.75, 0.25


def plot_latencies(simulation: RequestSimulation, *, promise: float | None = None, title: str | None = None) -> Figure:
    """Draw how many requests of each service take longer than any share of its SLO.

    Each service has a falling line; at 1, the SLO, it shows the share of late requests. Of more than 20 services those
    with most late requests are drawn.

    Parameters
    ----------
    simulation : RequestSimulation
        What :func:`mig_opt.simulate_requests` returned.
    promise : float, optional
        Share of the requests that should be in time: a horizontal line at the rest.
    title : str, optional
        By default arrivals, requests and the late share.

    Returns
    -------
    matplotlib.figure.Figure
        The group ids of the lines are ``service:<index>``, ``slo`` and ``promise``.

    Raises
    ------
    InputError
        If matplotlib is not installed, or this is no simulation of requests.

    Examples
    --------
    >>> from mig_opt import deploy, load, simulate_requests
    >>> demand = load("parvagpu-s1")
    >>> figure = plot_latencies(simulate_requests(demand, deploy(demand).deployment, seconds=1))
    >>> figure.axes[0].get_xlabel()
    'latency as a multiple of the SLO'
    """
    right = isinstance(simulation, RequestSimulation)
    problems = [] if right else [wrong_type("simulation", simulation, "what simulate_requests(...) returns")]
    return draw_figure(problems, lambda: LatencyChart(simulation, promise, title))


def save_latency_plot(
    simulation: RequestSimulation,
    path: str | os.PathLike[str],
    *,
    promise: float | None = None,
    title: str | None = None,
    dpi: float = 150,
) -> None:
    """Write the chart of :func:`plot_latencies` to a file, as :func:`save_plot` does for schedules.

    Parameters
    ----------
    simulation, promise, title
        As for :func:`plot_latencies`.
    path : path-like
        The file; its suffix gives the format: png, pdf, svg or html.
    dpi : float
        Dots per inch of a png.

    Raises
    ------
    InputError
        As :func:`plot_latencies` and :func:`~mig_opt.views.check_plot_path`, and if the file cannot be written.
    """
    save_chart(
        lambda: plot_latencies(simulation, promise=promise, title=title),
        lambda: latency_page(simulation, promise, title),
        path,
        dpi,
    )


class LatencyChart(Sheet):
    """The chart of one simulation. Lengths are inches."""

    def __init__(self, simulation: RequestSimulation, promise: float | None, title: str | None) -> None:
        super().__init__(latency_title(simulation, title))
        self.simulation, self.promise = simulation, promise
        self.left, self.width, self.panel_width = _LEFT, _WIDTH, _WIDTH - _LEFT - _RIGHT
        self.panel: Axes = self.add_panel("latencies")
        self.place_panels(above=1, below=1)

    def draw(self) -> Figure:
        """Draw everything and return the figure."""
        axes = self.panel
        self.dress(axes)
        axes.set_yscale("log")
        axes.set_xlim(0, FARTHEST)
        axes.set_ylim(LEAST_SHARE, 100)
        axes.grid(color=GRID, linewidth=0.6)
        axes.set_axisbelow(True)
        axes.set_xlabel("latency as a multiple of the SLO", color=INK, fontsize=9)
        axes.set_ylabel("% of requests that take longer", color=INK, fontsize=9)
        axes.yaxis.set_major_formatter("{x:g}")
        axes.axvline(1.0, color=BOUND, linewidth=1.2, gid="slo")
        if self.promise is not None:
            axes.axhline(100 * (1 - self.promise), color=BOUND, linewidth=1.0, linestyle=(0, (4, 2)), gid="promise")
        found, drawn = latency_lines(self.simulation), []
        for line in found:
            style: dict[str, Any] = {"color": line.colour, "linewidth": 1.6, "gid": f"service:{line.number}"}
            drawn += axes.plot(*line.steps(), drawstyle="steps-post", **style)
        self.arrange([self.key(drawn, [line.label for line in found])], above=0.12, axis=0.55)
        return self.figure

    def place_panels(self, above: float, below: float) -> None:
        """Give the panel its place, and the figure its height."""
        self.figure.set_size_inches(self.width, above + _HEIGHT + below)
        self.place(self.panel, self.left, below, self.panel_width, _HEIGHT)
