"""Figures of pages, from the results of benchmarks: ``{{ expression :format }}`` stands for a figure or a table.

The expression is Python with the functions of this module; a table by itself is included whole. What a page uses more
than once it names in a comment, ``<!-- let ... -->``. When the site is built each expression is replaced by its value,
and the build fails if a result is not there.

README is read as it is, so its figures stand in it, behind the text with expressions that they come from, between
``<!-- figures ... -->`` and ``<!-- end figures -->``; ``python docs/extensions/figures.py`` renews them.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

REPOSITORY = Path(__file__).parents[2]
RESULTS = REPOSITORY / "bench" / "results"
VERDICTS = ("agrees", "agrees in direction", "does not", "cannot be had")
_NUMBER = re.compile(r"[-+]?\d(?:[\d,]*\d)?(?:\.\d+)?")
_NAMES = re.compile(r"^<!-- let\n(.*?)\n-->\n\n?", re.DOTALL | re.MULTILINE)
_FIGURE = re.compile(r"\{\{\s(.+?)(?:\s:([^\s:]+))?\s\}\}", re.DOTALL)
_RENEWED = re.compile(r"(<!-- figures\n(.*?)\n-->\n).*?(<!-- end figures -->)", re.DOTALL)

Condition = str | Collection[str] | Callable[[str], bool] | None
"""What a cell has to be: a text (``"noise..."``: its beginning), one of several texts, what a function says, or any."""


class NoFigureError(LookupError):
    """A result that a page asks for is not there: it was not measured, or its table has other words."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of a table of results.

    Attributes
    ----------
    place : str
        File and heading, for messages.
    head : tuple of str
        Names of the columns.
    cells : tuple of tuple of str
        The rows as they are written.
    rule : tuple of str
        How each column is aligned.
    """

    place: str
    head: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    rule: tuple[str, ...]

    def __str__(self) -> str:
        return markdown(self.head, self.cells, self.rule)

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The rows without marks of code and of bold."""
        return [tuple(map(_plain, row)) for row in self.cells]

    def where(self, *first: Condition, **named: Condition) -> Table:
        """Return the rows that meet conditions of the first columns, or of named ones (``_`` for a space)."""
        tests = [*enumerate(first), *((self._index(name.replace("_", " ")), test) for name, test in named.items())]
        found = tuple(row for row in self.cells if all(_meets(_plain(row[at]), test) for at, test in tests))
        if not found:
            raise NoFigureError(f"{self.place}: no row with {first or named}")
        return replace(self, cells=found)

    def columns(self, *names: str | int) -> Table:
        """Return the table with some columns, by name or by number."""
        at = [self._index(name) for name in names]
        head, rule, *cells = (tuple(row[index] for index in at) for row in (self.head, self.rule, *self.cells))
        return Table(self.place, head, tuple(cells), rule)

    def texts(self, column: str | int) -> list[str]:
        """Return the cells of a column."""
        return [row[self._index(column)] for row in self.rows]

    def text(self, column: str | int) -> str:
        """Return the cell of a column of the only row."""
        if len(self.cells) != 1:
            raise NoFigureError(f"{self.place}: {len(self.cells)} rows where one was expected")
        return self.texts(column)[0]

    def numbers(self, column: str | int, number: int = 0) -> list[float]:
        """Return the first number, or a later one, of each cell of a column that has it."""
        return [found[number] for found in map(numbers_of, self.texts(column)) if len(found) > number]

    def number(self, column: str | int, number: int = 0) -> float:
        """Return the first number, or a later one, in a column of the only row."""
        return numbers_of(self.text(column))[number]

    def at(self, row: Condition, column: str | int, number: int = 0) -> float:
        """Return a number of the only row with this first cell."""
        return self.where(row).number(column, number)

    def _index(self, column: str | int) -> int:
        if isinstance(column, str) and column not in self.head:
            raise NoFigureError(f"{self.place}: there is no column {column!r}; there are {', '.join(self.head)}")
        return self.head.index(column) if isinstance(column, str) else column


def _meets(cell: str, test: Condition) -> bool:
    if isinstance(test, str):
        return cell.startswith(test[:-3]) if test.endswith("...") else cell == test
    return test is None or (test(cell) if callable(test) else cell in test)


def _plain(cell: str) -> str:
    return re.sub(r"[`*]", "", cell).strip()


class Span(tuple[float, ...]):
    """Figures that are shown as the least and the greatest of them: ``5 to 9``, or ``5`` where both look alike."""

    def __format__(self, spec: str) -> str:
        return " to ".join(dict.fromkeys(format(_exact(figure), spec) for figure in (min(self), max(self))))


def span(*figures: float | Iterable[float]) -> Span:
    """Return all of these figures as one span."""
    return Span(figure for each in figures for figure in (each if isinstance(each, Iterable) else (each,)))


def more(ratios: float | Iterable[float]) -> Any:
    """Return by how many % ratios are above 1, of several as a span."""
    return 100 * (ratios - 1) if isinstance(ratios, float) else span(100 * (ratio - 1) for ratio in ratios)


def less(ratios: float | Iterable[float]) -> Any:
    """Return by how many % ratios are below 1, of several as a span."""
    return 100 * (1 - ratios) if isinstance(ratios, float) else span(100 * (1 - ratio) for ratio in ratios)


def up(figure: float, digits: int = 0) -> float:
    """Return a figure rounded up to some decimals."""
    scale: int = 10**digits
    return math.ceil(figure * scale + 1e-9) / scale


def mean(figures: Iterable[float]) -> float:
    """Return the mean."""
    return fmean(figures)


