"""The validator of schedules: one small function per rule, each yielding its violations.

Rules look at a :class:`ScheduleCase`, a schedule in which the entries that make no sense in themselves are set aside:
they are reported by the rules about entries and cannot upset the rules about instances. Operations that a schedule does
not have are looked for (:mod:`mig_opt.validation.batch.operation_search`).
"""

from __future__ import annotations

import dataclasses
import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from mig_opt.batch.batch import Batch, Task
from mig_opt.batch.schedule import Lifetime, Operation, Run, Schedule, lifetimes, wrong_types
from mig_opt.errors import InputError, Problem, raise_any
from mig_opt.gpu.model import Location
from mig_opt.rules import wrong_number
from mig_opt.texts import plural
from mig_opt.validation.batch.operation_search import operations_for
from mig_opt.validation.placed import (
    Placed,
    Span,
    clash_message,
    clashes,
    in_seconds,
    leeway,
    overlaps,
    placed_entries,
    placement_problems,
    spans_of,
    time_problems,
    too_late,
)
from mig_opt.validation.violations import Verdict, Violation, ViolationCode


@dataclass(frozen=True, slots=True)
class Validation(Verdict):
    """Verdict of the validator about a schedule.

    Attributes
    ----------
    makespan : float
        The last end of a run in seconds, recomputed.
    violations : tuple of Violation
        Everything that is wrong; empty if the schedule is valid.
    schedule : Schedule
        The schedule; with operations that make it feasible if it came without and there are some.
    """

    makespan: float
    violations: tuple[Violation, ...]
    schedule: Schedule

    @property
    def _figures(self) -> str:
        return f"makespan {in_seconds(self.makespan)}"


def validate(batch: Batch, schedule: Schedule, *, tolerance: float = 1e-6) -> Validation:
    """Check a schedule against every rule of the problem.

    Parameters
    ----------
    batch : Batch
        The batch that was to be planned.
    schedule : Schedule
        The schedule. If its operations are None, operations are looked for; the search is exact: if there are any that
        make the runs feasible, some are found.
    tolerance : float
        Seconds by which two times may differ and still count as equal; more where they are rounded to more.

    Returns
    -------
    Validation
        All violations, not only the first. An entry that makes no sense in itself (unknown placement, times that are
        not finite, ...) is reported once and left out of the rules about instances; so is, until it is mended, what
        such an operation leaves unclear.

    Raises
    ------
    InputError
        If the tolerance is negative or not finite, or an argument is of another type.

    Notes
    -----
    The operations that are found begin no earlier than they may; the tolerance only stretches their deadlines.
    A ``max_count`` above 1 that does not follow from the footprints (no GPU of the catalogue has one) does not guide
    the search; the operations found are checked against it.

    Examples
    --------
    >>> from mig_opt import Batch, Run, Schedule, Task, get_gpu
    >>> batch = Batch((Task("a", {4: 2.0}), Task("b", {2: 3.0})), get_gpu("A30"))
    >>> runs = (Run("a", 0, "4g.24gb", 0, 0.13, 2.13), Run("b", 0, "2g.12gb", 0, 2.35, 5.35))
    >>> result = validate(batch, Schedule(runs))
    >>> print(result)
    valid, makespan 5.35 s
    >>> [(operation.kind, operation.profile) for operation in result.schedule.operations]
    [('create', '4g.24gb'), ('destroy', '4g.24gb'), ('create', '2g.12gb')]
    >>> too_soon = Run("b", 0, "2g.12gb", 0, 2.3, 5.3)
    >>> [str(violation.code) for violation in validate(batch, Schedule((runs[0], too_soon))).violations]
    ['no-operation-sequence']
    """
    wrong = wrong_number("tolerance", tolerance, "a finite number of seconds >= 0", at_least=0)
    raise_any([*wrong_types(batch, schedule), *wrong])
    case = schedule_case(batch, schedule, tolerance)
    violations = [violation for rule in ENTRY_RULES for violation in rule(case)]
    if schedule.operations is None:
        case, failures = _with_operations(case)
        violations += failures
    violations += [violation for rule in INSTANCE_RULES for violation in rule(case)]
    makespan = max((run.end for run in schedule.runs if math.isfinite(run.end)), default=0.0)
    return Validation(makespan, tuple(violations), case.schedule)


