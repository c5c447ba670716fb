"""The common part of all images: a figure whose texts are measured before they have their places, and its panels."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Bbox

from mig_opt.views.scene import Axis, Box, Panel
from mig_opt.views.texts import GRID, INK

FINE = 720  # dots per inch at which texts have the size of their outlines
USUAL = (100, 150, 300)  # at which hinting makes them wider or narrower; the first is the figure's own
SMALL_FONT = 7.0
ROW_PAD = 0.08  # inches between a row and its label
_SIGN_WIDTH, _SIGN_PAD, _COLUMN_GAP = 1.4, 0.5, 1.6  # of legends, in font sizes
_MOST_KEY_ENTRIES = 240


class ShownFigure(Figure):
    """A figure that notebooks show as an image; of others they do so only once pyplot is set up for it."""

    def _repr_png_(self) -> bytes:
        data = io.BytesIO()
        self.savefig(data, format="png", dpi=self.dpi)
        return data.getvalue()


class Sheet:
    """One drawing; ``panel_width`` is that of the panels together, in inches."""

    def __init__(self, title: str, panel_width: float) -> None:
        self.title, self.panel_width = title, panel_width
        self.figure: Figure = ShownFigure(facecolor="white", dpi=FINE)
        FigureCanvasAgg(self.figure)
        self.renderers = {
            dpi: RendererAgg(1, 1, dpi)  # type: ignore[no-untyped-call]  # matplotlib leaves it without a signature
            for dpi in (FINE, *USUAL)
        }
        self._scratch = Text(parse_math=False, linespacing=1.05)  # never drawn, only measured
        self._scratch.set_figure(self.figure)
        self._sizes: dict[tuple[str, float, bool], tuple[float, float]] = {}

    def place(self, axes: Axes, left: float, bottom: float, width: float, height: float) -> None:
        """Set the place of a panel in the figure, in inches."""
        across, up = self.figure.get_size_inches()
        axes.set_position((left / across, bottom / up, width / across, height / up))

    def bounds(self, text: Text) -> Bbox:
        """Return where a text is, in dots at the fine resolution."""
        return text.get_window_extent(self.renderers[FINE])

    def extent(self, text: Text) -> tuple[float, float]:
        """Return the width and height of a text in points."""
        bounds = self.bounds(text)
        return max(0.1, bounds.width * 72 / FINE), max(0.1, bounds.height * 72 / FINE)

    def greatest_extent(self, text: Text) -> tuple[float, float]:
        """Return the width and height that a text has at most at any of the resolutions, in points."""
        bounds = [(text.get_window_extent(renderer, dpi), dpi) for dpi, renderer in self.renderers.items()]
        return max(box.width * 72 / dpi for box, dpi in bounds), max(box.height * 72 / dpi for box, dpi in bounds)

    def size(self, wording: str, font: float, *, finest: bool = False) -> tuple[float, float]:
        """Return the width and height of a text in points: the greatest at any resolution, or those at the finest."""
        # All digits are as wide as each other.
        same = "#" + "0" * (len(wording) - 1) if wording[0] == "#" and wording[1:].isdigit() else wording
        key = same, font, finest
        if key not in self._sizes:
            self._scratch.set(text=same, fontsize=font)
            self._sizes[key] = self.extent(self._scratch) if finest else self.greatest_extent(self._scratch)
        return self._sizes[key]

    def fitted(
        self, candidates: Iterable[tuple[str, float]], width: float, height: float, fonts: Sequence[float]
    ) -> tuple[str, float] | None:
        """Return the first wording that fits into a rectangle (in points), with its largest font size, or None.

        Each comes with the least font size that it is worth, the best first; ``fonts`` are the sizes to try, falling.
        """
        for wording, least in candidates:
            lines = wording.split("\n")
            if 0.8 * least * len(lines) > height or 0.3 * least * max(map(len, lines)) > width:
                continue  # out of question: saves the time to measure it
            own_width, own_height = self.size(wording, fonts[0], finest=True)
            most = fonts[0] * min(1.0, width / own_width, height / own_height)
            for font in fonts:
                # That a text grows with its font is nearly true: what seems to fit is measured.
                if least <= font <= most:
                    own_width, own_height = self.size(wording, font)
                    if own_width <= width and own_height <= height:
                        return wording, font
        return None

    def key(self, signs: Sequence[Artist], labels: Sequence[str]) -> Legend:
        """Draw a legend in as many columns as there is room for, and return it; a very long one is cut."""
        signs, labels = list(signs), list(labels)
        if len(labels) > _MOST_KEY_ENTRIES:
            shown = _MOST_KEY_ENTRIES - 1
            signs, labels = signs[:shown], [*labels[:shown], f"and {len(labels) - shown} more"]
            signs.append(sign("none"))
        widest = max(self.size(label, SMALL_FONT)[0] for label in labels)
        column = widest + SMALL_FONT * (_SIGN_WIDTH + _SIGN_PAD + _COLUMN_GAP)
        columns = min(len(labels), max(1, int(72 * self.panel_width / column)))
        sizes = {"handlelength": _SIGN_WIDTH, "handletextpad": _SIGN_PAD, "columnspacing": _COLUMN_GAP}
        frame = {"frameon": False, "borderpad": 0, "borderaxespad": 0, "labelspacing": 0.3, "labelcolor": INK}
        style: dict[str, Any] = {**sizes, **frame, "fontsize": SMALL_FONT}
        # The labels come later: matplotlib takes a leading underscore and dollar signs for commands.
        legend = Legend(self.figure, signs, ["" for _ in labels], loc="upper left", ncols=columns, **style)
        for text, label in zip(legend.get_texts(), labels, strict=True):
            text.set(text=label, parse_math=False)
        self.figure.add_artist(legend)
        return legend

    def draw_title(self) -> Text | None:
        """Draw the title, if there is one."""
        if not self.title.strip():
            return None
        style: dict[str, Any] = {"fontsize": 11, "fontweight": "bold", "va": "top", "color": INK}
        text = self.figure.text(0, 1, self.title, parse_math=False, **style)
        share = 72 * self.panel_width / self.extent(text)[0]
        if share < 1:
            text.set_text(textwrap.fill(self.title, max(10, int(0.95 * share * len(self.title)))))
        return text


def sign(colour: str, **style: Any) -> Patch:
    """Return a filled box for a legend."""
    return Patch(facecolor=colour, **style)


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
                axes.set_ylabel(labels[0], color=INK, fontsize=size, fontweight="bold", va="center", parse_math=False)
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
