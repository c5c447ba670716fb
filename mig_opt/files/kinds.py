"""Kinds of files: the class of the domain that files of a kind hold, and how they are read, written and described."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from mig_opt.batch.problems import NO_COUNT, NO_GPU
from mig_opt.errors import InputError, Problem
from mig_opt.files import KINDS
from mig_opt.files.documents import Document, check_json, file_path, parsed, read_text, rendered, shown, write_text
from mig_opt.files.tables import Table, table_text
from mig_opt.files.values import (
    EXAMPLES,
    NESTED,
    REPORTED,
    Findings,
    Raw,
    defaults_of,
    made,
    object_encoder,
    read_keys,
)
from mig_opt.gpu.catalogue import add_gpu, assumed_costs, catalogue, known_gpu, taken_names, with_mig
from mig_opt.gpu.model import GpuModel, OperationCosts, Profile
from mig_opt.rules import hints_of
from mig_opt.rules.vocabulary import Rule

T = TypeVar("T")

INSTANCE = {"gpu": 0, "profile": "2g.10gb", "start": 0}
_COMMANDS = {"batch": "mig-opt solve", "services": "mig-opt deploy"}


@dataclass(frozen=True)
class FileKind(Generic[T]):
    r"""Kind of file: reads and writes what files of the kind stand for.

    Examples
    --------
    >>> from mig_opt.files.batch.batches import BATCH
    >>> batch = BATCH.from_json(
    ...     '{"schema": "mig-opt/batch/1", "gpu": "A30", "tasks": [{"name": "lu", "times": {"1": 4, "2": 2.5}}]}'
    ... )
    >>> batch.gpu.name, batch.tasks
    ('A30-24GB', (Task(name='lu', times={1: 4.0, 2: 2.5}, memory_gb=None),))
    >>> print(BATCH.to_json(batch), end="")
    {
      "schema": "mig-opt/batch/1",
      "gpu": "A30-24GB",
      "tasks": [
        {"name": "lu", "times": {"1": 4.0, "2": 2.5}}
      ]
    }
    >>> BATCH.from_csv("task,t1_s,t2_s\nlu,4,2.5\n", gpu="A30") == batch
    True
    """

    name: str
    shape: type  # the dataclass whose fields are the keys: that of the domain, unless files say it in another way
    # Objects with every key that they need, of the shape and of each class of objects in it that is in no other file.
    examples: Mapping[type, Raw]
    keys: tuple[str, ...] = ()  # in the order in which files have them; by default all fields of the shape
    hints: Mapping[str, Any] = field(default_factory=dict)  # types of keys that the shape has with another one
    # Values of keys that may be left out although the field has no default.
    defaults: Mapping[str, Any] = field(default_factory=dict)
    whole: Mapping[str, Any] = field(default_factory=dict)  # keywords of JSON Schema about the keys together
    # The class whose docstring describes the keys of another one.
    described_by: Mapping[type, type] = field(default_factory=dict)
    options: tuple[str, ...] = ()  # the keywords that readers take, besides ``name`` of what is named
    # Returns the document that is read in place of one; it takes the document, its path, the findings, and the options.
    # By default these take the place of keys.
    prepare: Callable[..., Raw] | None = None
    # Returns what the values by key, None for what cannot be read, stand for, as far as that can be said; it takes the
    # values, the document, its path, the findings, and the options. By default the shape is made of the values.
    build: Callable[..., T] | None = None
    # Returns an object with the keys as attributes for what a file is to hold, and the options of the writer as
    # keywords. By default what it holds has them itself.
    shaped: Callable[..., object] | None = None
    # Returns the document as it is to be written; it takes that object, and the document with what its keys are.
    finish: Callable[[Any, Raw], Raw] | None = None
    complete: bool = False  # True if keys are written that have their default
    table: Callable[..., Table] | None = None  # reads a CSV table: takes the text, the findings, and the options
    # Returns the header and the rows of a CSV table of what a file is to hold.
    cells: Callable[[T], tuple[Iterable[object], Iterable[Iterable[object]]]] | None = None
    named: bool = False  # True if what a file holds is called as the file is, without its ending
    in_results: str = ""  # the kind of results that have one, under the name of this kind, and that stand for it

    def __post_init__(self) -> None:
        EXAMPLES.update(self.examples)
        EXAMPLES[self.shape] = {"schema": self.title, **self.examples[self.shape]}
        NESTED[self.shape] = self

    @property
    def title(self) -> str:
        """Name and version of the format."""
        return f"mig-opt/{self.name}/1"

    @cached_property
    def types(self) -> Mapping[str, Any]:
        """The type of each key, in the order in which files have them."""
        own = hints_of(self.shape)
        return {key: self.hints.get(key, own.get(key)) for key in self.keys or own}

    @cached_property
    def all_defaults(self) -> Mapping[str, Any]:
        """The value of each key that may be left out, or what makes it."""
        return {**defaults_of(self.shape), **self.defaults}

    @cached_property
    def _encode(self) -> Callable[[Any], Raw]:
        return object_encoder(self.types, {} if self.complete else self.all_defaults)

    def from_json(self, document: Document, *, source: str = "", **given: Any) -> T:
        """Return what a JSON document describes; ``source`` is where it is from, for messages.

        ``given`` is what the reader of a file of this kind takes beside its path: for example ``gpu``, the name or
        alias of the GPU, in place of the one in the document. Batches, traces, fleet states and demands take ``name``,
        too, for display. A result of a run, also as ``--json`` prints it, stands for the plan that it has.
        """
        findings = Findings(source)
        raw, repeated = parsed(document, source)
        findings.extend(repeated)
        key, stated = self.name, raw.get("schema")
        if not self.in_results or (key not in raw if stated is None else stated != f"mig-opt/{self.in_results}/1"):
            built = self.part(raw, "", findings, **given)
        elif isinstance(raw.get(key), dict):
            built = self.part(raw[key], key, findings, **given)
        else:
            findings.add(key, f"must be an object {{...}}, is {shown(raw.get(key))}: the run has found no {key}")
        findings.check()
        return built

    def from_csv(self, text: str, *, source: str = "", **given: Any) -> T:
        """Return what a CSV table describes; problems have its lines and columns."""
        assert self.table is not None
        findings = Findings(source)
        table = self.table(text, findings, **given)
        raw = {"schema": self.title, "gpu": REPORTED, **table.raw}
        with table.told(source):
            built = self.part(raw, "", findings, **given)
            findings.check()
        return built

    def part(self, raw: Raw, path: str, findings: Findings, **given: Any) -> T:
        """Return what an object at a path of a document describes, as far as it can be read."""
        for option in given.keys() - {*self.options, *(["name"] if self.named else [])}:
            raise TypeError(f"files of the kind {self.name} are read without {option!r}")
        before = len(findings.problems)
        self._check_schema(raw.get("schema", ...), f"{path}.schema" if path else "schema", findings)
        if self.shape is not GpuModel:
            raw = with_named_gpus(raw, path, findings)
        if self.prepare:
            raw = self.prepare(raw, path, findings, **given)
        else:
            raw = {**raw, **{key: value for key, value in given.items() if key in self.types and value is not None}}
        values = read_keys(self.shape, self.types, raw, path, findings, defaults=self.all_defaults)
        if self.build:
            return self.build(values, raw, path, findings, **given)
        if "name" in given and self.named:
            values["name"] = given["name"]
        good = len(findings.problems) == before and REPORTED not in raw.values()
        return made(self.shape, values, path, findings, good=good)  # type: ignore[no-any-return]

    def _check_schema(self, stated: Any, where: str, findings: Findings) -> None:
        """Note that a document does not say its kind; to go on with one of another kind would only mislead."""
        named = re.fullmatch(r"mig-opt/([a-z-]+)/([0-9]{1,9})", stated) if isinstance(stated, str) else None
        if stated is ...:
            findings.add(where, f'is missing; add it, for example "schema": "{self.title}"')
        elif named and named[1] in KINDS and named[1] != self.name:
            message = f"this is {_a_file(named[1])} ({stated}), but {_a_file(self.name)} is wanted ({self.title})"
            if named[1] in _COMMANDS and self.name in _COMMANDS:
                message += f"; its command is: {_COMMANDS[named[1]]}"
            raise InputError([Problem(where, message)], findings.source)
        elif named and named[1] == self.name and int(named[2]) > 1:
            message = f"{stated} is newer than the version that this mig_opt reads ({self.title}); update mig_opt"
            raise InputError([Problem(where, message)], findings.source)
        elif stated != self.title:
            findings.add(where, f'must be "{self.title}", is {shown(stated)}')

    def read(self, path: str | Path, **given: Any) -> T:
        """Return what a file holds: a table if its name ends in ``.csv``, otherwise JSON."""
        file = file_path(path)
        if self.named:
            given.setdefault("name", file.stem)
        read = self.from_csv if self.table and file.suffix.lower() == ".csv" else self.from_json
        return read(read_text(file), source=str(file), **given)

    def document(self, content: T, **options: Any) -> Raw:
        """Return the document of what a file is to hold; the options are those of the writer."""
        if options and not self.shaped:
            raise TypeError(f"files of the kind {self.name} are written without {next(iter(options))!r}")
        shaped = self.shaped(content, **options) if self.shaped else content
        document = {"schema": self.title, **self._encode(shaped)}
        document = self.finish(shaped, document) if self.finish else document
        return document if self.shape is GpuModel else with_models(document)

    def to_json(self, content: T, **options: Any) -> str:
        """Return what a file is to hold as JSON text, one entry of a list on each line.

        Optional keys are left out where they have their default. A name is not part of the text: it is the name of the
        file.
        """
        return rendered(self.document(content, **options))

    def to_csv(self, content: T) -> str:
        """Return what a file is to hold as a CSV table."""
        assert self.cells is not None
        return table_text(*self.cells(content))

    def write(self, content: T, path: str | Path, **options: Any) -> None:
        """Write a file: a table if there is one and the name ends in ``.csv``, otherwise JSON.

        An existing file is replaced only when all is written.
        """
        # Kinds with a reader of their own read tables in it.
        if not self.cells and (self.table or type(self).read is not FileKind.read):
            check_json(path)
        as_table = self.cells is not None and file_path(path).suffix.lower() == ".csv"
        write_text(path, self.to_csv(content, **options) if as_table else self.to_json(content, **options))


def _a_file(kind: str) -> str:
    several = kind in ("services", "profiles", "costs", "commands")
    return f"a file of {kind}" if several else "a model of a GPU" if kind == "gpu" else f"a {kind}"


def check_stated(
    raw: Raw,
    values: Mapping[str, object],
    result: object,
    part: str,
    findings: Findings,
    *,
    same: Callable[[Any, Any], bool] = operator.eq,
) -> None:
    """Raise all findings; if there are none, each figure of a document that follows from a part of it otherwise.

    ``values`` are the figures as read, ``result`` has the true ones as attributes, ``part`` is the key of the part.
    """
    findings.check()
    for key, figure in values.items():
        actual = getattr(result, key)
        if key in raw and not same(figure, actual):
            findings.add(key, f"is {figure}, but follows from the {part} as {actual}; correct or remove it")
    findings.check()


def pools_document(content: Any, document: Raw) -> Raw:
    """Return the document of something on GPUs of any kinds; usual costs and whole GPUs without MIG are left out."""
    if content.usual_operations:
        document.pop("operations", None)
    if document.get("pools"):
        del document["gpus"]
    kept = [live for live in document.get("initial", ()) if live.get("free") or content.has_mig(live["gpu"])]
    if kept != document.get("initial", []):
        del document["initial"]
        document |= {"initial": kept} if kept else {}
    return document


@dataclass(frozen=True, slots=True)
class _Given(Rule):
    """Costs of operations that are there."""

    def wrong(self, value: OperationCosts) -> str:
        """Return what is wrong; empty if there are any."""
        there = value.create or value.destroy
        return "" if there else "have no seconds; give those of each size, or leave the costs out"


GPUS_OR_POOLS = {
    "oneOf": [
        {"required": ["gpu"], "properties": {"gpu": {"type": ["string", "object"]}}},
        {"required": ["pools"], "properties": {"pools": {"type": "array", "minItems": 1}, "gpu": {"type": "null"}}},
    ]
}
"""Keywords of JSON Schema: one kind of GPU, or pools."""


def with_gpus(raw: Raw, path: str, findings: Findings, **given: str | int | None) -> Raw:
    """Return a document with the GPU and their number that are given, and note what it does not say of its GPUs."""
    raw = {**raw, **{key: value for key, value in given.items() if key in ("gpu", "gpus") and value is not None}}
    below = f"{path}." if path else ""
    if raw.get("gpu") is None and not raw.get("pools"):
        findings.add(f"{below}gpu", NO_GPU)
    pools = raw.get("pools")
    for index, pool in enumerate(pools if isinstance(pools, list) else ()):
        if isinstance(pool, dict) and pool.get("count") is None:
            findings.add(f"{below}pools[{index}].count", NO_COUNT)
    return raw


POOL = {"gpu": "A100-80GB", "count": 4}
"""Pool as an example: each kind of file with pools has the same."""

OPERATIONS = {"operations": Annotated[OperationCosts, _Given()] | None}
"""Type of the costs of operations in files: null, or none, are those of the GPU."""


def gpu_named(name: str, folder: Path = Path()) -> str:
    """Return the name of a GPU: as given, or that of the model in a file ``.json``, which is looked for in a folder."""
    return GPU.read(folder / name).name if name.lower().endswith(".json") else name


def with_named_gpus(raw: Raw, path: str, findings: Findings) -> Raw:
    """Return an object with the names of GPUs, which are known from now on, in place of their models and files of such.

    A name that ends in ``.json`` is that of a file, from the folder of the one that names it.
    """

    def named(value: Any, where: str) -> Any:
        if isinstance(value, dict) and "profiles" in value:
            model = GPU.part(value, where, findings)
            return model.name if model else REPORTED
        if not isinstance(value, str):
            return value
        try:
            return gpu_named(value, Path(findings.source).parent)
        except InputError as error:
            for problem in error.problems:
                findings.add(where, f"{value}: {': '.join(filter(None, (problem.path, problem.message)))}")
            return REPORTED

    return _with_gpus(raw, f"{path}." if path else "", named)


def with_models(document: Raw) -> Raw:
    """Return a document with the models of GPUs that are not the catalogue's, each where its name comes first."""
    told = set(catalogue())

    def model(value: Any, _: str) -> Any:
        gpu = known_gpu(value) if isinstance(value, str) else None
        if gpu is None or gpu in told or with_mig(gpu) in told:
            return value
        told.add(gpu)
        return GPU.document(gpu)

    return _with_gpus(document, "", model)


