"""From decisions to times: the earliest schedule for given instances, task orders and order of operations.

Methods decide *which* instances there are, which tasks each of them runs, and in which order the driver creates and
destroys them. Everything else follows: each operation begins as soon as the driver is free and its footprint is clear
(a creation) or its tasks have ended (a destruction), and tasks follow each other without a pause. No schedule with the
same decisions ends earlier.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mig_opt.batch.batch import Batch, Task
from mig_opt.batch.schedule import Operation, OperationKind, Run, Schedule
from mig_opt.gpu.model import GpuPlacement, OperationCosts, Placement

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
        profile = self.placement.profile
        return sum(task.seconds(profile) for task in self.tasks)


def live_instances(batch: Batch) -> list[PlannedInstance]:
    """Return the instances of the initial state, without tasks."""
    return [PlannedInstance(live.gpu, batch.placement(live), free=live.free) for live in batch.initial]


def live_by_shape(batch: Batch) -> dict[tuple[int, tuple[int, int, int]], PlannedInstance]:
    """Return the same by GPU and shape of their placements: whatever has that shape can run on them."""
    return {(live.gpu, live.placement.shape): live for live in live_instances(batch)}


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
            begin, now = now, now + task.seconds(profile)
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
        if batch.has_mig(gpu):  # else the instance stands for the whole GPU, which is there all the time
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
    followers, waiting = _successions(instances)
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
    """Return a schedule with the places of some runs, one of each task, and their order, each as early as it may be.

    The times of the runs only tell their order. A run shares the instance of the one before it at its place, unless a
    run in between needs some of its slices.

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
        placement, there = batch.placement(run), alive[run.gpu]
        same = next((instance for instance in there if instance.placement.shape == placement.shape), None)
        if same is None:
            same = PlannedInstance(run.gpu, placement)
            instances.append(same)
            alive[run.gpu] = [one for one in there if not one.placement.conflicts(placement)] + [same]
        same.tasks.append(tasks[run.task])
    return sequenced_schedule(batch, instances)


def _successions(instances: Sequence[PlannedInstance]) -> tuple[list[list[int]], list[int]]:
    """Return for each instance those that come right after it on some slice, and how many come right before it."""
    followers: list[list[int]] = [[] for _ in instances]
    waiting: list[int] = []
    last: dict[tuple[int, int], int] = {}
    for index, instance in enumerate(instances):
        slices = [(instance.gpu, position) for position in instance.placement.footprint]
        before = {last[position] for position in slices if position in last}
        for other in before:
            followers[other].append(index)
        waiting.append(len(before))
        last.update(dict.fromkeys(slices, index))
    return followers, waiting


def nested_schedule(batch: Batch, places: Sequence[GpuPlacement]) -> Schedule:
    """Return a schedule for the GPU and placement of each task, outer instances before inner ones.

    Each placement is created once, unless an instance of that shape is live at the start: that one is used. Live
    instances come first. The driver serves the operation whose slices have the most work left behind it.
    """
    instances = _instances(batch, places)
    order = [(kind, indices[at]) for indices, times in _nested_times(batch, instances) for kind, at in times.order]
    return timed_schedule(batch, instances, order)


def nested_makespan(batch: Batch, places: Sequence[GpuPlacement]) -> float:
    """Return the seconds that :func:`nested_schedule` takes, but for rounding, without the schedule."""
    return max(times.makespan for _, times in _nested_times(batch, _instances(batch, places)))


def _nested_times(batch: Batch, instances: Sequence[PlannedInstance]) -> Iterator[tuple[list[int], Times]]:
    """Yield for each GPU in use its instances, by index, and their times one after the other as they conflict."""
    on_gpu: dict[int, list[int]] = defaultdict(list)
    for index, instance in enumerate(instances):
        on_gpu[instance.gpu].append(index)
    for indices in on_gpu.values():
        there = [instances[index] for index in indices]
        timeline = GpuTimeline(there, batch.operations, parallel_operations=batch.parallel_operations)
        yield indices, timeline.times([instance.load for instance in there])


def _instances(batch: Batch, places: Sequence[GpuPlacement]) -> list[PlannedInstance]:
    """Return the live instances and those that have to be created, each with its tasks, outer ones first."""
    at = live_by_shape(batch)
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


@dataclass(frozen=True, slots=True)
class Times:
    """The earliest times for some loads."""

    order: tuple[tuple[OperationKind, int], ...]  # the operations in the order in which the driver serves them
    # for each instance the second at which its load ends; of a live one without load the second at which it is free, 0
    # for any other one without load
    ends: tuple[float, ...]
    makespan: float  # the last end of a load in seconds, 0 without loads


