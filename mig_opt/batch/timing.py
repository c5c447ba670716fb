"""From decisions to times: the earliest schedule for given instances, task orders and order of operations.

Methods decide *which* instances there are, which tasks each of them runs, and in which order the driver creates and
destroys them. Everything else follows: each operation begins as soon as the driver is free and its footprint is clear
(a creation) or its tasks have ended (a destruction), and tasks follow each other without a pause. No schedule with the
same decisions ends earlier.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mig_opt.batch.batch import Batch, Task
from mig_opt.batch.schedule import Operation, OperationKind, Run, Schedule
from mig_opt.batch.timeline import GpuTimeline, Slot, Times
from mig_opt.gpu.model import Placement

DECIMALS = 9
"""Times are rounded to nanoseconds (very short ones to 12 digits), so that sums of decimal inputs read as decimals."""


@dataclass(slots=True)
class PlannedInstance:
    """An instance with the tasks that it runs, in order."""

    gpu: int  # index of the GPU
    placement: Placement  # where on the GPU
    tasks: list[Task] = field(default_factory=list)  # the tasks that it runs
    # For an instance that exists when the batch starts: the second at which it becomes free. None for an instance that
    # has to be created.
    free: float | None = None

    @property
    def load(self) -> float:
        """Seconds that its tasks take."""
        size = self.placement.profile.compute_slices
        return sum(task.times[size] for task in self.tasks)


def live_instances(batch: Batch) -> list[PlannedInstance]:
    """Return the instances of the initial state, without tasks."""
    return [
        PlannedInstance(live.gpu, batch.gpu.placement(live.profile, live.start), free=live.free)
        for live in batch.initial
    ]


def timed_schedule(
    batch: Batch,
    instances: Sequence[PlannedInstance],
    operations: Sequence[tuple[OperationKind, int]],
    *,
    driver_free: Mapping[int, float] | None = None,
    clear: Mapping[tuple[int, int], float] | None = None,
) -> Schedule:
    """Return the earliest schedule for these decisions, its runs and operations sorted by time.

    Operations name their instance by its index and are in the order in which each GPU's driver works (orders of
    different GPUs may be interleaved at will). An instance is created before it is destroyed, and destroyed before a
    conflicting one is created. ``driver_free`` has for each GPU the second from which its driver takes orders,
    ``clear`` for each GPU and memory slice without a live instance the second from which it can be used, where these
    are not 0.
    """
    driver: dict[int, float] = defaultdict(float, driver_free or {})
    slice_clear: dict[tuple[int, int], float] = defaultdict(float, clear or {})
    block_end: dict[int, float] = {}
    runs: list[Run] = []
    timed: list[Operation] = []

    def run_tasks(index: int, ready: float) -> None:
        instance = instances[index]
        profile = instance.placement.profile
        now = ready
        for task in instance.tasks:
            begin, now = now, now + task.times[profile.compute_slices]
            runs.append(Run(task.name, instance.gpu, profile.name, instance.placement.start, tidy(begin), tidy(now)))
        block_end[index] = now

    for index, instance in enumerate(instances):
        if instance.free is not None:
            run_tasks(index, instance.free)
    for kind, index in operations:
        instance = instances[index]
        profile, gpu = instance.placement.profile, instance.gpu
        footprint = [(gpu, position) for position in instance.placement.footprint]
        ready = max(slice_clear[position] for position in footprint) if kind == "create" else block_end[index]
        begin = max(ready, driver[gpu])
        end = begin + batch.operations.of(kind, profile)
        if not batch.parallel_operations:
            driver[gpu] = end
        timed.append(Operation(kind, gpu, profile.name, instance.placement.start, tidy(begin), tidy(end)))
        if kind == "create":
            run_tasks(index, end)
        else:
            for position in footprint:
                slice_clear[position] = end
    # A creation that takes no time sorts behind the destruction that made room for it: the sort is stable.
    runs.sort(key=lambda run: (run.begin, run.gpu, run.start))
    timed.sort(key=lambda operation: operation.begin)
    return Schedule(tuple(runs), tuple(timed))


def tidy(seconds: float) -> float:
    """Return a time without the digits that only rounding has left there."""
    return round(seconds, DECIMALS) if seconds >= 1e-3 else float(f"{seconds:.{DECIMALS + 3}g}")


def sequenced_schedule(batch: Batch, instances: Sequence[PlannedInstance]) -> Schedule:
    """Return a schedule for instances in a given order, live ones first.

    Of two instances on a GPU whose footprints share a slice, the earlier one in the order is destroyed, once its tasks
    have ended, to make room for the later one. Nothing else is destroyed. The driver of each GPU serves operations
    first come, first served (those that come at once in the order of their instances).
    """
    followers, waiting = _successions(batch, instances)
    loads = [instance.load for instance in instances]
    # Entries are (second from which it can begin, instance, kind).
    ready: list[tuple[float, int, OperationKind]] = [
        (0.0, index, "create") if instance.free is None else (instance.free + loads[index], index, "destroy")
        for index, instance in enumerate(instances)
        if (followers[index] if instance.free is not None else not waiting[index])
    ]
    heapq.heapify(ready)
    driver_free = [0.0] * batch.gpus
    clear = [0.0] * len(instances)
    order: list[tuple[OperationKind, int]] = []
    while ready:
        begin, index, kind = heapq.heappop(ready)
        order.append((kind, index))
        gpu = instances[index].gpu
        if not batch.parallel_operations:
            begin = max(begin, driver_free[gpu])
        end = driver_free[gpu] = begin + batch.operations.of(kind, instances[index].placement.profile)
        if kind == "create":
            if followers[index]:
                heapq.heappush(ready, (end + loads[index], index, "destroy"))
            continue
        for later in followers[index]:
            waiting[later] -= 1
            clear[later] = max(clear[later], end)
            if not waiting[later]:
                heapq.heappush(ready, (clear[later], later, "create"))
    return timed_schedule(batch, instances, order)


def retimed_schedule(batch: Batch, runs: Iterable[Run]) -> Schedule:
    """Return a schedule with the places of some runs and their order, each as early as it may be.

    A run shares the instance of the one before it at its place, unless a run in between needs some of its slices.

    Parameters
    ----------
    batch : Batch
        The batch.
    runs : iterable of Run
        One of each task, where it can run; their times only tell their order.

    Examples
    --------
    >>> from mig_opt import Batch, Task, get_gpu
    >>> batch = Batch((Task("a", {1: 4.0, 2: 2.5}), Task("b", {2: 2.0})), get_gpu("A30"))
    >>> late = [Run("a", 0, "2g.12gb", 0, 5.0, 7.5), Run("b", 0, "2g.12gb", 0, 9.0, 11.0)]
    >>> [(run.task, run.begin) for run in retimed_schedule(batch, late).runs]
    [('a', 0.12), ('b', 2.62)]
    """
    instances = live_instances(batch)
    alive: dict[int, list[PlannedInstance]] = defaultdict(list)
    for instance in instances:
        alive[instance.gpu].append(instance)
    tasks = {task.name: task for task in batch.tasks}
    for run in sorted(runs, key=lambda run: (run.begin, run.end)):
        placement, there = batch.gpu.placement(run.profile, run.start), alive[run.gpu]
        same = next((instance for instance in there if instance.placement.shape == placement.shape), None)
        if same is None:
            same = PlannedInstance(run.gpu, placement)
            instances.append(same)
            alive[run.gpu] = [one for one in there if not one.placement.conflicts(placement)] + [same]
        same.tasks.append(tasks[run.task])
    return sequenced_schedule(batch, instances)


def _successions(batch: Batch, instances: Sequence[PlannedInstance]) -> tuple[list[list[int]], list[int]]:
    """Return for each instance those that come right after it on some slice, and how many come right before it."""
    followers: list[list[int]] = [[] for _ in instances]
    waiting: list[int] = []
    last: list[list[int | None]] = [[None] * batch.gpu.memory_slices for _ in range(batch.gpus)]
    for index, instance in enumerate(instances):
        slices = last[instance.gpu]
        before = {slices[position] for position in instance.placement.footprint} - {None}
        for other in before:
            assert other is not None
            followers[other].append(index)
        waiting.append(len(before))
        for position in instance.placement.footprint:
            slices[position] = index
    return followers, waiting


def nested_schedule(batch: Batch, places: Sequence[tuple[int, Placement]]) -> Schedule:
    """Return a schedule for the GPU and placement of each task, outer instances before inner ones.

    Each placement is created once, unless an instance of that shape is live at the start: that one is used. Live
    instances come first. The driver serves the operation whose slices have the most work left behind it.
    """
    instances = _instances(batch, places)
    order = [(kind, indices[at]) for indices, times in _nested_times(batch, instances) for kind, at in times.order]
    return timed_schedule(batch, instances, order)


def nested_makespan(batch: Batch, places: Sequence[tuple[int, Placement]]) -> float:
    """Return the seconds that :func:`nested_schedule` takes, but for rounding, without the schedule."""
    return max(times.makespan for _, times in _nested_times(batch, _instances(batch, places)))


def _nested_times(batch: Batch, instances: Sequence[PlannedInstance]) -> Iterator[tuple[list[int], Times]]:
    """Yield for each GPU in use its instances, by index, and their times one after the other as they conflict."""
    on_gpu: dict[int, list[int]] = defaultdict(list)
    for index, instance in enumerate(instances):
        on_gpu[instance.gpu].append(index)
    for indices in on_gpu.values():
        timeline = GpuTimeline(
            [Slot(instances[index].placement, instances[index].free) for index in indices],
            batch.operations,
            parallel_operations=batch.parallel_operations,
        )
        yield indices, timeline.times([instances[index].load for index in indices])


def _instances(batch: Batch, places: Sequence[tuple[int, Placement]]) -> list[PlannedInstance]:
    """Return the live instances and those that have to be created, each with its tasks, outer ones first."""
    at = {(live.gpu, live.placement.shape): live for live in live_instances(batch)}
    for task, (gpu, placement) in zip(batch.tasks, places, strict=True):
        at.setdefault((gpu, placement.shape), PlannedInstance(gpu, placement)).tasks.append(task)
    return sorted(
        at.values(),
        key=lambda entry: (
            entry.free is None,
            -entry.placement.profile.memory_slices,
            -entry.placement.profile.compute_slices,
        ),
    )
