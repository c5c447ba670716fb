"""Journals: everything that happened while a schedule was executed, and the schedule that it was in truth.

A journal begins with the plan. Each event names an instance by its place among the lifetimes of the plan
(:attr:`Journal.lifetimes`), or a task by its name. An intention (``create``, ``destroy``, ``run``) is noted before
anything is done about it, so that whoever goes on after a crash knows where to look.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Annotated, Any, Literal, get_args

from mig_opt.batch.batch import Batch, LiveInstance
from mig_opt.batch.schedule import (
    Lifetime,
    Operation,
    OperationKind,
    Run,
    Schedule,
    lifetimes_with_runs,
    replanned,
)
from mig_opt.errors import InputError, Problem
from mig_opt.gpu.model import OperationCosts
from mig_opt.rules import Checked, check_values
from mig_opt.rules.vocabulary import Number, Rule
from mig_opt.texts import plural

EventKind = Literal[
    "begin",
    "resume",
    "found",
    "create",
    "created",
    "destroy",
    "destroyed",
    "lost",
    "run",
    "ran",
    "died",
    "refused",
    "replan",
    "stop",
    "silent",
    "heard",
    "undo",
    "end",
]
"""Kinds of events.

``begin``, ``resume``, ``stop`` (by Ctrl-C), ``undo`` and ``end`` are of the execution; ``silent`` (nothing has been
heard of it for a while) and ``heard`` are of a node; ``found`` (it exists from the beginning), ``create``,
``created``, ``destroy``, ``destroyed`` and ``lost`` (it was gone) are of an instance; ``run``,
``ran`` and ``died`` (without an end of its own) are of a try at a task; ``refused`` says why an instance could not be
created or destroyed; ``replan`` is a new plan for what has not begun on some GPUs, from then on.
"""

_Spans = dict[tuple[OperationKind, str, int], list[float]]
"""Lengths of the operations by kind and compute slices."""

_DIGITS = 6
"""Times in measured schedules are in whole microseconds."""


class _Program(Rule):
    """A program and its arguments."""

    __slots__ = ()

    def described(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return a schema with a program as first entry."""
        return {**schema, "minItems": 1, "prefixItems": [{"type": "string", "minLength": 1}]}

    def wrong(self, value: Any) -> str:
        """Return what is wrong; empty if there is a program."""
        return "" if value and value[0] else "needs a program, and then its arguments, each a text of its own"


Command = Annotated[tuple[str, ...], _Program()]


