"""Figures that pages quote from results: where they stand, where they come from, and what must be true of them.

A page says "FAR is 5 to 9 % from the optimum", and nothing in it disturbs the reader. Its figures are named elsewhere,
by the words around them::

    Quote("FAR is {:.0f} to {:.0f} % from the optimum", lambda: (least(...), greatest(...)))

The words say where the figures stand; the function has them from the files of results. So a figure can be compared
with its result, and written again when that is measured again.
"""

from __future__ import annotations

import re
import string
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from bench.papers.claims import filled, marks
from bench.quotes.result_tables import NUMBER, NoFigureError


class Source(StrEnum):
    """Kinds of figures that are not quoted from a result, and what shows them instead."""

    SETTING = "a limit, a size or an option of what is described: the sources have it"
    GEOMETRY = "a property of a GPU or of numbers: to be derived from the catalogue, or by counting"
    PRINTED = "printed in a paper or published elsewhere, as the page says"
    SHOWN = "stands in what a block of the page prints, which a test runs"
    ONCE = "measured once, on the date that the page says; no command repeats it"


@dataclass(frozen=True, slots=True)
class Quote:
    """Words of a page with figures in them.

    Attributes
    ----------
    text : str
        The words, with a replacement field for each figure: ``{:.1f} s``. A space matches a line break too.
    figures : callable
        Returns the figures, from the results.
    holds : callable
        Tells if the words are true, where they say more than the figures ("a third", "the only one").
    """

    text: str
    figures: Callable[[], Sequence[float]] = tuple
    holds: Callable[[], bool] = lambda: True


@dataclass(frozen=True, slots=True)
class Part:
    """What stands between ``<!-- begin NAME -->`` and ``<!-- end NAME -->`` is made from results, such as a table."""

    name: str
    lines: Callable[[], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Given:
    """Words whose figures are not those of a result. A heading (``## ...``) stands for its whole section."""

    source: Source
    texts: tuple[str, ...]


Entry = Quote | Part | Given


@dataclass(frozen=True, slots=True)
class Change:
    """Words of a page that are not those of the results."""

    line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.before!r} is {self.after!r} by the results"


@dataclass(frozen=True, slots=True)
class Reading:
    """What became of a page.

    Attributes
    ----------
    text : str
        The page with the figures of the results.
    changes : list of Change
        What was another figure before.
    problems : list of str
        What has to be mended by hand: words that are not there, or do not hold.
    covered : list of tuple of int
        Begin and end of all words with a known source, in ``text``.
    """

    text: str
    changes: list[Change]
    problems: list[str]
    covered: list[tuple[int, int]]


def read(text: str, entries: Sequence[Entry]) -> Reading:
    """Compare a page with the results, and put the figures of these in."""
    changes: list[Change] = []
    problems: list[str] = []
    for entry in entries:
        try:
            if isinstance(entry, Part):
                before, text = text, _with_part(text, entry)
                changes += _differences(before, text)
            elif isinstance(entry, Quote):
                found = _only(entry, text)
                text = _with_figures(text, found, _rendered(entry), changes)
                if not entry.holds():
                    problems.append(f"does not hold: {entry.text!r}")
        except NoFigureError as error:
            problems.append(f"{_name(entry)}: {error}")
        except _WordsError as error:
            problems.append(str(error))
    covered, missing = _covered(text, entries)
    return Reading(text, changes, problems + missing, covered)


class _WordsError(Exception):
    """Words are not on the page exactly once."""


def _name(entry: Entry) -> str:
    return repr(entry.name if isinstance(entry, Part) else entry.text if isinstance(entry, Quote) else entry.texts)


def _with_part(text: str, part: Part) -> str:
    if part.name not in marks(text):
        raise _WordsError(f"the page has no marks <!-- begin {part.name} --> and <!-- end {part.name} -->")
    return filled(text, {part.name: part.lines()})


def _fields(template: str) -> Iterator[tuple[str, str | None]]:
    """Yield the literal parts of a template, each with the format of the field behind it (None: the last one)."""
    for literal, name, spec, _ in string.Formatter().parse(template):
        yield literal, None if name is None else spec or ""


def _pattern(template: str) -> re.Pattern[str]:
    """Return what matches the words with any figures in them, each in a group."""
    parts = []
    for literal, spec in _fields(template):
        parts.append(r"\s+".join(re.escape(word) for word in re.split(r"\s+", literal)))
        if spec is not None:
            parts.append(rf"(?<![\w.])({NUMBER})(?!\d|[.,]\d)")
    return re.compile("".join(parts), re.DOTALL)


def _only(quote: Quote, text: str) -> re.Match[str]:
    found = list(_pattern(quote.text).finditer(text))
    if len(found) != 1:
        raise _WordsError(f"the page has these words {len(found)} times in place of once: {quote.text!r}")
    return found[0]


