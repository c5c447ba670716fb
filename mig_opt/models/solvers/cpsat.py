"""Runs of CP-SAT, with the same limits, Ctrl-C and progress for every model."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ortools.sat.python import cp_model

from mig_opt.errors import SolverError
from mig_opt.method.control import Limits, interruptibly
from mig_opt.method.result import Status
from mig_opt.models.solvers.backend import Guard, IntegerOutcome, Request, SolverOutcome

if TYPE_CHECKING:
    from mig_opt.models.solvers.linear import Terms  # loads PuLP

_LOG = logging.getLogger(__name__)

SECONDS_PER_UNIT = 1.0
"""Seconds that a unit of the solver's deterministic time takes: measured 0.6 to 1.3 with one worker, on block models of
10 to 1000 tasks."""


class _Reporter(cp_model.CpSolverSolutionCallback):
    """Callback that passes solutions and bounds on."""

    def __init__(self, control: Limits, request: Request) -> None:
        super().__init__()
        self._control = control
        self._request = request
        self.guard = Guard()

    def on_solution_callback(self) -> None:
        if self._request.on_solution is not None:
            self.guard.call(self._request.on_solution, self.response_proto.solution)
        if self.ends:
            self.stop_search()

    @property
    def ends(self) -> bool:
        """True if the last report ends the run."""
        return self.guard.failure is not None or self._control.done

    def on_bound(self, bound: float) -> None:
        if self._request.on_bound is not None:
            self.guard.call(self._request.on_bound, _ceil(bound))


def run(
    model: cp_model.CpModel, control: Limits, request: Request, *, workers: int | None = None, presolve: bool = False
) -> IntegerOutcome:
    """Minimise ``model`` within the limits of ``control``; without time left, nothing is solved.

    The solver works in a thread of its own while this one waits, so that Ctrl-C reaches it: the solver is then told
    to stop, and KeyboardInterrupt goes on to the caller. A model that it rejects is a SolverError.

    For a proof one or two workers use a search without linear programming, which on small models proves several times
    faster in most cases; where solutions are hard to find, they use more of it. ``workers`` are those of the control if
    not given. ``presolve`` is for models whose solutions are found several times faster so, where nothing has to be
    proven: that of OR-Tools 9.15 loses solutions where numbers are large (that of 9.14 does not). Most models are tight
    already.
    """
    if control.expired:
        return SolverOutcome(Status.NO_SOLUTION, None, request.at_least, None)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = workers or control.workers
    solver.parameters.random_seed = control.seed
    _choose_search(solver, request)
    solver.parameters.cp_model_presolve = presolve
    # The solver must not take SIGINT for itself, or nobody else would know of it.
    solver.parameters.catch_sigint_signal = False
    seconds = min(control.left * request.share, request.seconds)
    if seconds < math.inf and control.deterministic:
        solver.parameters.max_deterministic_time = seconds / SECONDS_PER_UNIT
    elif seconds < math.inf:
        solver.parameters.max_time_in_seconds = max(seconds, 0.01)
    reporter = _Reporter(control, request)

    def report_bound(bound: float) -> None:
        reporter.on_bound(bound)
        if reporter.ends:
            solver.stop_search()

    solver.best_bound_callback = report_bound
    status = interruptibly(lambda: int(solver.solve(model, reporter)), solver.stop_search)
    if reporter.guard.failure is not None:
        raise reporter.guard.failure
    control.spend(solver.response_proto.deterministic_time * SECONDS_PER_UNIT)
    outcome = _outcome(solver, status, request.at_least)
    _LOG.debug(
        "CP-SAT: %s, objective %s, bound %s, %.3f s", outcome.status, outcome.objective, outcome.bound, solver.wall_time
    )
    return outcome


def _choose_search(solver: cp_model.CpSolver, request: Request) -> None:
    """Set how one or two workers search; more of them search in many ways at once."""
    parameters = solver.parameters
    if parameters.num_workers == 1 and (request.for_proof or request.tight):
        parameters.linearization_level = 0 if request.for_proof else 2
    elif parameters.num_workers == 2 and request.for_proof:
        parameters.subsolvers.extend(["no_lp", "default_lp"])
    elif parameters.num_workers == 2 and request.tight:
        parameters.subsolvers.extend(["max_lp", "quick_restart"])


def _outcome(solver: cp_model.CpSolver, status: int, at_least: int) -> IntegerOutcome:
    if status == cp_model.MODEL_INVALID:
        raise SolverError(f"CP-SAT rejects the model: {solver.solution_info()}")
    if status == cp_model.INFEASIBLE:
        return SolverOutcome(Status.INFEASIBLE, None, at_least, None)
    bound = _ceil(solver.best_objective_bound)
    # With status UNKNOWN the objective means nothing, but the bound counts.
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return SolverOutcome(Status.NO_SOLUTION, None, max(bound, at_least), None)
    objective, values = round(solver.objective_value), list(solver.response_proto.solution)
    if status == cp_model.OPTIMAL:
        return SolverOutcome(Status.OPTIMAL, objective, max(objective, at_least), values)
    return SolverOutcome(Status.FEASIBLE, objective, max(bound, at_least), values)


def _ceil(bound: float) -> int:
    """Return the integer that a floating-point bound on an integer objective stands for."""
    return math.ceil(bound - 1e-4)


class CpRows:
    """Rows of a model in whole numbers, written as those of a :class:`~mig_opt.models.solvers.linear.LinearProgram`."""

    def __init__(self, model: cp_model.CpModel) -> None:
        self.model = model
        self.choice = self.share = model.new_bool_var

    def at_most(self, _name: str, terms: Terms, limit: float) -> None:
        """Demand that the sum of ``terms`` is at most ``limit``."""
        self.model.add(weighted_sum(terms) <= limit)

    def exactly_one(self, _name: str, choices: Iterable[cp_model.IntVar]) -> None:
        """Demand that one of some choices is true."""
        self.model.add_exactly_one(choices)

    def at_most_one(self, _name: str, choices: Iterable[cp_model.IntVar]) -> None:
        """Demand that no two of some choices are true."""
        self.model.add_at_most_one(choices)

    def implies(self, _name: str, cause: cp_model.IntVar, effect: cp_model.IntVar) -> None:
        """Demand that an effect follows from its cause."""
        self.model.add_implication(cause, effect)

    def requires(self, _name: str, cause: cp_model.IntVar, effects: Sequence[cp_model.IntVar], count: int = 1) -> None:
        """Demand that as many of some effects as ``count`` follow from their cause."""
        if count == 1:
            self.model.add_bool_or([*effects, ~cause])
        else:
            self.model.add(cp_model.LinearExpr.sum(list(effects)) >= count).only_enforce_if(cause)

    def any(self, name: str, choices: Sequence[cp_model.IntVar]) -> cp_model.IntVar:
        """Return a variable that is true if one of ``choices`` is, and else false."""
        if len(choices) == 1:
            return choices[0]
        result = self.choice(name)
        for choice in choices:
            self.model.add_implication(choice, result)
        self.model.add_bool_or([*choices, ~result])
        return result

    def caused(self, name: str, causes: Sequence[cp_model.IntVar]) -> cp_model.IntVar:
        """Return a variable that is true if one of its causes is."""
        return self.any(name, causes)


def weighted_sum(terms: Terms) -> cp_model.LinearExpr:
    """Return the sum of variables, each times its factor."""
    pairs = list(terms)
    return cp_model.LinearExpr.weighted_sum([variable for variable, _ in pairs], [factor for _, factor in pairs])
