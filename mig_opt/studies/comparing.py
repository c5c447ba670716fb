"""Comparison of methods on batches, side by side."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mig_opt.arguments import wrong_type
from mig_opt.batch.batch import Batch
from mig_opt.control import Callbacks
from mig_opt.errors import InputError, Problem, UnknownMethodError
from mig_opt.registry import get_method, methods
from mig_opt.result import Status
from mig_opt.solving import check_options, check_partition
from mig_opt.studies.batch import BatchRun, measure, tolerance
from mig_opt.studies.execution import run_missing
from mig_opt.studies.rows import Outcome, Row, contradictions, failures
from mig_opt.studies.runs import StudyRun
from mig_opt.studies.summary import Judged, Line, grouped, judge, summarise
from mig_opt.study import COMPARISON_TIME_LIMIT


@dataclass(frozen=True, slots=True)
class Compared:
    """A batch with its runs.

    Attributes
    ----------
    name : str
        Name of the batch in the comparison.
    batch : Batch
        The batch.
    runs : tuple of Judged
        One for each method that was run, in the order of the methods.
    """

    name: str
    batch: Batch
    runs: tuple[Judged, ...]

    @property
    def best_found(self) -> float | None:
        """The shortest makespan of the methods in seconds; None if none of them has a schedule."""
        makespans = (run.outcome.makespan for run in self.runs if run.outcome.answered)
        return min((makespan for makespan in makespans if makespan is not None), default=None)

    @property
    def best_bound(self) -> float | None:
        """The greatest lower bound of all methods in seconds."""
        return self.runs[0].best_bound if self.runs else None

    @property
    def best_known(self) -> float | None:
        """The shortest makespan of all methods, or on record, in seconds."""
        return self.runs[0].best_known if self.runs else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Methods side by side.

    Attributes
    ----------
    batches : tuple of Compared
        Batches with their runs, as far as they were done.
    interrupted : bool
        True if Ctrl-C ended it early.
    """

    batches: tuple[Compared, ...]
    interrupted: bool = False

    @property
    def methods(self) -> list[Line]:
        """A line for each method, over all batches."""
        return summarise([run for compared in self.batches for run in compared.runs], by_cell=False)

    @property
    def contradictions(self) -> list[str]:
        """Lower bounds above a schedule of the same batch: defects, always."""
        on_record = {
            compared.runs[0].run.batch_key: (best, tolerance(compared.batch, best))
            for compared in self.batches
            if (best := compared.best_known) is not None and best != compared.best_found
        }
        return contradictions(self._rows(), on_record)

    @property
    def failures(self) -> list[str]:
        """Methods that failed, or returned a schedule that is not valid."""
        return failures(self._rows())

    def _rows(self) -> list[Row[StudyRun]]:
        return [Row(run.run, run.outcome) for compared in self.batches for run in compared.runs]


def default_methods() -> tuple[str, ...]:
    """Return the methods that are compared unless others are named: ``cp``, and heuristics without arguments."""
    return ("cp", *(method.name for method in methods() if method.kind == "heuristic" and not method.options))


def compare(
    batches: Mapping[str, Batch],
    methods: Sequence[str] | None = None,
    *,
    time_limit: float | None = COMPARISON_TIME_LIMIT,
    seed: int = 0,
    workers: int | None = None,
    partition: str | None = None,
    on_record: Mapping[str, float] | None = None,
    callbacks: Callbacks | Sequence[Callbacks] = (),
) -> Comparison:
    """Run methods on batches, one after the other.

    Parameters
    ----------
    batches : mapping of str to Batch
        The batches by the names that the comparison shall use.
    methods : sequence of str, optional
        Names of methods; by default ``cp`` and every heuristic.
    time_limit : float, optional
        Seconds for each method on each batch; None: no limit.
    seed : int
        For what is random.
    workers : int, optional
        Threads; by default one for each core.
    partition : str, optional
        For the method ``fixpart``, see :func:`mig_opt.solve`; it has to be one of the GPUs of all batches.
    on_record : mapping of str to float, optional
        Makespans of batches that are known from elsewhere, in seconds: a method may be above them, too.
    callbacks : Callbacks or sequence of Callbacks
        Told about the progress of each run.

    Returns
    -------
    Comparison
        After Ctrl-C what was done so far, with what the run that it struck had found.

    Raises
    ------
    InputError
        If an argument is wrong; it names them all.

    Examples
    --------
    >>> from mig_opt import load_instance
    >>> from mig_opt.studies import compare
    >>> comparison = compare({"rodinia": load_instance("rodinia-a30")}, ["far", "cp"])
    >>> [f"{line.method}: {line.above_best.worst:.1%}" for line in comparison.methods]
    ['far: 2.9%', 'cp: 0.0%']
    """
    names = check_comparison(
        methods, time_limit=time_limit, seed=seed, workers=workers, partition=partition, batches=batches
    )
    options = {"time_limit": time_limit, "seed": seed, "workers": workers}
    runs = []
    for (name, batch), method in itertools.product(batches.items(), names):
        arguments = {"method": method, **options, "partition": partition if _takes_partition(method) else None}
        runs.append(BatchRun({"name": name}, arguments, name, method, batch))

    def perform(run: BatchRun) -> Outcome:
        run.warm_up()
        return measure(run.subject, **run.arguments, callbacks=callbacks)

    rows: list[Row[BatchRun]] = []

    def told(row: Row[BatchRun]) -> None:
        interrupted = row.outcome.status == Status.INTERRUPTED
        # A run that had found nothing when Ctrl-C struck is none.
        if not interrupted or row.outcome.answered:
            rows.append(row)
        if interrupted:
            raise KeyboardInterrupt

    interrupted = False
    try:
        run_missing(runs, perform, told=told)
    except KeyboardInterrupt:
        interrupted = True
    keys = {run.cell: run.batch_key for run in runs}
    judged = judge(rows, {keys[name]: best for name, best in (on_record or {}).items() if name in keys})
    done = grouped(judged, lambda run: run.run.cell)
    return Comparison(tuple(Compared(name, batches[name], tuple(own)) for name, own in done.items()), interrupted)


