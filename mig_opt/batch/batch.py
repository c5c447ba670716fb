"""Batches: tasks with their execution times, and the GPUs that they run on."""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Protocol

from mig_opt.errors import InputError, Problem
from mig_opt.gpu.catalogue import Gpu
from mig_opt.gpu.devices import Device, device_problems
from mig_opt.gpu.model import (
    GpuModel,
    OperationCosts,
    Placement,
    Profile,
    ProfileSet,
)
from mig_opt.gpu.problems import operation_problems, wrong_size
from mig_opt.method.shown import Shown
from mig_opt.rules import check_values, wrong_type
from mig_opt.rules.vocabulary import MOST_GPUS, Costs, Gigabytes, GpuCount, Index, Moment, Name, NotEmpty, Times

LONGEST_TOTAL = 1e300
"""Seconds that the times of a batch may add up to: sums and areas of schedules are then numbers that computers have."""


@dataclass(frozen=True, slots=True)
class Task:
    """A task with its execution time on each instance size.

    Attributes
    ----------
    name : str
        Unique in its batch.
    times : mapping of int to float
        Seconds on an instance with that many compute slices. A size that is missing means that the task cannot run
        there. Times need not fall with size, and may fall faster than the size grows.
    memory_gb : float, optional
        Memory that the task needs in GB; instances with less nominal memory are forbidden.

    Raises
    ------
    InputError
        If the name is empty, there is no time, or a figure is not finite and > 0.

    Examples
    --------
    >>> Task("gaussian", {1: 22.31, 2: 11.52, 4: 6.39}, memory_gb=3.2).times[2]
    11.52
    """

    name: Name
    times: Times
    memory_gb: Gigabytes | None = None

    def __post_init__(self) -> None:
        check_values(self)

    def __hash__(self) -> int:
        return hash((self.name, tuple(self.times.items()), self.memory_gb))

    def time_on(self, profile: Profile) -> float | None:
        """Return the seconds on an instance of ``profile``, or None if the task cannot run there."""
        if self.memory_gb is not None and self.memory_gb > profile.memory_gb:
            return None
        return self.times.get(profile.compute_slices)


@dataclass(frozen=True, slots=True)
class LiveInstance:
    """An instance that exists when the batch starts.

    Attributes
    ----------
    gpu : int
        Index of the GPU, from 0.
    profile : str
        Profile name.
    start : int
        Start slice.
    free : float
        Seconds after the start of the batch at which the instance has finished its earlier work.
    """

    gpu: Index
    profile: str
    start: Index
    free: Moment = 0.0


