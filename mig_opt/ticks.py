"""Integer time for exact models.

Exact methods count in integer ticks. Where a tick can be chosen in which every time of the batch is a whole number,
nothing is rounded. Otherwise times are rounded *down*: a bound computed from shorter times holds for the true ones,
while a schedule is never taken from the rounded times but re-timed with the true ones (:mod:`mig_opt.timing`).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from mig_opt.batch import Batch

RESOLUTION = 1e-6
"""A makespan and a lower bound count as equal if they differ by at most this many seconds, or by this share of them."""

_EXACT_DECIMALS = 6
_FINEST_DECIMALS = 9
_LONGEST = 2**28
"""Ticks that a schedule may last. CP-SAT 9.15 was seen to lose solutions of models whose times exceed 1e9 - it called
them infeasible, or proved optima above valid schedules - and never below 7e8, in thousands of random models."""


@dataclass(frozen=True, slots=True)
class Ticks:
    """A unit of integer time.

    Attributes
    ----------
    decimals, step : int
        A tick is ``step / 10**decimals`` seconds.
    exact : bool
        Whether every time of the batch is a whole number of ticks.

    Examples
    --------
    >>> from mig_opt import Batch, Task, get_gpu
    >>> ticks = Ticks.of(Batch((Task("a", {1: 1.25}),), get_gpu("A30")))
    >>> ticks.length, ticks.exact, ticks.floor(1.25)
    (Fraction(1, 100), True, 125)
    """

    decimals: int
    step: int
    exact: bool

    @classmethod
    def of(cls, batch: Batch) -> Ticks:
        """Return the longest tick in which ``batch`` is exact, or else one that is fine enough.

        Times count as the shortest decimals that stand for them: 0.1 is one tenth. More than six decimals are not
        taken as exact, and neither is what would make schedules longer than the solver can count. The fallback then
        cuts a schedule into some hundred million ticks, so that the rounding of all times on its longest chain stays
        below :data:`RESOLUTION`.
        """
        times = {_decimal(seconds) for seconds in _times(batch)}
        decimals = max(0, *(-int(time.as_tuple().exponent) for time in times))
        longest = _decimal(_about_longest(batch))
        if decimals <= _EXACT_DECIMALS:
            step = math.gcd(*(int(time.scaleb(decimals)) for time in times)) or 1
            if longest.scaleb(decimals) / step <= _LONGEST:
                return cls(decimals, step, exact=True)
        decimals, step = _FINEST_DECIMALS, 1
        while longest.scaleb(decimals) / step > _LONGEST:
            decimals, step = {1: (decimals, 2), 2: (decimals, 5), 5: (decimals - 1, 1)}[step]
        return cls(decimals, step, exact=False)

    @property
    def length(self) -> Fraction:
        """Seconds per tick."""
        return self.step / Fraction(10) ** self.decimals

    def floor(self, seconds: float) -> int:
        """Return the whole ticks in ``seconds``."""
        return int(_decimal(seconds).scaleb(self.decimals)) // self.step

    def nearest(self, seconds: float) -> int:
        """Return the number of ticks closest to ``seconds``: what a sum of floating-point numbers stands for."""
        return round(Fraction(_decimal(seconds)) / self.length)

    def seconds_below(self, ticks: Fraction | int) -> float:
        """Return the seconds of ``ticks`` as a float that does not stand for more.

        The float is the nearest one if the decimal that it stands for is not above, as for whole ticks; else the next
        one below.
        """
        exact = ticks * self.length
        near = float(exact)
        return near if Fraction(_decimal(near)) <= exact else math.nextafter(near, 0.0)


def equal_within_resolution(makespan: float, lower_bound: float) -> bool:
    """Whether a makespan meets a lower bound, in seconds."""
    return makespan - lower_bound <= RESOLUTION * max(1.0, makespan)


def _about_longest(batch: Batch) -> float:
    """Return about the seconds of a poor schedule: twice the least work, spread evenly, and the longest task."""
    work, longest = 0.0, 0.0
    for task in batch.tasks:
        work += min(size * seconds for size, seconds in task.times.items())
        longest = max(longest, *task.times.values())
    operations = sum(_operation_times(batch))
    free = max((live.free for live in batch.initial), default=0.0)
    about = 2 * work / (batch.gpus * batch.gpu.compute_slices) + 2 * longest + 2 * operations + free
    return min(about, sys.float_info.max)


def _decimal(seconds: float) -> Decimal:
    return Decimal(repr(float(seconds)))


def _operation_times(batch: Batch) -> Iterator[float]:
    for size in batch.gpu.sizes:
        yield batch.operations.create[size]
        yield batch.operations.destroy[size]


def _times(batch: Batch) -> Iterator[float]:
    yield from _operation_times(batch)
    for task in batch.tasks:
        yield from task.times.values()
    for live in batch.initial:
        yield live.free
