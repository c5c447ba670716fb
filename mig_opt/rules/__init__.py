"""Checks of the arguments of functions: of the wrong type or out of range, each is one problem with its name as path.

Any number that counts as one in Python is fine, those of NumPy included; ``True`` is no number, whatever Python says.
The rules for fields of dataclasses are in :mod:`mig_opt.rules.vocabulary`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, TypeGuard, TypeVar

from mig_opt.errors import InputError, Problem, nearest

_Entry = TypeVar("_Entry")

MOST_GPUS = 1_000_000
"""GPUs of a batch, a trace or a state: methods keep a record for each, and more is taken for a slip of the pen."""

MOST_SEEDS = 1_000_000
"""Batches or traces of one kind in a study; more is taken for a slip of the pen."""


def wrong_number(
    path: str, value: object, wanted: str, *, above: float = -math.inf, at_least: float = -math.inf
) -> Iterator[Problem]:
    """Yield a problem unless ``value`` is a finite number > ``above`` and >= ``at_least``.

    ``wanted`` describes such numbers.
    """
    if not is_real(value):
        yield wrong_type(path, value, wanted)
    elif not (above < value < math.inf and value >= at_least):
        yield Problem(path, f"must be {wanted}, is {value}")


def wrong_share(path: str, value: object) -> Iterator[Problem]:
    """Yield a problem unless ``value`` is a number from 0 to 1."""
    wanted = "a share from 0 to 1 (0.01 is one percent)"
    if not is_real(value):
        yield wrong_type(path, value, wanted)
    elif not 0 <= value <= 1:
        yield Problem(path, f"must be {wanted}, is {value}")


def wrong_integer(path: str, value: object, least: int, most: int) -> Iterator[Problem]:
    """Yield a problem unless ``value`` is a whole number from ``least`` to ``most``."""
    if not is_integer(value):
        yield wrong_type(path, value, f"a whole number from {least} to {most}")
    elif not least <= value <= most:
        yield Problem(path, f"must be from {least} to {most}, is {value}")


def wrong_flag(path: str, value: object) -> Iterator[Problem]:
    """Yield a problem unless ``value`` is True or False."""
    if not isinstance(value, bool):
        yield wrong_type(path, value, "True or False")


def wrong_choice(path: str, value: object, choices: Sequence[str]) -> Iterator[Problem]:
    """Yield a problem unless ``value`` is one of some words."""
    if value not in choices:
        yield Problem(path, f"unknown {value!r:.60}; {nearest(str(value), choices)}")


def wrong_type(path: str, value: object, wanted: str) -> Problem:
    """Return the problem that ``value`` is something else altogether."""
    return Problem(path, other_type(value, wanted))


def entries_of(path: str, values: object, kind: type[_Entry], wanted: str) -> tuple[_Entry, ...]:
    """Return an iterable of ``kind`` as a tuple; ``wanted`` describes one entry.

    Raises
    ------
    InputError
        If it is no iterable, or with a problem for each entry of another type.
    """
    if not is_listed(values):
        raise InputError([wrong_type(path, values, f"a tuple, each entry {wanted}")])
    found = tuple(values)
    problems = [
        wrong_type(f"{path}[{index}]", entry, wanted)
        for index, entry in enumerate(found)
        if not isinstance(entry, kind)
    ]
    if problems:
        raise InputError(problems)
    return found


def is_listed(values: object) -> TypeGuard[Iterable[Any]]:
    """Return True for what has entries, and is no text."""
    return isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping)


def other_type(value: object, wanted: str) -> str:
    """Return the message that a value is something else altogether."""
    return f"must be {wanted}, is {value!r:.60} ({type(value).__name__})"


def is_real(value: object) -> TypeGuard[float]:
    """Return True for a number."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_integer(value: object) -> TypeGuard[int]:
    """Return True for a whole number."""
    return isinstance(value, Integral) and not isinstance(value, bool)
