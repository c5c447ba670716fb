"""Summaries of rows: distances to the best bound and the best schedule, and the best schedulers on groups of traces."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from mig_opt.method.result import RESOLUTION, Status, relative_gap
from mig_opt.studies.rows import Row
from mig_opt.studies.runs import StudyRun

Goal = Literal["mean_completion", "makespan"]
"""Mean flow time of the jobs (arrival to completion), or makespan (start of the trace to last end), in seconds."""

GOALS: Mapping[Goal, str] = {"mean_completion": "flow time", "makespan": "makespan"}
"""Goals by which schedulers are compared, and their names in tables."""

_CONFIDENCE = 0.95

T = TypeVar("T")
K = TypeVar("K")
J = TypeVar("J", bound=Row[Any])


@dataclass(frozen=True)
class Judged(Row[StudyRun]):
    """A row of a method beside the best of all rows of its batch, in seconds."""

    best_bound: float | None = None  # the greatest lower bound that any run found
    best_known: float | None = None  # the shortest makespan that any run found, or that is on record

    @property
    def gap(self) -> float | None:
        """``(makespan - best_bound) / makespan``; None without a schedule."""
        outcome = self.outcome
        if not outcome.answered or outcome.makespan is None or self.best_bound is None:
            return None
        return relative_gap(outcome.makespan, min(self.best_bound, outcome.makespan))

    @property
    def above_best(self) -> float | None:
        """``makespan / best_known - 1``; None without a schedule."""
        outcome = self.outcome
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
    """Summary of the runs of a method in a cell: numbers of runs, and figures of those with a valid schedule.

    They are ``answered`` with a valid schedule, ``proven`` optimal, as good as the ``best`` known, or ``failed`` with
    an error. ``gap`` to the best bound and makespan ``above_best`` known are shares, ``seconds`` those of the caller.
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


@dataclass(frozen=True, slots=True)
class TraceLine:
    """Summary of the runs of a scheduler on a group of traces: numbers of runs, and figures of the complete ones.

    Runs are ``complete`` if all jobs were done, or ``failed`` with an error; ``unfinished`` counts jobs left waiting
    for ever. ``completion`` and ``wait`` are the mean seconds from arrival to completion (flow time) and to start,
    ``makespan`` is the last end; gaps to the lower bounds of the trace are ``(value - bound) / value``; ``seconds`` are
    those of the simulation.
    """

    cell: str
    policy: str
    runs: int
    complete: int
    unfinished: int
    failed: int
    completion: Figures | None
    completion_gap: Figures | None
    wait: Figures | None
    makespan: Figures | None
    makespan_gap: Figures | None
    seconds: Figures | None


@dataclass(frozen=True, slots=True)
class Winners:
    """The best schedulers on a group of traces by a goal; none if none had all jobs done on all traces.

    The one with the least geometric mean is first, then those that differ from it by no more than the spread over the
    traces explains.
    """

    cell: str
    goal: Goal
    policies: tuple[str, ...]


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return items by a key, in the order in which the keys come."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def judge(rows: Sequence[Row[Any]], on_record: Mapping[str, float] | None = None) -> list[Judged]:
    """Return each run of a method beside the best of all on its batch.

    ``on_record`` has makespans that are known from elsewhere, by the key of the batch.
    """
    bounds: dict[str, float] = {}
    makespans = dict(on_record or {})
    for row in rows:
        batch, outcome = row.run.batch_key, row.outcome
        if outcome.answered and outcome.makespan is not None:
            makespans[batch] = min(makespans.get(batch, math.inf), outcome.makespan)
        if outcome.lower_bound is not None and not outcome.error:
            bounds[batch] = max(bounds.get(batch, 0.0), outcome.lower_bound)
    return [
        Judged(**vars(row), best_bound=bounds.get(row.run.batch_key), best_known=makespans.get(row.run.batch_key))
        for row in rows
    ]


def summarise(judged: Iterable[Judged], *, by_cell: bool = True) -> list[Line]:
    """Return a line for each method in each cell, or for each method; in the order in which they come."""
    return _lines(judged, _line, by_cell=by_cell)


def summarise_traces(rows: Iterable[Row[Any]], *, by_cell: bool = True) -> list[TraceLine]:
    """Return a line for each scheduler in each group of traces, or for each; in the order in which they come."""
    return _lines(rows, _trace_line, by_cell=by_cell)


def _lines(rows: Iterable[J], line: Callable[[str, str, Sequence[J]], T], *, by_cell: bool = True) -> list[T]:
    return [
        line(cell, column, runs)
        for cell, own in grouped(rows, lambda row: row.run.cell if by_cell else "").items()
        for column, runs in grouped(own, lambda row: row.run.column).items()
    ]