@dataclass(frozen=True, slots=True)
class Commands(Checked):
    """Commands of tasks, and of programs that measure models: a program and its arguments, which no shell reads.

    Attributes
    ----------
    tasks : mapping of str to tuple of str
        For each task its program and the arguments.
    models : mapping of str to tuple of str
        For each model the program that serves it for a while and prints throughput and latency; ``{size}``,
        ``{batch}`` and ``{processes}`` in its arguments stand for numbers.

    Raises
    ------
    InputError
        If there is no command, or one is empty.

    Examples
    --------
    >>> Commands({"gaussian": ("./gaussian", "-s", "4096")}).tasks["gaussian"][0]
    './gaussian'
    """

    tasks: Mapping[str, Command] = dataclasses.field(default_factory=dict)
    models: Mapping[str, Command] = dataclasses.field(default_factory=dict)

    def _problems(self) -> Iterator[Problem]:
        if self.tasks == {} and self.models == {}:
            yield Problem("tasks", "needs the command of at least one task, is empty")

    def missing(self, batch: Batch) -> list[Problem]:
        """Return a problem for each task of a batch that has no command."""
        return [
            Problem("tasks", f"has no command for the task {task.name!r}; add it")
            for task in batch.tasks
            if task.name not in self.tasks
        ]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in an execution, or is about to be done.

    Attributes
    ----------
    time : float
        Seconds since 1970.
    kind : str
        One of :data:`EventKind`.
    instance : int or None
        The instance that it is about.
    task : str or None
        The task that it is about.
    attempt : int
        Of a task: which try, from 1.
    uuid : str
        Of an instance that has been created: its MIG UUID.
    number : int or None
        Of the same: the driver's number.
    others : tuple of int
        Of an intention to create: the numbers of the instances that exist on the GPU. Of a new plan: its GPUs.
    code : int or None
        Of a task that has ended: its exit code.
    text : str
        Why something was refused, which node is silent, what a task has left, or what a new plan gains.
    schedule : Schedule or None
        Of a new plan: when what had not begun is to be done, in seconds since the execution began.
    """

    time: Annotated[float, Number(at_least=0, below=1e11, words="a second since 1970, before the year 5000")]
    kind: EventKind
    instance: int | None = None
    task: str | None = None
    attempt: int = 0
    uuid: str = ""
    number: int | None = None
    others: tuple[int, ...] = ()
    code: int | None = None
    text: str = ""
    schedule: Schedule | None = None

    def __post_init__(self) -> None:
        check_values(self)
        if self.kind not in get_args(EventKind):
            raise InputError([Problem("kind", f"unknown kind of event {self.kind!r}")])


@dataclass(frozen=True, slots=True)
class MeasuredOperation:
    """A creation or destruction as it was: the instance, its kind, and seconds since the beginning."""

    instance: int
    kind: OperationKind
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """A task as it ran: its instance, its exit code, and seconds since the beginning."""

    task: str
    instance: int
    begin: float
    end: float
    code: int


@dataclass
class Journal:
    """An execution: its plan, and what has happened so far.

    Attributes
    ----------
    batch, schedule
        The plan.
    commands : Commands
        The command of each task.
    gpus : tuple of str
        The UUID of each GPU; what names it after ``host/`` where an engine carries out the plan.
    folder : str
        The folder in which the commands run.
    run : str
        A name of the execution that no other one has.
    user : str
        The user as whom the commands run; empty for the one who carries out the plan.
    engine : str
        What carries it out on other machines, as ``--engine`` has it; empty if it is carried out on this machine.
    replan : float or None
        Share of its time by which a task may deviate before what has not begun is planned anew; None for never.
    events : list of Event
        Everything so far, in order.
    """

    batch: Batch
    schedule: Schedule
    commands: Commands
    gpus: tuple[str, ...]
    folder: str = "."
    run: str = ""
    user: str = ""
    engine: str = ""
    replan: float | None = None
    events: list[Event] = field(default_factory=list)

    @cached_property
    def stages(self) -> list[list[Lifetime]]:
        """The planned lifetimes at first, and after each new plan: those known, and new ones behind."""
        stages = [lifetimes_with_runs(self.batch, self.schedule)]
        alive: set[int] = set()
        for event in self.events:
            if event.kind == "replan" and event.schedule is not None:
                stages.append(replanned(self.batch, stages[-1], alive, event.schedule, event.others))
            elif event.instance is not None and event.kind in ("created", "found"):
                alive.add(event.instance)
            elif event.instance is not None and event.kind in ("destroyed", "lost"):
                alive.discard(event.instance)
        return stages

    @property
    def lifetimes(self) -> list[Lifetime]:
        """The lifetimes of all instances as the last plan has them, with their runs."""
        return self.stages[-1]

    @cached_property
    def planned_runs(self) -> dict[str, Run]:
        """The run of each task as the last plan in which it had not begun has it."""
        return {run.task: run for each in self.lifetimes for run in each.runs}

    def append(self, event: Event) -> None:
        """Add what has happened."""
        self.events.append(event)
        if event.kind == "replan":
            for known in ("stages", "instance_of", "planned_runs"):
                self.__dict__.pop(known, None)

    @cached_property
    def instance_of(self) -> dict[str, int]:
        """The instance of each task in the last plan."""
        return {run.task: index for index, each in enumerate(self.lifetimes) for run in each.runs}

    @property
    def began(self) -> float:
        """The second, since 1970, at which the execution began; 0 if it did not."""
        return next((event.time for event in self.events if event.kind == "begin"), 0.0)

    @property
    def ended(self) -> bool:
        """True if there is nothing left to do."""
        return any(event.kind in ("end", "undo") for event in self.events)

    def runs(self) -> list[MeasuredRun]:
        """Return the runs that came to their end, in the order of their ends; the last one of each task counts."""
        found: dict[str, MeasuredRun] = {}
        begun: dict[tuple[str, int], float] = {}
        for event in self.events:
            if event.kind == "run" and event.task is not None:
                begun[event.task, event.attempt] = event.time
            elif event.kind == "ran" and event.task is not None:
                begin = self._since(begun[event.task, event.attempt])
                # The clock of tries has ticks, and no run takes no time.
                end = round(max(begin + 10**-_DIGITS, self._since(event.time)), _DIGITS)
                run = MeasuredRun(event.task, self.instance_of[event.task], begin, end, event.code or 0)
                found[event.task] = run
        return sorted(found.values(), key=lambda run: (run.end, run.begin))

    def operations(self) -> list[MeasuredOperation]:
        """Return the operations that were done, in the order of their ends.

        Of an instance that was lost and made again only the first creation counts, as if it had lived on.
        """
        found: list[MeasuredOperation] = []
        begun: dict[int, float] = {}
        there: set[int] = set()
        for event in self.events:
            if event.instance is None:
                continue
            if event.kind in ("create", "destroy"):
                begun[event.instance] = self._since(event.time)
            elif event.kind == "destroyed" or (event.kind == "created" and event.instance not in there):
                kind: OperationKind = "destroy" if event.kind == "destroyed" else "create"
                there.add(event.instance)
                begin = begun[event.instance]
                # Clocks may have been set back meanwhile.
                found.append(MeasuredOperation(event.instance, kind, begin, max(begin, self._since(event.time))))
        return found

    def _since(self, time: float) -> float:
        return round(max(time - self.began, 0.0), _DIGITS)

    def costs(self) -> OperationCosts:
        """Return the operation costs that were measured, the median of each size; elsewhere those of the batch.

        The source tells how many were measured, and where the others are from.
        """
        spans = self._spans()
        return self._tables(spans, lambda there: round(statistics.median(there), 4), self._source(spans))

    def _tables(self, spans: _Spans, figure: Callable[[Sequence[float]], float], source: str) -> OperationCosts:
        """Return a figure of the lengths of each kind and size of operation, else that of the batch."""
        found: dict[str, dict[str, dict[int, float]]] = {"create": {}, "destroy": {}}
        for operation, tables in found.items():
            for kind in self.batch.kinds:
                own = self.batch.operations.of_kind(kind)
                tables[kind.name] = dict(own.create if operation == "create" else own.destroy)
        for (operation, name, size), there in spans.items():
            found[operation][name][size] = figure(there)
        create, destroy = map(self.batch.settled, found.values())
        return OperationCosts(create, destroy, source)

    def _source(self, spans: _Spans) -> str:
        """Return where the figures of :meth:`costs` come from."""
        known = self.batch.operations
        counts, others = [], []
        for operation, noun in (("create", "creation"), ("destroy", "destruction")):
            there = {(name, size): len(found) for (verb, name, size), found in spans.items() if verb == operation}
            counts += [plural(sum(there.values()), noun)] if there else []
            for kind in self.batch.kinds:
                of = "" if self.batch.gpu else f" of {kind.name}"
                others += [f"{operation} {size}g{of}" for size in kind.sizes if (kind.name, size) not in there]
        day = datetime.fromtimestamp(self.began, UTC).date()
        source = f"mig-opt run, {day}, medians of {' and '.join(counts) or 'nothing'}"
        rest = f"; not measured: {', '.join(others)} ({known.source or 'as in the batch'})"
        return source + rest if others else source

    def _spans(self) -> _Spans:
        """Return the lengths of the operations by operation, kind of GPU and compute slices."""
        spans: _Spans = defaultdict(list)
        for each in self.operations():
            spans[each.kind, *self._size(each.instance)].append(round(each.end - each.begin, _DIGITS))
        return spans

    def _size(self, instance: int) -> tuple[str, int]:
        """Return the kind of GPU of an instance, and its compute slices."""
        profile = self.batch.placement(self.lifetimes[instance]).profile
        return profile.gpu, profile.compute_slices

    def size(self, instance: int) -> int:
        """Return the compute slices of an instance."""
        return self._size(instance)[1]

    def measured_batch(self) -> Batch:
        """Return the batch with the times and operation costs that were measured, for the next plan.

        Tasks that have failed keep their times.
        """
        return self._batch(self.costs(), [run for run in self.runs() if not run.code])

    def _batch(self, costs: OperationCosts, runs: Iterable[MeasuredRun]) -> Batch:
        spans = ((run.task, *self._size(run.instance), round(run.end - run.begin, _DIGITS)) for run in runs)
        measured = {task: (name, {size: span}) for task, name, size, span in spans}
        tasks = []
        for task in self.batch.tasks:
            name, own = measured.get(task.name, ("", {}))
            times = {kind.name: dict(known) for kind in self.batch.kinds if (known := task.times_on(kind))}
            times.setdefault(name, {}).update(own)
            tasks.append(task.with_times(self.batch.settled({kind: known for kind, known in times.items() if known})))
        return self.batch.replace(tasks=tuple(tasks), operations=costs)

    def measured(self) -> tuple[Batch, Schedule]:
        """Return the schedule as it was, and the batch with times as they were, for the validator.

        A batch has one time for each kind and size of operation: the shortest one that was measured. The rest of a
        longer creation counts as a wait before it, that of a longer destruction as a wait after it.
        """
        spans = self._spans()
        costs = self._tables(spans, min, source="measured, the shortest of each kind")
        operations = []
        for each in self.operations():
            place = self.lifetimes[each.instance]
            cost = min(spans[each.kind, *self._size(each.instance)])
            begin = each.begin if each.kind == "destroy" else round(each.end - cost, _DIGITS)
            span = begin, round(begin + cost, _DIGITS)
            operations.append(Operation(each.kind, place.gpu, place.profile, place.start, *span))
        runs = []
        for run in self.runs():
            place = self.lifetimes[run.instance]
            runs.append(Run(run.task, place.gpu, place.profile, place.start, run.begin, run.end))
        runs.sort(key=lambda run: run.begin)
        operations.sort(key=lambda operation: operation.begin)
        initial = [dataclasses.replace(live, free=min(live.free, self._first(live))) for live in self.batch.initial]
        return self._batch(costs, self.runs()).replace(initial=tuple(initial)), Schedule(tuple(runs), tuple(operations))

    def _first(self, live: LiveInstance) -> float:
        """Return the second from which an instance of the initial state was in use; infinity if it never was."""
        there = [run.begin for run in self.runs() if self._initially(run.instance, live)]
        there += [each.begin for each in self.operations() if self._initially(each.instance, live)]
        return min(there, default=float("inf"))

    def _initially(self, instance: int, live: LiveInstance) -> bool:
        each = self.lifetimes[instance]
        return each.initial and each.location == (live.gpu, live.profile, live.start)
