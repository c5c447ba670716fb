"""CSV tables: rows become entries of the document that says the same; its problems are told by line and column."""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

from mig_opt.errors import InputError, Problem, nearest
from mig_opt.files.documents import shown
from mig_opt.files.values import REPORTED, Findings, Raw, defaults_of, read_value, with_places
from mig_opt.gpu.catalogue import Gpu
from mig_opt.gpu.model import GpuModel
from mig_opt.gpu.problems import wrong_size
from mig_opt.rules import hints_of, parts_of
from mig_opt.texts import number_in, plural

_TIME = re.compile(r"t([1-9][0-9]?)_s")
_LIKE_TIME = re.compile(r"t([1-9])(?:_?[a-z]+)?|(?:mig[-_ ])?([1-9])(?:g\b.*)?", re.IGNORECASE)
"""Columns that others use for the times on an instance size: ``t1``, ``t1_ms``, ``1``, ``1g.5gb``."""

_FLAGS = {"no": False, "false": False, "0": False, "yes": True, "true": True, "1": True}

_COMMENTS = re.compile(r"(?:\s*#[^\n]*\n)+")


class Table(NamedTuple):
    """CSV table, read as the document that says the same."""

    raw: Raw  # the document, without its schema and without the GPU
    entries: str  # the key of the list whose entries the rows are
    lines: Sequence[int]  # the line of each entry
    # Gives the column of a key of an entry (empty for the entry as a whole), by the index of the entry and the key.
    column: Callable[[int, str], str] = lambda _, key: key
    kinds: Mapping[tuple[int, str], int] = MappingProxyType({})  # the line of what an entry has on a kind of GPU

    @contextmanager
    def told(self, source: str) -> Iterator[None]:
        """Have problems of the entries told as those of the rows that the entries were read from."""
        try:
            yield
        except InputError as error:
            told, places = Findings(source), [f"line {line}" for line in self.lines]
            told.extend(self._of_row(problem, places) for problem in error.problems)
            told.check()

    def _of_row(self, problem: Problem, places: Sequence[str]) -> Problem:
        found = re.fullmatch(rf"{self.entries}\[(\d+)\](?:\.(.+))?", problem.path)
        if not found:
            return problem
        index = int(found[1])
        key, *rest = (found[2] or "").split(".")
        line = self.kinds.get((index, rest[0])) if rest else None
        named = self.column(index, ".".join([key, *(rest if line is None else rest[1:])]))
        place = filter(None, (places[index] if line is None else f"line {line}", named))
        message = with_places(problem.message, rf"(?<=\b(?:of|is) ){self.entries}", places)
        if _TIME.fullmatch(named) and message.startswith("must be a number"):
            message += "; leave the cell empty where there is no time"
        return Problem(", ".join(place), message)


HeaderCheck = Callable[[list[str], str, Findings], bool]
"""Notes what is wrong with the columns of a header, given where it is; returns True if rows can be read with them."""


def read_rows(
    text: str, findings: Findings, check: HeaderCheck, *, example: str, what: str, end_alone: bool = False
) -> list[tuple[int, dict[str, str]]]:
    """Return the rows of a CSV table, each with the line on which it begins and its cells by column.

    ``example`` is a header, ``what`` the word for what a row holds. With ``end_alone`` the last row may have
    its first cell only. If no row can be read, all findings are raised.
    """
    lines = _lines(text, findings)
    line, header = next(lines, (1, []))
    where, readable = f"line {line}", False
    if not header:
        findings.add("", f"is empty; a line with the columns is wanted: {example}")
    elif len(header) == 1 and re.search(r"[;\t]", header[0]):
        findings.add(where, "has one column only; separate the columns by commas, and write 12.5 with a point")
        findings.check()
    else:
        for column in (column for column, count in Counter(header).items() if count > 1):
            findings.add(f"{where}, {column or 'header'}", "this column is given more than once; keep one")
        readable = check(header, where, findings)
    body = list(lines)
    if end_alone and body and len(body[-1][1]) == 1:
        body[-1][1].extend([""] * (len(header) - 1))
    rows: list[tuple[int, dict[str, str]]] = []
    for line, cells in body:
        if len(cells) != len(header):
            findings.add(f"line {line}", f"has {plural(len(cells), 'cell')}, the header has {len(header)}")
        elif readable:
            rows.append((line, dict(zip(header, cells, strict=True))))
    if header and not body:
        findings.add("", f"has no rows; add at least one {what} below the header")
    if not rows:
        findings.check()
    return rows


