"""HiGHS, in this process."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pulp

from mig_opt.errors import SolverError
from mig_opt.models.solvers.backend import Job, LpOutcome, Values
from mig_opt.result import Status


class Highs:
    """The backend HiGHS.

    Parameters
    ----------
    tolerance : float
        Its own default is 1e-6. Less makes bounds tighter; it was seen to err more often then.
    """

    name = "HiGHS"

    def __init__(self, tolerance: float = 1e-9) -> None:
        self.tolerance = tolerance

    def missing(self) -> str | None:
        """Return why HiGHS cannot be used here and how to mend that; None if it can."""
        try:
            import highspy  # noqa: F401  # whether it can be loaded is the question
        except ImportError as error:
            return f'HiGHS cannot be loaded ({error}); mend it with: pip install "highspy>=1.10,<1.15"'
        return None

    def run(self, job: Job) -> LpOutcome:
        """Solve a program.

        Raises
        ------
        SolverError
            If HiGHS ends without an answer.
        """
        solver = pulp.HiGHS(
            msg=False,
            gapRel=0.0,
            gapAbs=0.0,
            timeLimit=job.seconds,
            **({} if job.nodes is None else {"mip_max_nodes": job.nodes}),
            random_seed=job.seed,
            mip_feasibility_tolerance=self.tolerance,
            primal_feasibility_tolerance=self.tolerance,
            dual_feasibility_tolerance=self.tolerance,
            # Smaller factors are dropped from their rows; by default those of 1e-9 are.
            small_matrix_value=1e-12,
        )
        solver.createAndConfigureSolver(job.program)
        solver.buildSolverModel(job.program)
        model = job.program.solverModel
        names = [variable.name for variable in job.program.variables()]
        if job.start is not None:
            _start_from(model, [job.start[name] for name in names])
        reporter = _Reporter(job, names)
        model.cbMipImprovingSolution.subscribe(reporter.on_solution)
        for interrupts in (model.cbMipInterrupt, model.cbSimplexInterrupt, model.cbIpmInterrupt):
            interrupts.subscribe(reporter.on_interrupt)
        model.run()
        if reporter.failure is not None:
            raise reporter.failure
        return _outcome(model, names)


class _Reporter:
    """Passes solutions and bounds on. Exceptions must not cross the solver's C++ frames: they stop it, and are kept."""

    def __init__(self, job: Job, names: list[str]) -> None:
        self._job = job
        self._names = names
        self.failure: BaseException | None = None

    def on_solution(self, event: Any) -> None:
        values = dict(zip(self._names, map(float, event.data_out.mip_solution), strict=True))
        self._guard(lambda: self._job.on_solution(values))

    def on_interrupt(self, event: Any) -> None:
        self._guard(lambda: self._job.on_bound(event.data_out.mip_dual_bound))
        if self.failure is not None or self._job.stop.is_set():
            event.interrupt()

    def _guard(self, report: Callable[[], None]) -> None:
        if self.failure is None:
            try:
                report()
            except BaseException as error:
                self.failure = error


def _start_from(model: Any, values: list[float]) -> None:
    import highspy

    solution = highspy.HighsSolution()
    solution.col_value = values
    model.setSolution(solution)


def _outcome(model: Any, names: list[str]) -> LpOutcome:
    from highspy import HighsModelStatus

    info, status = model.getInfo(), model.getModelStatus()
    solved = info.primal_solution_status == 2  # "feasible", of "none", "infeasible" and "feasible"
    values: Values | None = None
    if solved:
        values = dict(zip(names, map(float, model.getSolution().col_value), strict=True))
    objective = float(info.objective_function_value) if solved else None
    match status:
        case HighsModelStatus.kOptimal if objective is not None:
            # A program without integers has no bound of its own.
            whole = any(variable == 1 for variable in map(int, model.getLp().integrality_))
            return LpOutcome(Status.OPTIMAL, objective, info.mip_dual_bound if whole else objective, values)
        case HighsModelStatus.kInfeasible:
            return LpOutcome(Status.INFEASIBLE, None, math.inf, None)
        case HighsModelStatus.kTimeLimit | HighsModelStatus.kSolutionLimit | HighsModelStatus.kIterationLimit:
            found = Status.FEASIBLE if solved else Status.NO_SOLUTION
        case HighsModelStatus.kInterrupt:
            found = Status.INTERRUPTED
        case _:
            raise SolverError(f"HiGHS ends with {model.modelStatusToString(status)!r}")
    return LpOutcome(found, objective, info.mip_dual_bound, values)
