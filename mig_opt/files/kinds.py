"""InstanceTypes of files: how a document becomes what it stands for, and the other way round."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from mig_opt.errors import InputError, Problem
from mig_opt.files.documents import Document, file_path, parsed, read_text, rendered, shown, write_text
from mig_opt.files.shapes import FROM_0, KINDS, WORDS, Kind, Words, by_size
from mig_opt.files.tables import told_by_row
from mig_opt.files.values import REPORTED, EntryReader, Findings, Raw, encoded, read_keys, read_object
from mig_opt.gpu.catalogue import catalogue
from mig_opt.gpu.model import GpuModel, OperationCosts
from mig_opt.rules import MOST_GPUS

if TYPE_CHECKING:
    from mig_opt.batch.batch import Batch
    from mig_opt.fleet.state import FleetState
    from mig_opt.fleet.trace import Trace

T = TypeVar("T")

_COSTS = {"1": 0.1, "2": 0.1, "4": 0.1}
WORDS[OperationCosts] = Words(
    {"create": _COSTS, "destroy": _COSTS}, {"create": by_size(FROM_0), "destroy": by_size(FROM_0)}
)

_COMMANDS = {"batch": "mig-opt solve", "services": "mig-opt deploy"}


class Table(NamedTuple):
    """CSV table, read as the document that says the same."""

    raw: Raw
    """The document, without its schema and without the GPU."""
    entries: str
    """The key of the list whose entries the rows are."""
    lines: Sequence[int]
    """The line of each entry."""
    column: Callable[[int, str], str] = lambda _, key: key
    """Gives the column of a key of an entry, by the index of the entry and the key."""


@dataclass(frozen=True)
class FileKind(Generic[T]):
    r"""Kind of file: reads and writes what files of the kind stand for.

    Attributes
    ----------
    name : str
        Name of the kind.
    build : callable
        Returns what an object of a document stands for, as far as it can be read. It takes the object, its path, the
        findings, and as keywords whatever else the caller of the reader gives.
    encode : callable
        Returns the keys of the document for what a file is to hold, all but the schema.
    table : callable, optional
        Reads a CSV table: takes the text, the findings, and the same keywords as ``build``.
    to_csv : callable, optional
        Returns what a file is to hold as the text of a CSV table.
    named : bool
        True if what a file holds is called as the file is, without its ending.

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

    name: Kind
    build: Callable[..., T]
    encode: Callable[..., Raw]
    table: Callable[..., Table] | None = None
    to_csv: Callable[[T], str] | None = None
    named: bool = False

    def from_json(self, document: Document, *, source: str = "", **given: Any) -> T:
        """Return what a JSON document describes; ``source`` is where it is from, for messages.

        ``given`` is what the reader of a file of this kind takes beside its path: for example ``gpu``, the name or
        alias of the GPU, in place of the one in the document. Batches, traces, fleet states and demands take ``name``,
        too, for display.
        """
        findings = Findings(source)
        built = self.build(read_document(document, self.name, findings), "", findings, **given)
        findings.check()
        return built

    def from_csv(self, text: str, *, source: str = "", **given: Any) -> T:
        """Return what a CSV table describes; problems have its lines and columns."""
        assert self.table is not None
        findings = Findings(source)
        table = self.table(text, findings, **given)
        raw = {"schema": f"mig-opt/{self.name}/1", "gpu": REPORTED, **table.raw}
        with told_by_row(source, table.entries, table.lines, table.column):
            built = self.build(raw, "", findings, **given)
            findings.check()
        return built

    def part(self, raw: Raw, path: str, findings: Findings, **given: Any) -> T:
        """Return what an object at a path of a document describes, as far as it can be read."""
        check_schema(raw, self.name, findings, path)
        return self.build(raw, path, findings, **given)

    def read(self, path: str | Path, **given: Any) -> T:
        """Return what a file holds: a table if its name ends in ``.csv``, otherwise JSON."""
        file = file_path(path)
        if self.named:
            given.setdefault("name", file.stem)
        read = self.from_csv if self.table and file.suffix.lower() == ".csv" else self.from_json
        return read(read_text(file), source=str(file), **given)

    def document(self, content: T, **options: Any) -> Raw:
        """Return the document of what a file is to hold; the options are those of the writer."""
        return {"schema": f"mig-opt/{self.name}/1", **self.encode(content, **options)}

    def to_json(self, content: T, **options: Any) -> str:
        """Return what a file is to hold as JSON text, one entry of a list on each line.

        Optional keys are left out where they have their default. A name is not part of the text: it is the name of the
        file.
        """
        return rendered(self.document(content, **options))

    def write(self, content: T, path: str | Path, **options: Any) -> None:
        """Write a file: a table if there is one and the name ends in ``.csv``, otherwise JSON.

        An existing file is replaced only when all is written.
        """
        as_csv = self.to_csv if file_path(path).suffix.lower() == ".csv" else None
        write_text(path, as_csv(content) if as_csv else self.to_json(content, **options))