@dataclass(frozen=True, slots=True)
class Batch(Shown):
    """Tasks to be run on identical MIG GPUs so that the last one ends as early as possible.

    Attributes
    ----------
    tasks : tuple of Task
        At least one; names are unique.
    gpu : GpuModel
        The kind of GPU, see :func:`mig_opt.get_gpu`.
    gpus : int
        How many of them.
    operations : OperationCosts
        Seconds per creation and destruction; by default the GPU's own table.
    initial : tuple of LiveInstance
        Instances that exist already. By default the GPUs start empty.
    parallel_operations : bool
        True if creations and destructions on one GPU may overlap in time. By default the driver serialises them.
    name : str
        For display only.
    source : str
        Where the times come from, for display only.
    spread : mapping of str to mapping of int to float
        For tasks whose times were measured, by size: seconds between the shortest and the longest run; for display
        only.
    devices : tuple of Device
        What each GPU is, for scripts, executions and pictures. By default GPU 3 of the batch is number 3 of the machine
        at which a plan is carried out.
    profile_set : ProfileSet
        The profiles that methods have to consider, derived from the rest.

    Raises
    ------
    InputError
        With every problem of the batch, each with its path.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> batch = Batch((Task("a", {1: 4.0, 2: 2.5}), Task("b", {4: 3.0})), get_gpu("A30"))
    >>> [str(placement) for placement, seconds in batch.options(batch.tasks[1])]
    ['4g.24gb@0']
    """

    tasks: Annotated[tuple[Task, ...], NotEmpty("at least one task")]
    gpu: Gpu
    gpus: GpuCount = 1
    operations: OperationCosts = OperationCosts({}, {})
    initial: tuple[LiveInstance, ...] = ()
    parallel_operations: bool = False
    name: str = dataclasses.field(default="", compare=False)
    source: str = dataclasses.field(default="", compare=False)
    spread: Mapping[str, Costs] = dataclasses.field(default_factory=dict, compare=False, repr=False)
    devices: tuple[Device, ...] = ()
    profile_set: ProfileSet = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.gpu, GpuModel) and not self.operations.create and not self.operations.destroy:
            object.__setattr__(self, "operations", self.gpu.operation_costs)
        check_values(self)
        object.__setattr__(self, "profile_set", _profile_set(self.gpu, self.tasks, self.initial))

    def _problems(self) -> Iterator[Problem]:
        tasks, initial = self.tasks or (), self.initial or ()
        gpus = self.gpus or MOST_GPUS
        yield from repeated_names("tasks", tasks)
        if self.gpu:
            for index, task in enumerate(tasks):
                yield from () if task is None else _task_problems(self.gpu, task, f"tasks[{index}]")
            yield from instance_problems(self.gpu, gpus, "initial", initial)
            yield from costs_problems(self.gpu, self.operations)
        yield from total_problems(tasks, self.operations, initial)
        yield from device_problems(self.devices or (), gpus)

    def placements(self) -> tuple[Placement, ...]:
        """Return the placements that methods have to consider on each GPU, outermost first."""
        return self.gpu.placements(self.profile_set)

    def options(self, task: Task) -> tuple[tuple[Placement, float], ...]:
        """Return where ``task`` can run, with the seconds that it takes there."""
        return tuple(
            (placement, seconds)
            for placement in self.placements()
            if (seconds := task.time_on(placement.profile)) is not None
        )

    def unplaceable(self) -> tuple[int, ...]:
        """Return the indices of the tasks that can run nowhere. If there is one, the batch has no schedule."""
        profiles = self.gpu.profiles_of(self.profile_set)
        return tuple(
            index for index, task in enumerate(self.tasks) if all(task.time_on(profile) is None for profile in profiles)
        )

    def usable_profiles(self) -> dict[str, frozenset[Profile]]:
        """Return for each task, by name, the profiles on which it can run."""
        profiles = self.gpu.profiles_of(self.profile_set)
        return {task.name: frozenset(p for p in profiles if task.time_on(p) is not None) for task in self.tasks}

    def replace(self, **changes: object) -> Batch:
        """Return a copy with some attributes changed.

        With another ``gpu``, operation costs that were the old one's own table become the new one's. With another
        number of GPUs it is not known any more which ones they are, unless ``devices`` says it.
        """
        if changes.get("gpus", self.gpus) != self.gpus:
            changes.setdefault("devices", ())
        if "gpu" in changes and self.operations == self.gpu.operation_costs:
            changes.setdefault("operations", OperationCosts({}, {}))
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]  # the constructor checks

    def cost_free(self) -> Batch:
        """Return the batch with creations and destructions that take no time.

        Papers often leave them out. What is scheduled is then another batch: solve, validate and draw that one.

        Examples
        --------
        >>> from mig_opt import get_gpu, solve
        >>> batch = Batch((Task("a", {4: 3.0}),), get_gpu("A30"))
        >>> solve(batch, "miso-opt").makespan, solve(batch.cost_free(), "miso-opt").makespan
        (3.13, 3.0)
        """
        return self.replace(operations=OperationCosts.zero(self.gpu))


def wrong_batch(batch: object) -> Iterator[Problem]:
    """Yield a problem unless ``batch`` is a Batch."""
    if not isinstance(batch, Batch):
        yield wrong_type("batch", batch, "a Batch, for example load('rodinia-a30')")


def check_placeable(batch: Batch, purpose: str) -> None:
    """Refuse a batch that has no schedule for some purpose, with a problem for each task that can run nowhere."""
    problems = [
        Problem(
            f"tasks[{index}]", f"task {batch.tasks[index].name!r} can run nowhere, so there is no schedule to {purpose}"
        )
        for index in batch.unplaceable()
    ]
    if problems:
        raise InputError(problems)


def _profile_set(gpu: GpuModel, tasks: Sequence[Task], initial: Sequence[LiveInstance]) -> ProfileSet:
    """Return the profiles that methods have to consider.

    A double-memory profile is of use only if it is live, or if some task can run on it but not on the base profile with
    as much compute: any other run is moved to the smaller footprint at no cost.
    """
    base = gpu.profiles_of("base")
    least = {profile.compute_slices: profile.memory_gb for profile in base}
    larger = {profile for profile in gpu.profiles_of("double-memory") if profile not in base}
    needed = any(
        task.memory_gb is not None and least[profile.compute_slices] < task.memory_gb <= profile.memory_gb
        for profile in larger
        for task in tasks
        if profile.compute_slices in task.times
    )
    live = {entry.profile for entry in initial}
    return "double-memory" if needed or any(profile.name in live for profile in larger) else "base"


