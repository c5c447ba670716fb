"""Cards and tables that commands show, in colour on a terminal only, and figures as texts.

Rich is imported where it is used, so that ``--help`` comes at once.
"""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import typer

from mig_opt.batch.bounds import Bound
from mig_opt.method.result import Result, Status
from mig_opt.texts import plural, printable

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from mig_opt.studies.summary import Figures

Cell: TypeAlias = "str | Text"
Part: TypeAlias = "RenderableType"
Rows: TypeAlias = "Sequence[tuple[str, Cell | None]]"
"""The rows of a card: a label and a value, which is None where there is nothing to show."""

_FELT = 0.05
"""Seconds that a user notices."""

MOST_ROWS = 40
"""Rows up to which a plan is shown in full."""

GOOD, UNCLEAR, BAD = "bold green", "bold yellow", "bold red"

_WIDTH = 120
"""Columns where the output is no terminal that has a width of its own."""

_LONGEST_WORD = 30
"""Columns that a text keeps for the sake of one word."""

_SHORTEST_CUT = 12
"""Columns that are left of a column that gives way by being cut off."""

_STYLES: dict[str, str] = {Status.OPTIMAL: GOOD, Status.FEASIBLE: UNCLEAR, Status.INTERRUPTED: UNCLEAR}


def show(*parts: Part) -> None:
    """Print parts on standard output; strings are left to the terminal to wrap, so that paths can be copied."""
    from rich.console import Console

    width = shutil.get_terminal_size((_WIDTH, 0)).columns
    console = Console(highlight=False, markup=False, emoji=False, width=width)
    with console.capture() as capture:
        for part in parts:
            # What does not fit is left to the terminal to wrap: without crop=False it would be lost.
            console.print(part, soft_wrap=isinstance(part, str), crop=False)
    typer.echo("\n".join(line.rstrip() for line in capture.get().split("\n")), nl=False)


def show_remarks(remarks: Sequence[str]) -> None:
    """Print remarks below an empty line, if there are any."""
    if remarks:
        show("", *map(printable, remarks))


def show_written(subject: str, path: Path, *, hooks: str | None = None, quiet: bool = False) -> None:
    """Say that a file was written, unless that is not wanted; a script is used with certain arguments."""
    if quiet:
        return
    usage = "" if hooks is None else f" Usage: bash {path} {hooks}"
    typer.echo(printable(f"{subject} written to {path}.{usage}"))


