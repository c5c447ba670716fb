"""Rows of a study: one line of JSON for each run, so that a study that was killed goes on where it was."""

from __future__ import annotations

import dataclasses
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from mig_opt.errors import InputError, Problem
from mig_opt.result import Status
from mig_opt.studies.outcome import Outcome, contradictory


class Keyed(Protocol):
    """A run that is to be done: of one batch (or trace), by one method, with certain arguments."""

    @property
    def key(self) -> str:
        """All of it, as one line of JSON: an object."""

    @property
    def batch_key(self) -> str:
        """What tells the batch from others."""

    @property
    def label(self) -> str:
        """What messages call the run."""


class StudyRun(Keyed, Protocol):
    """A run of a study: of a method on a batch, or of a scheduler on a trace."""

    @property
    def source(self) -> Mapping[str, Any]:
        """What the batch or the trace is, as far as the key says it."""

    @property
    def cell(self) -> str:
        """What tables call the group of batches or traces."""

    @property
    def column(self) -> str:
        """What tables call the method or scheduler with its arguments."""

    def perform(self) -> Outcome:
        """Do the run in this process; what goes wrong is an exception, or the error of the outcome."""


R = TypeVar("R", bound=Keyed)


@dataclass(frozen=True)  # with slots, Row[...](...) fails in Python 3.11
class Row(Generic[R]):
    """A run, what it gave, and what it was made with.

    Attributes
    ----------
    run
        The run.
    outcome : Outcome
        What it gave.
    fingerprint : str
        Of the sources and versions that it ran with.
    date : str
        When it ended (ISO 8601, UTC).
    environment : mapping
        Machine and versions.
    """

    run: R
    outcome: Outcome
    fingerprint: str
    date: str
    environment: Mapping[str, Any] = field(default_factory=dict, hash=False)


class Records(Generic[R]):
    """The rows in a file.

    Parameters
    ----------
    path : Path or None
        The file; it need not exist. What a killed study left of its last line is dropped. None: rows are only kept in
        memory.
    read : callable
        Makes the run out of the JSON object that its key is.
    keep : bool
        Whether rows of other sources or versions count where there is none of the present ones.

    Raises
    ------
    InputError
        If the file is there but cannot be read, or has lines that are no rows; it names them all.
    """

    def __init__(self, path: Path | None, read: Callable[[Mapping[str, Any]], R], *, keep: bool = False) -> None:
        self._path = path
        self._keep = keep
        self._rows: dict[tuple[str, str], Row[R]] = {}
        self._latest: dict[str, Row[R]] = {}
        self._whole: int | None = None
        if path is not None and path.exists():
            for row in _rows(path, read):
                self._remember(row)

    def _remember(self, row: Row[R]) -> None:
        self._rows[row.run.key, row.fingerprint] = row
        self._latest[row.run.key] = row

    def find(self, run: R, current: str) -> Row[R] | None:
        """Return the row of a run with the fingerprint ``current``, or the latest one if others count."""
        return self._rows.get((run.key, current)) or (self._latest.get(run.key) if self._keep else None)

    def add(self, run: R, outcome: Outcome, current: str, environment: Mapping[str, Any] | None = None) -> Row[R]:
        """Write a row at the end of the file; when this returns it is on the disk."""
        row = Row(run, outcome, current, datetime.now(UTC).isoformat(timespec="seconds"), environment or {})
        if self._path is not None:
            document = {
                "run": json.loads(run.key),
                "outcome": _outcome_document(outcome),
                "fingerprint": current,
                "date": row.date,
                "environment": dict(row.environment),
            }
            self._append(self._path, json.dumps(document).encode() + b"\n")
        self._remember(row)
        return row

    def _append(self, path: Path, line: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as file:
            if self._whole is None:
                file.truncate(_whole_lines(path))
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
            self._whole = file.tell()


def _outcome_document(outcome: Outcome) -> dict[str, Any]:
    document = dataclasses.asdict(outcome)
    return document if outcome.figures else {key: value for key, value in document.items() if key != "figures"}


def _whole_lines(path: Path) -> int:
    """Return the length of a file without a last line that has no end."""
    return path.read_bytes().rfind(b"\n") + 1


def _rows(path: Path, read: Callable[[Mapping[str, Any]], R]) -> Iterator[Row[R]]:
    from mig_opt.files.documents import read_text

    problems = []
    text = read_text(path)
    for number, line in enumerate(text[: text.rfind("\n") + 1].splitlines(), 1):
        try:
            fields = json.loads(line)
            yield Row(
                read(fields["run"]),
                Outcome(**fields["outcome"]),
                fields["fingerprint"],
                fields["date"],
                fields.get("environment", {}),
            )
        except (ValueError, TypeError, KeyError):
            problems.append(Problem(f"line {number}", "is no row of such a study; name another file, or remove it"))
    if problems:
        raise InputError(problems, str(path))


def contradictions(rows: Iterable[Row[R]]) -> list[str]:
    """Return what cannot be true: a lower bound above a schedule of the same batch, whoever found them.

    Two optima that differ are one case of it.
    """
    return contradictory((row.run.label, row.run.batch_key, row.outcome) for row in rows)


def failures(rows: Iterable[Row[R]]) -> list[str]:
    """Return what went wrong: runs without a result, and schedules that are not valid."""
    return [f"{row.run.label}: {row.outcome.error}" for row in rows if row.outcome.error]


def pairs_of_optima(rows: Iterable[Row[R]]) -> int:
    """Return how many pairs of runs proved an optimum of the same batch."""
    proven = Counter(row.run.batch_key for row in rows if row.outcome.status == Status.OPTIMAL)
    return sum(count * (count - 1) // 2 for count in proven.values())
