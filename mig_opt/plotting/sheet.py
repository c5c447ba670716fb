"""A figure whose texts are measured before they have their places: what all charts have in common."""

from __future__ import annotations

import textwrap
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.text import Text
    from matplotlib.transforms import Bbox

INK = "#1f1f1f"
FINE = 720  # dots per inch at which texts have the size of their outlines
USUAL = (100, 150, 300)  # at which hinting makes them wider or narrower; the first is the figure's own
SMALL_FONT = 7.0
_SIGN_WIDTH, _SIGN_PAD, _COLUMN_GAP = 1.4, 0.5, 1.6  # of legends, in font sizes
_MOST_KEY_ENTRIES = 240


class Sheet(ABC):
    """One drawing. Lengths are inches unless a name says otherwise.

    Attributes
    ----------
    left, panel_width, width : float
        Where the panels begin, how wide they are together, and how wide the figure is.
    """

    left: float
    panel_width: float
    width: float

    def __init__(self, title: str) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
        from matplotlib.figure import Figure

        self.title = title
        self.figure: Figure = Figure(facecolor="white", dpi=FINE)
        FigureCanvasAgg(self.figure)
        self.renderers = {
            dpi: RendererAgg(1, 1, dpi)  # type: ignore[no-untyped-call]  # matplotlib leaves it without a signature
            for dpi in (FINE, *USUAL)
        }

    def arrange(self, legends: Sequence[Legend], above: float, axis: float) -> None:
        """Give everything around the panels its place and the figure its height.

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

    @abstractmethod
    def place_panels(self, above: float, below: float) -> None:
        """Give the panels their places, and the figure its height, with room above and below them."""

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

    def key(self, signs: Sequence[Artist], labels: Sequence[str]) -> Legend:
        """Return the legend of the tasks without a name in the chart, in as many columns as there is room for."""
        from matplotlib.patches import Patch

        signs, labels = list(signs), list(labels)
        if len(labels) > _MOST_KEY_ENTRIES:
            shown = _MOST_KEY_ENTRIES - 1
            signs, labels = signs[:shown], [*labels[:shown], f"and {len(labels) - shown} more"]
            signs.append(Patch(facecolor="none"))
        scratch = self.figure.text(0, 0, "", fontsize=SMALL_FONT, parse_math=False)
        widest = 0.0
        for label in labels:
            scratch.set_text(label)
            widest = max(widest, self.greatest_extent(scratch)[0])
        scratch.remove()
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
