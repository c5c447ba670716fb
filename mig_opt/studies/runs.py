"""Runs of a study: every combination of a subject (batch or trace) and a solver (method or policy) with its arguments.

:mod:`~mig_opt.studies.batch` and :mod:`~mig_opt.studies.fleet` say what differs between the problems.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

from mig_opt.batch.kinds import no_costs
from mig_opt.errors import Problem
from mig_opt.files.documents import plain_number
from mig_opt.method.study import BatchSource, BundledBatch, GeneratedBatches, GeneratedTraces, Study, TraceSource
from mig_opt.rules import is_listed, wrong_type
from mig_opt.studies.rows import Outcome
from mig_opt.studies.workers import alone
from mig_opt.texts import plural

Source = BatchSource | TraceSource


@dataclass(frozen=True, slots=True)
class StudyRun(ABC):
    """A run of a study: of a method on a batch, or of a scheduler on a trace."""

    source: Mapping[str, Any]  # settings of the generator, or name of an instance or file with a digest
    arguments: Mapping[str, Any]  # of the method or scheduler, its name, and whether it has a ``fresh`` process
    # Names in tables of the group of batches or traces, and of the method or scheduler with its arguments
    cell: str = field(default="", compare=False)
    column: str = field(default="", compare=False)
    # The batch or trace, where the source alone does not bring it back
    subject: Any = field(default=None, compare=False, repr=False)

    KIND: ClassVar[str]  # key of the source in a row
    ARGUMENTS: ClassVar[frozenset[str]]  # that each run has
    ALWAYS_NAMED: ClassVar[tuple[str, ...]]  # settings of the generator that cells name even if all have the same
    digest: ClassVar[staticmethod[[Any], str]]  # differs between batches or traces that differ
    generate: ClassVar[staticmethod[..., Any]]  # the batch or trace with settings of the generator

    @property
    def key(self) -> str:
        """All that decides the run, as one line of JSON."""
        return json.dumps({self.KIND: dict(self.source), **self.arguments}, default=plain_number)

    @property
    def batch_key(self) -> str:
        """Text that tells the batch or trace from others."""
        return json.dumps({self.KIND: dict(self.source)}, default=plain_number)

    @property
    def label(self) -> str:
        """Name of the run in messages."""
        name = str(self.source.get("family", self.source.get("file", "")))
        where = self.cell if name in self.cell else f"{name} ({self.cell})" if self.cell else name
        seed = f", seed {self.source['seed']}" if "seed" in self.source else ""
        return f"{self.column} on {where}{seed}"

    def perform(self) -> Outcome:
        """Do the run, in a process of its own if it is ``fresh``; a failure is an exception, or the outcome's error."""
        if self.arguments["fresh"]:
            return alone(_measured, self)
        self.warm_up()
        return _measured(self)

    @classmethod
    @abstractmethod
    def solvers(cls, study: Study) -> Iterator[tuple[dict[str, Any], str]]:
        """Yield the arguments of each run on a batch or trace, and the column that it belongs to."""

    @classmethod
    @abstractmethod
    def load(cls, source: Any, folder: Path) -> Any:
        """Return the batch or trace in a file, or that is bundled, with its usual operation costs."""

    @abstractmethod
    def warm_up(self) -> None:
        """Load whatever the method or scheduler loads, so that no run pays for it."""

    @abstractmethod
    def measure(self, subject: Any) -> Outcome:
        """Run the method or scheduler on its batch or trace."""

    @classmethod
    def runs_of(cls, sources: Sequence[Source], study: Study, folder: Path) -> Iterator[Self]:
        """Yield the runs on some batches or traces, one after the other; the same one may come twice."""
        generated = [source for source in sources if isinstance(source, GeneratedBatches | GeneratedTraces)]
        named = {*cls.ALWAYS_NAMED, *_varying(generated)}
        solvers = list(cls.solvers(study))
        for entry in sources:
            for source, cell, subject in cls._subjects(entry, named, folder):
                for arguments, column in solvers:
                    yield cls(source, arguments, cell, column, subject)

    @classmethod
    def _subjects(cls, entry: Source, named: Set[str], folder: Path) -> Iterator[tuple[dict[str, Any], str, Any]]:
        """Yield the source of each batch or trace, the cell that it belongs to, and itself where it takes a file."""
        group = getattr(entry, "group", "")
        if isinstance(entry, GeneratedBatches | GeneratedTraces):
            for settings in settings_of(entry):
                cell = group or ", ".join(_texts(settings, named))
                for seed in entry.seeds:
                    yield {**settings, "seed": seed}, cell, None
            return
        subject = _with_costs(cls.load(entry, folder), entry.operation_costs)
        if isinstance(entry, BundledBatch):
            name, source = entry.instance, {"instance": entry.instance}
        else:
            name, source = Path(entry.file).with_suffix("").as_posix(), {"file": Path(entry.file).stem}
        extra = [f"{entry.gpus} GPUs"] if entry.gpus else []
        extra += [] if entry.operation_costs else ["no operation costs"]
        yield {**source, "digest": cls.digest(subject)}, group or ", ".join([name, *extra]), subject


