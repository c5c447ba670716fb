"""Rows of CSV tables."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from mig_opt.errors import InputError, Problem, nearest
from mig_opt.files.documents import shown
from mig_opt.files.parts import Findings, Raw
from mig_opt.gpu.model import GpuModel

_TIME = re.compile(r"t([1-9][0-9]?)_s")

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


def time_columns(
    header: Iterable[str], where: str, gpu: GpuModel | None, findings: Findings
) -> tuple[set[str], list[str]]:
    """Return the columns ``t<k>_s`` of a header and those that there may be; note each of a size that the GPU lacks."""
    given = {column: int(found[1]) for column in header if (found := _TIME.fullmatch(column))}
    for column, size in given.items():
        if gpu and size not in gpu.sizes:
            known = ", ".join(map(str, gpu.sizes))
            message = f"{gpu.name} has no instances of {size} compute slices; its sizes are {known}"
            findings.add(f"{where}, {column}", message)
    return set(given), [f"t{size}_s" for size in (gpu.sizes if gpu else (1, 2, 3, 4, 7))]


def times_in(cells: Mapping[str, str], gpu: GpuModel | None) -> Raw:
    """Return the seconds in the columns ``t<k>_s`` of a row by size; none for blank cells and sizes the GPU lacks."""
    return {
        size[1]: number(cell)
        for column, cell in cells.items()
        if cell and (size := _TIME.fullmatch(column)) and (gpu is None or int(size[1]) in gpu.sizes)
    }


def time_column(key: str) -> str:
    """Return the column of the figure ``times.<k>`` of an entry; none for all its times, the key itself for others."""
    name, _, size = key.partition(".")
    return key if name != "times" else f"t{size}_s" if size else ""


def gpu_of_table(gpu: str | None, findings: Findings) -> Raw:
    """Return the key ``gpu`` for the document that a table stands for; note that it is missing if it is not given."""
    if gpu is None:
        message = 'a CSV file does not name its GPU; give it, for example gpu="A100" (command line: --gpu A100)'
        findings.add("gpu", message)
        return {}
    return {"gpu": gpu}


@contextmanager
def told_by_row(source: str, translate: Callable[[Problem], Problem]) -> Iterator[None]:
    """Have problems of the entries of a document told as those of the rows that the entries were read from.

    Raises
    ------
    InputError
        With all problems, translated.
    """
    try:
        yield
    except InputError as error:
        translated = Findings(source)
        translated.extend(map(translate, error.problems))
        translated.check()
        raise


def row_problem(
    problem: Problem, entries: str, lines: Sequence[int], column: Callable[[int, str], str] = lambda _, key: key
) -> Problem:
    """Return a problem of an entry of a document as one of the row that it was read from; others as they are.

    Parameters
    ----------
    problem : Problem
        Perhaps one of ``entries[i]`` or of a key of it.
    entries : str
        What the list of entries is called.
    lines : sequence of int
        The line of each entry.
    column : callable
        Gives the column of a key, by the index of the entry and the key; an empty one is left out.
    """
    found = re.fullmatch(rf"{entries}\[(\d+)\](?:\.([\w.]+))?", problem.path)
    if not found:
        return problem
    index = int(found[1])
    name = column(index, found[2]) if found[2] else ""
    # Only a text that a user wrote can speak of an entry that is not there.
    message = re.sub(
        rf"of {entries}\[(\d+)\]",
        lambda other: f"of line {lines[int(other[1])]}" if int(other[1]) < len(lines) else other[0],
        problem.message,
    )
    return Problem(f"line {lines[index]}" + (f", {name}" if name else ""), message)


def number(cell: str) -> float | str:
    """Return the number in a cell; what is none stays text, and is reported as such."""
    try:
        return cell if "_" in cell else float(cell)
    except ValueError:
        return cell


def whole_number(cell: str) -> int | float | str:
    """Return the number in a cell, an integer if it is written as one; what is none stays text."""
    return int(cell) if re.fullmatch(r"-?[0-9]{1,300}", cell) else number(cell)
