"""Limits of a run, and the place where a method reports the plans and lower bounds that it finds."""

from __future__ import annotations

import _thread
import contextlib
import logging
import math
import operator
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from mig_opt.errors import SolverError
from mig_opt.method.options import Callbacks, InnerOptions, RunOptions
from mig_opt.method.registry import Method
from mig_opt.method.result import Plan, Result, Status, TrajectoryPoint, relative_gap, versions_with

R = TypeVar("R", bound=Result[Any])
T = TypeVar("T")

_LOG = logging.getLogger(__name__)

Goals = tuple[float, ...]
"""Values of the goals of a plan: less is better, and the first one that differs decides between two plans."""


class Limits:
    """Time and threads that a run may use; the time counts from when the method is loaded, see :meth:`begin`.

    A method polls :attr:`expired` and ends soon after it is true. To be deterministic it also counts its work with
    :meth:`spend`, looks at no other clock, and uses no more than ``workers`` threads.

    Parameters
    ----------
    options : RunOptions, optional
        Those of the run; a deterministic one has one worker, because what several threads find depends on how they
        happen to be scheduled.
    """

    def __init__(self, options: RunOptions | None = None) -> None:
        self.options = options = options or RunOptions()
        self.seed, self.deterministic = options.seed, options.deterministic
        self.workers = 1 if options.deterministic else options.workers or available_cores()
        self.done = False  # the run is over, whatever time is left
        self._lock = threading.RLock()
        self._started = time.monotonic()
        self._spent = 0.0
        self._end = math.inf  # of a part of the run, by the clock
        self.loading_s = 0.0

    def begin(self) -> None:
        """Let the time count from now; what has passed so far is the time of loading, ``loading_s``."""
        now = time.monotonic()
        self.loading_s, self._started = now - self._started, now

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
        limit = self.options.time_limit
        return None if limit is None else max(0.0, min(limit, self._end) - self.clock)

    @contextlib.contextmanager
    def within(self, share: float) -> Iterator[None]:
        """Let a share of the time that is left be all of it for a while."""
        before, self._end = self._end, self.end_of(share)
        try:
            yield
        finally:
            self._end = before

    @property
    def left(self) -> float:
        """Seconds left, as :attr:`remaining`; infinite without a limit."""
        return math.inf if self.remaining is None else self.remaining

    def inner(self, share: float = 1.0, *, most: float = math.inf, least: float = 0.1) -> InnerOptions:
        """Return options of a run inside of this one, for a share of the time that is left.

        It gets between ``least`` and ``most`` seconds: with none at all it could not find anything.
        """
        seconds = max(min(self.left * share, most), least)
        return {
            "time_limit": None if math.isinf(seconds) else seconds,
            "seed": self.seed,
            "workers": self.workers,
            "deterministic": self.deterministic,
        }

    def end_of(self, share: float) -> float:
        """Return the :attr:`clock` at the end of a share of the time that is left; infinite without a limit."""
        return self.clock + self.left * share

    def left_until(self, end: float) -> float:
        """Return the seconds until the :attr:`clock` shows ``end``; 0 if the method has to end."""
        return 0.0 if self.expired else max(0.0, end - self.clock)

    @property
    def expired(self) -> bool:
        """True if the method has to end: the time is up, or the run is over anyway."""
        return self.done or self.remaining == 0.0

    def spend(self, seconds: float) -> None:
        """Count work by the seconds that it takes about on a typical machine.

        In a deterministic run the time limit is a limit on the sum. The figure must follow from the input and the
        decisions of the method alone; that it is good to a factor of two is enough.
        """
        with self._lock:
            self._spent += seconds


def by_makespan(plan: Any) -> Goals:
    """Return the makespan of a plan, in seconds, as its only goal."""
    return (plan.makespan,)


