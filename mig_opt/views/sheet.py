"""The common part of all charts: a figure whose texts are measured before they have their places."""

from __future__ import annotations

import textwrap
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from mig_opt.views.texts import INK, LONGEST_TITLE, elide

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.patches import Patch
    from matplotlib.text import Text
    from matplotlib.transforms import Bbox

FINE = 720  # dots per inch at which texts have the size of their outlines
USUAL = (100, 150, 300)  # at which hinting makes them wider or narrower; the first is the figure's own
SMALL_FONT = 7.0
_SIGN_WIDTH, _SIGN_PAD, _COLUMN_GAP = 1.4, 0.5, 1.6  # of legends, in font sizes
_MOST_KEY_ENTRIES = 240


class Sheet(ABC):
    """One drawing. Lengths are inches unless a name says otherwise."""

    left: float  # where the panels begin
    panel_width: float  # of all panels together
    width: float  # of the figure

    def __init__(self, title: str) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
        from matplotlib.text import Text

        from mig_opt.views.figure import ShownFigure

        self.title = elide(title, LONGEST_TITLE)
        self.figure: Figure = ShownFigure(facecolor="white", dpi=FINE)
        FigureCanvasAgg(self.figure)
        self.renderers = {
            dpi: RendererAgg(1, 1, dpi)  # type: ignore[no-untyped-call]  # matplotlib leaves it without a signature
            for dpi in (FINE, *USUAL)
        }
        self._scratch = Text(parse_math=False, linespacing=1.05)  # never drawn, only measured
        self._scratch.set_figure(self.figure)
        self._sizes: dict[tuple[str, float, bool], tuple[float, float]] = {}

    @abstractmethod
    def draw(self) -> Figure:
        """Draw everything and return the figure."""

    def add_panel(self, label: str = "") -> Axes:
        """Add an empty panel."""
        return self.figure.add_axes((0, 0, 1, 1), label=label)

    def dress(self, axes: Axes) -> None:
        """Give a panel its colours, and lines on its left and bottom only."""
        axes.set_facecolor("white")
        axes.tick_params(labelsize=8, color=INK, labelcolor=INK)
        for side, spine in axes.spines.items():
            spine.set_visible(side in {"left", "bottom"})
            spine.set_color(INK)

    def arrange(self, legends: Sequence[Legend], above: float, axis: float) -> None:
        """Give everything around the panels its place and the figure its height and resolution, at the end.

        ``above`` and ``axis`` are what belongs to the panels above and below them.
        """
        edge = 0.12
        title = self.draw_title()
        if title is not None:
            above += self.extent(title)[1] / 72 + 0.1
        heights = [legend.get_window_extent(self.renderers[FINE]).height / FINE + 0.05 for legend in legends]
        self.place_panels(above, axis + sum(heights) + edge)
        height = self.figure.get_figheight()
        if title is not None:
            title.set_position((self.left / self.width, 1 - edge / height))
        for index, legend in enumerate(legends):
            top = edge + sum(heights[index:])
            legend.set_bbox_to_anchor((self.left / self.width, top / height), transform=self.figure.transFigure)
        self.figure.set_dpi(USUAL[0])

    @abstractmethod
    def place_panels(self, above: float, below: float) -> None:
        """Give the panels their places, and the figure its height, with room above and below them."""

    def place(self, axes: Axes, left: float, bottom: float, width: float, height: float) -> None:
        """Put a panel at a place in the figure, in inches."""
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
        return self.legend(signs, labels, min(len(labels), max(1, int(72 * self.panel_width / column))))

    def legend(self, signs: Sequence[Artist], labels: Sequence[str], columns: int) -> Legend:
        """Draw a legend below the panels and return it."""
        from matplotlib.legend import Legend

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


def plain_numbers(axes: Axes, most: float) -> None:
    """Let the numbers below a panel, up to ``most``, be readable without powers of ten where that is possible."""
    if 1e-3 <= most < 1e7:
        axes.ticklabel_format(axis="x", style="plain", useOffset=False)
    else:
        axes.xaxis.set_major_formatter("{x:.6g}")


def sign(colour: str, **style: Any) -> Patch:
    """Return a filled box for a legend."""
    from matplotlib.patches import Patch

    return Patch(facecolor=colour, **style)


def add_rectangle(axes: Axes, corner: tuple[float, float], width: float, height: float, **style: Any) -> Patch:
    """Draw a rectangle and return it; ``corner`` is where both its coordinates are least."""
    from matplotlib.patches import Rectangle

    return axes.add_patch(Rectangle(corner, width, height, **style))
