"""The method ``cp``: proven optima by CP-SAT on the block model.

1. The relaxed block model gives a bound that holds for every schedule. Each assignment of tasks that it meets on the
   way is turned into a schedule at once.
2. If the best schedule does not reach the bound, the strict block model looks for one between the two.
3. If there is none, some re-creation may still pay. The relaxed model gets one more life with a place in time for each
   placement that was loose, and looks below the best schedule: either there is nothing, which proves the schedule
   optimal, or what it finds has fewer loose ends, until it is a schedule itself.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

from mig_opt.batch import Batch
from mig_opt.control import Control
from mig_opt.errors import SolverError
from mig_opt.models.blocks import BlockModel, seconds_to_build
from mig_opt.models.cpsat import Outcome, run
from mig_opt.models.problem import Problem
from mig_opt.timing import nested_schedule

_FIRST_SHARE = 0.85
"""Of the time goes to the relaxed model; the rest is for finding a schedule that reaches its bound."""

_MOST_BUILDING = 5.0
"""Seconds that a model may take to be built: that is 350,000 choices of a place for a task. CP-SAT improves nothing in
minutes on models as large as that, needs gigabytes, and ends long after it should."""

_BUILDING_SHARE = 0.25
"""Of the time may go to building the model; else it is not worth to begin."""

_PROVABLE = 16
"""Up to so many tasks a proof within a minute is likely, and worth more than better schedules on the way."""


def cp(batch: Batch, control: Control) -> None:
    """Search until the best schedule is proven optimal or the time is up.

    A batch whose model is too large, or cannot be built in the time that is left, keeps what is known already.

    Parameters
    ----------
    batch : Batch
        Every task has a placement.
    control : Control
        May hold a schedule to start from.
    """
    search = _Search(batch, control)
    if search.can_begin:
        search.run()


class _Search:
    """One search: the best schedule and the best bound are in the control, the bound also here in ticks."""

    def __init__(self, batch: Batch, control: Control) -> None:
        self._batch = batch
        self._control = control
        self._problem = Problem(batch)
        self._building = seconds_to_build(self._problem)
        self._lower = self._problem.ticks.floor(control.lower_bound)
        # Where times are rounded down, a schedule takes less in the model than in truth: what the model says counts.
        self._rounded = sys.maxsize
        if control.schedule is None:
            first = [batch.options(task)[0][0] for task in batch.tasks]
            control.offer(nested_schedule(batch, [(0, placement) for placement in first]))

    @property
    def can_begin(self) -> bool:
        """Whether the model is small enough, and there is the time to build it and to use it."""
        return self._building <= _MOST_BUILDING and self._has_time(self._building / _BUILDING_SHARE)

    def _has_time(self, seconds: float) -> bool:
        remaining = self._control.remaining
        return not self._control.expired and (remaining is None or seconds <= remaining)

    def run(self) -> None:
        """Work through the three steps."""
        relaxed = self._model(relaxed=True)
        self._warm_start(relaxed)
        outcome = self._solve(relaxed, share=_FIRST_SHARE, holds_for_all=True)
        if outcome.values is not None:
            self._polish(relaxed.places_of(outcome.values))
        elif outcome.infeasible:
            raise SolverError("CP-SAT finds no solution of a model that has one")
        if self._open:
            strict = self._model(relaxed=False)
            self._warm_start(strict)
            self._solve(strict, share=0.5, holds_for_all=False)
        copies: Counter[int] = Counter()
        while self._open and outcome.values is not None:
            # Without loose places the relaxed solution was a schedule, and the strict model has had its time.
            loose = relaxed.loose_places(outcome.values) or range(len(self._problem.places))
            copies.update(loose)
            relaxed = self._model(relaxed=True, copies={at: 1 + extra for at, extra in copies.items()}, below=True)
            outcome = self._solve(relaxed, share=1.0, holds_for_all=True)
            if outcome.infeasible:
                self._raise_lower(self._upper)

    @property
    def _upper(self) -> int:
        """Ticks that the best schedule takes in the model."""
        assert self._control.makespan is not None
        ticks, makespan = self._problem.ticks, self._control.makespan
        return min(self._rounded, ticks.nearest(makespan) if ticks.exact else ticks.floor(makespan) + 1)

    @property
    def _open(self) -> bool:
        """Whether there is something left to do, and time to do it."""
        return self._lower < self._upper and self._has_time(self._building)

    def _model(self, *, relaxed: bool, copies: dict[int, int] | None = None, below: bool = False) -> BlockModel:
        self._control.spend(self._building)
        return BlockModel(
            self._problem,
            at_least=self._lower,
            at_most=self._upper - below,
            relaxed=relaxed,
            copies=copies,
        )

    def _solve(self, model: BlockModel, *, share: float, holds_for_all: bool) -> Outcome:
        def on_solution(values: Sequence[int]) -> None:
            if model.loose_places(values) or self._problem.operations_take_no_time:
                self._offer_nested(model.places_of(values))
            else:
                self._control.offer(model.schedule(values))

        outcome = run(
            model.model,
            self._control,
            at_least=self._lower,
            share=share,
            for_proof=len(self._batch.tasks) <= _PROVABLE,
            on_solution=on_solution,
            on_bound=self._raise_lower if holds_for_all else None,
        )
        self._note(model, outcome)
        if holds_for_all:
            self._raise_lower(outcome.bound)
        return outcome

    def _warm_start(self, model: BlockModel) -> None:
        """Complete the best schedule to a solution of ``model``, if it is one, and let the solver start from it."""
        assert self._control.schedule is not None
        places = self._problem.places_of(self._control.schedule)
        outcome = run(model.fixed(places), self._control, at_least=0, share=0.1, workers=1)
        if outcome.values is not None:
            model.hint(outcome.values)

    def _polish(self, places: Sequence[int]) -> None:
        """Find the best order of operations for an assignment."""
        if not self._open or self._problem.operations_take_no_time:
            return
        model = self._model(relaxed=False)
        outcome = run(model.fixed(places), self._control, at_least=0, share=0.5, workers=1)
        if outcome.values is not None:
            self._control.offer(model.schedule(outcome.values))
        self._note(model, outcome)

    def _note(self, model: BlockModel, outcome: Outcome) -> None:
        """Remember what a schedule takes in the model."""
        if outcome.values is not None and outcome.objective is not None and not model.loose_places(outcome.values):
            self._rounded = min(self._rounded, outcome.objective)

    def _offer_nested(self, places: Sequence[int]) -> None:
        chosen = [self._problem.places[at] for at in places]
        self._control.offer(nested_schedule(self._batch, [(place.gpu, place.placement) for place in chosen]))

    def _raise_lower(self, ticks: int) -> None:
        """Report a bound that holds for every schedule."""
        if ticks > self._lower:
            self._lower = ticks
            self._control.raise_bound(self._problem.ticks.seconds_below(ticks))
