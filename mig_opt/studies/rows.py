"""Rows of a study: the outcome of each run, one line of JSON in a file, so that a killed study goes on where it was.

Rows that are kept for long stand in a compressed file beside it: those of ``rows.jsonl`` in ``rows.jsonl.xz``. New rows
are always lines at the end of the plain file. Either name stands for both.
"""

from __future__ import annotations

import dataclasses
import json
import lzma
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from mig_opt.errors import InputError, MigOptError, Problem, raise_any
from mig_opt.files.documents import decoded, make_folder, read_bytes, write_bytes
from mig_opt.method.result import Status, relative_gap

CRASHED = "crashed"
"""Status of a run that ended without a result."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result and measurements of a run.

    ``figures`` are more that was measured; of a simulation its :class:`~mig_opt.simulation.Metrics`, ``unfinished``
    jobs, the ``lower_bounds`` of the trace and the ``gaps`` to them.
    """

    status: str  # a Status, ``crashed``, or ``unfinished`` after a simulation in which jobs wait for ever
    seconds: float  # wall-clock time that the caller waited
    makespan: float | None = None  # seconds; None without a schedule
    lower_bound: float | None = None  # seconds; None where there is no schedule at all, and where nothing is known
    tolerance: float = 0.0  # makespans and bounds that differ by no more than these seconds are the same
    seconds_to_gap: Mapping[str, float] = field(default_factory=dict, hash=False)  # for the gaps that were reached
    peak_bytes: int | None = None  # most memory of the process, where a run had one of its own
    error: str = ""  # why a run has no result or its schedule is not valid
    figures: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def gap(self) -> float:
        """``(makespan - lower_bound) / makespan``; infinite without a schedule or a bound."""
        if self.makespan is None or self.lower_bound is None:
            return math.inf
        return relative_gap(self.makespan, self.lower_bound)

    @property
    def answered(self) -> bool:
        """True if there is a schedule, and it is valid."""
        return self.makespan is not None and not self.error


def shielded(run: Callable[[], Outcome]) -> Outcome:
    """Return the outcome of ``run``; an exception becomes an outcome that tells it."""
    begin = time.perf_counter()
    try:
        return run()
    except Exception as error:  # whatever a method raises belongs to its row
        own = isinstance(error, MigOptError)
        message = str(error) if own else f"{type(error).__name__}: {error}".removesuffix(": ")
        return Outcome(CRASHED, time.perf_counter() - begin, error=message)


class Run(Protocol):
    """A run that can have a row."""

    @property
    def key(self) -> str:
        """All that decides the run, as one line of JSON: an object."""

    @property
    def batch_key(self) -> str:
        """Text that tells its batch (or trace) from others."""

    @property
    def label(self) -> str:
        """Name of the run in messages."""


R = TypeVar("R", bound=Run)
T = TypeVar("T")


@dataclass(frozen=True)  # with slots, Row[...](...) fails in Python 3.11
class Row(Generic[R]):
    """A run with its outcome, the machine and versions, the hash of all these, and when it ended (ISO 8601, UTC)."""

    run: R
    outcome: Outcome
    environment: Mapping[str, Any] = field(default_factory=dict, hash=False)
    fingerprint: str = ""
    date: str = ""


