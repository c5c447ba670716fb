"""One function that runs any method."""

from __future__ import annotations

import contextlib
import importlib.metadata
import math
import platform
from collections.abc import Iterable, Iterator, Sequence

from mig_opt._version import __version__
from mig_opt.arguments import wrong_flag, wrong_integer, wrong_share, wrong_type
from mig_opt.batch.batch import Batch, wrong_batch
from mig_opt.batch.bounds import best_lower_bound
from mig_opt.batch.integer_time import Ticks, equal_within_resolution
from mig_opt.batch.schedule import Schedule
from mig_opt.control import Callbacks, Control, Stop, interruptibly
from mig_opt.errors import InputError, Problem, SolverError, UnknownMethodError
from mig_opt.gpu.model import Placement
from mig_opt.gpu.partitions import find_partition
from mig_opt.registry import AUTO, Method, Runner, get_method, methods, run_problems
from mig_opt.result import Result, Status
from mig_opt.validation import validate

_MOST_WORKERS = 1000

_LOADING = 0.5
"""Seconds that it takes to import a method and what it needs, about."""


def solve(
    batch: Batch,
    method: str = AUTO,
    *,
    time_limit: float | None = None,
    seed: int = 0,
    workers: int | None = None,
    callbacks: Callbacks | Sequence[Callbacks] = (),
    gap: float = 0.0,
    stop: Stop | None = None,
    deterministic: bool = False,
    partition: str | Sequence[Placement] | None = None,
) -> Result:
    """Find a schedule of least makespan for a batch.

    Parameters
    ----------
    batch : Batch
        The problem.
    method : str
        A name of :func:`methods`, or ``auto``.
    time_limit : float, optional
        Wall-clock seconds; seconds of counted work if ``deterministic``. Exact methods without a limit run until the
        proof. A method that this process has not used yet is not begun in the last half second, which its import takes.
    seed : int
        Seed for whatever is random in the method, at least 0.
    workers : int, optional
        Threads of the method; by default one for each core.
    callbacks : Callbacks or sequence of Callbacks
        Told about the progress. What they raise ends the run and arrives here.
    gap : float
        The run ends as soon as ``(makespan - lower_bound) / makespan`` is at most this share: 0.01 is one percent.
    stop : callable, optional
        Called with the new :class:`~mig_opt.TrajectoryPoint` after each improvement of the schedule or the bound, not
        always in the thread that called this function. The run ends as soon as it returns True; nothing that the
        method finds later counts. What it raises arrives here as well.
    deterministic : bool
        Whether the same arguments give the same schedule, bound and trajectory (but for the seconds) on every run,
        with any number of workers and any time limit, as long as the versions of this package and its solvers are the
        same. The method then has one thread, and the time limit counts work in place of time: about as many
        seconds as it takes on a typical machine, within a factor of two or three.
    partition : str or sequence of Placement, optional
        For the method ``fixpart``, which needs it: a maximal partition that has an instance for every task, one of
        ``batch.gpu.maximal_partitions()`` or its instances as text, from the first slice to the last. In ``4+2+1`` a
        number stands for the profile of so many compute slices with the least memory; profiles (``1g.10gb``) may stand
        there as well.

    Returns
    -------
    Result
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
    wrong = [*wrong_batch(batch)]
    wrong += _partition_problems(method, partition, None if wrong else batch)
    check_options(
        method,
        time_limit=time_limit,
        seed=seed,
        workers=workers,
        callbacks=callbacks,
        gap=gap,
        stop=stop,
        deterministic=deterministic,
        also=wrong,
    )
    found = get_method(method)
    listeners = (callbacks,) if isinstance(callbacks, Callbacks) else tuple(callbacks)
    control = Control[Schedule](
        time_limit, int(seed), workers, listeners, gap=gap, stop=stop, deterministic=deterministic
    )
    status: Status | None = None
    try:
        for listener in listeners:
            listener.on_start(batch, found.name)
        if batch.unplaceable():
            status = Status.INFEASIBLE
        else:
            _run(_without_idle_gpus(batch), found, control, partition)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    result = _conclude(batch, found, control, status)
    for listener in listeners:
        listener.on_end(result)
    return result


def check_options(
    method: object = AUTO,
    *,
    time_limit: object = None,
    seed: object = 0,
    workers: object = None,
    callbacks: object = (),
    gap: object = 0.0,
    stop: object = None,
    deterministic: object = False,
    also: Sequence[Problem] = (),
) -> None:
    """Refuse options that :func:`solve` cannot work with, whatever their type; ``also`` is what is known to be wrong.

    Raises
    ------
    InputError
        With every problem; an UnknownMethodError if one of them is that.
    """
    of_run, error = run_problems(method, get_method, time_limit, seed)
    problems = [*also, *of_run]
    if workers is not None:
        problems += wrong_integer("workers", workers, 1, _MOST_WORKERS)
    problems += _wrong_callbacks(callbacks)
    problems += wrong_share("gap", gap)
    if stop is not None and not callable(stop):
        problems.append(wrong_type("stop", stop, "a function of a TrajectoryPoint"))
    problems += wrong_flag("deterministic", deterministic)
    if problems:
        raise error(problems)


def check_partition(method: object, partition: object, batch: Batch | None) -> None:
    """Refuse a partition that :func:`solve` cannot work with; without a batch only as far as it does not depend on it.

    Raises
    ------
    InputError
        With the partitions to choose from.
    """
    problems = list(_partition_problems(method, partition, batch))
    if problems:
        raise InputError(problems)


def _partition_problems(method: object, partition: object, batch: Batch | None) -> Iterator[Problem]:
    try:
        wanted = isinstance(method, str) and "partition" in get_method(method).options
    except UnknownMethodError:
        return  # which is a problem of its own
    if wanted and batch is not None:
        from mig_opt.heuristics.batch.fixed_partition import partition_problems

        yield from partition_problems(batch, partition)
    elif partition is not None and not wanted:
        takers = " or ".join(entry.name for entry in methods() if "partition" in entry.options)
        yield Problem("partition", f"is for the method {takers}; leave it out")


def _wrong_callbacks(callbacks: object) -> Iterator[Problem]:
    if isinstance(callbacks, Callbacks):
        return
    if not isinstance(callbacks, Sequence) or isinstance(callbacks, str):
        yield wrong_type("callbacks", callbacks, "a Callbacks object or a list of them")
        return
    for at, entry in enumerate(callbacks):
        if not isinstance(entry, Callbacks):
            yield wrong_type(f"callbacks[{at}]", entry, "a Callbacks object, not the class or a function")


def _without_idle_gpus(batch: Batch) -> Batch:
    """Leave out GPUs at the end that nobody needs: there are no more used ones than tasks."""
    used = max((live.gpu + 1 for live in batch.initial), default=0)
    return batch.replace(gpus=min(batch.gpus, used + len(batch.tasks)))


def _run(batch: Batch, method: Method, control: Control[Schedule], partition: object) -> None:
    control.raise_bound(best_lower_bound(batch))
    if method.warm_start and not control.done:
        _load(get_method("far"))(batch, control)
    if control.done:
        return
    # Without a schedule a method has to look for one, however late it is.
    if control.plan is None or not (_late(method, control) or _met(batch, control)):
        options = {}
        if "partition" in method.options:
            options["partition"] = find_partition(batch.gpu, partition, batch.profile_set)
        _load(method)(batch, control, **options)


def _late(method: Method, control: Control[Schedule]) -> bool:
    """Whether the time is up, or would be before the method is imported."""
    if method.loaded or control.deterministic or control.remaining is None:
        return control.expired
    return control.done or control.remaining < _LOADING


def _load(method: Method) -> Runner:
    # Ctrl-C in the middle of the import of an extension module leaves that half-made and its error changed.
    return interruptibly(method.load)


def _met(batch: Batch, control: Control[Schedule]) -> bool:
    """Whether schedule and bound meet: nothing is left to prove."""
    return control.objective is not None and Ticks.of(batch).meet(control.objective, control.lower_bound)


def _conclude(batch: Batch, method: Method, control: Control[Schedule], status: Status | None) -> Result:
    schedule, lower_bound = control.plan, control.lower_bound
    if status is Status.INFEASIBLE:
        lower_bound = math.inf
    elif schedule is not None:
        _verify(batch, method, schedule, lower_bound)
        # The two are computed along different ways; what is left of rounding must not show as a bound above.
        lower_bound = min(lower_bound, schedule.makespan)
        if _met(batch, control):
            status = Status.OPTIMAL
            # No makespan lies strictly between the two.
            lower_bound = schedule.makespan if Ticks.of(batch).exact else lower_bound
    if status is None:
        status = Status.NO_SOLUTION if schedule is None else Status.FEASIBLE
    return Result(
        status=status,
        method=method.name,
        schedule=schedule,
        lower_bound=lower_bound,
        runtime_s=control.seconds,
        trajectory=tuple(control.trajectory),
        seed=control.seed,
        versions=versions_with(method.packages),
    )


def versions_with(packages: Iterable[str] = ()) -> dict[str, str]:
    """Return the versions of this package, of Python, and of those of ``packages`` that are installed."""
    versions = {"mig-opt": __version__, "python": platform.python_version()}
    for package in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    return versions


def _verify(batch: Batch, method: Method, schedule: Schedule, lower_bound: float) -> None:
    validation = validate(batch, schedule)
    if not validation.valid:
        raise SolverError(f"method {method.name} returned an invalid schedule: {validation.violations[0]}")
    if lower_bound > schedule.makespan and not equal_within_resolution(lower_bound, schedule.makespan):
        raise SolverError(
            f"method {method.name} claims the lower bound {lower_bound} s above its schedule of {schedule.makespan} s"
        )