def _rendered(quote: Quote) -> list[str]:
    """Return the figures as they should stand on the page."""
    specs = [spec for _, spec in _fields(quote.text) if spec is not None]
    figures = quote.figures()
    if len(specs) != len(figures):
        raise _WordsError(f"{len(figures)} figures for {len(specs)} places: {quote.text!r}")
    # A fraction that ends in 5 is rounded up, although the number that stands for it may be a little less.
    return [
        format(figure * (1 + 1e-12) if isinstance(figure, float) else figure, spec)
        for spec, figure in zip(specs, figures, strict=True)
    ]


def _with_figures(text: str, found: re.Match[str], figures: Sequence[str], changes: list[Change]) -> str:
    parts, end = [], 0
    for number, figure in enumerate(figures, 1):
        begin, stop = found.span(number)
        if found[number] != figure:
            changes.append(Change(text.count("\n", 0, begin) + 1, found[number], figure))
        parts += [text[end:begin], figure]
        end = stop
    return "".join([*parts, text[end:]])


def _differences(before: str, after: str) -> Iterator[Change]:
    if before != after:
        lines = zip(before.splitlines(), after.splitlines(), strict=False)
        yield next(
            (Change(number, old, new) for number, (old, new) in enumerate(lines, 1) if old != new),
            Change(before.count("\n") + 1, "the end", "longer or shorter"),
        )


def _covered(text: str, entries: Sequence[Entry]) -> tuple[list[tuple[int, int]], list[str]]:
    """Return where the words of all entries stand, and which of those with another source do not."""
    spans: list[tuple[int, int]] = []
    missing: list[str] = []
    for entry in entries:
        if isinstance(entry, Given):
            for words in entry.texts:
                found = [match.span() for match in _given(words).finditer(text)]
                spans += found
                if not found:
                    missing.append(f"the page has no such words: {words!r}")
                elif entry.source is Source.SHOWN and not _shown(words, text):
                    missing.append(f"no block of the page shows {words!r}")
        elif isinstance(entry, Quote):
            spans += [match.span() for match in _pattern(entry.text).finditer(text)]
    spans += [
        match.span() for match in re.finditer(r"^<!-- begin .*?^<!-- end \S+ -->$", text, re.DOTALL | re.MULTILINE)
    ]
    return spans, missing


def _shown(words: str, text: str) -> bool:
    """Tell if each number in these words is one of a block of the page, rounded as in the words."""
    found = re.finditer(r"^(```+).*?^\1|^<!-- run: .*?-->$", text, re.DOTALL | re.MULTILINE)
    blocks = "".join(match[0] for match in found)
    shown = {float(match) for match in re.findall(r"\d+(?:\.\d+)?", blocks.replace(",", "") + blocks)}
    return all(
        any(f"{number:.{len(figure.partition('.')[2])}f}" == figure for number in shown)
        for figure in re.findall(r"\d+(?:\.\d+)?", words)
    )


def _given(words: str) -> re.Pattern[str]:
    if words.startswith("#"):
        order = len(words) - len(words.lstrip("#"))
        return re.compile(rf"^{re.escape(words)}$.*?(?=^#{{1,{order}}} |\Z)", re.DOTALL | re.MULTILINE)
    return re.compile(r"\s+".join(re.escape(word) for word in words.split()))


UNITS = (
    r"%|s|ms|us|seconds?|minutes?|hours?|h|[kMG]i?B|bytes|(?:percentage )?points?|times (?:as|the|that)|GPU-hours|J|W"
)
FIGURE = re.compile(
    rf"(?<![\w.,:/@+^-]){NUMBER}"
    rf"(?:\s?(?:{UNITS})(?![\w-])|(?= of \d)|(?<=\.\d)|(?<=\.\d\d)|(?<=\.\d\d\d)|(?<=\d,\d\d\d))"
)
"""A figure that somebody measured or counted: with a unit, a fraction, thousands, or a share ("29 of 30")."""
NOT_PROSE = (
    r"^(```+).*?^\1",  # blocks of code: what they show is compared with what their commands print
    r"<!--.*?-->",
    r"`[^`\n]+`",
    r"\$\$.*?\$\$|\$[^$\n]+\$",
    r"\]\([^)\s]+\)",
    r"https?://\S+",
    r"\b[Ss]ections? [\d.]+\d",
    r"\b\d{4}\.\d{5}\b",  # a paper on arXiv
    r"\b(?:Python|Apache License) \d\.\d+",
)


def unknown(text: str, covered: Sequence[tuple[int, int]]) -> list[str]:
    """Return the figures in the prose of a page that have no source, each with its line and the words around it."""
    prose = text
    for pattern in NOT_PROSE:
        prose = re.sub(pattern, lambda match: re.sub(r"[^\n]", " ", match[0]), prose, flags=re.DOTALL | re.MULTILINE)
    found = []
    for match in FIGURE.finditer(prose):
        if not any(begin <= match.start() and match.end() <= end for begin, end in covered):
            words = textwrap.shorten(text[max(0, match.start() - 50) : match.end() + 30], 100, placeholder="")
            found.append(f"line {text.count(chr(10), 0, match.start()) + 1}: {match[0]!r} in '{words}'")
    return found
