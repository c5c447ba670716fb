"""Rows of the study of exactness, and what decides a run besides its arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from bench.batch.runs import PYJOBSHOP, Run
from mig_opt.method.result import Status
from mig_opt.studies import environment, rows
from mig_opt.studies.rows import failures

__all__ = ["PACKAGES", "Records", "Row", "contradictions", "fingerprint", "pairs_of_optima"]

OTHER_PROBLEMS = (
    *("serving", "fleet", "operations", "simulation", "change", "defragment", "deploy", "explain", "prove", "stream"),
    *("concatenation", "files", "list_decoder", "requests", "study"),
)
"""Parts of the package that have no part in the runs of this study."""

PACKAGES = ("mig-opt", "ortools", "highspy", "pulp", "pyjobshop")

Row = rows.Row[Run]


class Records(rows.Records[Run]):
    """The rows in a file; ``keep`` lets those of other sources or versions count."""

    def __init__(self, path: Path, *, keep: bool = False) -> None:
        super().__init__(path, Run.read, keep=keep)


def fingerprint(method: str) -> str:
    """Return a hash of the sources of mig_opt that have a part in the runs, and of all versions."""
    more = [Path(__file__).with_name("pyjobshop_model.py")] if method == PYJOBSHOP else []
    return environment.fingerprint(PACKAGES, more, OTHER_PROBLEMS)


def contradictions(found: Iterable[Row]) -> list[str]:
    """Return what cannot be true: bounds above schedules of the same batch; and invalid schedules and failed runs."""
    found = list(found)
    return [*failures(found), *rows.contradictions(found)]


def pairs_of_optima(rows: Iterable[Row]) -> int:
    """Return how many pairs of runs proved an optimum of the same batch."""
    proven = Counter(row.run.batch_key for row in rows if row.outcome.status == Status.OPTIMAL)
    return sum(count * (count - 1) // 2 for count in proven.values())
