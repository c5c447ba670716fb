"""Schedules: runs of tasks on instances, and the operations that create and destroy the instances."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from mig_opt.batch.batch import Batch, wrong_batch
from mig_opt.errors import Problem
from mig_opt.method.report import Facts, spelled_gap
from mig_opt.method.result import Result
from mig_opt.method.shown import Shown
from mig_opt.rules import wrong_type
from mig_opt.rules.vocabulary import stated
from mig_opt.texts import in_seconds

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

    kind: Annotated[OperationKind, stated(description="Creation or destruction.")]
    gpu: int
    profile: str
    start: int
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Schedule(Shown):
    """Times at which each task runs on an instance, and at which the instances are created and destroyed.

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


def on_gpus(schedule: Schedule, number: Mapping[int, int]) -> Schedule:
    """Return a schedule with other numbers of its GPUs; what is on GPUs without one is left out."""
    return schedule.replace(
        runs=(dataclasses.replace(run, gpu=number[run.gpu]) for run in schedule.runs if run.gpu in number),
        operations=(
            dataclasses.replace(each, gpu=number[each.gpu]) for each in schedule.operations or () if each.gpu in number
        ),
    )


def wrong_types(batch: object, schedule: object) -> Iterator[Problem]:
    """Yield a problem for each that is something else altogether."""
    yield from wrong_batch(batch)
    if not isinstance(schedule, Schedule):
        yield wrong_type("schedule", schedule, "a Schedule, for example that of a ScheduleResult")


@dataclass(frozen=True, slots=True)
class ScheduleResult(Shown, Result[Schedule]):
    """Outcome of :func:`mig_opt.solve`: the schedule that was found, and the lower bound in seconds that was proven.

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

    def figures(self) -> Facts:
        """Return method, makespan, lower bound and gap, and the utilisation if the batch is known."""
        return [
            ("method", self.method),
            ("makespan", in_seconds(self.makespan)),
            ("lower bound", in_seconds(self.lower_bound)),
            ("gap", None if self.gap is None else spelled_gap(self.gap)),
            ("utilisation", f"{self.plan.utilisation(self.batch):.1%}" if self.plan and self.batch else None),
        ]