class Records(Generic[R]):
    """The rows in a file and in the compressed file beside it; neither need exist. Without a path: only in memory.

    A last line without an end, left by a killed study, is dropped. ``read`` makes the run out of the JSON object that
    its key is. With ``keep``, rows of other sources or versions count where there is none of the present ones.
    """

    def __init__(self, path: Path | None, read: Callable[[Mapping[str, Any]], R], *, keep: bool = False) -> None:
        self._path = None if path is None else plain(path)
        self._keep = keep
        self._rows: dict[tuple[str, str], Row[R]] = {}
        self._latest: dict[str, Row[R]] = {}
        self._torn = True

        def row(fields: Mapping[str, Any]) -> Row[R]:
            run, outcome = read(fields["run"]), Outcome(**fields["outcome"])
            return Row(run, outcome, fields.get("environment", {}), fields["fingerprint"], fields["date"])

        for found, _ in () if self._path is None else _lines(self._path, row):
            self._remember(found)

    def _remember(self, row: Row[R]) -> None:
        self._rows[row.run.key, row.fingerprint] = row
        self._latest[row.run.key] = row

    def find(self, run: R, current: str) -> Row[R] | None:
        """Return the row of a run with the fingerprint ``current``, or the latest one if others count."""
        return self._rows.get((run.key, current)) or (self._latest.get(run.key) if self._keep else None)

    def add(self, run: R, outcome: Outcome, environment: Mapping[str, Any], current: str) -> Row[R]:
        """Write a row at the end of the file; when this returns it is on the disk."""
        row = Row(run, outcome, environment, current, datetime.now(UTC).isoformat(timespec="seconds"))
        if self._path is not None:
            found = dataclasses.asdict(outcome)
            if not outcome.figures:
                del found["figures"]
            document = {"run": json.loads(run.key), "outcome": found, "fingerprint": current, "date": row.date}
            document["environment"] = dict(row.environment)
            make_folder(self._path.parent)
            with self._path.open("a+b") as file:
                if self._torn:
                    file.truncate(self._path.read_bytes().rfind(b"\n") + 1)
                    self._torn = False
                file.write(json.dumps(document).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        self._remember(row)
        return row


def plain(path: Path) -> Path:
    """Return the plain file of rows, to whose end new ones are written."""
    return path.with_suffix("") if path.suffix == ".xz" else path


def packed(path: Path) -> Path:
    """Return the compressed file of rows that stands beside the plain one."""
    return path if path.suffix == ".xz" else path.with_name(f"{path.name}.xz")


def pack(path: Path) -> int:
    """Move the rows of a plain file to the compressed file beside it, and return how many rows that has.

    Of rows of the same run the latest stays, whatever sources made it. So the rows of another copy of the compressed
    file are merged by decompressing it to the end of the plain file. Not while a study writes to it.

    Raises
    ------
    InputError
        If a line of the two files is no row.
    """
    path, latest = plain(path), dict[str, tuple[str, str]]()
    for (run, date), line in _lines(path, lambda fields: (fields["run"], fields["date"])):
        key = json.dumps(run, sort_keys=True)
        if date >= latest.get(key, ("",))[0]:
            latest[key] = (date, line)
    if path.exists():
        text = "".join(f"{line}\n" for _, line in latest.values())
        write_bytes(packed(path), lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
        path.unlink()
    return len(latest)


def _lines(path: Path, read: Callable[[Mapping[str, Any]], T]) -> Iterator[tuple[T, str]]:
    """Yield what ``read`` makes of each line of the files that hold rows, older ones first, and the line."""
    for file in (packed(path), path):
        if not file.exists():
            continue
        problems, data = [], read_bytes(file)
        if file != path:
            try:
                data = lzma.decompress(data)
            except lzma.LZMAError:
                raise InputError([Problem("", "is no xz file, or a damaged one")], str(file)) from None
        text = decoded(data, str(file))
        for number, line in enumerate(text[: text.rfind("\n") + 1].splitlines(), 1):
            try:
                yield read(json.loads(line)), line
            except (ValueError, TypeError, KeyError):
                message = "is no row of such a study; name another file, or remove it"
                problems.append(Problem(f"line {number}", message))
        raise_any(problems, str(file))


def contradictions(rows: Iterable[Row[R]], on_record: Mapping[str, tuple[float, float]] | None = None) -> list[str]:
    """Return lower bounds above a schedule of the same batch: one of the two is wrong. Two optima that differ are so.

    ``on_record`` has makespans that are known from elsewhere, each with its tolerance, by the key of the batch.
    """
    rows = list(rows)
    best: dict[str, tuple[float, float, str]] = {}
    for row in rows:
        outcome = row.outcome
        if outcome.answered and outcome.makespan is not None:
            found = (outcome.makespan, outcome.tolerance, row.run.label)
            best[row.run.batch_key] = min(best.get(row.run.batch_key, found), found)
    for batch, (makespan, tolerance) in (on_record or {}).items():
        if batch not in best or makespan < best[batch][0]:
            best[batch] = (makespan, tolerance, "the record")
    wrong = []
    for row in rows:
        bound = math.inf if row.outcome.status == Status.INFEASIBLE else row.outcome.lower_bound
        makespan, tolerance, label = best.get(row.run.batch_key, (math.inf, 0.0, ""))
        if bound is not None and not row.outcome.error and bound > makespan + tolerance:
            wrong.append(
                f"{row.run.label}: no schedule is below {bound:.9g} s, but {label} has one of {makespan:.9g} s"
            )
    return wrong


def failures(rows: Iterable[Row[R]]) -> list[str]:
    """Return the errors of runs without a result, and of schedules that are not valid."""
    return [f"{row.run.label}: {row.outcome.error}" for row in rows if row.outcome.error]
