"""What commands show: cards and tables, in colour on a terminal only."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

import typer
from rich import box
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from mig_opt.batch.batch import Batch
from mig_opt.batch.bounds import Bound
from mig_opt.batch.lifetimes import Lifetime, lifetimes_with_runs
from mig_opt.batch.schedule import Schedule
from mig_opt.result import Result, Status
from mig_opt.texts import plural, printable
from mig_opt.validation import Validation

if TYPE_CHECKING:
    from mig_opt.studies import Figures

MOST_ROWS = 40
"""Rows up to which a plan is shown in full."""

_WIDTH = 120
"""Columns where the output is no terminal that has a width of its own."""

_LONGEST_WORD = 30
"""Columns that a text keeps for the sake of one word."""

_SHORTEST_CUT = 12
"""Columns that are left of a column that gives way by being cut off."""

_STYLES: dict[str, str] = {
    Status.OPTIMAL: "bold green",
    Status.FEASIBLE: "bold yellow",
    Status.INTERRUPTED: "bold yellow",
}

Kind = Literal["name", "number", "text", "cut"]
"""Of a column: names and numbers (to the right) stay on one line, texts wrap, others are cut off at the edge."""

Columns = Sequence[tuple[str, Kind]]


def show(*parts: RenderableType) -> None:
    """Print parts on standard output; strings are left to the terminal to wrap, so that paths can be copied."""
    width = shutil.get_terminal_size((_WIDTH, 0)).columns
    console = Console(highlight=False, markup=False, emoji=False, width=width)
    with console.capture() as capture:
        for part in parts:
            # What does not fit is left to the terminal to wrap: without crop=False it would be lost.
            console.print(part, soft_wrap=isinstance(part, str), crop=False)
    typer.echo("\n".join(line.rstrip() for line in capture.get().split("\n")), nl=False)


def table(columns: Columns, rows: Iterable[Sequence[str | Text]]) -> Table:
    """Return a table; texts are shown as they are, without markup.

    In a narrow terminal the column of texts, of which there is one at most, gives way; nothing else is cut.
    """
    cells = [[cell if isinstance(cell, Text) else Text(printable(cell)) for cell in row] for row in rows]
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for index, (header, kind) in enumerate(columns):
        column = [Text(header), *(row[index] for row in cells)]
        if kind in ("name", "number"):
            width = max(cell.cell_len for cell in column)
            made.add_column(column[0], justify="right" if kind == "number" else "left", no_wrap=True, min_width=width)
            continue
        longest = _SHORTEST_CUT if kind == "cut" else _LONGEST_WORD
        made.add_column(column[0], overflow="fold", min_width=min(max(map(_longest_word, column)), longest))
        for cell in column[1:] if kind == "cut" else ():
            cell.no_wrap, cell.overflow = True, "ellipsis"
    for row in cells:
        made.add_row(*row)
    return made


def _longest_word(text: Text) -> int:
    """Return the columns of the longest word, the first ones of lines with what they are indented by."""
    return max((cell_len(word) for word in re.findall(r"(?:^ +)?\S+", text.plain, re.MULTILINE)), default=0)


def card(rows: Iterable[tuple[str, str | Text]]) -> Table:
    """Return labels with values."""
    made = Table.grid(padding=(0, 2))
    made.add_column(no_wrap=True, style="dim")
    made.add_column(overflow="fold")
    for label, value in rows:
        made.add_row(Text(label), value if isinstance(value, Text) else Text(printable(value)))
    return made


def bullets(lines: Iterable[str]) -> RenderableType:
    """Return indented lines; long ones are continued further in."""
    made = Table.grid(padding=(0, 1))
    made.add_column(no_wrap=True)
    made.add_column(overflow="fold")
    for line in lines:
        made.add_row(Text(" -"), Text(printable(line)))
    return made


def shortened(text: str, columns: int) -> str:
    """Return a text as a terminal shows it, cut off where it is wider than so many columns."""
    cut = Text(printable(text))
    cut.truncate(columns, overflow="ellipsis")
    return cut.plain


def paragraph(text: str) -> Text:
    """Return a text that is wrapped at the width of the terminal."""
    return Text(printable(text))


def note(text: str) -> Text:
    """Return a remark."""
    return Text(printable(text), "dim")


def seconds(value: float | None) -> str:
    """Return seconds to milliseconds, very short and very long ones to six digits, ``-`` if there are none."""
    if value is None or math.isinf(value):
        return "-"
    return f"{value:.3f}" if value == 0 or 1e-3 <= abs(value) < 1e7 else f"{value:.5e}"


def tenths(value: float) -> str:
    """Return a figure with one decimal, a very large one with five digits."""
    return f"{value:.1f}" if abs(value) < 1e9 else f"{value:.4e}"


def percent(share: float | None) -> str:
    """Return a share in percent as a bare number, ``-`` if there is none; the header has to say what it is."""
    return "-" if share is None else f"{100 * share:.3f}"


def percents(figures: Figures | None, *names: Literal["mean", "median", "worst"]) -> list[str]:
    """Return some of the figures in percent."""
    return [percent(getattr(figures, name) if figures else None) for name in names]


def status(name: str) -> Text:
    """Return a status in its colour."""
    return Text(name.replace("_", " "), _STYLES.get(name, "bold red"))


def batch_rows(batch: Batch) -> list[tuple[str, str | Text]]:
    """Return the rows of a card that say what is planned."""
    return [
        ("batch", f"{batch.name} ({plural(len(batch.tasks), 'task')})"),
        ("GPU", f"{batch.gpus} x {batch.gpu.name}"),
    ]


def result_card(batch: Batch, result: Result) -> Table:
    """Return the card of a result."""
    rows = batch_rows(batch)
    rows.append(("status", status(result.status)))
    rows.append(("method", result.method))
    if result.schedule is not None:
        rows.append(("makespan", f"{seconds(result.makespan)} s"))
    if not math.isinf(result.lower_bound):
        rows.append(("lower bound", f"{seconds(result.lower_bound)} s"))
    if result.gap is not None:
        rows.append(("gap", "< 0.001%" if 0 < result.gap < 5e-6 else f"{result.gap:.3%}"))
    if result.schedule is not None:
        rows.append(("utilisation", f"{result.schedule.utilisation(batch):.1%}"))
    rows.append(("runtime", f"{result.runtime_s:.3f} s"))
    return card(rows)


def validation_card(batch: Batch, validation: Validation) -> Table:
    """Return the card of what the validator says."""
    rows = batch_rows(batch)
    if validation.valid:
        rows.append(("schedule", Text("valid", "bold green")))
    else:
        count = plural(len(validation.violations), "violation")
        rows.append(("schedule", Text(f"not valid, {count}", "bold red")))
    rows.append(("makespan", f"{seconds(validation.makespan)} s"))
    return card(rows)


def plan(batch: Batch, schedule: Schedule) -> RenderableType:
    """Return the plan by GPU and instance; a long one has one row for each instance, with a line that says so."""
    lifetimes = lifetimes_with_runs(batch, schedule)
    whole = sum(len(lifetime.steps) for lifetime in lifetimes) <= MOST_ROWS
    return _whole_plan(batch, lifetimes) if whole else _short_plan(batch, lifetimes)


def _whole_plan(batch: Batch, lifetimes: Iterable[Lifetime]) -> Table:
    rows: list[list[str | Text]] = []
    for lifetime in lifetimes:
        place = _place(batch, lifetime)
        for step in lifetime.steps:
            label = Text(printable(step.label), "" if step.is_run else "dim")
            rows.append([*place, label, seconds(step.begin), seconds(step.end)])
            place = [""] * len(place)
    return table([*_place_columns(batch), ("task", "text"), ("begin s", "number"), ("end s", "number")], rows)


def _short_plan(batch: Batch, lifetimes: Sequence[Lifetime]) -> Group:
    shown = lifetimes[:MOST_ROWS]
    columns: Columns = [("begin s", "number"), ("end s", "number"), ("runs", "number"), ("tasks", "cut")]
    rows = (
        [
            *_place(batch, lifetime),
            seconds(lifetime.begin),
            seconds(lifetime.last),
            str(len(lifetime.runs)),
            ", ".join(run.task for run in lifetime.runs),
        ]
        for lifetime in shown
    )
    remark = "One line for each instance"
    if len(shown) < len(lifetimes):
        remark = f"The first {len(shown)} of {len(lifetimes)} instances, one line for each"
    return Group(
        table([*_place_columns(batch), *columns], rows),
        Text(),
        note(f"{remark}: -o FILE or --json gives every run and operation."),
    )


def _place_columns(batch: Batch) -> Columns:
    return [("GPU", "number"), ("instance", "name")] if batch.gpus > 1 else [("instance", "name")]


def _place(batch: Batch, lifetime: Lifetime) -> list[str]:
    return [str(lifetime.gpu), str(lifetime)] if batch.gpus > 1 else [str(lifetime)]


def bounds_table(bounds: Iterable[Bound]) -> Table:
    """Return the bounds with their reasons."""
    return table(
        [("bound", "name"), ("seconds", "number"), ("because", "text")],
        ([bound.name, seconds(bound.value), bound.reason] for bound in bounds),
    )
