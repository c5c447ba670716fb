"""The library of instances as a table that can be sorted, and a figure of the gaps that are open."""

from __future__ import annotations

import math
from html import escape
from typing import get_args

from mig_opt.instances.bundled import Difficulty, InstanceInfo, library
from mig_opt.instances.goals import goal_of

_COLUMNS = ("instance", "kind", "n", "GPUs", "goal", "best", "bound", "gap %", "class", "tried s", "evidence", "by")
_WIDTH, _LEFT, _ROW, _LEAST = 640, 250, 15, 1e-6
_COLOURS = {"recomputed": "#59a14f", "second proof": "#4e79a7", "claimed": "#f28e2b"}


def table() -> str:
    """Return the table of all instances, which is scrolled by itself where the page is narrow."""
    head = "".join(f"<th>{column}</th>" for column in _COLUMNS)
    rows = "\n".join(map(_row, library().infos.values()))
    parts = f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>"
    return f'<div class="table-wrapper container">\n<table class="docutils sortable">\n{parts}\n</table>\n</div>'


def _row(info: InstanceInfo) -> str:
    cells = [
        info.name,
        info.kind,
        str(info.n),
        info.fleet,
        ", ".join(filter(None, [info.goal, goal_of(info).unit])),
        "-" if info.best is None else f"{info.best.value:.6g}",
        "-" if info.lower_bound is None else f"{info.lower_bound.value:.6g}",
        "-" if info.gap is None else f"{100 * info.gap:.4f}",
        info.difficulty,
        f"{info.tried_s:g}",
        info.evidence,
        "-" if info.best is None else f"{info.best.found_by}: {info.best.method}, {info.best.date}",
    ]
    row = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
    order = get_args(Difficulty).index(info.difficulty)
    return f"<tr>{row}</tr>".replace(f"<td>{info.difficulty}<", f'<td data-order="{order}">{info.difficulty}<')


def gaps() -> str:
    """Return a drawing of the gaps of the open instances, the largest first."""
    found = sorted(((info.gap or _LEAST, info) for info in library().infos.values() if not info.solved), key=_first)
    span = math.log10(1 / _LEAST)

    def place(gap: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - 20) * (1 + math.log10(max(gap, _LEAST)) / span)

    height = _ROW * len(found) + 40
    parts = [f'<svg viewBox="0 0 {_WIDTH} {height}" xmlns="http://www.w3.org/2000/svg" font-size="10" role="img">']
    parts.append(f"<title>Gaps of {len(found)} open instances</title>")
    for power in range(-6, 1):
        x = place(10.0**power)
        parts.append(f'<line x1="{x:.1f}" y1="20" x2="{x:.1f}" y2="{height}" stroke="#ccc"/>')
        parts.append(
            f'<text x="{x:.1f}" y="14" text-anchor="middle" fill="currentColor">{100 * 10.0**power:g} %</text>'
        )
    for row, (gap, info) in enumerate(found):
        y = 32 + _ROW * row
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 3}" text-anchor="end" fill="currentColor">{info.name}</text>')
        parts.append(f'<circle cx="{place(gap):.1f}" cy="{y}" r="4" fill="{_COLOURS[info.evidence]}"/>')
    legend = ", ".join(f'<span style="color: {colour}">●</span> {name}' for name, colour in _COLOURS.items())
    return f'<figure class="gpu">\n{"".join(parts)}</svg>\n<figcaption>Bounds: {legend}</figcaption>\n</figure>'


def _first(entry: tuple[float, InstanceInfo]) -> tuple[float, str]:
    return -entry[0], entry[1].name
