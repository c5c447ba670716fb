"""The library of instances: entries with plans and certificates are written, verified, beaten and exported."""

from __future__ import annotations

import dataclasses
import datetime as dt
import itertools
import json
import lzma
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mig_opt.api.prove import certify, check
from mig_opt.batch.batch import Batch
from mig_opt.batch.certificate import Certificate
from mig_opt.batch.schedule import Schedule
from mig_opt.errors import InputError, MigOptError, Problem
from mig_opt.files.batch.certificates import CERTIFICATE
from mig_opt.files.documents import make_folder, read_text, rendered, write_bytes, write_text
from mig_opt.files.tables import table_text
from mig_opt.instances.bundled import Evidence, Finding, InstanceInfo, Library, digest_of, file_text
from mig_opt.instances.goals import content_digest, goal_of
from mig_opt.instances.judgements import Judgement
from mig_opt.method.result import RESOLUTION, versions_with

LIMITS: Mapping[str, float] = {"1 s": 1.0, "10 s": 10.0, "10 min": 600.0, "1 h": 3600.0}
"""Seconds of each class of instances that are solved."""

_PRICING_SECONDS = 3.0  # seconds for the prices of the tasks in a certificate

_LATE = 1.1  # factor of a limit within which a run counts as one of that limit: runs end a little late

PLAN_PROOF = "the plan passes the validator"
"""Reason to believe a value."""

PROOFS: Mapping[Evidence, str] = {
    "recomputed": "follows without a solver, see mig-opt instances verify",
    "second proof": "proved by two methods, of which one left a certificate",
    "claimed": "the word of the method",
}
"""Reasons to believe a lower bound, by its evidence."""


def difficulty_of(info: InstanceInfo, seconds: float | None = None) -> str:
    """Return the class of an instance that a run of some seconds solved, or that none has."""
    if not info.solved:
        return "open"
    if seconds is None:
        return "closed" if info.difficulty in ("", "open") else info.difficulty
    return next((name for name, limit in LIMITS.items() if seconds <= limit * _LATE), "closed")


def problems_of(library: Library, info: InstanceInfo) -> Iterator[str]:
    """Yield everything that is wrong with an entry, what is seen at once first.

    Every figure is computed anew, as far as that needs no solver. Checked are the seal of the entry, the digests of
    instance, plan and certificate, the validity and the value of the plan, the bound by its evidence, that the two do
    not cross, and the class.
    """
    try:
        yield from _problems(library, info)
    except (MigOptError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError, lzma.LZMAError) as error:
        own = isinstance(error, MigOptError | lzma.LZMAError)
        yield f"cannot be verified: {error}" if own else f"cannot be verified: {type(error).__name__}: {error}"


def _problems(library: Library, info: InstanceInfo) -> Iterator[str]:
    if info.seal != info.computed_seal():
        yield "seal: is not that of the entry: something in it was changed after it was made"
    problem = library.load(info.name)
    if content_digest(info.kind, problem, info.question) != info.sha256:
        yield "sha256: is not that of the instance"
    if size_of(info, problem) != (info.n, info.gpu, info.gpus):
        yield f"n, gpu, gpus: are not those of the instance, {size_of(info, problem)}"
    figures = [("certified", info.certified), ("tried_s", info.tried_s)]
    figures += [(name, one.value) for name, one in (("best", info.best), ("lower_bound", info.lower_bound)) if one]
    for name, figure in figures:
        if figure is not None and not math.isfinite(figure):
            yield f"{name}: must be finite, is {figure}"
    text = library.text("plans", info.name)
    plan = None if text is None else goal_of(info).read(problem, info.question, text, f"{info.name}.json.xz")
    judged = Judgement(True, None) if plan is None else goal_of(info).judge(problem, plan, info.question)
    yield from (f"plan: {violation}" for violation in judged.violations)
    yield from _value_problems(library, info, judged)
    yield from _bound_problems(library, info, problem, plan)
    if info.difficulty and (info.difficulty == "open") == info.solved:
        yield f"difficulty: is {info.difficulty!r}, but the entry is {'' if info.solved else 'not '}solved"


def _value_problems(library: Library, info: InstanceInfo, judged: Judgement) -> Iterator[str]:
    stated = None if info.best is None else info.best.value
    if digest_of(library.text("plans", info.name) or "") != (info.plan_sha256 or digest_of("")):
        yield "plan_sha256: is not that of the plan"
    if judged.value is not None and (stated is None or not same(judged.value, stated)):
        yield f"best: is {stated}, but the plan has {judged.value}"
    if stated is not None and not info.plan_sha256:
        yield "best: has no plan"


