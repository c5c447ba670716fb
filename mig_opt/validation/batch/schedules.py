"""The validator of schedules: runs every rule, and has operations looked for where a schedule has none."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mig_opt.batch.batch import Batch
from mig_opt.batch.schedule import Operation, Run, Schedule
from mig_opt.errors import InputError, Problem
from mig_opt.validation.batch.operation_search import LateOperation, find_operations
from mig_opt.validation.batch.rules import ENTRY_RULES, INSTANCE_RULES, Doubt, ScheduleCase, schedule_case, spans_of
from mig_opt.validation.placed import Placed, clashes, in_seconds
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
        Seconds by which two times may differ and still count as equal.

    Returns
    -------
    Validation
        All violations, not only the first. An entry that makes no sense in itself (unknown placement, times that are
        not finite, ...) is reported once and left out of the rules about instances; so is, until it is mended, what
        such an operation leaves unclear.

    Raises
    ------
    InputError
        If the tolerance is negative or not finite.

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
    if not (math.isfinite(tolerance) and tolerance >= 0):
        raise InputError([Problem("tolerance", f"must be a finite number of seconds >= 0, is {tolerance}")])
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


def _with_operations(case: ScheduleCase) -> tuple[ScheduleCase, list[Violation]]:
    """Look for operations; the GPUs for which there are none count as doubtful."""
    failures: list[Violation] = []
    doubts: set[Doubt] = set()
    operations: list[Operation] = []
    runs: dict[int, list[Placed[Run]]] = {gpu: [] for gpu in range(case.batch.gpus)}
    for placed in case.runs:
        runs[placed.entry.gpu].append(placed)
    for gpu, placed_runs in runs.items():
        clashing = list(_clashing_runs(placed_runs, case.tolerance))
        found = clashing or find_operations(case.batch, gpu, placed_runs, case.tolerance)
        if isinstance(found, LateOperation):
            failures.append(_no_operation_sequence(gpu, found))
        elif isinstance(found, list):
            failures += found
        else:
            operations += found
            continue
        doubts.add((gpu,))
    operations.sort(key=lambda operation: operation.begin)
    schedule = dataclasses.replace(case.schedule, operations=tuple(operations))
    known = dataclasses.replace(schedule_case(case.batch, schedule, case.tolerance), doubts=frozenset(doubts))
    return (dataclasses.replace(known, schedule=case.schedule) if failures else known), failures


def _clashing_runs(runs: Sequence[Placed[Run]], tolerance: float) -> Iterator[Violation]:
    for later, earlier in clashes(spans_of(runs), tolerance):
        others = [other for other in earlier if other.key != later.key]
        if not others:
            continue  # two runs on one instance: a rule of its own
        run, profile = later.item.entry, later.key.profile
        code, why = ViolationCode.INSTANCES_OVERLAP, "the instances share memory slices"
        if not later.key.conflicts(others[0].key):
            code, why = ViolationCode.TOO_MANY_INSTANCES, f"at most {profile.max_count} of {profile.name} may exist"
        running = (f"task {o.item.entry.task!r} runs on {o.key} until {in_seconds(o.end)}" for o in others)
        begins = f"task {run.task!r} begins on {later.key} of GPU {run.gpu} at {in_seconds(later.begin)}"
        yield Violation(code, f"runs[{later.item.index}]", f"{begins}, while {' and '.join(running)}; {why}")


def _no_operation_sequence(gpu: int, late: LateOperation) -> Violation:
    job, task, begin = late.job, late.job.run.entry.task, in_seconds(late.job.run.entry.begin)
    if job.kind == "create":
        wanted = f"the creation of {job.placement} has to end by {begin}, when task {task!r} begins there"
    else:
        wanted = (
            f"the destruction of {job.placement} has to end by {in_seconds(job.deadline)}, so that "
            f"{job.run.placement} exists when task {task!r} begins on it at {begin}"
        )
    if late.alone:
        fact = f"it cannot end before {in_seconds(job.release + job.seconds)}"
    else:
        fact = f"in order of urgency it ends at {in_seconds(late.end)}, and in no order are all in time"
    message = f"GPU {gpu}: no sequence of operations is in time for the runs: {wanted}, but {fact}"
    return Violation(ViolationCode.NO_OPERATION_SEQUENCE, f"runs[{job.run.index}]", message)
