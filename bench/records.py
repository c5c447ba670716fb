"""Rows of a study: one line of JSON for each run, so that a study that was killed goes on where it was."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import platform
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from machine import versions
from runs import PYJOBSHOP, Outcome, Run

import mig_opt

PACKAGES = ("mig-opt", "ortools", "highspy", "pulp", "pyjobshop")


@dataclass(frozen=True, slots=True)
class Row:
    """A run, what it gave, and the sources that it ran with."""

    run: Run
    outcome: Outcome
    fingerprint: str
    date: str


def fingerprint(method: str) -> str:
    """Return a hash of what decides a run besides its arguments: the sources of mig_opt, and all versions."""
    package = Path(mig_opt.__file__).parent
    sources = sorted(package.rglob("*.py"))
    if method == PYJOBSHOP:
        sources.append(Path(__file__).with_name("pyjobshop_model.py"))
    digest = hashlib.sha256(f"Python {platform.python_version()}, {versions(*PACKAGES)}".encode())
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


class Records:
    """The rows in a file.

    Parameters
    ----------
    path : Path
        The file; it need not exist. What a killed study left of its last line is dropped.
    keep : bool
        Whether rows of other sources or versions count where there is none of the present ones.
    """

    def __init__(self, path: Path, *, keep: bool = False) -> None:
        self._path = path
        self._keep = keep
        self._rows: dict[tuple[str, str], Row] = {}
        self._latest: dict[str, Row] = {}
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else ():
            if line.endswith("\n"):
                self._remember(_read(line))

    def _remember(self, row: Row) -> None:
        self._rows[row.run.key, row.fingerprint] = row
        self._latest[row.run.key] = row

    def find(self, run: Run, current: str) -> Row | None:
        """Return the row of a run with the fingerprint ``current``, or the latest one if others count."""
        return self._rows.get((run.key, current)) or (self._latest.get(run.key) if self._keep else None)

    def add(self, run: Run, outcome: Outcome, current: str) -> Row:
        """Write a row at the end of the file."""
        row = Row(run, outcome, current, datetime.now(UTC).isoformat(timespec="seconds"))
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a+b") as file:
            file.truncate(_whole_lines(self._path))
            file.write(json.dumps(dataclasses.asdict(row)).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self._remember(row)
        return row


def _whole_lines(path: Path) -> int:
    """Return the length of a file without a last line that has no end."""
    return path.read_bytes().rfind(b"\n") + 1


def _read(line: str) -> Row:
    fields = json.loads(line)
    run = Run.from_key(json.dumps(fields["run"]))
    return Row(run, Outcome(**fields["outcome"]), fields["fingerprint"], fields["date"])


def contradictions(rows: Iterable[Row]) -> list[str]:
    """Return what cannot be true: a lower bound above a schedule of the same batch, whoever found them.

    Two optima that differ are one case of it. Invalid schedules and runs without a result are told as well.
    """
    rows = list(rows)
    found = [f"{_label(row)}: {row.outcome.error}" for row in rows if row.outcome.error]
    valid = [row for row in rows if row.outcome.makespan is not None and not row.outcome.error]
    best = {row.run.instance: row for row in sorted(valid, key=lambda row: -(row.outcome.makespan or 0.0))}
    for row in rows:
        other = best.get(row.run.instance)
        if other is None or other.outcome.makespan is None or row.outcome.error:
            continue
        bound = float("inf") if row.outcome.status == "infeasible" else row.outcome.lower_bound
        if bound is not None and bound > other.outcome.makespan + other.outcome.tolerance:
            found.append(
                f"{_label(row)}: no schedule is below {bound:.9g} s, "
                f"but {other.run.method} has one of {other.outcome.makespan:.9g} s"
            )
    return found


def pairs_of_optima(rows: Iterable[Row]) -> int:
    """Return how many pairs of methods proved an optimum of the same batch."""
    proven = Counter(row.run.instance for row in rows if row.outcome.status == "optimal")
    return sum(count * (count - 1) // 2 for count in proven.values())


def _label(row: Row) -> str:
    return f"{row.run.method} on {row.run.instance}"
