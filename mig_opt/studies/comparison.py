"""Comparison of methods on batches, or of schedulers on traces, side by side."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from mig_opt.api.solve import partition_problems
from mig_opt.batch.batch import Batch
from mig_opt.errors import InputError, Problem, UnknownMethodError
from mig_opt.files.tables import table_text
from mig_opt.fleet.trace import Trace
from mig_opt.method.functions import name_of
from mig_opt.method.options import Callbacks, run_options
from mig_opt.method.registry import get_method, get_policy, methods
from mig_opt.method.result import Status
from mig_opt.method.study import COMPARISON_TIME_LIMIT
from mig_opt.rules import entries_of, wrong_type
from mig_opt.simulation.fleet.simulator import check_own_policy
from mig_opt.studies.batch import BatchRun, measure, tolerance
from mig_opt.studies.execution import run_missing
from mig_opt.studies.fleet import TraceRun
from mig_opt.studies.fleet import measure as simulated
from mig_opt.studies.rows import Outcome, Row, contradictions, failures
from mig_opt.studies.summary import Judged, Line, TraceLine, grouped, judge, summarise, summarise_traces


@dataclass(frozen=True, slots=True)
class Comparison:
    """Methods, or schedulers, side by side.

    Attributes
    ----------
    batches : mapping of str to Batch or Trace
        The batches, or traces, by name.
    runs : tuple of Judged
        The runs that were done, batch by batch; their cells are the names of the batches.
    interrupted : bool
        True if Ctrl-C ended it early.
    """

    batches: Mapping[str, Batch | Trace]
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
    def schedulers(self) -> list[TraceLine]:
        """A line for each scheduler, over all traces."""
        return summarise_traces(self.runs, by_cell=False)

    @property
    def contradictions(self) -> list[str]:
        """Lower bounds above a schedule of the same batch: defects, always."""
        on_record = {
            run.run.batch_key: (run.best_known, tolerance(batch, run.best_known))
            for run in self.runs
            if run.best_known is not None and isinstance(batch := self.batches[run.run.cell], Batch)
        }
        return contradictions(self.runs, on_record)

    @property
    def failures(self) -> list[str]:
        """Methods that failed, or returned a schedule that is not valid."""
        return failures(self.runs)


def default_methods(*, traces: bool = False) -> tuple[str, ...]:
    """Return what is compared by default: ``cp`` and heuristics without arguments, or all schedulers of traces."""
    if traces:
        return tuple(policy.name for policy in methods("simulate"))
    return ("cp", *(method.name for method in methods() if method.kind == "heuristic" and not method.options))


def compare(
    batches: Mapping[str, Batch] | Mapping[str, Trace],
    methods: Sequence[Any] | None = None,
    *,
    time_limit: float | None = COMPARISON_TIME_LIMIT,
    seed: int = 0,
    workers: int | None = None,
    partition: str | None = None,
    on_record: Mapping[str, float] | None = None,
    callbacks: Callbacks | Sequence[Callbacks] = (),
) -> Comparison:
    """Run methods on batches, or schedulers on traces, one after the other.

    Parameters
    ----------
    batches : mapping of str to Batch, or of str to Trace
        The batches, or traces, by the names that the comparison shall use.
    methods : sequence, optional
        For batches names of methods and functions as :func:`mig_opt.solve` takes them, by default ``cp`` and every
        heuristic. For traces names of schedulers and objects as :func:`mig_opt.simulate` takes them, such as a trained
        :class:`~mig_opt.environments.FleetAgent`; by default all that the package has.
    time_limit : float, optional
        Seconds for each method on each batch; None: no limit. Schedulers have none.
    seed : int
        For what is random.
    workers : int, optional
        Threads; by default one for each core.
    partition : str, optional
        For the method ``fixpart``, see :func:`mig_opt.solve`; it has to be one of the GPUs of all batches.
    on_record : mapping of str to float, optional
        Makespans of batches that are known from elsewhere, in seconds: a method may be above them, too.
    callbacks : Callbacks or sequence of Callbacks
        Told about the progress of each run of a method.

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
    >>> from mig_opt import load, solve
    >>> from mig_opt.studies import compare
    >>> def mine(batch):
    ...     return solve(batch, "lpt").schedule
    >>> comparison = compare({"rodinia": load("rodinia-a30")}, ["cp", mine])
    >>> [f"{line.method}: {line.above_best.worst:.1%}" for line in comparison.methods]
    ['cp: 0.0%', 'mine: 3.7%']

    >>> comparison = compare({"day": load("normal-25-2xa100-012-1")}, ["first-fit", "best-fit"])
    >>> [f"{line.policy}: {line.completion.mean:.1f} s" for line in comparison.schedulers]
    ['first-fit: 153.8 s', 'best-fit: 153.8 s']
    """
    known = check_comparison(
        methods, time_limit=time_limit, seed=seed, workers=workers, partition=partition, batches=batches
    )
    options = {"time_limit": time_limit, "seed": seed, "workers": workers}
    runs: list[BatchRun | TraceRun] = []
    for (name, subject), (label, method) in itertools.product(batches.items(), known.items()):
        if isinstance(subject, Batch):
            arguments = {"method": label, **options, **_partition_of(method, partition)}
            runs.append(BatchRun({"name": name}, arguments, name, label, subject))
        else:
            runs.append(TraceRun({"name": name}, {"policy": label, "fresh": False}, name, label, subject))

    def perform(run: BatchRun | TraceRun) -> Outcome:
        method = known[run.column]
        if isinstance(run, TraceRun):
            return simulated(run.subject, method)
        if isinstance(method, str):
            run.warm_up()
        return measure(run.subject, **{**run.arguments, "method": method}, callbacks=callbacks)

    rows: list[Row[Any]] = []

    def told(row: Row[Any]) -> None:
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
    record = {run.batch_key: on_record[run.cell] for run in runs if on_record and run.cell in on_record}
    return Comparison(batches, tuple(judge(rows, record)), interrupted)


def check_comparison(
    methods: Sequence[Any] | None,
    *,
    time_limit: object = None,
    seed: object = 0,
    workers: object = None,
    partition: object = None,
    batches: Mapping[str, Batch] | Mapping[str, Trace] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return the methods by their names, each once; refuse arguments that :func:`compare` cannot work with.

    Without ``batches`` the partition is checked only as far as it does not depend on them.
    """
    if not isinstance(batches, Mapping):
        wanted = "batches or traces by their names, such as {'today': batch}"
        raise InputError([wrong_type("batches", batches, wanted)])
    subjects = dict(batches)
    if methods is not None:
        methods = entries_of("methods", methods, object, "the name of a method")
    others = {name: subject for name, subject in subjects.items() if not isinstance(subject, Batch | Trace)}
    problems = [wrong_type(f"batches.{name}", subject, "a Batch or a Trace") for name, subject in others.items()]
    traces = [isinstance(subject, Trace) for subject in subjects.values()]
    if any(traces) and not all(traces):
        problems.append(Problem("batches", "must be all batches, or all traces: no method is for both"))
    named: dict[str, Any] = {}
    for given in default_methods(traces=any(traces)) if methods is None else methods:
        try:
            name, method = _named(given, of_traces=any(traces))
        except InputError as error:
            problems += (Problem("methods", problem.message) for problem in error.problems)
            continue
        if named.setdefault(name, method) != method:
            problems.append(Problem("methods", f"two of them are called {name!r}; give one another name"))
    if methods is not None and not methods:
        problems.append(Problem("methods", "needs at least one method"))
    known = {name: subject for name, subject in subjects.items() if isinstance(subject, Batch)}
    of_batches = [] if any(traces) else [*named.values()]
    problems += _partition_problems(of_batches, partition, known if batches else None)
    try:
        run_options(time_limit=time_limit, seed=seed, workers=workers, also=problems)
    except UnknownMethodError as error:
        raise InputError(error.problems) from None
    return named