def columns_of(text: str) -> list[str]:
    """Return the columns of a CSV table; none if they cannot be read, which :func:`read_rows` reports."""
    with suppress(csv.Error):
        rows = csv.reader(io.StringIO(below_comments(text), newline=""))
        return next((cells for row in rows if any(cells := [cell.strip() for cell in row])), [])
    return []


def below_comments(text: str) -> str:
    """Return a CSV table without the comments that stand above its header."""
    comments = _COMMENTS.match(text)
    return text[comments.end() :] if comments else text


def _lines(text: str, findings: Findings) -> Iterator[tuple[int, list[str]]]:
    """Yield each row that is not blank, with the line on which it begins; comments may stand above the header."""
    table = below_comments(text)
    reader = csv.reader(io.StringIO(table, newline=""), strict=True)
    first = line = 1 + text.count("\n") - table.count("\n")
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if any(cells):
                yield line, cells
            line = first + reader.line_num
    except csv.Error as error:
        findings.add(f"line {line}", f"not valid CSV: {error}")
        findings.check()


def check_columns(
    header: Iterable[str],
    where: str,
    findings: Findings,
    known: Iterable[str] | None = None,
    needed: Mapping[str, str] = MappingProxyType({}),
) -> bool:
    """Note each column that is unknown or missing; return False if one is missing.

    ``known`` are all columns that there may be, by default any; ``needed`` are those that must be there, each with what
    is said about it if it is not.
    """
    given = dict.fromkeys(header)
    names = list(given if known is None else known)
    for column in given:
        if column not in names:
            message = f"unknown column {shown(column)}; {_meant(column, names)}"
            findings.add(f"{where}, {column or 'header'}", message)
    missing = [column for column in needed if column not in given]
    for column in missing:
        findings.add(where, f"has no column {column}{needed[column]}")
    return not missing


def _meant(column: str, names: list[str]) -> str:
    """Return a phrase that offers the known column that an unknown one may stand for."""
    found = _LIKE_TIME.fullmatch(column)
    size = found and (found[1] or found[2])
    if size and (time := f"t{size}_s") in names:
        slices = "1 compute slice" if size == "1" else f"{size} compute slices"
        return f"the seconds on {slices} are in the column {time}"
    return nearest(column, names)


def check_times(header: list[str], where: str, findings: Findings, gpu: GpuModel | None) -> tuple[list[str], list[str]]:
    """Return the columns of a header but ``t<k>_s``, and those with times that there may be.

    A column of a size that the GPU does not have is noted.
    """
    others = []
    for column in header:
        found = _TIME.fullmatch(column)
        if not found:
            others.append(column)
        elif gpu:
            findings.extend(wrong_size(f"{where}, {column}", gpu, int(found[1])))
    return others, [f"t{size}_s" for size in (gpu.sizes if gpu else (1, 2, 3, 4, 7))]


def times_in(cells: Mapping[str, str], gpu: GpuModel | None) -> Raw:
    """Return the seconds in the columns ``t<k>_s`` of a row by size; none for blank cells and sizes the GPU lacks."""
    return {
        size[1]: number(cell)
        for column, cell in cells.items()
        if cell and (size := _TIME.fullmatch(column)) and (gpu is None or int(size[1]) in gpu.sizes)
    }


def entries_of_rows(rows: Iterable[Mapping[str, str]], columns: Mapping[str, str], shape: type) -> list[Raw]:
    """Return rows as objects of a document: each cell as the value of the key of its column, for a dataclass.

    Blank cells are left out where the key has a default. What is no value of its type is left to be reported.
    """
    kinds = {key: parts_of(hint).bare for key, hint in hints_of(shape).items()}
    read: dict[Any, Callable[[str], Any]] = {str: lambda cell: cell, bool: lambda cell: _FLAGS.get(cell.lower(), cell)}
    defaults = defaults_of(shape)
    return [
        {
            key: read.get(kinds[key], number_in)(cell)
            for column, key in columns.items()
            if (cell := cells.get(column, "")) or key not in defaults
        }
        for cells in rows
    ]


