"""Checks of the arguments of functions: of the wrong type or out of range, each is one problem with its name as path.

Any number that counts as one in Python is fine, those of NumPy included; ``True`` is no number, whatever Python says.
They are the rules of :mod:`mig_opt.rules.vocabulary`, which fields of dataclasses have as annotations.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard, TypeVar

from mig_opt.errors import InputError, Problem, nearest
from mig_opt.rules.vocabulary import FROM_0_TO_1, Number, Rule, TrueOrFalse, Whole, other_type

_Entry = TypeVar("_Entry")

MOST_SEEDS = 1_000_000
"""Batches or traces of one kind in a study; more is taken for a slip of the pen."""


def wrong_number(
    path: str, value: object, wanted: str, *, above: float = -math.inf, at_least: float = -math.inf
) -> Iterator[Problem]:
    """Yield a problem unless ``value`` is a finite number > ``above`` and >= ``at_least``.

    ``wanted`` describes such numbers.
    """
    return _broken(path, value, Number(above=above, at_least=at_least, words=wanted))


def wrong_share(path: str, value: object) -> Iterator[Problem]:
    """Yield a problem unless ``value`` is a number from 0 to 1."""
    return _broken(path, value, FROM_0_TO_1)


def wrong_integer(path: str, value: object, least: int, most: int) -> Iterator[Problem]:
    """Yield a problem unless ``value`` is a whole number from ``least`` to ``most``."""
    return _broken(path, value, Whole(least, most))


def wrong_flag(path: str, value: object) -> Iterator[Problem]:
    """Yield a problem unless ``value`` is True or False."""
    return _broken(path, value, TrueOrFalse())


def _broken(path: str, value: object, rule: Rule) -> Iterator[Problem]:
    if not rule.fine(value):
        yield Problem(path, rule.wrong(value))


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