def violations_of_method(batch: Batch, schedule: Schedule) -> tuple[Violation, ...]:
    """Return what is wrong with a schedule that a method made; refuse times that are too far apart for any method.

    Then short ones are lost in the rounding of long ones.
    """
    found = validate(batch, schedule).violations
    late = [violation.message for violation in found if violation.code is ViolationCode.TOO_LATE]
    if late:
        advice = "give shorter times, or leave out the sizes on which a task is not to run"
        raise InputError([Problem("tasks", f"have times too far apart to be added up: {late[0]}; {advice}")])
    return found


_Entry = TypeVar("_Entry", Run, Operation)

Doubt = tuple[()] | tuple[int] | Location
"""Everything, a GPU, or a placement on a GPU: the extent of what a senseless operation leaves unclear."""


@dataclass(frozen=True, slots=True)
class ScheduleCase:
    """A schedule, sorted out for the rules: ``runs`` and ``operations`` are the entries that make sense."""

    batch: Batch
    schedule: Schedule
    tolerance: float
    tasks: dict[str, Task]
    runs: tuple[Placed[Run], ...]
    operations: tuple[Placed[Operation], ...]
    doubts: frozenset[Doubt]
    lifetimes: tuple[Lifetime, ...]
    stray: tuple[Placed[Operation], ...]

    def doubtful(self, location: Location) -> bool:
        """Return True if it is unclear which instances there are, for a reason that has been reported."""
        return bool(self.doubts) and not self.doubts.isdisjoint(((), location[:1], location))

    def path(self, operation: int | None) -> str:
        """Return the path of an operation of a lifetime in the schedule."""
        assert operation is not None  # initial instances come first and exclude no other one: they are never at fault
        return f"operations[{self.operations[operation].index}]"


Rule = Callable[[ScheduleCase], Iterator[Violation]]


def schedule_case(batch: Batch, schedule: Schedule, tolerance: float) -> ScheduleCase:
    """Set aside the entries that make no sense, note what is unclear without them, and find the instances."""
    entries = schedule.operations or ()
    kinds = tuple(kind for kind, gpus in batch.kinds.items() for _ in gpus)

    def sensible(entries: Iterable[_Entry]) -> tuple[Placed[_Entry], ...]:
        return tuple(
            placed
            for placed in placed_entries(kinds, entries)
            if not any(time_problems(placed.entry, tolerance)) and not _without_mig(batch, placed.entry)
        )

    operations, runs = sensible(entries), sensible(schedule.runs)
    doubts: set[Doubt] = set()
    placed = {operation.index for operation in operations}
    for index, operation in enumerate(entries):
        if index not in placed:
            if any(place_problems(batch, operation)):
                doubts.add((operation.gpu,) if 0 <= operation.gpu < batch.gpus else ())
            else:
                doubts.add((operation.gpu, operation.profile, operation.start))
    found, stray = lifetimes(batch.initial, [placed.entry for placed in operations], tolerance)
    return ScheduleCase(
        batch,
        schedule,
        tolerance,
        {task.name: task for task in batch.tasks},
        runs,
        operations,
        frozenset(doubts),
        tuple(found),
        tuple(operations[index] for index in stray),
    )


