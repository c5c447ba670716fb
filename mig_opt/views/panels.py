"""Panels in images: the axes of one, or of each part of its rows, and what is written beside them."""

from __future__ import annotations

import math

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from mig_opt.views.scene import Axis, Box, Panel
from mig_opt.views.sheet import Sheet
from mig_opt.views.texts import GRID, INK

ROW_PAD = 0.08  # inches between a row and its label


class PanelImage:
    """A panel in an image: one set of axes, or one for each part of its rows."""

    def __init__(self, sheet: Sheet, panel: Panel) -> None:
        self.sheet, self.panel = sheet, panel
        self.groups: list[list[int]] = [[]]
        if panel.rows is not None:
            shown = list(range(len(panel.rows.names)) if panel.rows.shown is None else panel.rows.shown)
            part = panel.rows.part or max(1, len(shown))
            self.groups = [shown[begin : begin + part] for begin in range(0, len(shown), part)] or [[]]
        several = len(self.groups) > 1
        self.parts = [
            sheet.figure.add_axes((0, 0, 1, 1), label=f"{panel.name} {number}" if several else panel.name)
            for number in range(len(self.groups))
        ]
        self.covers: list[Box] = []
        """Boxes that leave no room for names in others."""

    @property
    def labels(self) -> list[str]:
        """Texts beside the rows; rows of slices need no more room than other panels."""
        rows = self.panel.rows
        return [] if rows is None or rows.slices else list(rows.labels or rows.names)

    def height(self, number: int) -> float:
        """Return the inches of a part."""
        rows = self.panel.rows
        if rows is None:
            return self.panel.height
        return rows.unit * (rows.heights(len(self.groups[number])) + 2 * rows.margin)

    def points_across(self) -> float:
        """Return the points of a unit from left to right."""
        first, last = self.parts[0].get_xlim()
        return 72 * self.parts[0].get_position().width * self.sheet.figure.get_figwidth() / (last - first)

    def points_down(self) -> float:
        """Return the points of a unit of rows."""
        return 72 * (1.0 if self.panel.rows is None else self.panel.rows.unit)

    def place_of(self, box: Box) -> tuple[Axes, float] | None:
        """Return the axes in which a box is, and by how much it is higher there; None if its row is not shown."""
        rows = self.panel.rows
        if rows is None or not (rows.part or rows.shown):
            return self.parts[0], 0.0
        row = rows.at(box.top)
        for axes, group in zip(self.parts, self.groups, strict=True):
            if row in group:
                return axes, (row - group.index(row)) * rows.step
        return None

    def dress(self) -> None:
        """Draw the axes with their ticks and labels, and the heading."""
        for axes, group in zip(self.parts, self.groups, strict=True):
            axes.set_facecolor("white")
            axes.tick_params(labelsize=8, color=INK, labelcolor=INK)
            for side, spine in axes.spines.items():
                spine.set_visible(side in {"left", "bottom"} and not self.panel.x.categorical)
                spine.set_color(INK)
            below = axes is not self.parts[-1] and self.panel.rows is not None and not self.panel.rows.beside
            _dress_x(axes, self.panel.x, labelled=not (below or self.panel.joined))
            if self.panel.rows is None:
                _dress_y(axes, self.panel.y)
            else:
                self.dress_rows(axes, group)
            if self.panel.grid:
                axes.grid(visible=True, axis=self.panel.grid, color=GRID, linewidth=0.6)
                axes.set_axisbelow(True)
        if self.panel.heading:
            self.parts[0].annotate(
                self.panel.heading, (0, 1), (0, 4), xycoords="axes fraction", textcoords="offset points", ha="left",
                va="bottom", fontsize=8.5, fontweight="bold", color=INK, parse_math=False, annotation_clip=False,
                gid=f"heading:{self.panel.name}",
            )  # fmt: skip

    def dress_rows(self, axes: Axes, group: list[int]) -> None:
        """Label the rows of a part, or the slices of its only row."""
        rows = self.panel.rows
        assert rows is not None
        axes.set_ylim(rows.heights(len(group)) + rows.margin, -rows.margin or 0)
        axes.tick_params(axis="y", length=0, pad=72 * ROW_PAD)
        labels = [(rows.labels or rows.names)[row] for row in group]
        if rows.slices:
            axes.tick_params(axis="y", pad=3.5)
            count = int(rows.size)
            lines = [position * rows.step + line for position in range(len(group)) for line in range(count + 1)]
            axes.hlines(lines, *axes.get_xlim(), color=GRID, linewidth=0.5, zorder=0)
        if rows.slices and len(group) == 1:
            every = math.ceil(9 / (72 * rows.unit))
            axes.set_yticks(
                [at + 0.5 for at in range(0, count, every)], [f"slice {at}" for at in range(0, count, every)]
            )
            axes.tick_params(axis="y", labelsize=min(8.0, 60 * rows.unit * every))
            if len(self.parts) > 1:
                # Turned by a right angle, it has to fit beside the rows: a letter is some 0.65 of its size wide.
                room = 72 * rows.unit * rows.size / (0.65 * max(map(len, labels[0].splitlines())))
                size = min(9.0, 15 * rows.unit * rows.size, room)
                axes.set_ylabel(labels[0], color=INK, fontsize=size, fontweight="bold", va="center")
                axes.yaxis.set_label_coords(-0.75 / self.sheet.panel_width, 0.5)
            return
        middles = [position * rows.step + rows.size / 2 for position in range(len(group))]
        axes.set_yticks(middles, labels, linespacing=1.05)
        axes.tick_params(axis="y", labelsize=min(8.0, 26 * rows.unit * rows.size) if rows.slices else 8.0)
        for row, label in zip(group, axes.get_yticklabels(), strict=True):
            label.set(parse_math=False, gid=f"row:{row}")


def _dress_x(axes: Axes, axis: Axis, *, labelled: bool) -> None:
    if axis.limits is not None:
        first, last = axis.limits
        axes.set_xlim(first, last + axis.room * (last - first))
    axes.tick_params(axis="x", labelbottom=labelled)
    if labelled:
        axes.set_xlabel(axis.label, color=INK, fontsize=9)
    if axis.categorical:
        axes.tick_params(axis="x", length=0)
    if axis.ticks or axis.categorical:
        axes.set_xticks([at for at, _ in axis.ticks], [wording for _, wording in axis.ticks])
    elif axis.scale == "symlog":
        axes.set_xscale("symlog", linthresh=axis.linear_until)
        axes.minorticks_off()
        axes.xaxis.set_major_formatter("{x:.6g}")
    elif axis.scale == "log":
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
    elif axis.limits is not None:
        if axis.most_ticks:
            axes.locator_params(axis="x", nbins=axis.most_ticks)
        axes.set_xticks([tick for tick in axes.get_xticks() if axes.get_xlim()[0] <= tick <= axes.get_xlim()[1]])
        # Readable without powers of ten where that is possible.
        if 1e-3 <= axis.limits[1] < 1e7:
            axes.ticklabel_format(axis="x", style="plain", useOffset=False)
        else:
            axes.xaxis.set_major_formatter("{x:.6g}")


def _dress_y(axes: Axes, axis: Axis) -> None:
    if axis.scale == "log":
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
    if axis.limits is not None:
        axes.set_ylim(*axis.limits)
    if axis.ticks:
        axes.set_yticks([at for at, _ in axis.ticks], [wording for _, wording in axis.ticks])
    elif axis.whole:
        axes.yaxis.set_major_locator(MaxNLocator(axis.most_ticks or "auto", integer=True))
    axes.set_ylabel(axis.label, color=INK, fontsize=9)
