"""The interface to all solvers, and runs of solvers of mixed-integer programs within the limits of a method.

Every solver ends with a :class:`SolverOutcome`: a status, an objective, a bound and the values of the variables.
PuLP builds the mixed-integer programs and knows how to hand them over, but its own statuses cannot be trusted: it says
``Optimal`` when the time is up, and takes values for a solution that are none. So each backend
(:mod:`~mig_opt.models.solvers.highs`, :mod:`~mig_opt.models.solvers.cbc`) tells the outcome from what the solver itself
says.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from mig_opt.method.control import Limits, interruptibly
from mig_opt.method.result import Status

if TYPE_CHECKING:
    import pulp

_LOG = logging.getLogger(__name__)

NODES_PER_SECOND = 10.0
"""Nodes of a search tree that take about a second, where the caller does not know better."""

_MOST_NODES = 2**31 - 1
"""Nodes that solvers can count."""

Values = Mapping[str, float]
"""Value of every variable, by name."""

T = TypeVar("T")
V = TypeVar("V")
N = TypeVar("N", int, float)


@dataclass(frozen=True, slots=True)
class SolverOutcome(Generic[V, N]):
    """Outcome of one run of a solver."""

    # ``optimal``: the solution is, within the solver's tolerance. ``feasible``: the time was up, with a solution.
    # ``infeasible``: there is no solution. ``no_solution``: the time was up before one was found. ``interrupted``:
    # stopped, with a solution or without.
    status: Status
    objective: N | None  # objective of the best solution
    bound: N  # no solution has a smaller objective, within the solver's tolerance
    values: V | None  # best solution: the value of every variable, in order or by name
    # of a block model: ticks that the tolerances of the solver do not tell apart, so that an optimum may be that much
    # above ``bound``
    blur: int = 0

    @property
    def proven(self) -> bool:
        """True if the solution is optimal for the model."""
        return self.status is Status.OPTIMAL

    @property
    def infeasible(self) -> bool:
        """True if the model has no solution."""
        return self.status is Status.INFEASIBLE

    def proves(self, cost: float) -> bool:
        """Return True if nothing costs less than ``cost``, given that the run looked for such a thing.

        Costs are whole numbers. A solution that is optimal within the solver's tolerance may break a rule, and then it
        has not become the cost.
        """
        return self.infeasible or (self.proven and self.objective is not None and cost < self.objective + 0.5)


IntegerOutcome = SolverOutcome[Sequence[int], int]
"""Outcome of a run in whole numbers. Its ``bound`` stays finite where there is no solution."""

ProgramOutcome = SolverOutcome[Values, float]
"""Outcome of a mixed-integer program. Its ``bound`` is infinite if there is no solution, minus infinity if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Request to minimise a model in whole numbers."""

    at_least: int = 0  # a known lower bound of the objective
    # The part of the remaining time that the run may take. In a deterministic run this is time as the solver counts it,
    # by its own operations.
    share: float = 1.0
    seconds: float = math.inf  # that the run may take besides, counted alike
    for_proof: bool = False  # true if a proof is wanted rather than better solutions on the way
    tight: bool = False  # true if solutions are so hard to find that it takes linear programs of all constraints
    # called with the values of every variable for each better solution
    on_solution: Callable[[Sequence[int]], None] | None = None
    on_bound: Callable[[int], None] | None = None  # called with each better bound


class Guard:
    """Keeper of the first exception of a callback: exceptions must not cross a solver's C++ frames."""

    def __init__(self) -> None:
        self.failure: BaseException | None = None  # to be raised once the solver has ended

    def call(self, report: Callable[[T], None], argument: T) -> None:
        """Call ``report``, unless a report has failed before."""
        if self.failure is None:
            try:
                report(argument)
            except BaseException as error:
                self.failure = error


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """Task of a backend: a program and the limits of the run."""

    program: pulp.LpProblem  # to be minimised; it has bounds that keep the objective finite
    seconds: float | None  # limit of time
    nodes: int | None  # limit of nodes of the search tree, where the clock must not decide
    seed: int  # for what is random
    start: Values | None  # a solution to start from: the value of every variable
    stop: threading.Event  # set when the run has to end early
    on_solution: Callable[[Values], None]  # to be called with better solutions, from any thread
    on_bound: Callable[[float], None]  # to be called with better bounds, from any thread
    begun: float = field(default_factory=time.monotonic)  # second at which the limit of time began

    @property
    def left(self) -> float | None:
        """Seconds that are left once the solver has the program, which takes some."""
        return None if self.seconds is None else max(self.begun + self.seconds - time.monotonic(), 0.01)


