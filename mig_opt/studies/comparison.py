"""Comparison of methods on batches, side by side."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mig_opt.api.solve import partition_problems
from mig_opt.batch.batch import Batch
from mig_opt.errors import InputError, Problem, UnknownMethodError
from mig_opt.files.tables import table_text
from mig_opt.method.options import Callbacks, run_options
from mig_opt.method.registry import get_method, methods
from mig_opt.method.result import Status
from mig_opt.method.study import COMPARISON_TIME_LIMIT
from mig_opt.rules import wrong_type
from mig_opt.studies.batch import BatchRun, measure, tolerance
from mig_opt.studies.execution import run_missing
from mig_opt.studies.rows import Outcome, Row, contradictions, failures
from mig_opt.studies.summary import Judged, Line, grouped, judge, summarise


@dataclass(frozen=True, slots=True)
class Comparison:
    """Methods side by side.

    Attributes
    ----------
    batches : mapping of str to Batch
        The batches by name.
    runs : tuple of Judged
        The runs that were done, batch by batch; their cells are the names of the batches.
    interrupted : bool
        True if Ctrl-C ended it early.
    """

    batches: Mapping[str, Batch]
    runs: tuple[Judged, ...]
    interrupted: bool = False

    @property
    def by_batch(self) -> dict[str, list[Judged]]:
        """The runs by the name of the batch."""
        return grouped(self.runs, lambda run: run.run.cell)

    @property
    def methods(self) -> list[Line]:
        """A line for each method, over all batches."""
        return summarise(self.runs, by_cell=False)

    @property
    def contradictions(self) -> list[str]:
        """Lower bounds above a schedule of the same batch: defects, always."""
        on_record = {
            run.run.batch_key: (run.best_known, tolerance(self.batches[run.run.cell], run.best_known))
            for run in self.runs
            if run.best_known is not None
        }
        return contradictions(self.runs, on_record)

    @property
    def failures(self) -> list[str]:
        """Methods that failed, or returned a schedule that is not valid."""
        return failures(self.runs)


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
    >>> from mig_opt import load
    >>> from mig_opt.studies import compare
    >>> comparison = compare({"rodinia": load("rodinia-a30")}, ["far", "cp"])
    >>> [f"{line.method}: {line.above_best.worst:.1%}" for line in comparison.methods]
    ['far: 2.9%', 'cp: 0.0%']
    """
    names = check_comparison(
        methods, time_limit=time_limit, seed=seed, workers=workers, partition=partition, batches=batches
    )
    options = {"time_limit": time_limit, "seed": seed, "workers": workers}
    runs = [
        BatchRun({"name": name}, {"method": method, **options, **_partition_of(method, partition)}, name, method, batch)
        for (name, batch), method in itertools.product(batches.items(), names)
    ]

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
    known = {run.batch_key: on_record[run.cell] for run in runs if on_record and run.cell in on_record}
    return Comparison(batches, tuple(judge(rows, known)), interrupted)


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
        run_options(time_limit=time_limit, seed=seed, workers=workers, also=problems)
    except UnknownMethodError as error:
        raise InputError(error.problems) from None
    return tuple(names)


def _partition_of(method: str, partition: object) -> dict[str, object]:
    """Return the argument of a method that takes a partition."""
    return {"partition": partition} if "partition" in get_method(method).options else {}


def _partition_problems(
    names: Iterable[str], partition: object, batches: Mapping[str, Batch] | None
) -> Iterator[Problem]:
    takers = [name for name in names if _partition_of(name, partition)]
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
        for problem in partition_problems(takers[0], partition, batch):
            yield Problem("partition", f"{name}: {problem.message}")


_CELLS: Mapping[str, Callable[[Batch, Judged], Any]] = {
    "batch": lambda _, run: run.run.cell,
    "gpu": lambda batch, _: batch.kind_names,
    "gpus": lambda batch, _: batch.gpus,
    "tasks": lambda batch, _: len(batch.tasks),
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
        {name: cell(comparison.batches[run.run.cell], run) for name, cell in _CELLS.items()} for run in comparison.runs
    ]


def comparison_to_csv(comparison: Comparison) -> str:
    """Return a comparison as CSV text, one line for each run; shares and seconds in full."""
    return table_text(_CELLS, (row.values() for row in comparison_rows(comparison)))
