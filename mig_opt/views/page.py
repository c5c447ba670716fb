"""The common part of all pages to explore: one file of HTML with everything in it, drawn by bokeh in a browser."""

from __future__ import annotations

import html
import importlib.resources
import json
import math
import string
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mig_opt.views.texts import GRID, INK, LONGEST_TITLE, contrast, elide, spell_slices, spell_span

Numbers = NDArray[np.float64]

ROW_GAP = 0.8
"""Between two GPUs, in memory slices."""
_HEIGHTS = (5.5, 34.0)  # pixels of a slice, at least and at most
_USUAL_HEIGHT = 620.0  # pixels of all slices together, as far as these limits allow it
_AROUND = 130  # pixels of legend and axis
_MOST_IN_LINE = 6  # entries of a legend
_FONT = "Helvetica, Arial, sans-serif"
_HINT = """<div style="font: 12px/1.45 {font}; max-width: 28em"><b>@head</b>
<div style="white-space: pre-line">@facts</div></div>"""


@dataclass(frozen=True, slots=True)
class Mark:
    """A box of a page, and what it says when the pointer is on it."""

    left: float
    right: float
    top: float
    bottom: float
    colour: str
    head: str
    facts: Sequence[str] = ()
    label: str = ""
    """The text within, as far as there is room for it."""


@dataclass
class Page:
    """A page: a title, short notes, and drawings of bokeh from top to bottom."""

    title: str
    notes: Sequence[str] = ()
    drawings: list[Any] = field(default_factory=list)

    def html(self) -> str:
        """Return the page as one file, which loads nothing; the same page is the same text."""
        from bokeh.embed import json_item
        from bokeh.layouts import column
        from bokeh.resources import Resources

        item = _numbered(json_item(column(self.drawings, sizing_mode="stretch_width"), "chart"))
        notes = "\n".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        template = string.Template(_resource("page.html"))
        library = Resources(mode="inline", minified=True).js_raw
        return template.substitute(
            title=html.escape(elide(self.title, LONGEST_TITLE)),
            notes=notes and f"<ul>\n{notes}\n</ul>",
            library=next(script for script in library if "Bokeh" in script),
            # Within a script only this sequence would end it.
            item=json.dumps(item, ensure_ascii=False).replace("</", "<\\/"),
        )


def _resource(name: str) -> str:
    return (importlib.resources.files("mig_opt.views") / name).read_text(encoding="utf-8")


def _numbered(item: Any) -> Any:
    """Return the description of a document with its parts numbered from 1 on; bokeh counts those of all documents."""
    numbers: dict[str, str] = {}

    def renamed(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key: numbers.setdefault(entry, f"p{len(numbers) + 1}")
                if key in {"id", "root_id"} and isinstance(entry, str)
                else renamed(entry)
                for key, entry in value.items()
            }
        return [renamed(entry) for entry in value] if isinstance(value, list | tuple) else value

    return renamed(dict(item))


def graph(
    height: float, *, x_range: Any = None, y_range: Any = None, wheel: str = "xwheel_zoom", **options: Any
) -> Any:
    """Return an empty drawing as wide as the page, which is moved by dragging and zoomed with the wheel."""
    from bokeh.models import WheelZoomTool
    from bokeh.plotting import figure

    ranges = {key: value for key, value in (("x_range", x_range), ("y_range", y_range)) if value is not None}
    drawing = figure(
        height=round(height),
        sizing_mode="stretch_width",
        tools=f"pan,{wheel},box_zoom,reset,save",
        active_drag="pan",
        lod_threshold=None,
        toolbar_location="right",
        **ranges,
        **options,
    )
    drawing.toolbar.logo = None
    drawing.toolbar.active_scroll = next(tool for tool in drawing.tools if isinstance(tool, WheelZoomTool))
    drawing.outline_line_color = None
    for axis in (*drawing.xaxis, *drawing.yaxis):
        axis.axis_line_color = axis.major_tick_line_color = axis.major_label_text_color = axis.axis_label_text_color = (
            INK
        )
        axis.minor_tick_line_color = None
        axis.axis_label_text_font_style = "normal"
        axis.major_label_text_font = axis.axis_label_text_font = _FONT
    drawing.grid.grid_line_color = GRID
    return drawing


