"""Pictures of executions: the plan above, and below it what was measured."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mig_opt.batch.batch import Batch
from mig_opt.batch.schedule import Schedule
from mig_opt.views.batch.layout import ScheduleLayout, schedule_problems
from mig_opt.views.batch.pages import execution_page
from mig_opt.views.batch.schedules import ScheduleChart
from mig_opt.views.output import draw_figure, save_chart

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_execution(batch: Batch, plan: Schedule, measured: Schedule, *, title: str | None = None) -> Figure:
    """Draw a plan and the schedule that it was in truth, one above the other.

    Parameters
    ----------
    batch : Batch
        The batch that was planned.
    plan, measured : Schedule
        The schedule that was planned, and the one that was measured.
    title : str, optional
        By default the batch's name and both makespans.

    Returns
    -------
    matplotlib.figure.Figure
        For each GPU a panel with the plan, then for each GPU one with what was measured.

    Raises
    ------
    InputError
        As :func:`plot_schedule`.
    """
    problems = [*schedule_problems(batch, plan, None), *schedule_problems(batch, measured, None)]
    return draw_figure(problems, lambda: ScheduleChart(ScheduleLayout.of_execution(batch, plan, measured, title)))


def save_execution_plot(
    batch: Batch, plan: Schedule, measured: Schedule, path: str | os.PathLike[str], *, dpi: float = 150
) -> None:
    """Write the chart of :func:`plot_execution` to a file.

    Parameters
    ----------
    batch, plan, measured
        As for :func:`plot_execution`.
    path : path-like
        The file; its suffix gives the format: png, pdf, svg or html.
    dpi : float
        Dots per inch of a png.

    Raises
    ------
    InputError
        As :func:`save_plot`.
    """
    save_chart(
        lambda: plot_execution(batch, plan, measured), lambda: execution_page(batch, plan, measured, None), path, dpi
    )
