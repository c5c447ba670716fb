"""The methods ``milp``, ``milp-highs`` and ``milp-cbc``: proven optima by mixed-integer programming.

:mod:`mig_opt.models.batch.block_search` has the steps, :mod:`mig_opt.models.batch.block_program` the model.

Solvers of mixed-integer programs work in floating-point numbers, and keep a row, or a whole number, only within a
tolerance. A bound of theirs counts here after that much is taken off (:meth:`LinearProgram.leeway`); as every makespan
is a whole number of ticks, it is then raised to the next one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mig_opt.batch.batch import Batch
from mig_opt.batch.schedule import Schedule
from mig_opt.errors import InputError, Problem
from mig_opt.method.control import Control
from mig_opt.method.result import Status
from mig_opt.models.batch.block_formulation import BlockForm
from mig_opt.models.batch.block_program import BlockProgram, seconds_to_build
from mig_opt.models.batch.block_search import BlockSearch
from mig_opt.models.solvers.backend import Backend, IntegerOutcome, Request, SolverOutcome, Values, solve_program
from mig_opt.models.solvers.cbc import Cbc
from mig_opt.models.solvers.highs import Highs, highs_or_cbc

_NODES_PER_SECOND = 3.0
"""Nodes that HiGHS looks at in a second: measured 100 with 5 tasks, 4.5 with 8, and 1.8 with 12 and 16."""


def milp(batch: Batch, control: Control[Schedule]) -> None:
    """Search with HiGHS, or with CBC where HiGHS cannot be loaded, until the proof or the end of the time."""
    _search(batch, control, highs_or_cbc(presolve=False))


def milp_highs(batch: Batch, control: Control[Schedule]) -> None:
    """Do the same with HiGHS; an InputError says if it is not there."""
    _search(batch, control, Highs(presolve=False))


def milp_cbc(batch: Batch, control: Control[Schedule]) -> None:
    """Do the same with CBC; an InputError says if it is not there."""
    _search(batch, control, Cbc())


def _search(batch: Batch, control: Control[Schedule], backend: Backend) -> None:
    missing = backend.missing()
    if missing is not None:
        raise InputError([Problem("method", missing)])
    search = _MilpSearch(batch, control, backend)
    if search.can_begin:
        search.run()


class _MilpSearch(BlockSearch[BlockProgram]):
    """Search by block programs that a solver of mixed-integer programs solves."""

    def __init__(self, batch: Batch, control: Control[Schedule], backend: Backend) -> None:
        self._backend = backend
        self.name = backend.name
        super().__init__(batch, control)

    def seconds_to_build(self) -> float:
        return seconds_to_build(self.problem)

    def build(self, form: BlockForm) -> BlockProgram:
        return BlockProgram(self.problem, form)

    def complete(self, model: BlockProgram, places: Sequence[int], share: float) -> IntegerOutcome:
        with model.fixed(places):
            return self.minimise(model, Request(share=share))

    def minimise(self, model: BlockProgram, request: Request) -> IntegerOutcome:
        leeway = model.ticks(model.linear.leeway(self._backend.tolerance))

        def whole(bound: float) -> int:
            known = request.at_least
            return max(known, math.ceil(model.ticks(bound) - leeway)) if bound > -math.inf else known

        def report_solution(values: Values) -> None:
            if request.on_solution is not None:
                request.on_solution(model.whole(values))

        def report_bound(bound: float) -> None:
            if request.on_bound is not None:
                request.on_bound(whole(bound))

        found = solve_program(
            model.linear.program,
            self._backend,
            self.control,
            share=request.share,
            nodes_per_second=_NODES_PER_SECOND,
            start=model.start,
            on_solution=report_solution,
            on_bound=report_bound,
        )
        if found.infeasible:
            return SolverOutcome(Status.INFEASIBLE, None, request.at_least, None)
        return SolverOutcome(
            found.status,
            None if found.objective is None else math.ceil(model.ticks(found.objective) - leeway),
            whole(found.bound),
            None if found.values is None else model.whole(found.values),
            blur=math.floor(2 * leeway),
        )
