"""The commands of the library of instances: it is listed, verified, beaten, exported and renewed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mig_opt.cli import options
from mig_opt.cli.answers import Answer, Call, code_of
from mig_opt.cli.checks import options_named, refuse
from mig_opt.cli.figures import verdict
from mig_opt.method.report import Points, Report, Table, bad, data_of, good, spelled_gap, unclear
from mig_opt.texts import plural, seconds

if TYPE_CHECKING:
    from mig_opt.instances.bundled import Finding, InstanceInfo, Library

LibraryFolder = Annotated[
    Path | None, "DIR", "--library", "Another library, with an index.json.  [default: the bundled one]"
]
Kind = Annotated[str | None, "K", "Only batches, demands, traces or states: batch, demand, trace, state."]
Class = Annotated[str | None, "CLASS", "--class", "Only this class: 1 s, 10 s, 10 min, 1 h, closed or open."]
Names = Annotated[list[str] | None, options.argument("NAME", "Instances.  [default: all]")]
_COMMANDS = {"batch": "solve", "demand": "deploy", "trace": "simulate", "state": "defragment"}
_SIZES = {"batch": "tasks", "demand": "services", "trace": "jobs", "state": "instances"}


def library_in(folder: Path | None) -> Library:
    """Return the library in a folder, by default the bundled one."""
    from mig_opt.instances.bundled import Library, library

    return library() if folder is None else Library(folder)


def _named(call: Call, known: Library, names: list[str] | None) -> list[InstanceInfo]:
    """Return the entries of instances, by default of all; refuse with all else that is wrong names that none has."""
    infos = [] if names else list(known.infos.values())
    for name in names or ():
        with call.step(), options_named({"name": "NAME"}):
            infos.append(known.info(name))
    call.begin()
    return infos


def instances(
    name: options.ListedArgument = None,
    *,
    kind: Kind = None,
    difficulty: Class = None,
    library: LibraryFolder = None,
) -> Answer:
    """List bundled instances with best known plans and bounds.

    The class of an instance is the limit within which mig-opt has solved it; an open one it has not.

    Examples
    --------
    mig-opt instances
    mig-opt instances --kind batch --class open
    mig-opt instances rodinia-a30
    """
    known = library_in(library)
    if name is not None:
        if kind or difficulty:
            refuse("NAME", "is one instance, of whatever kind and class; leave it out, or --kind and --class")
        return Answer(_instance(known.info(name)))
    infos = sorted(known.chosen(kind, difficulty), key=lambda info: list(_SIZES).index(info.kind))
    table = Table.of(
        infos,
        {
            "instance": lambda info: info.name,
            "what": lambda info: info.kind,
            ">best": lambda info: _shown(info, info.best),
            ">bound": lambda info: _shown(info, info.lower_bound),
            ">gap": lambda info: spelled_gap(info.gap),
            "class": lambda info: info.difficulty or "-",
        },
        [
            "batch: for mig-opt solve; best and bound are seconds.",
            "demand: for mig-opt deploy; GPUs, their cost, or of a day their GPU-hours.",
            "trace: for mig-opt simulate; seconds of flow time, or jobs that are rejected.",
            "state: for mig-opt defragment; migrations.",
            "class: the limit within which mig-opt has solved it, or open.",
        ],
    )
    sources: dict[tuple[str, str], list[str]] = {}
    for info in infos:
        sources.setdefault((info.source, info.licence.partition(",")[0]), []).append(info.name)
    rows = [[own[0] if len(own) == 1 else plural(len(own), "instance"), *source] for source, own in sources.items()]
    tables = [table, Table(["instance", "~source", "licence"], rows)]
    return Answer(Report(parts=tables, data={"instances": list(map(instance_document, infos))}))


def instance_document(info: InstanceInfo) -> Mapping[str, Any]:
    """Return all that is known of an instance: best value and lower bound as figures, with who found them besides."""
    document = dataclasses.asdict(info)
    found = {key: document.pop(key) for key in ("best", "lower_bound")}
    document["class"] = document.pop("difficulty")
    document |= {key: value and value["value"] for key, value in found.items()}
    document |= {f"{key}_finding": value for key, value in found.items()}
    bound, recorded = {"lower_bound": found["lower_bound"]}, bool(info.best or info.lower_bound)
    of_kind = {"best_known": ("makespan", info.kind == "batch"), "fewest_gpus": ("gpus", info.goal == "gpus")}
    for key, (figure, asked) in of_kind.items():
        document[key] = {"status": info.status, figure: found["best"], **bound} if asked and recorded else None
    return document | {"gap": info.gap}


def _shown(info: InstanceInfo, finding: Finding | None) -> str:
    if finding is None:
        return "-"
    return seconds(finding.value) if info.goal in ("makespan", "flow time") else f"{finding.value:g}"


def _instance(info: InstanceInfo) -> Report:
    from mig_opt.instances.goals import goal_of

    goal = goal_of(info)
    best = {"makespan": "makespan", "gpus": "GPUs"}.get(info.goal, info.goal)
    unit = f" {goal.unit}" if goal.unit == "s" else ""
    found = []
    for label, one in ((best, info.best), ("lower bound", info.lower_bound)):
        if one:
            # Nobody has to be told twice of the program whose version is told.
            author = "" if one.versions.startswith(one.found_by) else f"{one.found_by}, "
            text = f"{_shown(info, one)}{unit} ({one.method}, {author}{one.date}, {one.versions}): {one.proof}"
            found.append((label, text))
    without = None if info.certified is None else f"{info.certified:.9g}{unit}"
    tried = f"{info.tried_s:g} s on {info.machine}" if info.tried_s else None
    arguments = ", ".join(f"{key}={value!r}" for key, value in (info.spec or {}).items())
    long = {key: f"{len(value)} entries, see --json" for key, value in info.question.items() if len(str(value)) > 60}
    facts = [
        ("instance", info.name),
        ("title", info.title),
        ("what", f"{info.kind}, for mig-opt {_COMMANDS[info.kind]}{' --rates' * ('rates' in info.question)}"),
        ("goal", f"least {info.goal}: {goal.meaning}"),
        ("question", ", ".join(f"{key}: {long.get(key, value)}" for key, value in info.question.items()) or None),
        (_SIZES[info.kind], str(info.n)),
        ("GPU", info.fleet),
        ("best known", info.status.value.replace("_", " ") if info.best or info.lower_bound else "nothing on record"),
        *found,
        ("solver-free", without),
        ("class", info.difficulty or None),
        ("longest run", tried),
        ("source", info.source),
        ("url", info.url or "-"),
        ("licence", info.licence),
        ("derivation", info.derivation),
        ("drawn with", arguments or None),
    ]
    return Report(facts, [Points(info.notes)], data=instance_document(info))


def instances_verify(call: Call, names: Names = None, *, library: LibraryFolder = None) -> Answer:
    """Verify instances, plans, bounds and certificates.

    All of the library, unless some are named. Everything is computed anew, as far as that needs no solver. Exits with 0
    if all is right, else 1.

    Examples
    --------
    mig-opt instances verify
    mig-opt instances verify rodinia-a30
    """
    from mig_opt.instances.library import PROOFS, problems_of

    known = library_in(library)
    infos = _named(call, known, names)
    with call.bar("verified", len(infos)) as bar:
        wrong: dict[str, list[str]] = {}
        for info in infos:
            if problems := list(problems_of(known, info)):
                wrong[info.name] = problems
            bar.show(advance=1)
    counts = {evidence: sum(info.evidence == evidence for info in infos) for evidence in PROOFS}
    facts = [
        ("entries", str(len(infos))),
        ("plans", str(sum(bool(info.plan_sha256) for info in infos))),
        ("bounds", ", ".join(f"{count} {evidence}" for evidence, count in counts.items() if count) or "none"),
        ("answer", bad(f"wrong, {plural(len(wrong), 'entry', 'entries')}") if wrong else good("all right")),
    ]
    lines = [f"{name}: {problem}" for name, problems in wrong.items() for problem in problems]
    data = {"entries": len(infos), "right": len(infos) - len(wrong), "evidence": counts, "problems": wrong}
    return Answer(Report(facts, [Points(lines)], data=data), code_of(good=not wrong))


def instances_submit(
    call: Call,
    name: Annotated[str, options.argument("NAME", "Instance.")],
    plan: Annotated[Path, options.argument("PLAN", "File of the plan.")],
    *,
    by: Annotated[str, "NAME", "--by", "Who found it."],
    method: Annotated[str, "TEXT", "With what."] = "unknown",
    certificate: Annotated[Path | None, "Of mig-opt prove, for this plan."] = None,
    library: LibraryFolder = None,
) -> Answer:
    """Write a plan into the library if it is the best so far.

    It has to be valid, and better than the best known. The lower bound of a certificate is taken if it is greater and
    follows without a solver. In a checkout, what has changed then is a pull request. Exits with 0 if something was
    written, else 1.

    Examples
    --------
    mig-opt instances submit far-4xa100-060-mixed-1 plan.json --by "A. Day"
    """
    from mig_opt.instances.library import submit

    call.begin()
    found = submit(library_in(library), name, plan, by=by, method=method, certificate=certificate)
    judged, info = found.judgement, found.info
    facts = [
        ("instance", name),
        ("plan", verdict(judged.violations)),
        ("value", None if judged.value is None else f"{judged.value:.9g}"),
        ("best known", None if info.best is None else f"{info.best.value:.9g} ({info.best.found_by})"),
        ("lower bound", None if info.lower_bound is None else f"{info.lower_bound.value:.9g}"),
        ("written", good(", ".join(found.improved)) if found.improved else unclear("nothing")),
    ]
    lines = [*judged.violations, *found.reasons]
    known = {"instance": name, **data_of(judged, "valid", "value")}
    report = Report(facts, [Points(lines)], data={**known, "written": list(found.improved), "reasons": lines})
    return Answer(report, code_of(good=bool(found.improved)), why="" if found.improved else "; ".join(lines))


def instances_export(
    call: Call,
    folder: Annotated[Path, options.argument("DIR", "Folder to write to.")],
    *,
    kind: Kind = None,
    difficulty: Class = None,
    library: LibraryFolder = None,
) -> Answer:
    """Write the instances, and what is known of them, as files.

    Examples
    --------
    mig-opt instances export library
    mig-opt instances export library --kind batch --class open
    """
    from mig_opt.instances.library import export

    known = library_in(library)
    infos = call.attempt(known.chosen, kind, difficulty)
    call.check_folder(folder)
    call.begin()
    written = export(known, folder, infos)
    facts = [("instances", str(len(infos))), ("folder", str(folder))]
    return Answer(Report(facts, data={"files": [str(path) for path in written]}))


def instances_renew(
    call: Call,
    names: Names = None,
    *,
    time_limit: Annotated[float, "S", "Seconds of the longest run of each instance."] = 10.0,
    workers: options.Workers = None,
    library: LibraryFolder = None,
) -> Answer:
    """Try instances for longer than before; write what is found.

    Runs of 1, 10, 60, 120, 600 and 3600 seconds, up to the limit; what is solved is not run again. Entries without
    digests and plans are completed. What is interrupted goes on with the same command.

    Examples
    --------
    mig-opt instances renew --time-limit 60
    """
    from mig_opt.studies.renewal import missing_runs, renew

    known = library_in(library)
    call.require(time_limit >= 1, "--time-limit", f"must be at least 1 s, is {time_limit:g}")
    infos = _named(call, known, names)
    done: list[InstanceInfo] = []
    with call.bar("runs", len(missing_runs(infos, time_limit))) as bar:

        def told(info: InstanceInfo) -> None:
            done.append(info)
            bar.show(advance=1)

        renew(known, [info.name for info in infos], limit=time_limit, workers=workers, told=told)
    solved = sum(info.solved for info in done)
    facts = [("runs", str(len(done))), ("solved by them", str(solved))]
    return Answer(Report(facts, data={"runs": [[info.name, info.tried_s, info.difficulty] for info in done]}))
