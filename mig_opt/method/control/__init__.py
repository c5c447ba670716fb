"""Limits of a run, and the place where a method reports the plans and lower bounds that it finds."""

from __future__ import annotations

import logging
import math
import operator
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from mig_opt.errors import InputError, Problem, SolverError
from mig_opt.method.control.threads import available_cores, interruptibly
from mig_opt.method.registry import AUTO, Method, Registry
from mig_opt.method.result import Plan, Result, Status, TrajectoryPoint, relative_gap, versions_with
from mig_opt.rules import entries_of, wrong_flag, wrong_integer, wrong_number, wrong_share, wrong_type

R = TypeVar("R", bound=Result[Any])

_LOG = logging.getLogger(__name__)

_MOST_WORKERS = 1000

Stop = Callable[[TrajectoryPoint], bool]
"""Asked after each improvement of the plan or the bound; True ends the run."""

Goals = tuple[float, ...]
"""Values of the goals of a plan: less is better, and the first one that differs decides between two plans."""


class Callbacks:
    """Receiver of the progress of a run; override the methods that you need.

    The calls come one at a time, but not always from the thread that started the run; ``seconds`` counts from there.
    Problem and plan are a batch and a schedule for :func:`mig_opt.solve`, a demand and a deployment for ``deploy``, ...

    Examples
    --------
    >>> from mig_opt import solve, load
    >>> class Show(Callbacks):
    ...     def on_end(self, result):
    ...         print(result.status)
    >>> _ = solve(load("rodinia-a30"), method="far", callbacks=Show())
    feasible
    """

    def on_start(self, problem: Any, method: str) -> None:
        """Begin a run.

        Parameters
        ----------
        problem : object
            The batch, demand, fleet state, trace, or change.
        method : str
            Name of the method.
        """

    def on_incumbent(self, seconds: float, plan: Any, lower_bound: float) -> None:
        """Receive a plan that is better than all before.

        Parameters
        ----------
        seconds : float
            Since the run began.
        plan : object
            The new incumbent.
        lower_bound : float
            The best one so far.
        """

    def on_bound(self, seconds: float, objective: float | None, lower_bound: float) -> None:
        """Receive a lower bound that is better than all before.

        Parameters
        ----------
        seconds : float
            Since the run began.
        objective : float or None
            Of the incumbent; None without one.
        lower_bound : float
            The new one.
        """

    def on_end(self, result: Any) -> None:
        """End a run; the result is what the entry point returns."""


