"""Runs CP-SAT so that limits, Ctrl-C and progress work the same way for every model."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ortools.sat.python import cp_model

from mig_opt.control import Control
from mig_opt.errors import SolverError


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run of CP-SAT ended with.

    Attributes
    ----------
    values : sequence of int or None
        The value of every variable in the best solution; None if there is none.
    objective : int or None
        Its objective.
    bound : int
        No solution has a smaller objective. (If there is no solution at all, ``infeasible`` says so.)
    proven : bool
        Whether the solution is optimal for the model.
    infeasible : bool
        Whether the model has no solution.
    """

    values: Sequence[int] | None
    objective: int | None
    bound: int
    proven: bool
    infeasible: bool


class _Reporter(cp_model.CpSolverSolutionCallback):
    def __init__(self, report: Callable[[Sequence[int]], None], failures: list[BaseException]) -> None:
        super().__init__()
        self._report = report
        self._failures = failures

    def on_solution_callback(self) -> None:
        try:
            self._report(self.response_proto.solution)
        except BaseException as error:  # an exception must not cross the solver's C++ frames
            self._failures.append(error)
            self.stop_search()


def run(
    model: cp_model.CpModel,
    control: Control,
    *,
    at_least: int,
    share: float = 1.0,
    workers: int | None = None,
    on_solution: Callable[[Sequence[int]], None] | None = None,
    on_bound: Callable[[int], None] | None = None,
) -> Outcome:
    """Minimise ``model`` within the limits of ``control``.

    The solver works in a thread of its own while this one waits, so that Ctrl-C reaches it: the solver is then told
    to stop, and KeyboardInterrupt goes on to the caller.

    Parameters
    ----------
    model : CpModel
        With an objective to be minimised.
    control : Control
        Time, seed and workers.
    at_least : int
        A known lower bound of the objective.
    share : float
        The part of the remaining time that the run may take.
    workers : int, optional
        Threads, if not those of ``control``.
    on_solution : callable, optional
        Called with the values of every variable for each better solution.
    on_bound : callable, optional
        Called with each better bound.

    Raises
    ------
    SolverError
        If the solver rejects the model.
    """
    failures: list[BaseException] = []
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = workers or control.workers
    solver.parameters.random_seed = control.seed
    # Probing finds little in these models and takes time that the search needs more.
    solver.parameters.cp_model_probing_level = 0
    # The solver must not take SIGINT for itself, or nobody else would know of it.
    solver.parameters.catch_sigint_signal = False
    if control.remaining is not None:
        solver.parameters.max_time_in_seconds = max(control.remaining * share, 0.01)
    if on_bound is not None:
        solver.best_bound_callback = lambda bound: on_bound(_ceil(bound))
    reporter = None if on_solution is None else _Reporter(on_solution, failures)
    status: list[int] = []

    def work() -> None:
        try:
            status.append(int(solver.solve(model, reporter)))
        except BaseException as error:  # handed to the waiting thread
            failures.append(error)

    thread = threading.Thread(target=work, name="cp-sat", daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(0.05)
    except KeyboardInterrupt:
        solver.stop_search()
        thread.join()
        raise
    if failures:
        raise failures[0]
    return _outcome(solver, status[0], at_least)


def _outcome(solver: cp_model.CpSolver, status: int, at_least: int) -> Outcome:
    # With status UNKNOWN the objective means nothing, but the bound counts.
    solved = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    if status == cp_model.MODEL_INVALID:
        raise SolverError(f"CP-SAT rejects the model: {solver.solution_info()}")
    if status == cp_model.INFEASIBLE:
        return Outcome(None, None, at_least, proven=False, infeasible=True)
    objective = round(solver.objective_value) if solved else None
    bound = _ceil(solver.best_objective_bound)
    proven = status == cp_model.OPTIMAL
    if proven and objective is not None:
        bound = objective
    return Outcome(
        list(solver.response_proto.solution) if solved else None,
        objective,
        max(bound, at_least),
        proven=proven,
        infeasible=False,
    )


def _ceil(bound: float) -> int:
    """Return the integer that a floating-point bound on an integer objective stands for."""
    return math.ceil(bound - 1e-4)
