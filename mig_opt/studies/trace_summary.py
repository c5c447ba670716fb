"""How schedulers compare on groups of traces: their figures, distances to the lower bounds, and who is best."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mig_opt.batch.integer_time import RESOLUTION
from mig_opt.studies.summary import Entry, Figures

Goal = Literal["mean_completion", "makespan"]
"""Mean seconds from the arrival of a job to its end, or seconds from the start of the trace to the last end."""

GOALS: Mapping[Goal, str] = {"mean_completion": "time to end", "makespan": "makespan"}
"""What schedulers are compared by, and what tables call it."""

_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class TraceLine:
    """The runs of a scheduler on a group of traces.

    Attributes
    ----------
    cell, policy : str
        Which runs.
    runs : int
        How many there are.
    complete : int
        On how many traces all jobs were done. The figures are of these.
    unfinished : int
        How many jobs were left waiting for ever on the others.
    failed : int
        How many runs ended with an error.
    completion, wait, makespan : Figures or None
        Of the traces: mean seconds from arrival to end and from arrival to start, and seconds to the last end.
    completion_gap, makespan_gap : Figures or None
        ``(value - bound) / value``, to the lower bounds of the trace.
    seconds : Figures or None
        What the simulation took.
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
    """The best schedulers on a group of traces.

    Attributes
    ----------
    cell : str
        The traces.
    goal : str
        By what: ``mean_completion`` or ``makespan``.
    policies : tuple of str
        The one with the least geometric mean first, then those that differ from it by no more than the spread over
        the traces explains. Empty if none had all jobs done on all traces.
    """

    cell: str
    goal: Goal
    policies: tuple[str, ...]


def summarise_traces(entries: Iterable[Entry]) -> list[TraceLine]:
    """Return a line for each scheduler in each group of traces, in the order in which they come."""
    return [
        _line(cell, policy, runs) for cell, by_policy in _by_cell(entries).items() for policy, runs in by_policy.items()
    ]


def winners(entries: Iterable[Entry]) -> list[Winners]:
    """Return the best schedulers in each group of traces, by each goal; see :func:`best`."""
    return [
        Winners(cell, goal, best({policy: _values(runs, goal) for policy, runs in by_policy.items()}))
        for cell, by_policy in _by_cell(entries).items()
        for goal in GOALS
    ]


def best(values: Mapping[str, Mapping[str, float]]) -> tuple[str, ...]:
    """Return who has the least values, and who ties with it.

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
    from scipy.special import stdtrit  # slow to load

    ratios = [math.log(value / least[trace]) for trace, value in values.items()]
    mean, count = statistics.fmean(ratios), len(ratios)
    spread = statistics.stdev(ratios) if count > 1 else 0.0
    width = float(stdtrit(count - 1, (1 + _CONFIDENCE) / 2)) * spread / math.sqrt(count) if spread else 0.0
    return mean - width <= RESOLUTION


def trace_line_document(line: TraceLine | Winners) -> dict[str, Any]:
    """Return a line as a part of a JSON document; shares and seconds in full."""
    return dataclasses.asdict(line)


def _by_cell(entries: Iterable[Entry]) -> dict[str, dict[str, list[Entry]]]:
    cells: dict[str, dict[str, list[Entry]]] = {}
    for entry in entries:
        cells.setdefault(entry.cell, {}).setdefault(entry.method, []).append(entry)
    return cells


def _values(runs: Sequence[Entry], goal: Goal) -> dict[str, float]:
    """Return what was reached on each trace where all jobs were done."""
    return {
        run.batch: run.outcome.makespan if goal == "makespan" else run.outcome.figures["completion"]["mean"]
        for run in runs
        if run.outcome.answered and run.outcome.makespan is not None
    }


def _line(cell: str, policy: str, runs: Sequence[Entry]) -> TraceLine:
    done = [run.outcome.figures for run in runs if run.outcome.answered]
    return TraceLine(
        cell=cell,
        policy=policy,
        runs=len(runs),
        complete=len(done),
        unfinished=sum(run.outcome.figures.get("unfinished", 0) for run in runs if not run.outcome.error),
        failed=sum(bool(run.outcome.error) for run in runs),
        completion=Figures.of(figures["completion"]["mean"] for figures in done),
        completion_gap=Figures.of(figures["gaps"]["mean_completion"] for figures in done),
        wait=Figures.of(figures["wait"]["mean"] for figures in done),
        makespan=Figures.of(figures["makespan"] for figures in done),
        makespan_gap=Figures.of(figures["gaps"]["makespan"] for figures in done),
        seconds=Figures.of(run.outcome.seconds for run in runs if run.outcome.answered),
    )