def _named(given: Any, *, of_traces: bool) -> tuple[str, Any]:
    """Return the name of a method, or of a scheduler of traces, and that or the function or object that it is."""
    if not of_traces:
        found = get_method(given)
        return found.name, found.function or found.name
    if isinstance(given, str):
        return (get_policy(given).name,) * 2
    check_own_policy(given, {})
    return name_of(given), given


def _partition_of(method: Any, partition: object) -> dict[str, object]:
    """Return the argument of a method that takes a partition."""
    return {"partition": partition} if "partition" in get_method(method).options else {}


def _partition_problems(
    names: Iterable[Any], partition: object, batches: Mapping[str, Batch] | None
) -> Iterator[Problem]:
    takers = [name for name in names if _partition_of(name, partition)]
    if partition is not None and not takers:
        fitting = " or ".join(method.name for method in methods() if "partition" in method.options)
        yield Problem("partition", f"is for the method {fitting}, which is not compared; leave it out, or compare it")
    elif partition is not None and not isinstance(partition, str):
        yield wrong_type("partition", partition, "a text such as '4+2+1'")
    elif takers:
        for name, batch in (batches or {}).items():
            for problem in partition_problems(takers[0], partition, batch):
                yield Problem("partition", f"{name}: {problem.message}")


_CELLS: Mapping[str, Callable[[Any, Judged], Any]] = {
    "batch": lambda _, run: run.run.cell,
    "gpu": lambda batch, _: " + ".join(kind.name for kind in batch.kinds),
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

_TRACE_CELLS: Mapping[str, Callable[[Any, Judged], Any]] = {
    "trace": _CELLS["batch"],
    "gpu": _CELLS["gpu"],
    "gpus": _CELLS["gpus"],
    "jobs": lambda trace, _: len(trace.jobs),
    "policy": _CELLS["method"],
    "status": _CELLS["status"],
    "flow_s": lambda _, run: run.outcome.figures["completion"]["mean"] if run.outcome.answered else None,
    "flow_bound_s": lambda _, run: run.outcome.figures.get("lower_bounds", {}).get("mean_completion"),
    "wait_s": lambda _, run: run.outcome.figures["wait"]["mean"] if run.outcome.answered else None,
    **{name: _CELLS[name] for name in ("makespan_s", "lower_bound_s", "runtime_s", "error")},
}
"""Columns of a comparison of schedulers."""


def _columns(comparison: Comparison) -> Mapping[str, Callable[[Any, Judged], Any]]:
    return _TRACE_CELLS if any(isinstance(one, Trace) for one in comparison.batches.values()) else _CELLS


def comparison_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """Return a row for each run, by the names of its columns; None where there is no figure."""
    cells = _columns(comparison)
    return [
        {name: cell(comparison.batches[run.run.cell], run) for name, cell in cells.items()} for run in comparison.runs
    ]


def comparison_to_csv(comparison: Comparison) -> str:
    """Return a comparison as CSV text, one line for each run; shares and seconds in full."""
    return table_text(_columns(comparison), (row.values() for row in comparison_rows(comparison)))
