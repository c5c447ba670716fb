"""Figures out of the tables of results, by their headings and the words in their cells."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.report import RESULTS

NUMBER = r"[-+]?\d(?:[\d,]*\d)?(?:\.\d+)?"
"""A number as it stands in a table or in prose."""


class NoFigureError(LookupError):
    """A result that is asked for is not there: it was not measured, or its table has other words."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of a table of results.

    Attributes
    ----------
    place : str
        File and heading, for messages.
    head : tuple of str
        Names of the columns.
    rows : tuple of tuple of str
        The cells, without marks of code and of bold.
    """

    place: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def where(self, conditions: Mapping[str | int, str | Callable[[str], bool]] | str) -> Table:
        """Return the rows whose cells are these texts or meet these conditions; a text is for the first column."""
        if isinstance(conditions, str):
            conditions = {0: conditions}
        wanted = [(self._index(column), test) for column, test in conditions.items()]
        rows = tuple(
            row
            for row in self.rows
            if all(test(row[column]) if callable(test) else row[column] == test for column, test in wanted)
        )
        if not rows:
            raise NoFigureError(f"{self.place}: no row with {conditions}")
        return Table(self.place, self.head, rows)

    def texts(self, column: str | int) -> list[str]:
        """Return the cells of a column."""
        index = self._index(column)
        return [row[index] for row in self.rows]

    def text(self, column: str | int) -> str:
        """Return the cell of a column of the only row."""
        found = self.texts(column)
        if len(found) != 1:
            raise NoFigureError(f"{self.place}: {len(found)} rows where one was expected")
        return found[0]

    def numbers(self, column: str | int, number: int = 0) -> list[float]:
        """Return the first number, or a later one, of each cell of a column that has it."""
        found = [numbers_of(text) for text in self.texts(column)]
        return [numbers[number] for numbers in found if len(numbers) > number]

    def number(self, column: str | int, number: int = 0) -> float:
        """Return the first number, or a later one, in a column of the only row."""
        found = numbers_of(self.text(column))
        if len(found) <= number:
            raise NoFigureError(f"{self.place}: no number in column {column!r}")
        return found[number]

    def numbers_in(self, column: str | int) -> list[float]:
        """Return all numbers in a column of the only row."""
        return numbers_of(self.text(column))

    def _index(self, column: str | int) -> int:
        if isinstance(column, int):
            return column
        if column not in self.head:
            raise NoFigureError(f"{self.place}: there is no column {column!r}; there are {', '.join(self.head)}")
        return self.head.index(column)


def numbers_of(text: str) -> list[float]:
    """Return the numbers in a text, those with commas between thousands too."""
    return [float(number.replace(",", "")) for number in re.findall(NUMBER, text)]


def table(name: str, heading: str = "", number: int = 0) -> Table:
    """Return a table of ``bench/results/<name>.md``: the first one behind a heading, or a later one before the next.

    Raises
    ------
    NoFigureError
        If there is none.
    """
    found = _tables(RESULTS / f"{name}.md").get(heading, [])
    if len(found) <= number:
        raise NoFigureError(f"bench/results/{name}.md has no table {number} behind {heading!r}")
    return found[number]


def section(name: str, heading: str) -> list[str]:
    """Return the lines behind a heading of ``bench/results/<name>.md``, up to the next one."""
    found = re.search(
        rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", _text(RESULTS / f"{name}.md"), re.DOTALL | re.MULTILINE
    )
    if not found:
        raise NoFigureError(f"bench/results/{name}.md has no section {heading!r}")
    return found[1].strip().splitlines()


def said(name: str, pattern: str) -> tuple[str, ...]:
    """Return what the groups of a pattern match in ``bench/results/<name>.md``; spaces match line breaks as well."""
    found = re.search(pattern.replace(" ", r"\s+"), _text(RESULTS / f"{name}.md"), re.DOTALL)
    if not found:
        raise NoFigureError(f"bench/results/{name}.md does not say {pattern!r}")
    return found.groups()


def claimed(paper: str, group: str, what: str) -> tuple[str, str]:
    """Return a printed figure of a paper and the measured one, of ``bench/results/papers``."""
    claims = _groups(RESULTS / "papers" / f"{paper}.json").get(group, {}).get("claims", [])
    for claim in claims:
        if claim["what"] == what:
            return claim["printed"], claim["measured"]
    raise NoFigureError(f"bench/results/papers/{paper}.json, {group}: no {what!r}")


@functools.cache
def _groups(path: Path) -> dict[str, Any]:
    return {key: entry["group"] for key, entry in json.loads(_text(path))["groups"].items()}


@functools.cache
def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise NoFigureError(f"there is no {path.name} in bench/results") from error


@functools.cache
def _tables(path: Path) -> dict[str, list[Table]]:
    """Return the tables of a file by the heading of second order that they stand behind; "" before the first one."""
    tables: dict[str, list[Table]] = {}
    heading = ""
    lines: list[str] = []
    for line in [*_text(path).splitlines(), ""]:
        if line.startswith("|"):
            lines.append(line)
        elif lines:
            tables.setdefault(heading, []).append(_table(f"bench/results/{path.name}, {heading!r}", lines))
            lines = []
        if line.startswith("## "):
            heading = line.removeprefix("## ")
    return tables


def _table(place: str, lines: Sequence[str]) -> Table:
    head, _, *rows = (tuple(re.sub(r"[`*]", "", cell).strip() for cell in line.split("|")[1:-1]) for line in lines)
    return Table(place, head, tuple(rows))