class Control(Limits, Generic[Plan]):
    """Limits of a run, and the best plan and the best lower bound that it has found so far.

    Parameters
    ----------
    options : RunOptions, optional
        Those of the run, which is over as soon as their gap is closed or ``stop`` returns True.
    judge : callable
        Returns the values of the goals of a plan. The first goal is the objective, to which the lower bound belongs.
    adjust : callable, optional
        Applied to every plan that is reported; returns a plan that is at least as good.

    Attributes
    ----------
    plan : Plan or None
        The incumbent: the best plan so far.
    goals : tuple of float or None
        Its goals.
    lower_bound : float
        No plan has a smaller objective.
    reason : str
        Why the lower bound holds, or why there is no plan.
    proven : list of str
        The goals in which no plan is better than the incumbent, each given those before it.
    infeasible : bool
        True if it is proven that there is no plan.
    trajectory : list of TrajectoryPoint
        Every improvement.
    done : bool
        True if the run is over: the gap is closed, or ``stop`` said so. Nothing that is reported later counts, so the
        last point of the trajectory is the one that ended the run.
    """

    def __init__(
        self,
        options: RunOptions | None = None,
        *,
        judge: Callable[[Plan], Goals] = by_makespan,
        adjust: Callable[[Plan], Plan] | None = None,
    ) -> None:
        super().__init__(options)
        self.plan: Plan | None = None
        self.goals: Goals | None = None
        self.lower_bound = 0.0
        self.reason = ""
        self.proven: list[str] = []
        self.infeasible = False
        self.trajectory: list[TrajectoryPoint] = []
        callbacks = self.options.callbacks
        self.callbacks = (callbacks,) if isinstance(callbacks, Callbacks) else tuple(callbacks)
        self._goals_of = judge
        self._adjust = adjust

    @property
    def objective(self) -> float | None:
        """First goal of the incumbent; None without one."""
        return None if self.goals is None else self.goals[0]

    def report_plan(self, plan: Plan) -> bool:
        """Make ``plan`` the incumbent if it is the best so far (and the run not over); return True if it is."""
        if self._adjust is not None:
            plan = self._adjust(plan)
        goals = self._goals_of(plan)
        with self._lock:
            if self.done or (self.goals is not None and goals >= self.goals):
                return False
            self.plan, self.goals = plan, goals
            self.trajectory.append(TrajectoryPoint(self.seconds, self.objective, self.lower_bound))
            _LOG.debug("objective %.9g after %.3f s, lower bound %.9g", self.objective, self.seconds, self.lower_bound)
            for callbacks in self.callbacks:
                callbacks.on_incumbent(self.seconds, plan, self.lower_bound)
            self._decide()
            return True

    def raise_bound(self, lower_bound: float, reason: str = "") -> None:
        """Report a lower bound on the objective and why it holds; ignored if a better one is known or the run over."""
        with self._lock:
            if self.done or lower_bound <= self.lower_bound:
                return
            self.lower_bound, self.reason = lower_bound, reason
            self.trajectory.append(TrajectoryPoint(self.seconds, self.objective, self.lower_bound))
            _LOG.debug("lower bound %.9g after %.3f s: %s", lower_bound, self.seconds, reason)
            for callbacks in self.callbacks:
                callbacks.on_bound(self.seconds, self.objective, lower_bound)
            self._decide()

    def prove(self, goal: str) -> None:
        """Report that no plan is better than the incumbent in a goal, given those that were reported before."""
        with self._lock:
            self.proven.append(goal)

    def report_infeasible(self, reason: str) -> None:
        """Report that there is no plan at all, and why."""
        with self._lock:
            self.infeasible, self.reason = True, reason

    def _decide(self) -> None:
        """End the run if the last improvement is enough."""
        gap, stop = self.options.gap, self.options.stop
        last = len(self.goals or ()) == 1 or gap > 0
        close = self.objective is not None and last and relative_gap(self.objective, self.lower_bound) <= gap
        stopped = stop is not None and stop(self.trajectory[-1])
        self.done = self.done or close or stopped


def call(method: Method, problem: object, control: Control[Plan], **known: object) -> None:
    """Run a method; of what is ``known`` it gets its options."""
    method.load()(problem, control, **{name: known[name] for name in method.options})


