"""Schedules: runs of tasks on instances, and the operations that create and destroy the instances.

The *lifetime* of an instance is the time in which it exists; the operations of a schedule or log tell those of all.
"""

from __future__ import annotations

import bisect
import dataclasses
import math
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple

from mig_opt.batch.batch import Batch, LiveInstance, wrong_batch
from mig_opt.errors import InputError, Problem
from mig_opt.gpu.model import Location
from mig_opt.method.report import Facts, spelled_gap
from mig_opt.method.result import Result
from mig_opt.method.shown import Shown
from mig_opt.rules import checked_value, hints_of, is_listed, wrong_type
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
    stated_makespan: float | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        # Searches make them by the hundred, so runs and operations are only looked at where a schedule is given.
        for name, entries in (("runs", self.runs), ("operations", self.operations)):
            if entries.__class__ is not tuple and (name == "runs" or entries is not None):
                if not is_listed(entries):
                    raise InputError([wrong_type(name, entries, f"a tuple of {name}")])
                object.__setattr__(self, name, tuple(entries))

    @property
    def makespan(self) -> float:
        """The last end of a run in seconds (0 without runs); destructions after it do not count."""
        return max((run.end for run in self.runs), default=0.0)

    def utilisation(self, batch: Batch) -> float:
        """Return the share of all compute slices' time until the makespan in which a task runs (0 to 1)."""
        if self.makespan <= 0:
            return 0.0
        used = sum(batch.kind(run.gpu).profile(run.profile).compute_slices * (run.end - run.begin) for run in self.runs)
        return used / (sum(len(gpus) * kind.compute_slices for kind, gpus in batch.kinds.items()) * self.makespan)

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
    known = schedule.operations
    return schedule.replace(
        runs=(dataclasses.replace(run, gpu=number[run.gpu]) for run in schedule.runs if run.gpu in number),
        operations=known and (dataclasses.replace(each, gpu=number[each.gpu]) for each in known if each.gpu in number),
    )


def wrong_types(batch: object, schedule: object) -> Iterator[Problem]:
    """Yield a problem for each that is something else altogether, or has parts that are."""
    yield from wrong_batch(batch)
    if not isinstance(schedule, Schedule):
        yield wrong_type("schedule", schedule, "a Schedule, for example that of a ScheduleResult")
        return
    problems: list[Problem] = []
    for name, hint in hints_of(Schedule).items():
        checked_value(hint, getattr(schedule, name), f"schedule.{name}", problems)
    yield from problems


class LifetimeStep(NamedTuple):
    """A run, or another thing that happens to an instance, from ``begin`` to ``end`` (seconds)."""

    label: str
    begin: float
    end: float
    is_run: bool = False


@dataclass(slots=True)
class Lifetime:
    """One instance from its creation, or the start of the batch, to its destruction, or for ever."""

    gpu: int  # index of the GPU
    profile: str  # profile name
    start: int  # start slice
    initial: bool = False  # true if the instance exists when the batch starts
    # its operations, by index; None where there is none
    created: int | None = None
    destroyed: int | None = None
    # Seconds at which its creation begins and ends. An initial instance begins at 0 and is ready when it gets free.
    begin: float = 0.0
    ready: float = 0.0
    # seconds at which its destruction begins and ends; infinity if it is not destroyed
    close: float = math.inf
    end: float = math.inf
    runs: list[Run] = field(default_factory=list)  # the runs on it, in order, as far as they are known

    @property
    def location(self) -> Location:
        """GPU, profile name and start slice."""
        return self.gpu, self.profile, self.start

    @property
    def last(self) -> float:
        """Seconds from which nothing happens to the instance any more."""
        return self.end if self.destroyed is not None else max([run.end for run in self.runs], default=self.ready)

    @property
    def steps(self) -> list[LifetimeStep]:
        """Everything that happens to the instance, in order."""
        steps = [LifetimeStep(run.task, run.begin, run.end, is_run=True) for run in self.runs]
        if self.initial or self.created is not None:
            steps.insert(0, LifetimeStep("(exists)" if self.initial else "(create)", self.begin, self.ready))
        if self.destroyed is not None:
            steps.append(LifetimeStep("(destroy)", self.close, self.end))
        return steps

    def __str__(self) -> str:
        return f"{self.profile}@{self.start}"


