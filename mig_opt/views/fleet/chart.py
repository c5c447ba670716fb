"""Charts of simulations: fleets and fragmentation over time, waits, and the policies side by side."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mig_opt.fleet.admission import Acceptance
from mig_opt.simulation.fleet.simulator import Simulation
from mig_opt.views.fleet.layout import MOST_FLEETS, SimulationLayout, checked
from mig_opt.views.fleet.pages import simulation_page
from mig_opt.views.fleet.series import StepFunction, acceptance_steps, fragmentation_steps, wait_steps
from mig_opt.views.fleet.timeline import FleetPanel, detailed, job_key
from mig_opt.views.output import draw_figure, save_chart
from mig_opt.views.sheet import SMALL_FONT, Sheet, plain_numbers
from mig_opt.views.texts import BOUND, GRID, INK, spell_seconds, wrap_name

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from mig_opt.fleet.bounds import TraceBounds

_MOST_DOTS = 150
"""Migrations up to which each is marked on its line."""
_RIGHT, _WIDTH = 0.3, 10.0
_HEADING, _AXIS, _BAR = 0.31, 0.48, 0.27  # inches of a heading, of an axis with its label, and of a bar
_LINES, _COUNTS = 1.35, 0.6  # inches of a panel with lines, and of one with counts
_SHORT = 20  # characters of a name on one line
_LINE = 1.4  # points of a line
_COUNT_BINS = 60
_FAR_APART = 20
"""Ratio of the longest waits of two policies from which on the scale is logarithmic."""


def plot_simulation(
    simulations: Simulation | Sequence[Simulation],
    *,
    bounds: TraceBounds | Acceptance | None = None,
    title: str | None = None,
) -> Figure:
    """Draw one simulation, or several of the same trace side by side.

    From top to bottom: the jobs of the fleet over time, for up to four simulations; the fragmentation of all, with
    migrations marked; how long jobs waited; mean wait, mean flow time (arrival to completion), and makespan
    beside their lower bounds. Of simulations that turned jobs away (``reject``) the lower part shows in place of waits
    and times the share of the jobs that was accepted over time, and acceptance ratios beside their upper bounds.

    A fleet of up to 8 GPUs with up to 800 runs is drawn job by job over the memory slices; of others the share of the
    compute slices that was busy with each profile.

    Parameters
    ----------
    simulations : Simulation or sequence of Simulation
        What :func:`mig_opt.simulate` returned.
    bounds : TraceBounds or Acceptance, optional
        Lower bounds of the trace, if they are known already; upper bounds on acceptance ratios where jobs were turned
        away (:func:`mig_opt.bounds`).
    title : str, optional
        By default the name of the trace, the fleet and the number of jobs.

    Returns
    -------
    matplotlib.figure.Figure
        The labels of the panels (``figure.axes``) are ``fleet 0``, ..., ``fragmentation``, ``migrations`` (where these
        are too many to mark each), ``waits``, ``mean wait``, ``mean flow time`` and ``makespan``; without a queue
        ``acceptance``, ``accepted jobs``, ``accepted slices`` and ``accepted slice-seconds``. The group ids of
        the artists say what they are: ``run:<simulation>:<index in the log>``, ``label:...``, ``hop:...``,
        ``instance:...``, ``use:<simulation>:<profile>``, ``fragmentation:<simulation>``, ``migrations:<simulation>``,
        ``waits:<simulation>``, ``bar:<panel>:<simulation>``, ``lower-bound:<panel>``,
        ``upper-bound:<panel>``, ``acceptance:<simulation>``.

    Raises
    ------
    InputError
        If matplotlib is not installed, there is no simulation, they are of different traces, or some turned jobs away
        and others let them wait.

    Examples
    --------
    >>> from mig_opt import Job, Trace, get_gpu, simulate
    >>> trace = Trace((Job("a", 0.0, {3: 10.0}, "3g.20gb"), Job("b", 1.0, {4: 5.0}, "4g.20gb")), get_gpu("A100"))
    >>> figure = plot_simulation([simulate(trace, "first-fit"), simulate(trace, "static", backfill=True)])
    >>> [axes.get_label() for axes in figure.axes][:4]
    ['fleet 0', 'fleet 1', 'fragmentation', 'waits']
    """
    found, problems = checked(simulations)
    return draw_figure(problems, lambda: SimulationChart(SimulationLayout(found, bounds, title)))


def save_simulation_plot(
    simulations: Simulation | Sequence[Simulation],
    path: str | os.PathLike[str],
    *,
    bounds: TraceBounds | Acceptance | None = None,
    title: str | None = None,
    dpi: float = 150,
) -> None:
    """Write the chart of :func:`plot_simulation` to a file, as :func:`save_plot` does for schedules.

    Parameters
    ----------
    simulations, bounds, title
        As for :func:`plot_simulation`.
    path : path-like
        The file; its suffix gives the format: png, pdf, svg or html.
    dpi : float
        Dots per inch of a png.

    Raises
    ------
    InputError
        As :func:`plot_simulation` and :func:`~mig_opt.views.check_plot_path`, and if the file cannot be written.
    """
    save_chart(
        lambda: plot_simulation(simulations, bounds=bounds, title=title),
        lambda: simulation_page(simulations, bounds, title),
        path,
        dpi,
    )


class SimulationChart(Sheet):
    """The chart of some simulations. Lengths are inches unless a name says otherwise.

    From top to bottom: the fleets of the first policies, fragmentation with migrations, waits, and bars.
    """

    def __init__(self, layout: SimulationLayout) -> None:
        super().__init__(layout.title)
        self.layout, self.simulations = layout, layout.simulations
        self.names, self.end, self.moves, logs = layout.names, layout.end, layout.moves, layout.logs
        self.styles: list[dict[str, Any]] = [
            {"color": layout.colour(index), "linestyle": _linestyle(layout.dashes(index)), "linewidth": _LINE}
            for index in range(len(logs))
        ]
        self.dots = sum(map(len, self.moves)) <= _MOST_DOTS
        self.wrapped = [wrap_name(name, 1 if len(name) <= _SHORT else 2) for name in self.names]
        widest = max(self.size(name, 8)[0] for name in self.wrapped)
        self.left = max(0.95, widest / 72 + 0.2)
        self.panel_width = _WIDTH
        self.width = self.left + _WIDTH + _RIGHT
        in_detail = all(detailed(log) for log in logs[:MOST_FLEETS])
        self.fleets = [
            FleetPanel(self, f"fleet {index}", log, index, self.end, in_detail=in_detail, alone=len(logs) == 1)
            for index, log in enumerate(logs[:MOST_FLEETS])
        ]
        self.fragmentation = self.add_panel("fragmentation")
        self.counts = None if self.dots else self.add_panel("migrations")
        self.comparisons = tuple(layout.comparisons())
        self.lines = self.add_panel("acceptance" if layout.reject else "waits")
        self.bars = [self.add_panel(figure.name) for figure in self.comparisons]
        self.place_panels(above=1, below=1)

    def draw(self) -> Figure:
        """Draw everything and return the figure."""
        from matplotlib.lines import Line2D

        signs: dict[str, Artist] = {}
        for index, fleet in enumerate(self.fleets):
            self.dress(fleet.axes)
            self.time_axis(fleet.axes, last=False)
            fleet.draw(signs)
            self.heading(fleet.axes, self.layout.summary(index))
        self.draw_fragmentation(signs)
        (self.draw_acceptance if self.layout.reject else self.draw_waits)()
        self.draw_bars(signs)
        legends = [self.key([Line2D([], [], **style) for style in self.styles], self.names)]
        if signs:
            legends.append(self.key(list(signs.values()), list(signs)))
        jobs = job_key(self.fleets)
        if jobs is not None:
            legends.append(self.key(*jobs))
        self.arrange(legends, above=0.1, axis=0.12)
        return self.figure

    def place_panels(self, above: float, below: float) -> None:
        """Give the panels their places from top to bottom, and the figure its height."""
        lines: list[tuple[Axes, float, float]] = [(fleet.axes, _HEADING, fleet.height) for fleet in self.fleets]
        lines.append((self.fragmentation, _HEADING, _LINES))
        if self.counts is not None:
            lines.append((self.counts, _HEADING, _COUNTS))
        lines.append((self.lines, _AXIS + _HEADING, _LINES))
        bars = max(0.5, _BAR * len(self.simulations) * (1.25 if any("\n" in name for name in self.wrapped) else 1))
        height = above + sum(gap + tall for _, gap, tall in lines) + _AXIS + _HEADING + bars + _AXIS + below
        self.figure.set_size_inches(self.width, height)
        top = height - above
        for axes, gap, tall in lines:
            top -= gap + tall
            self.place(axes, self.left, top, self.panel_width, tall)
        top -= _AXIS + _HEADING + bars
        between = 0.25
        each = (self.panel_width - 2 * between) / 3
        for index, axes in enumerate(self.bars):
            self.place(axes, self.left + index * (each + between), top, each, bars)

    def heading(self, axes: Axes, wording: str) -> None:
        """Write a heading above a panel."""
        axes.annotate(
            wording, (0, 1), (0, 4), xycoords="axes fraction", textcoords="offset points", ha="left", va="bottom",
            fontsize=8.5, fontweight="bold", color=INK, parse_math=False, annotation_clip=False,
            gid=f"heading:{axes.get_label()}",
        )  # fmt: skip

    def dress_graph(self, axes: Axes, heading: str, unit: str) -> None:
        """Dress a panel with lines or bars."""
        self.dress(axes)
        if heading:
            self.heading(axes, heading)
        axes.grid(visible=True, axis="y", color=GRID, linewidth=0.6)
        axes.set_axisbelow(True)
        axes.set_ylabel(unit, color=INK, fontsize=8)

    def time_axis(self, axes: Axes, *, last: bool) -> None:
        """Let a panel have the seconds of the simulations from left to right."""
        axes.set_xlim(0, 1.005 * self.end)
        _plain_seconds(axes, self.end)
        axes.tick_params(axis="x", labelbottom=last)
        if last:
            axes.set_xlabel("time in seconds", color=INK, fontsize=9)

    def steps(self, axes: Axes, steps: StepFunction, until: float, index: int, gid: str) -> None:
        """Draw something that changes in steps, as the line of a policy."""
        moments, levels = np.append(steps.moments, until), np.append(steps.levels, steps.levels[-1])
        axes.plot(moments, levels, drawstyle="steps-post", gid=f"{gid}:{index}", **self.styles[index])

    def draw_fragmentation(self, signs: dict[str, Artist]) -> None:
        """Draw the fragmentation of each policy, and when jobs migrated."""
        axes = self.fragmentation
        self.dress_graph(axes, "Fragmentation, mean of the GPUs", "%")
        highest = 0.0
        for index, simulation in enumerate(self.simulations):
            steps = fragmentation_steps(simulation.log).thinned(self.end)
            highest = max(highest, float(steps.levels.max()))
            self.steps(axes, steps, max(simulation.metrics.makespan, steps.moments[-1]), index, "fragmentation")
            if self.dots and len(self.moves[index]):
                dots = axes.plot(
                    self.moves[index], steps.at(self.moves[index]), linestyle="none", marker="o", markersize=4.5,
                    markerfacecolor="white", markeredgecolor=self.styles[index]["color"], gid=f"migrations:{index}",
                    clip_on=False, zorder=4,
                )  # fmt: skip
                signs["migration (fragmentation after it)"] = dots[0]
        axes.set_ylim(0, 1.12 * highest or 1.0)
        self.time_axis(axes, last=self.counts is None)
        if self.counts is not None:
            self.draw_counts(self.counts)

    def draw_counts(self, axes: Axes) -> None:
        """Draw how many jobs migrated when, where these are too many to mark each."""
        unit = 10.0 ** np.floor(np.log10(self.end / _COUNT_BINS))
        width = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor * _COUNT_BINS >= self.end)
        edges = np.arange(0.0, self.end + width, width)
        self.dress_graph(axes, f"Migrations in each {spell_seconds(width)}", "")
        for index, moves in enumerate(self.moves):
            counts, _ = np.histogram(moves, edges)
            if counts.any():
                self.steps(axes, StepFunction(edges[:-1], counts), self.end, index, "migrations")
        axes.set_ylim(bottom=0)
        axes.locator_params(axis="y", nbins=3, integer=True)
        self.time_axis(axes, last=True)

    def draw_acceptance(self) -> None:
        """Draw which share of the jobs that had arrived was accepted."""
        axes = self.lines
        self.dress_graph(axes, "Acceptance: share of the jobs so far that were accepted", "%")
        for index, log in enumerate(self.layout.logs):
            steps = acceptance_steps(log)
            self.steps(axes, steps, max(steps.moments[-1], self.end), index, "acceptance")
        axes.set_ylim(0, 104)
        axes.set_yticks([0, 25, 50, 75, 100])
        self.time_axis(axes, last=True)

    def draw_waits(self) -> None:
        """Draw which share of the jobs waited at most how long."""
        axes = self.lines
        self.dress_graph(axes, "Waits: share of all jobs that had a place after so many seconds", "%")
        found = [wait_steps(simulation.log) for simulation in self.simulations]
        most = max(float(steps.moments[-1]) for steps in found)
        until = 1.02 * most or 1.0
        for index, steps in enumerate(found):
            self.steps(axes, steps, until, index, "waits")
        shortest = min((float(steps.moments[-1]) for steps in found if steps.moments[-1] > 0), default=0.0)
        if most > _FAR_APART * shortest > 0:
            axes.set_xscale("symlog", linthresh=shortest / 2)
            axes.minorticks_off()
        axes.set_xlim(0, until)
        axes.set_ylim(0, 104)
        axes.set_yticks([0, 25, 50, 75, 100])
        if axes.get_xscale() == "linear":
            _plain_seconds(axes, until)
        else:
            axes.xaxis.set_major_formatter("{x:.6g}")
        remark = ""
        if not most:
            started = all(steps.levels[-1] == 100 for steps in found)
            remark = " (no job waits)" if started else " (none of those that started waited)"
        axes.set_xlabel(f"seconds from the arrival to the start{remark}", color=INK, fontsize=9)

    def draw_bars(self, signs: dict[str, Artist]) -> None:
        """Draw the policies side by side, with what no policy falls below, or exceeds."""
        for number, (axes, figure) in enumerate(zip(self.bars, self.comparisons, strict=True)):
            self.dress_graph(axes, figure.heading, "")
            axes.grid(visible=False)
            for index, (value, wording) in enumerate(zip(figure.values, figure.wordings, strict=True)):
                style = {"color": self.styles[index]["color"], "alpha": 1.0 if self.layout.complete(index) else 0.35}
                axes.barh(index, value, 0.7, gid=f"bar:{number}:{index}", zorder=2, **style)
                axes.annotate(
                    wording, (value, index), (4, 0), textcoords="offset points", va="center", fontsize=SMALL_FONT,
                    color=INK, gid=f"value:{number}:{index}", zorder=5,
                    bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
                )  # fmt: skip
            if figure.bound is not None:
                gid = f"{'upper' if self.layout.reject else 'lower'}-bound:{number}"
                signs[figure.sign] = axes.axvline(
                    figure.bound, color=BOUND, linestyle="--", linewidth=1.2, gid=gid, zorder=4
                )
            # Beside a bar of seconds there is more to say.
            axes.set_xlim(0, (1.3 if self.layout.reject else 1.75) * figure.most)
            axes.set_ylim(len(figure.values) - 0.4, -0.6)
            axes.set_yticks(range(len(self.names)), self.wrapped if number == 0 else [""] * len(self.names))
            for label in axes.get_yticklabels():
                label.set_parse_math(False)
            axes.tick_params(axis="y", length=0)
            axes.locator_params(axis="x", nbins=5)
            _plain_seconds(axes, figure.most)
            axes.set_xlabel(figure.unit, color=INK, fontsize=9)


def _plain_seconds(axes: Axes, most: float) -> None:
    """Let the ticks below a panel be readable numbers of seconds, none of them beyond the panel."""
    axes.set_xticks([tick for tick in axes.get_xticks() if 0 <= tick <= axes.get_xlim()[1]])
    plain_numbers(axes, most)


def _linestyle(dashes: tuple[float, ...]) -> Any:
    """Return dashes, whose lengths are points, as matplotlib takes them: in widths of the line."""
    return (0, tuple(length / _LINE for length in dashes)) if dashes else "-"
