"""What a run gave; one of a method on a batch: timed, validated again, and never an exception."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mig_opt.batch.batch import Batch
from mig_opt.batch.integer_time import RESOLUTION, Ticks
from mig_opt.batch.schedule import Schedule
from mig_opt.control import Callbacks, Control
from mig_opt.errors import MigOptError
from mig_opt.instances import generate_batch
from mig_opt.registry import get_method
from mig_opt.result import Result, Status, relative_gap
from mig_opt.solving import solve
from mig_opt.studies.environment import peak_bytes
from mig_opt.validation import validate

GAPS = (0.01, 0.005, 0.003, 0.001, 0.0005)
"""The seconds until each of these gaps are kept."""

CRASHED = "crashed"
"""Status of a run that ended without a result."""

_WARM_UP_LIMIT = 5.0
_WARM_UP_PARTITION = "7"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run gave.

    Attributes
    ----------
    status : str
        A :class:`~mig_opt.Status`, ``crashed``, or ``unfinished`` after a simulation in which jobs wait for ever.
    seconds : float
        Wall-clock time that the caller waited.
    makespan : float or None
        Seconds; None without a schedule.
    lower_bound : float or None
        Seconds; None where there is no schedule at all, and where nothing is known.
    tolerance : float
        Makespans and bounds that differ by no more than these seconds are the same.
    seconds_to_gap : mapping of str to float
        When schedule and bound were so close for the first time, for those of :data:`GAPS` that were reached.
    peak_bytes : int or None
        Most memory of the process, where a run had one of its own.
    error : str
        What went wrong in a run that has no result, or whose schedule is not valid; else empty.
    figures : mapping of str to object
        More that was measured; of a simulation its :class:`~mig_opt.simulation.Metrics`, ``unfinished`` jobs, the
        ``lower_bounds`` of the trace and the ``gaps`` to them.
    """

    status: str
    seconds: float
    makespan: float | None = None
    lower_bound: float | None = None
    tolerance: float = 0.0
    seconds_to_gap: Mapping[str, float] = field(default_factory=dict, hash=False)
    peak_bytes: int | None = None
    error: str = ""
    figures: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def gap(self) -> float:
        """``(makespan - lower_bound) / makespan``; infinite without a schedule or a bound."""
        if self.makespan is None or self.lower_bound is None:
            return float("inf")
        return relative_gap(self.makespan, self.lower_bound)

    @property
    def answered(self) -> bool:
        """Whether there is a schedule, and it is valid."""
        return self.makespan is not None and not self.error


def measure(
    batch: Batch,
    method: str,
    *,
    time_limit: float | None = None,
    seed: int = 0,
    workers: int | None = None,
    gap: float = 0.0,
    deterministic: bool = False,
    partition: str | None = None,
    callbacks: Callbacks | Sequence[Callbacks] = (),
    memory: bool = False,
) -> Outcome:
    """Run a method and check what it returns.

    Parameters
    ----------
    batch, method, time_limit, seed, workers, gap, deterministic, partition, callbacks
        As :func:`mig_opt.solve` takes them.
    memory : bool
        Whether to note the peak memory of this process, which should then be one for this run alone.

    Returns
    -------
    Outcome
        Also where the method fails: its status is ``crashed`` then, and ``error`` says why. After Ctrl-C the status is
        ``interrupted``.

    Raises
    ------
    KeyboardInterrupt
        If Ctrl-C struck outside of the method.
    """

    def run() -> Outcome:
        begin = time.perf_counter()
        result = solve(
            batch,
            method,
            time_limit=time_limit,
            seed=seed,
            workers=workers,
            gap=gap,
            deterministic=deterministic,
            callbacks=callbacks,
            partition=partition,
        )
        return _outcome(batch, result, time.perf_counter() - begin, memory=memory)

    return shielded(run)


def shielded(run: Callable[[], Outcome]) -> Outcome:
    """Return the outcome of ``run``; an exception becomes an outcome that tells it."""
    begin = time.perf_counter()
    try:
        return run()
    except MigOptError as error:
        return Outcome(CRASHED, time.perf_counter() - begin, error=str(error))
    except Exception as error:  # whatever a method raises belongs to its row
        message = f"{type(error).__name__}: {error}".removesuffix(": ")
        return Outcome(CRASHED, time.perf_counter() - begin, error=message)


@functools.cache
def warm_up(method: str) -> None:
    """Load whatever a method loads, so that no run pays for it; also what is compiled once on a machine.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C.
    """
    if "numba" in get_method(method).packages:
        from mig_opt.loads.compiling import compiled

        compiled(Control[Schedule]())
    partition = _WARM_UP_PARTITION if "partition" in get_method(method).options else None
    for n in (2, 6):  # very small batches need no solver
        outcome = measure(generate_batch(n), method, time_limit=_WARM_UP_LIMIT, partition=partition)
        if outcome.status == Status.INTERRUPTED:
            raise KeyboardInterrupt


def contradictory(found: Iterable[tuple[str, str, Outcome]]) -> list[str]:
    """Return what cannot be true of outcomes: a lower bound above a schedule of the same batch.

    Parameters
    ----------
    found : iterable of (str, str, Outcome)
        What messages call the run, which batch it is of, and what it gave.
    """
    found = list(found)
    best: dict[str, tuple[float, float, str]] = {}
    for label, batch, outcome in found:
        if outcome.answered and outcome.makespan is not None:
            best[batch] = min(best.get(batch, (math.inf, 0.0, "")), (outcome.makespan, outcome.tolerance, label))
    wrong = []
    for label, batch, outcome in found:
        bound = math.inf if outcome.status == Status.INFEASIBLE else outcome.lower_bound
        if batch in best and bound is not None and not outcome.error and bound > sum(best[batch][:2]):
            makespan, _, other = best[batch]
            wrong.append(f"{label}: no schedule is below {bound:.9g} s, but {other} has one of {makespan:.9g} s")
    return wrong


def tolerance(batch: Batch, makespan: float | None) -> float:
    """Return the seconds by which two makespans of a batch may differ and still be the same."""
    ticks = Ticks.of(batch)
    # Makespans are whole ticks, so two that differ do so by at least one; less is rounding of floating-point sums.
    return float(ticks.length) / 2 if ticks.exact else RESOLUTION * (makespan or 0.0)


def violations(batch: Batch, schedule: Schedule | None) -> str:
    """Return what is wrong with a schedule, in one line; empty if it is valid, or if there is none."""
    if schedule is None:
        return ""
    found = validate(batch, schedule)
    return "" if found.valid else f"{len(found.violations)} violations: {found.violations[0]}"


def _outcome(batch: Batch, result: Result, seconds: float, *, memory: bool) -> Outcome:
    peak = peak_bytes() if memory else None
    return Outcome(
        status=result.status.value,
        seconds=seconds,
        makespan=result.makespan,
        lower_bound=None if result.status is Status.INFEASIBLE else result.lower_bound,
        tolerance=tolerance(batch, result.makespan),
        seconds_to_gap={str(gap): at for gap in GAPS if (at := _seconds_to(gap, result)) is not None},
        peak_bytes=peak,
        error=violations(batch, result.schedule),
    )


def _seconds_to(gap: float, result: Result) -> float | None:
    for point in result.trajectory:
        if point.makespan is not None and relative_gap(point.makespan, point.lower_bound) <= gap:
            return point.seconds
    # An optimum whose bound was rounded up to it at the end is in no point.
    return result.runtime_s if result.gap is not None and result.gap <= gap else None
