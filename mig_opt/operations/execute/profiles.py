"""Profiles: each task measured on each size of instance, and models by size, batch and processes.

A profile is a plan like any other: the runs of a task on a size follow each other on an instance of that size, and
instances are created and destroyed in turn. So it is resumed, and survives troubles, as all plans do.
"""

from __future__ import annotations

import os
import re
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from mig_opt._version import __version__
from mig_opt.batch.batch import Batch, Task
from mig_opt.batch.journal import Commands, Event
from mig_opt.batch.schedule import Operation, Schedule, lifetimes
from mig_opt.batch.timing import PlannedInstance, sequenced_schedule
from mig_opt.errors import InputError, Problem, raise_any
from mig_opt.files.batch.journals import read_journal
from mig_opt.files.documents import file_path
from mig_opt.files.serving.printed import printed_figures, tells_of_memory
from mig_opt.gpu.catalogue import Gpu
from mig_opt.gpu.model import Placement
from mig_opt.gpu.problems import wrong_size
from mig_opt.operations.driver.instances import Patience
from mig_opt.operations.execute.attempts import name_of_try
from mig_opt.operations.execute.machines import Machines, Observer, check_machines, missing_program
from mig_opt.operations.execute.report import Execution
from mig_opt.operations.execute.schedules import resume_schedule, run_schedule, tasks_folder
from mig_opt.rules import check_values, wrong_class
from mig_opt.rules.vocabulary import Count, Whole
from mig_opt.serving.profile_table import Point, ProfileTable

OUT_OF_MEMORY = "out of memory"

MOST_RUNS = 1000  # runs of one task on one size; more is taken for a slip of the pen


@dataclass(frozen=True, slots=True)
class ProfilePlan:
    """The measurements that are wanted.

    Attributes
    ----------
    gpu : GpuModel
        The kind of GPU.
    sizes : tuple of int
        The numbers of compute slices; all of the GPU by default.
    repetitions : int
        Runs that count, of each task on each size.
    warm_up : int
        Runs before them that do not count.
    isolated : bool
        True if nothing else runs meanwhile; otherwise as much runs at a time as the GPU has room for.
    batches, processes : tuple of int
        For models: the numbers that the arguments ``{batch}`` and ``{processes}`` take.

    Raises
    ------
    InputError
        With everything that is wrong with them.
    """

    gpu: Gpu
    sizes: tuple[int, ...] = ()
    repetitions: Annotated[int, Whole(1, MOST_RUNS)] = 3
    warm_up: Annotated[int, Whole(0, MOST_RUNS)] = 1
    isolated: bool = False
    batches: tuple[Count, ...] = (1, 2, 4, 8, 16, 32, 64, 128)
    processes: tuple[Count, ...] = (1, 2, 3)

    def __post_init__(self) -> None:
        check_values(self)
        object.__setattr__(self, "sizes", tuple(sorted(set(self.sizes or self.gpu.sizes))))

    def _problems(self) -> Iterator[Problem]:
        for size in (self.gpu and self.sizes) or ():
            yield from wrong_size("sizes", self.gpu, size)

    @property
    def runs(self) -> int:
        """Runs of each task on each size."""
        return self.warm_up + self.repetitions


@dataclass(frozen=True, slots=True)
class _Way:
    """A way of running something: a task on a size, or a model on a size with a batch and processes."""

    subject: str
    size: int
    batch: int = 0
    processes: int = 0

    def __str__(self) -> str:
        more = f", batch {self.batch}, {self.processes} processes" if self.batch else ""
        return f"{self.subject} on {self.size}g{more}"

    def run(self, number: int) -> str:
        """Return the name of a run."""
        return f"{self}, run {number + 1}"


