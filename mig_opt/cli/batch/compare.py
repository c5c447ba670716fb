"""The command compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mig_opt.batch.batch import Batch
from mig_opt.cli import options
from mig_opt.cli.answers import Answer, Call, File, code_of, contradicting
from mig_opt.cli.checks import refuse
from mig_opt.cli.figures import percent, percents
from mig_opt.cli.inputs import load_batch
from mig_opt.method.report import Part, Points, Report, Table, dim, spelled_status, strong
from mig_opt.method.study import COMPARISON_TIME_LIMIT
from mig_opt.texts import seconds

if TYPE_CHECKING:
    from mig_opt.studies.comparison import Comparison
    from mig_opt.studies.summary import Judged, Line


def compare(
    call: Call,
    batches: Annotated[list[str], options.argument("BATCH", "JSON or CSV files, bundled instances, or -.")],
    *,
    methods: Annotated[str | None, "NAMES", "Some of: mig-opt methods.  [default: cp and every heuristic]"] = None,
    partition: Annotated[str | None, "P", "For fixpart among the methods: instances in order, such as 4+2+1."] = None,
    time_limit: Annotated[float, "S", "Seconds for each method on each batch."] = (COMPARISON_TIME_LIMIT),
    seed: options.Seed = 0,
    workers: options.Workers = None,
    given: options.BatchOptions,
    output: Annotated[Path | None, "Write a line for each run as CSV."] = None,
) -> Answer:
    """Run several methods on several batches, side by side.

    gap: how far the makespan is above the best lower bound that any of the methods found. above: how far it is above
    the shortest makespan that any of them found, or that is on record for a bundled instance. Exits with 0 if
    every batch got a schedule, 1 if one got none or a method failed, and 130 after Ctrl-C, which shows what is done.

    Examples
    --------
    mig-opt compare rodinia-a30
    mig-opt compare rodinia-a30 batch.json --methods cp,far -o table.csv
    """
    from mig_opt.cli.progress import RunsBar
    from mig_opt.studies.comparison import check_comparison, comparison_to_csv, default_methods
    from mig_opt.studies.comparison import compare as run_comparison

    names = None if methods is None else [name.strip() for name in methods.split(",") if name.strip()]
    problems = _load(call, batches, given)
    settings: dict[str, Any] = {"time_limit": time_limit, "seed": seed, "workers": workers, "partition": partition}
    call.attempt(check_comparison, names, batches=problems, **settings)
    call.begin(table=output)

    runs = len(problems) * len(default_methods() if names is None else names)
    with call.bar("runs", runs) as bar:
        on_record = _on_record(problems, batches)
        callbacks = RunsBar(bar) if bar.shown else ()
        found = run_comparison(problems, names, on_record=on_record, callbacks=callbacks, **settings)
    solved = all(any(run.outcome.answered for run in runs) for runs in found.by_batch.values())
    code = code_of(good=solved and not found.failures, interrupted=found.interrupted)
    answer = Answer(_report(found), code, [File("table", output, comparison_to_csv(found))])
    return contradicting(answer, found.contradictions)


def _load(call: Call, arguments: Sequence[str], given: options.BatchOptions) -> dict[str, Batch]:
    """Return the batches by the names that tables call them: their own, or the argument where these are the same."""
    loaded: list[tuple[str, Batch]] = []
    for argument, count in Counter(arguments).items():
        with call.step():
            if count > 1:
                refuse("BATCH", f"{argument} is given {count} times; once is enough")
            loaded.append((argument, load_batch(argument, given)))
    counts = Counter(batch.name for _, batch in loaded)
    return {argument if counts[batch.name] > 1 else batch.name: batch for argument, batch in loaded}


def _on_record(batches: dict[str, Batch], arguments: Sequence[str]) -> dict[str, float]:
    """Return the best makespans on record of those batches that are bundled ones as they are."""
    from mig_opt.instances.bundled import instance_info, instance_names, load

    found = {}
    for name, batch in batches.items():
        if name in arguments and name in instance_names(drawn=True) and batch == load(name):
            best = instance_info(name).best
            if best is not None:
                found[name] = best.value
    return found


def _report(found: Comparison) -> Report:
    from mig_opt.studies.comparison import comparison_rows
    from mig_opt.studies.summary import line_document

    data = {
        "interrupted": found.interrupted,
        "runs": comparison_rows(found),
        "methods": list(map(line_document, found.methods)),
        "contradictions": found.contradictions,
    }
    if not found.runs:
        return Report(parts=["Nothing was done."], data=data)
    rows: list[list[str]] = []
    for name, runs in found.by_batch.items():
        rows.append([strong(name), *[""] * 5])
        rows += map(_cells, runs)
        for label, value in (("best bound", runs[0].best_bound), ("best known", runs[0].best_known)):
            rows.append([dim(cell) for cell in (f"  {label}", "", seconds(value), "", "", "")])
    columns = ["~batches, methods", "status", ">makespan s", ">gap %", ">above %", ">time s"]
    parts: list[Part] = [Table(columns, rows)]
    if len(found.by_batch) > 1:
        parts.append(_summary(found.methods))
    if found.failures:
        parts.append(Points(found.failures, "Methods that failed:"))
    if found.interrupted:
        parts.append("Interrupted: this is what was done so far.")
    return Report(parts=parts, data=data)


def _cells(run: Judged) -> list[str]:
    outcome = run.outcome
    return [
        f"  {run.run.column}",
        spelled_status(outcome.status),
        seconds(outcome.makespan),
        percent(run.gap),
        percent(run.above_best),
        f"{outcome.seconds:.3f}",
    ]


def _summary(lines: Sequence[Line]) -> Table:
    rows = [
        [
            line.method,
            f"{line.answered}/{line.runs}",
            str(line.proven),
            str(line.best),
            *percents(line.gap, "mean", "worst"),
            *percents(line.above_best, "mean", "worst"),
            f"{line.seconds.mean:.3f}" if line.seconds else "-",
        ]
        for line in lines
    ]
    columns = ["method", ">solved", ">proven", ">best", ">gap %", ">worst", ">above %", ">worst", ">mean s"]
    return Table(columns, rows, ["gap %, above %: mean of the batches."])
