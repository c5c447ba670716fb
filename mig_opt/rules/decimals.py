"""Numbers as the shortest decimals that stand for them, so that sums and multiples are not rounded.

These are what the caller wrote: 0.29 of 100 tasks are 29, although ``0.29 * 100`` is 28.999999999999996.
"""

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction


def as_decimal(number: float) -> Decimal:
    """Return the shortest decimal that stands for a number."""
    return Decimal(number) if isinstance(number, int) else Decimal(repr(float(number)))


def as_fraction(number: float) -> Fraction:
    """Return the shortest decimal that stands for a number, as a fraction."""
    return Fraction(as_decimal(number))


def common_divisor(values: Sequence[Fraction]) -> Fraction:
    """Return the greatest number of which all values are multiples.

    Examples
    --------
    >>> common_divisor([Fraction(1, 2), Fraction(3, 4)])
    Fraction(1, 4)
    """
    whole = math.lcm(*(value.denominator for value in values))
    return Fraction(math.gcd(*(int(value * whole) for value in values)), whole)
