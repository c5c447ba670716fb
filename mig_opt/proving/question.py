"""What is asked: whether a schedule of some makespan can be beaten."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from mig_opt.batch.certificate import Claim
from mig_opt.batch.integer_time import Ticks, as_decimal
from mig_opt.batch.schedule import Schedule
from mig_opt.result import TrajectoryPoint


@dataclass(frozen=True, slots=True)
class Question:
    """Whether there is a schedule that is shorter than some makespan, by a tick and by more than ``within`` seconds.

    A bound that meets the makespan says no, a schedule that is shorter says yes; the two exclude each other.
    """

    ticks: Ticks
    makespan: float
    within: float

    def met(self, lower_bound: float) -> bool:
        """Whether no schedule above the bound is shorter."""
        return self.ticks.meet(self.makespan, lower_bound) or self._close(lower_bound)

    def shorter(self, makespan: float | None) -> bool:
        """Whether a schedule of this makespan is shorter."""
        if makespan is None or self._close(makespan):
            return False
        if self.ticks.exact:
            # Both are sums of floating-point numbers.
            return self.ticks.nearest(makespan) < self.ticks.nearest(self.makespan)
        return not self.ticks.meet(self.makespan, makespan)

    def decided(self, point: TrajectoryPoint) -> bool:
        """Whether the run of a method has answered the question."""
        return self.met(point.lower_bound) or self.shorter(point.makespan)

    def claim(self, lower_bound: float, better: Schedule | None) -> Claim:
        """Return what follows from a bound and perhaps another schedule."""
        if better is not None and self.shorter(better.makespan):
            return Claim.REFUTED
        return Claim.PROVED if self.met(lower_bound) else Claim.OPEN

    def seconds_below(self, seconds: Fraction) -> float:
        """Return the float that does not stand for more."""
        return self.ticks.seconds_below(seconds / self.ticks.length)

    def _close(self, seconds: float) -> bool:
        return as_decimal(self.makespan) - as_decimal(seconds) <= as_decimal(self.within)
