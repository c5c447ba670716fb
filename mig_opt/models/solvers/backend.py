"""Runs solvers of mixed-integer programs so that limits, Ctrl-C and progress work the same way for each of them.

PuLP builds the programs and knows how to hand them over, but its own statuses cannot be trusted: it says ``Optimal``
when the time is up, and takes values for a solution that are none. So each backend
(:mod:`~mig_opt.models.solvers.highs`, :mod:`~mig_opt.models.solvers.cbc`) tells what happened from what the solver
itself says.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import pulp

from mig_opt.control import Limits, interruptibly
from mig_opt.result import Status

NODES_PER_SECOND = 10
"""Nodes of a search tree that take about a second: from some hundred for five tasks to a few for twenty."""

Values = Mapping[str, float]
"""The value of every variable, by name."""


@dataclass(frozen=True, slots=True)
class LpOutcome:
    """What a run ended with.

    Attributes
    ----------
    status : Status
        ``optimal``: the solution is, within the solver's tolerance. ``feasible``: the time was up, with a solution.
        ``infeasible``: there is no solution. ``no_solution``: the time was up before one was found. ``interrupted``:
        stopped, with a solution or without.
    objective : float or None
        Of the best solution.
    bound : float
        No solution has a smaller objective, within the solver's tolerance; infinite if there is none, and minus
        infinity if nothing is known.
    values : mapping of str to float or None
        The best solution.
    """

    status: Status
    objective: float | None
    bound: float
    values: Values | None

    def proves(self, cost: float) -> bool:
        """Whether nothing costs less than ``cost``, if the run was to find what does, in whole numbers.

        A solution that is optimal within the solver's tolerance may break a rule, and then it has not become the cost.
        """
        if self.status is Status.OPTIMAL:
            return self.objective is not None and cost < self.objective + 0.5
        return self.status is Status.INFEASIBLE


@dataclass(frozen=True, slots=True)
class Job:
    """What a backend has to do.

    Attributes
    ----------
    program : pulp.LpProblem
        To be minimised; it has bounds that keep the objective finite.
    seconds : float or None
        Limit of time.
    nodes : int or None
        Limit of nodes of the search tree, where the clock must not decide.
    seed : int
        For what is random.
    start : mapping of str to float or None
        A solution to start from: the value of every variable.
    stop : threading.Event
        Set when the run has to end early.
    on_solution : callable
        To be called with better solutions, from any thread.
    on_bound : callable
        To be called with better bounds, from any thread.
    """

    program: pulp.LpProblem
    seconds: float | None
    nodes: int | None
    seed: int
    start: Values | None
    stop: threading.Event
    on_solution: Callable[[Values], None]
    on_bound: Callable[[float], None]


class Backend(Protocol):
    """A solver of mixed-integer programs.

    Attributes
    ----------
    name : str
        What people call it.
    tolerance : float
        By how much it lets rows be broken, integers be fractional and the objective be off.
    """

    name: str
    tolerance: float

    def missing(self) -> str | None:
        """Return why it cannot be used here and how to mend that; None if it can."""

    def run(self, job: Job) -> LpOutcome:
        """Solve a program."""


def solve_program(
    program: pulp.LpProblem,
    backend: Backend,
    control: Limits,
    *,
    share: float = 1.0,
    start: Values | None = None,
    on_solution: Callable[[Values], None] | None = None,
    on_bound: Callable[[float], None] | None = None,
) -> LpOutcome:
    """Minimise ``program`` within the limits of ``control``.

    The solver works in a thread or process of its own while this thread waits, so that Ctrl-C reaches it: the solver is
    then told to stop, what it has found is reported, and KeyboardInterrupt goes on to the caller. The backends use one
    thread each: they gain little from more, and CBC's answers then depend on chance.

    Parameters
    ----------
    program : pulp.LpProblem
        With an objective to be minimised, which is finite for every solution.
    backend : Backend
        It is not missing.
    control : Limits
        Time and seed.
    share : float
        The part of the remaining time that the run may take.
    start : mapping of str to float, optional
        A solution to start from: the value of every variable, by name.
    on_solution : callable, optional
        Called with the values of every variable, by name, for better solutions; with the last one in any case.
    on_bound : callable, optional
        Called with better bounds.

    Raises
    ------
    SolverError
        If the solver fails.
    """
    if control.expired:
        return LpOutcome(Status.NO_SOLUTION, None, -math.inf, None)
    stop = threading.Event()
    best = -math.inf

    def report_bound(bound: float) -> None:
        nonlocal best
        if on_bound is not None and best < bound < math.inf:
            best = bound
            on_bound(bound)

    def report_solution(values: Values) -> None:
        if on_solution is not None:
            on_solution(values)

    seconds, nodes = _limits(control, share)
    # When bounds are told on the way depends on the clock.
    report_early: Callable[[float], None] = _keep_quiet if control.deterministic else report_bound
    job = Job(program, seconds, nodes, control.seed, start, stop, report_solution, report_early)

    def work() -> LpOutcome:
        outcome = backend.run(job)
        report_bound(outcome.bound)
        if outcome.values is not None:
            report_solution(outcome.values)
        return outcome

    outcome = interruptibly(work, stop.set)
    if nodes is not None and outcome.status not in (Status.OPTIMAL, Status.INFEASIBLE):
        control.spend(nodes / NODES_PER_SECOND)
    return outcome


def _limits(control: Limits, share: float) -> tuple[float | None, int | None]:
    """Return the limits of a run: of seconds, or of nodes where the clock must not decide."""
    if control.remaining is None:
        return None, None
    seconds = max(control.remaining * share, 0.01)
    return (None, math.ceil(seconds * NODES_PER_SECOND)) if control.deterministic else (seconds, None)


def _keep_quiet(_: float) -> None:
    """Tell nobody."""