def merged_by_kind(
    key: str,
    entries: list[Raw],
    rows: list[tuple[int, dict[str, str]]],
    findings: Findings,
    *,
    only: GpuModel | None,
    columns: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Raw, list[int], dict[tuple[int, str], int]]:
    """Return a document with one entry for all rows of its name, each of which has what holds on one kind of GPU.

    There is one GPU of each kind, or as many as are given of the only one that counts. Beside it the lines of the
    entries are returned, those of their first rows, and that of each entry and kind.
    """
    merged: dict[str, Raw] = {}
    lines: list[int] = []
    lines_of: dict[tuple[int, str], int] = {}
    numbers: dict[str, int] = {}
    kinds: dict[str, None] = {}
    for entry, (line, cells) in zip(entries, rows, strict=True):
        model = read_value(Gpu, cells["gpu"], f"line {line}, gpu", findings)
        if model is not None and only not in (None, model):
            continue
        if entry["name"] not in merged:
            merged[entry["name"]] = {name: value for name, value in entry.items() if name not in _BY_KIND}
            numbers[entry["name"]] = len(lines)
            lines.append(line)
        known, what = merged[entry["name"]], f"{key[:-1]} {entry['name']!r}"
        times = known.setdefault("times", {})
        keys = [name for name in {**entry, **known} if name not in _BY_KIND]
        for name in (name for name in keys if entry.get(name) != known.get(name)):
            message = f"differs from that of the {key[:-1]}'s first row; give the same"
            findings.add(f"line {line}, {columns.get(name, name)}", message)
        if model is None:
            continue
        if model.name in times:
            findings.add(f"line {line}", f"{what} has its times on {model.name} already; keep one row")
        kinds[model.name] = None
        lines_of[numbers[entry["name"]], model.name] = line
        for name in _BY_KIND & entry.keys():
            known.setdefault(name, {})[model.name] = entry[name]
    if only and not kinds:
        findings.add("gpu", f"no row is of {only.name}")
        findings.check()
    # What has nothing but rows of unknown kinds has been reported with these.
    raw: Raw = {key: [{**known, "times": known["times"] or REPORTED} for known in merged.values()]}
    if only is None:
        raw |= {"pools": [{"gpu": name, "count": 1} for name in kinds] or REPORTED, "gpu": None}
    return raw, lines, lines_of


_BY_KIND = {"times", "profile", "declared"}
"""Keys of a task or a job whose values each kind of GPU has its own of."""


def time_column(key: str) -> str:
    """Return the column of the figure ``times.<k>`` of an entry; none for all its times, the key itself for others."""
    name, _, size = key.partition(".")
    return key if name != "times" else f"t{size}_s" if size else ""


def gpu_of_table(gpu: str | None, findings: Findings, example: str = "A100") -> GpuModel | None:
    """Return the GPU that a table is for; None if it is not given, or unknown, which is noted."""
    if gpu is not None:
        model: GpuModel | None = read_value(Gpu, gpu, "gpu", findings)
        return model
    message = f'give it, for example gpu="{example}" (command line: --gpu {example})'
    findings.add("gpu", f"a CSV file does not name its GPU; {message}")
    return None


def table_text(header: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """Return a table as CSV text."""
    lines = list[str]()
    # Before Python 3.13 only what may end a line of its own is in quotes.
    csv.writer(SimpleNamespace(write=lines.append), lineterminator="\r\n").writerows([header, *rows])
    return "".join(f"{line[:-2]}\n" for line in lines)


def number(cell: str) -> float | str:
    """Return the number in a cell; what is none stays text, and is reported as such."""
    found = number_in(cell)
    return found if isinstance(found, str) else float(found)


def figure(cell: str, where: str, findings: Findings) -> float:
    """Return the number >= 0 in a cell; 0 if it is none, which is noted."""
    value = number(cell)
    if isinstance(value, str) or not 0 <= value < math.inf:
        findings.add(where, f"must be a finite number >= 0, is {shown(value) if isinstance(value, str) else value}")
        return 0.0
    return value
