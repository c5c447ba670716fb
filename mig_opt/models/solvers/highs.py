"""HiGHS, in this process."""

from __future__ import annotations

import itertools
import math
from typing import Any

from mig_opt.errors import SolverError
from mig_opt.method.result import Status
from mig_opt.models.solvers.backend import Backend, Guard, ProgramOutcome, ProgramRun, SolverOutcome, Values
from mig_opt.models.solvers.cbc import Cbc

_LOOKS_PER_NODE = 15
"""Looks at its limits that HiGHS takes for a node, in about as long: at the first one it takes hundreds."""


class Highs:
    """The backend HiGHS.

    Its own default tolerance is 1e-6. Less makes bounds tighter; it was seen to err more often then. Its presolve (of
    1.14) was seen to lose the best schedule of a small batch, so that the bound was wrong, and to end with an error for
    a program without a solution, which is then solved without it.
    """

    name = "HiGHS"

    def __init__(self, tolerance: float = 1e-9, *, presolve: bool = True) -> None:
        self.tolerance, self._presolve = tolerance, presolve

    def missing(self) -> str | None:
        """Return why HiGHS cannot be used here and how to mend that; None if it can."""
        try:
            import highspy  # noqa: F401  # whether it can be loaded is the question
        except ImportError as error:
            return f'HiGHS cannot be loaded ({error}); mend it with: pip install "highspy>=1.10,<1.15"'
        return None

    def _model(self, run: ProgramRun, names: list[str]) -> Any:
        """Return the program as HiGHS has it, with its options and where it starts."""
        import highspy
        import pulp  # slow to load, and whoever has a program has loaded it

        solver = pulp.HiGHS(
            msg=False,
            gapRel=0.0,
            gapAbs=0.0,
            **({} if run.nodes is None else {"mip_max_nodes": run.nodes}),
            random_seed=run.seed,
            mip_feasibility_tolerance=self.tolerance,
            primal_feasibility_tolerance=self.tolerance,
            dual_feasibility_tolerance=self.tolerance,
            # Smaller factors are dropped from their rows; by default those of 1e-9 are.
            small_matrix_value=1e-12,
            presolve="on" if self._presolve else "off",
        )
        solver.createAndConfigureSolver(run.program)
        solver.buildSolverModel(run.program)
        model = run.program.solverModel
        if run.left is not None:
            model.setOptionValue("time_limit", run.left)
        if run.start is not None:
            solution = highspy.HighsSolution()
            solution.col_value = [run.start[name] for name in names]
            model.setSolution(solution)
        return model

    def run(self, run: ProgramRun) -> ProgramOutcome:
        """Solve a program.

        Raises
        ------
        SolverError
            If HiGHS ends without an answer.
        """
        from highspy import HighsModelStatus

        names = [variable.name for variable in run.program.variables()]
        model = self._model(run, names)
        guard, looks = Guard(), itertools.count(1)
        most = math.inf if run.nodes is None else run.nodes * _LOOKS_PER_NODE

        def report_solution(event: Any) -> None:
            guard.call(run.on_solution, dict(zip(names, map(float, event.data_out.mip_solution), strict=True)))

        def report_bound(event: Any) -> None:
            guard.call(run.on_bound, event.data_out.mip_dual_bound)
            if guard.failure is not None or run.stop.is_set():
                event.interrupt()

        def end_if_late(event: Any) -> None:
            if next(looks) > most:
                event.interrupt()

        model.cbMipInterrupt.subscribe(end_if_late)
        model.cbMipImprovingSolution.subscribe(report_solution)
        for interrupts in (model.cbMipInterrupt, model.cbSimplexInterrupt, model.cbIpmInterrupt):
            interrupts.subscribe(report_bound)
        model.run()
        if guard.failure is not None:
            raise guard.failure
        if self._presolve and model.getModelStatus() == HighsModelStatus.kSolveError:
            return Highs(self.tolerance, presolve=False).run(run)
        return _outcome(model, names)


def highs_or_cbc(*, presolve: bool = True) -> Backend:
    """Return HiGHS, or CBC where HiGHS cannot be loaded."""
    highs = Highs(presolve=presolve)
    return Cbc() if highs.missing() else highs


def _outcome(model: Any, names: list[str]) -> ProgramOutcome:
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
            return SolverOutcome(Status.OPTIMAL, objective, info.mip_dual_bound if whole else objective, values)
        case HighsModelStatus.kInfeasible:
            return SolverOutcome(Status.INFEASIBLE, None, math.inf, None)
        case HighsModelStatus.kTimeLimit | HighsModelStatus.kSolutionLimit | HighsModelStatus.kIterationLimit:
            found = Status.FEASIBLE if solved else Status.NO_SOLUTION
        case HighsModelStatus.kInterrupt:
            found = Status.INTERRUPTED
        case _:
            raise SolverError(f"HiGHS ends with {model.modelStatusToString(status)!r}")
    return SolverOutcome(found, objective, info.mip_dual_bound, values)
