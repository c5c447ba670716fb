"""Pages to explore for simulations: every run of a job says where and when it was, and how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mig_opt.batch.lifetimes import lifetimes
from mig_opt.fleet.admission import Acceptance
from mig_opt.fleet.log import Log, RunOutcome
from mig_opt.simulation.fleet.simulator import Simulation
from mig_opt.views.fleet.layout import (
    IDLE_SIGN,
    MARKS,
    MOST_FLEETS,
    Comparison,
    SimulationLayout,
    checked,
)
from mig_opt.views.fleet.series import acceptance_steps, busy_shares, fragmentation_steps, hops, wait_steps
from mig_opt.views.output import compose_page
from mig_opt.views.page import (
    Mark,
    Page,
    SlicesGraph,
    add_hover,
    add_lines,
    add_marks,
    add_rows,
    add_steps,
    graph,
    legend_below,
    seconds_range,
    uncovered,
)
from mig_opt.views.texts import BOUND, IDLE, INK, colour_of, one_line, spell_seconds

if TYPE_CHECKING:
    from mig_opt.fleet.bounds import TraceBounds

_MOST_GPUS, _MOST_RUNS = 64, 5000
"""GPUs and runs of a fleet that is drawn job by job."""
_BINS = 600
_GRAPH, _BAR = 260, 40  # pixels of a graph, and of each bar
_BAR_ROOM = 1.35  # of the longest bar, for what is written beside it
_ENDS = {RunOutcome.FINISHED: "done", RunOutcome.MIGRATED: "migrated at the end of this run", **MARKS}


def simulation_page(
    simulations: Simulation | Sequence[Simulation], bounds: TraceBounds | Acceptance | None, title: str | None
) -> Page:
    """Return the page of one simulation, or of several of the same trace."""
    found, problems = checked(simulations)
    return compose_page(problems, lambda: _page(SimulationLayout(found, bounds, title)))


def _page(layout: SimulationLayout) -> Page:
    times = seconds_range(0.0, layout.end)
    drawings = [_fleet(layout, index, times) for index in range(min(MOST_FLEETS, len(layout.logs)))]
    lines = _acceptance(layout, times) if layout.reject else _waits(layout)
    drawings += [_fragmentation(layout, times), lines]
    drawings += [_bars(layout, figure) for figure in layout.comparisons()]
    return Page(layout.title, drawings=drawings)


def _titled(drawing: Any, title: str) -> Any:
    drawing.title.text = title
    drawing.title.text_font = "Helvetica, Arial, sans-serif"
    drawing.title.text_color = INK
    return drawing


def _fleet(layout: SimulationLayout, index: int, times: Any) -> Any:
    log = layout.logs[index]
    detailed = log.trace.gpus <= _MOST_GPUS and len(log.run_job) <= _MOST_RUNS
    drawing = _jobs(log, times) if detailed else _use(log, layout.end, times)
    legend_below(drawing)
    return _titled(drawing, layout.summary(index))


def _jobs(log: Log, times: Any) -> Any:
    """Return the runs of a fleet over its memory slices."""
    gpu, jobs = log.trace.gpu, log.trace.jobs
    picture = SlicesGraph([f"GPU {number}" for number in range(log.trace.gpus)], gpu.memory_slices, times)
    runs = []
    for run in log.runs():
        job, start = jobs[run.job], run.placement.start
        waited = log.scheduled[run.job] - job.arrival
        facts = [f"job {run.job + 1}, arrived at {spell_seconds(job.arrival)}, waited {spell_seconds(waited)}"]
        facts += [f"on {run.placement.profile.name}; {_ENDS[run.outcome]}"]
        slices, name = range(start, start + run.placement.profile.memory_slices), one_line(job.name)
        runs.append(
            picture.mark(
                run.gpu, slices, (run.begin, run.end), colour=colour_of(run.job), head=name, facts=facts, label=name
            )
        )
    instances = []
    for each in lifetimes((), tuple(log.operations()))[0]:
        slices = range(each.start, each.start + gpu.profile(each.profile).memory_slices)
        span, head = (each.begin, min(each.end, times.end)), f"{each.profile} without a job"
        instances.append(picture.mark(each.gpu, slices, span, colour=IDLE, head=head))
    drawing = picture.drawing
    add_marks(drawing, uncovered(instances, runs), IDLE_SIGN, line_width=0)
    add_marks(drawing, runs)
    add_marks(drawing, instances, silent=True, fill_alpha=0, line_color="#8a8a8a", line_width=0.7)
    _add_hops(drawing, log, runs)
    for outcome, marker in ((RunOutcome.OUT_OF_MEMORY, "x"), (RunOutcome.STOPPED, "square")):
        ended = [mark for mark, run in zip(runs, log.runs(), strict=True) if run.outcome == outcome]
        if ended:
            x, y = [mark.right for mark in ended], [(mark.top + mark.bottom) / 2 for mark in ended]
            drawing.scatter(x, y, marker=marker, size=8, color=BOUND, legend_label=MARKS[outcome])
    return drawing


def _add_hops(drawing: Any, log: Log, runs: Sequence[Mark]) -> None:
    """Draw where migrating jobs went: a line from the old place to the new one, with a dot there."""
    found = hops(log)
    if found:
        ends = [[(runs[run].top + runs[run].bottom) / 2 for run in pair] for _, *pair in found]
        moments = [moment for moment, *_ in found]
        legend = "migration (to the dot)"
        drawing.segment(moments, [old for old, _ in ends], moments, [new for _, new in ends], color=INK)
        drawing.scatter(moments, [new for _, new in ends], size=6, color=INK, legend_label=legend)


def _use(log: Log, end: float, times: Any) -> Any:
    """Return the shares of the compute slices in use over time, by profile."""
    edges = np.linspace(0.0, end, _BINS + 1)
    drawing = graph(_GRAPH, x_range=times)
    drawing.yaxis.axis_label = "% of the compute slices"
    drawing.xaxis.axis_label = "time in seconds"
    names = list(dict.fromkeys(placement.profile.name for placement in log.geometry.placements))
    below = np.zeros(_BINS)
    for name, shares in busy_shares(log, edges).items():
        marks = [
            Mark(
                float(begin), float(until), float(high), float(low), colour_of(names.index(name)), f"busy with {name}",
                [f"{high - low:.3g} % of the compute slices", f"at {spell_seconds(float(begin))}"],
            )
            for begin, until, low, high in zip(edges, edges[1:], below, below + shares, strict=False)
            if high > low
        ]  # fmt: skip
        add_marks(drawing, marks, f"busy with {name}", line_width=0)
        below = below + shares
    return drawing


def _style(layout: SimulationLayout, index: int) -> dict[str, Any]:
    dashes = [round(2 * length) for length in layout.dashes(index)]
    return {"color": layout.colour(index), **({"line_dash": dashes} if dashes else {})}


def _fragmentation(layout: SimulationLayout, times: Any) -> Any:
    drawing = _titled(graph(_GRAPH, x_range=times), "Fragmentation, mean of the GPUs; dots are migrations")
    drawing.yaxis.axis_label = "%"
    drawing.xaxis.axis_label = "time in seconds"
    for index, (simulation, name) in enumerate(zip(layout.simulations, layout.names, strict=True)):
        steps = fragmentation_steps(simulation.log).thinned(layout.end)
        moments = np.append(steps.moments, max(simulation.metrics.makespan, steps.moments[-1]))
        line = add_steps(drawing, moments, np.append(steps.levels, steps.levels[-1]), name, **_style(layout, index))
        add_hover(drawing, line, {"scheduler": name, "at": "@x{0.000} s", "fragmentation": "@y{0.00} %"})
        moves = layout.moves[index]
        if len(moves):
            drawing.scatter(
                list(moves), list(steps.at(moves)), size=6, fill_color="white", line_color=layout.colour(index)
            )
    legend_below(drawing)
    return drawing


def _waits(layout: SimulationLayout) -> Any:
    from bokeh.models import Range1d

    title = "Waits: share of all jobs that had a place after so many seconds"
    found = [wait_steps(log) for log in layout.logs]
    until = 1.02 * max(float(steps.moments[-1]) for steps in found) or 1.0
    drawing = _titled(graph(_GRAPH, x_range=seconds_range(0.0, until), y_range=Range1d(0, 104)), title)
    drawing.yaxis.axis_label = "%"
    drawing.xaxis.axis_label = "seconds from the arrival to the start"
    for index, (steps, name) in enumerate(zip(found, layout.names, strict=True)):
        moments, levels = np.append(steps.moments, until), np.append(steps.levels, steps.levels[-1])
        line = add_steps(drawing, moments, levels, name, **_style(layout, index))
        add_hover(drawing, line, {"scheduler": name, "waited at most": "@x{0.000} s", "jobs": "@y{0.00} %"})
    legend_below(drawing)
    return drawing


def _acceptance(layout: SimulationLayout, times: Any) -> Any:
    from bokeh.models import Range1d

    title = "Acceptance: share of the jobs so far that were accepted"
    drawing = _titled(graph(_GRAPH, x_range=times, y_range=Range1d(0, 104)), title)
    drawing.yaxis.axis_label = "%"
    drawing.xaxis.axis_label = "time in seconds"
    for index, (log, name) in enumerate(zip(layout.logs, layout.names, strict=True)):
        steps = acceptance_steps(log)
        moments = np.append(steps.moments, max(layout.end, steps.moments[-1]))
        line = add_steps(drawing, moments, np.append(steps.levels, steps.levels[-1]), name, **_style(layout, index))
        add_hover(drawing, line, {"scheduler": name, "at": "@x{0.000} s", "accepted so far": "@y{0.00} %"})
    legend_below(drawing)
    return drawing


def _bars(layout: SimulationLayout, figure: Comparison) -> Any:
    drawing = _titled(graph(_BAR * len(layout.names) + 100), figure.heading)
    drawing.toolbar_location = None
    add_rows(drawing, layout.names, _BAR_ROOM * figure.most)
    drawing.xaxis.axis_label = figure.unit
    bars = [
        Mark(0.0, value, number + 0.15, number + 0.85, layout.colour(number), layout.names[number], [wording])
        for number, (value, wording) in enumerate(zip(figure.values, figure.wordings, strict=True))
    ]
    add_marks(drawing, bars)
    wordings: dict[str, Any] = {"x_offset": 6, "text_baseline": "middle", "text_font_size": "12px", "text_color": INK}
    rows = [number + 0.5 for number, _ in enumerate(bars)]
    drawing.text(list(figure.values), rows, list(figure.wordings), **wordings)
    if figure.bound is not None:
        add_lines(drawing, [(figure.bound, f"{figure.sign} ({figure.spelled_bound})", BOUND, True)])
    legend_below(drawing)
    return drawing
