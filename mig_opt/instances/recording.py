"""Records the best-known values of the bundled instances in their index."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mig_opt.errors import InputError, Problem, nearest
from mig_opt.instances.best_known import BestKnown, Finding, best_known_from_json
from mig_opt.instances.bundled import load_instance
from mig_opt.result import Status

if TYPE_CHECKING:
    from mig_opt.result import Result

_TOLERANCE = 1e-6
"""Seconds by which makespan and bound may cross before it is an error; far below any measured time."""


def record_best_known(
    results: Mapping[str, Result], *, found_by: str, on: dt.date | None = None, index: Path | None = None
) -> tuple[str, ...]:
    """Write what runs on bundled instances found into the index, where it is better than what is there.

    A value gives way only to a better one, so the first finder of a value stays on record.

    This is maintenance of the package itself: by default it rewrites the ``index.json`` of the installed package,
    which makes sense in an editable install. The running process keeps the values that it has read before.

    Parameters
    ----------
    results : mapping of str to Result
        Runs of :func:`mig_opt.solve` by instance name.
    found_by : str
        Who ran them.
    on : datetime.date, optional
        Day of the runs; today by default.
    index : Path, optional
        The file to update.

    Returns
    -------
    tuple of str
        Names of the instances whose entry changed.

    Raises
    ------
    InputError
        If an instance is unknown, a schedule is one of other tasks, or a makespan is below a lower bound. Nothing is
        written then.
    """
    path = Path(__file__).with_name("data") / "index.json" if index is None else index
    content = json.loads(path.read_text(encoding="utf-8"))
    entries: dict[str, dict[str, Any]] = {entry["name"]: entry for entry in content["instances"]}
    day = (on or dt.date.today()).isoformat()
    problems: list[Problem] = []
    changed: list[str] = []
    for name, result in results.items():
        if name not in entries:
            problems.append(Problem(name, f"no bundled instance {name!r}; {nearest(name, entries)}"))
            continue
        known = best_known_from_json(entries[name]["best_known"])
        try:
            _check_tasks(name, result)
            merged = _merge(known, result, found_by=found_by, day=day)
        except InputError as error:
            problems += (problem.below(name) for problem in error.problems)
            continue
        if merged is not None and merged != known:
            entries[name]["best_known"] = dataclasses.asdict(merged)
            changed.append(name)
    if problems:
        raise InputError(problems)
    if changed:
        path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return tuple(changed)


def _check_tasks(name: str, result: Result) -> None:
    if result.schedule is None:
        return
    if {run.task for run in result.schedule.runs} != {task.name for task in load_instance(name).tasks}:
        raise InputError([Problem("", "the schedule runs other tasks than those of the instance")])


def _merge(known: BestKnown | None, result: Result, *, found_by: str, day: str) -> BestKnown | None:
    """Return ``known`` improved by what ``result`` found; a value gives way only to a better one."""
    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())

    def finding(value: float, proof: str) -> Finding:
        return Finding(value, result.method, found_by, day, versions, proof)

    makespan, bound = (known.makespan, known.lower_bound) if known else (None, None)
    if result.makespan is not None and (makespan is None or result.makespan < makespan.value - _TOLERANCE):
        makespan = finding(result.makespan, "the schedule passes the validator")
    if result.lower_bound > (bound.value + _TOLERANCE if bound else 0.0):
        bound = finding(result.lower_bound, f"lower bound of {result.method}, which holds for every schedule")
    if makespan is None:
        return BestKnown(Status.NO_SOLUTION, None, bound) if bound else known
    if bound is not None and makespan.value < bound.value - _TOLERANCE:
        message = (
            f"the makespan {makespan.value} s ({makespan.method}, {makespan.date}) is below the lower bound "
            f"{bound.value} s ({bound.method}, {bound.date}); one of them is wrong"
        )
        raise InputError([Problem("", message)])
    met = bound is not None and makespan.value <= bound.value + _TOLERANCE
    proven = Status.OPTIMAL in (result.status, known.status if known else None)
    return BestKnown(Status.OPTIMAL if met or proven else Status.FEASIBLE, makespan, bound)
