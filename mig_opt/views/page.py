"""Scenes as pages to explore: one file of HTML with everything in it, drawn by bokeh in a browser."""

from __future__ import annotations

import html
import importlib.resources
import json
import re
import string
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from bokeh.embed import json_item
from bokeh.layouts import column
from bokeh.models import (
    ColumnDataSource,
    CustomJS,
    FixedTicker,
    HoverTool,
    NumeralTickFormatter,
    PlainText,
    Range1d,
    WheelZoomTool,
)
from bokeh.plotting import figure
from bokeh.resources import Resources

from mig_opt.views.scene import Area, Axis, Box, Boxes, Dots, Line, Links, Mark, Panel, Rows, Rule, Scene, uncovered
from mig_opt.views.texts import GRID, INK, LINES, contrast, spell_seconds

_HEIGHTS = (5.5, 34.0)  # pixels of a slice, at least and at most
_USUAL_HEIGHT = 620.0  # pixels of all slices together, as far as these limits allow it
_AROUND = 130  # pixels of legend and axis
_MOST_IN_LINE = 6  # entries of a legend
_LETTER, _AROUND_WORDS = 6.0, 38  # pixels of a letter of a legend, and of what is beside the words of an entry
_MOST_NOTED = 24  # lines about colours up to which they stand above the picture
_FONT = "Helvetica, Arial, sans-serif"
_HINT = """<div style="font: 12px/1.45 {font}; max-width: 28em"><b>@head</b>
<div style="white-space: pre-line">@facts</div></div>"""
_FORMULA = re.compile(r"\$\$|\\[(\[]")
_MARKUP = re.compile(r"[&<>]|[@$](?![xy]\{)")  # characters of a text that a hint would not show
_PIXELS = 1.3  # pixels for each point of an image
_WHEELS = {"": "xwheel_zoom", "x": "xwheel_zoom", "y": "ywheel_zoom", "both": "wheel_zoom"}
_HATCHED = {"fill_color": "white", "hatch_pattern": "right_diagonal_line", "hatch_color": LINES, "line_color": LINES}
_SILENT = {"fill_alpha": 0, "line_color": INK, "line_width": 0.9}
_LOOKS: dict[str, dict[str, Any]] = {
    "idle": {"line_width": 0},
    "jobless": {"line_width": 0},
    "earlier": {"hatch_pattern": "right_diagonal_line", "hatch_color": "#8a8a8a"},
    # An edge of the same colour is seen however short the operation is.
    "create": {"line_color": "colour", "line_width": 1},
    "destroy": {"line_color": "colour", "line_width": 1},
    "instance": _SILENT,
    "outline": {**_SILENT, "line_color": "#8a8a8a", "line_width": 0.7},
    "gpu": {"line_color": LINES},
    "unused": {**_HATCHED, "fill_color": "colour"},
    "lost": _HATCHED,
    "faint bar": {"fill_alpha": 0.35},
}
"""Looks of the boxes of roles that are not just boxes of their colour."""
_MARKERS = {name: name for name in ("circle", "x", "square", "triangle", "diamond")} | {"cross": "x"}


