"""The common part of all images: a figure whose texts are measured before they have their places."""

from __future__ import annotations

import io
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
from matplotlib.transforms import Bbox

from mig_opt.views.texts import INK

FINE = 720  # dots per inch at which texts have the size of their outlines
USUAL = (100, 150, 300)  # at which hinting makes them wider or narrower; the first is the figure's own
SMALL_FONT = 7.0
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