class Backend(Protocol):
    """Interface of a solver of mixed-integer programs."""

    name: str  # for messages
    tolerance: float  # largest error in a row, in an integer and in the objective that it lets pass

    def missing(self) -> str | None:
        """Return why it cannot be used here and how to mend that; None if it can."""

    def run(self, run: ProgramRun) -> ProgramOutcome:
        """Solve a program."""


def solve_program(
    program: pulp.LpProblem,
    backend: Backend,
    control: Limits,
    *,
    share: float = 1.0,
    nodes_per_second: float = NODES_PER_SECOND,
    start: Values | None = None,
    on_solution: Callable[[Values], None] | None = None,
    on_bound: Callable[[float], None] | None = None,
) -> ProgramOutcome:
    """Minimise a program, whose objective is finite for every solution, within the limits of ``control``.

    The solver works in a thread or process of its own while this thread waits, so that Ctrl-C reaches it: the solver is
    then told to stop, what it has found is reported, and KeyboardInterrupt goes on to the caller. The backends use one
    thread each: they gain little from more, and CBC's answers then depend on chance.

    The run may take a ``share`` of the remaining time, as nodes if it is deterministic. It starts from the value of
    every variable, by name, if given. ``on_solution`` is called with such values for better solutions, with the last
    one in any case, and ``on_bound`` with better bounds. If the solver fails, that is a SolverError.
    """
    if control.expired:
        return SolverOutcome(Status.NO_SOLUTION, None, -math.inf, None)
    stop = threading.Event()
    progress = _Progress(control, stop, on_solution, on_bound)
    seconds, nodes = _limits(control, share, nodes_per_second)
    run = ProgramRun(program, seconds, nodes, control.seed, start, stop, progress.solution, progress.early_bound)

    def work() -> ProgramOutcome:
        outcome = backend.run(run)
        progress.bound(outcome.bound)
        if outcome.values is not None:
            progress.solution(outcome.values)
        return outcome

    outcome = interruptibly(work, stop.set)
    _LOG.debug("%s: %s, objective %s, bound %g, %d variables, %d constraints", backend.name, outcome.status,
               outcome.objective, outcome.bound, program.numVariables(), program.numConstraints())  # fmt: skip
    if nodes is not None and outcome.status not in (Status.OPTIMAL, Status.INFEASIBLE):
        control.spend(nodes / nodes_per_second)
    return outcome


class _Progress:
    """Passes solutions and better bounds on, and stops the solver once the run is over."""

    def __init__(
        self,
        control: Limits,
        stop: threading.Event,
        on_solution: Callable[[Values], None] | None,
        on_bound: Callable[[float], None] | None,
    ) -> None:
        self._control = control
        self._stop = stop
        self._on_solution = on_solution
        self._on_bound = on_bound
        self._best = -math.inf

    def solution(self, values: Values) -> None:
        if self._on_solution is not None:
            self._on_solution(values)
        self._end_if_done()

    def bound(self, bound: float) -> None:
        if self._on_bound is not None and self._best < bound < math.inf:
            self._best = bound
            self._on_bound(bound)
        self._end_if_done()

    def early_bound(self, bound: float) -> None:
        # When bounds are told on the way depends on the clock.
        if not self._control.deterministic:
            self.bound(bound)

    def _end_if_done(self) -> None:
        if self._control.done:
            self._stop.set()


def _limits(control: Limits, share: float, nodes_per_second: float) -> tuple[float | None, int | None]:
    """Return the limits of a run: of seconds, or of nodes where the clock must not decide."""
    if control.remaining is None:
        return None, None
    seconds = max(control.remaining * share, 0.01)
    return (None, min(math.ceil(seconds * nodes_per_second), _MOST_NODES)) if control.deterministic else (seconds, None)
