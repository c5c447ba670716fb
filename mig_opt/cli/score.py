"""The command score: plans of other people, and solvers in any language, on the library of instances."""

from __future__ import annotations

import dataclasses
import os
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mig_opt.cli.answers import Answer, Call, File, code_of
from mig_opt.cli.checks import options_named, refuse
from mig_opt.cli.library import Class, Kind, LibraryFolder, library_in
from mig_opt.cli.options import argument
from mig_opt.method.report import Cell, Points, Report, Table, Toned, bad, data_of, good, spelled_gap, strong, unclear
from mig_opt.method.result import relative_gap
from mig_opt.texts import plural

if TYPE_CHECKING:
    from mig_opt.studies.scores import Score, Scores


def score(
    call: Call,
    what: Annotated[str | None, argument("NAME|DIR", "Instance, or a folder with plans called NAME.json.")] = None,
    plan: Annotated[Path | None, argument("PLAN", "Plan for the instance.")] = None,
    *,
    command: Annotated[str | None, "CMD", "Solver to run: './mine {instance} {plan}'."] = None,
    time_limit: Annotated[float, "S", "Seconds for the solver on each instance."] = 60.0,
    kind: Kind = None,
    difficulty: Class = None,
    instance: Annotated[list[str] | None, "NAME", "Only this one; may be repeated."] = None,
    methods: Annotated[str | None, "NAMES", "Methods of mig-opt to run beside, such as auto,far."] = None,
    jobs: Annotated[int, "N", "Runs at the same time."] = 1,
    scheduler: Annotated[str | None, "ADDRESS", "Dask scheduler whose workers do the runs."] = None,
    output: Annotated[Path | None, "DIR", "Folder for plans and scores.csv.  [default: scores]"] = None,
    library: LibraryFolder = None,
) -> Answer:
    """Score plans of instances, or a solver in any language.

    A plan is judged by the validator: valid or not, its value, the gap to the best bound, and whether it is better than
    the best known. A solver is run on each instance in a process of its own; it reads the file {instance} and writes
    the file {plan}. {seconds}, {name}, {goal} and {question} may stand in the command, too. Whatever it does, the next
    instance follows.

    Exits with 0 if all plans are valid, else 1.

    Examples
    --------
    mig-opt score rodinia-a30 plan.json
    mig-opt score my-plans
    mig-opt score --command './mine {instance} {plan}' --time-limit 60
    """
    from mig_opt.files.tables import table_text
    from mig_opt.studies.scores import Score
    from mig_opt.studies.scores import score as scored

    one_of_them = (what is None) != (command is None)
    call.require(one_of_them, "--command", "or an instance with its plan, or a folder of plans: give one of them")
    if command is None:
        runs = ("--methods", "--scheduler", "--output", "--instance", "--kind", "--class", "--jobs", "--time-limit")
        call.none_of(runs, "is for a solver; give --command, or leave it out")
    with call.step():
        if instance and (kind or difficulty):
            refuse("--instance", "is in place of --kind and --class; leave out one of them")
        if what is not None and plan is None and not os.path.isdir(what):  # noqa: PTH112  # however long
            refuse("PLAN", f"is missing: {what} is no folder, so a plan for the instance of that name is wanted")
    folder = output or Path("scores")
    if command is not None:
        call.check_outputs(scores=folder / "scores.csv") if folder.is_dir() else None
        call.check_folder(folder)
    call.finish()
    known = library_in(library).folder
    if command is None:
        with options_named({"name": "NAME|DIR"}):
            found = scored(str(what), plan, library=known)
        why = "; ".join(f"{one.instance}: {one.reason}" for one in found.scores if one.reason)
        return Answer(_report(found), code_of(good=all(one.valid for one in found.scores)), why=why)
    beside = [name.strip() for name in (methods or "").split(",") if name.strip()]
    options: dict[str, Any] = {"kind": kind, "difficulty": difficulty, "names": instance or (), "methods": beside}
    options |= {"time_limit": time_limit, "jobs": jobs, "scheduler": scheduler, "library": known}
    with call.bar("scored") as bar:

        def told(one: Score) -> None:
            bar.show(f"{one.instance}: {one.status}", advance=1)

        with options_named({"solver": "--command", "name": "--instance"}):
            found = scored(command, output=folder, told=told, **options)
    columns = [field.name for field in dataclasses.fields(Score)]
    text = table_text(columns, ([getattr(one, name) for name in columns] for one in found.scores))
    code = code_of(good=all(one.valid for one in found.scores), interrupted=found.interrupted)
    return Answer(_report(found), code, [File("table", folder / "scores.csv", text)])


