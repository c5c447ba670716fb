"""Records the best-known values of the bundled instances in their index."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mig_opt.errors import InputError, Problem, nearest
from mig_opt.instances.bundled import BestKnown, FewestGpus, Finding, load_demand, load_instance, recorded
from mig_opt.method.result import Status
from mig_opt.serving.deployment import DeploymentResult

if TYPE_CHECKING:
    from mig_opt.batch.schedule import ScheduleResult

_TOLERANCE = 1e-6
"""Seconds by which makespan and bound may cross before it is an error; far below any measured time."""


def record_best_known(
    results: Mapping[str, ScheduleResult | DeploymentResult],
    *,
    found_by: str,
    on: dt.date | None = None,
    index: Path | None = None,
) -> tuple[str, ...]:
    """Write what runs on bundled instances found into the index, where it is better than what is there.

    A value gives way only to a better one, so the first finder of a value stays on record.

    This is maintenance of the package itself: by default it rewrites the ``index.json`` of the installed package,
    which makes sense in an editable install. The running process keeps the values that it has read before.

    Parameters
    ----------
    results : mapping of str to ScheduleResult or DeploymentResult
        Runs of :func:`mig_opt.solve` on batches and of :func:`mig_opt.deploy` on demands, by instance name.
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
        If an instance is unknown or of the other kind, a schedule is one of other tasks, a deployment does not serve
        the services, or a value is below a lower bound. Nothing is written then.
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
        try:
            improved = _improved(entries[name], result, found_by=found_by, day=day)
        except InputError as error:
            problems += (problem.below(name) for problem in error.problems)
            continue
        if improved:
            entries[name][improved[0]] = dataclasses.asdict(improved[1])
            changed.append(name)
    if problems:
        raise InputError(problems)
    if changed:
        path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return tuple(changed)


def _improved(
    entry: Mapping[str, Any], result: ScheduleResult | DeploymentResult, *, found_by: str, day: str
) -> tuple[str, BestKnown | FewestGpus] | None:
    """Return the key of what is known of an instance, and its value if ``result`` has something better; else None."""
    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())

    def finding(value: float, proof: str) -> Finding:
        return Finding(value, result.method, found_by, day, versions, proof)

    kind: type[BestKnown | FewestGpus]
    if isinstance(result, DeploymentResult):
        _check_services(entry["name"], result)
        key, kind, figure, unit = "fewest_gpus", FewestGpus, "gpus", "GPUs"
        proof, reason = "the deployment passes the validator", result.reason
    else:
        _check_tasks(entry["name"], result)
        key, kind, figure, unit = "best_known", BestKnown, "makespan", "s"
        proof = "the schedule passes the validator"
        reason = f"lower bound of {result.method}, which holds for every schedule"
    known = recorded(kind, entry.get(key)) or kind(Status.NO_SOLUTION, None, None)
    value, best, bound = getattr(result, figure), getattr(known, figure), known.lower_bound
    if value is not None and (best is None or value < best.value - _TOLERANCE):
        best = finding(value, proof)
    if result.lower_bound > (bound.value + _TOLERANCE if bound else 0.0):
        bound = finding(result.lower_bound, reason)
    if best and bound and best.value < bound.value - _TOLERANCE:
        message = (
            f"{best.value} {unit} ({best.method}, {best.date}) is below the lower bound of {bound.value} "
            f"{unit} ({bound.method}, {bound.date}); one of them is wrong"
        )
        raise InputError([Problem("", message)])
    met = bound is not None and best is not None and best.value <= bound.value + _TOLERANCE
    proven = met or Status.OPTIMAL in (result.status, known.status)
    status = Status.NO_SOLUTION if best is None else Status.OPTIMAL if proven else Status.FEASIBLE
    improved = kind(status, best, bound)
    return None if improved == known else (key, improved)


def _check_tasks(name: str, result: ScheduleResult) -> None:
    batch = load_instance(name)
    if result.schedule is None:
        return
    if {run.task for run in result.schedule.runs} != {task.name for task in batch.tasks}:
        raise InputError([Problem("", "the schedule runs other tasks than those of the instance")])


def _check_services(name: str, result: DeploymentResult) -> None:
    demand = load_demand(name)
    if result.deployment is None:
        return
    names = {service.name for service in demand.services}
    if {segment.service for segment in result.deployment.segments} - names:
        raise InputError([Problem("", "the deployment serves other services than those of the instance")])
    lacking = [service for service, slack in result.deployment.slack(demand).items() if slack < -_TOLERANCE]
    if lacking:
        raise InputError([Problem("", f"the deployment has too little throughput for {', '.join(lacking)}")])
