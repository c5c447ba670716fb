"""Charts of deployments: a row for each GPU, or for several that have the same segments."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mig_opt.serving.demand import Demand
from mig_opt.serving.deployment import Deployment, Segment, check_deployments
from mig_opt.views.output import draw_figure, save_chart
from mig_opt.views.serving.layout import (
    EMPTY,
    LINES,
    LOST_SIGN,
    UNUSED,
    UNUSED_SIGN,
    DeploymentLayout,
    Row,
    deployment_problems,
)
from mig_opt.views.serving.pages import deployment_page
from mig_opt.views.sheet import SMALL_FONT, Sheet, add_rectangle, sign
from mig_opt.views.texts import INK, contrast, elide, one_line, wrap_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

_HATCH = "/////"
_MOST_ROWS, _MOST_COLUMNS = 40, 5
_FONTS = (9.0, 8.0, 7.0, 6.5, 6.0, 5.5, 5.0)
_PADDING = 2.0  # points between a text and the edge of its segment
_ROW_GAP = 0.16  # of the height of a row
_LABEL_GAP = 0.08
_RIGHT, _BETWEEN = 0.25, 0.3  # inches beside the panels, and between them


def plot_deployment(deployment: Deployment, demand: Demand | None = None, *, title: str | None = None) -> Figure:
    """Draw a deployment: each GPU is a row of memory slices, in which segments have the colours of their services.

    A segment shows as much as fits of its service, its profile, and its batch size x processes; at least the number of
    the service, which the legend explains. Compute slices in no segment are hatched in grey, those that an instance
    takes without being able to use them (a 3g at slice 0 of an A100) in the colour of its service. Of more than 16 GPUs
    those with the same segments share a row. The deployment need not be valid.

    Parameters
    ----------
    deployment : Deployment
        What to draw.
    demand : Demand, optional
        The demand that it is for: the legend then has the rates of the services beside the throughputs.
    title : str, optional
        By default the name of the demand, the number of GPUs and their kinds, compute slices and fragmentation.

    Returns
    -------
    matplotlib.figure.Figure
        The group ids of the artists say what they are: ``segment:<index>`` (in the deployment), ``label:<index>``,
        ``lost:<index>``, ``gpu:<first of the row>``, ``row:<...>`` and ``empty:<...>`` and ``unused:<...>:<slice>``.

    Raises
    ------
    InputError
        If matplotlib is not installed, or a segment names a GPU or profile that is not there.

    Examples
    --------
    >>> from mig_opt.serving.deployment import Deployment, Segment
    >>> segment = Segment("chat", 0, "3g.40gb", 4, batch=8, processes=2, throughput=410.0, latency=0.04)
    >>> figure = plot_deployment(Deployment(("A100-80GB",), (segment,)))
    >>> figure.axes[0].get_xlabel()
    'memory slice (slice 7 has no compute)'
    """
    check_deployments(deployment=deployment)
    return draw_figure(
        deployment_problems(deployment), lambda: DeploymentChart(DeploymentLayout(deployment, demand, title))
    )


def save_deployment_plot(
    deployment: Deployment,
    path: str | os.PathLike[str],
    *,
    demand: Demand | None = None,
    title: str | None = None,
    dpi: float = 150,
) -> None:
    """Write the chart of :func:`plot_deployment` to a file, as :func:`save_plot` does for schedules.

    Parameters
    ----------
    deployment, demand, title
        As for :func:`plot_deployment`.
    path : path-like
        The file; its suffix gives the format: png, pdf, svg or html.
    dpi : float
        Dots per inch of a png.

    Raises
    ------
    InputError
        As :func:`plot_deployment` and :func:`~mig_opt.views.check_plot_path`, and if the file cannot be written.
    """
    save_chart(
        lambda: plot_deployment(deployment, demand, title=title),
        lambda: deployment_page(deployment, demand, title),
        path,
        dpi,
    )


@dataclass(frozen=True, slots=True)
class _Strip:
    """The place of a row: its column, its position from the top, and the points that a slice has there."""

    axes: Axes
    position: int
    unit: float

    def box(self, slices: range, gid: str, **style: Any) -> Patch:
        """Draw a rectangle over some slices."""
        corner = slices.start * self.unit, self.position + _ROW_GAP / 2
        return add_rectangle(self.axes, corner, len(slices) * self.unit, 1 - _ROW_GAP, gid=gid, **style)

    def text(self, slices: range, wording: str, gid: str, **style: Any) -> None:
        """Write into the middle of some slices."""
        x = (slices.start + len(slices) / 2) * self.unit
        middle: dict[str, Any] = {"ha": "center", "va": "center", "multialignment": "center", "linespacing": 1.05}
        self.axes.text(x, self.position + 0.5, wording, gid=gid, parse_math=False, zorder=8, **middle, **style)


class DeploymentChart(Sheet):
    """The chart of one deployment. Lengths are inches unless a name says otherwise."""

    def __init__(self, layout: DeploymentLayout) -> None:
        super().__init__(layout.title)
        self.layout, self.numbers, self.colours = layout, layout.numbers, layout.colours
        rows = layout.rows
        self.shown = rows
        if len(rows) > _MOST_ROWS * _MOST_COLUMNS:
            often = sorted(rows, key=lambda row: (-len(row.gpus), row.gpus))[: _MOST_ROWS * _MOST_COLUMNS]
            self.shown = sorted(often, key=lambda row: row.gpus)
        self.hidden = sum(len(row.gpus) for row in rows) - sum(len(row.gpus) for row in self.shown)

        columns = max(1, math.ceil(len(self.shown) / _MOST_ROWS))
        self.per_column = max(1, math.ceil(len(self.shown) / columns))
        self.row = 0.5 if len(self.shown) <= 12 else 0.36 if columns == 1 else 0.3
        self.column_width = 8.75 if columns == 1 else 5.6
        self.kinds = len({row.model.name for row in self.shown}) > 1
        self.wordings: dict[object, tuple[str, float] | None] = {}
        self.labels = [layout.row_label(row, kind=self.kinds) for row in self.shown]
        label = max((self.size(text, SMALL_FONT + 1)[0] for text in self.labels), default=0.0) / 72 + _LABEL_GAP
        self.left = max(0.3, label + 0.15)
        self.step = self.column_width + label + _BETWEEN
        self.panel_width = self.step * (columns - 1) + self.column_width
        self.width = self.left + self.panel_width + _RIGHT
        self.panels: list[Axes] = [self.add_panel(f"rows {number}") for number in range(columns)]
        self.place_panels(above=1, below=1)

    def draw(self) -> Figure:
        """Draw everything and return the figure."""
        signs: dict[str, Patch] = {}
        for number, axes in enumerate(self.panels):
            begin = number * self.per_column
            self.dress_panel(axes, self.shown[begin : begin + self.per_column])
            for position, row in enumerate(self.shown[begin : begin + self.per_column]):
                axes.text(
                    -72 * _LABEL_GAP, position + 0.5, self.labels[begin + position], gid=f"row:{row.gpus[0]}",
                    ha="right", va="center", fontsize=SMALL_FONT + 1, color=INK, parse_math=False, linespacing=1.05,
                )  # fmt: skip
                self.draw_row(axes, position, row, signs)
        if self.hidden:
            signs[f"{self.hidden} more GPUs are not drawn"] = sign("none")
        legends = [self.key(*self.service_key())] if self.numbers else []
        if signs:
            wordings = sorted(signs, key=[UNUSED_SIGN, LOST_SIGN, *signs].index)
            legends.insert(0, self.legend([signs[wording] for wording in wordings], wordings, columns=len(signs)))
        axis = 0.5 if any(axes.get_xlabel() for axes in self.panels) else 0.15
        self.arrange(legends, above=0.12, axis=axis)
        return self.figure

    def place_panels(self, above: float, below: float) -> None:
        """Give the columns of rows their places, and the figure its height, with room above and below them."""
        tall = self.row * self.per_column
        height = above + tall + below
        self.figure.set_size_inches(self.width, height)
        for number, axes in enumerate(self.panels):
            rows = min(self.per_column, max(1, len(self.shown) - number * self.per_column))
            left, bottom = self.left + number * self.step, height - above - self.row * rows
            self.place(axes, left, bottom, self.column_width, self.row * rows)

    def dress_panel(self, axes: Axes, rows: Sequence[Row]) -> None:
        """Draw the axes of a column; its units are points from left to right and rows from top to bottom."""
        axes.set_xlim(0, 72 * self.column_width)
        axes.set_ylim(max(1, len(rows)), 0)
        axes.set_facecolor("white")
        axes.set_yticks([])
        for spine in axes.spines.values():
            spine.set_visible(False)
        slices = {row.model.memory_slices for row in rows}
        if len(slices) != 1:
            axes.set_xticks([])
            return
        count = slices.pop()
        width = 72 * self.column_width / count
        axes.set_xticks([(position + 0.5) * width for position in range(count)], [str(s) for s in range(count)])
        axes.tick_params(axis="x", length=0, labelsize=8, labelcolor=INK)
        bare = {row.model.memory_slices - row.per_compute_slice * row.model.compute_slices for row in rows}
        remark = f" (slice {count - 1} has no compute)" if bare == {1} else ""
        axes.set_xlabel(f"memory slice{remark}", color=INK, fontsize=9)

    def draw_row(self, axes: Axes, position: int, row: Row, signs: dict[str, Patch]) -> None:
        """Draw the segments of a row and the slices that they leave unused."""
        slices = range(row.model.memory_slices)
        strip = _Strip(axes, position, 72 * self.column_width / len(slices))
        strip.box(slices, f"gpu:{row.gpus[0]}", facecolor=EMPTY, edgecolor=LINES, linewidth=0.6, zorder=1)
        if not row.segments:
            strip.text(slices, "no segment", f"empty:{row.gpus[0]}", fontsize=SMALL_FONT, color=INK)
            return
        hatched: dict[str, Any] = {"hatch": _HATCH, "linewidth": 0.0}
        for unused in row.unused():
            style = {"facecolor": UNUSED, "edgecolor": LINES, "zorder": 2, **hatched}
            signs[UNUSED_SIGN] = strip.box(unused, f"unused:{row.gpus[0]}:{unused.start}", **style)
        for index, segment in row.segments:
            colour, footprint, lost = self.colours[segment.service], row.footprint(segment), row.lost(segment)
            style = {"facecolor": colour, "edgecolor": "white", "linewidth": 0.8, "zorder": 3}
            strip.box(footprint, f"segment:{index}", **style)
            if lost:
                strip.box(
                    lost, f"lost:{index}", facecolor="white", edgecolor=colour, zorder=4, hatch=_HATCH, linewidth=0.8
                )
                signs[LOST_SIGN] = sign("white", edgecolor=LINES, **hatched)
                footprint = range(footprint.start, lost.start)
            found = self.wording(segment, len(footprint) * strip.unit)
            if found is not None:
                strip.text(footprint, found[0], f"label:{index}", fontsize=found[1], color=contrast(colour))

    def wording(self, segment: Segment, width: float) -> tuple[str, float] | None:
        """Return as much about a segment as fits into so many points, and its size; None if nothing does."""
        key = segment.service, segment.profile, segment.batch, segment.processes, round(width)
        if key not in self.wordings:
            height = 72 * self.row * (1 - _ROW_GAP) - _PADDING
            self.wordings[key] = self.fitted(self.candidates(segment), width - 2 * _PADDING, height, _FONTS)
        return self.wordings[key]

    def candidates(self, segment: Segment) -> Iterator[tuple[str, float]]:
        """Yield the wordings for a segment, each with the least size that it is worth, the best first."""
        name, number = one_line(segment.service), f"#{self.numbers[segment.service]}"
        way = f"{segment.batch} x {segment.processes}"
        for least in (_FONTS[-1] + 1.5, _FONTS[-1]):
            for short in dict.fromkeys((name, elide(name, 24), elide(name, 14))):
                yield f"{short}\n{segment.profile} · {way}", least
                yield f"{wrap_name(short, 2)}\n{segment.profile} · {way}", least
                yield f"{short}\n{segment.profile}", least
                yield wrap_name(short, 2), least
        yield f"{number} · {segment.profile}\n{way}", _FONTS[-1]
        yield f"{number}\n{segment.profile}", _FONTS[-1]
        yield number, _FONTS[-1]

    def service_key(self) -> tuple[list[Patch], list[str]]:
        """Return the colours of the services, and a line about each."""
        signs = [sign(colour) for colour in self.colours.values()]
        return signs, self.layout.service_labels
