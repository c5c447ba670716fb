"""Reports on a terminal, in colour if it has some.

Rich is imported where it is used, so that ``--help`` comes at once.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

import typer

from mig_opt.method.report import Cell, Part, Points, Report, Table, Toned, dim, strong
from mig_opt.texts import printable

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table as RichTable
    from rich.text import Text

_STYLES = {"good": "bold green", "unclear": "bold yellow", "bad": "bold red", "strong": "bold"}

_WIDTH = 120  # columns where the output is no terminal that has a width of its own
_LONGEST_WORD = 30  # columns that a text keeps for the sake of one word
_SHORTEST_CUT = 12  # columns that are left of a column that gives way by being cut off


def show_report(report: Report, remarks: Sequence[str] = ()) -> None:
    """Print a report, and remarks below it (by default its own); an empty line is between its parts."""
    blocks = list(filter(None, _blocks(report)))
    if remarks:
        blocks.append(list(map(printable, remarks)))
    _show([part for block in blocks for part in ("", *block)][1:])


def _blocks(part: Part) -> list[list[RenderableType]]:
    """Return what is shown of a part: things below each other, with empty lines between them where they are apart."""
    shown: list[RenderableType] = []
    match part:
        case Report():
            facts = [(label, value) for label, value in part.facts if value is not None]
            shown += [text_of(strong(part.title))] if part.title else []
            shown += [_grid(facts, 2, "dim")] if facts else []
            return [*([shown] if shown else []), *(block for below in part.parts for block in _blocks(below))]
        case Table():
            shown += [text_of(part.heading)] if part.heading else []
            notes: list[RenderableType] = [text_of(dim(note)) for note in part.notes]
            return [[*shown, table(part)], *([notes] if notes else [])]
        case Points():
            shown += [text_of(part.heading)] if part.heading else []
            shown += [_grid(((" -", line) for line in part.lines), 1)] if part.lines else []
            shown += [text_of(part.remark)] if part.remark else []
        case Toned():
            shown.append(text_of(part))
        case _:
            shown.append(printable(part))
    return [shown]


def _show(parts: Sequence[RenderableType]) -> None:
    """Print what is below each other; strings are left to the terminal to wrap, so that paths can be copied."""
    if all(isinstance(part, str) for part in parts):
        for line in parts:
            typer.echo(line)
        return
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False, width=_terminal_width())
    with console.capture() as capture:
        for part in parts:
            # What does not fit is left to the terminal to wrap: without crop=False it would be lost.
            console.print(part, soft_wrap=isinstance(part, str), crop=False)
    typer.echo("\n".join(line.rstrip() for line in capture.get().split("\n")), nl=False)


def _terminal_width() -> int:
    return shutil.get_terminal_size((_WIDTH, 0)).columns


def text_of(cell: Cell) -> Text:
    """Return a text as it is, without markup, in the style of its tone; it is wrapped at the width of the terminal."""
    from rich.text import Text

    if isinstance(cell, tuple):
        return Text("\n".join(map(printable, cell)))
    return Text(printable(cell), _STYLES.get(cell.tone, cell.tone) if isinstance(cell, Toned) else "")


def table(content: Table) -> RichTable:
    """Return a table.

    Columns stay whole, unless their mark says otherwise. At most one may be wrapped or cut off: in a narrow terminal
    it is the one that gives way, but not below its least width: then lines are left to the terminal to wrap.
    """
    from rich import box
    from rich.table import Table as RichTable

    cells = [list(map(text_of, row)) for row in content.rows]
    made = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for index, (mark, header) in enumerate(zip(content.columns, content.headers, strict=True)):
        column = [text_of(header), *(row[index] for row in cells)]
        if not mark.startswith(("~", "/")):
            width = max(cell.cell_len for cell in column)
            justify: Literal["left", "right"] = "right" if mark.startswith(">") else "left"
            made.add_column(column[0], justify=justify, no_wrap=True, min_width=width)
            continue
        cut = mark.startswith("/")
        longest = _SHORTEST_CUT if cut else _LONGEST_WORD
        made.add_column(column[0], overflow="fold", min_width=min(max(map(_longest_word, column)), longest))
        for cell in column[1:] if cut else ():
            cell.no_wrap, cell.overflow = True, "ellipsis"
    for row in cells:
        made.add_row(*row)
    least = sum(column.min_width or 0 for column in made.columns) + 2 * (len(made.columns) - 1)
    made.width = least if least > _terminal_width() else None
    return made


def _longest_word(text: Text) -> int:
    """Return the columns of the longest word, the first ones of lines with what they are indented by."""
    from rich.cells import cell_len

    return max((cell_len(word) for word in re.findall(r"(?:^ +)?\S+", text.plain, re.MULTILINE)), default=0)


def _grid(rows: Iterable[tuple[str, str]], padding: int, style: str = "") -> RichTable:
    """Return labels with texts; long ones are continued further in."""
    from rich.table import Table as RichTable

    made = RichTable.grid(padding=(0, padding))
    made.add_column(no_wrap=True, style=style)
    made.add_column(overflow="fold")
    for label, value in rows:
        made.add_row(text_of(label), text_of(value))
    return made


def shortened(text: str, columns: int) -> str:
    """Return a text as a terminal shows it, cut off where it is wider than ``columns``."""
    cut = text_of(text)
    cut.truncate(columns, overflow="ellipsis")
    return cut.plain
