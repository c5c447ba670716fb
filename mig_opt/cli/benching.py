"""The command bench."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mig_opt.cli.inputs import JsonOption, check_output
from mig_opt.cli.interruption import INTERRUPTED
from mig_opt.cli.outcome import ANSWER_IS_NO, DEFECT, REQUEST, Checks, options_named, print_json, say
from mig_opt.texts import plural, printable

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from mig_opt.studies import Figures, Line, StudyProgress, StudyRows, TraceLine

MOST_SHOWN = 10
"""Failures that are shown in full."""

_OPTIONS = {name: f"--{name}" for name in ("jobs", "scheduler")}


def bench(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="JSON or TOML file.", show_default=False)],
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Rows, one line of JSON each.  [default: STUDY with .jsonl]"
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(metavar="N", help="Runs at the same time.  [default: 1, or all threads of the cluster]"),
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Dask scheduler whose workers do the runs, tcp://HOST:PORT.")
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Let rows count that other versions of mig-opt or its solvers made.")
    ] = False,
    retry: Annotated[bool, typer.Option("--retry", help="Do runs again that ended with an error.")] = False,
    table: Annotated[bool, typer.Option("--table", help="Run nothing, only show what is known.")] = False,
    as_json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Do the runs of a study that are missing, and show its tables: methods on batches, schedulers on traces.

    Each run is a line of the output, written when it ends: a study that was stopped goes on with the same command, and
    only runs in flight are lost. A run that fails is a line with its error. Exits with 0 if all is done, 1 if runs
    failed (or are missing, with --table), and 130 after Ctrl-C.
    """
    from mig_opt.studies import SourcesChangedError, read_study, run_study, study_rows
    from mig_opt.studies.running import check_jobs

    results = study.parent / f"{study.stem}.jsonl" if output is None else output
    checks = Checks()
    with checks.step():
        plan = read_study(study)
    with checks.step(), options_named(_OPTIONS):
        check_jobs(jobs)
    with checks.step():
        check_output(results, study)
    checks.finish()
    interrupted = False
    if not table:
        at_once = jobs if jobs is not None or scheduler is not None else 1
        with _progress(quiet=quiet or as_json) as progress, options_named(_OPTIONS):
            try:
                run_study(
                    plan,
                    results,
                    folder=study.parent,
                    jobs=at_once,
                    scheduler=scheduler,
                    keep=keep,
                    retry=retry,
                    progress=progress,
                )
            except KeyboardInterrupt:
                interrupted = True
            except SourcesChangedError as error:
                say(f"error: {error}")
                raise typer.Exit(ANSWER_IS_NO) from None
    found = study_rows(plan, results, folder=study.parent, keep=keep)
    if as_json:
        print_json(_document(found, interrupted=interrupted))
    else:
        _show(found, results, interrupted=interrupted, table=table)
    if found.contradictions:
        say("\n".join(["error: bounds and schedules contradict each other:", *found.contradictions, REQUEST]))
        raise typer.Exit(DEFECT)
    if interrupted:
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(ANSWER_IS_NO if found.failures or found.missing else 0)


@contextlib.contextmanager
def _progress(*, quiet: bool) -> Iterator[StudyProgress | None]:
    from mig_opt.cli.live import LiveLine

    if quiet or not LiveLine.possible():
        yield None
        return
    from mig_opt.cli.progress_bar import ProgressBar

    with ProgressBar() as bar:
        yield bar


def _show(found: StudyRows, results: Path, *, interrupted: bool, table: bool) -> None:
    from mig_opt.cli import screens

    lines = found.summary()
    if lines:
        screens.show(_table(lines), "", screens.note("gap %: mean, to the best bound of all runs on a batch."))
        screens.show(screens.note("above %: mean, over the shortest makespan of all runs on a batch, or on record."))
        screens.show("")
    simulated = found.trace_summary()
    if simulated:
        screens.show(_trace_table(simulated), "", *_trace_notes(simulated), "", _winners(found), "")
    failures = found.failures
    if failures:
        more = [f"and {len(failures) - MOST_SHOWN} more"] if len(failures) > MOST_SHOWN else []
        screens.show("Runs that failed:", screens.bullets([*failures[:MOST_SHOWN], *more]), "")
    if found.foreign:
        were = "was" if found.foreign == 1 else "were"
        screens.show(f"{plural(found.foreign, 'run')} {were} made with other sources or versions.")
    total = len(found.rows) + len(found.missing)
    if interrupted:
        screens.show(f"Interrupted after {len(found.rows)} of {total} runs; the same command goes on from here.")
    elif found.missing:
        hint = "without --table they are done" if table else "run the command again"
        screens.show(f"{len(found.missing)} of {total} runs are missing; {hint}.")
    if found.rows:
        screens.show(f"{plural(len(found.rows), 'row')} in {results}.")


