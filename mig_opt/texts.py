"""Texts for people and by people: names and messages that may hold anything, numbers, and lists of them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

_WHOLE = re.compile(r"[+-]?[0-9]{1,300}")
_NUMBER = re.compile(r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?|nan|inf|infinity)", re.I | re.A)


def printable(text: str) -> str:
    r"""Return ``text`` with what a terminal would act upon (escape sequences, line breaks, ...) spelled out.

    The result is one line, also for those who end lines at other characters than the usual ones.

    Examples
    --------
    >>> print(printable("two\nlines"))
    two\nlines
    """
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def number_in(text: str) -> int | float | str:
    """Return the number that a text is, an integer if it is written as one; what is none stays text.

    Only the digits 0 to 9 make a number, as in JSON: other programs read ``1_000`` and the digits of other scripts
    differently, or not at all. What is not finite is a number, too, and left to whoever asks for finite ones.

    Examples
    --------
    >>> number_in("12"), number_in("-2.5e3"), number_in("1_000")
    (12, -2500.0, '1_000')
    """
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text


def seconds(value: float | None) -> str:
    """Return seconds to milliseconds, very short and very long ones to six digits, ``-`` if there are none.

    Examples
    --------
    >>> seconds(12), seconds(2e-5), seconds(None)
    ('12.000', '2.00000e-05', '-')
    """
    if value is None or math.isinf(value):
        return "-"
    return f"{value:.3f}" if value == 0 or 1e-3 <= abs(value) < 1e7 else f"{value:.5e}"


def in_seconds(value: float | None) -> str | None:
    """Return seconds with their unit; None if there are none."""
    return None if value is None or math.isinf(value) else f"{seconds(value)} s"


def plural(count: int, word: str, words: str = "") -> str:
    """Return a number with its word; ``words`` is for several, by default the word with an s.

    Examples
    --------
    >>> plural(1, "segment"), plural(0, "segment"), plural(2, "process", "processes")
    ('1 segment', '0 segments', '2 processes')
    """
    return f"{count} {word if count == 1 else words or f'{word}s'}"


def listed(names: Sequence[str], most: int = 4) -> str:
    """Return names one after the other, those beyond the first ones as a number."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def number_ranges(numbers: Sequence[int]) -> str:
    """Return ascending numbers, those that follow each other as a range.

    Examples
    --------
    >>> number_ranges([0, 1, 2, 5])
    '0-2, 5'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