def _line(cell: str, method: str, runs: Sequence[Judged]) -> Line:
    outcomes = [run.outcome for run in runs]
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


def _trace_line(cell: str, policy: str, rows: Sequence[Row[Any]]) -> TraceLine:
    outcomes = [row.outcome for row in rows]
    answered = [outcome for outcome in outcomes if outcome.answered]
    done = [outcome.figures for outcome in answered]
    return TraceLine(
        cell=cell,
        policy=policy,
        runs=len(outcomes),
        complete=len(done),
        unfinished=sum(outcome.figures.get("unfinished", 0) for outcome in outcomes if not outcome.error),
        failed=sum(bool(outcome.error) for outcome in outcomes),
        completion=Figures.of(figures["completion"]["mean"] for figures in done),
        completion_gap=Figures.of(figures["gaps"]["mean_completion"] for figures in done),
        wait=Figures.of(figures["wait"]["mean"] for figures in done),
        makespan=Figures.of(figures["makespan"] for figures in done),
        makespan_gap=Figures.of(figures["gaps"]["makespan"] for figures in done),
        seconds=Figures.of(outcome.seconds for outcome in answered),
    )


def line_document(line: Line | TraceLine | Winners) -> dict[str, Any]:
    """Return a line as a part of a JSON document; shares and seconds in full."""
    return {key: value for key, value in dataclasses.asdict(line).items() if key != "cell" or value}


def winners(rows: Iterable[Row[Any]]) -> list[Winners]:
    """Return the best schedulers in each group of traces, by each goal; see :func:`best`."""
    found = []
    for cell, own in grouped(rows, lambda row: row.run.cell).items():
        by_policy = grouped(own, lambda row: row.run.column)
        for goal in GOALS:
            values = {policy: _values(runs, goal) for policy, runs in by_policy.items()}
            found.append(Winners(cell, goal, best(values)))
    return found


def _values(rows: Sequence[Row[Any]], goal: Goal) -> dict[str, float]:
    """Return the values of a goal on each trace where all jobs were done."""
    done = ((row.run.batch_key, row.outcome.figures) for row in rows if row.outcome.answered)
    return {
        trace: figures["makespan"] if goal == "makespan" else figures["completion"]["mean"] for trace, figures in done
    }


def best(values: Mapping[str, Mapping[str, float]]) -> tuple[str, ...]:
    """Return the scheduler with the least values, and those that tie with it.

    The values of two schedulers are compared trace by trace, by the logarithm of their ratio. One ties with the best
    if the mean of these is not positive with a confidence of 95 % (Student's t, paired, two-sided). A single trace, or
    the same ratio on all, has no spread: then only equal values are ties.

    Parameters
    ----------
    values : mapping of str to mapping of str to float
        For each scheduler the value on each trace. Those that lack a trace that another one has are out.

    Examples
    --------
    >>> best({"a": {"x": 10.0, "y": 20.0, "z": 30.0}, "b": {"x": 11.0, "y": 19.0, "z": 31.0}, "c": {"x": 1.0}})
    ('a', 'b')
    >>> best({"a": {"x": 10.0, "y": 20.0, "z": 30.0}, "b": {"x": 11.0, "y": 22.1, "z": 33.0}})
    ('a',)
    """
    traces = {trace for found in values.values() for trace in found}
    whole = {name: found for name, found in values.items() if traces and len(found) == len(traces)}
    if not whole:
        return ()
    means = {name: statistics.fmean(map(math.log, found.values())) for name, found in whole.items()}
    order = sorted(whole, key=means.__getitem__)
    first = whole[order[0]]
    return (order[0], *(name for name in order[1:] if _ties(whole[name], first)))


def _ties(values: Mapping[str, float], least: Mapping[str, float]) -> bool:
    ratios = [math.log(value / least[trace]) for trace, value in values.items()]
    excess, count = statistics.fmean(ratios) - RESOLUTION, len(ratios)
    spread = statistics.stdev(ratios) if count > 1 else 0.0
    return excess <= 0 or (spread > 0 and _confidence(excess / spread * math.sqrt(count), count - 1) <= _CONFIDENCE)


def _confidence(t: float, degrees: int) -> float:
    """Return the probability that Student's t is between -t and t (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    angle, odd = math.atan(t / math.sqrt(degrees)), degrees % 2
    term, total = math.cos(angle) if odd else 1.0, 0.0
    for step in range(2 + odd, degrees + 1, 2):
        total += term
        term *= (step - 1) / step * math.cos(angle) ** 2
    within = math.sin(angle) * total
    return (angle + within) * 2 / math.pi if odd else within