def _bound_problems(library: Library, info: InstanceInfo, problem: Any, plan: Any) -> Iterator[str]:
    """Yield what is wrong with the bounds: they cross the best value, or do not follow from the evidence."""
    stated = None if info.lower_bound is None else info.lower_bound.value
    for name, bound in (("lower_bound", stated), ("certified", info.certified)):
        if bound is not None and info.best is not None and bound > info.best.value * (1 + RESOLUTION):
            yield f"{name}: is {bound}, above a valid plan of {info.best.value}"
    text = library.text("certificates", info.name)
    if digest_of(text or "") != (info.certificate_sha256 or digest_of("")):
        yield "certificate_sha256: is not that of the certificate"
    proved = -math.inf
    if text is None:
        shown = goal_of(info).bound(problem, info.question)
    else:
        try:
            certificate = CERTIFICATE.from_json(text, source=f"{info.name}.json.xz")
            found = check(problem, plan, certificate)
        except MigOptError as error:
            yield f"certificate: {error}"
            return
        yield from (f"certificate: {mismatch}" for mismatch in found.mismatches)
        shown, proved = found.bound, certificate.lower_bound
    if info.certified is not None and not same(shown, info.certified):
        yield f"certified: is {info.certified}, but {shown} is what follows without a solver"
    if stated is None:
        return
    if info.evidence not in PROOFS:
        yield f"evidence: is {info.evidence!r}, must be one of {', '.join(PROOFS)}"
    if info.evidence != evidence_of(stated, shown, proved):
        yield f"evidence: is {info.evidence!r} for a bound of {stated}; {shown} follows without a solver"


def same(one: float, other: float) -> bool:
    """Return True if two values differ by no more than rounding."""
    return math.isclose(one, other, rel_tol=RESOLUTION, abs_tol=RESOLUTION)


def evidence_of(bound: float, shown: float, proved: float = -math.inf) -> Evidence:
    """Return the evidence for a bound, given what follows without a solver, and what a certificate says was proved."""
    if shown >= bound or same(shown, bound):
        return "recomputed"
    return "second proof" if proved >= bound or same(proved, bound) else "claimed"


def size_of(info: InstanceInfo, problem: Any) -> tuple[int, str, int | None]:
    """Return number of tasks, services, jobs or instances, name of the GPU, and number of GPUs if that is given."""
    if info.kind == "demand":
        return len(problem.services), " and ".join(pool.gpu.name for pool in problem.pools), None
    parts = {"batch": "tasks", "trace": "jobs", "state": "instances"}
    name = problem.gpu.name if problem.gpu else problem.label
    return len(getattr(problem, parts[info.kind])), name, problem.gpus


# Writing


def sealed(info: InstanceInfo, **changes: Any) -> InstanceInfo:
    """Return an entry with some attributes changed, and with the seal that follows from all of them."""
    changed = dataclasses.replace(info, **changes)
    return dataclasses.replace(changed, seal=changed.computed_seal())


