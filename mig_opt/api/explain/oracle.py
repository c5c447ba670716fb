"""Decides whether some requirements can be met together by the target."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from mig_opt.api.explain.requirements import Requirement, Requirements
from mig_opt.api.solve import solve
from mig_opt.batch.batch import Batch
from mig_opt.batch.bounds import best_lower_bound
from mig_opt.batch.integer_time import Ticks, as_decimal
from mig_opt.batch.schedule import Schedule
from mig_opt.method.control import Limits
from mig_opt.method.registry import AUTO
from mig_opt.method.result import TrajectoryPoint

Kept = frozenset[Requirement]

LEAST_SECONDS = 0.01
"""For a call at the very end: bounds and the first schedule take no longer on small batches."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Knowledge about a set of requirements."""

    possible: bool | None  # whether there is a schedule in time; None if that is not known
    # The best one that was found. It may run further tasks, and with any number of GPUs it lacks those that run on GPUs
    # of their own.
    schedule: Schedule | None = None
    lower_bound: float = 0.0  # seconds; no schedule of the batch that was solved for the answer takes less


class Oracle:
    """Answers whether a set of requirements can be met by the target, all answers together within limits.

    The requirements are of a batch in which each task can run somewhere.
    """

    def __init__(self, requirements: Requirements, limits: Limits) -> None:
        self.requirements = requirements
        self.limits = limits
        self._possible: dict[Kept, Schedule | None] = {}
        self._impossible: dict[Kept, float] = {}

    def refuted(self, kept: Kept) -> bool:
        """Return True if a lower bound without a solver rules ``kept`` out."""
        batch = self.requirements.relaxed(kept)
        if batch is None:
            return False
        lower_bound = best_lower_bound(batch)
        if lower_bound <= self.requirements.target:
            return False
        self.rule_out(kept, self.requirements.least(kept, lower_bound))
        return True

    def rule_out(self, kept: Kept, lower_bound: float) -> None:
        """Remember a proof that ``kept`` takes ``lower_bound`` seconds, more than the target."""
        self._impossible[kept] = max(lower_bound, self._impossible.get(kept, 0.0))

    def lower_bound(self, kept: Kept) -> float:
        """Return what is known of the least makespan under ``kept``: never less than under some of it."""
        return max((bound for other, bound in self._impossible.items() if other <= kept), default=0.0)

    def decide(self, kept: Kept, seconds: float = math.inf) -> Answer:
        """Return whether ``kept`` can be met in time, after at most ``seconds`` of the time that is left."""
        for other, schedule in self._possible.items():
            if kept <= other:
                return Answer(possible=True, schedule=schedule)
        if any(other <= kept for other in self._impossible):
            return Answer(possible=False)
        batch = self.requirements.relaxed(kept)
        if batch is None:
            return Answer(possible=True)
        answer = self.answer(batch, seconds)
        if answer.possible:
            self._possible[kept] = answer.schedule
        elif answer.possible is False:
            self.rule_out(kept, self.requirements.least(kept, answer.lower_bound))
        return answer

    def answer(self, batch: Batch, seconds: float = math.inf, *, method: str = AUTO) -> Answer:
        """Return whether a batch can be done by the target, after at most ``seconds`` of the time that is left.

        Ctrl-C is passed on as KeyboardInterrupt.
        """
        ticks = Ticks.of(batch)

        def decided(point: TrajectoryPoint) -> bool:
            return self._verdict(ticks, point.makespan, point.lower_bound) is not None

        limits = self.limits.inner(most=seconds, least=LEAST_SECONDS)
        result = solve(batch, method, **limits, stop=decided).uninterrupted()
        possible = self._verdict(ticks, result.makespan, result.lower_bound)
        return Answer(possible, result.schedule, result.lower_bound)

    def _verdict(self, ticks: Ticks, makespan: float | None, lower_bound: float) -> bool | None:
        target = self.requirements.target
        if makespan is not None and in_time(ticks, makespan, target):
            return True
        return False if lower_bound > target else None


def in_time(ticks: Ticks, makespan: float, target: float) -> bool:
    """Return True if a makespan is at most the target, both in seconds.

    Makespans are sums of floating-point numbers: where ticks are exact, the ticks that they stand for are compared.
    """
    if not ticks.exact:
        return makespan <= target
    return ticks.of_sum(makespan) * ticks.length <= Fraction(as_decimal(target))
