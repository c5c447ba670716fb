"""Messages on standard error: the log, and what went wrong, each problem with its place in the file."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from mig_opt.cli.checks import WrongInputsError, refuse, renamed
from mig_opt.cli.streams import interrupted, refusal, silence
from mig_opt.errors import DriverError, InputError, PolicyError, Problem, SolverError, nearest
from mig_opt.texts import printable

BAD_INPUT, DEFECT, NO_READER = 2, 70, 141
"""Exit codes."""

REQUEST = (
    "this is a defect of mig_opt; please report it with the batch, the command and the output of: mig-opt versions"
)

_LEVELS = ("debug", "info", "warning", "error")

MOST_PLACES = 8
"""Problems of one input whose places are shown."""

_LARGEST = 20_000_000  # bytes of a file beyond which no places are looked for
_WIDTH = 66  # columns of a line that is shown


def report(error: BaseException, names: Mapping[str, str] | None = None) -> int:
    """Say what went wrong; return the exit code.

    ``names`` are the options of the command by the names of its arguments. Those of the library have the same names, so
    that problems of them (``time_limit``), which are in no file, name the option (``--time-limit``).
    """
    match error:
        case KeyboardInterrupt() | RuntimeError(__cause__=KeyboardInterrupt()):
            return interrupted()
        case InputError() | WrongInputsError():
            errors = [error] if isinstance(error, InputError) else error.errors
            named = (entry if entry.source else renamed(entry, names or {}) for entry in errors)
            _tell("\n".join(map(error_text, named)))
            return BAD_INPUT
        case BrokenPipeError():
            silence(sys.stdout)
            return NO_READER
        case OSError():
            # Most files report their troubles as input errors: without a name this one comes from standard output.
            if error.filename is None:
                silence(sys.stdout)
            say(f"error: {error.filename or 'standard output cannot be written'}: {refusal(error)}")
            return BAD_INPUT
        case DriverError() | PolicyError():
            say(f"error: {error}")
            return BAD_INPUT
        case SolverError():
            say(f"error: {error}\n{REQUEST}")
        case _:
            say(f"{traceback.format_exc()}{REQUEST}")
    return DEFECT


def say(text: str) -> None:
    """Print a message on standard error."""
    _tell("\n".join(printable(line) for line in text.split("\n")))


def _tell(text: str) -> None:
    """Print on standard error. If that cannot be written, the exit code still tells how the command ended."""
    try:
        typer.echo(text, err=True)
    except OSError:
        silence(sys.stderr)


def begin_log(level: str | None) -> None:
    """Let the package tell on standard error what goes on, from a level on; nothing without one."""
    if level is None:
        return
    import logging

    if level.casefold() not in _LEVELS:
        refuse("--log-level", f"there is no level {level!r}; {nearest(level, _LEVELS)}")
    logger = logging.getLogger("mig_opt")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
    logger.handlers = [handler]
    logger.setLevel(level.upper())


def log_is_shown() -> bool:
    """Return True if the log goes to standard error, where nothing may be written over it then."""
    logging = sys.modules.get("logging")
    return logging is not None and bool(logging.getLogger("mig_opt").handlers)


# The message about an input


def coloured(text: str, **style: Any) -> str:
    """Return a text that a terminal can show, in a style (as ``typer.style`` takes it) where colours are shown.

    Those are shown on a terminal, unless NO_COLOR or TERM=dumb is set.
    """
    in_colour = sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return typer.style(printable(text), **style) if in_colour else printable(text)


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
