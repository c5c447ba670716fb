"""Cards: what a notebook shows of an object in place of its text, readable on light and on dark pages."""

from __future__ import annotations

import functools
import html
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from mig_opt.method.result import Result, Status
from mig_opt.views import plot
from mig_opt.views.scene import Boxes, Scene
from mig_opt.views.texts import one_line

MOST_ROWS = 10
"""Lines of a table in a card."""

# Everything takes the ink of the page, so that no colour is wrong in the dark.
_STYLE = """<style>
.mig-opt {font-size: 13px; line-height: 1.4; max-width: 46em}
.mig-opt table {border-collapse: collapse; margin: 0.3em 0}
.mig-opt td, .mig-opt th {text-align: right; padding: 1px 10px 1px 0; background: none}
.mig-opt td:first-child, .mig-opt th:first-child, .mig-opt .facts td {text-align: left}
.mig-opt tr {background: none}
.mig-opt thead th {border-bottom: 1px solid color-mix(in srgb, currentColor 35%, transparent)}
.mig-opt .facts td:first-child {white-space: nowrap; vertical-align: top}
.mig-opt .facts td:first-child, .mig-opt .note {opacity: 0.65}
.mig-opt svg {display: block; width: 100%; margin: 0.4em 0}
</style>"""
_MARKS = {Status.OPTIMAL: "●", Status.FEASIBLE: "◐", Status.INFEASIBLE: "✕"}
_MOST_BOXES = 400
_ROW = 10  # units of the small picture for each memory slice; a row has at least 2.2 of them


@functools.singledispatch
def card_of(thing: Any) -> str:
    """Return the card of something."""
    raise NotImplementedError(f"a {type(thing).__name__} has no card")


@functools.singledispatch
def frame_of(thing: Any) -> Any:
    """Return the entries of something as a frame."""
    raise NotImplementedError(f"a {type(thing).__name__} has no frame")


@functools.singledispatch
def plotted(thing: Any, *of: Any, **options: Any) -> Any:
    """Draw something."""
    return plot(thing, *of, **options)


def card(title: str, *parts: str) -> str:
    """Return a card with a title, made of parts of HTML."""
    return f'<div class="mig-opt">{_STYLE}<b>{html.escape(title)}</b>{"".join(parts)}</div>'


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """Return labels and texts as a table."""
    lines = "".join(f"<tr><td>{html.escape(label)}</td><td>{html.escape(text)}</td></tr>" for label, text in rows)
    return f'<table class="facts"><tbody>{lines}</tbody></table>'


def table(head: Sequence[str], rows: Sequence[Sequence[object]], noun: str) -> str:
    """Return the first lines of a table, and how many more ``noun`` there are."""
    cells = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    lines = "".join(
        "<tr>" + "".join(f"<td>{html.escape(one_line(str(cell), sys.maxsize))}</td>" for cell in row) + "</tr>"
        for row in rows[:MOST_ROWS]
    )
    more = f'<div class="note">… and {len(rows) - MOST_ROWS} more {noun}</div>' if len(rows) > MOST_ROWS else ""
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{lines}</tbody></table>{more}"


def picture(scene: Scene, role: str) -> str:
    """Return the boxes of one role in the first panel as a small picture; none if there are too many to see."""
    panel = scene.panels[0]
    boxes = [box for group in panel.marks if isinstance(group, Boxes) and group.role == role for box in group.boxes]
    if not 0 < len(boxes) <= _MOST_BOXES or panel.rows is None or panel.x.limits is None:
        return ""
    # What lies before the first second is of no schedule that a method returns.
    across, down = 1000 / panel.x.limits[1], _ROW * max(1.0, 2.2 / panel.rows.step)
    drawn = "".join(
        f'<rect x="{across * box.left:.1f}" y="{down * box.top:.1f}" width="{across * (box.right - box.left):.1f}"'
        f' height="{down * (box.bottom - box.top) - 1:.1f}" fill="{box.colour}">'
        f"<title>{html.escape(', '.join([box.head, *box.facts]))}</title></rect>"
        for box in boxes
    )
    tall = down * panel.rows.height
    return (
        f'<svg viewBox="0 0 1000 {tall:.0f}" preserveAspectRatio="none" role="img"'
        f' style="height: {min(160, 0.9 * tall + 4):.0f}px">{drawn}</svg>'
    )


@card_of.register(Result)
def result_card(result: Result[Any], *parts: str) -> str:
    """Return the card of a result: its lines, with parts below them."""
    status = f"{_MARKS.get(result.status, '○')} {result.status.value}"
    runtime = f"{result.runtime_s:.{2 if result.runtime_s >= 1 else 3}f} s"
    reason = [("because", result.reason)] if result.reason else []
    return card(status, facts([*result.rows(), ("runtime", runtime), *reason]), *parts)
