"""Runs of schedulers on traces: from a study to its runs, and from a run to its outcome."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mig_opt.errors import Problem
from mig_opt.files import read_trace, trace_to_json
from mig_opt.gpu import OperationCosts
from mig_opt.online.bounds import TraceBounds, trace_bounds
from mig_opt.online.checking import check_log
from mig_opt.online.generators import generate_trace
from mig_opt.online.log import Log
from mig_opt.online.simulator import Simulation, simulate
from mig_opt.result import Status, relative_gap
from mig_opt.studies.environment import peak_bytes
from mig_opt.studies.outcome import Outcome, shielded, violations
from mig_opt.study import GeneratedTraces, PolicySettings, Study, TraceFromFile, TraceSource
from mig_opt.ticks import RESOLUTION
from mig_opt.trace import Trace

UNFINISHED = "unfinished"
"""Status of a simulation after which jobs wait for ever."""

_MOST_NAMED = 10
"""Unfinished jobs whose names are kept."""

_EXAMPLE = ("normal-25", 2)
"""Family and number of jobs of the trace on which schedulers warm up."""


@dataclass(frozen=True, slots=True)
class TraceRun:
    """One simulation.

    Attributes
    ----------
    source : mapping
        What the trace is: settings of the generator, or the name of a file with a digest of the trace.
    policy : str
        The scheduler.
    options : mapping of str to object
        Its options.
    fresh : bool
        Whether it has a process of its own.
    cell, column : str
        What tables call the group of traces, and the scheduler with its options; no part of the key.
    trace : Trace or None
        The trace, where ``source`` alone does not bring it back; no part of the key.
    """

    source: Mapping[str, Any] = field(hash=False)
    policy: str
    options: Mapping[str, Any] = field(hash=False)
    fresh: bool
    cell: str = field(default="", compare=False)
    column: str = field(default="", compare=False)
    trace: Trace | None = field(default=None, compare=False, repr=False)

    @property
    def key(self) -> str:
        """All that decides the run, as one line of JSON."""
        options = dict(sorted(self.options.items()))
        return json.dumps({"trace": dict(self.source), "policy": self.policy, "options": options, "fresh": self.fresh})

    @property
    def batch_key(self) -> str:
        """What tells the trace from others."""
        return json.dumps({"trace": dict(self.source)})

    @property
    def label(self) -> str:
        """What messages call the run."""
        name: str = self.source["family"] if "family" in self.source else self.source["file"]
        seed = f", seed {self.source['seed']}" if "seed" in self.source else ""
        within = f" ({self.cell})" if self.cell and name not in self.cell else ""
        return f"{self.column or self.policy} on {name}{seed}{within}"

    def perform(self) -> Outcome:
        """Simulate in this process, and check what comes of it."""
        if not self.fresh:
            _warm_up(self.policy, json.dumps(dict(self.options)))
        trace = self.trace if self.trace is not None else _generated(self.batch_key)
        return _simulated(trace, self.policy, self.options, _bounds(self.batch_key, trace), memory=self.fresh)


def read_trace_run(document: Mapping[str, Any]) -> TraceRun:
    """Return the run of a row in a file of results.

    Raises
    ------
    KeyError
        If it is none.
    """
    return TraceRun(document["trace"], document["policy"], document["options"], document["fresh"])


def trace_runs_of(study: Study, folder: Path) -> list[TraceRun]:
    """Return the simulations of a study, each once, trace by trace.

    Parameters
    ----------
    study : Study
        A study without problems.
    folder : Path
        Where relative paths of trace files begin.
    """
    varying = _varying([source for source in study.traces if isinstance(source, GeneratedTraces)])
    runs: dict[str, TraceRun] = {}
    for source, cell, trace in itertools.chain.from_iterable(_traces(it, varying, folder) for it in study.traces):
        for settings, options, column in policy_columns(study.policies):
            run = TraceRun(source, settings.policy, options, study.fresh, cell, column, trace)
            runs.setdefault(run.key, run)
    return list(runs.values())


def policy_columns(policies: Sequence[PolicySettings]) -> Iterator[tuple[PolicySettings, dict[str, Any], str]]:
    """Yield each combination of the options of each scheduler, with what tables call it."""
    for settings in policies:
        for options in combinations(settings.options):
            named = [
                f"{name}={_option_text(value)}"
                for name, value in options.items()
                if len(settings.options[name]) > 1 or not settings.label
            ]
            yield settings, options, ", ".join([settings.label or settings.policy, *named])


def combinations(lists: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Yield every choice of one value from each of the lists."""
    for values in itertools.product(*lists.values()):
        yield dict(zip(lists, values, strict=True))


def settings_of(source: GeneratedTraces) -> Iterator[dict[str, Any]]:
    """Yield every combination of what is listed but the seeds."""
    names = ("family", "gpu", "gpus", "operation_costs")
    for values in combinations({name: getattr(source, name) for name in names}):
        for parameters in combinations(source.parameters):
            yield {**values, "parameters": parameters}


def trace_from_file(source: TraceFromFile, folder: Path) -> Trace:
    """Return the trace in a file, as a study wants it.

    Raises
    ------
    InputError
        With every problem of the file.
    """
    return _cost_free(read_trace(folder / source.file, source.gpu, source.gpus), costs=source.operation_costs)