def _with_gpus(raw: Raw, below: str, changed: Callable[[Any, str], Any]) -> Raw:
    """Return an object with something in place of whatever stands for a GPU in it; that is given with its path."""
    found = dict(raw)
    for key in [key for key in ("gpu", "gpus", "kinds", "pools", "profiles") if key in raw]:
        value, where = found[key], f"{below}{key}"
        if key == "gpu":
            found[key] = changed(value, where)
        elif isinstance(value, list):
            found[key] = [
                {**entry, "gpu": changed(entry["gpu"], f"{where}[{index}].gpu")}
                if isinstance(entry, dict) and "gpu" in entry
                else changed(entry, f"{where}[{index}]")
                for index, entry in enumerate(value)
            ]
    return found


class _GpuKind(FileKind[GpuModel]):
    """Models of GPUs, which are known by their names from then on."""

    def part(self, raw: Raw, path: str, findings: Findings, **given: Any) -> Any:
        """Return the model that an object describes; None if anything is wrong with it."""
        before = len(findings.problems)
        model = super().part(raw, path, findings, **given)
        if len(findings.problems) == before and model.operation_costs is None:
            model = replace(model, operation_costs=assumed_costs(model.profiles, model.name))
        if len(findings.problems) == before:
            findings.extend(taken_names(model), path)
        return add_gpu(model) if len(findings.problems) == before else None


_PROFILE = {"name": "1g.16gb", "id": 19, "compute_slices": 1, "memory_slices": 1, "memory_gb": 16}
_PROFILE |= {"max_count": 2, "starts": [0, 1]}
COSTS = {"create": {"1": 0.1, "2": 0.1, "4": 0.1}, "destroy": {"1": 0.1, "2": 0.1, "4": 0.1}}
"""Costs of operations as an example."""

_MODEL = {"name": "RTX-PRO-4500-32GB", "label": "NVIDIA RTX PRO 4500 Blackwell", "memory_gb": 32}

GPU = _GpuKind(
    "gpu",
    GpuModel,
    {
        GpuModel: {**_MODEL, "memory_slices": 2, "compute_slices": 2, "profiles": [_PROFILE]},
        Profile: _PROFILE,
        OperationCosts: COSTS,
    },
    hints={"operation_costs": OperationCosts | None},
    defaults={"operation_costs": None},
)
"""Models of GPUs; here, since files of other kinds have them in place of names."""
