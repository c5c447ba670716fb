"""Entry point for batches: :func:`solve` runs any method."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Unpack

from mig_opt.batch.batch import Batch, wrong_batch
from mig_opt.batch.bounds import best_lower_bound
from mig_opt.batch.horizon import Horizon
from mig_opt.batch.integer_batch import Ticks, equal_within_resolution
from mig_opt.batch.schedule import Schedule, ScheduleResult, on_gpus
from mig_opt.batch.timing import retimed_schedule
from mig_opt.errors import InputError, Problem
from mig_opt.gpu.model import Placement
from mig_opt.gpu.partitions import find_partition, wrong_partition
from mig_opt.gpu.problems import uncounted
from mig_opt.method.control import Control, call, run
from mig_opt.method.options import RunKeywords, run_options
from mig_opt.method.registry import AUTO, METHODS, Method, get_method, methods
from mig_opt.method.result import Status
from mig_opt.rules import is_among, wrong_type
from mig_opt.validation import ViolationCode, validate
from mig_opt.validation.batch.schedules import violations_of_method

_BEYOND_TIMES = (
    *(ViolationCode.UNKNOWN_TASK, ViolationCode.MISSING_TASK, ViolationCode.REPEATED_TASK, ViolationCode.UNKNOWN_GPU),
    *(ViolationCode.UNKNOWN_PLACEMENT, ViolationCode.INSUFFICIENT_MEMORY, ViolationCode.SIZE_NOT_PROFILED),
)
"""Violations that no other times of the same runs can mend."""

_MANY_PAIRS = 1_000
"""Pairs of a task and a GPU above which FAR takes longer than other methods need to begin."""

_MANY_TASKS, _FAR_SHARE = 2_000, 0.1
"""Number of tasks above which other methods find better schedules than FAR in the same time; its share of the time."""

_EXACT = 2e-9
"""Seconds by which times of a schedule may be off that counts as it is: they are written in nanoseconds."""


def solve(
    batch: Batch,
    method: str | Callable[..., Schedule | None] = AUTO,
    *,
    time_limit: float | None = None,
    partition: str | Sequence[Placement] | None = None,
    initial: Schedule | None = None,
    **options: Unpack[RunKeywords],
) -> ScheduleResult:
    """Find a schedule of least makespan for a batch.

    Parameters
    ----------
    batch : Batch
        The problem.
    method : str or callable
        A name of :func:`methods`, or ``auto``; or a heuristic of your own: a function of a batch, or of a batch and the
        seconds that it has, that returns a schedule or None.
    time_limit : float, optional
        Wall-clock seconds of the method; seconds of counted work if ``deterministic``. Exact methods without a limit
        run until the proof.
    partition : str or sequence of Placement, optional
        For the method ``fixpart``, which needs it: a maximal partition that has an instance for every task, one of
        ``batch.gpu.maximal_partitions()`` or its instances as text, from the first slice to the last. In ``4+2+1`` a
        number of compute slices stands for their profile with the least memory; profiles (``1g.10gb``) may stand
        there as well.
    initial : Schedule, optional
        Where the run begins: the result is no longer than this. One that is only late, or not possible at its times,
        keeps its places and their order, and gets the earliest times.
    **options
        The other :class:`~mig_opt.method.options.RunOptions`: ``seed``, ``workers`` (threads), ``callbacks``, ``gap``
        and ``stop`` to end early, ``deterministic``. The objective is the makespan.

    Returns
    -------
    ScheduleResult
        The best schedule, which has passed the validator, with a lower bound that holds for every schedule of the
        batch. Ctrl-C ends the run early: the status is then ``interrupted`` and the best schedule is kept.

    Raises
    ------
    InputError
        If arguments are wrong; it names them all.
    UnknownMethodError
        If there is no such method (and perhaps more is wrong).
    SolverError
        If a method returned a schedule that is not valid, or a bound above it: a defect of this package.

    Examples
    --------
    >>> from mig_opt import Batch, Task, get_gpu, solve
    >>> batch = Batch((Task("a", {1: 4.0, 2: 2.5}), Task("b", {1: 3.0, 2: 2.0})), get_gpu("A30"))
    >>> result = solve(batch)
    >>> result.status.value, result.makespan
    ('optimal', 2.62)
    """
    wrong = list(wrong_batch(batch))
    wrong += () if wrong else (problem.below("batch") for problem in unplannable(batch))
    wrong += partition_problems(method, partition, None if wrong else batch)
    wrong += () if isinstance(initial, Schedule | None) else (wrong_type("initial", initial, "a Schedule"),)
    control = Control[Schedule](
        run_options(METHODS, method, also=wrong, functions=True, time_limit=time_limit, **options)
    )
    begun = _starts(batch, initial)
    found, far = get_method(method), get_method("far")
    horizon = Horizon.of(batch)
    ticks = Ticks.within(horizon)

    def met() -> bool:
        """Return True if makespan and bound meet: nothing is left to prove."""
        return control.objective is not None and ticks.meet(control.objective, control.lower_bound)

    def work() -> None:
        if batch.unplaceable():
            control.report_infeasible("a task fits on no instance")
            return
        for schedule in begun:
            control.report_plan(schedule)
        control.raise_bound(best_lower_bound(batch))
        needed = horizon.batch if found.all_sizes else horizon.in_reach
        if found.warm_start and not control.done:
            _warm_start(far, needed, control, horizon)
        # Without a schedule a method has to look for one, however late it is.
        if not control.done and (control.plan is None or not (control.expired or met())):
            placements = find_partition(batch.kind(0), partition, batch.profile_set) if found.options else ()
            call(found, needed, control, partition=placements)

    def make_result(*, status: Status, lower_bound: float, **known: Any) -> ScheduleResult:
        if status is Status.INFEASIBLE:
            lower_bound = math.inf
        elif status is Status.OPTIMAL and ticks.exact:
            lower_bound = known["plan"].makespan  # no makespan lies strictly between the two
        return ScheduleResult(status=status, lower_bound=lower_bound, batch=batch, **known)

    return run(
        control,
        batch,
        found,
        work,
        first=(far,) if found.warm_start else (),
        violations=lambda schedule: violations_of_method(batch, schedule),
        optimal=met,
        same=equal_within_resolution,
        make_result=make_result,
    )


def unplannable(batch: Batch) -> Iterator[Problem]:
    """Yield a problem for each profile and live instance of a model of a GPU that no method plans with.

    That is a profile that may exist less often than it has room for, and an instance with less memory than the profile
    as which it counts.
    """
    yield from uncounted(batch.profiles())
    plain = {(each.gpu, each.compute_slices, each.memory_slices): each for each in batch.profiles()}
    for index, live in enumerate(batch.initial):
        own = batch.placement(live).profile
        usual = plain[own.gpu, own.compute_slices, own.memory_slices]
        unlike = (task for task in batch.tasks if task.time_on(own) != task.time_on(usual))
        if own.memory_gb < usual.memory_gb and (task := next(unlike, None)):
            message = f"{own.name} has too little memory for {task.name!r}, and methods take it for {usual.name}"
            yield Problem(f"initial[{index}]", f"{message}; destroy it before, and leave it out")


def _warm_start(far: Method, needed: Batch, control: Control[Schedule], horizon: Horizon) -> None:
    """Report FAR's schedules; where these can take all of the time, first the horizon's, which may be optimal."""
    if len(needed.tasks) * needed.gpus > _MANY_PAIRS:
        control.report_plan(horizon.schedule)
    if control.objective is None or not Ticks.within(horizon).meet(control.objective, control.lower_bound):
        with control.within(_FAR_SHARE if len(needed.tasks) > _MANY_TASKS else 1.0):
            call(far, needed, control)


def _starts(batch: Batch, initial: Schedule | None) -> list[Schedule]:
    """Return the valid schedules with the places of ``initial`` and their order: itself, and with the earliest times.

    Raises
    ------
    InputError
        With what is wrong with it, if there is none.
    """
    if initial is None:
        return []
    found = validate(batch, initial)
    beyond_times = [violation for violation in found.violations if violation.code in _BEYOND_TIMES]
    valid: list[Schedule] = []
    ordered = all(math.isfinite(run.begin) for run in initial.runs)
    if ordered and not any(violation.path.startswith(("runs", "tasks")) for violation in beyond_times):
        timed = validate(batch, retimed_schedule(batch, initial.runs))
        valid = [timed.schedule] if timed.valid else []
    # Times that were rounded can be below a bound.
    if found.valid and (not valid or validate(batch, initial, tolerance=_EXACT).valid):
        valid.insert(0, found.schedule)
    if not valid:
        raise InputError(violation.problem("initial") for violation in beyond_times or found.violations)
    return [_on_first_gpus(batch, schedule) for schedule in valid]


def _on_first_gpus(batch: Batch, schedule: Schedule) -> Schedule:
    """Return a schedule without a gap between the GPUs of a kind: methods leave out those that nobody needs."""
    live = {entry.gpu for entry in batch.initial}
    used, number = {run.gpu for run in schedule.runs} | live, dict[int, int]()
    for gpus in batch.kinds.values():
        idle = (gpu for gpu in gpus if gpu not in live)
        number |= {gpu: gpu if gpu in live else next(idle) for gpu in sorted(used) if gpu in gpus}
    return on_gpus(schedule, number)


def partition_problems(method: object, partition: object, batch: Batch | None) -> Iterator[Problem]:
    """Yield what is wrong with a partition for a method; without a batch, what does not depend on the batch."""
    wanted = is_among(method, [entry.name for entry in methods() if "partition" in entry.options])
    if wanted and batch is not None and not batch.gpu:
        yield Problem("method", f"{method} is for one kind of GPU, and the batch has {batch.kind_names}; take another")
    elif wanted and batch is not None:
        yield from wrong_partition(batch.kind(0), partition, batch.profile_set, batch.usable_profiles())
    elif partition is not None and not wanted:
        takers = " or ".join(entry.name for entry in methods() if "partition" in entry.options)
        yield Problem("partition", f"is for the method {takers}; leave it out")