def _traces(
    entry: TraceSource, varying: Sequence[str], folder: Path
) -> Iterator[tuple[dict[str, Any], str, Trace | None]]:
    """Yield what identifies each trace, the cell that it belongs to, and the trace itself where it takes a file."""
    if isinstance(entry, GeneratedTraces):
        for settings in settings_of(entry):
            cell = entry.group or ", ".join(_texts(settings, varying))
            for seed in entry.seeds:
                yield {**settings, "seed": seed}, cell, None
        return
    trace = trace_from_file(entry, folder)
    extra = [f"{trace.gpus} GPUs"] if entry.gpus else []
    extra += [] if entry.operation_costs else ["no operation costs"]
    cell = entry.group or ", ".join([Path(entry.file).with_suffix("").as_posix(), *extra])
    yield {"file": Path(entry.file).stem, "digest": _digest(trace)}, cell, trace


def _varying(entries: Sequence[GeneratedTraces]) -> list[str]:
    """Return the settings, and the parameters of families, that have more than one value in the study."""
    values: dict[str, set[str]] = {}
    for entry in entries:
        for settings in settings_of(entry):
            for name, value in {**settings, **settings["parameters"]}.items():
                values.setdefault(name, set()).add(repr(value))
    # A parameter that only some entries give has another value in the others: the default of the family.
    return [
        name
        for name, found in values.items()
        if len(found) > 1 or any(not hasattr(entry, name) and name not in entry.parameters for entry in entries)
    ]


def _texts(settings: Mapping[str, Any], varying: Sequence[str]) -> Iterator[str]:
    """Yield what the label of a cell says: the family, and what not all cells have in common."""
    yield settings["family"]
    if "gpu" in varying:
        yield settings["gpu"]
    if "gpus" in varying:
        gpus = settings["gpus"]
        yield "usual GPUs" if gpus is None else f"{gpus} GPU{'s' * (gpus > 1)}"
    yield from (f"{name}={value}" for name, value in settings["parameters"].items() if name in varying)
    if not settings["operation_costs"]:
        yield "no operation costs"


def _option_text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _digest(trace: Trace) -> str:
    """Return the SHA-256 of all that a simulation of a trace depends on; its name is no part of it."""
    costs = [sorted(table.items()) for table in (trace.operations.create, trace.operations.destroy)]
    return hashlib.sha256((trace_to_json(trace) + json.dumps(costs)).encode()).hexdigest()


def _cost_free(trace: Trace, *, costs: bool) -> Trace:
    return trace if costs else trace.replace(operations=OperationCosts.zero(trace.gpu))


@functools.lru_cache(maxsize=4)
def _generated(key: str) -> Trace:
    """Return the trace with these settings; several schedulers run on it one after the other."""
    source = json.loads(key)["trace"]
    trace = generate_trace(
        source["family"], gpu=source["gpu"], gpus=source["gpus"], seed=source["seed"], **source["parameters"]
    )
    return _cost_free(trace, costs=source["operation_costs"])


_LATEST_BOUNDS: dict[str, TraceBounds] = {}
"""Those of the trace of the latest run."""


def _bounds(key: str, trace: Trace) -> TraceBounds:
    if key not in _LATEST_BOUNDS:
        found = trace_bounds(trace)
        _LATEST_BOUNDS.clear()
        _LATEST_BOUNDS[key] = found
    return _LATEST_BOUNDS[key]


@functools.cache
def _warm_up(policy: str, options: str) -> None:
    """Load whatever a scheduler loads, so that no run pays for it; what goes wrong will do so again."""
    trace = generate_trace(_EXAMPLE[0], jobs=_EXAMPLE[1])
    shielded(lambda: _simulated(trace, policy, json.loads(options), trace_bounds(trace), memory=False))


def _simulated(trace: Trace, policy: str, options: Mapping[str, Any], bounds: TraceBounds, *, memory: bool) -> Outcome:
    done = simulate(trace, policy, **options)
    peak = peak_bytes() if memory else None
    complete = not done.unfinished
    figures = _figures(done, bounds)
    return Outcome(
        status=Status.FEASIBLE.value if complete else UNFINISHED,
        seconds=done.runtime_s,
        makespan=done.metrics.makespan if complete else None,
        lower_bound=bounds.makespan[0].value,
        tolerance=RESOLUTION * done.metrics.makespan,
        peak_bytes=peak,
        error=_defects(done, bounds),
        figures=figures,
    )


def _figures(done: Simulation, bounds: TraceBounds) -> dict[str, Any]:
    """Return all that a row says of a simulation: metrics, what was not done, bounds, and distances to them."""
    metrics, complete = done.metrics, not done.unfinished
    limits = {"makespan": bounds.makespan[0].value, "mean_completion": bounds.mean_completion}
    reached = {"makespan": metrics.makespan, "mean_completion": metrics.completion.mean}
    return {
        **dataclasses.asdict(metrics),
        "unfinished": len(done.unfinished),
        "unfinished_names": list(done.unfinished[:_MOST_NAMED]),
        "events": done.events,
        "lower_bounds": limits,
        "gaps": {goal: relative_gap(reached[goal], limits[goal]) if complete else None for goal in limits},
    }


def _defects(done: Simulation, bounds: TraceBounds) -> str:
    """Return what is wrong with a simulation, in one line; empty if nothing is."""
    problems: list[Problem] = check_log(done.log)
    if problems:
        return f"{len(problems)} violations of the log: {problems[0]}"
    wrong = violations(*done.log.as_schedule()) if _ran(done.log) else ""
    mean, least = done.metrics.completion.mean, bounds.mean_completion
    if not wrong and not done.unfinished and mean < least * (1 - RESOLUTION):
        return f"jobs end after {mean:.9g} s on the average, which is below the lower bound of {least:.9g} s"
    return wrong


def _ran(log: Log) -> bool:
    """Whether a job ran for any time at all; else there is no schedule to validate."""
    return any(end > begin for begin, end in zip(log.run_begin, log.run_end, strict=True))
