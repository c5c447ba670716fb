"""Schedules: runs of tasks on instances, and the operations that create and destroy the instances."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from mig_opt.batch.batch import Batch, wrong_batch
from mig_opt.errors import Problem
from mig_opt.method.registry import imported
from mig_opt.method.result import Result, Rows
from mig_opt.rules import wrong_type

OperationKind = Literal["create", "destroy"]


@dataclass(frozen=True, slots=True)
class Run:
    """A task on an instance from ``begin`` to ``end`` (seconds).

    Attributes
    ----------
    task : str
        Name of the task.
    gpu : int
        Index of the GPU, from 0.
    profile : str
        Profile name of the instance.
    start : int
        Start slice of the instance.
    begin, end : float
        Seconds after the start of the batch.
    """

    task: str
    gpu: int
    profile: str
    start: int
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Operation:
    """A creation or destruction of an instance from ``begin`` to ``end`` (seconds).

    The attributes are those of :class:`Run`, with ``kind`` (``create`` or ``destroy``) in place of the task.
    """

    kind: OperationKind
    gpu: int
    profile: str
    start: int
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Schedule:
    """Runs and operations.

    Attributes
    ----------
    runs : tuple of Run
        One for each task of the batch.
    operations : tuple of Operation or None
        None if the operations are not known; :func:`mig_opt.validate` then looks for some.
    stated_makespan : float or None
        The makespan that a schedule file claims; the validator compares it with the true one.

    Examples
    --------
    >>> schedule = Schedule((Run("a", 0, "4g.24gb", 0, begin=0.13, end=2.13),))
    >>> schedule.makespan
    2.13
    """

    runs: tuple[Run, ...]
    operations: tuple[Operation, ...] | None = None
    stated_makespan: float | None = dataclasses.field(default=None, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "runs", tuple(self.runs))
        if self.operations is not None:
            object.__setattr__(self, "operations", tuple(self.operations))

    @property
    def makespan(self) -> float:
        """The last end of a run in seconds (0 without runs); destructions after it do not count."""
        return max((run.end for run in self.runs), default=0.0)

    def utilisation(self, batch: Batch) -> float:
        """Return the share of all compute slices' time until the makespan in which a task runs (0 to 1)."""
        if self.makespan <= 0:
            return 0.0
        used = sum(batch.gpu.profile(run.profile).compute_slices * (run.end - run.begin) for run in self.runs)
        return used / (batch.gpus * batch.gpu.compute_slices * self.makespan)

    def replace(
        self,
        *,
        runs: Iterable[Run] | None = None,
        operations: Iterable[Operation] | None = None,
    ) -> Schedule:
        """Return a copy with other runs or operations, and no stated makespan.

        Parameters
        ----------
        runs : iterable of Run, optional
            The new runs; by default those of this schedule.
        operations : iterable of Operation, optional
            The new operations; by default those of this schedule.

        Returns
        -------
        Schedule
            The copy.
        """
        return Schedule(
            self.runs if runs is None else tuple(runs),
            self.operations if operations is None else tuple(operations),
        )

    def _repr_html_(self) -> str:
        return str(imported("mig_opt.views.cards.batch:schedule_card")(self))

    def to_frame(self) -> Any:
        """Return the runs, by GPU and begin, as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            A column for each attribute of :class:`mig_opt.Run`.

        Raises
        ------
        InputError
            If pandas is not installed.

        Examples
        --------
        >>> schedule = Schedule((Run("a", 0, "4g.24gb", 0, begin=0.13, end=2.13),))
        >>> print(schedule.to_frame().to_string(index=False))
        task  gpu profile  start  begin  end
           a    0 4g.24gb      0   0.13 2.13
        """
        return imported("mig_opt.views.cards.batch:schedule_frame")(self)

    def plot(self, batch: Batch, *, lower_bound: float | None = None, title: str | None = None) -> Any:
        """Draw the runs and operations on the GPUs of their batch, as :func:`mig_opt.views.schedule_scene` says.

        Parameters
        ----------
        batch : Batch
            The batch that was planned.
        lower_bound : float, optional
            Seconds; drawn as a dashed line beside the makespan.
        title : str, optional
            In place of the usual one.

        Returns
        -------
        matplotlib.figure.Figure
            The figure, which a notebook shows.

        Raises
        ------
        InputError
            If matplotlib is not installed, or the schedule does not belong to GPUs as those of the batch.

        Examples
        --------
        >>> from mig_opt import Batch, Task, get_gpu
        >>> batch = Batch((Task("a", {4: 2.0}),), get_gpu("A30"))
        >>> figure = Schedule((Run("a", 0, "4g.24gb", 0, begin=0.13, end=2.13),)).plot(batch)
        >>> figure.axes[0].get_xlabel()
        'time in seconds'
        """
        return imported("mig_opt.views:plot")(batch, self, lower_bound=lower_bound, title=title)