def table(columns: Iterable[str], rows: Iterable[Sequence[Cell]]) -> Table:
    """Return a table; texts are shown as they are, without markup.

    Columns stay whole, unless a mark before the header says otherwise: ``>`` for numbers, which stand to the right;
    ``~`` for texts, which are wrapped; ``/`` for what is cut off at the edge. At most one column may have one of the
    last two: in a narrow terminal it is the one that gives way.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    cells = [[cell if isinstance(cell, Text) else Text(printable(cell)) for cell in row] for row in rows]
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for index, header in enumerate(columns):
        column = [Text(header.lstrip(">~/")), *(row[index] for row in cells)]
        if not header.startswith(("~", "/")):
            width = max(cell.cell_len for cell in column)
            justify: Literal["left", "right"] = "right" if header.startswith(">") else "left"
            made.add_column(column[0], justify=justify, no_wrap=True, min_width=width)
            continue
        cut = header.startswith("/")
        longest = _SHORTEST_CUT if cut else _LONGEST_WORD
        made.add_column(column[0], overflow="fold", min_width=min(max(map(_longest_word, column)), longest))
        for cell in column[1:] if cut else ():
            cell.no_wrap, cell.overflow = True, "ellipsis"
    for row in cells:
        made.add_row(*row)
    return made


def _longest_word(text: Text) -> int:
    """Return the columns of the longest word, the first ones of lines with what they are indented by."""
    from rich.cells import cell_len

    return max((cell_len(word) for word in re.findall(r"(?:^ +)?\S+", text.plain, re.MULTILINE)), default=0)


def card(rows: Rows) -> Table:
    """Return labels with values."""
    return _grid(((label, value) for label, value in rows if value is not None), padding=2, style="dim")


def bullets(lines: Iterable[str]) -> Table:
    """Return indented lines; long ones are continued further in."""
    return _grid(((" -", line) for line in lines), padding=1)


def _grid(rows: Iterable[tuple[str, Cell]], *, padding: int, style: str = "") -> Table:
    from rich.table import Table
    from rich.text import Text

    made = Table.grid(padding=(0, padding))
    made.add_column(no_wrap=True, style=style)
    made.add_column(overflow="fold")
    for label, value in rows:
        made.add_row(Text(label), value if isinstance(value, Text) else Text(printable(value)))
    return made


def noted(shown: Part, remarks: Iterable[str]) -> Part:
    """Return a part with remarks below, if there are any."""
    from rich.console import Group

    remark = " ".join(remarks)
    return Group(shown, "", note(remark)) if remark else shown


def styled(text: str, style: str = "") -> Text:
    """Return a text in a style; it is wrapped at the width of the terminal."""
    from rich.text import Text

    return Text(printable(text), style)


def note(text: str) -> Text:
    """Return a remark."""
    return styled(text, "dim")


def status(name: str) -> Text:
    """Return a status in its colour."""
    return styled(name.replace("_", " "), _STYLES.get(name, BAD))


def verdict(count: int, good: str) -> Text:
    """Return ``good`` (such as ``valid``), or that it is not so if there are violations."""
    return styled(f"not {good}, {plural(count, 'violation')}", BAD) if count else styled(good, GOOD)


def shortened(text: str, columns: int) -> str:
    """Return a text as a terminal shows it, cut off where it is wider than so many columns."""
    cut = styled(text)
    cut.truncate(columns, overflow="ellipsis")
    return cut.plain


def broken_label(label: str, indent: str = "", longest: int = 20) -> Text:
    """Return the label of a policy for a table, in lines of so many characters.

    A line ends before an option; one that is too long for a line is continued further in.
    """
    from rich.text import Text

    lines = [indent]

    def add(part: str, margin: str) -> bool:
        fits = len(lines[-1] + part) <= len(indent) + longest
        if not fits and lines[-1].strip():
            lines.append(indent + margin)
            fits = len(margin + part) <= longest
        if fits:
            lines[-1] += part
        return fits

    for option in re.findall(r":?[^:]+", printable(label)):
        if not add(option, " "):
            for piece in re.findall(r"[^=_/]*[=_/]?", option):
                if not add(piece, "  "):
                    lines[-1] += piece
    return Text("\n".join(lines))


def bounds_table(bounds: Iterable[Bound]) -> Table:
    """Return lower bounds on seconds with their reasons."""
    rows = ([bound.name, seconds(bound.value), bound.reason] for bound in bounds)
    return table(["bound", ">seconds", "~because"], rows)


def seconds(value: float | None) -> str:
    """Return seconds to milliseconds, very short and very long ones to six digits, ``-`` if there are none."""
    if value is None or math.isinf(value):
        return "-"
    return f"{value:.3f}" if value == 0 or 1e-3 <= abs(value) < 1e7 else f"{value:.5e}"


def runtime(result: Result[Any]) -> str:
    """Return the seconds of a method, and those that it took to load it where that is to be felt."""
    loading = f", after {result.loading_s:.3f} s of loading" if result.loading_s >= _FELT else ""
    return f"{result.runtime_s:.3f} s{loading}"


def tenths(value: float) -> str:
    """Return a figure with one decimal, a very large one with five digits."""
    return f"{value:.1f}" if abs(value) < 1e9 else f"{value:.4e}"


def percent(share: float | None, decimals: int = 3) -> str:
    """Return a share in percent as a bare number, ``-`` if there is none; the header has to say what it is."""
    return "-" if share is None else f"{100 * share:.{decimals}f}"


def percents(figures: Figures | None, *names: Literal["mean", "median", "worst"]) -> list[str]:
    """Return some of the figures in percent."""
    return [percent(getattr(figures, name) if figures else None) for name in names]