def _report(found: Scores) -> Report:
    if len(found.scores) == 1 and not found.scores[0].solver:
        (one,) = found.scores
        return Report(_facts(one), [Points(list(filter(None, [one.reason])))], data=dataclasses.asdict(one))
    reasons = [f"{one.instance}, {one.solver}: {one.reason}" for one in found.scores if one.reason]
    parts: list[Any] = [_table(found), _summary(found)] if found.scores else []
    parts[1:1] = [Points(reasons, "Why there is no valid plan:")] if reasons else []
    remarks = []
    if new := sum(one.new_best for one in found.scores):
        told = plural(new, "new best", "new bests")
        remarks.append(f"{told}: mig-opt instances submit NAME PLAN --by WHO writes it.")
    if found.interrupted:
        done, runs = len(found.scores), len(found.scores) + found.missing
        remarks.append(f"Interrupted after {done} of {runs} runs: all figures are of these alone.")
    data = {**data_of(found, "scores"), "solvers": list(map(dataclasses.asdict, found.lines))}
    return Report(parts=parts, remarks=remarks, data=data | data_of(found, "interrupted", "missing"))


def _table(found: Scores) -> Table:
    """Return the table of the plans for each instance, below the best known one."""
    from mig_opt.studies.summary import grouped

    rows: list[list[Cell]] = []
    for name, scores in grouped(found.scores, attrgetter("instance")).items():
        best, bound = scores[0].best_known, scores[0].lower_bound
        gap = None if best is None or bound is None else relative_gap(best, bound)
        rows.append([strong(name), "best", _figure(best), spelled_gap(gap)])
        rows += [[f"  {one.solver}", _status(one), _figure(one.value), spelled_gap(one.gap)] for one in scores]
    return Table(["~instance, solver", "plan", ">value", ">gap"], rows, ["best: the best known plan."])


def _summary(found: Scores) -> Table:
    """Return the table of the solvers, with the performance profile."""
    from mig_opt.studies.scores import FACTORS

    shown = (1.0, 1.01, 1.05, 1.2)
    rows = [
        [
            line.solver,
            f"{line.valid}/{line.runs}",
            str(line.best),
            "-" if line.mean_ratio is None else f"{line.mean_ratio:.4f}",
            *(f"{line.profile[FACTORS.index(factor)]:.0%}" for factor in shown),
        ]
        for line in found.lines
    ]
    columns = ["~solver", ">valid", ">best", ">ratio", *(f">{factor:g}" for factor in shown)]
    failed = {one.solver: ", ".join(f"{count} {status}" for status, count in one.failed.items()) for one in found.lines}
    notes = [
        *(f"{solver}: {counts}." for solver, counts in failed.items() if counts),
        "ratio: geometric mean of value / best known, where the plan is valid.",
        "1, 1.01 ...: share of all instances within that factor of the best known.",
    ]
    return Table(columns, rows, notes)


def _facts(one: Score) -> list[tuple[str, str | None]]:
    return [
        ("instance", one.instance),
        ("plan", _status(one)),
        ("value", None if one.value is None else f"{one.value:.9g}"),
        ("best known", _figure(one.best_known)),
        ("distance", None if one.value is None else "new best" if one.new_best else spelled_gap(one.ratio - 1)),
        ("lower bound", _figure(one.lower_bound)),
        ("gap", None if one.gap is None else spelled_gap(one.gap)),
    ]


def _status(one: Score) -> Toned:
    if one.new_best:
        return good("new best")
    return good(one.status) if one.valid else bad(one.status) if one.status != "late" else unclear(one.status)


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"
