"""Places in the text of a file that the paths of problems are about."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from json.decoder import JSONDecodeError
from typing import Any, NamedTuple

from mig_opt.files.documents import key_name, without_comments
from mig_opt.files.tables import columns_of

_STEP = re.compile(r'\.?("(?:[^"\\]|\\.)*"|[A-Za-z0-9_-]{1,40})|\[([0-9]+)\]')
_LINE = re.compile(r"line ([0-9]+)(?:, column ([0-9]+)|, (.+))?")
_BLANK = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder(parse_int=str)  # places are asked for, not values: integers of any length


class Place(NamedTuple):
    """A part of a line of a text: number of the line, of the first column (both from 1), and of columns; the line."""

    line: int
    column: int
    width: int
    text: str


def place_of(path: str, text: str) -> Place | None:
    r"""Return the place in a text that a problem's path is about.

    Parameters
    ----------
    path : str
        A path in a JSON document such as ``tasks[3].times.2``, or a line such as ``line 4``, ``line 4, column 7`` or
        ``line 4, t1_s``, where the last is a column of a CSV table.
    text : str
        The file.

    Returns
    -------
    Place or None
        That of the innermost part of the path that is there; None if nothing of it is.

    Examples
    --------
    >>> place_of("tasks[0].times.2", '{"tasks": [\n  {"times": {"1": 5, "2": -1}}\n]}')
    Place(line=2, column=27, width=2, text='  {"times": {"1": 5, "2": -1}}')
    """
    named = _LINE.fullmatch(path)
    if named:
        return _in_table(text, int(named[1]), named[2], named[3])
    span = _span(path, without_comments(text))
    if span is None:
        return None
    begin, end = span
    start = text.rfind("\n", 0, begin) + 1
    line = text[start:].partition("\n")[0].rstrip("\r")
    column = begin - start
    return Place(text.count("\n", 0, begin) + 1, column + 1, max(1, min(end - begin, len(line) - column)), line)


def _in_table(text: str, number: int, column: str | None, name: str | None) -> Place | None:
    """Return the place of a line, or of one of its columns, by number or (in a CSV table) by name."""
    lines = re.split("\r\n|\r|\n", text)
    if not 1 <= number <= len(lines):
        return None
    line = lines[number - 1]
    if column is not None:
        return Place(number, int(column), 1, line)
    names = columns_of(text)
    if name in names and '"' not in line:
        cells = line.split(",")
        index = names.index(name)
        if index < len(cells):
            before = sum(len(cell) + 1 for cell in cells[:index])
            cell = cells[index]
            return Place(number, before + len(cell) - len(cell.lstrip()) + 1, max(1, len(cell.strip())), line)
    stripped = line.strip()
    return Place(number, len(line) - len(line.lstrip()) + 1, max(1, len(stripped)), line)


def _span(path: str, text: str) -> tuple[int, int] | None:
    """Return where the innermost part of a path begins and ends in a JSON text; None if nothing of it is there."""
    begin, end, position = _skip_blank(text, 0), len(text), 0
    try:
        while step := _STEP.match(path, position):
            name = int(step[2]) if step[2] else step[1]
            parts = ((key_name(key) if isinstance(key, str) else key, span) for key, span in parts_of_json(text, begin))
            found = next((span for key, span in parts if key == name), None)
            if found is None:
                break
            (begin, end), position = found, step.end()
    except (JSONDecodeError, IndexError):  # what comes behind may be broken
        pass
    return (begin, end) if position else None


def _skip_blank(text: str, position: int) -> int:
    blank = _BLANK.match(text, position)
    return blank.end() if blank else position


def parts_of_json(text: str, begin: int) -> Iterator[tuple[Any, tuple[int, int]]]:
    """Yield the spans of the parts of the list or object that begins at a position, each with its number or key."""
    position, number = begin, 0
    name: Any
    while text[position] == ("," if number else text[begin]) and text[begin] in "[{":
        position = _skip_blank(text, position + 1)
        name, number = number, number + 1
        if text[begin] == "{" and text[position] == '"':
            name, position = _DECODER.raw_decode(text, position)
            position = _skip_blank(text, _skip_blank(text, position) + 1)
        elif text[position] == "]" or text[begin] == "{":
            return
        end = _DECODER.raw_decode(text, position)[1]
        yield name, (position, end)
        position = _skip_blank(text, end)
