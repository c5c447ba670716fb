"""The report of a study, and the bar that shows its progress."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

from mig_opt.cli.figures import broken_label, percents, tenths
from mig_opt.cli.progress import Bar
from mig_opt.method.report import Cell, Part, Points, Report, Table, data_of, strong
from mig_opt.studies import StudyProgress, StudyRows
from mig_opt.studies.rows import Row
from mig_opt.studies.runs import StudyRun
from mig_opt.studies.summary import GOALS, Figures, Line, TraceLine, Winners, line_document
from mig_opt.texts import plural

LineT = TypeVar("LineT", Line, TraceLine)

MOST_FAILURES = 10
"""Failures that are shown."""


class StudyBar(StudyProgress):
    """A bar of the runs of a study: how many are done and failed, and the last one."""

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


def study_report(found: StudyRows, results: Path, *, interrupted: bool, table: bool) -> Report:
    """Return the report of a study whose rows are in a file: tables with notes, failures, and how much is done."""
    lines, simulated, failures = found.summary(), found.trace_summary(), found.failures
    parts: list[Part] = []
    if lines:
        numbers = [">runs", ">proven", ">gap %", ">median", ">worst", ">above %", ">worst", ">mean s"]
        notes = [
            "gap %: mean, to the best bound of all runs on a batch.",
            "above %: mean, over the shortest makespan of all runs on a batch, or on record.",
        ]
        parts.append(_grouped_table(["~batches, methods", *numbers], lines, _batch_cells, notes))
    if simulated:
        numbers = [">done", ">flow s", ">gap %", ">wait s", ">makespan s", ">gap %", ">ms"]
        notes = [
            "done: traces on which all jobs were done, whose means the figures are. ms: of a simulation.",
            "flow, wait: mean seconds from arrival to completion (flow time), and to start.",
            "gap %: to the lower bound that no scheduler beats.",
            *(
                f"{line.policy} leaves {plural(line.unfinished, 'job')} waiting for ever: {line.cell}"
                for line in simulated
                if line.unfinished
            ),
        ]
        parts += [_grouped_table(["~traces, policies", *numbers], simulated, _trace_cells, notes), _winners(found)]
    if failures:
        more = [f"and {len(failures) - MOST_FAILURES} more"] if len(failures) > MOST_FAILURES else []
        parts.append(Points([*failures[:MOST_FAILURES], *more], "Runs that failed:"))
    counts = {"done": len(found.rows), "missing": len(found.missing), "foreign": found.foreign}
    summaries: dict[str, Sequence[Line | TraceLine | Winners]]
    summaries = {"lines": lines, "simulated": simulated, "winners": found.winners()}
    documents = {key: list(map(line_document, each)) for key, each in summaries.items()}
    data = {**counts, "interrupted": interrupted, **documents, **data_of(found, "failures", "contradictions")}
    return Report((), parts, list(_progress(found, results, interrupted=interrupted, table=table)), data)


def _progress(found: StudyRows, results: Path, *, interrupted: bool, table: bool) -> Iterator[str]:
    """Yield how much of a study is done."""
    if found.foreign:
        were = "was" if found.foreign == 1 else "were"
        yield f"{plural(found.foreign, 'run')} {were} made with other sources or versions."
    total = len(found.rows) + len(found.missing)
    if interrupted:
        yield f"Interrupted after {len(found.rows)} of {total} runs; the same command goes on from here."
    elif found.missing:
        hint = "without --table they are done" if table else "run the command again"
        yield f"{len(found.missing)} of {total} runs are missing; {hint}."
    if found.rows:
        yield f"{plural(len(found.rows), 'row')} in {results}."


def _grouped_table(
    columns: Sequence[str], lines: Iterable[LineT], cells: Callable[[LineT], list[Cell]], notes: Sequence[str]
) -> Table:
    """Return a table with a row for each line, those of a group of batches or traces below its name."""
    rows: list[list[Cell]] = []
    for name, group in itertools.groupby(lines, key=attrgetter("cell")):
        rows.append([strong(name), *[""] * (len(columns) - 1)])
        rows += map(cells, group)
    return Table(columns, rows, notes)


def _batch_cells(line: Line) -> list[Cell]:
    return [
        f"  {line.method}",
        f"{line.answered}/{line.runs}",
        str(line.proven),
        *percents(line.gap, "mean", "median", "worst"),
        *percents(line.above_best, "mean", "worst"),
        f"{line.seconds.mean:.3f}" if line.seconds else "-",
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


def _winners(found: StudyRows) -> Table:
    rows: list[list[Cell]] = []
    for entry in found.winners():
        policies: Cell = "; ".join(entry.policies) or "-"
        if ":" in policies:  # Labels with options have no spaces at which a line could end.
            policies = tuple(line for policy in entry.policies for line in broken_label(policy, longest=40))
        rows.append([entry.cell, GOALS[entry.goal], policies])
    return Table(["traces", "least", "~policy, and those within the spread"], rows)
