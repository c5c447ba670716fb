"""Pictures of executions: the plan above, and below it what was measured."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING

from mig_opt.batch.batch import Batch
from mig_opt.batch.schedule import Schedule
from mig_opt.plotting.batch.schedules import ScheduleChart, schedule_problems
from mig_opt.plotting.output import draw_figure, save_figure
from mig_opt.plotting.sheet import BOUND, INK
from mig_opt.plotting.texts import spell_seconds

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
    return draw_figure(problems, lambda: ExecutionChart(batch, plan, measured, title))


def save_execution_plot(
    batch: Batch, plan: Schedule, measured: Schedule, path: str | os.PathLike[str], *, dpi: float = 150
) -> None:
    """Write the chart of :func:`plot_execution` to a file.

    Parameters
    ----------
    batch, plan, measured
        As for :func:`plot_execution`.
    path : path-like
        The file; its suffix gives the format: png, pdf or svg.
    dpi : float
        Dots per inch of a png.

    Raises
    ------
    InputError
        As :func:`save_plot`.
    """
    save_figure(lambda: plot_execution(batch, plan, measured), path, dpi)


class ExecutionChart(ScheduleChart):
    """The plan of a batch above the execution, on the same axis of time."""

    def __init__(self, batch: Batch, plan: Schedule, measured: Schedule, title: str | None) -> None:
        self.gpus, self.plan, self.measured = batch.gpus, plan, measured
        if title is None:
            spelled = (spell_seconds(each.makespan) for each in (plan, measured))
            title = " · ".join(filter(None, [batch.name, "planned {}, measured {}".format(*spelled)]))
        below = [dataclasses.replace(live, gpu=live.gpu + batch.gpus) for live in batch.initial]
        runs = [dataclasses.replace(run, gpu=run.gpu + batch.gpus) for run in measured.runs]
        operations = [dataclasses.replace(each, gpu=each.gpu + batch.gpus) for each in measured.operations or ()]
        both = Schedule((*plan.runs, *runs), (*(plan.operations or ()), *operations))
        super().__init__(batch.replace(gpus=2 * batch.gpus, initial=(*batch.initial, *below)), both, None, title)

    def panel_name(self, gpu: int) -> str:
        """Return the name beside a panel."""
        name = "plan" if gpu < self.gpus else "measured"
        return name if self.gpus == 1 else f"{name} {gpu % self.gpus}"

    def lines(self) -> list[tuple[float, str, str, str]]:
        """Return the lines of both makespans."""
        return [(self.measured.makespan, "measured", INK, "-"), (self.plan.makespan, "planned", BOUND, "--")]
