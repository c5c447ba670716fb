"""Checks the arguments of functions: of the wrong type or out of range, each is one problem with its name as path.

Any number that counts as one in Python is fine, those of NumPy included; ``True`` is no number, whatever Python says.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from numbers import Integral, Real
from typing import TypeGuard

from mig_opt.errors import Problem


def wrong_number(path: str, value: object, wanted: str, *, above: float = -math.inf) -> Iterator[Problem]:
    """Yield a problem unless ``value`` is a finite number greater than ``above``; ``wanted`` describes such numbers."""
    if not _is_real(value):
        yield wrong_type(path, value, wanted)
    elif not above < value < math.inf:
        yield Problem(path, f"must be {wanted}, is {value}")


def wrong_share(path: str, value: object) -> Iterator[Problem]:
    """Yield a problem unless ``value`` is a number from 0 to 1."""
    wanted = "a share from 0 to 1 (0.01 is one percent)"
    if not _is_real(value):
        yield wrong_type(path, value, wanted)
    elif not 0 <= value <= 1:
        yield Problem(path, f"must be {wanted}, is {value}")


def wrong_integer(path: str, value: object, least: int, most: int) -> Iterator[Problem]:
    """Yield a problem unless ``value`` is a whole number from ``least`` to ``most``."""
    if not _is_integer(value):
        yield wrong_type(path, value, f"a whole number from {least} to {most}")
    elif not least <= value <= most:
        yield Problem(path, f"must be from {least} to {most}, is {value}")


def wrong_flag(path: str, value: object) -> Iterator[Problem]:
    """Yield a problem unless ``value`` is True or False."""
    if not isinstance(value, bool):
        yield wrong_type(path, value, "True or False")


def wrong_type(path: str, value: object, wanted: str) -> Problem:
    """Return the problem that ``value`` is something else altogether."""
    return Problem(path, f"must be {wanted}, is {value!r:.60} ({type(value).__name__})")


def _is_real(value: object) -> TypeGuard[float]:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, Integral) and not isinstance(value, bool)