def run(
    control: Control[Plan],
    problem: object,
    method: Method,
    work: Callable[[], None],
    *,
    first: Sequence[Method] = (),
    violations: Callable[[Plan], Sequence[object]],
    optimal: Callable[[], bool] | None = None,
    same: Callable[[float, float], bool] = operator.eq,
    make_result: Callable[..., R],
) -> R:
    """Run a method on a problem, and return its result once the plan has passed its validator.

    Ctrl-C ends the run; the incumbent is kept.

    Parameters
    ----------
    control : Control
        Limits and receivers of the run; it has the incumbent in the end.
    problem, method : object, Method
        Problem and method, for :meth:`Callbacks.on_start` and the result.
    work : callable
        Runs the method, and those in ``first``, which are all imported before; they report to the control.
    violations : callable
        Returns the violations that the validator of the problem finds in a plan.
    optimal : callable, optional
        Returns True if the incumbent is proven to be the best plan; asked after the run. By default that is so if its
        objective is no more than the lower bound.
    same : callable
        Returns True if a lower bound that is above an objective is so because of rounding only.
    make_result : callable
        Makes the result of the attributes of :class:`Result`, which it gets by keyword.

    Raises
    ------
    SolverError
        If the plan is not valid, or the lower bound above its objective: a defect of the method.
    """
    status: Status | None = None
    try:
        # Ctrl-C in the middle of the import of an extension module leaves that half-made and its error changed.
        interruptibly(lambda: [needed.load() for needed in (method, *first)])
        control.begin()
        limit = "no limit" if control.remaining is None else f"{control.remaining:g} s"
        _LOG.info("%s begins: %s, seed %d, %d workers", method.name, limit, control.seed, control.workers)
        for callbacks in control.callbacks:
            callbacks.on_start(problem, method.name)
        work()
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    except RuntimeError as error:
        # Ctrl-C between two steps of a lock breaks it, which is an error of its own.
        if not isinstance(error.__context__, KeyboardInterrupt):
            raise
        status = Status.INTERRUPTED
    plan, objective, lower_bound = control.plan, control.objective, control.lower_bound
    if plan is not None and objective is not None:
        kind = type(plan).__name__.lower()
        for violation in violations(plan):
            raise SolverError(f"method {method.name} returned an invalid {kind}: {violation}")
        if lower_bound > objective and not same(lower_bound, objective):
            raise SolverError(
                f"method {method.name} claims the lower bound {lower_bound} above its {kind} of {objective}"
            )
        # The two are computed along different ways; what is left of rounding must not show as a bound above.
        lower_bound = min(lower_bound, objective)
        complete = status is None or len(control.goals or ()) == 1
        best = objective <= control.lower_bound if optimal is None else optimal()
        status = Status.OPTIMAL if complete and best else status or Status.FEASIBLE
    elif status is None:
        status = Status.INFEASIBLE if control.infeasible else Status.NO_SOLUTION
    result = make_result(
        status=status,
        method=method.name,
        plan=plan,
        lower_bound=lower_bound,
        runtime_s=control.seconds,
        loading_s=control.loading_s,
        trajectory=tuple(control.trajectory),
        seed=control.seed,
        versions=versions_with(method.packages),
        reason=control.reason,
        proven=tuple(control.proven),
    )
    _LOG.info("%s ends: %s, objective %s, lower bound %.9g, %.3f s, after %.3f s of loading",
              method.name, status, objective, lower_bound, result.runtime_s, result.loading_s)  # fmt: skip
    for callbacks in control.callbacks:
        callbacks.on_end(result)
    return result


def interruptibly(work: Callable[[], T], stop: Callable[[], None] = lambda: None) -> T:
    """Return the result of ``work``, done in another thread while this one waits.

    That way Ctrl-C does not strike inside of ``work``, which may be foreign code that cannot cope with it: it is told
    to stop and waited for, and then KeyboardInterrupt goes on to the caller.
    """
    results, failures = list[T](), list[BaseException]()
    begun, over, cancelled = list[bool](), list[bool](), list[bool]()
    ended = _thread.allocate_lock()
    ended.acquire()

    def run_work() -> None:
        begun.append(True)
        try:
            if not cancelled:
                results.append(work())
        except BaseException as error:  # handed to the waiting thread
            failures.append(error)
        finally:
            over.append(True)
            ended.release()

    # Ctrl-C between two steps of an Event, or of the methods of a Thread, breaks the locks that these hold, and the
    # error that follows takes its place: hence flags, and a lock that is waited for in one step.
    try:
        _thread.start_new_thread(run_work, ())
        while not over:
            ended.acquire(timeout=0.05)
    except KeyboardInterrupt:
        cancelled.append(True)
        while begun and not over:
            stop()  # again and again: a solver that is only just starting does not listen
            ended.acquire(timeout=0.05)
        raise
    if failures:
        raise failures[0]
    return results[0]


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1