class Limits:
    """Time and threads that a run may use; the time counts from when the method is loaded, see :meth:`begin`.

    A method polls :attr:`expired` and ends soon after it is true. To be deterministic it also counts its work with
    :meth:`spend`, looks at no other clock, and uses no more than ``workers`` threads.

    Parameters
    ----------
    time_limit : float, optional
        Seconds for the whole run.
    seed : int
        Seed for whatever is random.
    workers : int, optional
        Threads; by default one for each core.
    deterministic : bool
        True if work counts, and not the clock. There is one worker then: what several threads find depends on how they
        happen to be scheduled.
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
        self.done = False  # the run is over, whatever time is left
        self._lock = threading.RLock()
        self._started = time.monotonic()
        self._time_limit = time_limit
        self._spent = 0.0
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
        return None if self._time_limit is None else max(0.0, self._time_limit - self.clock)

    def end_of(self, share: float) -> float:
        """Return the :attr:`clock` at the end of a share of the time that is left; infinite without a limit."""
        return math.inf if self.remaining is None else self.clock + self.remaining * share

    def left_until(self, end: float) -> float:
        """Return the seconds until the :attr:`clock` shows ``end``; 0 if the method has to end."""
        return 0.0 if self.expired else max(0.0, end - self.clock)

    @property
    def expired(self) -> bool:
        """True if the method has to end: the time is up, or the run is over anyway."""
        return self.done or self.remaining == 0.0

    def spend(self, seconds: float) -> None:
        """Count work that takes about so many seconds on a typical machine.

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
    time_limit, seed, workers, deterministic
        As in :class:`~mig_opt.method.control.Limits`.
    callbacks : Callbacks or sequence of Callbacks
        Receivers of the progress; kept as a tuple.
    gap : float
        The run is over as soon as the gap between objective and lower bound is at most this share of the objective. If
        plans have several goals, 0 does not end a run that has reached the bound of the first.
    stop : callable, optional
        Asked after each improvement; the run is over as soon as it returns True.
    judge : callable
        Returns the values of the goals of a plan. The first goal is the objective, to which the lower bound belongs.
    adjust : callable, optional
        Applied to every plan that is offered; returns a plan that is at least as good.

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
        time_limit: float | None = None,
        seed: int = 0,
        workers: int | None = None,
        callbacks: Callbacks | Sequence[Callbacks] = (),
        *,
        gap: float = 0.0,
        stop: Stop | None = None,
        deterministic: bool = False,
        judge: Callable[[Plan], Goals] = by_makespan,
        adjust: Callable[[Plan], Plan] | None = None,
    ) -> None:
        super().__init__(time_limit, seed, workers, deterministic=deterministic)
        self.plan: Plan | None = None
        self.goals: Goals | None = None
        self.lower_bound = 0.0
        self.reason = ""
        self.proven: list[str] = []
        self.infeasible = False
        self.trajectory: list[TrajectoryPoint] = []
        self._gap = gap
        self._stop = stop
        self.callbacks = (callbacks,) if isinstance(callbacks, Callbacks) else tuple(callbacks)
        self._goals_of = judge
        self._adjust = adjust

    @property
    def objective(self) -> float | None:
        """First goal of the incumbent; None without one."""
        return None if self.goals is None else self.goals[0]

    def offer(self, plan: Plan) -> bool:
        """Make ``plan`` the incumbent if it is the best so far (and the run not over); return True if it is."""
        if self._adjust is not None:
            plan = self._adjust(plan)
        goals = self._goals_of(plan)
        with self._lock:
            if self.done or (self.goals is not None and goals >= self.goals):
                return False
            self.plan, self.goals = plan, goals
            self._record()
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
            self._record()
            _LOG.debug("lower bound %.9g after %.3f s: %s", lower_bound, self.seconds, reason)
            for callbacks in self.callbacks:
                callbacks.on_bound(self.seconds, self.objective, lower_bound)
            self._decide()

    def prove(self, goal: str) -> None:
        """Report that no plan is better than the incumbent in a goal, given those that were reported before."""
        with self._lock:
            self.proven.append(goal)

    def refute(self, reason: str) -> None:
        """Report that there is no plan at all, and why."""
        with self._lock:
            self.infeasible, self.reason = True, reason

    def _record(self) -> None:
        self.trajectory.append(TrajectoryPoint(self.seconds, self.objective, self.lower_bound))

    def _decide(self) -> None:
        """End the run if the last improvement is enough."""
        last = len(self.goals or ()) == 1 or self._gap > 0
        close = self.objective is not None and last and relative_gap(self.objective, self.lower_bound) <= self._gap
        stopped = self._stop is not None and self._stop(self.trajectory[-1])
        self.done = self.done or close or stopped


def check_run(
    known: Registry | None = None,
    method: object = AUTO,
    *,
    time_limit: object = None,
    seed: object = 0,
    workers: object = None,
    callbacks: object = (),
    gap: object = 0.0,
    stop: object = None,
    deterministic: object = False,
    also: Iterable[Problem] = (),
) -> None:
    """Refuse options that no run can work with, whatever their type.

    The options are those of :func:`mig_opt.solve`. ``method`` has to be one of those that are ``known``, if any are;
    ``also`` has the problems of other arguments, which come first.

    Raises
    ------
    InputError
        With every problem; an UnknownMethodError if one of them is that.
    """
    problems = list(also)
    error: type[InputError] = InputError
    if known is not None:
        try:
            known.find(method)
        except InputError as unknown:
            error = type(unknown)
            problems += unknown.problems
    if time_limit is not None:
        problems += wrong_number("time_limit", time_limit, "a finite number of seconds > 0", above=0)
    problems += wrong_integer("seed", seed, 0, 2**31 - 1)
    if workers is not None:
        problems += wrong_integer("workers", workers, 1, _MOST_WORKERS)
    if not isinstance(callbacks, Callbacks):
        try:
            entries_of("callbacks", callbacks, Callbacks, "a Callbacks object, not the class or a function")
        except InputError as wrong:
            problems += wrong.problems
    problems += wrong_share("gap", gap)
    if stop is not None and not callable(stop):
        problems.append(wrong_type("stop", stop, "a function of a TrajectoryPoint"))
    problems += wrong_flag("deterministic", deterministic)
    if problems:
        raise error(problems)


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
    optimal: Callable[[], bool],
    same: Callable[[float, float], bool] = operator.eq,
    conclude: Callable[..., R],
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
    optimal : callable
        Returns True if the incumbent is proven to be the best plan; asked after the run.
    same : callable
        Returns True if a lower bound that is above an objective is so because of rounding only.
    conclude : callable
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
        status = Status.OPTIMAL if complete and optimal() else status or Status.FEASIBLE
    elif status is None:
        status = Status.INFEASIBLE if control.infeasible else Status.NO_SOLUTION
    result = conclude(
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
