"""Charts of days: GPUs in use over time against the fewest that are possible, with the changes marked."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from mig_opt.errors import Problem
from mig_opt.rules import wrong_type
from mig_opt.serving.day import DayPlan, DayResult, clock_text
from mig_opt.texts import plural
from mig_opt.views.output import compose_page, draw_figure, save_chart
from mig_opt.views.page import Page, add_hover, add_steps, graph, legend_below
from mig_opt.views.sheet import Sheet
from mig_opt.views.texts import BOUND, GRID, INK, colour_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH, _HEIGHT, _LEFT, _RIGHT = 9.0, 3.2, 0.65, 0.25
_HOUR = 3600
_TICK_HOURS = (0.25, 0.5, 1, 2, 3, 6, 12, 24, 48, 96, 168)
_MOST_TICKS = 13
_LEAST_SIZE, _SIZE_PER_SEGMENT = 12.0, 8.0


def plot_day(result: DayResult, *, title: str | None = None) -> Figure:
    """Draw the GPUs in use over a day, the fewest that each step can do with, and the changes.

    A change is a dot where it begins, the larger the more segments it creates; one that interrupts a segment is drawn
    as a cross.

    Parameters
    ----------
    result : DayResult
        What :func:`mig_opt.deploy_day` returned, with a plan.
    title : str, optional
        By default GPU-hours, their lower bound, and changes.

    Returns
    -------
    matplotlib.figure.Figure
        The group ids of the parts are ``gpus``, ``bound``, ``changes`` and ``interruptions``.

    Raises
    ------
    InputError
        If matplotlib is not installed, or the result has no plan.

    Examples
    --------
    >>> from mig_opt import RateTable, deploy_day, load
    >>> demand = load("parvagpu-s1")
    >>> rows = {service.name: (service.rate, 3 * service.rate) for service in demand.services}
    >>> figure = plot_day(deploy_day(demand, RateTable((0, 3600, 7200), rows)))
    >>> figure.axes[0].get_ylabel()
    'GPUs'
    """
    return draw_figure(_problems(result), lambda: DayChart(result, title))


def _problems(result: DayResult) -> list[Problem]:
    right = isinstance(result, DayResult) and result.plan is not None
    return [] if right else [wrong_type("result", result, "what deploy_day(...) returns, with a plan")]


def save_day_plot(
    result: DayResult, path: str | os.PathLike[str], *, title: str | None = None, dpi: float = 150
) -> None:
    """Write the chart of :func:`plot_day` to a file, as :func:`save_plot` does for schedules.

    Parameters
    ----------
    result, title
        As for :func:`plot_day`.
    path : path-like
        The file; its suffix gives the format: png, pdf, svg or html.
    dpi : float
        Dots per inch of a png.

    Raises
    ------
    InputError
        As :func:`plot_day` and :func:`~mig_opt.views.check_plot_path`, and if the file cannot be written.
    """
    save_chart(lambda: plot_day(result, title=title), lambda: _day_page(result, title), path, dpi)


def _day_page(result: DayResult, title: str | None) -> Page:
    """Return the page to explore of a day: every change says what begins and ends."""
    return compose_page(_problems(result), lambda: _composed(result, title))


def _composed(result: DayResult, title: str | None) -> Page:
    from bokeh.models import ColumnDataSource, Range1d

    plan = result.plan
    assert plan is not None
    hours = [time / _HOUR for time in plan.times]
    most = max(*plan.gpus, *result.fewest_gpus, 1)
    room = Range1d(hours[0], hours[-1], bounds=(hours[0], hours[-1]))
    drawing = graph(380, x_range=room, y_range=Range1d(0, 1.12 * most))
    drawing.xaxis.axis_label, drawing.yaxis.axis_label = "hours", "GPUs"
    at, level = np.array(hours), np.array([*plan.gpus, plan.gpus[-1]], dtype=float)
    least = np.array([*result.fewest_gpus, result.fewest_gpus[-1]], dtype=float)
    add_steps(drawing, at, level, "in use", color=colour_of(0), line_width=3)
    add_steps(drawing, at, least, "at least (proven)", color=BOUND, line_dash="dashed")
    changes = [(step, plan.changes[step - 1]) for step in plan.changed]
    columns = {
        "x": [hours[step] for step, _ in changes],
        "y": [plan.gpus[step] for step, _ in changes],
        "time": [clock_text(plan.times[step]) for step, _ in changes],
        "begin": [sum(one.begins is not None for one in change.steps) for _, change in changes],
        "end": [sum(one.ends is not None for one in change.steps) for _, change in changes],
        "interrupted": [len(change.interrupted) for _, change in changes],
        "colour": [BOUND if change.interrupted else INK for _, change in changes],
    }
    if changes:
        source = ColumnDataSource(columns)
        dots = drawing.scatter("x", "y", source=source, size=9, color="colour", legend_label="change")
        names = {"time": "@time", "GPUs": "@y", "begin": "@begin", "end": "@end", "interrupted": "@interrupted"}
        add_hover(drawing, dots, names)
    legend_below(drawing)
    return Page(_usual_title(result, plan) if title is None else title, drawings=[drawing])


class DayChart(Sheet):
    """The chart of one day. Lengths are inches."""

    def __init__(self, result: DayResult, title: str | None) -> None:
        assert result.plan is not None
        self.result, self.plan = result, result.plan
        super().__init__(_usual_title(result, result.plan) if title is None else title)
        self.left, self.width, self.panel_width = _LEFT, _WIDTH, _WIDTH - _LEFT - _RIGHT
        self.panel: Axes = self.add_panel("day")
        self.place_panels(above=1, below=1)

    def draw(self) -> Figure:
        """Draw everything and return the figure."""
        from matplotlib.ticker import MaxNLocator

        axes, plan = self.panel, self.plan
        self.dress(axes)
        hours = [time / _HOUR for time in plan.times]
        axes.set_xlim(hours[0], hours[-1])
        most = max(*plan.gpus, *self.result.fewest_gpus, 1)
        axes.set_ylim(0, 1.12 * most)
        axes.grid(color=GRID, linewidth=0.6)
        axes.set_axisbelow(True)
        axes.set_ylabel("GPUs", color=INK, fontsize=9)
        axes.set_xlabel("time", color=INK, fontsize=9)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        ticks = _ticks(hours[0], hours[-1])
        axes.set_xticks(ticks, [clock_text(tick * _HOUR) for tick in ticks])
        signs: list[Any] = [axes.stairs(plan.gpus, hours, baseline=None, color=colour_of(0), linewidth=2.0, gid="gpus")]
        bound: dict[str, Any] = {"baseline": None, "color": BOUND, "linewidth": 1.2, "linestyle": (0, (4, 2))}
        signs.append(axes.stairs(self.result.fewest_gpus, hours, gid="bound", **bound))
        labels = ["in use", "at least (proven)"]
        for gid, label, marker, colour, steps in self._changes():
            if steps:
                created = [sum(one.begins is not None for one in plan.changes[step - 1].steps) for step in steps]
                sizes = [_LEAST_SIZE + _SIZE_PER_SEGMENT * number for number in created]
                style: dict[str, Any] = {"marker": marker, "color": colour, "zorder": 3, "clip_on": False, "gid": gid}
                at = [hours[step] for step in steps]
                signs.append(axes.scatter(at, [plan.gpus[step] for step in steps], s=sizes, **style))
                labels.append(label)
        legend = self.key(signs, labels)
        self.arrange([legend], above=0.12, axis=0.55)
        return self.figure

    def _changes(self) -> list[tuple[str, str, str, str, list[int]]]:
        """Return the two kinds of changes with their group id, label, marker, colour and steps."""
        changed = self.plan.changed
        broken = [step for step in changed if self.plan.changes[step - 1].interrupted]
        clean = [step for step in changed if step not in set(broken)]
        return [
            ("changes", "change; larger: more new segments", "o", INK, clean),
            ("interruptions", "change that interrupts a segment", "X", BOUND, broken),
        ]

    def place_panels(self, above: float, below: float) -> None:
        """Give the panel its place, and the figure its height."""
        self.figure.set_size_inches(self.width, above + _HEIGHT + below)
        self.place(self.panel, self.left, below, self.panel_width, _HEIGHT)


def _usual_title(result: DayResult, plan: DayPlan) -> str:
    changes = plural(len(plan.changed), "change")
    return (
        f"{plan.gpu_hours:.6g} GPU-hours, at least {result.gpu_hours_bound:.6g}; {changes}, {plan.created} new segments"
    )


def _ticks(begin: float, end: float) -> list[float]:
    """Return full hours, or parts of them, of which there are not too many."""
    step = next((step for step in _TICK_HOURS if (end - begin) / step < _MOST_TICKS), (end - begin) / _MOST_TICKS)
    first = -int(-begin // step)
    return [number * step for number in range(first, int(end // step) + 1)]