def write_entry(library: Library, info: InstanceInfo, **files: str | None) -> Library:
    """Write an entry of the index, and the texts of its ``plans`` or ``certificates``; return the library as it is now.

    The files come first: after a crash in between the entry says that something is wrong. The other entries are read
    again, since somebody else may have written them.
    """
    for part, text in files.items():
        path = library.packed(part, info.name)  # type: ignore[arg-type]
        if text is not None:
            make_folder(path.parent)
            write_bytes(path, lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
        else:
            path.unlink(missing_ok=True)
    entries = [dataclasses.asdict(entry) for entry in {**Library(library.folder).infos, info.name: info}.values()]
    write_text(library.folder / "index.json", json.dumps({"instances": entries}, indent=1) + "\n")
    return Library(library.folder)


def finding(value: float, method: str, by: str, *, versions: str, proof: str, seconds: float | None = None) -> Finding:
    """Return a finding of today."""
    rounded = None if seconds is None else round(seconds, 3)
    return Finding(value, method, by, dt.datetime.now(dt.UTC).date().isoformat(), versions, proof, rounded)


@dataclass(frozen=True, slots=True)
class Submission:
    """Outcome of :func:`submit`."""

    info: InstanceInfo  # the entry, as it is now
    judgement: Judgement  # what the validator says of the plan
    improved: tuple[str, ...]  # what was written: ``best``, ``lower_bound``
    reasons: tuple[str, ...] = ()  # why something, or all, was not taken


def submit(
    library: Library,
    name: str,
    plan: str | Path,
    *,
    by: str,
    method: str = "unknown",
    certificate: str | Path | None = None,
) -> Submission:
    """Write a plan, and a certificate, into the library if and only if they are valid and better than what is there.

    ``plan`` is the file of the plan, ``by`` says who found it and ``method`` with what. ``certificate`` is the file of
    :func:`mig_opt.prove` for this plan of a batch. Its bound is taken if it follows without a solver and is greater
    than the one on record; the plan may then be just as good as the one on record.

    Raises
    ------
    InputError
        If there is no such instance, or a file cannot be read.
    """
    info = library.info(name)
    if not by.strip():
        raise InputError([Problem("by", "must be the name of whoever found the plan")])
    problem, goal = library.load(name), goal_of(info)
    found = goal.read(problem, info.question, read_text(plan), str(plan))
    judged = goal.judge(problem, found, info.question)
    if judged.value is None:
        return Submission(info, judged, (), ("the plan is not valid",))
    bound = -math.inf if info.lower_bound is None else info.lower_bound.value
    if judged.value < bound and not same(judged.value, bound):
        message = f"the plan is valid and below the lower bound on record, {bound}: that is wrong; please report it"
        raise InputError([Problem(name, message)])
    said: Any = {"method": method, "by": by, "versions": f"mig-opt {versions_with()['mig-opt']}"}
    reasons, changes = list[str](), dict[str, Any]()
    known = info.best
    as_good = known is None or same(judged.value, known.value)
    if known is None or (judged.value < known.value and not as_good):
        changes["best"] = finding(judged.value, **said, proof=PLAN_PROOF)
    else:
        reasons.append(f"{judged.value:g} is no better than the best known, {known.value:g} {goal.unit}")
    given = None if certificate is None else CERTIFICATE.read(certificate)
    shown = None if given is None else check(problem, found, given)
    if shown is not None:
        reasons += map(str, shown.mismatches)
        if not (changes or as_good):
            reasons.append("a certificate is taken for a plan as good as the best known, or a better one")
        elif shown.holds and shown.bound > bound and not same(shown.bound, bound):
            changes["lower_bound"] = finding(shown.bound, **said, proof=PROOFS["recomputed"])
        elif shown.holds:
            reasons.append(f"the certificate shows {shown.bound:g} without a solver, no more than is known")
    if changes:
        info = _written(library, info, changes, found, given)
    return Submission(info, judged, tuple(changes), tuple(reasons))


def _written(
    library: Library, info: InstanceInfo, changes: Mapping[str, Any], plan: Any, certificate: Certificate | None
) -> InstanceInfo:
    """Write an entry with a new plan, and for a batch with the certificate of that plan."""
    text = goal_of(info).text(plan)
    files: dict[str, str | None] = {"plans": text}
    changed = dataclasses.replace(info, **changes, plan_sha256=digest_of(text))
    if info.kind == "batch":
        old = library.text("certificates", info.name)
        like = certificate if "lower_bound" in changes or old is None else CERTIFICATE.from_json(old)
        found = certified(library.load(info.name), plan, files, like)
        changed = dataclasses.replace(changed, **found)
    if changed.lower_bound is not None and changed.certified is not None:
        changed = dataclasses.replace(changed, evidence=evidence_of(changed.lower_bound.value, changed.certified))
    changed = sealed(changed, difficulty=difficulty_of(changed))
    write_entry(library, changed, **files)
    return changed


def certified(
    batch: Batch, schedule: Schedule, files: dict[str, str | None], like: Certificate | None = None
) -> dict[str, Any]:
    """Return what an entry says of the certificate for a schedule, and put that among its ``files``.

    It has the prices of a certificate that there is; without one they are sought.
    """
    prices = None if like is None or like.priced_work is None else like.priced_work.prices
    made = certify(batch, schedule, prices=prices, seconds=_PRICING_SECONDS)
    files["certificates"] = text = CERTIFICATE.to_json(made)
    return {"certified": made.lower_bound, "certificate_sha256": digest_of(text)}


def export(library: Library, folder: Path, infos: Sequence[InstanceInfo]) -> list[Path]:
    """Write instances into a folder, each as a file of its kind, with an index of what is known of them.

    Rates over a day are a table beside the services.

    Raises
    ------
    InputError
        If the folder cannot be made, or a file cannot be written.
    """
    make_folder(folder)
    written = []
    for info in infos:
        written.append(folder / f"{info.name}.json")
        write_text(written[-1], file_text(info.kind, library.load(info.name)))
        if "rates" in info.question:
            rates = info.question["rates"]
            rows = itertools.zip_longest(info.question["times"], *rates.values(), fillvalue="")
            written.append(folder / f"{info.name}.csv")
            write_text(written[-1], table_text(["time", *rates], rows))
    entries = [{key: value for key, value in dataclasses.asdict(info).items() if key != "seal"} for info in infos]
    write_text(folder / "index.json", rendered({"instances": entries}))
    return written
