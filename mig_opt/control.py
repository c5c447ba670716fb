"""What a running method may use, and where it reports what it finds."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from mig_opt.batch.batch import Batch
from mig_opt.batch.schedule import Schedule
from mig_opt.result import Result, TrajectoryPoint, relative_gap

T = TypeVar("T")

Stop = Callable[[TrajectoryPoint], bool]
"""Asked after each improvement of the schedule or the bound; True ends the run."""


class Callbacks:
    """Called while a method runs; override what you need.

    The calls come one at a time, but not always from the thread that called :func:`mig_opt.solve`. ``seconds`` counts
    from the start of the run.

    Examples
    --------
    >>> from mig_opt import solve, load_instance
    >>> class Show(Callbacks):
    ...     def on_end(self, result):
    ...         print(result.status)
    >>> _ = solve(load_instance("rodinia-a30"), method="far", callbacks=Show())
    feasible
    """

    def on_start(self, batch: Batch, method: str) -> None:
        """The run begins."""

    def on_incumbent(self, seconds: float, schedule: Schedule, lower_bound: float) -> None:
        """A schedule better than all before was found."""

    def on_bound(self, seconds: float, makespan: float | None, lower_bound: float) -> None:
        """The lower bound rose."""

    def on_end(self, result: Result) -> None:
        """The run has ended."""


class Limits:
    """What a run may use of time and threads.

    A method polls :attr:`expired` and ends soon after it is true; that is all it has to do for limits of any kind. To
    be deterministic it also counts its work with :meth:`spend`, looks at no other clock, and uses no more than
    :attr:`workers` threads.

    Parameters
    ----------
    time_limit : float, optional
        Seconds for the whole run.
    seed : int
        Seed for whatever is random.
    workers : int, optional
        Threads; by default one for each core.
    deterministic : bool
        Whether work counts, and not the clock. There is one worker then: what several threads find depends on how they
        happen to be scheduled.

    Attributes
    ----------
    done : bool
        Whether the run is over, whatever time is left.
    """

    def __init__(
        self,
        time_limit: float | None = None,
        seed: int = 0,
        workers: int | None = None,
        *,
        deterministic: bool = False,
    ) -> None:
        self.seed = seed
        self.workers = 1 if deterministic else workers or available_cores()
        self.deterministic = deterministic
        self.done = False
        self._lock = threading.RLock()
        self._started = time.monotonic()
        self._time_limit = time_limit
        self._spent = 0.0

    @property
    def seconds(self) -> float:
        """Wall-clock seconds since the run began."""
        return time.monotonic() - self._started

    @property
    def clock(self) -> float:
        """Seconds since the run began, of work in a deterministic run."""
        return self._spent if self.deterministic else self.seconds

    @property
    def remaining(self) -> float | None:
        """Seconds left (never negative), of work in a deterministic run; None without a limit."""
        return None if self._time_limit is None else max(0.0, self._time_limit - self.clock)

    @property
    def expired(self) -> bool:
        """Whether the method has to end: the time is up, or the run is over anyway."""
        return self.done or self.remaining == 0.0

    def spend(self, seconds: float) -> None:
        """Count work that takes about so many seconds on a typical machine.

        In a deterministic run the time limit is a limit on the sum. The figure must follow from the input and the
        decisions of the method alone; that it is good to a factor of two is enough.
        """
        with self._lock:
            self._spent += seconds


class Control(Limits):
    """Limits of a run, and the best that it has found so far.

    Parameters
    ----------
    time_limit, seed, workers, deterministic
        As in :class:`Limits`.
    callbacks : sequence of Callbacks
        Who is told about progress.
    gap : float
        The run is over as soon as the gap between schedule and bound is at most this share of the makespan.
    stop : callable, optional
        Asked after each improvement; the run is over as soon as it returns True.

    Attributes
    ----------
    schedule : Schedule or None
        The best one so far.
    lower_bound : float
        The best one so far, in seconds.
    trajectory : list of TrajectoryPoint
        Every improvement.
    done : bool
        Whether the run is over, whatever time is left: the gap is closed, or ``stop`` said so. Nothing that is reported
        later counts, so the last point of the trajectory is the one that ended the run.
    """

    def __init__(
        self,
        time_limit: float | None = None,
        seed: int = 0,
        workers: int | None = None,
        callbacks: Sequence[Callbacks] = (),
        *,
        gap: float = 0.0,
        stop: Stop | None = None,
        deterministic: bool = False,
    ) -> None:
        super().__init__(time_limit, seed, workers, deterministic=deterministic)
        self.schedule: Schedule | None = None
        self.lower_bound = 0.0
        self.trajectory: list[TrajectoryPoint] = []
        self._gap = gap
        self._stop = stop
        self._callbacks = tuple(callbacks)

    @property
    def makespan(self) -> float | None:
        """Makespan of the best schedule so far."""
        return None if self.schedule is None else self.schedule.makespan

    def offer(self, schedule: Schedule) -> bool:
        """Keep ``schedule`` if it is the best so far (and the run not over); return whether it is kept."""
        with self._lock:
            if self.done or (self.makespan is not None and schedule.makespan >= self.makespan):
                return False
            self.schedule = schedule
            self._record()
            for callbacks in self._callbacks:
                callbacks.on_incumbent(self.seconds, schedule, self.lower_bound)
            self._judge()
            return True

    def raise_bound(self, lower_bound: float) -> None:
        """Report a lower bound in seconds; lower ones than known are ignored, and all once the run is over."""
        with self._lock:
            if self.done or lower_bound <= self.lower_bound:
                return
            self.lower_bound = lower_bound
            self._record()
            for callbacks in self._callbacks:
                callbacks.on_bound(self.seconds, self.makespan, lower_bound)
            self._judge()

    def _record(self) -> None:
        self.trajectory.append(TrajectoryPoint(self.seconds, self.makespan, self.lower_bound))

    def _judge(self) -> None:
        """Find out whether the last improvement ends the run."""
        close = self.makespan is not None and relative_gap(self.makespan, self.lower_bound) <= self._gap
        if close or (self._stop is not None and self._stop(self.trajectory[-1])):
            self.done = True


def interruptibly(work: Callable[[], T], stop: Callable[[], None] = lambda: None) -> T:
    """Return the result of ``work``, done in another thread while this one waits.

    That way Ctrl-C does not strike inside of ``work``, which may be foreign code that cannot cope with it: it is told
    to stop and waited for, and then KeyboardInterrupt goes on to the caller.
    """
    results: list[T] = []
    failures: list[BaseException] = []
    begun, finished, cancelled = threading.Event(), threading.Event(), threading.Event()

    def run_work() -> None:
        begun.set()
        try:
            if not cancelled.is_set():
                results.append(work())
        except BaseException as error:  # handed to the waiting thread
            failures.append(error)
        finally:
            finished.set()

    # After Ctrl-C neither Thread.is_alive() nor Thread.join() can be trusted (in Python 3.11): hence the events.
    try:
        threading.Thread(target=run_work, name="mig-opt", daemon=True).start()
        while not finished.wait(0.05):
            pass
    except KeyboardInterrupt:
        cancelled.set()
        while begun.is_set() and not finished.is_set():
            stop()  # again and again: a solver that is only just starting does not listen
            finished.wait(0.05)
        raise
    if failures:
        raise failures[0]
    return results[0]


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1
