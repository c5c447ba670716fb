"""Integer time for exact models.

Exact methods count in integer ticks. Where a tick can be chosen in which every time that matters is a whole number,
nothing is rounded; those that can be part of a schedule no longer than a simple one matter
(:mod:`mig_opt.batch.horizon`). Otherwise times are rounded *down*: a bound computed from shorter times holds for the
true ones, while a schedule is never taken from the rounded times but re-timed with the true ones
(:mod:`mig_opt.batch.timing`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from mig_opt.batch.batch import Batch
from mig_opt.batch.horizon import Horizon

RESOLUTION = 1e-6
"""The share by which a makespan and a lower bound may differ and still count as equal, if times are not exact."""

_LONGEST = 2**28
"""Ticks that a schedule may last. CP-SAT 9.15 was seen to lose solutions of models whose times exceed 1e9 - it called
them infeasible, or proved optima above valid schedules - and never below 7e8, in thousands of random models."""

_NOISE, _SHORT = 1e-9, 1e-3
"""Difference that sums of floating-point numbers may have from those of the decimals that are meant: as a share, and
in seconds unless they are short. Times of a schedule are rounded to that (:func:`mig_opt.batch.timing.tidy`)."""

_MANY_TIMES, _FEW_DECIMALS, _MANY_DIGITS = 1000, 9, 1e15
"""Number of times from which they are looked at all at once; decimals that they have then at most, and a number that is
above their digits."""


@dataclass(frozen=True, slots=True)
class Ticks:
    """A unit of integer time.

    Examples
    --------
    >>> from mig_opt import Batch, Task, get_gpu
    >>> ticks = Ticks.of(Batch((Task("a", {1: 1.25}),), get_gpu("A30")))
    >>> ticks.length, ticks.exact, ticks.floor(1.25)
    (Fraction(1, 100), True, 125)
    """

    # a tick is ``step / 10**decimals`` seconds
    decimals: int
    step: int
    exact: bool  # true if every time that matters is a whole number of ticks

    @classmethod
    def of(cls, batch: Batch) -> Ticks:
        """Return the longest tick in which all that matters of ``batch`` is exact, or else one that is fine enough."""
        return cls.within(Horizon.of(batch))

    @classmethod
    def within(cls, horizon: Horizon) -> Ticks:
        """Return the same for the batch of a horizon."""
        return cls.for_times(horizon.times(), horizon.seconds)

    @classmethod
    def exactly(cls, seconds: Iterable[float]) -> Ticks:
        """Return the longest tick in which all ``seconds`` are exact, however many ticks they are."""
        return cls(*_common_unit(list(seconds)), exact=True)

    @classmethod
    def for_times(cls, seconds: Iterable[float], longest: float) -> Ticks:
        """Return the longest tick in which all ``seconds`` are exact, or else one that is fine enough.

        Times count as the shortest decimals that stand for them: 0.1 is one tenth. Where that takes ticks so short that
        schedules of ``longest`` seconds become longer than the solver can count, a schedule is cut into some hundred
        million ticks: the rounding of all times on its longest chain is then about a millionth of it at most.
        """
        decimals, step = _common_unit(list(seconds))
        most = as_decimal(longest)
        if most.scaleb(decimals) / step <= _LONGEST:
            return cls(decimals, step, exact=True)
        decimals = (_LONGEST / most).adjusted()
        for step in (2, 5):
            if most.scaleb(decimals + 1) / step <= _LONGEST:
                return cls(decimals + 1, step, exact=False)
        return cls(decimals, 1, exact=False)

    @property
    def length(self) -> Fraction:
        """Seconds per tick."""
        return self.step / Fraction(10) ** self.decimals

    def floor(self, seconds: float) -> int:
        """Return the whole ticks in ``seconds``."""
        return int(as_decimal(seconds).scaleb(self.decimals)) // self.step

    def ceil(self, seconds: float) -> int:
        """Return the least whole ticks that are not shorter than ``seconds``."""
        return math.ceil(Fraction(as_decimal(seconds)) / self.length)

    def nearest(self, seconds: float) -> int:
        """Return the number of ticks closest to ``seconds``: what a sum of floating-point numbers stands for."""
        return round(Fraction(as_decimal(seconds)) / self.length)

    def of_model(self, makespan: float) -> int:
        """Return the ticks that a schedule takes at most in a model, whose times are rounded down if not exact."""
        return self.nearest(makespan) if self.exact else self.floor(makespan) + 1

    def of_sum(self, seconds: float) -> Fraction:
        """Return the ticks that a sum of floating-point numbers stands for.

        That is the closest whole number of them if rounding explains the difference, else what the decimal says: a
        schedule longer than the horizon can have times that are no whole number of ticks.
        """
        ticks, near = Fraction(as_decimal(seconds)) / self.length, self.nearest(seconds)
        noise = _NOISE * seconds if seconds < _SHORT else _NOISE * (1 + seconds)
        return Fraction(near) if abs(near - ticks) * self.length <= noise else ticks

    def meet(self, makespan: float, lower_bound: float) -> bool:
        """Return True if a makespan meets a lower bound: no schedule can be between the two.

        Both are in seconds. Where ticks are exact, the shortest makespan is a whole number of them, so less than a tick
        apart is enough for one that is a whole number, too.
        """
        if not self.exact:
            return equal_within_resolution(makespan, lower_bound)
        ticks = self.of_sum(makespan)
        return ticks - Fraction(as_decimal(lower_bound)) / self.length < (1 if ticks.denominator == 1 else 0)

    def seconds_below(self, ticks: Fraction | int) -> float:
        """Return the seconds of ``ticks`` as a float that does not stand for more.

        The float is the nearest one if the decimal that it stands for is not above, as for whole ticks; else the next
        one below.
        """
        exact = ticks * self.length
        near = float(exact)
        return near if Fraction(as_decimal(near)) <= exact else math.nextafter(near, 0.0)


def equal_within_resolution(makespan: float, lower_bound: float) -> bool:
    """Return True if a makespan is at most a millionth above a lower bound (both in seconds)."""
    return makespan - lower_bound <= RESOLUTION * makespan


def common_divisor(values: Sequence[Fraction]) -> Fraction:
    """Return the greatest number of which all values are multiples.

    Examples
    --------
    >>> common_divisor([Fraction(1, 2), Fraction(3, 4)])
    Fraction(1, 4)
    """
    whole = math.lcm(*(value.denominator for value in values))
    return Fraction(math.gcd(*(int(value * whole) for value in values)), whole)


def _common_unit(seconds: list[float]) -> tuple[int, int]:
    """Return the least decimals that all times can be written with, and the greatest common divisor of their digits."""
    found = _common_unit_of_many(seconds) if len(seconds) >= _MANY_TIMES else None
    if found is None:
        times = {as_decimal(time) for time in seconds}
        decimals = max((0, *(-int(time.normalize().as_tuple().exponent) for time in times)))
        found = decimals, math.gcd(*(int(time.scaleb(decimals)) for time in times)) or 1
    return found


def _common_unit_of_many(seconds: list[float]) -> tuple[int, int] | None:
    """Do the same some thirty times as fast, if the times are short decimals."""
    import numpy as np

    values = np.array(seconds, float)
    for decimals in range(_FEW_DECIMALS + 1):
        digits = np.rint(values * 10.0**decimals)
        if (digits >= _MANY_DIGITS).any():
            break
        # Both are whole numbers that floats hold exactly, so their quotient is the float that stands for the decimal;
        # and of so few digits no other decimal has the same float.
        if (digits / 10.0**decimals == values).all():
            return decimals, int(np.gcd.reduce(digits.astype(np.int64))) or 1
    return None


def as_decimal(seconds: float) -> Decimal:
    """Return the shortest decimal that stands for ``seconds``."""
    return Decimal(repr(float(seconds)))