def seconds_range(first: float, last: float) -> Any:
    """Return the range of an axis of seconds, beyond which no view goes."""
    from bokeh.models import Range1d

    room = 0.01 * (last - first)
    return Range1d(first - room, last + room, bounds=(first - 2 * room, last + 2 * room))


class SlicesGraph:
    """A drawing of GPUs over time, each with its memory slices from top to bottom."""

    def __init__(self, names: Sequence[str], slices: int, x_range: Any) -> None:
        from bokeh.models import FixedTicker, Range1d

        self.names, self.step = names, slices + ROW_GAP
        rows = len(names) * self.step - ROW_GAP
        height = rows * min(_HEIGHTS[1], max(_HEIGHTS[0], _USUAL_HEIGHT / rows))
        y_range = Range1d(rows, 0, bounds=(-0.5, rows + 0.5))
        self.drawing = graph(height + _AROUND, x_range=x_range, y_range=y_range)
        if len(names) == 1:
            ticks = {position + 0.5: f"slice {position}" for position in range(slices)}
        else:
            ticks = {number * self.step + slices / 2: name for number, name in enumerate(names)}
        self.drawing.yaxis.ticker = FixedTicker(ticks=list(ticks))
        self.drawing.yaxis.major_label_overrides = ticks
        self.drawing.yaxis.axis_line_color = self.drawing.yaxis.major_tick_line_color = None
        lines = [number * self.step + line for number in range(len(names)) for line in range(slices + 1)]
        self.drawing.ygrid.ticker = FixedTicker(ticks=lines)
        self.drawing.xaxis.axis_label = "time in seconds"

    def mark(
        self, gpu: int, slices: range, span: tuple[float, float], *, colour: str, head: str, facts: Sequence[str] = (),
        label: str = "",
    ) -> Mark:  # fmt: skip
        """Return a box over some slices of a GPU and a span of seconds; it says both, and its other facts."""
        top = gpu * self.step + slices.start
        where = f"{self.names[gpu]}, {spell_slices(slices)}"
        return Mark(*span, top, top + len(slices), colour, head, [*facts, where, spell_span(*span)], label)


def add_rows(drawing: Any, labels: Sequence[str], width: float) -> Any:
    """Give an empty drawing rows with labels, from top to bottom, and so many units from left to right."""
    from bokeh.models import FixedTicker, Range1d

    drawing.x_range = Range1d(0, width, bounds=(0, width))
    drawing.y_range = Range1d(max(1, len(labels)), 0, bounds=(0, max(1, len(labels))))
    ticks = {position + 0.5: label for position, label in enumerate(labels)}
    drawing.yaxis.ticker = FixedTicker(ticks=list(ticks))
    drawing.yaxis.major_label_overrides = ticks
    drawing.yaxis.axis_line_color = drawing.yaxis.major_tick_line_color = None
    drawing.ygrid.grid_line_color = None
    return drawing


def uncovered(under: Iterable[Mark], over: Iterable[Mark]) -> list[Mark]:
    """Return the parts of some boxes, from left to right, that no other box covers, however little of their height."""
    found: list[Mark] = []
    bands: dict[int, list[Mark]] = defaultdict(list)
    for mark in sorted(over, key=lambda mark: mark.left):
        for band in range(int(mark.top), math.ceil(mark.bottom)):
            bands[band].append(mark)
    for mark in under:
        at = mark.left
        near = {id(other): other for band in range(int(mark.top), math.ceil(mark.bottom)) for other in bands[band]}
        for other in sorted(near.values(), key=lambda other: other.left):
            if other.top < mark.bottom and mark.top < other.bottom and other.right > at and other.left < mark.right:
                if other.left > at:
                    found.append(replace(mark, left=at, right=other.left))
                at = other.right
        if at < mark.right:
            found.append(replace(mark, left=at))
    return found