class GpuTimeline:
    """The instances of one GPU; what they run does not matter here.

    Live ones come first; of two that conflict the one with the lower index exists first. The driver takes orders from
    second ``driver_free`` on. Memory slices without a live instance can be used from second ``clear`` on, where that is
    not 0.
    """

    def __init__(
        self,
        instances: Sequence[PlannedInstance],
        costs: OperationCosts,
        *,
        parallel_operations: bool = False,
        driver_free: float = 0.0,
        clear: Mapping[int, float] | None = None,
    ) -> None:
        self.instances = tuple(instances)
        self._parallel = parallel_operations
        self._driver_free = driver_free
        self._create = [costs.of("create", instance.placement.profile) for instance in instances]
        self._destroy = [costs.of("destroy", instance.placement.profile) for instance in instances]
        self._clear_at = dict(clear or {})
        self._clear = self._latest_on_slices(self._clear_at)
        # Those that can exist only after this one is destroyed, and those that have to be gone before it exists.
        count = range(len(self.instances))
        self._after = [
            tuple(
                later
                for later in count[index + 1 :]
                if instances[later].free is None and instances[later].placement.conflicts(instance.placement)
            )
            for index, instance in enumerate(instances)
        ]
        self._before = [tuple(other for other in count[:index] if index in self._after[other]) for index in count]

    def _latest_on_slices(self, seconds: Mapping[int, float]) -> list[float]:
        """Return for each instance the latest of what is given for its memory slices."""
        return [
            max(seconds.get(at, 0.0) for at in instance.placement.footprint) if seconds else 0.0
            for instance in self.instances
        ]

    def times(self, loads: Sequence[float]) -> Times:
        """Return the earliest times if the instances run for ``loads`` seconds; with 0 nothing is created there."""
        followers, behind = self._followers(loads)
        waiting = Counter(later for after in followers for later in after)
        ends = [0.0] * len(self.instances)
        # Entries are (second from which it can begin, -work behind it, kind, instance).
        ready: list[tuple[float, float, OperationKind, int]] = []
        for index, instance in enumerate(self.instances):
            if instance.free is not None:
                ends[index] = instance.free + loads[index]
                if followers[index]:
                    ready.append((ends[index], loads[index] - behind[index], "destroy", index))
            elif loads[index] and not waiting[index]:
                ready.append((self._clear[index], -behind[index], "create", index))
        order: list[tuple[OperationKind, int]] = []
        cleared = list(self._clear)
        now = self._driver_free
        while ready:
            chosen = self._next(ready, now)
            ready.remove(chosen)
            begin, _, kind, index = chosen
            begin = max(begin, self._driver_free if self._parallel else now)
            order.append((kind, index))
            if kind == "create":
                now = begin + self._create[index]
                ends[index] = now + loads[index]
                if followers[index]:
                    ready.append((ends[index], loads[index] - behind[index], "destroy", index))
            else:
                now = begin + self._destroy[index]
                for later in followers[index]:
                    waiting[later] -= 1
                    cleared[later] = max(cleared[later], now)
                    if not waiting[later]:
                        ready.append((cleared[later], -behind[later], "create", later))
        makespan = max((end for end, load in zip(ends, loads, strict=True) if load), default=0.0)
        return Times(tuple(order), tuple(ends), makespan)

    def _followers(self, loads: Sequence[float]) -> tuple[list[list[int]], list[float]]:
        """Return what waits for the destruction of each instance, and the longest path from its beginning to the end.

        Both count only what there is: live instances, and those with a load.
        """
        followers: list[list[int]] = [[]] * len(self.instances)
        behind = [0.0] * len(self.instances)
        for index in range(len(self.instances) - 1, -1, -1):
            if loads[index] or self.instances[index].free is not None:
                followers[index] = after = [later for later in self._after[index] if loads[later]]
                behind[index] = loads[index]
                if after:
                    rest = max(self._create[later] + behind[later] for later in after)
                    behind[index] += self._destroy[index] + rest
        return followers, behind

    def _next(
        self, ready: Sequence[tuple[float, float, OperationKind, int]], now: float
    ) -> tuple[float, float, OperationKind, int]:
        possible = [] if self._parallel else [entry for entry in ready if entry[0] <= now]
        return min(possible, key=lambda entry: entry[1:]) if possible else min(ready)

    def last_ends(self, loads: Sequence[float], times: Times) -> list[float]:
        """Return for each instance the second at which the last load on its memory slices ends.

        A live instance counts until it is free. A slice on which nothing runs ends when it can be used.
        """
        ends = dict(self._clear_at)
        for instance, load, end in zip(self.instances, loads, times.ends, strict=True):
            if load or instance.free is not None:
                for position in instance.placement.footprint:
                    ends[position] = max(ends.get(position, 0.0), end)
        return self._latest_on_slices(ends)

    def slacks(self, loads: Sequence[float], times: Times) -> list[float]:
        """Return for each instance by how many seconds its load could grow without a longer makespan.

        The driver keeps the order of ``times``. Instances on a critical path have 0. For one without load the creation
        that it needs is taken off, but it is not known what the driver would have to put off for it: a guess then, and
        negative where there is no room at all.
        """
        create, destroy = self._create, self._destroy
        limit = times.makespan
        latest_end = [limit] * len(self.instances)
        latest_create: dict[int, float] = {}
        driver = math.inf
        for kind, index in reversed(times.order):
            if kind == "create":
                begin = min(latest_end[index] - loads[index], driver) - create[index]
                latest_create[index] = begin
            else:
                begin = min(driver, *(latest_create[later] for later in self._after[index] if loads[later]))
                begin -= destroy[index]
                latest_end[index] = begin
            if not self._parallel:
                driver = begin
        found = []
        for index, instance in enumerate(self.instances):
            begin = times.ends[index]
            if not loads[index] and instance.free is None:
                begin = self._clear[index]
                for earlier in self._before[index]:
                    if loads[earlier] or self.instances[earlier].free is not None:
                        begin = max(begin, times.ends[earlier] + destroy[earlier])
                begin += create[index]
                for later in self._after[index]:
                    if loads[later]:
                        latest_end[index] = min(latest_end[index], latest_create[later] - destroy[index])
            found.append(latest_end[index] - begin)
        return found