def read_document(document: Document, kind: Kind, findings: Findings) -> Raw:
    """Return a JSON document as an object; note keys that it repeats."""
    raw, repeated = parsed(document, findings.source)
    findings.extend(repeated)
    check_schema(raw, kind, findings)
    return raw


def check_schema(raw: Raw, kind: Kind, findings: Findings, path: str = "") -> None:
    """Note that a document says that it is of no kind at all.

    Raises
    ------
    InputError
        If it is of another kind or of a newer version: to read it as ``kind`` would only give misleading problems.
    """
    wanted = f"mig-opt/{kind}/1"
    stated = raw.get("schema")
    if stated == wanted or "schema" not in raw:
        return
    where = f"{path}.schema" if path else "schema"
    named = re.fullmatch(r"mig-opt/([a-z-]+)/([0-9]{1,9})", stated) if isinstance(stated, str) else None
    if named and named[1] in KINDS and named[1] != kind:
        message = f"this is {_a_file(named[1])} ({stated}), but {_a_file(kind)} is wanted ({wanted})"
        if named[1] in _COMMANDS and kind in _COMMANDS:
            message += f"; its command is: {_COMMANDS[named[1]]}"
    elif named and named[1] == kind and int(named[2]) > 1:
        message = f"{stated} is newer than the version that this mig_opt reads ({wanted}); update mig_opt"
    else:
        findings.add(where, f'must be "{wanted}", is {shown(stated)}')
        return
    raise InputError([Problem(where, message)], findings.source)


def _a_file(kind: str) -> str:
    return f"a file of {kind}" if kind in ("services", "profiles", "costs") else f"a {kind}"


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


def read_fleet(
    shape: type,
    raw: Raw,
    findings: Findings,
    model: GpuModel | None,
    problems: Callable[[GpuModel, dict[str, Any]], Iterable[Problem]],
    *,
    known_without_gpu: str,
    readers: Mapping[str, EntryReader] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return the values of a document about identical GPUs: ``gpu`` is the model, ``operations`` are never None.

    ``problems`` yields the problems of the values together, by the kind of GPU: what cannot be read is None in a list,
    and a number of GPUs that cannot is large. Without a ``model``, only those count that do not depend on the kind of
    GPU: the pattern ``known_without_gpu`` has their paths. ``shape`` and ``readers`` are as for :func:`read_keys`.
    """
    costs = encoded(model.operation_costs) if model else {"create": {}, "destroy": {}}
    own: dict[str, EntryReader] = {"operations": partial(read_object, OperationCosts, stand_ins=costs), **readers}
    values = read_keys(shape, raw, findings, readers=own, skip=("gpu",))
    stand_in = model or catalogue()[0]
    if "operations" in values:
        values["operations"] = values["operations"] or stand_in.operation_costs
    if values["gpus"] is None:
        values["gpus"] = MOST_GPUS
    # An entry that is not there and one that cannot be read have been reported; an empty list has not.
    found = problems(stand_in, {key: [None] if value is None else value for key, value in values.items()})
    findings.extend(problem for problem in found if model or re.fullmatch(known_without_gpu, problem.path))
    findings.check()
    return {**values, "gpu": model}  # nothing is None now that there is no problem


def encoded_fleet(content: Batch | Trace | FleetState, key: str) -> Raw:
    """Return the GPUs of a document with its list ``key``, and the number of GPUs if there are several."""
    check_catalogued(gpu=content.gpu)
    document: Raw = {"gpu": content.gpu.name}
    if content.gpus != 1:
        document["gpus"] = content.gpus
    document[key] = [encoded(entry) for entry in getattr(content, key)]
    return document


def encoded_operations(content: Batch | Trace) -> Raw:
    """Return the costs of operations as a part of a document; nothing if they are those of the kind of GPU."""
    usual = content.operations == content.gpu.operation_costs
    return {} if usual else {"operations": encoded(content.operations)}


def check_catalogued(**gpus: GpuModel) -> None:
    """Refuse GPUs that are not the catalogue's, each by its path: their names do not say what they are."""
    foreign = [
        Problem(path, f"{gpu.name} is not a GPU of the catalogue; a file names its GPU and cannot describe another")
        for path, gpu in gpus.items()
        if gpu not in catalogue()
    ]
    if foreign:
        raise InputError(foreign)
