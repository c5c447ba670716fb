"""Cards and frames: a report as a notebook shows it, readable on light and dark pages, and its entries as a table."""

from __future__ import annotations

import html
import importlib.util
import sys
from collections.abc import Sequence
from typing import Any

from mig_opt.errors import InputError, Problem
from mig_opt.method.report import Table
from mig_opt.views.reports import report_of
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
_MOST_BOXES = 400
_ROW = 10  # units of the small picture for each memory slice; a row has at least 2.2 of them


def card_of(thing: Any) -> str:
    """Return the card of something: title, facts, a small picture, and tables."""
    report = report_of(thing)
    rows = "".join(_row("td", [label, value]) for label, value in report.facts if value)
    facts = f'<table class="facts"><tbody>{rows}</tbody></table>' if report.facts else ""
    picture = _picture(*drawn) if (drawn := report.picture()) else ""
    tables = "".join(_table(part) for part in report.parts if isinstance(part, Table))
    return f'<div class="mig-opt">{_STYLE}<b>{html.escape(report.title)}</b>{facts}{picture}{tables}</div>'


def _table(table: Table) -> str:
    """Return the first lines of a table, and how many more there are."""
    lines = "".join(_row("td", [one_line(str(cell), sys.maxsize) for cell in row]) for row in table.rows[:MOST_ROWS])
    left = len(table.rows) - MOST_ROWS
    more = f'<div class="note">… and {left} more {table.noun}</div>' if left > 0 else ""
    return f"<table><thead>{_row('th', table.headers)}</thead><tbody>{lines}</tbody></table>{more}"


def _row(tag: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"


def _picture(scene: Scene, role: str) -> str:
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


def frame_of(thing: Any) -> Any:
    """Return the entries of something as a pandas frame; what an entry lacks is missing."""
    if importlib.util.find_spec("pandas") is None:
        message = 'tables as frames need pandas, which is not installed: pip install "mig-opt[frames]"'
        raise InputError([Problem("", message)])
    import pandas as pd

    report = report_of(thing)
    return pd.DataFrame(list(report.entries), columns=list(report.keys))