def _table(lines: Sequence[Line]) -> Table:
    from rich.text import Text

    from mig_opt.cli import screens

    numbers = ("runs", "proven", "gap %", "median", "worst", "above %", "worst", "mean s")
    rows: list[list[str | Text]] = []
    cell = None
    for line in lines:
        if line.cell != cell:
            rows.append([Text(printable(line.cell), "bold"), *[""] * len(numbers)])
        rows.append(
            [
                Text(f"  {line.method}"),
                f"{line.answered}/{line.runs}",
                str(line.proven),
                *screens.percents(line.gap, "mean", "median", "worst"),
                *screens.percents(line.above_best, "mean", "worst"),
                screens.seconds(line.seconds.mean if line.seconds else None),
            ]
        )
        cell = line.cell
    return screens.table([("batches, methods", "text"), *((name, "number") for name in numbers)], rows)


def _trace_table(lines: Sequence[TraceLine]) -> Table:
    from rich.text import Text

    from mig_opt.cli import screens
    from mig_opt.cli.fleet.policies import broken_label

    numbers = ("done", "to end s", "gap %", "wait s", "makespan s", "gap %", "ms")
    rows: list[list[str | Text]] = []
    for index, line in enumerate(lines):
        if index == 0 or line.cell != lines[index - 1].cell:
            rows.append([Text(printable(line.cell), "bold"), *[""] * len(numbers)])
        rows.append(
            [
                broken_label(line.policy, "  "),
                f"{line.complete}/{line.runs}",
                _mean(line.completion),
                _mean(line.completion_gap, 100),
                _mean(line.wait),
                _mean(line.makespan),
                _mean(line.makespan_gap, 100),
                _mean(line.seconds, 1000),
            ]
        )
    return screens.table([("traces, policies", "text"), *((name, "number") for name in numbers)], rows)


def _mean(figures: Figures | None, factor: float = 1.0) -> str:
    from mig_opt.cli import screens

    return "-" if figures is None else screens.tenths(factor * figures.mean)


def _trace_notes(lines: Sequence[TraceLine]) -> Iterator[Text | str]:
    from mig_opt.cli import screens

    yield screens.note("done: traces on which all jobs were done, whose means the figures are. ms: of a simulation.")
    yield screens.note("to end, wait: seconds from arrival; gap %: to the lower bound that no scheduler beats.")
    for line in lines:
        if line.unfinished:
            count = plural(line.unfinished, "job")
            yield f"{line.policy} leaves {count} waiting for ever: {printable(line.cell)}"


def _winners(found: StudyRows) -> Table:
    from rich.text import Text

    from mig_opt.cli import screens
    from mig_opt.cli.fleet.policies import broken_label
    from mig_opt.studies.summary import GOALS

    rows: list[list[str | Text]] = []
    for entry in found.winners():
        policies: str | Text = "; ".join(entry.policies) or "-"
        if ":" in policies:  # Labels with options have no spaces at which a line could end.
            policies = Text("\n").join(broken_label(policy, longest=40) for policy in entry.policies)
        rows.append([entry.cell, GOALS[entry.goal], policies])
    return screens.table([("traces", "name"), ("least", "name"), ("policy, and those within the spread", "text")], rows)


def _document(found: StudyRows, *, interrupted: bool) -> str:
    from mig_opt.files.documents import rendered
    from mig_opt.studies.summary import line_document

    return rendered(
        {
            "done": len(found.rows),
            "missing": len(found.missing),
            "foreign": found.foreign,
            "interrupted": interrupted,
            "lines": [line_document(line) for line in found.summary()],
            "simulated": [line_document(line) for line in found.trace_summary()],
            "winners": [line_document(entry) for entry in found.winners()],
            "failures": found.failures,
            "contradictions": found.contradictions,
        }
    )
