"""The best schedule of a small trace, with all arrivals known: a reference for online schedulers."""

from __future__ import annotations

import dataclasses
import functools
import math
from dataclasses import dataclass
from typing import Unpack, get_args

from mig_opt.batch.batch import Batch
from mig_opt.batch.integer_batch import equal_within_resolution
from mig_opt.batch.schedule import Schedule
from mig_opt.errors import Problem
from mig_opt.fleet.bounds import trace_bounds
from mig_opt.fleet.trace import Trace, batch_of, disturbances
from mig_opt.method.control import Control, run
from mig_opt.method.options import RunKeywords, run_options
from mig_opt.method.registry import Method
from mig_opt.method.report import Facts
from mig_opt.method.result import Result
from mig_opt.models.fleet.arrivals import TraceGoal, best_schedule, seconds_of
from mig_opt.validation.batch.schedules import violations_of_method
from mig_opt.validation.fleet.admissions import too_late_jobs

_METHOD = Method(
    "optimum",
    "exact",
    "every job with its place and time, by constraint programming",
    "this package",
    "mig_opt.models.fleet.arrivals:best_schedule",
    packages=("ortools",),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceOptimum(Result[Schedule]):
    """Outcome of :func:`mig_opt.optimum`: its plan is a schedule, its lower bound counts seconds.

    No schedule without preemption and migration falls below the lower bound. ``proven`` has the goal if the schedule is
    the best one, as exactly as ticks of integer time tell.

    Attributes
    ----------
    goal : str
        ``makespan``, or ``completion`` for the sum of all ends.
    batch : Batch
        The jobs as tasks, so that :func:`mig_opt.validate` can check the schedule.
    """

    goal: TraceGoal
    batch: Batch

    @property
    def schedule(self) -> Schedule | None:
        """The best schedule that was found."""
        return self.plan

    @property
    def objective(self) -> float | None:
        """Seconds that the schedule achieves; None without one."""
        return None if self.plan is None else seconds_of(self.goal, self.plan)

    @property
    def value(self) -> float:
        """Seconds that the schedule achieves; infinite without one."""
        return math.inf if self.objective is None else self.objective

    def figures(self) -> Facts:
        """Return the goal, its value and its lower bound."""
        return [("goal", self.goal), ("value", f"{self.value:.6g} s"), ("lower bound", f"{self.lower_bound:.6g} s")]


def trace_optimum(
    trace: Trace, goal: TraceGoal = "makespan", *, time_limit: float | None = None, **options: Unpack[RunKeywords]
) -> TraceOptimum:
    """Return the best schedule of a small trace for somebody who knows all arrivals.

    It is the best one without preemption and migration, of jobs that PCIe does not slow down. The bounds of
    :func:`mig_opt.bounds` help to prove it.

    Parameters
    ----------
    trace : Trace
        About a dozen jobs.
    goal : str
        ``makespan``, or ``completion`` for the sum of all ends.
    time_limit : float, optional
        Seconds.
    **options
        The other :class:`~mig_opt.method.options.RunOptions`, as for :func:`mig_opt.solve`. The objective is the
        makespan or the sum of all ends, in seconds.

    Returns
    -------
    TraceOptimum
        The best schedule that was found, which has passed the validator. Ctrl-C ends the run early; the best schedule
        is kept.

    Raises
    ------
    InputError
        If a job can run nowhere, or the goal is unknown.

    Examples
    --------
    >>> from mig_opt import Job, get_gpu
    >>> jobs = (Job("a", 0.0, {4: 10.0}), Job("b", 5.0, {4: 2.0}), Job("c", 5.0, {4: 4.0}))
    >>> found = trace_optimum(Trace(jobs, get_gpu("A30")), "completion", workers=1)
    >>> round(found.value, 3), found.proven  # 10.13, 12.13 and 16.13
    (38.39, ('completion',))
    """
    problems = [*too_late_jobs(trace), *disturbances(trace)]
    if goal not in get_args(TraceGoal):
        problems.append(Problem("goal", f"must be makespan or completion, is {goal!r:.60}"))
    settings = run_options(also=problems, time_limit=time_limit, **options)
    # In the model PCIe slows nobody down.
    alone = trace.replace(jobs=tuple(dataclasses.replace(job, pcie_gbps=0.0) for job in trace.jobs))
    best = getattr(trace_bounds(alone, resizing=False), goal)[0]
    batch = batch_of(trace)
    control = Control[Schedule](settings, judge=lambda schedule: (seconds_of(goal, schedule),))

    def work() -> None:
        control.raise_bound(best.value, best.reason)
        best_schedule(trace, goal, control, at_least=best.value)

    return run(
        control,
        trace,
        _METHOD,
        work,
        violations=lambda schedule: _violations(trace, batch, schedule),
        optimal=lambda: bool(control.proven),
        same=equal_within_resolution,
        make_result=functools.partial(TraceOptimum, goal=goal, batch=batch),
    )


def _violations(trace: Trace, batch: Batch, schedule: Schedule) -> list[object]:
    arrivals = {job.name: job.arrival for job in trace.jobs}
    early = [f"job {run.task!r} runs before it arrives" for run in schedule.runs if run.begin < arrivals[run.task]]
    return [*violations_of_method(batch, schedule), *early]