def place_problems(batch: Batch, entry: Run | Operation) -> Iterator[tuple[ViolationCode, Problem]]:
    """Yield the problems of an entry with its GPU and placement."""
    if not 0 <= entry.gpu < batch.gpus:
        known = "only GPU 0" if batch.gpus == 1 else f"GPUs 0 to {batch.gpus - 1}"
        yield ViolationCode.UNKNOWN_GPU, Problem("gpu", f"the batch has {known}, not GPU {entry.gpu}")
    for problem in placement_problems(batch.kind(entry.gpu if 0 <= entry.gpu < batch.gpus else 0), entry):
        yield ViolationCode.UNKNOWN_PLACEMENT, problem
    if _without_mig(batch, entry):
        message = f"GPU {entry.gpu} has MIG off: nothing is created or destroyed there, tasks run on all of it"
        yield ViolationCode.WITHOUT_MIG, Problem("", message)


def _without_mig(batch: Batch, entry: Run | Operation) -> bool:
    return isinstance(entry, Operation) and 0 <= entry.gpu < batch.gpus and not batch.has_mig(entry.gpu)


def _with_operations(case: ScheduleCase) -> tuple[ScheduleCase, list[Violation]]:
    """Look for operations; the GPUs for which there are none count as doubtful."""
    operations, wrong = operations_for(case.batch, case.runs, case.tolerance)
    schedule = dataclasses.replace(case.schedule, operations=tuple(operations))
    known = schedule_case(case.batch, schedule, case.tolerance)
    known = dataclasses.replace(known, doubts=frozenset((gpu,) for gpu in wrong))
    failures = [violation for found in wrong.values() for violation in found]
    return (dataclasses.replace(known, schedule=case.schedule) if failures else known), failures


# Rules about single entries.


def _unknown_tasks(case: ScheduleCase) -> Iterator[Violation]:
    for index, run in enumerate(case.schedule.runs):
        if run.task not in case.tasks:
            message = f"the batch has no task {run.task!r}"
            yield Violation(ViolationCode.UNKNOWN_TASK, f"runs[{index}].task", message)


def _missing_tasks(case: ScheduleCase) -> Iterator[Violation]:
    present = {run.task for run in case.schedule.runs}
    for index, task in enumerate(case.batch.tasks):
        if task.name not in present:
            yield Violation(ViolationCode.MISSING_TASK, f"tasks[{index}]", f"task {task.name!r} has no run")


def _repeated_tasks(case: ScheduleCase) -> Iterator[Violation]:
    first: dict[str, int] = {}
    for index, run in enumerate(case.schedule.runs):
        if first.setdefault(run.task, index) != index:
            message = f"task {run.task!r} runs already in runs[{first[run.task]}]"
            yield Violation(ViolationCode.REPEATED_TASK, f"runs[{index}].task", message)


def _places(case: ScheduleCase) -> Iterator[Violation]:
    for path, entry in _entries(case.schedule):
        for code, problem in place_problems(case.batch, entry):
            yield Violation(code, problem.below(path).path, problem.message)


def _times(case: ScheduleCase) -> Iterator[Violation]:
    for path, entry in _entries(case.schedule):
        for problem in time_problems(entry, case.tolerance):
            yield Violation(ViolationCode.BAD_TIME, problem.below(path).path, problem.message)


def _entries(schedule: Schedule) -> Iterator[tuple[str, Run | Operation]]:
    for index, run in enumerate(schedule.runs):
        yield f"runs[{index}]", run
    for index, operation in enumerate(schedule.operations or ()):
        yield f"operations[{index}]", operation


def _sizes(case: ScheduleCase) -> Iterator[Violation]:
    for placed in case.runs:
        task, profile = case.tasks.get(placed.entry.task), placed.placement.profile
        if task is None:
            continue
        if task.memory_gb is not None and task.memory_gb > profile.memory_gb:
            message = f"task {task.name!r} needs {task.memory_gb:g} GB; {profile.name} has {profile.memory_gb:g} GB"
            yield Violation(ViolationCode.INSUFFICIENT_MEMORY, f"runs[{placed.index}]", message)
        if task.profiled(profile) is None:
            own = task.times_on(case.batch.kind(placed.entry.gpu))
            there = f"the {plural(profile.compute_slices, 'compute slice')} of {profile.name}" if own else profile.gpu
            sizes = ", ".join(map(str, own or task.times))
            message = f"task {task.name!r} has no time on {there}, only on {sizes}"
            yield Violation(ViolationCode.SIZE_NOT_PROFILED, f"runs[{placed.index}]", message)


