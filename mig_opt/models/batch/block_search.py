"""Search for a proven optimum by block models, whatever solves them.

1. The relaxed block model gives a bound that holds for every schedule. Each assignment of tasks that it meets on the
   way is turned into a schedule at once.
2. If the best schedule does not reach the bound, the strict block model looks for one between the two.
3. If there is none, some re-creation may still pay. The relaxed model gets one more lifetime with a place in time for
   each placement that was loose, and looks below the best schedule: either there is nothing, which proves the schedule
   optimal, or what it finds has fewer loose ends, until it is a schedule itself.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from mig_opt.batch.batch import Batch
from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.schedule import Schedule
from mig_opt.errors import SolverError
from mig_opt.method.control import Control
from mig_opt.models.batch.block_formulation import BlockForm, BlockFormulation
from mig_opt.models.solvers.backend import IntegerOutcome, Request

_RELAXED_SHARE = 0.85
"""Share of the time for the relaxed model; the rest is for finding a schedule that reaches its bound."""

_MAX_BUILD_SECONDS = 5.0
"""Seconds that a model may take to be built: solvers improve nothing in minutes on models as large as that, need
gigabytes, and end long after they should."""

_BUILD_SHARE = 0.25
"""Largest share of the time for building a model; else it is not worth to begin."""

_REFINED_AT_ONCE = 1e-4
"""Gap to the optimum of the relaxed model, up to which no schedule is sought between the two."""

_MAX_TASKS_PROVABLE = 16
"""Number of tasks up to which a proof within a minute is likely, and worth more than better schedules on the way."""


M = TypeVar("M", bound=BlockFormulation)


class BlockSearch(ABC, Generic[M]):
    """Search on one batch: the best schedule and the best bound are in the control, the bound also here in ticks.

    Every task of the batch has a placement; the control may hold a schedule to start from.
    """

    name: str  # of the solver, for messages

    def __init__(self, batch: Batch, control: Control[Schedule]) -> None:
        self.batch = batch
        self.control = control
        self.problem = IntegerBatch(batch)
        self.lower = self.problem.ticks.floor(control.lower_bound)  # ticks that every schedule takes
        # Where times are rounded down, a schedule takes less in the model than in truth: what the model says counts.
        self._rounded = sys.maxsize
        self._blur = 0
        self.building = self.seconds_to_build()  # of a model
        # The problem has no longer schedules than this one.
        if control.objective is None or control.objective > self.problem.horizon.seconds:
            control.report_plan(self.problem.horizon.schedule)

    @abstractmethod
    def seconds_to_build(self) -> float:
        """Return the approximate seconds that it takes to build a model."""

    @abstractmethod
    def build(self, form: BlockForm) -> M:
        """Return a model."""

    @abstractmethod
    def minimise(self, model: M, request: Request) -> IntegerOutcome:
        """Minimise the makespan, and report on the way."""

    @abstractmethod
    def complete(self, model: M, places: Sequence[int], share: float) -> IntegerOutcome:
        """Find the best solution with each task at its given place, within that share of the time that is left."""

    @property
    def can_begin(self) -> bool:
        """True if the model is small enough, and there is the time to build it and to use it."""
        return self.building <= _MAX_BUILD_SECONDS and self._has_time(self.building / _BUILD_SHARE)

    def _has_time(self, seconds: float) -> bool:
        return not self.control.expired and seconds <= self.control.left

    def run(self) -> None:
        """Search until the best schedule is proven optimal or the time is up.

        Raises
        ------
        SolverError
            If the solver is wrong.
        """
        relaxed = self.model(relaxed=True)
        self._warm_start(relaxed)
        outcome = self._solve(relaxed, share=_RELAXED_SHARE, holds_for_all=True)
        if outcome.values is not None:
            self.polish(relaxed.places_of(outcome.values))
        elif outcome.infeasible:
            raise SolverError(f"{self.name} finds no solution of a model that has one")
        # What is that little below the best schedule is mostly no schedule, and refining tells it at once.
        if self._can_go_on and not (outcome.proven and self.upper - self.lower <= _REFINED_AT_ONCE * self.upper):
            strict = self.model(relaxed=False)
            self._warm_start(strict)
            self._solve(strict, share=0.5, holds_for_all=False)
        copies: Counter[int] = Counter()
        while self._can_go_on and outcome.values is not None:
            # Without loose places the relaxed solution was a schedule, and the strict model has had its time.
            loose = relaxed.loose_places(outcome.values) or range(len(self.problem.places))
            copies.update(loose)
            relaxed = self.model(relaxed=True, copies={at: 1 + extra for at, extra in copies.items()}, below=True)
            outcome = self._solve(relaxed, share=1.0, holds_for_all=True)
            if outcome.infeasible:
                self.raise_lower(self.upper)

    def decide(self, places: Sequence[int]) -> bool:
        """Search for a shorter schedule with given places; return True if one is found, or proven not to exist.

        As in the search as a whole, loose places get another lifetime, until none is left.
        """
        copies: Counter[int] = Counter()
        places = self.problem.symmetry_reduced(places)
        while self._can_go_on:
            model = self.model(relaxed=True, copies={at: 1 + extra for at, extra in copies.items()}, below=True)
            outcome = self.complete(model, places, share=1.0)
            if outcome.infeasible:
                return True
            if outcome.values is None:
                return False
            loose = model.loose_places(outcome.values)
            if not loose:
                self.report_outcome(model, outcome)
                return outcome.proven
            copies.update(loose)
        return False

    @property
    def upper(self) -> int:
        """Ticks that the best schedule takes in the model."""
        assert self.control.objective is not None
        return min(self._rounded, self.problem.ticks.of_model(self.control.objective))

    @property
    def open(self) -> bool:
        """True if something is left to find or to prove, and time to do it."""
        return self.lower + self._blur < self.upper and not self.control.expired

    @property
    def _can_go_on(self) -> bool:
        """True if so, and there is time to build another model."""
        return self.open and self._has_time(self.building)

    def model(self, *, relaxed: bool, copies: Mapping[int, int] | None = None, below: bool = False) -> M:
        """Return a model of the schedules between the bound and the best schedule, or only those ``below`` it."""
        self.control.spend(self.building)
        form = BlockForm(at_least=self.lower, at_most=self.upper - below, relaxed=relaxed, copies=copies or {})
        return self.build(form)

    def _solve(self, model: M, *, share: float, holds_for_all: bool) -> IntegerOutcome:
        request = Request(
            at_least=self.lower,
            share=share,
            for_proof=len(self.batch.tasks) <= _MAX_TASKS_PROVABLE,
            on_solution=lambda values: self._keep(model, values),
            on_bound=self.raise_lower if holds_for_all else None,
        )
        outcome = self.minimise(model, request)
        self._note(model, outcome)
        if holds_for_all:
            self.raise_lower(outcome.bound)
        return outcome

    def _warm_start(self, model: M) -> None:
        """Complete the best schedule to a solution of ``model``, if it is one, and let the solver start from it."""
        assert self.control.plan is not None
        places = self.problem.places_of(self.control.plan)
        outcome = self.complete(model, places, share=0.1)
        if outcome.values is not None:
            model.hint(outcome.values)

    def polish(self, places: Sequence[int], share: float = 0.5) -> None:
        """Find the best order of operations for the place of each task, in a share of the time; keep the schedule."""
        if self.problem.operations_take_no_time:
            self.report_nested(places)
        elif self._can_go_on:
            model = self.model(relaxed=False)
            self.report_outcome(model, self.complete(model, self.problem.symmetry_reduced(places), share))

    def report_outcome(self, model: M, outcome: IntegerOutcome) -> None:
        """Keep the schedule of a solution, if there is one and it is better."""
        if outcome.values is not None:
            self._keep(model, outcome.values)
        self._note(model, outcome)

    def _keep(self, model: M, values: Sequence[int]) -> None:
        if model.loose_places(values) or self.problem.operations_take_no_time:
            self.report_nested(model.places_of(values))
        else:
            self.control.report_plan(model.schedule(values))

    def _note(self, model: M, outcome: IntegerOutcome) -> None:
        """Remember the ticks of a schedule in the model, and the blur of the solver."""
        self._blur = max(self._blur, outcome.blur)
        if outcome.values is not None and outcome.objective is not None and not model.loose_places(outcome.values):
            self._rounded = min(self._rounded, outcome.objective)

    def report_nested(self, places: Sequence[int]) -> int:
        """Keep the schedule that runs outer placements before inner ones, if it is better; return its ticks."""
        schedule = self.problem.nested(places)
        self.control.report_plan(schedule)
        return self.problem.ticks.nearest(schedule.makespan)

    def raise_lower(self, ticks: int) -> None:
        """Report a bound that holds for every schedule."""
        if ticks > self.lower:
            self.lower = ticks
            self.control.raise_bound(self.problem.ticks.seconds_below(ticks))
