"""The tables of a study, and the bar that shows its progress."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, TypeVar

from rich.text import Text

from mig_opt.cli.progress import Bar, shown_bar
from mig_opt.cli.screens import Cell, Part, broken_label, bullets, note, percents, seconds, styled, table, tenths
from mig_opt.studies import StudyProgress, StudyRows
from mig_opt.studies.rows import Row
from mig_opt.studies.runs import StudyRun
from mig_opt.studies.summary import GOALS, Figures, Line, TraceLine, line_document
from mig_opt.texts import plural, printable

LineT = TypeVar("LineT", Line, TraceLine)

MOST_FAILURES = 10
"""Failures that are shown."""


class StudyBar(StudyProgress):
    """A bar of the runs of a study: how many are done and failed, and the last one.

    Parameters
    ----------
    bar : Bar
        Where it is shown.
    """

    def __init__(self, bar: Bar) -> None:
        self._bar = bar
        self._failed = 0

    def on_start(self, missing: Sequence[StudyRun], known: int) -> None:
        """Begin with what is known."""
        self._bar.show(total=known + len(missing), completed=known)

    def on_row(self, row: Row[StudyRun]) -> None:
        """Show the run that was done."""
        self._failed += bool(row.outcome.error)
        failed = f", {self._failed} failed" if self._failed else ""
        self._bar.show(f"runs{failed}, last: {row.run.label}", advance=1)


@contextlib.contextmanager
def shown_study_progress(*, quiet: bool) -> Iterator[StudyProgress | None]:
    """Show the progress of a study on standard error, if that is wanted and a terminal; gone at the end."""
    with shown_bar("runs", quiet=quiet) as bar:
        yield None if bar is None else StudyBar(bar)


def study_parts(found: StudyRows) -> Iterator[Part]:
    """Yield the tables of a study, each with its notes."""
    lines, simulated, failures = found.summary(), found.trace_summary(), found.failures
    if lines:
        numbers = [">runs", ">proven", ">gap %", ">median", ">worst", ">above %", ">worst", ">mean s"]
        yield from (_grouped_table("~batches, methods", numbers, lines, _batch_cells), "")
        yield note("gap %: mean, to the best bound of all runs on a batch.")
        yield from (note("above %: mean, over the shortest makespan of all runs on a batch, or on record."), "")
    if simulated:
        numbers = [">done", ">flow s", ">gap %", ">wait s", ">makespan s", ">gap %", ">ms"]
        yield from (_grouped_table("~traces, policies", numbers, simulated, _trace_cells), "")
        yield from (*_trace_notes(simulated), "", _winners(found), "")
    if failures:
        more = [f"and {len(failures) - MOST_FAILURES} more"] if len(failures) > MOST_FAILURES else []
        yield from ("Runs that failed:", bullets([*failures[:MOST_FAILURES], *more]), "")


def _grouped_table(
    first: str, numbers: Sequence[str], lines: Iterable[LineT], cells: Callable[[LineT], list[Cell]]
) -> Part:
    """Return a table with a row for each line, those of a group of batches or traces below its name."""
    rows: list[list[Cell]] = []
    for name, group in itertools.groupby(lines, key=attrgetter("cell")):
        rows.append([styled(name, "bold"), *[""] * len(numbers)])
        rows += map(cells, group)
    return table([first, *numbers], rows)


def _batch_cells(line: Line) -> list[Cell]:
    return [
        f"  {line.method}",
        f"{line.answered}/{line.runs}",
        str(line.proven),
        *percents(line.gap, "mean", "median", "worst"),
        *percents(line.above_best, "mean", "worst"),
        seconds(line.seconds.mean if line.seconds else None),
    ]


def _trace_cells(line: TraceLine) -> list[Cell]:
    return [
        broken_label(line.policy, "  "),
        f"{line.complete}/{line.runs}",
        _mean(line.completion),
        _mean(line.completion_gap, 100),
        _mean(line.wait),
        _mean(line.makespan),
        _mean(line.makespan_gap, 100),
        _mean(line.seconds, 1000),
    ]


def _mean(figures: Figures | None, factor: float = 1.0) -> str:
    return "-" if figures is None else tenths(factor * figures.mean)


def _trace_notes(lines: Sequence[TraceLine]) -> Iterator[Part]:
    yield note("done: traces on which all jobs were done, whose means the figures are. ms: of a simulation.")
    yield note("flow, wait: mean seconds from arrival to completion (flow time), and to start.")
    yield note("gap %: to the lower bound that no scheduler beats.")
    for line in lines:
        if line.unfinished:
            count = plural(line.unfinished, "job")
            yield f"{line.policy} leaves {count} waiting for ever: {printable(line.cell)}"


def _winners(found: StudyRows) -> Part:
    rows: list[list[Cell]] = []
    for entry in found.winners():
        policies: Cell = "; ".join(entry.policies) or "-"
        if ":" in policies:  # Labels with options have no spaces at which a line could end.
            policies = Text("\n").join(broken_label(policy, longest=40) for policy in entry.policies)
        rows.append([entry.cell, GOALS[entry.goal], policies])
    return table(["traces", "least", "~policy, and those within the spread"], rows)


def document(found: StudyRows, *, interrupted: bool) -> dict[str, Any]:
    """Return the tables of a study as a JSON document."""
    return {
        "done": len(found.rows),
        "missing": len(found.missing),
        "foreign": found.foreign,
        "interrupted": interrupted,
        "lines": [line_document(line) for line in found.summary()],
        "simulated": [line_document(line) for line in found.trace_summary()],
        "winners": [line_document(entry) for entry in found.winners()],
        "failures": found.failures,
        "contradictions": found.contradictions,
    }
