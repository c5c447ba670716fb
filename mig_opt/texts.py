"""Texts for people: names and messages that may hold anything, and lists of numbers."""

from __future__ import annotations

from collections.abc import Sequence


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


def plural(count: int, word: str, words: str = "") -> str:
    """Return a number with its word; ``words`` is for several, by default the word with an s.

    Examples
    --------
    >>> plural(1, "segment"), plural(0, "segment"), plural(2, "process", "processes")
    ('1 segment', '0 segments', '2 processes')
    """
    return f"{count} {word if count == 1 else words or f'{word}s'}"


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
