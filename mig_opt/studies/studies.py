"""Studies: read, checked and run; the runs that are missing of one, and the rows that a file has of it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from mig_opt.errors import Problem, problems_of, raise_any
from mig_opt.files.documents import Document
from mig_opt.files.studies import STUDY, study_document
from mig_opt.instances.batch import MOST_SEED
from mig_opt.instances.bundled import instance_info
from mig_opt.method.study import GeneratedBatches, GeneratedTraces, Study
from mig_opt.rules import entries_of, hints_of, parts_of, wrong_class, wrong_flag, wrong_integer
from mig_opt.rules.vocabulary import MOST_GPUS
from mig_opt.studies import batch, fleet
from mig_opt.studies.batch import BatchRun
from mig_opt.studies.environment import fingerprint
from mig_opt.studies.execution import MOST_JOBS, run_missing
from mig_opt.studies.fleet import TraceRun
from mig_opt.studies.rows import Records, Row, contradictions, failures
from mig_opt.studies.runs import Source, StudyRun, list_problems
from mig_opt.studies.summary import Judged, Line, TraceLine, Winners, judge, summarise, summarise_traces, winners


@dataclass(frozen=True, slots=True)
class StudyRows:
    """Rows of a study.

    Attributes
    ----------
    rows : tuple of Row
        Of the runs that were done, in the order of the study.
    missing : tuple of StudyRun
        The others.
    foreign : int
        Number of rows that were made with other sources or versions.
    """

    rows: tuple[Row[StudyRun], ...]
    missing: tuple[StudyRun, ...]
    foreign: int = 0

    @property
    def contradictions(self) -> list[str]:
        """Lower bounds above a schedule of the same batch or trace: defects, always."""
        return contradictions(self.rows)

    @property
    def failures(self) -> list[str]:
        """Runs without a result, and schedules or logs that are not valid."""
        return failures(self.rows)

    def judged(self) -> list[Judged]:
        """Return each run of a method beside the best on its batch, for bundled instances also the best on record."""
        rows = [row for row in self.rows if isinstance(row.run, BatchRun)]
        return judge(rows, {row.run.batch_key: best for row in rows if (best := _on_record(row.run))})

    def summary(self) -> list[Line]:
        """Return a line for each method in each cell."""
        return summarise(self.judged())

    def simulated(self) -> list[Row[StudyRun]]:
        """Return the rows of schedulers."""
        return [row for row in self.rows if isinstance(row.run, TraceRun)]

    def trace_summary(self) -> list[TraceLine]:
        """Return a line for each scheduler in each group of traces."""
        return summarise_traces(self.simulated())

    def winners(self) -> list[Winners]:
        """Return which schedulers are best in each group of traces."""
        return winners(self.simulated())


class StudyProgress:
    """Receiver of the progress of a study; override what you need."""

    def on_start(self, missing: Sequence[StudyRun], known: int) -> None:
        """Runs are to be done, and a number of others are known."""

    def on_row(self, row: Row[StudyRun]) -> None:
        """A run was done, and its row is written."""


def run_study(
    study: Study,
    results: str | Path | None = None,
    *,
    folder: str | Path = ".",
    jobs: int | None = None,
    scheduler: str | None = None,
    keep: bool = False,
    retry: bool = False,
    progress: StudyProgress | None = None,
) -> StudyRows:
    """Do the runs of a study that are missing.

    Parameters
    ----------
    study : Study
        The study.
    results : str or Path, optional
        File with one line of JSON for each run. Runs that it has are not done again, so that a study that was stopped
        goes on. By default rows are only returned.
    folder : str or Path
        Folder where relative paths of files begin.
    jobs : int, optional
        Runs at the same time, in processes of their own; a run that kills its process is a row with its error. By
        default the runs are done in this process (with ``scheduler``: on all threads of the cluster).
    scheduler : str, optional
        Address of a Dask scheduler, e.g. ``tcp://10.0.0.1:8786``: its workers do the runs.
    keep : bool
        True: rows count that were made with other sources of this package or other versions.
    retry : bool
        True: runs that ended with an error are done again.
    progress : StudyProgress, optional
        Told how it gets on.

    Returns
    -------
    StudyRows
        Every row, with the bounds and makespans of all.

    Raises
    ------
    InputError
        If something is wrong with the study, the file or the scheduler.
    SourcesChangedError
        If the sources of this package change while the study runs.
    KeyboardInterrupt
        After Ctrl-C. The rows are written; only runs in flight are lost.

    Examples
    --------
    >>> from mig_opt.studies import BundledBatch, MethodSettings, Study, run_study
    >>> study = Study((BundledBatch("rodinia-a30"),), (MethodSettings("far"), MethodSettings("cp")))
    >>> for line in run_study(study).summary():
    ...     print(f"{line.method}: {line.above_best.mean:.2%} above the best, {line.proven} proven")
    far: 2.91% above the best, 0 proven
    cp: 0.00% above the best, 1 proven
    """
    check_jobs(jobs)
    check_study(study, Path(folder))
    runs = runs_of(study, Path(folder))
    records = Records(None if results is None else Path(results), read_run, keep=keep)
    current = fingerprint()
    missing = _known(runs, records, current, retry=retry).missing
    progress = progress or StudyProgress()
    progress.on_start(missing, len(runs) - len(missing))
    run_missing(
        missing, StudyRun.perform, records, sources=fingerprint, jobs=jobs, scheduler=scheduler, told=progress.on_row
    )
    return _known(runs, records, current)


def study_rows(study: Study, results: str | Path, *, folder: str | Path = ".", keep: bool = False) -> StudyRows:
    """Return the rows that a file of results has of a study, without running anything.

    The parameters are those of :func:`mig_opt.run_study`.
    """
    check_study(study, Path(folder))
    runs = runs_of(study, Path(folder))
    return _known(runs, Records(Path(results), read_run, keep=keep), fingerprint())


def check_jobs(jobs: object) -> None:
    """Refuse a number of runs at the same time that cannot be."""
    raise_any(() if jobs is None else wrong_integer("jobs", jobs, 1, MOST_JOBS))


def runs_of(study: Study, folder: Path) -> list[StudyRun]:
    """Return the runs of a study without problems, each once: methods batch by batch, schedulers trace by trace."""
    runs: dict[str, StudyRun] = {}
    for run in [*BatchRun.runs_of(study.batches, study, folder), *TraceRun.runs_of(study.traces, study, folder)]:
        runs.setdefault(run.key, run)
    return list(runs.values())


def read_run(document: Mapping[str, Any]) -> StudyRun:
    """Return the run of a row in a file of results; a KeyError if it is none."""
    run_class = TraceRun if TraceRun.KIND in document else BatchRun
    arguments = dict(document)
    source = arguments.pop(run_class.KIND)
    if missing := run_class.ARGUMENTS - arguments.keys():
        raise KeyError(missing)
    return run_class(source, arguments)


def _known(runs: Sequence[StudyRun], records: Records[StudyRun], current: str, *, retry: bool = False) -> StudyRows:
    """Return what is known of runs; with ``retry``, those that ended with an error are missing."""
    rows, missing = [], []
    for run in runs:
        row = records.find(run, current)
        if row is None or (retry and row.outcome.error):
            missing.append(run)
        else:
            rows.append(replace(row, run=run))  # a row from a file does not know the names of its run in tables
    return StudyRows(tuple(rows), tuple(missing), sum(row.fingerprint != current for row in rows))


def _on_record(run: StudyRun) -> float | None:
    """Return the best makespan on record of a bundled instance as it is."""
    name = run.source.get("instance")
    if name is None or run.cell != name:
        return None
    best = instance_info(name).best
    return None if best is None else best.value


_LARGEST_SEED = 2**31 - 1
_MOST_REPETITIONS = 1_000_000


def read_study(path: str | Path) -> Study:
    """Read a study from a JSON file, or from a TOML file if its name ends in ``.toml``.

    Raises
    ------
    InputError
        With every problem of the file, and of the files that it names.
    """
    return study_from_json(study_document(path), folder=Path(path).parent, source=str(path))


def study_from_json(document: Document, *, folder: str | Path = ".", source: str = "") -> Study:
    """Return the study that a JSON document describes; relative paths of files begin in the folder.

    Examples
    --------
    >>> study = study_from_json(
    ...     '{"schema": "mig-opt/study/1", "batches": [{"n": [10, 20], "seeds": 3}],'
    ...     ' "methods": [{"method": "far"}, {"method": "cp", "time_limit": 10}]}'
    ... )
    >>> study.batches[0].seeds, study.methods[1].time_limit
    ((0, 1, 2), (10.0,))
    """
    return STUDY.from_json(document, source=source, part_problems=lambda parts: _part_problems(parts, Path(folder)))


def check_study(study: Study, folder: Path) -> None:
    """Refuse a study that cannot be run; relative paths of files begin in the folder."""
    raise_any(wrong_class("study", study, Study, "read_study('study.toml')"))
    lists = {key: get_args(parts_of(hint).bare) for key, hint in hints_of(Study).items()}
    wanted = "a source or settings, such as MethodSettings('far')"
    given = ((key, getattr(study, key), kind[0]) for key, kind in lists.items() if kind)
    raise_any(problem for key, own, kind in given for problem in problems_of(entries_of, key, own, kind, wanted))
    problems = list(_part_problems(study, folder))
    problems += wrong_integer("repetitions", study.repetitions, 1, _MOST_REPETITIONS)
    problems += wrong_integer("seed", study.seed, 0, _LARGEST_SEED - _MOST_REPETITIONS)
    problems += wrong_flag("fresh", study.fresh)
    raise_any(problems)


def _part_problems(parts: Study, folder: Path) -> Iterator[Problem]:
    """Yield the problems of the parts of a study beyond their shape; of what cannot be read none."""
    batches, traces = parts.batches or parts.methods, parts.traces or parts.policies
    if batches or not traces:
        yield from _missing(parts, ("batches", "methods"), "" if batches else "traces and policies")
    if traces:
        yield from _missing(parts, ("traces", "policies"), "")
    for run_class, key in ((BatchRun, "batches"), (TraceRun, "traces")):
        for index, source in enumerate(getattr(parts, key)):
            found = () if source is None else _source_problems(source, run_class, folder)
            yield from (problem.below(f"{key}[{index}]") for problem in found)
    samples = functools.cache(lambda: list(batch.sample_batches(parts.batches, folder)))
    of_method = functools.partial(batch.method_problems, samples=samples)
    yield from _solver_problems("methods", parts.methods, of_method, batch.columns)
    yield from _solver_problems("policies", parts.policies, fleet.policy_problems, fleet.policy_columns)


def _missing(parts: Study, keys: Iterable[str], others: str) -> Iterator[Problem]:
    for key in keys:
        if not getattr(parts, key):
            yield Problem(key, "needs at least one entry" + (f", or the study needs {others}" if others else ""))


def _source_problems(source: Source, run_class: type[StudyRun], folder: Path) -> Iterator[Problem]:
    """Yield the problems of batches or traces."""
    if isinstance(source, GeneratedBatches):
        yield from _value_problems(source, batch.setting_problems)
    elif isinstance(source, GeneratedTraces):
        problems = list(_value_problems(source, fleet.setting_problems))
        problems += (problem.below("parameters") for problem in list_problems(source.parameters))
        yield from problems or dict.fromkeys(fleet.parameter_problems(source))
    else:
        wrong = [] if source.gpus is None else list(wrong_integer("gpus", source.gpus, 1, MOST_GPUS))
        yield from [*wrong, *wrong_flag("operation_costs", source.operation_costs)]
        file = getattr(source, "file", None)
        found = problems_of(run_class.load, dataclasses.replace(source, gpus=None), folder)
        for problem in found:
            yield Problem("instance", problem.message) if file is None else Problem("file", f"{file}: {problem}")
        if not (wrong or found or source.gpus is None):
            yield from problems_of(run_class.load, source, folder)  # they may be too few, or said by pools


def _value_problems(
    source: GeneratedBatches | GeneratedTraces, check: Callable[[str, Any], Iterator[Problem]]
) -> Iterator[Problem]:
    """Yield the problems of each of the values that the settings of a generator list, with the path of the value."""
    for attribute in dataclasses.fields(source):
        name = attribute.name
        if name in ("parameters", "group"):
            continue
        values = getattr(source, name)
        yield from (wrong := list(list_problems({name: values})))
        for index, value in () if wrong else enumerate(values):
            if name == "operation_costs":
                found = wrong_flag(name, value)
            elif name == "seeds":
                found = wrong_integer(name, value, 0, MOST_SEED if isinstance(source, GeneratedBatches) else 2**63 - 1)
            else:
                found = check(name, value)
            where = name if len(values) == 1 else f"{name}[{index}]"
            yield from (Problem(where, problem.message) for problem in found)


def _solver_problems(
    key: str,
    solvers: Sequence[Any],
    problems_of: Callable[[Any], Iterable[Problem]],
    columns: Callable[[Sequence[Any]], Iterable[tuple[Any, dict[str, Any], str]]],
) -> Iterator[Problem]:
    """Yield the problems of methods or schedulers, also of those that have the name of another one in tables."""
    known: dict[str, int] = {}
    for index, settings in enumerate(solvers):
        if settings is None:
            continue
        wrong = dict.fromkeys(problems_of(settings))
        yield from (problem.below(f"{key}[{index}]") for problem in wrong)
        for title in () if wrong else dict.fromkeys(title for *_, title in columns([settings])):
            first = known.setdefault(title, index)
            if first != index:
                message = f"tables would call this {title!r}, like {key}[{first}]; give one of them another label"
                yield Problem(f"{key}[{index}].label", message)
