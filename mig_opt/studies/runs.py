"""Runs of methods on batches: every combination of batch, method, arguments and repetition of a study."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from mig_opt.batch.batch import Batch
from mig_opt.batch.certificate import batch_digest
from mig_opt.files import read_batch
from mig_opt.gpu.model import OperationCosts
from mig_opt.instances import ScalingName, TimesName, Variant, generate_batch, load_instance
from mig_opt.result import Status
from mig_opt.studies.outcome import Outcome, measure, warm_up
from mig_opt.study import (
    DEFAULT_TIME_LIMIT,
    BatchFromFile,
    BatchSource,
    BundledBatch,
    GeneratedBatches,
    MethodSettings,
    Study,
)

_ARGUMENTS = ("method", "time_limit", "gap", "workers", "deterministic", "seed", "fresh")
_OPTIONS = ("partition",)
"""Arguments of some methods; the key of a run has those that are given."""


@dataclass(frozen=True, slots=True)
class BatchRun:
    """One run of a method.

    Attributes
    ----------
    source : mapping
        What the batch is: settings of the generator, or name or file with a digest of the batch.
    method, time_limit, gap, workers, deterministic, seed, partition
        As :func:`mig_opt.solve` takes them.
    fresh : bool
        Whether it has a process of its own.
    cell, column : str
        What tables call the group of batches, and the method with its arguments; no part of the key.
    batch : Batch or None
        The batch, where ``source`` alone does not bring it back; no part of the key.
    """

    source: Mapping[str, Any] = field(hash=False)
    method: str
    time_limit: float | None
    gap: float
    workers: int
    deterministic: bool
    seed: int
    fresh: bool
    partition: str | None = None
    cell: str = field(default="", compare=False)
    column: str = field(default="", compare=False)
    batch: Batch | None = field(default=None, compare=False, repr=False)

    @property
    def key(self) -> str:
        """All that decides the run, as one line of JSON."""
        given = {name: value for name in _OPTIONS if (value := getattr(self, name)) is not None}
        return json.dumps({"batch": dict(self.source), **{name: getattr(self, name) for name in _ARGUMENTS}, **given})

    @property
    def batch_key(self) -> str:
        """What tells the batch from others."""
        return json.dumps(dict(self.source))

    @property
    def label(self) -> str:
        """What messages call the run."""
        seed = f", seed {self.source['seed']}" if "seed" in self.source else ""
        return f"{self.column or self.method} on {self.cell or self.batch_key}{seed}"

    def perform(self) -> Outcome:
        """Do the run in this process.

        Raises
        ------
        KeyboardInterrupt
            After Ctrl-C: what was cut short is no measurement.
        """
        if not self.fresh:
            warm_up(self.method)
        outcome = measure(
            self.batch if self.batch is not None else _generated(self.batch_key),
            self.method,
            time_limit=self.time_limit,
            seed=self.seed,
            workers=self.workers,
            gap=self.gap,
            deterministic=self.deterministic,
            partition=self.partition,
            memory=self.fresh,
        )
        if outcome.status == Status.INTERRUPTED:
            raise KeyboardInterrupt
        return outcome


def read_run(document: Mapping[str, Any]) -> BatchRun:
    """Return the run of a row in a file of results.

    Raises
    ------
    KeyError
        If it is none.
    """
    given = {name: document[name] for name in _OPTIONS if name in document}
    return BatchRun(document["batch"], **{name: document[name] for name in _ARGUMENTS}, **given)


def runs_of(study: Study, folder: Path) -> list[BatchRun]:
    """Return the runs of methods in a study, each once, batch by batch.

    Parameters
    ----------
    study : Study
        A study without problems.
    folder : Path
        Where relative paths of batch files begin.
    """
    varying = _varying([source for source in study.batches if isinstance(source, GeneratedBatches)])
    runs: dict[str, BatchRun] = {}
    for source, cell, batch in itertools.chain.from_iterable(
        _batches(entry, varying, folder) for entry in study.batches
    ):
        for repetition in range(study.repetitions):
            for method, arguments, column in columns(study.methods):
                run = BatchRun(
                    source,
                    method.method,
                    deterministic=method.deterministic,
                    seed=study.seed + repetition,
                    fresh=study.fresh,
                    cell=cell,
                    column=column,
                    batch=batch,
                    **arguments,
                )
                runs.setdefault(run.key, run)
    return list(runs.values())


def columns(methods: Sequence[MethodSettings]) -> Iterator[tuple[MethodSettings, dict[str, Any], str]]:
    """Yield each combination of listed arguments of each method, with what tables call it."""
    usual = {"time_limit": DEFAULT_TIME_LIMIT, "gap": 0.0, "workers": 1, "partition": None}
    for method in methods:
        for values in itertools.product(*(getattr(method, name) for name in usual)):
            given = dict(zip(usual, values, strict=True))
            named = [
                _argument_text(name, given[name])
                for name in usual
                if len(getattr(method, name)) > 1 or (not method.label and given[name] != usual[name])
            ]
            if method.deterministic and not method.label:
                named.append("deterministic")
            yield method, given, ", ".join([method.label or method.method, *named])


def _argument_text(name: str, value: Any) -> str:
    """Return what tables call an argument of a method."""
    match name:
        case "time_limit":
            return "no limit" if value is None else f"{value:g} s"
        case "gap":
            return f"gap {value * 100:g}%"
        case "workers":
            return f"{value} thread{'s' * (value != 1)}"
        case _:
            return str(value)


def batch_from_file(source: BatchFromFile, folder: Path) -> Batch:
    """Return the batch in a file, as a study wants it.

    Raises
    ------
    InputError
        With every problem of the file.
    """
    return _changed(read_batch(folder / source.file, source.gpu), source.gpus, source.operation_costs)


def _batches(
    entry: BatchSource, varying: Sequence[str], folder: Path
) -> Iterator[tuple[dict[str, Any], str, Batch | None]]:
    """Yield what identifies each batch, the cell that it belongs to, and the batch itself where it takes a file."""
    if isinstance(entry, GeneratedBatches):
        names = [attribute.name for attribute in dataclasses.fields(entry) if attribute.name != "seeds"]
        for values in itertools.product(*(getattr(entry, name) for name in names)):
            settings = dict(zip(names, values, strict=True))
            cell = ", ".join(text for name in names if (text := _text(name, settings[name], varying)))
            for seed in entry.seeds:
                yield {**settings, "seed": seed}, cell, None
        return
    if isinstance(entry, BundledBatch):
        name, batch = entry.instance, _changed(load_instance(entry.instance), entry.gpus, entry.operation_costs)
        source = {"instance": name}
    else:
        name, batch = Path(entry.file).with_suffix("").as_posix(), batch_from_file(entry, folder)
        source = {"file": Path(entry.file).stem}
    extra = [f"{batch.gpus} GPUs"] if entry.gpus else []
    extra += [] if entry.operation_costs else ["no operation costs"]
    yield {**source, "digest": batch_digest(batch)}, ", ".join([name, *extra]), batch


def _varying(entries: Sequence[GeneratedBatches]) -> list[str]:
    """Return the settings of the generator that have more than one value in the study."""
    values: dict[str, set[object]] = {}
    for entry in entries:
        for attribute in dataclasses.fields(entry):
            values.setdefault(attribute.name, set()).update(getattr(entry, attribute.name))
    return [name for name, found in values.items() if len(found) > 1]


def _text(name: str, value: Any, varying: Sequence[str]) -> str:
    """Return what the label of a cell says about a setting; empty if all cells have the same."""
    if name == "n":
        return f"n={value}"
    if name not in varying:
        return ""
    if name == "gpus":
        return f"{value} GPU{'s' * (value > 1)}"
    if name == "operation_costs":
        return "" if value else "no operation costs"
    return f"p_sup {value:g}" if name == "p_sup" else str(value)


@functools.lru_cache(maxsize=4)
def _generated(key: str) -> Batch:
    """Return the generator's batch with these settings; several methods run on it one after the other."""
    settings = json.loads(key)
    batch = generate_batch(
        settings["n"],
        scaling=cast(ScalingName, settings["scaling"]),
        times=cast(TimesName, settings["times"]),
        p_sup=settings["p_sup"],
        gpu=settings["gpu"],
        gpus=settings["gpus"],
        seed=settings["seed"],
        variant=cast(Variant, settings["variant"]),
    )
    return _changed(batch, None, settings["operation_costs"])


def _changed(batch: Batch, gpus: int | None, operation_costs: bool) -> Batch:
    if gpus is not None:
        batch = batch.replace(gpus=gpus)
    return batch if operation_costs else batch.replace(operations=OperationCosts.zero(batch.gpu))
