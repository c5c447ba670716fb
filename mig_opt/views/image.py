"""Scenes as images, drawn by matplotlib: where panels and legends are, how axes and marks look."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.patches import Rectangle

from mig_opt.views.names import Names, draw_labels
from mig_opt.views.scene import Area, Boxes, Dots, Line, Links, Mark, Rule, Scene
from mig_opt.views.sheet import FINE, ROW_PAD, SMALL_FONT, USUAL, PanelImage, Sheet, sign
from mig_opt.views.texts import INK, LINES

_RIGHT, _EDGE = 0.3, 0.12  # inches beside the panels, and of the edge of the figure
_HEADING, _AXIS, _BOTTOM = 0.31, 0.48, 0.55  # inches of a heading, and of an axis with its label, also the last one
_COLUMN_GAP, _BAR_GAP = 0.3, 0.25  # inches between parts of a panel, and between panels side by side
_LEAST_OPERATION = 2.5  # points
_HATCH = "/////"
_LOOKS: dict[str, dict[str, Any]] = {
    "idle": {"edgecolor": "none", "zorder": 1},
    "jobless": {"edgecolor": "#bbbbbb", "linewidth": 0.4, "zorder": 1},
    "earlier": {"edgecolor": "#8a8a8a", "hatch": "////", "linewidth": 0.0, "zorder": 2},
    "run": {"edgecolor": "white", "linewidth": 0.8, "zorder": 3},
    "job": {"edgecolor": "white", "linewidth": 0.6, "zorder": 3},
    "create": {"edgecolor": INK, "linewidth": 0.7, "zorder": 4},
    "destroy": {"edgecolor": INK, "linewidth": 0.7, "zorder": 4},
    "instance": {"edgecolor": INK, "fill": False, "linewidth": 0.9, "zorder": 5},
    "gpu": {"edgecolor": LINES, "linewidth": 0.6, "zorder": 1},
    "unused": {"edgecolor": LINES, "hatch": _HATCH, "linewidth": 0.0, "zorder": 2},
    "segment": {"edgecolor": "white", "linewidth": 0.8, "zorder": 3},
    "lost": {"hatch": _HATCH, "linewidth": 0.8, "zorder": 4},
    "bar": {"edgecolor": "none", "zorder": 2},
    "faint bar": {"edgecolor": "none", "alpha": 0.35, "zorder": 2},
}
"""Looks of the boxes of each role, beside their colour; of others only the words are drawn."""
_MARKERS = {"circle": "o", "x": "x", "square": "s", "cross": "X", "triangle": "^", "diamond": "D"}


def draw_mark(panel: PanelImage, mark: Mark) -> Iterable[tuple[str, Artist]]:
    """Draw a mark, and yield what a legend has to explain."""
    match mark:
        case Boxes():
            yield from _draw_boxes(panel, mark)
        case Line():
            # matplotlib takes dashes in widths of the line.
            dashed: Any = (0, tuple(length / mark.width for length in mark.dashes)) if mark.dashes else "-"
            style: dict[str, Any] = {"color": mark.colour, "linewidth": mark.width, "linestyle": dashed, "zorder": 2}
            drawn = "steps-post" if mark.steps else "default"
            yield mark.legend, panel.parts[0].plot(mark.x, mark.y, drawstyle=drawn, gid=mark.gid, **style)[0]
        case Area():
            style = {"step": "post", "facecolor": mark.colour, "linewidth": 0, "zorder": 2}
            low, high = (np.append(level, level[-1]) for level in (mark.low, mark.high))
            panel.parts[0].fill_between(mark.edges, low, high, gid=mark.gid, **style)
            yield mark.legend, sign(mark.colour)
        case Dots():
            face = {"facecolor": "white", "edgecolor": mark.colour} if mark.hollow else {"color": mark.colour}
            style = {"marker": _MARKERS[mark.marker], "linewidths": 1.0, "clip_on": False, "zorder": 4, **face}
            sizes = np.square(mark.sizes)
            yield mark.legend, panel.parts[0].scatter(mark.x, mark.y, s=sizes, gid=mark.gid, **style)
        case Links():
            axes, style = panel.parts[0], {"color": INK, "zorder": 6}
            for gid, x, begin, end in mark.links:
                axes.plot([x, x], [begin, end], linewidth=0.7, gid=gid, **style)
                yield mark.legend, axes.plot(x, end, ls="none", marker="o", markersize=2.6, **style)[0]
        case Rule():
            draw = panel.parts[0].axhline if mark.level else panel.parts[0].axvline
            dashes = "--" if mark.dashed else "-"
            rule = draw(mark.at, color=mark.colour, linestyle=dashes, linewidth=1.2, gid=mark.gid, zorder=4)
            yield mark.name if mark.keyed else "", rule


def _draw_boxes(panel: PanelImage, group: Boxes) -> Iterable[tuple[str, Artist]]:
    """Draw boxes and what is written in them."""
    across = panel.points_across()
    boxes, legend = list(group.boxes), group.legend
    if group.role in {"create", "destroy"}:
        least = _LEAST_OPERATION / across
        legend += " (not to scale)" if any(box.right - box.left < least for box in boxes) else ""
        # Each is seen, within the lifetime of its instance.
        if group.role == "destroy":
            boxes = [box.over(min(box.left, box.right - least), box.right) for box in boxes]
        else:
            boxes = [box.over(box.left, max(box.right, box.left + least)) for box in boxes]
    if group.role in {"create", "destroy", "lost"}:
        panel.covers += boxes
    style = _LOOKS.get(group.role)
    for box in boxes:
        place = panel.place_of(box)
        if place is None or style is None:
            continue
        axes, higher = place
        face = "white" if group.role == "lost" else box.colour
        look = {"facecolor": face, "edgecolor": box.colour, **style}
        if (box.right - box.left) * across < 3 and style.get("edgecolor") == "white":
            # A white edge would hide a box that is not wider than the edge.
            look |= {"edgecolor": box.colour, "linewidth": 0.3}
        patch = Rectangle((box.left, box.top - higher), box.right - box.left, box.bottom - box.top, **look)
        axes.add_patch(patch).set_gid(box.gid)
        # Those that are lost have many colours.
        yield legend, sign("white", **{**style, "edgecolor": LINES}) if group.role == "lost" else patch
        if box.beside:
            axes.annotate(
                box.beside, (box.right, box.middle - higher), (4, 0), textcoords="offset points", va="center",
                fontsize=SMALL_FONT, color=INK, gid=box.gid.replace("bar", "value", 1), zorder=5,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
            )  # fmt: skip


class Image(Sheet):
    """The image of a scene. Lengths are inches unless a name says otherwise."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene.title, scene.width)
        self.scene = scene
        self.panels = [PanelImage(self, panel) for panel in scene.seen("image")]
        labels = [label for panel in self.panels for label in panel.labels]
        widest = max((self.size(label, 8)[0] for label in labels if label), default=0.0) / 72
        self.left = max(scene.left, widest + scene.beyond)
        self.column_gap = _COLUMN_GAP + widest + ROW_PAD
        columns = max(len(panel.parts) if panel.panel.rows and panel.panel.rows.beside else 1 for panel in self.panels)
        self.panel_width = columns * (scene.width + self.column_gap) - self.column_gap
        self.place_panels(above=1, below=1)

    def draw(self) -> Figure:
        """Draw everything and return the figure."""
        lines: dict[str, Artist] = {}
        signs: dict[str, Artist] = {}
        missing: dict[tuple[int, str, str], None] = {}
        labelled = 0.0
        for panel in self.panels:
            panel.dress()
            marks = panel.panel.marks
            rules = [mark for mark in marks if isinstance(mark, Rule) and mark.labelled]
            for mark in marks:
                if mark not in rules:
                    explained = lines if isinstance(mark, Line) and self.scene.own_key else signs
                    explained |= {legend: artist for legend, artist in draw_mark(panel, mark) if legend}
            names = Names(panel)
            signs |= names.draw([mark for mark in marks if isinstance(mark, Boxes)])
            missing |= dict.fromkeys(names.missing)
            if rules:
                labelled = draw_labels(panel, rules)
        signs |= {remark: sign("none") for remark in self.scene.remarks}
        unnamed = [(colour, wording) for _, colour, wording in sorted(missing, key=lambda entry: entry[0])]
        keys = [(list(each.values()), list(each)) for each in (lines, signs)]
        keys += [
            ([sign(colour) for colour, _ in key], [words for _, words in key]) for key in (unnamed, self.scene.key)
        ]
        self.arrange([self.key(*key) for key in keys if key[0]], labelled + 0.12)
        return self.figure

    def bands(self) -> list[list[tuple[PanelImage, int]]]:
        """Return parts of panels, by their numbers, that are side by side, from top to bottom."""
        found: list[list[tuple[PanelImage, int]]] = []
        for panel in self.panels:
            for number, _ in enumerate(panel.parts):
                beside = panel.panel.beside if number == 0 else panel.panel.rows is not None and panel.panel.rows.beside
                if beside:
                    found[-1].append((panel, number))
                else:
                    found.append([(panel, number)])
        return found

    def place_panels(self, above: float, below: float) -> None:
        """Give the panels their places, and the figure its height, with room above and below them."""
        places, depth, labelled = [], 0.0, False
        for band in self.bands():
            first, number = band[0]
            rows = first.panel.rows
            if number > 0 and rows is not None:
                depth += rows.gap * rows.unit
            else:
                depth += _AXIS * labelled + _HEADING * bool(first.panel.heading)
            between = self.column_gap if len(first.parts) > 1 else _BAR_GAP
            width = (self.panel_width - (len(band) - 1) * between) / len(band)
            for position, (panel, part) in enumerate(band):
                places.append((panel.parts[part], position * (width + between), depth, width, panel.height(part)))
            depth += max(panel.height(part) for panel, part in band)
            labelled = not first.panel.joined
        height = above + depth + below
        self.figure.set_size_inches(self.left + self.panel_width + _RIGHT, height)
        for axes, left, top, width, tall in places:
            self.place(axes, self.left + left, height - above - top - tall, width, tall)

    def arrange(self, legends: list[Legend], above: float) -> None:
        """Give everything around the panels its place and the figure its height and resolution, at the end."""
        title = self.draw_title()
        if title is not None:
            above += self.extent(title)[1] / 72 + 0.1
        heights = [legend.get_window_extent(self.renderers[FINE]).height / FINE + 0.05 for legend in legends]
        axis = _BOTTOM if any(axes.get_xlabel() for axes in self.figure.axes) else 0.15
        self.place_panels(above, axis + sum(heights) + _EDGE)
        height = self.figure.get_figheight()
        left = self.left / self.figure.get_figwidth()
        if title is not None:
            title.set_position((left, 1 - _EDGE / height))
        for index, legend in enumerate(legends):
            top = _EDGE + sum(heights[index:])
            legend.set_bbox_to_anchor((left, top / height), transform=self.figure.transFigure)
        self.figure.set_dpi(USUAL[0])