def compose_page(scene: Scene) -> str:
    """Return a scene as one file, which loads nothing; the same scene is the same text."""
    ranges: dict[int, Any] = {}
    drawings = [_drawing(panel, ranges) for panel in scene.seen("page")]
    item = _numbered(json_item(column(drawings, sizing_mode="stretch_width"), "chart"))
    notes = [label for _, label in scene.key]
    if len(notes) > _MOST_NOTED:
        notes = [scene.many]
    lines = "\n".join(f"<li>{html.escape(note)}</li>" for note in notes)
    template = string.Template(_resource("page.html"))
    library = Resources(mode="inline", minified=True).js_raw
    return template.substitute(
        title=html.escape(scene.title),
        notes=lines and f"<ul>\n{lines}\n</ul>",
        library=next(script for script in library if "Bokeh" in script),
        # Within a script only these would end it, or hide its end.
        item=json.dumps(item, ensure_ascii=False).replace("</", "<\\/").replace("<!--", "<\\u0021--"),
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


def _frame(panel: Panel, ranges: dict[int, Any]) -> dict[str, Any]:
    """Return the height of a drawing and the kinds and ranges of its axes; the same axis has the same range."""
    options: dict[str, Any] = {} if panel.y.scale == "linear" else {"y_axis_type": panel.y.scale}
    if panel.x.scale == "log":
        options["x_axis_type"] = "log"
    if panel.x.limits is not None:
        options["x_range"] = ranges.setdefault(id(panel.x), _range(panel.x))
    height = panel.pixels
    if panel.rows is not None:
        rows, beyond = panel.rows.height, 0.5 if panel.rows.slices else 0.0
        options["y_range"] = Range1d(rows, 0, bounds=(-beyond, rows + beyond))
        if panel.rows.slices:
            height = rows * min(_HEIGHTS[1], max(_HEIGHTS[0], _USUAL_HEIGHT / rows)) + _AROUND
    elif panel.y.limits is not None:
        options["y_range"] = Range1d(*panel.y.limits)
    return {"height": round(height), **options}


def _drawing(panel: Panel, ranges: dict[int, Any]) -> Any:
    """Return a panel, which is moved by dragging and zoomed with the wheel."""
    drawing = figure(
        sizing_mode="stretch_width",
        tools=f"pan,{_WHEELS[panel.zoom]},box_zoom,reset,save",
        active_drag="pan",
        lod_threshold=None,
        toolbar_location="right" if panel.zoom else None,
        **_frame(panel, ranges),
    )
    drawing.toolbar.logo = None
    drawing.toolbar.active_scroll = next(tool for tool in drawing.tools if isinstance(tool, WheelZoomTool))
    drawing.outline_line_color = None
    heading = panel.heading.replace(" · ", "\n", 1)  # a longer line would be cut in a narrow window
    drawing.title.update(text=_no_formula(heading), text_font=_FONT, text_font_size="12px", text_color=INK)
    lines, texts = ("axis_line", "major_tick_line"), ("major_label_text", "axis_label_text")
    inks = {f"{part}_color": INK for part in (*lines, *texts)} | {f"{part}_font": _FONT for part in texts}
    for axis in (*drawing.xaxis, *drawing.yaxis):
        axis.update(minor_tick_line_color=None, axis_label_text_font_style="normal", **inks)
    drawing.grid.grid_line_color = GRID
    drawing.xaxis.axis_label = panel.x.zoom_label or panel.x.label
    drawing.yaxis.axis_label = panel.y.label or None
    if panel.y.scale == "log":
        drawing.yaxis.formatter = NumeralTickFormatter(format="0.[000]")
    if panel.x.categorical:
        _set_ticks(drawing.xaxis, dict(panel.x.ticks))
        drawing.xgrid.grid_line_color = drawing.xaxis.major_tick_line_color = None
        drawing.xaxis.visible = bool(panel.x.ticks)
    if panel.rows is not None:
        _dress_rows(drawing, panel.rows)
    for number, mark in enumerate(panel.marks):
        _add(drawing, mark, panel.marks[number + 1 :])
    _put_legend_below(drawing)
    return drawing


def _range(axis: Axis) -> Any:
    """Return the range of an axis, beyond which, and a little room, no view goes."""
    assert axis.limits is not None
    first, last = axis.limits
    room = axis.page_room * (last - first)
    return Range1d(first - room, last + room, bounds=(first - 2 * room, last + 2 * room))


def _set_ticks(axis: Any, ticks: dict[float, str]) -> None:
    axis.ticker = FixedTicker(ticks=list(ticks))
    axis.major_label_overrides = {at: _no_formula(text) for at, text in ticks.items()}


def _no_formula(text: str) -> Any:
    """Return a text that bokeh takes for no formula, whatever is in it."""
    return PlainText(text=text) if _FORMULA.search(text) else text


def _dress_rows(drawing: Any, rows: Rows) -> None:
    """Label the rows, or the slices of the only one."""
    count = int(rows.size)
    if rows.slices and len(rows.names) == 1:
        ticks = {position + 0.5: f"slice {position}" for position in range(count)}
    else:
        ticks = {row * rows.step + rows.size / 2: name for row, name in enumerate(rows.names)}
    _set_ticks(drawing.yaxis, ticks)
    drawing.yaxis.axis_line_color = drawing.yaxis.major_tick_line_color = None
    if rows.slices:
        lines = [row * rows.step + line for row in range(len(rows.names)) for line in range(count + 1)]
        drawing.ygrid.ticker = FixedTicker(ticks=lines)
    else:
        drawing.ygrid.grid_line_color = None


def _add(drawing: Any, mark: Mark, above: Sequence[Mark]) -> None:
    """Draw a mark that has others above it."""
    legend = {"legend_label": mark.legend} if not isinstance(mark, Rule) and mark.legend else {}
    match mark:
        case Boxes():
            boxes = mark.boxes
            if mark.beneath:
                others = [
                    other
                    for other in above
                    if isinstance(other, Boxes) and _LOOKS.get(other.role, {}).get("fill_alpha") != 0
                ]
                boxes = uncovered(boxes, [box for other in others for box in other.boxes])
            _add_boxes(drawing, boxes, mark.role, legend)
        case Line():
            source = ColumnDataSource({"x": list(map(float, mark.x)), "y": list(map(float, mark.y))})
            style: dict[str, Any] = {"line_width": _PIXELS * mark.width, "color": mark.colour, **legend}
            if mark.dashes:
                style["line_dash"] = [round(2 * length) for length in mark.dashes]
            draw = partial(drawing.step, mode="after") if mark.steps else drawing.line
            # A hint is markup with fields: all else in it is to stand there as it is.
            words = [(name, _MARKUP.sub(lambda found: f"&#{ord(found[0])};", text)) for name, text in mark.hover]
            _add_hover(drawing, draw("x", "y", source=source, **style), words)
        case Area():
            _add_boxes(drawing, _area_boxes(mark), "idle", legend)
        case Dots():
            _add_dots(drawing, mark, legend)
        case Links():
            _, x, begin, end = zip(*mark.links, strict=True)
            drawing.segment(x, begin, x, end, color=INK)
            drawing.scatter(x, end, size=6, color=INK, **legend)
        case Rule():
            span = {"y": [mark.at]} if mark.level else {"x": [mark.at]}
            draw = drawing.hspan if mark.level else drawing.vspan
            dash = "dashed" if mark.dashed else "solid"
            draw(**span, legend_label=mark.wording, line_color=mark.colour, line_width=1.8, line_dash=dash)


def _area_boxes(area: Area) -> list[Box]:
    """Return an area as boxes that say how high it is there."""
    return [
        Box(
            float(begin), float(until), float(high), float(low), area.colour, "", area.legend,
            (f"{high - low:.3g} {area.unit}", f"at {spell_seconds(float(begin))}"),
        )
        for begin, until, low, high in zip(area.edges, area.edges[1:], area.low, area.high, strict=False)
        if high > low
    ]  # fmt: skip


def _add_boxes(drawing: Any, boxes: Sequence[Box], role: str, legend: dict[str, str]) -> None:
    """Draw boxes that say what they are (if they have a head), with their labels as far as these fit."""
    if not boxes:
        return
    columns = {
        key: [getattr(box, key) for box in boxes] for key in ("left", "right", "top", "bottom", "colour", "head")
    }
    source = ColumnDataSource({**columns, "facts": ["\n".join(box.facts) for box in boxes]})
    style = {"fill_color": "colour", "line_color": "white", "line_width": 0.6, **_LOOKS.get(role, {}), **legend}
    drawn = drawing.quad("left", "right", "top", "bottom", source=source, **style)
    silent = style.get("fill_alpha") == 0 or not boxes[0].head
    if not silent:
        drawing.add_tools(HoverTool(renderers=[drawn], tooltips=_HINT.format(font=_FONT), visible=False))
    if any(box.label for box in boxes) and not silent:
        _fit_labels(drawing, source, boxes)
    beside = [box for box in boxes if box.beside]
    if beside:
        words: dict[str, Any] = {"x_offset": 6, "text_baseline": "middle", "text_font_size": "12px", "text_color": INK}
        where = [box.right for box in beside], [box.middle for box in beside]
        drawing.text(*where, [box.beside for box in beside], **words)


def _fit_labels(drawing: Any, source: Any, boxes: Sequence[Box]) -> None:
    """Let the browser write labels into boxes, as far as they fit there in each view."""
    labels = ColumnDataSource({"x": [], "y": [], "text": [], "size": [], "ink": []})
    drawing.text(
        "x", "y", "text", source=labels, text_font_size="size", text_color="ink", text_align="center",
        text_baseline="middle", text_font={"value": _FONT},
    )  # fmt: skip
    names, inks = [box.label for box in boxes], [contrast(box.colour) for box in boxes]
    arguments = {"plot": drawing, "boxes": source, "labels": labels, "names": names, "inks": inks}
    fit = CustomJS(args=arguments, code=_resource("labels.js"))
    drawing.js_on_change("inner_width", fit)
    drawing.js_on_change("inner_height", fit)
    for shown in (drawing.x_range, drawing.y_range):
        shown.js_on_change("start", fit)
        shown.js_on_change("end", fit)


def _add_dots(drawing: Any, dots: Dots, legend: dict[str, str]) -> None:
    """Draw markers, which may say what they are."""
    sizes = [dots.sizes] * len(dots.x) if isinstance(dots.sizes, int | float) else dots.sizes
    columns: dict[str, list[Any]] = {f"fact{number}": list(values) for number, (_, values) in enumerate(dots.hover)}
    columns |= {"x": list(dots.x), "y": list(dots.y), "size": [_PIXELS * size for size in sizes]}
    fill = "white" if dots.hollow else dots.colour
    drawn = drawing.scatter(
        "x", "y", source=ColumnDataSource(columns), size="size", marker=_MARKERS[dots.marker], fill_color=fill,
        line_color=dots.colour, **legend,
    )  # fmt: skip
    _add_hover(drawing, drawn, [(name, f"@fact{number}") for number, (name, _) in enumerate(dots.hover)])


def _add_hover(drawing: Any, drawn: Any, facts: Iterable[tuple[str, str]]) -> None:
    """Let a line or the like say its facts where the pointer is: names, each with a column of its data."""
    if facts:
        drawing.add_tools(HoverTool(renderers=[drawn], tooltips=list(facts), visible=False))


def _put_legend_below(drawing: Any) -> None:
    """Put the legend of a drawing, if it has one, below its axis; a click on an entry hides what it explains.

    Where a window is too narrow for its lines they get shorter, and the drawing gets higher.
    """
    for legend in list(drawing.legend):
        drawing.center.remove(legend)
        drawing.add_layout(legend, "below")
        count = len(legend.items)
        most, gap = (_MOST_IN_LINE - 1, 4) if count > _MOST_IN_LINE else (count, 14)
        legend.update(
            orientation="horizontal", click_policy="hide", location="top_left", border_line_color=None,
            label_text_color=INK, label_text_font=_FONT, label_text_font_size="12px", glyph_height=16, label_height=16,
            padding=2, margin=2, spacing=gap, ncols=most,
        )  # fmt: skip
        widest = _AROUND_WORDS + _LETTER * max(len(item.label.value) for item in legend.items)
        more = f"Math.ceil({count} / legend.ncols) - {-(-count // most)}"
        fit = f"""legend.ncols = Math.max(1, Math.min({most}, Math.floor(plot.inner_width / {widest})))
                  plot.height = {drawing.height} + {16 + gap} * ({more})"""
        drawing.js_on_change("inner_width", CustomJS(args={"legend": legend, "plot": drawing}, code=fit))