def table(name: str, heading: str = "", number: int = 0) -> Table:
    """Return a table of ``bench/results/<name>.md``: the first one behind a heading, or a later one before the next."""
    lines = section(name, heading).splitlines()
    found = [list(rows) for is_row, rows in itertools.groupby(lines, lambda line: line.startswith("|")) if is_row]
    if len(found) <= number:
        raise NoFigureError(f"bench/results/{name}.md has no table {number} behind {heading!r}")
    head, rule, *cells = (tuple(cell.strip() for cell in row.split("|")[1:-1]) for row in found[number])
    return Table(f"bench/results/{name}.md, {heading!r}", tuple(map(_plain, head)), tuple(cells), rule)


def stacked(tables: Iterable[Table]) -> Table:
    """Return the rows of some tables with the same columns as one."""
    first, *others = tables
    return replace(first, cells=sum((each.cells for each in others), first.cells))


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]], rule: Sequence[str] = ()) -> str:
    """Return a table; columns but the first are aligned to the right, unless the rule says otherwise."""
    rule = rule or ["---", *("---:" for _ in head[1:])]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *rows))


def section(name: str, heading: str) -> str:
    """Return the text behind a heading of ``bench/results/<name>.md`` up to the next, or those before the first."""
    parts = re.split(r"^## (.*)\n", _text(f"{name}.md"), flags=re.MULTILINE)
    known = dict(zip(["", *parts[1::2]], parts[::2], strict=True))
    if heading not in known:
        raise NoFigureError(f"bench/results/{name}.md has no section {heading!r}")
    return known[heading].strip()


def said(name: str, pattern: str, group: int = 1) -> float:
    """Return the number in a group of a pattern in ``bench/results/<name>.md``; a space matches line breaks as well."""
    found = re.search(pattern.replace(" ", r"\s+"), _text(f"{name}.md"), re.DOTALL)
    if not found:
        raise NoFigureError(f"bench/results/{name}.md does not say {pattern!r}")
    return float(found[group])


def numbers_of(text: str) -> list[float]:
    """Return the numbers in a text, those with commas between thousands too."""
    return [float(number.replace(",", "")) for number in _NUMBER.findall(text)]


def claims(paper: str, key: str) -> str:
    """Return a group of claims of a paper: heading, figures printed and measured, what is assumed, what was tried."""
    entry = _groups(paper)[key]
    group = entry["group"]
    notes = any(claim["note"] for claim in group["claims"])
    head = ["what", "printed", "measured", "verdict", "note"][: 4 + notes]
    rows = [[claim[name] or "-" * (name == "measured") for name in head] for claim in group["claims"]]
    parts = [
        f"## {group['where']}: {group['title']}",
        markdown(head, rows, ["---", "---:", "---:", "---", "---"][: len(head)]),
    ]
    parts += [f"**{name}.** {group[of]}" for name, of in (("Assumed", "assumed"), ("Why", "reason")) if group[of]]
    if group["readings"]:
        searched = (" (searched for until it fits)" if each["searched"] else "" for each in group["readings"])
        tried = [
            f"* {each['name']}{how}: {each['outcome']}" for each, how in zip(group["readings"], searched, strict=True)
        ]
        parts += ["**Tried.**", "\n".join(tried)]
    command = group["command"] or f"python -m bench.papers.measure {paper} --only {key}"
    return "\n\n".join([*parts, f"`{command}`; {entry['made']}"])


def claimed(paper: str, key: str, what: str) -> tuple[float, float]:
    """Return a printed figure of a paper and the measured one."""
    for claim in _groups(paper)[key]["group"]["claims"]:
        if claim["what"] == what:
            return numbers_of(claim["printed"])[0], numbers_of(claim["measured"])[0]
    raise NoFigureError(f"bench/results/papers/{paper}.json, {key}: no {what!r}")


def verdicts(*papers: str) -> str:
    """Return how many claims of some papers have which verdict, and how many there are, as cells of a table."""
    entries = [entry for paper in papers for entry in _groups(paper).values()]
    counts = Counter(claim["verdict"] for entry in entries for claim in entry["group"]["claims"])
    return " | ".join(map(str, (*(counts[verdict] for verdict in VERDICTS), counts.total())))


def _groups(paper: str) -> dict[str, Any]:
    groups: dict[str, Any] = json.loads(_text(f"papers/{paper}.json"))["groups"]
    return groups


@functools.cache
def _text(name: str) -> str:
    try:
        return (RESULTS / name).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise NoFigureError(f"there is no {name} in bench/results") from error


def completed(text: str) -> str:
    """Return a page with a value for each expression.

    Raises
    ------
    NoFigureError
        If one has none; the message shows it.
    """
    names = dict(globals())

    def value(found: re.Match[str]) -> str:
        try:
            figure = eval(f"({found[1]})", names)  # noqa: S307 - the page is our own
            return format(_exact(figure), found[2]) if found[2] else str(figure)
        except Exception as error:
            raise NoFigureError(f"{found[0]}: {error}") from error

    for own in _NAMES.finditer(text):
        exec(own[1], names)  # noqa: S102 - the page is our own
    return _FIGURE.sub(value, _NAMES.sub("", text))


def _exact(figure: Any) -> Any:
    """Return a fraction so that one that ends in 5 is rounded up, although the nearest float may be a little less."""
    return figure * (1 + 1e-12) if isinstance(figure, float) else figure


def renewed(text: str) -> str:
    """Return a text in which what stands behind marked expressions is what they come to."""

    def lines(found: re.Match[str]) -> str:
        filled = textwrap.fill(completed(found[2]), 120, break_long_words=False, break_on_hyphens=False)
        return f"{found[1]}{filled}\n{found[3]}"

    return _RENEWED.sub(lines, text)


if __name__ == "__main__":
    readme = REPOSITORY / "README.md"
    readme.write_text(renewed(readme.read_text(encoding="utf-8")), encoding="utf-8")
