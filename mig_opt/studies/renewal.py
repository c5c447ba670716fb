"""Renewal of the library of instances: our own methods try what they have not tried yet, the shortest limits first."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mig_opt.api.prove import check, prove
from mig_opt.errors import InputError, Problem, SolverError
from mig_opt.files.batch.certificates import CERTIFICATE
from mig_opt.instances.bundled import Finding, InstanceInfo, Library, digest_of
from mig_opt.instances.goals import content_digest, goal_of
from mig_opt.instances.judgements import Attempt
from mig_opt.instances.library import (
    PLAN_PROOF,
    PROOFS,
    certified,
    difficulty_of,
    evidence_of,
    finding,
    same,
    sealed,
    size_of,
    write_entry,
)
from mig_opt.method.control import available_cores
from mig_opt.studies.environment import processor

LADDER = (1.0, 10.0, 60.0, 120.0, 600.0, 3600.0)
"""Limits of the runs in seconds."""

_MOST_TASKS_PROVED_TWICE, _SECOND_SECONDS = 12, 20.0
"""Number of tasks above which a second method is not asked for a proof, and the seconds that it gets."""


def missing_runs(infos: Iterable[InstanceInfo], limit: float) -> list[tuple[float, str]]:
    """Return the runs that have not been done: a limit in seconds, and the name of an instance.

    An instance that is solved needs none; one that is new comes first, with the shortest limit.
    """
    open_ones = [info for info in infos if not (info.solved and info.plan_sha256)]
    return sorted((step, info.name) for info in open_ones for step in LADDER if info.tried_s < step <= limit)


def renew(
    library: Library,
    names: Sequence[str] = (),
    *,
    limit: float = 10.0,
    workers: int | None = None,
    told: Callable[[InstanceInfo], None] = lambda _: None,
) -> Library:
    """Do the runs that are missing for instances, or for all, and write each entry when it is known.

    The longest run takes ``limit`` seconds, with one thread for each core unless ``workers`` says something else;
    ``told`` is called with each entry that was written. The library is returned as it is then.
    """
    if limit < LADDER[0]:
        raise InputError([Problem("limit", f"must be at least {LADDER[0]:g} s, is {limit}")])
    for step, name in missing_runs(map(library.info, set(names or library.infos)), limit):
        info = library.info(name)
        if not missing_runs([info], limit):  # a shorter run has solved it
            continue
        changed, files = _renewed(library, info, step, workers or available_cores())
        library = write_entry(library, changed, **files)
        told(changed)
    return library


def _renewed(library: Library, info: InstanceInfo, seconds: float, workers: int) -> tuple[InstanceInfo, dict[str, Any]]:
    """Return an entry after a run, and its new files."""
    problem, goal = library.load(info.name), goal_of(info)
    found = goal.attempt(problem, info.question, seconds, workers)
    judged = None if found.plan is None else goal.judge(problem, found.plan, info.question)
    if judged is not None and judged.value is None:
        raise SolverError(f"{found.method} returned a plan for {info.name} that is not valid: {judged.violations[0]}")
    n, gpu, gpus = size_of(info, problem)
    machine = f"{processor()}, {workers} threads"
    sha = content_digest(info.kind, problem, info.question)
    changed = dataclasses.replace(info, n=n, gpu=gpu, gpus=gpus, sha256=sha, tried_s=seconds, machine=machine)
    files: dict[str, Any] = {}
    if judged is not None and judged.value is not None:
        best = None if info.best is None else info.best.value
        lacking = not info.plan_sha256 and (best is None or same(judged.value, best))
        if lacking or best is None or (judged.value < best and not same(judged.value, best)):
            files["plans"] = goal.text(found.plan)
            new = _finding(found, judged.value, found.method, PLAN_PROOF)
            changed = dataclasses.replace(changed, best=new, plan_sha256=digest_of(files["plans"]))
    known = library.text("plans", info.name)
    if "plans" not in files and known is not None:
        found = dataclasses.replace(found, plan=goal.read(problem, info.question, known, f"{info.name}.json.xz"))
    changed = _with_bounds(changed, problem, found, files, library.text("certificates", info.name))
    alone = judged is not None and judged.value is not None and same(found.lower_bound, judged.value)
    changed = sealed(changed, difficulty=difficulty_of(changed, found.seconds if alone else seconds))
    return changed, files


def _with_bounds(
    info: InstanceInfo, problem: Any, found: Attempt, files: dict[str, Any], old: str | None
) -> InstanceInfo:
    """Return an entry with the best lower bound, and what follows without a solver, for the best plan so far."""
    proved, changes, plan = float("-inf"), dict[str, Any](), found.plan
    if info.kind != "batch":
        changes["certified"] = goal_of(info).bound(problem, info.question)
    elif plan is not None:
        made = dict(files)
        like = CERTIFICATE.from_json(old) if old is not None and "plans" in files else None
        better = certified(problem, plan, made, like)
        if "plans" in files or info.certified is None or better["certified"] > info.certified:
            changes |= better
            files |= made
    shown = changes.get("certified", info.certified)
    bound = None if info.lower_bound is None else info.lower_bound.value
    best = max(found.lower_bound, -1.0 if shown is None else shown)
    if bound is None or (best > bound and not same(best, bound)):
        method = "bounds" if best == shown else found.bound_method or found.method
        bound, info = best, dataclasses.replace(info, lower_bound=_finding(found, best, method, ""))
    info = dataclasses.replace(info, **changes)
    if shown is None or bound is None or info.lower_bound is None:
        return info
    wanted = info.solved and info.kind == "batch" and info.n <= _MOST_TASKS_PROVED_TWICE
    if plan is not None and wanted and evidence_of(bound, shown) == "claimed":
        second = prove(problem, plan, within=1e-6 * bound, time_limit=_SECOND_SECONDS, workers=1)
        if second.interrupted:
            raise KeyboardInterrupt
        if evidence_of(bound, shown, second.lower_bound) == "second proof":
            files["certificates"], proved = CERTIFICATE.to_json(second), second.lower_bound
            shown = check(problem, plan, second).bound
            changes = {"certified": shown, "certificate_sha256": digest_of(files["certificates"])}
    evidence = evidence_of(bound, shown, proved)
    known = dataclasses.replace(info.lower_bound, proof=PROOFS[evidence])
    return dataclasses.replace(info, **changes, lower_bound=known, evidence=evidence)


def _finding(found: Attempt, value: float, method: str, proof: str) -> Finding:
    versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    by = f"mig-opt {found.versions['mig-opt']}"
    return finding(value, method, by, versions=versions, proof=proof, seconds=found.seconds)