def list_problems(lists: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the entries of a mapping that are no tuples of values."""
    for name, values in lists.items():
        if not is_listed(values):
            yield wrong_type(name, values, "a tuple of values")
        elif not tuple(values):
            yield Problem(name, "needs at least one value")


def combinations(lists: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Yield every choice of one value from each of the lists."""
    for values in itertools.product(*lists.values()):
        yield dict(zip(lists, values, strict=True))


def settings_of(source: GeneratedBatches | GeneratedTraces) -> Iterator[dict[str, Any]]:
    """Yield every combination of what is listed but the seeds; parameters of a family are a dictionary of their own."""
    names = [attribute.name for attribute in dataclasses.fields(source)]
    lists = {name: getattr(source, name) for name in names if name not in ("seeds", "parameters", "group")}
    for settings in combinations(lists):
        if isinstance(source, GeneratedBatches):
            yield settings
        else:
            yield from ({**settings, "parameters": parameters} for parameters in combinations(source.parameters))


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings and parameters of the family in one, the operation costs last."""
    return {
        **{name: value for name, value in settings.items() if name not in ("parameters", "operation_costs")},
        **settings.get("parameters", {}),
        "operation_costs": settings["operation_costs"],
    }


def _varying(entries: Sequence[GeneratedBatches | GeneratedTraces]) -> list[str]:
    """Return the settings, and the parameters of families, that have more than one value in the study."""
    values: dict[str, set[str]] = {}
    for entry in entries:
        for settings in settings_of(entry):
            for name, value in _flat(settings).items():
                values.setdefault(name, set()).add(repr(value))
    # A parameter that only some entries give has another value in the others: the default of the family.
    return [
        name
        for name, found in values.items()
        if len(found) > 1
        or any(not hasattr(entry, name) and name not in getattr(entry, "parameters", ()) for entry in entries)
    ]


def _texts(settings: Mapping[str, Any], named: Set[str]) -> Iterator[str]:
    """Yield the parts of the name of a cell."""
    parameters = settings.get("parameters", {})
    for name, value in _flat(settings).items():
        if name not in named:
            continue
        if name == "n" or name in parameters:
            yield f"{name}={value}"
        elif name == "gpus":
            yield "usual GPUs" if value is None else plural(value, "GPU")
        elif name == "p_sup":
            yield f"p_sup {value:g}"
        elif name != "operation_costs":
            yield str(value)
        elif not value:
            yield "no operation costs"


def _measured(run: StudyRun) -> Outcome:
    return run.measure(run.subject if run.subject is not None else _generated(type(run), run.batch_key))


@functools.lru_cache(maxsize=4)
def _generated(run_class: type[StudyRun], key: str) -> Any:
    """Return the batch or trace that a generator makes; several solvers run on it one after the other."""
    settings = json.loads(key)[run_class.KIND]
    operation_costs = settings.pop("operation_costs")
    return _with_costs(run_class.generate(**settings), operation_costs)


def _with_costs(subject: Any, operation_costs: bool) -> Any:
    return subject if operation_costs else subject.replace(operations=no_costs(subject.kinds))