def _run_durations(case: ScheduleCase) -> Iterator[Violation]:
    for placed in case.runs:
        run = placed.entry
        task = case.tasks.get(run.task)
        seconds = None if task is None else task.profiled(placed.placement.profile)
        if seconds is None:
            continue
        if abs(run.end - (run.begin + seconds)) > leeway(run.end, case.tolerance):
            message = (
                f"task {run.task!r} takes {in_seconds(seconds)} on {run.profile}, but its run from "
                f"{in_seconds(run.begin)} to {in_seconds(run.end)} is {in_seconds(run.end - run.begin)} long"
            )
            yield Violation(ViolationCode.WRONG_DURATION, f"runs[{placed.index}]", message)
        elif too_late(run.begin, run.end, seconds, case.tolerance):
            yield _too_late(f"runs[{placed.index}]", f"task {run.task!r}", run, seconds)


def _too_late(path: str, subject: str, entry: Run | Operation, seconds: float) -> Violation:
    gap = math.ulp(entry.begin)
    message = f"{subject} takes {in_seconds(seconds)}, but times near {in_seconds(entry.begin)} are {gap:.2g} s apart"
    return Violation(ViolationCode.TOO_LATE, path, message)


def _makespan(case: ScheduleCase) -> Iterator[Violation]:
    stated, makespan = case.schedule.stated_makespan, case.schedule.makespan
    known = all(math.isfinite(run.end) for run in case.schedule.runs)
    if stated is not None and known and not abs(stated - makespan) <= leeway(makespan, case.tolerance):
        message = f"the stated makespan is {in_seconds(stated)}, but the last run ends at {in_seconds(makespan)}"
        yield Violation(ViolationCode.WRONG_MAKESPAN, "makespan", message)


# Rules about instances and operations.


def _runs_overlap(case: ScheduleCase) -> Iterator[Violation]:
    for earlier, later in overlaps(spans_of(case.runs), case.tolerance):
        run, other = later.item.entry, earlier.item.entry
        message = (
            f"task {run.task!r} begins on {later.item.placement} of GPU {run.gpu} at {in_seconds(run.begin)}, while "
            f"task {other.task!r} runs there until {in_seconds(other.end)}"
        )
        yield Violation(ViolationCode.RUNS_OVERLAP, f"runs[{later.item.index}]", message)


def _runs_in_instances(case: ScheduleCase) -> Iterator[Violation]:
    instances: dict[Location, list[Lifetime]] = defaultdict(list)
    for lifetime in sorted(case.lifetimes, key=lambda lifetime: lifetime.ready):
        instances[lifetime.location].append(lifetime)
    for placed in case.runs:
        if case.doubtful(placed.location):
            continue
        run, there = placed.entry, instances[placed.location]
        place = f"{placed.placement} of GPU {run.gpu}"
        if not there:
            message = f"task {run.task!r} runs on {place}, but no such instance ever exists"
            yield Violation(ViolationCode.RUN_WITHOUT_INSTANCE, f"runs[{placed.index}]", message)
            continue
        ready = bisect_right(there, run.begin + leeway(run.begin, case.tolerance), key=lambda lifetime: lifetime.ready)
        # Within the tolerance of a re-creation the run may belong to the instance before.
        latest = run.end - leeway(run.end, case.tolerance)
        if any(latest <= lifetime.close for lifetime in there[max(ready - 2, 0) : ready]):
            continue
        if ready == 0:
            why = f"begins at {in_seconds(run.begin)}, but {place} is ready only at {in_seconds(there[0].ready)}"
        else:
            close = in_seconds(there[ready - 1].close)
            why = f"ends at {in_seconds(run.end)}, but the destruction of {place} begins at {close}"
        message = f"task {run.task!r} {why}"
        yield Violation(ViolationCode.RUN_OUTSIDE_INSTANCE, f"runs[{placed.index}]", message)


