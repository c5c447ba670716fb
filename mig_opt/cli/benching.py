"""The command bench."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from mig_opt.cli import options
from mig_opt.cli.inputs import check_outputs
from mig_opt.cli.outcome import Checks, exit_if_contradicting, finish, print_json, say
from mig_opt.cli.screens import show
from mig_opt.texts import plural

if TYPE_CHECKING:
    from mig_opt.studies import StudyRows


def bench(
    study: Annotated[Path, Argument(metavar="STUDY", help="JSON or TOML file.", show_default=False)],
    *,
    output: Annotated[Path | None, options.output("Rows, one line of JSON each.  [default: STUDY with .jsonl]")] = None,
    jobs: Annotated[
        int | None, Option(metavar="N", help="Runs at the same time.  [default: 1, or all threads of the cluster]")
    ] = None,
    scheduler: Annotated[
        str | None, Option(metavar="ADDRESS", help="Dask scheduler whose workers do the runs, tcp://HOST:PORT.")
    ] = None,
    keep: Annotated[
        bool, Option("--keep", help="Let rows count that other versions of mig-opt or its solvers made.")
    ] = False,
    retry: Annotated[bool, Option("--retry", help="Do runs again that ended with an error.")] = False,
    table: Annotated[bool, Option("--table", help="Run nothing, only show what is known.")] = False,
    as_json: options.Json = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Do the runs of a study that are missing; show its tables.

    They are of methods on batches, and of schedulers on traces. Each run is a line of the output, written when it ends:
    a study that was stopped goes on with the same command, and
    only runs in flight are lost. A run that fails is a line with its error. Exits with 0 if all is done, 1 if runs
    failed (or are missing, with --table), and 130 after Ctrl-C.
    """
    from mig_opt.cli.study_screens import document, shown_study_progress, study_parts
    from mig_opt.studies import read_study, run_study, study_rows
    from mig_opt.studies.execution import SourcesChangedError
    from mig_opt.studies.running import check_jobs

    results = study.parent / f"{study.stem}.jsonl" if output is None else output
    checks = Checks()
    plan = checks.attempt(read_study, study)
    checks.attempt(check_jobs, jobs)
    checks.attempt(check_outputs, [study], rows=results)
    checks.finish()
    interrupted = False
    if not table:
        at_once = jobs if jobs is not None or scheduler is not None else 1
        with shown_study_progress(quiet=quiet or as_json) as progress:
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
                finish(good=False)
    found = study_rows(plan, results, folder=study.parent, keep=keep)
    if as_json:
        print_json(document(found, interrupted=interrupted))
    else:
        show(*study_parts(found))
        _show_state(found, results, interrupted=interrupted, table=table)
    exit_if_contradicting(found.contradictions)
    finish(good=not (found.failures or found.missing), interrupted=interrupted)


def _show_state(found: StudyRows, results: Path, *, interrupted: bool, table: bool) -> None:
    """Show how much of a study is done."""
    if found.foreign:
        were = "was" if found.foreign == 1 else "were"
        show(f"{plural(found.foreign, 'run')} {were} made with other sources or versions.")
    total = len(found.rows) + len(found.missing)
    if interrupted:
        show(f"Interrupted after {len(found.rows)} of {total} runs; the same command goes on from here.")
    elif found.missing:
        hint = "without --table they are done" if table else "run the command again"
        show(f"{len(found.missing)} of {total} runs are missing; {hint}.")
    if found.rows:
        show(f"{plural(len(found.rows), 'row')} in {results}.")
