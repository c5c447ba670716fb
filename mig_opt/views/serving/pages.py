"""Pages to explore for deployments and latencies: every segment says what it serves, and in which way."""

from __future__ import annotations

from typing import Any

import numpy as np

from mig_opt.rules import wrong_type
from mig_opt.serving.demand import Demand
from mig_opt.serving.deployment import Deployment, Segment
from mig_opt.simulation.serving.outcome import RequestSimulation
from mig_opt.texts import number_ranges, plural
from mig_opt.views.output import compose_page
from mig_opt.views.page import Mark, Page, add_hover, add_lines, add_marks, add_rows, add_steps, graph, legend_below
from mig_opt.views.serving.layout import (
    EMPTY,
    FARTHEST,
    LEAST_SHARE,
    LINES,
    LOST_SIGN,
    UNUSED,
    UNUSED_SIGN,
    DeploymentLayout,
    Row,
    deployment_problems,
    latency_lines,
    latency_title,
    spell_rate,
)
from mig_opt.views.texts import BOUND, one_line, spell_slices

_ROW, _GAP = 44, 0.16  # pixels of a row; share of it between two
_MOST_NOTED = 24
"""Services up to which there is a line on each above the picture."""


def deployment_page(deployment: Deployment, demand: Demand | None, title: str | None) -> Page:
    """Return the page of a deployment."""
    return compose_page(
        deployment_problems(deployment), lambda: _deployment_page(DeploymentLayout(deployment, demand, title))
    )


def _deployment_page(layout: DeploymentLayout) -> Page:
    from bokeh.models import FixedTicker

    kinds = {row.model.name for row in layout.rows}
    labels = [layout.row_label(row, kind=len(kinds) > 1).replace("\n", " · ") for row in layout.rows]
    slices = max((row.model.memory_slices for row in layout.rows), default=1)
    drawing = add_rows(graph(_ROW * max(2, len(labels)) + 90, wheel="ywheel_zoom"), labels, slices)
    drawing.xaxis.axis_label = "memory slice"
    ticks = {position + 0.5: str(position) for position in range(slices)}
    drawing.xaxis.ticker, drawing.xaxis.major_label_overrides = FixedTicker(ticks=list(ticks)), ticks
    drawing.xgrid.grid_line_color = drawing.xaxis.major_tick_line_color = None
    drawing.xaxis.visible = len({row.model.memory_slices for row in layout.rows}) == 1
    whole, unused, segments, lost = [], [], [], []
    for position, row in enumerate(layout.rows):
        gpus = f"{'GPU' if len(row.gpus) == 1 else 'GPUs'} {number_ranges(row.gpus)} ({row.model.name})"
        if not row.segments:
            everything = range(row.model.memory_slices)
            whole.append(_mark(position, everything, EMPTY, "no segment", [gpus], label="no segment"))
        unused += [_mark(position, free, UNUSED, UNUSED_SIGN, [gpus, spell_slices(free)]) for free in row.unused()]
        for _, segment in row.segments:
            colour, footprint, missing = layout.colours[segment.service], row.footprint(segment), row.lost(segment)
            facts = [gpus, *_facts(layout, row, segment)]
            name = one_line(segment.service)
            used = range(footprint.start, missing.start) if missing else footprint
            segments.append(_mark(position, used, colour, name, facts, label=f"{name} · {segment.profile}"))
            if missing:
                remark = f"{LOST_SIGN}: {segment.profile} of {name}"
                lost.append(_mark(position, missing, "#ffffff", remark, [gpus, spell_slices(missing)]))
    add_marks(drawing, whole, line_color=LINES)
    hatched: dict[str, Any] = {
        "hatch_pattern": "right_diagonal_line",
        "hatch_color": "#9a9a9a",
        "line_color": "#9a9a9a",
    }
    add_marks(drawing, unused, UNUSED_SIGN, **hatched)
    add_marks(drawing, lost, LOST_SIGN, **hatched)
    add_marks(drawing, segments)
    legend_below(drawing)
    notes = list(layout.service_labels)
    if len(notes) > _MOST_NOTED:
        notes = [f"{plural(len(notes), 'service')}; point at a segment to read about its service."]
    return Page(layout.title, notes, [drawing])


def _mark(position: int, slices: range, colour: str, head: str, facts: list[str], *, label: str = "") -> Mark:
    top, bottom = position + _GAP / 2, position + 1 - _GAP / 2
    return Mark(slices.start, slices.stop, top, bottom, colour, head, facts, label)


def _facts(layout: DeploymentLayout, row: Row, segment: Segment) -> list[str]:
    """Return what a segment says of itself."""
    return [
        f"{segment.profile}, {spell_slices(row.footprint(segment))}",
        f"{plural(segment.processes, 'process', 'processes')}, batches of {segment.batch}",
        f"{spell_rate(segment.throughput)} requests/s, {1000 * segment.latency:.4g} ms for each batch",
        f"service {layout.service_labels[layout.numbers[segment.service] - 1]}",
    ]


def latency_page(simulation: RequestSimulation, promise: float | None, title: str | None) -> Page:
    """Return the page of the latencies of simulated requests."""
    right = isinstance(simulation, RequestSimulation)
    problems = [] if right else [wrong_type("simulation", simulation, "what simulate_requests(...) returns")]
    return compose_page(problems, lambda: _latency_page(simulation, promise, title))


def _latency_page(simulation: RequestSimulation, promise: float | None, title: str | None) -> Page:
    from bokeh.models import NumeralTickFormatter, Range1d

    drawing = graph(
        460, x_range=Range1d(0, FARTHEST), y_range=Range1d(LEAST_SHARE, 100), wheel="wheel_zoom", y_axis_type="log"
    )
    drawing.xaxis.axis_label = "latency as a multiple of the SLO"
    drawing.yaxis.axis_label = "% of requests that take longer"
    drawing.yaxis.formatter = NumeralTickFormatter(format="0.[000]")
    for line in latency_lines(simulation):
        times, shares = line.steps()
        # A logarithm has no zero: the line ends below the picture.
        lines = add_steps(drawing, times, np.maximum(shares, LEAST_SHARE / 100), line.label, color=line.colour)
        multiple, share = "@x{0.000} times the SLO", "@y{0.0000} % of the requests"
        add_hover(drawing, lines, {"service": one_line(line.service.name), "longer than": multiple, "are": share})
    add_lines(drawing, [(1.0, "the SLO", BOUND, False)])
    if promise is not None:
        drawing.hspan(y=[100 * (1 - promise)], legend_label="the promise", line_color=BOUND, line_dash="dashed")
    legend_below(drawing)
    return Page(latency_title(simulation, title), drawings=[drawing])
