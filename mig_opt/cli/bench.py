"""The command bench."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from mig_opt.cli import options
from mig_opt.cli.answers import Answer, Call, code_of, contradicting


def bench(
    call: Call,
    study: Annotated[Path, options.argument("STUDY", "JSON or TOML file.")],
    *,
    output: Annotated[Path | None, "Rows, one line of JSON each.  [default: STUDY with .jsonl]"] = None,
    jobs: Annotated[int | None, "N", "Runs at the same time.  [default: 1, or all threads of the cluster]"] = None,
    scheduler: Annotated[str | None, "ADDRESS", "Dask scheduler whose workers do the runs, tcp://HOST:PORT."] = None,
    keep: Annotated[bool, "Let rows count that other versions of mig-opt or its solvers made."] = False,
    retry: Annotated[bool, "Do runs again that ended with an error."] = False,
    table: Annotated[bool, "Run nothing, only show what is known."] = False,
    quiet: Annotated[bool, "No progress."] = False,  # noqa: ARG001  # the call heeds it
) -> Answer:
    """Do the runs of a study that are missing; show its tables.

    They are of methods on batches, and of schedulers on traces. Each run is a line of the output, written when it ends:
    a study that was stopped goes on with the same command, and
    only runs in flight are lost. A run that fails is a line with its error. Exits with 0 if all is done, 1 if runs
    failed (or are missing, with --table), and 130 after Ctrl-C.

    Examples
    --------
    mig-opt bench study.toml --jobs 2
    mig-opt bench study.toml --table
    """
    from mig_opt.cli.study import StudyBar, study_report
    from mig_opt.studies import read_study, run_study, study_rows
    from mig_opt.studies.execution import SourcesChangedError
    from mig_opt.studies.studies import check_jobs

    results = study.parent / f"{study.stem}.jsonl" if output is None else output
    plan = call.attempt(read_study, study)
    call.attempt(check_jobs, jobs)
    if table:
        call.none_of(("--jobs", "--scheduler", "--retry"), "is for runs; leave it out with --table")
    call.begin(rows=None if table else results)
    interrupted = False
    if not table:
        at_once = jobs if jobs is not None or scheduler is not None else 1
        with call.bar("runs") as bar:
            try:
                run_study(
                    plan,
                    results,
                    folder=study.parent,
                    jobs=at_once,
                    scheduler=scheduler,
                    keep=keep,
                    retry=retry,
                    progress=StudyBar(bar),
                )
            except KeyboardInterrupt:
                interrupted = True
            except SourcesChangedError as error:
                return Answer(code=code_of(good=False), said=[f"error: {error}"])
    found = study_rows(plan, results, folder=study.parent, keep=keep)
    code = code_of(good=not (found.failures or found.missing), interrupted=interrupted)
    report = study_report(found, results, interrupted=interrupted, table=table)
    return contradicting(Answer(report, code), found.contradictions)
