"""The rules of the problem: one small function per rule, each yielding its violations.

Rules look at a :class:`Case`, a schedule in which the entries that make no sense in themselves are set aside: they are
reported by the rules about entries and cannot upset the rules about instances.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mig_opt.batch.batch import Batch, Task
from mig_opt.batch.lifetimes import Where
from mig_opt.batch.schedule import Operation, Run, Schedule
from mig_opt.errors import InputError, Problem
from mig_opt.gpu.model import Placement, Profile
from mig_opt.texts import plural
from mig_opt.validation.intervals import Entry, Instance, Placed, Span, clashes, instances_of
from mig_opt.validation.violations import Violation, ViolationCode

Doubt = tuple[()] | tuple[int] | Where
"""What a senseless operation may be about: everything, a GPU, or a placement on a GPU."""


@dataclass(frozen=True, slots=True)
class Case:
    """A schedule, sorted out for the rules: ``runs`` and ``operations`` are the entries that make sense."""

    batch: Batch
    schedule: Schedule
    tolerance: float
    tasks: dict[str, Task]
    runs: tuple[Placed[Run], ...]
    operations: tuple[Placed[Operation], ...]
    doubts: frozenset[Doubt]
    instances: tuple[Instance, ...]
    stray: tuple[Placed[Operation], ...]

    def doubtful(self, where: Where) -> bool:
        """Whether it is unclear which instances there are, for a reason that has been reported."""
        return bool(self.doubts) and not self.doubts.isdisjoint(((), where[:1], where))


Rule = Callable[[Case], Iterator[Violation]]


def sort_out(batch: Batch, schedule: Schedule, tolerance: float) -> Case:
    """Set aside what makes no sense, note what that leaves unclear, and find out which instances there are."""
    entries = schedule.operations or ()
    operations = _sensible(batch, entries, tolerance)
    doubts: set[Doubt] = set()
    placed = {operation.index for operation in operations}
    for index, operation in enumerate(entries):
        if index not in placed:
            if any(place_problems(batch, operation)):
                doubts.add((operation.gpu,) if 0 <= operation.gpu < batch.gpus else ())
            else:
                doubts.add((operation.gpu, operation.profile, operation.start))
    instances, stray = instances_of(batch, operations, tolerance)
    return Case(
        batch,
        schedule,
        tolerance,
        {task.name: task for task in batch.tasks},
        _sensible(batch, schedule.runs, tolerance),
        operations,
        frozenset(doubts),
        tuple(instances),
        tuple(stray),
    )


def _sensible(batch: Batch, entries: Sequence[Entry], tolerance: float) -> tuple[Placed[Entry], ...]:
    """Return the entries that the rules about instances can work with."""
    return tuple(
        Placed(index, entry, batch.gpu.placement(entry.profile, entry.start))
        for index, entry in enumerate(entries)
        if not any(place_problems(batch, entry)) and not any(time_problems(entry, tolerance))
    )


def place_problems(batch: Batch, entry: Run | Operation) -> Iterator[tuple[ViolationCode, Problem]]:
    """Yield what is wrong with the GPU and placement of an entry."""
    if not 0 <= entry.gpu < batch.gpus:
        known = "only GPU 0" if batch.gpus == 1 else f"GPUs 0 to {batch.gpus - 1}"
        yield ViolationCode.UNKNOWN_GPU, Problem("gpu", f"the batch has {known}, not GPU {entry.gpu}")
    try:
        batch.gpu.placement(entry.profile, entry.start)
    except InputError as error:
        for problem in error.problems:
            yield ViolationCode.UNKNOWN_PLACEMENT, problem


def time_problems(entry: Run | Operation, tolerance: float) -> Iterator[Problem]:
    """Yield what is wrong with the times of an entry."""
    for name, seconds in (("begin", entry.begin), ("end", entry.end)):
        if not math.isfinite(seconds):
            yield Problem(name, f"must be a finite number of seconds, is {seconds}")
    if entry.begin < -tolerance:
        yield Problem("begin", f"must not be negative, is {in_seconds(entry.begin)}")
    if entry.end < entry.begin - tolerance:
        yield Problem("end", f"ends at {in_seconds(entry.end)}, before it begins at {in_seconds(entry.begin)}")


# Rules about single entries.


def _unknown_tasks(case: Case) -> Iterator[Violation]:
    for index, run in enumerate(case.schedule.runs):
        if run.task not in case.tasks:
            message = f"the batch has no task {run.task!r}"
            yield Violation(ViolationCode.UNKNOWN_TASK, f"runs[{index}].task", message)


def _missing_tasks(case: Case) -> Iterator[Violation]:
    present = {run.task for run in case.schedule.runs}
    for index, task in enumerate(case.batch.tasks):
        if task.name not in present:
            yield Violation(ViolationCode.MISSING_TASK, f"tasks[{index}]", f"task {task.name!r} has no run")


def _repeated_tasks(case: Case) -> Iterator[Violation]:
    first: dict[str, int] = {}
    for index, run in enumerate(case.schedule.runs):
        if first.setdefault(run.task, index) != index:
            message = f"task {run.task!r} runs already in runs[{first[run.task]}]"
            yield Violation(ViolationCode.REPEATED_TASK, f"runs[{index}].task", message)


def _places(case: Case) -> Iterator[Violation]:
    for path, entry in _entries(case.schedule):
        for code, problem in place_problems(case.batch, entry):
            yield Violation(code, problem.below(path).path, problem.message)


def _times(case: Case) -> Iterator[Violation]:
    for path, entry in _entries(case.schedule):
        for problem in time_problems(entry, case.tolerance):
            yield Violation(ViolationCode.BAD_TIME, problem.below(path).path, problem.message)


def _entries(schedule: Schedule) -> Iterator[tuple[str, Run | Operation]]:
    for index, run in enumerate(schedule.runs):
        yield f"runs[{index}]", run
    for index, operation in enumerate(schedule.operations or ()):
        yield f"operations[{index}]", operation


def _sizes(case: Case) -> Iterator[Violation]:
    for placed in case.runs:
        task, profile = case.tasks.get(placed.entry.task), placed.placement.profile
        if task is None:
            continue
        if task.memory_gb is not None and task.memory_gb > profile.memory_gb:
            message = f"task {task.name!r} needs {task.memory_gb:g} GB; {profile.name} has {profile.memory_gb:g} GB"
            yield Violation(ViolationCode.INSUFFICIENT_MEMORY, f"runs[{placed.index}]", message)
        if profile.compute_slices not in task.times:
            sizes = ", ".join(map(str, task.times))
            message = (
                f"task {task.name!r} has no time on the {plural(profile.compute_slices, 'compute slice')} of "
                f"{profile.name}, only on {sizes}"
            )
            yield Violation(ViolationCode.SIZE_NOT_PROFILED, f"runs[{placed.index}]", message)


def _run_durations(case: Case) -> Iterator[Violation]:
    for placed in case.runs:
        run = placed.entry
        task = case.tasks.get(run.task)
        seconds = None if task is None else task.times.get(placed.placement.profile.compute_slices)
        if seconds is not None and abs(run.end - (run.begin + seconds)) > case.tolerance:
            message = (
                f"task {run.task!r} takes {in_seconds(seconds)} on {run.profile}, but its run from "
                f"{in_seconds(run.begin)} to {in_seconds(run.end)} is {in_seconds(run.end - run.begin)} long"
            )
            yield Violation(ViolationCode.WRONG_DURATION, f"runs[{placed.index}]", message)


def _makespan(case: Case) -> Iterator[Violation]:
    stated, makespan = case.schedule.stated_makespan, case.schedule.makespan
    known = all(math.isfinite(run.end) for run in case.schedule.runs)
    if stated is not None and known and not abs(stated - makespan) <= case.tolerance:
        message = f"the stated makespan is {in_seconds(stated)}, but the last run ends at {in_seconds(makespan)}"
        yield Violation(ViolationCode.WRONG_MAKESPAN, "makespan", message)


# Rules about instances and operations.


def _runs_overlap(case: Case) -> Iterator[Violation]:
    groups = {where: group for group, where in enumerate(dict.fromkeys(placed.where for placed in case.runs))}
    spans = (Span(placed.entry.begin, placed.entry.end, groups[placed.where], placed) for placed in case.runs)
    for earlier, later in clashes(spans, [[group] for group in groups.values()], case.tolerance):
        run, other = later.item.entry, earlier.item.entry
        message = (
            f"task {run.task!r} begins on {later.item.placement} of GPU {run.gpu} at {in_seconds(run.begin)}, while "
            f"task {other.task!r} runs there until {in_seconds(other.end)}"
        )
        yield Violation(ViolationCode.RUNS_OVERLAP, f"runs[{later.item.index}]", message)


def _runs_in_instances(case: Case) -> Iterator[Violation]:
    instances: dict[Where, list[Instance]] = defaultdict(list)
    for instance in sorted(case.instances, key=lambda instance: instance.ready):
        instances[instance.gpu, instance.placement.profile.name, instance.placement.start].append(instance)
    for placed in case.runs:
        if case.doubtful(placed.where):
            continue
        run, there = placed.entry, instances[placed.where]
        place = f"{placed.placement} of GPU {run.gpu}"
        if not there:
            message = f"task {run.task!r} runs on {place}, but no such instance ever exists"
            yield Violation(ViolationCode.RUN_WITHOUT_INSTANCE, f"runs[{placed.index}]", message)
            continue
        ready = bisect_right(there, run.begin + case.tolerance, key=lambda instance: instance.ready)
        # Within the tolerance of a re-creation the run may belong to the instance before.
        if any(run.end <= instance.close + case.tolerance for instance in there[max(ready - 2, 0) : ready]):
            continue
        if ready == 0:
            why = f"begins at {in_seconds(run.begin)}, but {place} is ready only at {in_seconds(there[0].ready)}"
        else:
            close = in_seconds(there[ready - 1].close)
            why = f"ends at {in_seconds(run.end)}, but the destruction of {place} begins at {close}"
        message = f"task {run.task!r} {why}"
        yield Violation(ViolationCode.RUN_OUTSIDE_INSTANCE, f"runs[{placed.index}]", message)


def _instances_overlap(case: Case) -> Iterator[Violation]:
    instances = sorted(case.instances, key=lambda instance: instance.gpu)
    groups = {
        place: group
        for group, place in enumerate(dict.fromkeys((instance.gpu, instance.placement) for instance in instances))
    }
    on_gpu: dict[int, list[tuple[Placement, int]]] = defaultdict(list)
    for (gpu, placement), group in groups.items():
        on_gpu[gpu].append((placement, group))
    against = [[other for two, other in on_gpu[gpu] if one.conflicts(two)] for gpu, one in groups]
    spans = (
        Span(instance.begin, instance.end, groups[instance.gpu, instance.placement], instance) for instance in instances
    )
    for earlier, later in clashes(spans, against, case.tolerance):
        one, two = earlier.item, later.item
        until = f"exists until {in_seconds(one.end)}" if one.destroyed else "is never destroyed"
        message = (
            f"{two.placement} is created on GPU {two.gpu} at {in_seconds(two.begin)}, while {one.placement}, which "
            f"shares memory slices with it, {until}"
        )
        yield Violation(ViolationCode.INSTANCES_OVERLAP, _creation(two), message)


def _creation(instance: Instance) -> str:
    """Return the path of what brought the instance into the world."""
    assert instance.created is not None  # initial instances are first and exclude each other: never at fault
    return f"operations[{instance.created.index}]"


def _instance_counts(case: Case) -> Iterator[Violation]:
    by_kind: dict[tuple[int, str], list[Instance]] = defaultdict(list)
    for instance in case.instances:
        profile = instance.placement.profile
        if profile.max_count < _fitting(profile):
            by_kind[instance.gpu, profile.name].append(instance)
    for (gpu, name), instances in by_kind.items():
        ends: list[tuple[float, int]] = []
        for instance in sorted(instances, key=lambda instance: (instance.begin, instance.end)):
            while ends and ends[0][0] <= instance.begin + case.tolerance:
                heapq.heappop(ends)
            heapq.heappush(ends, (instance.end, instance.placement.start))
            count, limit = len({start for _, start in ends}), instance.placement.profile.max_count
            if count > limit:
                message = (
                    f"{instance.placement} is created on GPU {gpu} at {in_seconds(instance.begin)}, when {count - 1} "
                    f"of {name} exist already; at most {limit} may exist at once"
                )
                yield Violation(ViolationCode.TOO_MANY_INSTANCES, _creation(instance), message)


def _fitting(profile: Profile) -> int:
    """Return how many instances of a profile have room beside each other."""
    count, free = 0, 0
    for start in sorted(profile.starts):
        if start >= free:
            count, free = count + 1, start + profile.memory_slices
    return count


def _operation_durations(case: Case) -> Iterator[Violation]:
    for placed in case.operations:
        operation = placed.entry
        seconds = case.batch.operations.of(operation.kind, placed.placement.profile)
        if abs(operation.end - (operation.begin + seconds)) > case.tolerance:
            message = (
                f"the {_noun(operation)} of {placed.placement} takes {in_seconds(seconds)}, but is "
                f"{in_seconds(operation.end - operation.begin)} long here"
            )
            yield Violation(ViolationCode.OPERATION_DURATION, f"operations[{placed.index}]", message)


def _operations_overlap(case: Case) -> Iterator[Violation]:
    if case.batch.parallel_operations:
        return
    spans = (Span(placed.entry.begin, placed.entry.end, placed.entry.gpu, placed) for placed in case.operations)
    for earlier, later in clashes(spans, [[gpu] for gpu in range(case.batch.gpus)], case.tolerance):
        one, two = earlier.item, later.item
        message = (
            f"the {_noun(two.entry)} of {two.placement} on GPU {two.entry.gpu} begins at {in_seconds(later.begin)}, "
            f"while the {_noun(one.entry)} of {one.placement} goes on until {in_seconds(earlier.end)}"
        )
        yield Violation(ViolationCode.OPERATIONS_OVERLAP, f"operations[{two.index}]", message)


def _stray_operations(case: Case) -> Iterator[Violation]:
    for placed in case.stray:
        if case.doubtful(placed.where):
            continue
        place, begin = f"{placed.placement} of GPU {placed.entry.gpu}", in_seconds(placed.entry.begin)
        if placed.entry.kind == "create":
            code, message = ViolationCode.CREATE_TWICE, f"{place} is created at {begin}, but exists already"
        else:
            code = ViolationCode.DESTROY_WITHOUT_CREATE
            message = f"{place} is destroyed at {begin}, but does not exist then"
        yield Violation(code, f"operations[{placed.index}]", message)


def _early_destructions(case: Case) -> Iterator[Violation]:
    for instance in case.instances:
        if instance.destroyed is not None and instance.close < instance.ready - case.tolerance:
            state = "free" if instance.created is None else "created"
            message = (
                f"the destruction of {instance.placement} of GPU {instance.gpu} begins at "
                f"{in_seconds(instance.close)}, but it is {state} only at {in_seconds(instance.ready)}"
            )
            yield Violation(ViolationCode.DESTROY_TOO_EARLY, f"operations[{instance.destroyed.index}]", message)


def _noun(operation: Operation) -> str:
    return "creation" if operation.kind == "create" else "destruction"


def in_seconds(seconds: float) -> str:
    """Return a time to be read by people, to the nanosecond at most."""
    return f"{round(seconds, 9):.12g} s"


ENTRY_RULES: tuple[Rule, ...] = (
    _unknown_tasks,
    _missing_tasks,
    _repeated_tasks,
    _places,
    _times,
    _sizes,
    _run_durations,
    _makespan,
)
INSTANCE_RULES: tuple[Rule, ...] = (
    _runs_overlap,
    _runs_in_instances,
    _instances_overlap,
    _instance_counts,
    _operation_durations,
    _operations_overlap,
    _stray_operations,
    _early_destructions,
)