def lifetimes(
    initial: Iterable[LiveInstance], operations: Sequence[Operation], tolerance: float = 1e-6
) -> tuple[list[Lifetime], list[int]]:
    """Return the lifetimes that operations make, place by place, without runs, and the indices of senseless operations.

    The latter are creations of instances that exist already and destructions of instances that do not exist; apart from
    being returned they are ignored. Operations come in any order; of two at one place that begin together (or the wrong
    way round by up to ``tolerance`` seconds), the one that makes sense counts as the first.

    Examples
    --------
    >>> there, gone = Operation("create", 0, "4g.24gb", 0, 0.0, 0.13), Operation("destroy", 0, "4g.24gb", 0, 2.0, 2.1)
    >>> (lifetime,), stray = lifetimes((), (gone, there, there))
    >>> str(lifetime), lifetime.ready, lifetime.close, stray
    ('4g.24gb@0', 0.13, 2.0, [2])
    """
    current: dict[Location, Lifetime | None] = {}
    for live in initial:
        there = Lifetime(live.gpu, live.profile, live.start, initial=True, ready=live.free)
        current[there.location] = there
    queues: dict[Location, deque[int]] = defaultdict(deque)
    for index in sorted(range(len(operations)), key=lambda index: (operations[index].begin, operations[index].end)):
        operation = operations[index]
        queues[operation.gpu, operation.profile, operation.start].append(index)
    found: list[Lifetime] = []
    stray: list[int] = []
    for location in dict.fromkeys((*current, *queues)):
        lifetime, queue = current.get(location), queues[location]
        while queue:
            expected = "create" if lifetime is None else "destroy"
            index = queue.popleft()
            if (
                operations[index].kind != expected
                and queue
                and operations[queue[0]].kind == expected
                and operations[queue[0]].begin <= operations[index].begin + tolerance
            ):
                index, queue[0] = queue[0], index
            operation = operations[index]
            if operation.kind != expected:
                stray.append(index)
            elif lifetime is None:
                lifetime = Lifetime(*location, created=index, begin=operation.begin, ready=operation.end)
            else:
                lifetime.destroyed, lifetime.close, lifetime.end = index, operation.begin, operation.end
                found.append(lifetime)
                lifetime = None
        if lifetime is not None:
            found.append(lifetime)
    return found, stray


def lifetimes_with_runs(batch: Batch, schedule: Schedule) -> list[Lifetime]:
    """Return the lifetimes of a valid schedule with their runs, by GPU, begin and start slice.

    Without operations, each place has one lifetime from its first run on.
    """
    found: dict[Location, list[Lifetime]] = defaultdict(list)
    for lifetime in lifetimes(batch.initial, schedule.operations or ())[0]:
        found[lifetime.location].append(lifetime)
    for run in sorted(schedule.runs, key=lambda run: run.begin):
        location = run.gpu, run.profile, run.start
        there = found[location] = found[location] or [Lifetime(*location, begin=run.begin, ready=run.begin)]
        begun = bisect.bisect_right(there, run.begin, key=lambda lifetime: lifetime.begin)
        there[max(begun - 1, 0)].runs.append(run)
    return sorted(
        (lifetime for there in found.values() for lifetime in there),
        key=lambda lifetime: (lifetime.gpu, lifetime.begin, lifetime.start),
    )


def replanned(
    batch: Batch, known: Sequence[Lifetime], alive: Collection[int], schedule: Schedule, gpus: Collection[int]
) -> list[Lifetime]:
    """Return the lifetimes of an execution after a new plan for what has not begun on some GPUs.

    Those known stay in their order: one that is alive, by index, goes on as the new plan has it, one that was to come
    has no runs any more. New ones are behind them.
    """
    place = {known[index].location: index for index in alive if known[index].gpu in gpus}
    initial = tuple(LiveInstance(*location, 0.0) for location in place)
    following = lifetimes_with_runs(batch.replace(initial=initial), schedule)
    moved = {run.task for run in schedule.runs}
    found = [dataclasses.replace(each, runs=[run for run in each.runs if run.task not in moved]) for each in known]
    for each in following:
        if each.initial:
            going_on = found[place[each.location]]
            going_on.destroyed, going_on.close, going_on.end = each.destroyed, each.close, each.end
            going_on.runs += each.runs
    return found + [each for each in following if not each.initial]


@dataclass(frozen=True, slots=True)
class ScheduleResult(Shown, Result[Schedule]):
    """Outcome of :func:`mig_opt.solve`: the schedule that was found, and the lower bound in seconds that was proven.

    Attributes
    ----------
    batch : Batch or None
        The batch that was planned, for pictures; None for a result from a file.
    """

    batch: Batch | None = field(default=None, compare=False, repr=False)

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
