"""The command compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from mig_opt.batch.batch import Batch
from mig_opt.cli import options
from mig_opt.cli.inputs import check_outputs, load_batch
from mig_opt.cli.outcome import Checks, exit_if_contradicting, finish, print_json, refuse
from mig_opt.cli.screens import Cell, Part, bullets, note, percent, percents, seconds, show, status, styled, table
from mig_opt.method.study import COMPARISON_TIME_LIMIT

if TYPE_CHECKING:
    from mig_opt.studies.comparison import Comparison
    from mig_opt.studies.summary import Judged, Line


def compare(
    batches: Annotated[list[str], Argument(metavar="BATCH", help="JSON or CSV files, bundled instances, or -.")],
    *,
    methods: Annotated[
        str | None, Option(metavar="NAMES", help="Some of: mig-opt methods.  [default: cp and every heuristic]")
    ] = None,
    partition: Annotated[
        str | None, Option(metavar="P", help="For fixpart among the methods: instances in order, such as 4+2+1.")
    ] = None,
    time_limit: Annotated[float, Option(metavar="S", help="Seconds for each method on each batch.")] = (
        COMPARISON_TIME_LIMIT
    ),
    seed: options.Seed = 0,
    workers: options.Workers = None,
    gpu: options.Gpu = None,
    gpus: options.Gpus = None,
    costs: options.Costs = None,
    output: Annotated[Path | None, options.output("Write a line for each run as CSV.")] = None,
    as_json: options.Json = False,
) -> None:
    """Run several methods on several batches, side by side.

    gap: how far the makespan is above the best lower bound that any of the methods found. above: how far it is above
    the shortest makespan that any of them found, or that is on record for a bundled instance. Exits with 0 if
    every batch got a schedule, 1 if one got none or a method failed, and 130 after Ctrl-C, which shows what is done.
    """
    from mig_opt.cli.progress import RunsBar, shown_bar
    from mig_opt.studies.comparison import check_comparison, comparison_rows, comparison_to_csv, default_methods
    from mig_opt.studies.comparison import compare as run_comparison
    from mig_opt.studies.summary import line_document

    checks = Checks()
    names = None if methods is None else [name.strip() for name in methods.split(",") if name.strip()]
    problems = _load(checks, batches, gpu, gpus, costs)
    settings: dict[str, Any] = {"time_limit": time_limit, "seed": seed, "workers": workers, "partition": partition}
    checks.attempt(check_comparison, names, batches=problems, **settings)
    checks.attempt(check_outputs, batches, table=output)
    checks.finish()

    runs = len(problems) * len(default_methods() if names is None else names)
    with shown_bar("runs", runs, quiet=as_json) as bar:
        on_record = _on_record(problems, batches)
        callbacks = () if bar is None else RunsBar(bar)
        comparison = run_comparison(problems, names, on_record=on_record, callbacks=callbacks, **settings)
    if output is not None:
        from mig_opt.files.documents import write_text

        write_text(output, comparison_to_csv(comparison))
    if as_json:
        document = {
            "interrupted": comparison.interrupted,
            "runs": comparison_rows(comparison),
            "methods": [line_document(line) for line in comparison.methods],
            "contradictions": comparison.contradictions,
        }
        print_json(document)
    else:
        _show(comparison, output)
    exit_if_contradicting(comparison.contradictions)
    solved = all(any(run.outcome.answered for run in runs) for runs in comparison.by_batch.values())
    finish(good=solved and not comparison.failures, interrupted=comparison.interrupted)


def _load(
    checks: Checks, arguments: Sequence[str], gpu: str | None, gpus: int | None, costs: str | None
) -> dict[str, Batch]:
    """Return the batches by the names that tables call them: their own, or the argument where these are the same."""
    loaded: list[tuple[str, Batch]] = []
    for argument, count in Counter(arguments).items():
        with checks.step():
            if count > 1:
                refuse("BATCH", f"{argument} is given {count} times; once is enough")
            loaded.append((argument, load_batch(argument, gpu, gpus, costs=costs)))
    counts = Counter(batch.name for _, batch in loaded)
    return {argument if counts[batch.name] > 1 else batch.name: batch for argument, batch in loaded}


def _on_record(batches: dict[str, Batch], arguments: Sequence[str]) -> dict[str, float]:
    """Return the best makespans on record of those batches that are bundled ones as they are."""
    from mig_opt.instances.bundled import instance_info, instance_names, load_instance

    found = {}
    for name, batch in batches.items():
        if name in arguments and name in instance_names() and batch == load_instance(name):
            best = instance_info(name).best_known
            if best is not None and best.makespan is not None:
                found[name] = best.makespan.value
    return found


def _show(comparison: Comparison, output: Path | None) -> None:
    if not comparison.runs:
        show("Nothing was done.")
        return
    rows: list[list[Cell]] = []
    for name, runs in comparison.by_batch.items():
        rows.append([styled(name, "bold"), *[""] * 5])
        rows += (_cells(run) for run in runs)
        for label, value in (("best bound", runs[0].best_bound), ("best known", runs[0].best_known)):
            rows.append([note(cell) for cell in (f"  {label}", "", seconds(value), "", "", "")])
    show(table(["~batches, methods", "status", ">makespan s", ">gap %", ">above %", ">time s"], rows))
    if len(comparison.by_batch) > 1:
        show("", _summary(comparison.methods), "", note("gap %, above %: mean of the batches."))
    if comparison.failures:
        show("", "Methods that failed:", bullets(comparison.failures))
    if comparison.interrupted:
        show("", "Interrupted: this is what was done so far.")
    if output is not None:
        show("", f"Table written to {output}.")


def _cells(run: Judged) -> list[Cell]:
    outcome = run.outcome
    return [
        f"  {run.run.column}",
        status(outcome.status),
        seconds(outcome.makespan),
        percent(run.gap),
        percent(run.above_best),
        f"{outcome.seconds:.3f}",
    ]


def _summary(lines: Sequence[Line]) -> Part:
    rows = (
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
    )
    columns = ["method", ">solved", ">proven", ">best", ">gap %", ">worst", ">above %", ">worst", ">mean s"]
    return table(columns, rows)
