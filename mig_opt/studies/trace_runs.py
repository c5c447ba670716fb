"""Runs of schedulers on traces: every combination of trace, scheduler and options of a study."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mig_opt.files import read_trace, trace_to_json
from mig_opt.fleet.trace import Trace
from mig_opt.gpu.model import OperationCosts
from mig_opt.instances.fleet import generate_trace
from mig_opt.simulation.registry import policy_label
from mig_opt.studies.outcome import Outcome
from mig_opt.studies.trace_outcome import measure_policy, warm_up_policy
from mig_opt.study import GeneratedTraces, PolicySettings, Study, TraceFromFile, TraceSource


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
        where = self.cell if name in self.cell else f"{name} ({self.cell})" if self.cell else name
        seed = f", seed {self.source['seed']}" if "seed" in self.source else ""
        return f"{self.column or self.policy} on {where}{seed}"

    def perform(self) -> Outcome:
        """Simulate in this process, and check what comes of it."""
        if not self.fresh:
            warm_up_policy(self.policy, json.dumps(dict(self.options)))
        trace = self.trace if self.trace is not None else _generated(self.batch_key)
        return measure_policy(trace, self.policy, self.options, key=self.batch_key, memory=self.fresh)


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
            named = {
                name: value for name, value in options.items() if len(settings.options[name]) > 1 or not settings.label
            }
            yield settings, options, policy_label(settings.label or settings.policy, named)


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
