"""Messages about bad input: each problem with the place in the file that it is about, in colour on a terminal."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import typer

from mig_opt.errors import InputError, Problem
from mig_opt.texts import printable

MOST_PLACES = 8
"""Problems of one input whose places are shown."""

_LARGEST = 20_000_000
"""Bytes of a file beyond which no places are looked for."""

_WIDTH = 66
"""Columns of a line that is shown."""


def in_colour() -> bool:
    """Return True if standard error takes colours: a terminal, and neither NO_COLOR nor TERM=dumb is set."""
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def coloured(text: str, **style: Any) -> str:
    """Return a text that a terminal can show, in a style (as ``typer.style`` takes it) where colours are shown."""
    text = printable(text)
    return typer.style(text, **style) if in_colour() else text


def error_text(error: InputError) -> str:
    """Return the message about an input: a line for each problem, and where it is in the file if that can be told."""
    head = coloured("error:", fg="red", bold=True)
    if len(error.problems) == 1 and not (error.source and error.problems[0].path):
        source = f"{coloured(error.source, bold=True)}: " if error.source else ""
        return f"{head} {source}{_problem(error.problems[0])}"
    text = _text(error.source)
    lines = [f"{head} {coloured(error.source or 'bad input', bold=True)}"]
    for index, problem in enumerate(error.problems):
        lines.append(f"  {_problem(problem)}")
        if text is not None and index < MOST_PLACES:
            lines += _place(problem.path, text, error.source)
    return "\n".join(lines)


def _problem(problem: Problem) -> str:
    path = f"{coloured(problem.path, fg='cyan')}: " if problem.path else ""
    return f"{path}{printable(problem.message)}"


def _text(source: str) -> str | None:
    """Return the text of the file that an input came from; None if it came from none, or from no text."""
    from mig_opt.files.documents import decoded

    try:
        path = Path(source)
        if not source or not path.is_file() or path.stat().st_size > _LARGEST:
            return None
        return decoded(path.read_bytes(), source)
    except (OSError, ValueError):
        return None


def _place(path: str, text: str, source: str) -> list[str]:
    """Return the lines that show a place: its line and column, the text there, and a mark below it."""
    from mig_opt.files.locations import place_of

    place = place_of(path, text)
    if place is None:
        return []
    # Of a long line the part around the place; what a terminal would act upon takes one column.
    begin = max(0, min(place.column - 1 - _WIDTH // 3, len(place.text) - _WIDTH))
    shown = "".join(sign if sign.isprintable() else " " for sign in place.text[begin : begin + _WIDTH])
    left, right = "... " if begin else "", " ..." if begin + _WIDTH < len(place.text) else ""
    indent = 0 if left else len(shown) - len(shown.lstrip())
    at = place.column - 1 - begin - indent
    mark = "^" * max(1, min(place.width, len(shown) - indent - at))
    where = f"{source}:{place.line}:{place.column}"
    return [
        f"    {coloured(where, dim=True)}",
        f"      {left}{shown[indent:]}{right}",
        f"      {' ' * (len(left) + at)}{coloured(mark, fg='red', bold=True)}",
    ]
