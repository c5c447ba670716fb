"""Results of the study of schedulers: multiples of the lower bounds, their spread, and the best on some traces."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mig_opt.studies.rows import Row
from mig_opt.studies.runs import StudyRun
from mig_opt.studies.summary import Goal, best, grouped


@dataclass(frozen=True, slots=True)
class PolicyResult:
    """A simulation after which nothing was left to do, or one after which something was.

    Attributes
    ----------
    regime, family, trace, draw, policy : str
        Which: ``trace`` tells it from all others, ``draw`` is its seed or its file.
    values : mapping of str to float
        Seconds by goal; empty if jobs were left waiting for ever, or the run failed.
    ratios : mapping of str to float
        The same, as multiples of the lower bound.
    wait : float
        Mean seconds from arrival to start.
    seconds : float
        What the simulation took.
    """

    regime: str
    family: str
    trace: str
    draw: str
    policy: str
    values: Mapping[Goal, float]
    ratios: Mapping[Goal, float]
    wait: float
    seconds: float

    @classmethod
    def of(cls, row: Row[StudyRun]) -> PolicyResult:
        """Return what a row says."""
        run, figures, source = row.run, row.outcome.figures, row.run.source
        family = source.get("family", "openb")
        draw = str(source.get("seed", source.get("file")))
        if row.outcome.error or figures["unfinished"]:
            return cls(run.cell, family, run.batch_key, draw, run.column, {}, {}, 0.0, row.outcome.seconds)
        values: dict[Goal, float] = {
            "mean_completion": figures["completion"]["mean"],
            "makespan": figures["makespan"],
        }
        ratios = {goal: value / figures["lower_bounds"][goal] for goal, value in values.items()}
        seconds = row.outcome.seconds
        return cls(run.cell, family, run.batch_key, draw, run.column, values, ratios, figures["wait"]["mean"], seconds)


def winning(results: Iterable[PolicyResult], goal: Goal) -> tuple[str, ...]:
    """Return who is best on some traces, and who ties with it."""
    by_policy = grouped(results, lambda result: result.policy)
    return best({name: {run.trace: run.values[goal] for run in own if run.values} for name, own in by_policy.items()})


def ratio(results: Sequence[PolicyResult], goal: Goal) -> tuple[float, float] | None:
    """Return the mean multiple of the lower bound, and how it spreads over the draws; None if a job was left.

    The spread is the standard deviation of the means of the draws: of all traces with the same seed, or of a file.
    """
    if not all(result.ratios for result in results):
        return None
    means = [
        statistics.fmean(result.ratios[goal] for result in own)
        for own in grouped(results, lambda result: result.draw).values()
    ]
    mean = statistics.fmean(result.ratios[goal] for result in results)
    return mean, statistics.stdev(means) if len(means) > 1 else 0.0
