"""Pages to explore for schedules and executions: every task says where and when it runs."""

from __future__ import annotations

from functools import partial
from typing import Any

from mig_opt.batch.batch import Batch
from mig_opt.batch.schedule import Schedule
from mig_opt.views.batch.layout import (
    EARLIER,
    EARLIER_SIGN,
    IDLE_SIGN,
    OPERATIONS,
    Box,
    ScheduleLayout,
    schedule_problems,
)
from mig_opt.views.output import compose_page
from mig_opt.views.page import (
    Mark,
    Page,
    SlicesGraph,
    add_lines,
    add_marks,
    legend_below,
    seconds_range,
    uncovered,
)
from mig_opt.views.texts import IDLE, INK, one_line


def schedule_page(batch: Batch, schedule: Schedule, lower_bound: float | None, title: str | None) -> Page:
    """Return the page of one schedule."""
    problems = schedule_problems(batch, schedule, lower_bound)
    return compose_page(problems, lambda: _page(ScheduleLayout.of_schedule(batch, schedule, lower_bound, title)))


def execution_page(batch: Batch, plan: Schedule, measured: Schedule, title: str | None) -> Page:
    """Return the page of a plan above its execution."""
    problems = [*schedule_problems(batch, plan, None), *schedule_problems(batch, measured, None)]
    return compose_page(problems, lambda: _page(ScheduleLayout.of_execution(batch, plan, measured, title)))


def _page(layout: ScheduleLayout) -> Page:
    graph = SlicesGraph(layout.panel_names, layout.batch.gpu.memory_slices, seconds_range(*layout.limits))
    mark = partial(_mark, graph)
    earlier = [mark(box, colour=EARLIER, head=EARLIER_SIGN) for _, box in layout.earlier()]
    colours, runs = layout.colours(), []
    for run in layout.runs():
        box, name = Box.of(layout.batch, run, run.begin, run.end), one_line(run.task)
        runs.append(mark(box, colour=colours[run.task], head=name, facts=[f"on {run.profile}"], label=name))
    operations: dict[str, list[Mark]] = {kind: [] for kind in OPERATIONS}
    for part in layout.operations:
        (word, colour), box = OPERATIONS[part.kind], Box.of(layout.batch, part, part.begin, part.end)
        operations[part.kind].append(mark(box, colour=colour, head=f"{word} of {part.profile}"))
    instances = [mark(box, colour=IDLE, head=f"{profile} without a task") for profile, box in layout.instances()]
    idle = uncovered(instances, [*earlier, *runs, *operations["create"], *operations["destroy"]])
    add_marks(graph.drawing, idle, IDLE_SIGN, line_width=0)
    add_marks(graph.drawing, earlier, EARLIER_SIGN, hatch_pattern="right_diagonal_line", hatch_color="#8a8a8a")
    add_marks(graph.drawing, runs)
    for kind, (word, colour) in OPERATIONS.items():
        # An edge of the same colour is seen however short the operation is.
        add_marks(graph.drawing, operations[kind], word, line_color=colour, line_width=1)
    add_marks(graph.drawing, instances, silent=True, fill_alpha=0, line_color=INK, line_width=0.9)
    lines = [(line.seconds, line.wording, line.colour, line.dashed) for line in reversed(layout.lines)]
    add_lines(graph.drawing, lines)
    legend_below(graph.drawing)
    return Page(layout.title, drawings=[graph.drawing])


def _mark(graph: SlicesGraph, box: Box, **words: Any) -> Mark:
    return graph.mark(box.gpu, box.slices, (box.begin, box.end), **words)