def check_comparison(
    methods: Sequence[str] | None,
    *,
    time_limit: object = None,
    seed: object = 0,
    workers: object = None,
    partition: object = None,
    batches: Mapping[str, Batch] | None = None,
) -> tuple[str, ...]:
    """Return the names of the methods, each once; refuse arguments that :func:`compare` cannot work with.

    Without ``batches`` the partition is checked only as far as it does not depend on them.

    Raises
    ------
    InputError
        With every problem.
    """
    problems: list[Problem] = []
    names: dict[str, None] = {}
    for name in default_methods() if methods is None else methods:
        try:
            names[get_method(name).name] = None
        except UnknownMethodError as error:
            problems += (Problem("methods", problem.message) for problem in error.problems)
    if methods is not None and not methods:
        problems.append(Problem("methods", "needs at least one method"))
    problems += _partition_problems(names, partition, batches)
    try:
        check_options(time_limit=time_limit, seed=seed, workers=workers, also=problems)
    except UnknownMethodError as error:
        raise InputError(error.problems) from None
    return tuple(names)


def _takes_partition(method: str) -> bool:
    return "partition" in get_method(method).options


def _partition_problems(
    names: Iterable[str], partition: object, batches: Mapping[str, Batch] | None
) -> Iterator[Problem]:
    takers = [name for name in names if _takes_partition(name)]
    if not takers and partition is None:
        return
    if not takers:
        fitting = " or ".join(method.name for method in methods() if "partition" in method.options)
        yield Problem("partition", f"is for the method {fitting}, which is not compared; leave it out, or compare it")
        return
    if partition is not None and not isinstance(partition, str):
        yield wrong_type("partition", partition, "a text such as '4+2+1'")
        return
    for name, batch in (batches or {}).items():
        try:
            check_partition(takers[0], partition, batch)
        except InputError as error:
            yield from (Problem("partition", f"{name}: {problem.message}") for problem in error.problems)


_CELLS: Mapping[str, Callable[[Compared, Judged], Any]] = {
    "batch": lambda compared, _: compared.name,
    "gpu": lambda compared, _: compared.batch.gpu.name,
    "gpus": lambda compared, _: compared.batch.gpus,
    "tasks": lambda compared, _: len(compared.batch.tasks),
    "method": lambda _, run: run.run.column,
    "status": lambda _, run: run.outcome.status,
    "makespan_s": lambda _, run: run.outcome.makespan,
    "lower_bound_s": lambda _, run: run.outcome.lower_bound,
    "best_bound_s": lambda _, run: run.best_bound,
    "gap": lambda _, run: run.gap,
    "best_known_s": lambda _, run: run.best_known,
    "above_best": lambda _, run: run.above_best,
    "runtime_s": lambda _, run: run.outcome.seconds,
    "error": lambda _, run: run.outcome.error or None,
}
"""Columns of the table of a comparison."""


def comparison_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """Return a row for each run, by the names of its columns; None where there is no figure."""
    return [
        {name: cell(compared, run) for name, cell in _CELLS.items()}
        for compared in comparison.batches
        for run in compared.runs
    ]


def comparison_to_csv(comparison: Comparison) -> str:
    """Return a comparison as CSV text, one line for each run; shares and seconds in full."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(_CELLS), lineterminator="\n")
    writer.writeheader()
    writer.writerows(comparison_rows(comparison))
    return text.getvalue()
