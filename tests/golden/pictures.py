"""Pictures in words: what is drawn where, by its id, with its texts and colours; nothing that depends on fonts."""

import contextlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

_MOST_POINTS = 12


@contextlib.contextmanager
def drawn_figures() -> Iterator[list[Any]]:
    """Collect the figures that matplotlib would write, in place of writing them."""
    from matplotlib.backend_bases import FigureCanvasBase

    figures: list[Any] = []
    with mock.patch.object(FigureCanvasBase, "print_figure", lambda canvas, *_, **__: figures.append(canvas.figure)):
        yield figures


def figure_lines(figure: Any) -> Iterator[str]:
    """Yield the lines that describe a figure of matplotlib."""
    from matplotlib.legend import Legend

    figure.draw_without_rendering()
    width, height = figure.get_size_inches()
    yield f"figure of {width:.1f} x {height:.1f} inches"
    yield from (f"  text {text.get_text()!r}" for text in figure.texts)
    for axes in figure.axes:
        yield f"  axes {axes.get_label()!r}: {_numbers(axes.get_xlim())} and {_numbers(axes.get_ylim())}"
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            shown = (tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high)
            ticks = [label.get_text().replace("\n", " / ") for label in shown if label.get_visible()]
            yield f"    {axis.axis_name}, {axis.get_scale()}, {axis.label.get_text()!r}: {' | '.join(ticks)}"
        named = [artist for artist in axes.get_children() if artist.get_gid()]
        yield from sorted(f"    {_artist(artist)}" for artist in named)
    for legend in figure.findobj(Legend):
        yield from (f"  legend {text.get_text()!r}" for text in legend.get_texts())


def _artist(artist: Any) -> str:
    from matplotlib.colors import to_hex

    def colour(name: str) -> str:
        return to_hex(getattr(artist, f"get_{name}")(), keep_alpha=True)

    kind, line = type(artist).__name__, [artist.get_gid()]
    if kind == "Rectangle":
        box = artist.get_x(), artist.get_y(), artist.get_width(), artist.get_height()
        line += ["box", _numbers(box), colour("facecolor"), artist.get_hatch() or ""]
    elif kind in ("Text", "Annotation"):
        at = artist.xy if kind == "Annotation" else artist.get_position()
        line += ["text", _numbers(at), repr(artist.get_text()), colour("color")]
    elif kind == "Line2D":
        points = list(zip(*map(list, artist.get_data()), strict=True))
        line += ["line", _points(points), colour("color"), str(artist.get_linestyle()), str(artist.get_marker())]
    elif kind == "StepPatch":
        levels, edges, _ = artist.get_data()
        line += ["steps", _numbers(edges), _numbers(levels), colour("edgecolor")]
    elif hasattr(artist, "get_offsets") and len(artist.get_offsets()):
        line += ["dots", _points(artist.get_offsets()), _numbers(artist.get_sizes())]
    elif hasattr(artist, "get_paths"):
        line += ["area", *(_points(path.vertices) for path in artist.get_paths()), to_hex(artist.get_facecolor()[0])]
    return " ".join(filter(None, [*line, "" if artist.get_visible() else "hidden"]))


def _points(points: Sequence[Any]) -> str:
    """Return points as text; of very many the first and last, their number, and the sum of their coordinates."""
    shown = [f"({_numbers(point)})" for point in points]
    if len(shown) <= _MOST_POINTS:
        return " ".join(shown)
    ends = shown[: _MOST_POINTS // 2], shown[-_MOST_POINTS // 2 :]
    sums = _numbers(map(sum, zip(*points, strict=True)))
    return f"{' '.join(ends[0])} ... {' '.join(ends[1])}, {len(shown)} points, sum ({sums})"


def _numbers(values: Any) -> str:
    return " ".join(f"{float(value):.4g}" for value in values)


def page_lines(path: Path) -> Iterator[str]:
    """Yield the lines that describe a page to explore."""
    page = path.read_text(encoding="utf-8")
    for tag in ("title", "h1", "li"):
        yield from (f"{tag} {text}" for text in re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL))
    found = re.search(r'id="item">(.*?)</script>', page, re.DOTALL)
    parts: dict[str, Any] = {}

    def collect(value: Any) -> None:
        if isinstance(value, dict) and "name" in value and "id" in value:
            parts[value["id"]] = value
        for entry in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            collect(entry)

    collect(json.loads(found[1]) if found else {})

    def part(value: Any) -> tuple[str, dict[str, Any]]:
        whole = parts.get(value.get("id"), value)
        return whole.get("name", ""), whole.get("attributes", {})

    for value in parts.values():
        name, attributes = part(value)
        if name == "Figure":
            yield from _drawing_lines(part, attributes)
        elif name == "LegendItem":
            yield f"  legend {_told(attributes.get('label', ''))}"
        elif name.endswith("Tool"):
            yield f"  tool {name} {_told(attributes.get('tooltips', ''))}"


def _drawing_lines(part: Any, attributes: dict[str, Any]) -> Iterator[str]:
    yield f"drawing {attributes.get('height', '')} high"
    for key in ("x_range", "y_range"):
        kind, span = part(attributes.get(key, {}))
        yield f"  {key} {kind} {_told(span)}"
    for side in ("left", "below", "right", "above"):
        for entry in attributes.get(side, ()):
            kind, own = part(entry)
            yield f"  {side} {kind} {own.get('axis_label', '')!r} {_told(own.get('major_label_overrides', ''))}"
    for entry in attributes.get("renderers", ()):
        yield from _renderer_lines(part, part(entry))


def _renderer_lines(part: Any, renderer: tuple[str, dict[str, Any]]) -> Iterator[str]:
    glyph, style = part(renderer[1].get("glyph", {}))
    source = part(renderer[1].get("data_source", {}))[1]
    told = ", ".join(f"{key} {_told(value)}" for key, value in sorted(style.items()))
    yield f"  {glyph or renderer[0]}: {told}"
    columns = dict(source.get("data", {}).get("entries", ()))
    yield f"    {' | '.join(columns)}"
    for row in zip(*columns.values(), strict=True):
        cells = (f"{cell:.5g}" if isinstance(cell, float) else json.dumps(cell, ensure_ascii=False) for cell in row)
        yield f"    {' | '.join(cells)}"


def _told(value: Any) -> str:
    """Return a property of bokeh as text, without numbers of parts."""
    if isinstance(value, dict):
        if value.get("type") in ("value", "field", "map"):
            return _told(value.get("value", value.get("field", value.get("entries", ""))))
        kept = {key: entry for key, entry in value.items() if key not in ("id", "type", "js_property_callbacks")}
        return "{" + ", ".join(f"{key}: {_told(entry)}" for key, entry in kept.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_told, value)) + "]"
    return f"{value:.5g}" if isinstance(value, float) else str(value)