def costs_problems(gpu: GpuModel, costs: OperationCosts | None) -> Iterator[Problem]:
    """Yield what is wrong with the costs of operations of a batch or a trace; none are those of the GPU."""
    if costs is not None and (costs.create or costs.destroy):
        yield from operation_problems(gpu, costs)


def total_problems(
    tasks: Sequence[Task | None], operations: OperationCosts | None, initial: Sequence[LiveInstance | None]
) -> Iterator[Problem]:
    """Yield a problem for the first time that is too long, with those before it, to be added up."""
    times = [
        (f"tasks[{index}].times.{size}", seconds)
        for index, task in enumerate(tasks)
        if task is not None and task.times
        for size, seconds in [max(task.times.items(), key=lambda entry: entry[1] or 0.0)]
    ]
    times += [(f"initial[{index}].free", live.free) for index, live in enumerate(initial) if live is not None]
    tables = () if operations is None else (operations.create, operations.destroy)
    each = sum(max(filter(None, (costs or {}).values()), default=0.0) for costs in tables)
    times += [("operations", (len(tasks) + len(initial)) * each)]
    total = 0.0
    for path, seconds in times:
        total += seconds or 0.0
        if LONGEST_TOTAL < total < math.inf:
            message = f"{seconds:g} s makes all times add up to more than {LONGEST_TOTAL:g} s; give shorter ones"
            yield Problem(path, f"{message}, and leave out the sizes on which a task is not to run")
            return


class Named(Protocol):
    """A task or a job."""

    @property
    def name(self) -> str:
        """Name, unique in its list."""


def repeated_names(key: str, entries: Sequence[Named | None]) -> Iterator[Problem]:
    """Yield a problem for each entry of the list ``key`` that is called like an earlier one; None is one not read."""
    first: dict[str, int] = {}
    for index, entry in enumerate(entries):
        if entry is None or entry.name is None:
            continue
        other = first.setdefault(entry.name, index)
        if other != index:
            message = f"{entry.name!r} is the name of {key}[{other}] already; give each {key[:-1]} its own"
            yield Problem(f"{key}[{index}].name", message)


def _task_problems(gpu: GpuModel, task: Task, path: str) -> Iterator[Problem]:
    for size in task.times or ():
        yield from wrong_size(f"{path}.times.{size}", gpu, size)
    most = max(profile.memory_gb for profile in gpu.profiles)
    if task.memory_gb is not None and task.memory_gb > most:
        message = f"{task.memory_gb:g} GB is more than any profile of {gpu.name} has (at most {most:g} GB)"
        yield Problem(f"{path}.memory_gb", message)


class Located(Protocol):
    """An instance, or an entry of a plan, that has a place on a GPU."""

    @property
    def gpu(self) -> int:
        """Index of the GPU."""

    @property
    def profile(self) -> str:
        """Profile name."""

    @property
    def start(self) -> int:
        """Start slice."""


def instance_problems(gpu: GpuModel, gpus: int, key: str, instances: Sequence[Located | None]) -> Iterator[Problem]:
    """Yield the problems that keep instances from existing together on GPUs of a kind; None is one that is not known.

    ``key`` is the name of the list of instances in the paths.
    """
    placed: dict[int, dict[Placement, int]] = defaultdict(dict)
    for index, live in enumerate(instances):
        if live is None:
            continue
        path = f"{key}[{index}]"
        if live.gpu is not None and not 0 <= live.gpu < gpus:
            yield Problem(f"{path}.gpu", f"must be from 0 to {gpus - 1}, is {live.gpu}")
        if live.profile is None or live.start is None:
            continue
        try:
            placement = gpu.placement(live.profile, live.start)
        except InputError as error:
            yield from (problem.below(path) for problem in error.problems)
            continue
        if live.gpu is None:
            continue
        here = placed[live.gpu]
        obstacles = placement.obstacles(here)
        for other in filter(placement.conflicts, obstacles):
            yield Problem(path, f"{placement} overlaps {other} of {key}[{here[other]}] on GPU {live.gpu}")
        if obstacles and not placement.conflicts(obstacles[0]):
            yield Problem(path, f"GPU {live.gpu} can have at most {placement.profile.max_count} of {live.profile}")
        here.setdefault(placement, index)
