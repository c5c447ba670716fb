"""Rows of CSV tables."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from mig_opt.errors import nearest
from mig_opt.files.documents import shown
from mig_opt.files.parts import Findings

HeaderCheck = Callable[[list[str], str], bool]
"""Notes what is wrong with the columns of a header, given where it is; returns whether rows can be read with them."""


def read_rows(
    text: str, check: HeaderCheck, findings: Findings, *, example: str, what: str
) -> list[tuple[int, dict[str, str]]]:
    """Return the rows of a CSV table, each with the line on which it begins and its cells by column.

    Parameters
    ----------
    text : str
        The table.
    check : callable
        Checks the header.
    findings : Findings
        Takes the problems of header and rows.
    example : str
        How a header may look.
    what : str
        What a row is.

    Raises
    ------
    InputError
        If no row can be read, with everything found so far.
    """
    lines = _lines(text, findings)
    line, header = next(lines, (1, []))
    if header:
        _check_columns(header, f"line {line}", findings)
    else:
        findings.add("", f"is empty; a line with the columns is wanted: {example}")
    readable = bool(header) and check(header, f"line {line}")
    rows: list[tuple[int, dict[str, str]]] = []
    given = 0
    for line, cells in lines:
        given += 1
        if len(cells) != len(header):
            findings.add(f"line {line}", f"has {len(cells)} cells, the header has {len(header)}")
        elif readable:
            rows.append((line, dict(zip(header, cells, strict=True))))
    if header and not given:
        findings.add("", f"has no rows; add at least one {what} below the header")
    if not rows:
        findings.check()
    return rows


def _lines(text: str, findings: Findings) -> Iterator[tuple[int, list[str]]]:
    """Yield each row that is not blank, with the line on which it begins."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if any(cells):
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        findings.add(f"line {line}", f"not valid CSV: {error}")
        findings.check()


def _check_columns(header: list[str], where: str, findings: Findings) -> None:
    if len(header) == 1 and re.search(r"[;\t]", header[0]):
        findings.add(where, "has one column only; separate the columns by commas")
        findings.check()
    for column, count in Counter(header).items():
        if count > 1:
            findings.add(f"{where}, {column or 'header'}", "this column is given more than once; keep one")


def check_names(header: Iterable[str], where: str, known: Sequence[str], findings: Findings) -> None:
    """Note each column that is not known."""
    for column in dict.fromkeys(header):
        if column not in known:
            message = f"unknown column {shown(column)}; {nearest(column, known)}"
            findings.add(f"{where}, {column or 'header'}", message)


def number(cell: str) -> float | str:
    """Return the number in a cell; what is none stays text, and is reported as such."""
    try:
        return cell if "_" in cell else float(cell)
    except ValueError:
        return cell


def whole_number(cell: str) -> int | float | str:
    """Return the number in a cell, an integer if it is written as one; what is none stays text."""
    return int(cell) if re.fullmatch(r"-?[0-9]{1,300}", cell) else number(cell)
