"""Costs of GPUs by pool, and sums of them without rounding."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from mig_opt.rules.decimals import as_fraction, common_divisor

if TYPE_CHECKING:
    from mig_opt.gpu.packing import Numbers  # loads numpy

_LARGEST_FACTOR = 10_000
"""Largest factor of a cost in a program; costs that would need larger whole numbers are no whole numbers there."""
_NOISE = Fraction(1, 100_000)
"""GPUs of the largest cost by which a solver's tolerances may move a sum of costs."""


@dataclass(frozen=True)
class Costs:
    """Cost of a GPU of each pool; figures count as the shortest decimals that stand for them.

    Examples
    --------
    >>> costs = Costs.of([2.2, 1])
    >>> costs.total([1, 3]), costs.unit, costs.raised(4.9)
    (5.2, Fraction(1, 5), 5)
    """

    each: tuple[Fraction, ...]

    @classmethod
    def of(cls, costs: Iterable[float]) -> Costs:
        """Return the costs of some pools."""
        return cls(tuple(as_fraction(cost) for cost in costs))

    @property
    def counted(self) -> bool:
        """True if each GPU costs 1, so that the cost of GPUs is their number."""
        return all(cost == 1 for cost in self.each)

    @cached_property
    def unit(self) -> Fraction:
        """The greatest number of which every sum of costs is a multiple; 1 if all of them are 0."""
        return common_divisor(self.each) or Fraction(1)

    @cached_property
    def largest(self) -> Fraction:
        """The largest cost; 1 if all of them are 0."""
        return max(self.each) or Fraction(1)

    @cached_property
    def shares(self) -> Numbers:
        """Each cost as a share of the largest."""
        import numpy as np  # slow to load, and commands that only tell options need none of it

        return np.array([float(cost / self.largest) for cost in self.each])

    @cached_property
    def scale(self) -> Fraction:
        """Number of units of a cost in a program: costs are whole there if these stay small."""
        return min(1 / self.unit, _LARGEST_FACTOR / self.largest)

    def factor(self, pool: int) -> float:
        """Return the cost of a GPU in a program, see :attr:`scale`."""
        return float(self.each[pool] * self.scale)

    def total(self, gpus: Sequence[int]) -> float:
        """Return the cost of some GPUs of each pool, as a whole number if it is one."""
        return plain(sum((cost * count for cost, count in zip(self.each, gpus, strict=True)), Fraction(0)))

    def raised(self, bound: float | Fraction, noise: float | Fraction = 0) -> float:
        """Return the least possible sum of costs that is not below a bound, which may be too high by some noise."""
        return plain(math.ceil((Fraction(bound) - Fraction(noise)) / self.unit) * self.unit)

    @property
    def noise(self) -> Fraction:
        """The cost by which a solver's tolerances may move a sum."""
        return _NOISE * self.largest

    def limit(self, cost: float, more: Fraction) -> float:
        """Return the limit of a sum in a program that stands for a ``cost`` and some ``more``."""
        return float((as_fraction(cost) + more) * self.scale)


def plain(cost: float | Fraction) -> float:
    """Return a cost, as a whole number if it is one."""
    return int(cost) if cost == int(cost) else float(cost)