def _instances_exclude(case: ScheduleCase) -> Iterator[Violation]:
    # An initial instance was there before everything else, also before an operation that begins at 0.
    spans = (
        Span(-math.inf if each.initial else each.begin, each.end, each.gpu, case.batch.placement(each), each)
        for each in case.lifetimes
    )
    for later, earlier in clashes(spans, case.tolerance):
        shared = later.key.conflicts(earlier[0].key)
        code = ViolationCode.INSTANCES_OVERLAP if shared else ViolationCode.TOO_MANY_INSTANCES
        yield Violation(code, case.path(later.item.created), clash_message(later, earlier))


def _operation_durations(case: ScheduleCase) -> Iterator[Violation]:
    for placed in case.operations:
        operation = placed.entry
        seconds = case.batch.operations.of(operation.kind, placed.placement.profile)
        if abs(operation.end - (operation.begin + seconds)) > leeway(operation.end, case.tolerance):
            message = (
                f"the {_noun(operation)} of {placed.placement} takes {in_seconds(seconds)}, but is "
                f"{in_seconds(operation.end - operation.begin)} long here"
            )
            yield Violation(ViolationCode.OPERATION_DURATION, f"operations[{placed.index}]", message)
        elif too_late(operation.begin, operation.end, seconds, case.tolerance):
            subject = f"the {_noun(operation)} of {placed.placement}"
            yield _too_late(f"operations[{placed.index}]", subject, operation, seconds)


def _operations_overlap(case: ScheduleCase) -> Iterator[Violation]:
    if case.batch.parallel_operations:
        return
    spans = (Span(placed.entry.begin, placed.entry.end, placed.entry.gpu, None, placed) for placed in case.operations)
    for earlier, later in overlaps(spans, case.tolerance):
        one, two = earlier.item, later.item
        message = (
            f"the {_noun(two.entry)} of {two.placement} on GPU {later.gpu} begins at {in_seconds(later.begin)}, "
            f"while the {_noun(one.entry)} of {one.placement} goes on until {in_seconds(earlier.end)}"
        )
        yield Violation(ViolationCode.OPERATIONS_OVERLAP, f"operations[{two.index}]", message)


def _stray_operations(case: ScheduleCase) -> Iterator[Violation]:
    for placed in case.stray:
        if case.doubtful(placed.location):
            continue
        place, begin = f"{placed.placement} of GPU {placed.entry.gpu}", in_seconds(placed.entry.begin)
        if placed.entry.kind == "create":
            code, message = ViolationCode.CREATE_TWICE, f"{place} is created at {begin}, but exists already"
        else:
            code = ViolationCode.DESTROY_WITHOUT_CREATE
            message = f"{place} is destroyed at {begin}, but does not exist then"
        yield Violation(code, f"operations[{placed.index}]", message)


def _early_destructions(case: ScheduleCase) -> Iterator[Violation]:
    for lifetime in case.lifetimes:
        if lifetime.close < lifetime.ready - leeway(lifetime.ready, case.tolerance):
            state = "free" if lifetime.initial else "created"
            message = (
                f"the destruction of {lifetime} of GPU {lifetime.gpu} begins at {in_seconds(lifetime.close)}, but it "
                f"is {state} only at {in_seconds(lifetime.ready)}"
            )
            yield Violation(ViolationCode.DESTROY_TOO_EARLY, case.path(lifetime.destroyed), message)


def _noun(operation: Operation) -> str:
    return "creation" if operation.kind == "create" else "destruction"


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
    _instances_exclude,
    _operation_durations,
    _operations_overlap,
    _stray_operations,
    _early_destructions,
)