def add_marks(drawing: Any, marks: Iterable[Mark], legend: str = "", *, silent: bool = False, **style: Any) -> None:
    """Draw boxes that say what they are (or are silent), with their labels as far as these fit.

    ``legend`` explains them all.
    """
    from bokeh.models import ColumnDataSource, CustomJS, HoverTool

    found = list(marks)
    if not found:
        return
    source = ColumnDataSource(
        {
            "left": [mark.left for mark in found],
            "right": [mark.right for mark in found],
            "top": [mark.top for mark in found],
            "bottom": [mark.bottom for mark in found],
            "colour": [mark.colour for mark in found],
            "head": [mark.head for mark in found],
            "facts": ["\n".join(mark.facts) for mark in found],
        }
    )
    usual: dict[str, Any] = {"fill_color": "colour", "line_color": "white", "line_width": 0.6}
    explained = {"legend_label": legend} if legend else {}
    boxes = drawing.quad("left", "right", "top", "bottom", source=source, **{**usual, **style}, **explained)
    if not silent:
        drawing.add_tools(HoverTool(renderers=[boxes], tooltips=_HINT.format(font=_FONT), visible=False))
    if not any(mark.label for mark in found):
        return
    labels = ColumnDataSource({"x": [], "y": [], "text": [], "size": [], "ink": []})
    drawing.text(
        "x", "y", "text", source=labels, text_font_size="size", text_color="ink", text_align="center",
        text_baseline="middle", text_font={"value": _FONT},
    )  # fmt: skip
    names, inks = [mark.label for mark in found], [contrast(mark.colour) for mark in found]
    arguments = {"plot": drawing, "boxes": source, "labels": labels, "names": names, "inks": inks}
    fit = CustomJS(args=arguments, code=_resource("labels.js"))
    drawing.js_on_change("inner_width", fit)
    drawing.js_on_change("inner_height", fit)
    for shown in (drawing.x_range, drawing.y_range):
        shown.js_on_change("start", fit)
        shown.js_on_change("end", fit)


def add_lines(drawing: Any, lines: Iterable[tuple[float, str, str, bool]]) -> None:
    """Draw upright lines, explained in the legend: where, wording, colour, and whether it is dashed."""
    for at, wording, colour, dashed in lines:
        drawing.vspan(
            x=[at], legend_label=wording, line_color=colour, line_width=1.8, line_dash="dashed" if dashed else "solid"
        )


def add_steps(drawing: Any, x: Numbers, y: Numbers, legend: str = "", **style: Any) -> Any:
    """Draw a level that changes in steps, and return its line."""
    from bokeh.models import ColumnDataSource

    source = ColumnDataSource({"x": [float(entry) for entry in x], "y": [float(entry) for entry in y]})
    explained = {"legend_label": legend} if legend else {}
    return drawing.step("x", "y", source=source, mode="after", **{"line_width": 1.8, **style, **explained})


def add_hover(drawing: Any, renderer: Any, facts: Mapping[str, str]) -> None:
    """Let a line or the like say its facts where the pointer is: labels, each with a column of its data."""
    from bokeh.models import HoverTool

    drawing.add_tools(HoverTool(renderers=[renderer], tooltips=list(facts.items()), visible=False))


def legend_below(drawing: Any) -> None:
    """Put the legend of a drawing, if it has one, below its axis; a click on an entry hides what it explains."""
    for legend in list(drawing.legend):
        drawing.center.remove(legend)
        drawing.add_layout(legend, "below")
        legend.orientation = "horizontal"
        legend.click_policy = "hide"
        legend.border_line_color = None
        legend.label_text_color = INK
        legend.label_text_font = _FONT
        legend.label_text_font_size = "12px"
        legend.padding = legend.margin = 2
        long = len(legend.items) > _MOST_IN_LINE
        legend.spacing = 4 if long else 14
        legend.ncols = _MOST_IN_LINE - 1 if long else "auto"
        legend.glyph_height = 16
        legend.label_height = 16
        legend.location = "top_left"