def wrong_types(batch: object, schedule: object) -> Iterator[Problem]:
    """Yield a problem for each that is something else altogether."""
    yield from wrong_batch(batch)
    if not isinstance(schedule, Schedule):
        yield wrong_type("schedule", schedule, "a Schedule, for example that of a ScheduleResult")


@dataclass(frozen=True, slots=True)
class ScheduleResult(Result[Schedule]):
    """Outcome of :func:`mig_opt.solve`: its plan is a schedule, its lower bound counts seconds.

    Attributes
    ----------
    batch : Batch or None
        The batch that was planned, for pictures; None for a result from a file.
    """

    batch: Batch | None = dataclasses.field(default=None, compare=False, repr=False)

    @property
    def schedule(self) -> Schedule | None:
        """The best schedule found; it has passed the validator."""
        return self.plan

    @property
    def makespan(self) -> float | None:
        """Makespan of the schedule in seconds; None without a schedule."""
        return None if self.plan is None else self.plan.makespan

    @property
    def objective(self) -> float | None:
        """Makespan of the schedule in seconds; None without a schedule."""
        return self.makespan

    def rows(self) -> Rows:
        """Return method, makespan, lower bound and gap."""
        return [
            ("method", self.method),
            ("makespan", "-" if self.makespan is None else f"{self.makespan:.6g} s"),
            ("lower bound", f"{self.lower_bound:.6g} s"),
            ("gap", "-" if self.gap is None else f"{self.gap:.3%}"),
        ]

    def _repr_html_(self) -> str:
        return str(imported("mig_opt.views.cards.batch:schedule_result_card")(self))

    def to_frame(self) -> Any:
        """Return the runs of the schedule as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            As that of a schedule; without lines if there is none.

        Raises
        ------
        InputError
            If pandas is not installed.

        Examples
        --------
        >>> from mig_opt import load, solve
        >>> frame = solve(load("rodinia-a30"), "far").to_frame()
        >>> print(len(frame), *frame.columns)
        8 task gpu profile start begin end
        """
        return imported("mig_opt.views.cards.batch:result_frame")(self)

    def plot(self, *, title: str | None = None) -> Any:
        """Draw the schedule with its lower bound, as :func:`mig_opt.views.schedule_scene` says.

        Parameters
        ----------
        title : str, optional
            In place of the usual one.

        Returns
        -------
        matplotlib.figure.Figure
            The figure, which a notebook shows.

        Raises
        ------
        InputError
            If matplotlib is not installed, there is no schedule, or the result is from a file and knows no batch.

        Examples
        --------
        >>> from mig_opt import load, solve
        >>> figure = solve(load("rodinia-a30"), "far").plot(title="eight kernels")
        >>> figure.axes[0].get_xlabel()
        'time in seconds'
        """
        return imported("mig_opt.views.cards.batch:plotted_result")(self, title=title)