@dataclass
class Measurements:
    """The outcome of measurements of models.

    Attributes
    ----------
    tables : tuple of ProfileTable
        The models with their points, medians.
    left_out : dict of str to str
        Ways that could not be measured (``gaussian on 1g``), with the reason; for lack of memory, as a rule.
    notes : list of str
        What was measured otherwise than wanted.
    """

    tables: tuple[ProfileTable, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def failed(self) -> dict[str, str]:
        """Entries of ``left_out`` for another reason than lack of memory."""
        return {way: reason for way, reason in self.left_out.items() if reason != OUT_OF_MEMORY}


@dataclass(kw_only=True)
class ProfileOutcome(Measurements):
    """The outcome of measurements of tasks and models.

    Attributes
    ----------
    plan : ProfilePlan
        The measurements that were wanted.
    execution : Execution
        The runs.
    batch : Batch or None
        The tasks with their times, medians; None if there are no tasks, or none has a time.
    """

    plan: ProfilePlan
    execution: Execution
    batch: Batch | None = None


def profile_tasks(
    commands: Commands,
    plan: ProfilePlan,
    *,
    journal: str | os.PathLike[str],
    device: str = "0",
    user: str = "",
    patience: Patience | None = None,
    observe: Observer | None = None,
) -> ProfileOutcome:
    """Measure each task on each size of a GPU of this machine, and each model in each way.

    An existing journal is gone on with, if it is of the same measurements. At the end the GPU has the instances that it
    had before.

    Parameters
    ----------
    commands : Commands
        The programs of tasks, and of models.
    plan : ProfilePlan
        The measurements.
    journal : path-like
        The file for everything that happens.
    device : str
        Index, UUID or PCI address of the GPU.
    user, patience, observe
        As for :func:`mig_opt.run_schedule`.

    Returns
    -------
    ProfileOutcome
        Times and points. A size on which a program says that memory is not enough is left out.

    Raises
    ------
    InputError
        With everything that speaks against it, or if the journal is one of other measurements.
    DriverError
        If the driver does not answer.
    """
    path = file_path(journal, "journal")
    wrong = [*wrong_class("commands", commands, Commands), *wrong_class("plan", plan, ProfilePlan)]
    raise_any([*wrong, *wrong_class("device", device, str)])
    ways = list(_ways(commands, plan))
    batch, schedule, words = _planned(commands, plan, ways)
    options: dict[str, Any] = {"user": user, "patience": patience, "observe": observe}
    if "/" in device:
        raise InputError([Problem("device", "is in another machine; measure there")])
    if path.exists():
        known = read_journal(path)
        if known.commands != words or known.schedule != schedule:
            message = "is the journal of other measurements; name another file, or remove it"
            raise InputError([Problem("", message)], str(path))
        execution = resume_schedule(path, ended=True, **options)
        return _outcome(execution, path, plan, ways)
    programs = {**commands.tasks, **commands.models}.items()
    missing = [problem for name, program in programs for problem in missing_program(name, program)]
    with Machines(Path(), ".", patience) as machines:
        raise_any([*missing, *check_machines(machines, batch, schedule, [device])[1]])
        name, version = machines.driver.device(device).name, machines.driver.version()
    source = f"measured by mig-opt {__version__} on {name}, driver {version}"
    named = batch.replace(name=source)
    execution = run_schedule(named, schedule, words, journal=path, devices=[device], **options)
    return _outcome(execution, path, plan, ways)


def _ways(commands: Commands, plan: ProfilePlan) -> Iterator[_Way]:
    for size in reversed(plan.sizes):
        for name in commands.tasks:
            yield _Way(name, size)
        for name in commands.models:
            yield from (_Way(name, size, batch, count) for batch in plan.batches for count in plan.processes)


def _planned(commands: Commands, plan: ProfilePlan, ways: Sequence[_Way]) -> tuple[Batch, Schedule, Commands]:
    """Return the measurements as a batch with a schedule: each run is a task of a second, as nobody knows better."""
    profiles = {profile.compute_slices: profile for profile in plan.gpu.profiles_of("base")}
    places: dict[_Way, PlannedInstance] = {}
    instances: list[PlannedInstance] = []
    for size in reversed(plan.sizes):
        of_size = [way for way in ways if way.size == size]
        starts = profiles[size].starts[:1] if plan.isolated else profiles[size].starts
        there = [PlannedInstance(0, Placement(profiles[size], start)) for start in starts[: len(of_size)]]
        instances += there
        places |= {way: there[index % len(there)] for index, way in enumerate(of_size)}
    tasks, words = [], {}
    for way, instance in places.items():
        for number in range(plan.runs):
            tasks.append(Task(way.run(number), {way.size: 1.0}))
            instance.tasks.append(tasks[-1])
            words[tasks[-1].name] = _command(commands, way)
    batch = Batch(tuple(tasks), plan.gpu)
    return batch, _cleared(batch, sequenced_schedule(batch, instances)), Commands(words)


def _command(commands: Commands, way: _Way) -> tuple[str, ...]:
    environment = ["env", f"MIG_OPT_TASK={way.subject}"]
    if not way.batch:
        return (*environment, *commands.tasks[way.subject])
    figures = {"size": way.size, "batch": way.batch, "processes": way.processes}
    filled = partial(re.sub, r"\{(size|batch|processes)\}", lambda found: str(figures[found[1]]))
    return (*environment, *map(filled, commands.models[way.subject]))


def _cleared(batch: Batch, schedule: Schedule) -> Schedule:
    """Return a schedule that destroys at the end what it leaves."""
    operations = list(schedule.operations or ())
    now = max([schedule.makespan, *(operation.end for operation in operations)])
    for left in lifetimes((), operations)[0]:
        if left.destroyed is None:
            end = now + batch.operations.of("destroy", batch.placement(left).profile)
            operations.append(Operation("destroy", 0, left.profile, left.start, now, end))
            now = end
    return schedule.replace(operations=operations)


def _outcome(execution: Execution, path: Path, plan: ProfilePlan, ways: Sequence[_Way]) -> ProfileOutcome:
    journal, found = execution.journal, ProfileOutcome(plan=plan, execution=execution)
    if not execution.complete:
        return found
    runs = {run.task: run for run in journal.runs()}
    attempts = {event.task: event for event in journal.events if event.kind == "ran"}

    def printed(event: Event) -> str:
        output = tasks_folder(path) / f"{name_of_try(journal.batch, str(event.task), event.attempt)}.out"
        return output.read_text(encoding="utf-8", errors="replace") if output.exists() else ""

    times: dict[str, dict[int, float]] = defaultdict(dict)
    spread: dict[str, dict[int, float]] = defaultdict(dict)
    points: dict[str, list[Point]] = defaultdict(list)
    for way in ways:
        names = [way.run(number) for number in range(plan.warm_up, plan.runs)]
        texts = [printed(attempts[way.run(number)]) for number in range(plan.runs)]
        codes = [runs[way.run(number)].code for number in range(plan.runs)]
        if any(codes):
            memory = any(code and tells_of_memory(text) for code, text in zip(codes, texts, strict=True))
            found.left_out[str(way)] = OUT_OF_MEMORY if memory else f"exit code {next(filter(None, codes))}"
        elif not way.batch:
            seconds = [runs[name].end - runs[name].begin for name in names]
            times[way.subject][way.size] = round(statistics.median(seconds), 6)
            spread[way.subject][way.size] = round(max(seconds) - min(seconds), 6)
        else:
            known = [each for each in map(printed_figures, texts[plan.warm_up :]) if each is not None]
            if not known:
                found.left_out[str(way)] = "printed no throughput and latency"
                continue
            throughput, latency = (statistics.median(column) for column in zip(*known, strict=True))
            points[way.subject].append(Point(way.size, way.batch, way.processes, throughput, latency))
    beside = "alone" if plan.isolated else "beside each other"
    source = f"{journal.batch.name}; medians of {plan.repetitions} runs after {plan.warm_up} to warm up, {beside}"
    if times:
        tasks = tuple(Task(name, each) for name, each in times.items())
        found.batch = Batch(tasks, plan.gpu, source=source, spread=dict(spread))
    found.tables = tuple(ProfileTable(model, plan.gpu.name, tuple(there)) for model, there in points.items())
    return found
