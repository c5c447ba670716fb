"""Requirements of a batch, and the batch that is left when some of them are dropped.

Every requirement is dropped by a *relaxation*: each schedule of the batch with it stands for one of the batch without
it that ends no later. So a set of requirements that makes a target impossible does so with more requirements around it.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from mig_opt.batch.batch import Batch, LiveInstance, Task
from mig_opt.batch.integer_batch import Ticks
from mig_opt.gpu.devices import gpu_name
from mig_opt.gpu.model import GpuModel, OperationCosts
from mig_opt.rules.decimals import as_decimal

_DECIMALS = 3
"""Least decimals of a second to which times that a batch does not have are rounded; more if the others have more."""


class RequirementKind(enum.StrEnum):
    """Subject of a requirement; each entry says what it means to drop one."""

    TARGET = "target"
    """The makespan must be at most the target. Dropped: it may be longer."""
    GPUS = "gpus"
    """The number of GPUs is given. Dropped: any number of empty ones is added."""
    OPERATIONS = "operations"
    """Creating and destroying instances takes time. Dropped: it takes none."""
    DRIVER = "driver"
    """The driver of a GPU does one operation at a time. Dropped: they may overlap."""
    LIVE = "live"
    """An instance that exists at the start is busy for a while. Dropped: it is free at once."""
    TASK = "task"
    """A task must run. Dropped: it is left out."""
    SIZES = "sizes"
    """A task has no time for some sizes. Dropped: its times there are in proportion to the nearest size with a time."""
    MEMORY = "memory"
    """A task needs memory. Dropped: it fits into every instance of a size with a time."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """Demand of a batch, or of the target.

    Attributes
    ----------
    kind : RequirementKind
        What it is about.
    path : str
        Where the batch says so, such as ``tasks[3].memory_gb``; ``target`` for the target.
    text : str
        The requirement in words.
    dropped : str
        What dropping it means in words, as a condition: "without task 'a'".
    task : str or None
        The name of the task that it is about; None if it is about none.
    """

    kind: RequirementKind
    path: str
    text: str
    dropped: str
    task: str | None = None

    def __str__(self) -> str:
        return self.text


class Requirements:
    """The requirements of a batch, and a target in seconds.

    What is left of the batch depends on the target only where the number of GPUs is dropped. ``details`` are what the
    sizes and the memory of tasks require, and ``all`` is every requirement but the target.
    """

    def __init__(self, batch: Batch, target: float) -> None:
        self.batch, self.target = batch, target
        are = "is" if batch.gpus == 1 else "are"
        self.gpus = Requirement(RequirementKind.GPUS, "gpus", f"there {are} {batch.label}", "with more GPUs")
        self.operations = tuple(_operations(batch))
        self._live = {
            _busy(index, live, gpu_name(batch.devices, live.gpu)): index
            for index, live in enumerate(batch.initial)
            if live.free > 0
        }
        self._tasks = {_must_run(index, task): index for index, task in enumerate(batch.tasks)}
        decimals = max(ticks.decimals, _DECIMALS) if (ticks := Ticks.of(batch)).exact else None
        self._imagined = [_imagined_times(batch, task, decimals) for task in batch.tasks]
        self.details_of = [
            tuple(_details(batch, index, task, imagined))
            for index, (task, imagined) in enumerate(zip(batch.tasks, self._imagined, strict=True))
        ]
        about = {detail: index for index, details in enumerate(self.details_of) for detail in details}
        self._about = self._tasks | about
        self.live, self.tasks = tuple(self._live), tuple(self._tasks)
        self.details = tuple(detail for details in self.details_of for detail in details)
        self.all = frozenset((self.gpus, *self.operations, *self.live, *self._about))

    def ordered(self, requirements: Collection[Requirement]) -> tuple[Requirement, ...]:
        """Return requirements in the order of the batch: the target first, what is about one task together."""
        ranks = {kind: rank for rank, kind in enumerate(RequirementKind)}

        def rank(requirement: Requirement) -> tuple[int, int, int]:
            return self._about.get(requirement, -1), ranks[requirement.kind], self._live.get(requirement, -1)

        return tuple(sorted(requirements, key=rank))

    def with_implied(self, dropped: Collection[Requirement]) -> frozenset[Requirement]:
        """Return ``dropped`` with what has no effect any more without them.

        That is what a task needs, if it does not run; and the driver's pace, if its work takes no time.
        """
        implied = set(dropped)
        for requirement in dropped:
            if requirement.kind is RequirementKind.TASK:
                implied.update(self.details_of[self._tasks[requirement]])
            elif requirement.kind is RequirementKind.OPERATIONS:
                implied.update(self.operations)
        return frozenset(implied)

    def kept_task(self, requirement: Requirement, kept: Collection[Requirement]) -> Task:
        """Return the task that must run, without the requirements about it that are not in ``kept``."""
        index = self._tasks[requirement]
        task = self.batch.tasks[index]
        dropped = {detail.kind for detail in self.details_of[index] if detail not in kept}
        if RequirementKind.MEMORY in dropped:
            task = dataclasses.replace(task, memory_gb=None)
        if RequirementKind.SIZES in dropped:
            task = _with_imagined(task, self._imagined[index])
        return task

    def relaxed(self, kept: Collection[Requirement]) -> Batch | None:
        """Return the batch without the requirements that are not in ``kept``; None if nothing has to run.

        Without the number of GPUs, tasks that are in time on a GPU of their own are left out. The others cannot wait
        for the creation of an instance, on whatever GPU: they need one of those that exist.
        """
        tasks = self._kept_tasks(kept)
        operations, parallel = self._kept_operations(kept)
        if self.gpus not in kept:
            target = as_decimal(self.target)
            tasks = [task for task in tasks if _alone(self.batch, operations, task) > target]
        if not tasks:
            return None
        initial = list(self.batch.initial)
        for requirement, index in self._live.items():
            if requirement not in kept:
                initial[index] = dataclasses.replace(initial[index], free=0.0)
        costs = {"operations": operations, "parallel_operations": parallel}
        return self.batch.replace(tasks=tuple(tasks), initial=tuple(initial), **costs)

    def least(self, kept: Collection[Requirement], lower_bound: float) -> float:
        """Return a lower bound under ``kept`` from one on the batch that :meth:`relaxed` returns, both in seconds.

        They differ without the number of GPUs: a task may then be late on a GPU of its own, or none is.
        """
        if self.gpus in kept:
            return lower_bound
        operations, _ = self._kept_operations(kept)
        alone = (float(_alone(self.batch, operations, task)) for task in self._kept_tasks(kept))
        return min(lower_bound, *alone)

    def work(self, requirement: Requirement) -> float:
        """Return the least slice-seconds of the task that a requirement is about."""
        task = self.batch.tasks[self._about[requirement]]
        return min(
            profile.compute_slices * seconds
            for profile in self.batch.profiles()
            if (seconds := task.time_on(profile)) is not None
        )

    def _kept_tasks(self, kept: Collection[Requirement]) -> list[Task]:
        return [self.kept_task(requirement, kept) for requirement in self.tasks if requirement in kept]

    def _kept_operations(self, kept: Collection[Requirement]) -> tuple[OperationCosts, bool]:
        dropped = {requirement.kind for requirement in self.operations if requirement not in kept}
        free = RequirementKind.OPERATIONS in dropped
        costs = self.batch.cost_free().operations if free else self.batch.operations
        return costs, self.batch.parallel_operations or RequirementKind.DRIVER in dropped


def spelled(seconds: float) -> str:
    """Return seconds in digits, without those that are only noise of floating-point sums."""
    return f"{seconds:.9g}"


def _operations(batch: Batch) -> Iterator[Requirement]:
    costs = (batch.operations.of_kind(kind) for kind in batch.kinds)
    if not any(seconds for own in costs for table in (own.create, own.destroy) for seconds in table.values()):
        return
    text, dropped = "creating and destroying instances takes time", "if creating and destroying instances took no time"
    yield Requirement(RequirementKind.OPERATIONS, "operations", text, dropped)
    if not batch.parallel_operations:
        yield Requirement(
            RequirementKind.DRIVER,
            "parallel_operations",
            "the driver of a GPU creates or destroys one instance at a time",
            "if creations and destructions on a GPU could overlap",
        )


def _busy(index: int, live: LiveInstance, gpu: str) -> Requirement:
    name = f"instance {live.profile}@{live.start} on GPU {gpu}"
    text = f"{name} exists and is busy until {spelled(live.free)} s"
    return Requirement(RequirementKind.LIVE, f"initial[{index}].free", text, f"if {name} were free at once")


def _must_run(index: int, task: Task) -> Requirement:
    times: Mapping[Any, Any] = task.times
    told = "; ".join(f"{_times(own)} of {kind}" for kind, own in times.items()) if task.by_kind else _times(times)
    text = f"task {task.name!r} must run: {told}"
    return Requirement(RequirementKind.TASK, f"tasks[{index}]", text, f"without task {task.name!r}", task.name)


def _details(
    batch: Batch, index: int, task: Task, imagined: Mapping[GpuModel, Mapping[int, float]]
) -> Iterator[Requirement]:
    name, at = f"task {task.name!r}", f"tasks[{index}]"
    if imagined:
        kinds = {kind: "" if batch.gpu else f" of {kind.name}" for kind in imagined}
        missing, taken = (
            " and ".join(f"{spell(times)}{kinds[kind]}" for kind, times in imagined.items())
            for spell in (_sizes, _times)
        )
        text, dropped = f"{name} has no time on {missing}", f"if {name} took {taken}"
        yield Requirement(RequirementKind.SIZES, f"{at}.times", text, dropped, task.name)
    needed = task.memory_gb
    profiles = [profile for kind in batch.kinds for profile in kind.profiles_of("double-memory")]
    if needed is not None and any(profile.memory_gb < needed for profile in profiles):
        text, dropped = f"{name} needs {needed:.12g} GB", f"if {name} needed less memory"
        yield Requirement(RequirementKind.MEMORY, f"{at}.memory_gb", text, dropped, task.name)


def _sizes(times: Mapping[int, float]) -> str:
    *others, last = map(str, times)
    spelled_sizes = f"{', '.join(others)} or {last}" if others else last
    return f"{spelled_sizes} slice{'' if list(times) == [1] else 's'}"


def _imagined_times(batch: Batch, task: Task, decimals: int | None) -> dict[GpuModel, dict[int, float]]:
    """Return times for the sizes without one, in proportion to the next smaller size that has one, else the next.

    A kind of GPU on which the task has no time at all is none of them.
    """
    found: dict[GpuModel, dict[int, float]] = {}
    for kind in batch.kinds:
        known = task.times_on(kind)
        for size in kind.sizes if known else ():
            if size not in known:
                near = max((smaller for smaller in known if smaller < size), default=min(known))
                seconds = known[near] * near / size
                seconds = seconds if decimals is None else max(round(seconds, decimals), 10.0**-decimals)
                found.setdefault(kind, {})[size] = seconds
    return found


def _with_imagined(task: Task, imagined: Mapping[GpuModel, Mapping[int, float]]) -> Task:
    """Return a task with the times that it does not have."""
    if not task.by_kind:
        return task.with_times({**task.times, **next(iter(imagined.values()))})
    by_kind = {kind.name: {**task.times_on(kind), **times} for kind, times in imagined.items()}
    return task.with_times({**task.times, **by_kind})


def _alone(batch: Batch, operations: OperationCosts, task: Task) -> Decimal:
    """Return the exact seconds until a task ends that has an empty GPU for itself."""
    return min(
        as_decimal(operations.of("create", profile)) + as_decimal(seconds)
        for kind in batch.kinds
        for profile in kind.profiles_of("double-memory")
        if (seconds := task.time_on(profile)) is not None
    )


def _times(times: Mapping[int, float]) -> str:
    """Return "8 s on 1 slice, 5 s on 2": the unit once is enough."""
    parts = [f"{spelled(seconds)} s on {size}" for size, seconds in times.items()]
    parts[0] += " slice" if next(iter(times)) == 1 else " slices"
    return ", ".join(parts)
