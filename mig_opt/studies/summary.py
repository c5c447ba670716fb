"""How far methods are from the best bound and from the best schedule, on each batch and by groups of batches."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mig_opt.result import Status, relative_gap
from mig_opt.studies.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Entry:
    """One run, as tables see it.

    Attributes
    ----------
    batch : str
        Runs with the same one are of the same batch, or trace.
    cell : str
        Batches, or traces, that are summarised together.
    method : str
        The method, or scheduler, with its arguments, as tables call it.
    outcome : Outcome
        What the run gave.
    """

    batch: str
    cell: str
    method: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Judged:
    """A run beside the best of all runs on its batch.

    Attributes
    ----------
    entry : Entry
        The run.
    best_bound : float or None
        The greatest lower bound that any run found, in seconds.
    best_known : float or None
        The shortest makespan that any run found, or that is on record, in seconds.
    """

    entry: Entry
    best_bound: float | None
    best_known: float | None

    @property
    def gap(self) -> float | None:
        """``(makespan - best_bound) / makespan``; None without a schedule."""
        outcome = self.entry.outcome
        if not outcome.answered or outcome.makespan is None or self.best_bound is None:
            return None
        return relative_gap(outcome.makespan, min(self.best_bound, outcome.makespan))

    @property
    def above_best(self) -> float | None:
        """``makespan / best_known - 1``; None without a schedule."""
        outcome = self.entry.outcome
        if not outcome.answered or outcome.makespan is None or self.best_known is None:
            return None
        if outcome.makespan - self.best_known <= outcome.tolerance:
            return 0.0
        return outcome.makespan / self.best_known - 1 if self.best_known > 0 else math.inf


@dataclass(frozen=True, slots=True)
class Figures:
    """Mean, median and worst of some figures.

    Examples
    --------
    >>> Figures.of([0.0, 0.01, 0.05])
    Figures(mean=0.02, median=0.01, worst=0.05)
    """

    mean: float
    median: float
    worst: float

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Figures | None:
        """Return them; None if there are no values (None is no value)."""
        found = [value for value in values if value is not None]
        if not found:
            return None
        return cls(statistics.fmean(found), statistics.median(found), max(found))


@dataclass(frozen=True, slots=True)
class Line:
    """The runs of a method in a cell.

    Attributes
    ----------
    cell, method : str
        Which runs.
    runs : int
        How many there are.
    answered : int
        How many of them gave a valid schedule. The figures are of these.
    proven : int
        How many proved theirs optimal.
    best : int
        How many found the best known makespan.
    failed : int
        How many ended with an error.
    gap, above_best, seconds : Figures or None
        Gap to the best bound, makespan above the best known (both as shares), and time that the caller waited.
    """

    cell: str
    method: str
    runs: int
    answered: int
    proven: int
    best: int
    failed: int
    gap: Figures | None
    above_best: Figures | None
    seconds: Figures | None


def judge(entries: Sequence[Entry], on_record: Mapping[str, float] | None = None) -> list[Judged]:
    """Return each run beside the best of all on its batch.

    Parameters
    ----------
    entries : sequence of Entry
        The runs.
    on_record : mapping of str to float, optional
        Makespans that are known from elsewhere, by batch.
    """
    bounds: dict[str, float] = {}
    makespans = dict(on_record or {})
    for entry in entries:
        outcome = entry.outcome
        if outcome.answered and outcome.makespan is not None:
            makespans[entry.batch] = min(makespans.get(entry.batch, math.inf), outcome.makespan)
        if outcome.lower_bound is not None and not outcome.error:
            bounds[entry.batch] = max(bounds.get(entry.batch, 0.0), outcome.lower_bound)
    return [Judged(entry, bounds.get(entry.batch), makespans.get(entry.batch)) for entry in entries]


def summarise(judged: Iterable[Judged], *, by_cell: bool = True) -> list[Line]:
    """Return a line for each method in each cell, or for each method; in the order in which they come."""
    groups: dict[tuple[str, str], list[Judged]] = {}
    for run in judged:
        groups.setdefault((run.entry.cell if by_cell else "", run.entry.method), []).append(run)
    cells = list(dict.fromkeys(cell for cell, _ in groups))
    ordered = sorted(groups.items(), key=lambda group: cells.index(group[0][0]))
    return [_line(cell, method, runs) for (cell, method), runs in ordered]


def _line(cell: str, method: str, runs: Sequence[Judged]) -> Line:
    outcomes = [run.entry.outcome for run in runs]
    return Line(
        cell=cell,
        method=method,
        runs=len(runs),
        answered=sum(outcome.answered for outcome in outcomes),
        proven=sum(outcome.answered and outcome.status == Status.OPTIMAL for outcome in outcomes),
        best=sum(run.above_best == 0 for run in runs),
        failed=sum(bool(outcome.error) for outcome in outcomes),
        gap=Figures.of(run.gap for run in runs),
        above_best=Figures.of(run.above_best for run in runs),
        seconds=Figures.of(outcome.seconds for outcome in outcomes if outcome.answered),
    )


def line_document(line: Line) -> dict[str, Any]:
    """Return a line as a part of a JSON document; shares and seconds in full."""
    document = dataclasses.asdict(line)
    return {key: value for key, value in document.items() if key != "cell" or value}
