"""Profile tables as JSON, and the CSV layout in which ParvaGPU's were published."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from mig_opt.errors import InputError, Problem
from mig_opt.files.documents import file_path, read_text, shown
from mig_opt.files.kinds import FileKind
from mig_opt.files.shapes import ABOVE_0, NAME, WORDS, Keywords, NotEmpty, Words
from mig_opt.files.tables import check_columns, gpu_of_table, number, read_rows, told_by_row
from mig_opt.files.values import EntryReader, Findings, Raw, encoded, gpu_of, read_keys
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.serving.demand import repeated
from mig_opt.serving.profile_table import Point, ProfileTable, table_problems
from mig_opt.texts import number_in


@dataclass(frozen=True, slots=True)
class TableEntry:
    """Measurements of a model on the instances of one kind of GPU."""

    model: str
    points: Annotated[tuple[Point, ...], NotEmpty]
    gpu: Annotated[str | None, Field(description="The kind of GPU; default: the only one that the file names.")] = None
    memory_gb: float | None = None


@dataclass(frozen=True, slots=True)
class ProfilesFile:
    """Measurements of models on instances of each size."""

    schema: Literal["mig-opt/profiles/1"]
    profiles: Annotated[tuple[TableEntry, ...], Field(min_length=1, description="One for each model and kind of GPU.")]
    gpu: Annotated[str | None, Field(description="The GPU of the profiles that do not name one.")] = None


_COUNT: Keywords = {"minimum": 1, "maximum": 2**31 - 1}
_POINT = {"size": 1, "batch": 8, "processes": 2, "throughput": 128.69, "latency": 0.124}
_ENTRY = {"model": "bert", "gpu": "A100-80GB", "points": [_POINT]}
WORDS[Point] = Words(
    _POINT, {"size": _COUNT, "batch": _COUNT, "processes": _COUNT, "throughput": ABOVE_0, "latency": ABOVE_0}
)
WORDS[TableEntry] = Words(_ENTRY, {"model": NAME, "memory_gb": ABOVE_0}, described_by=ProfileTable)
WORDS[ProfilesFile] = Words({"schema": "mig-opt/profiles/1", "profiles": [_ENTRY]})

_COLUMNS = {
    "size": "Mig instance",
    "batch": "Batch size",
    "processes": "Workload Number",
    "throughput": "Throughput",
    "latency": "Latency",
}
"""The column of each figure of a point in the published layout."""

_NO_DEFAULT = "is missing; name the GPU that was measured, here or for all profiles at the top of the file"


def read_profiles(path: str | Path, gpu: str | None = None) -> tuple[ProfileTable, ...]:
    """Read profile tables from a JSON file, a CSV file (see :func:`import_profiles`), or a folder of such files.

    Parameters
    ----------
    path : str or Path
        The file, or the folder; of a folder, all files whose names end in ``.json`` or ``.csv``.
    gpu : str, optional
        Name or alias of the GPU for what does not name its own: CSV files need it.

    Returns
    -------
    tuple of ProfileTable
        In the order of the file; those of a folder by file.

    Raises
    ------
    InputError
        With every problem of the file, or of all files of the folder.
    """
    path = file_path(path)
    if path.is_dir():
        return _read_folder(path, (".json", ".csv"), gpu, lambda file: read_profiles(file, gpu))
    if path.suffix.lower() == ".csv":
        return import_profiles(path, gpu)
    return PROFILES.read(path, gpu=gpu)


def import_profiles(
    path: str | Path, gpu: str | None, model: str | None = None, memory_gb: float | None = None
) -> tuple[ProfileTable, ...]:
    """Read profile tables in the CSV layout in which those of ParvaGPU were published.

    The columns are ``Mig instance`` (compute slices), ``Batch size``, ``Workload Number`` (processes), ``Throughput``
    (requests per second of *each* process) and ``Latency`` (seconds). A row with throughput and latency 0 stands for a
    way that did not run.

    Parameters
    ----------
    path : str or Path
        The file, or a folder with one file for each model.
    gpu : str
        Name or alias of the GPU that was measured.
    model : str, optional
        Name of the model; by default the name of the file without its ending.
    memory_gb : float, optional
        Memory that the model needs in GB.

    Returns
    -------
    tuple of ProfileTable
        One for each file, by name. Throughput is that of all processes together.

    Raises
    ------
    InputError
        With every problem of the file, or of all files of the folder.
    """
    path = file_path(path)
    if path.is_dir():
        if model is not None:
            message = f"{path} is a folder with a file for each model; leave the name out, or name one file"
            raise InputError([Problem("model", message)])
        return _read_folder(path, (".csv",), gpu, lambda file: import_profiles(file, gpu, None, memory_gb))
    return (_imported(read_text(path), gpu, path.stem if model is None else model, memory_gb, str(path)),)


def _files_in(folder: Path, endings: tuple[str, ...]) -> list[Path]:
    try:
        files = sorted(file for file in folder.iterdir() if file.suffix.lower() in endings and file.is_file())
    except OSError as error:
        raise InputError([Problem("", f"cannot be read: {error.strerror}")], str(folder)) from None
    if not files:
        message = f"has no file whose name ends in {' or '.join(endings)}; name a folder with profiles"
        raise InputError([Problem("", message)], str(folder))
    return files


def _read_folder(
    folder: Path, endings: tuple[str, ...], gpu: str | None, read: Callable[[Path], tuple[ProfileTable, ...]]
) -> tuple[ProfileTable, ...]:
    findings = Findings(str(folder))
    files = _files_in(folder, endings)
    if gpu is None and any(file.suffix.lower() == ".csv" for file in files):
        gpu_of_table(None, findings, example="A100-80GB")
        files = [file for file in files if file.suffix.lower() != ".csv"]
    if gpu is not None:
        get_gpu(gpu)
    tables: list[ProfileTable] = []
    origins: list[str] = []
    for file in files:
        try:
            found = read(file)
        except InputError as error:
            for problem in error.problems:
                findings.add(", ".join(filter(None, (file.name, problem.path))), problem.message)
        else:
            tables += found
            origins += [file.name] * len(found)
    first: dict[tuple[str, str], str] = {}
    for table, origin in zip(tables, origins, strict=True):
        other = first.setdefault((table.model, table.gpu), origin)
        if other != origin:
            findings.add(origin, f"has a table of {table.model!r} on {table.gpu}, as {other} has; keep one of them")
    findings.check()
    return tuple(tables)


def _profiles(raw: Raw, _: str, findings: Findings, *, gpu: str | None = None) -> tuple[ProfileTable, ...]:
    no_gpu = _NO_DEFAULT
    if raw.get("gpu") is not None:
        named = gpu_of(raw, findings)
        gpu, no_gpu = (named.name, "") if named else (None, "")
    values = read_keys(ProfilesFile, raw, findings, readers={"profiles": table_reader(gpu, no_gpu)}, skip=("gpu",))
    tables = values["profiles"] or []
    if raw.get("profiles") == []:
        findings.add("profiles", "needs at least one entry, is empty")
    findings.extend(repeated([table and (table.model, table.gpu) for table in tables], "profiles", ""))
    return tuple(tables)


def table_reader(gpu: str | None, no_gpu: str) -> EntryReader:
    """Return a reader of profile tables; ``gpu`` is the kind of GPU of those that do not name it.

    ``no_gpu`` is what is wrong with them if there is no such kind; empty if that has been reported.
    """

    def read(entry: object, path: str, findings: Findings) -> ProfileTable | None:
        if not isinstance(entry, dict):
            findings.add(path, f"must be an object {{...}}, is {shown(entry)}")
            return None
        found = Findings("")
        values = read_keys(TableEntry, entry, found)
        if entry.get("gpu") is None:
            values["gpu"] = gpu
            if gpu is None and no_gpu:
                found.add("gpu", no_gpu)
        # A list that is not there or is none has been reported, an empty one has not.
        points = [None] if values["points"] is None else values["points"]
        found.extend(table_problems(values["model"], values["gpu"], points, values["memory_gb"]))
        findings.extend(found.problems, path)
        return None if found.problems or values["gpu"] is None else ProfileTable(**values)

    return read


def _imported(text: str, gpu: str | None, model: str, memory_gb: float | None, source: str) -> ProfileTable:
    findings = Findings(source)
    gpu_of_table(gpu, findings, example="A100-80GB")
    names = list(_COLUMNS.values())
    needed = dict.fromkeys(names, f"; the columns are {','.join(names)}")
    check = partial(check_columns, known=names, needed=needed)
    rows = read_rows(text, findings, check, example=",".join(names), what="row of measurements")
    ran = [(line, cells) for line, cells in rows if _ran(cells)]
    points = [_point(cells, f"line {line}", findings) for line, cells in ran]
    if rows and not ran:
        findings.add("", "has no row that ran: throughput and latency are 0 in all of them")
    with told_by_row(source, "points", [line for line, _ in ran], lambda _, key: _COLUMNS.get(key, key)):
        findings.extend(table_problems(model, gpu, points or [None], memory_gb))
        findings.check()
    assert gpu is not None
    return ProfileTable(model, gpu, tuple(point for point in points if point), memory_gb)


def _ran(cells: dict[str, str]) -> bool:
    return any(number(cells[_COLUMNS[key]]) != 0 for key in ("throughput", "latency"))


def _point(cells: dict[str, str], where: str, findings: Findings) -> Point | None:
    found = Findings("")
    figures: dict[str, Any] = {}
    for key, column in _COLUMNS.items():
        whole = key in ("size", "batch", "processes")
        figure = number_in(cells[column]) if whole else number(cells[column])
        if isinstance(figure, str):
            found.add(column, f"must be a {'whole ' if whole else ''}number, is {shown(figure)}")
        figures[key] = figure
    if not found.problems:
        try:
            each = Point(**figures)
            # In decimal, so that 3 x 39.917 is 119.751.
            total = float(each.processes * Decimal(cells[_COLUMNS["throughput"]]))
            return dataclasses.replace(each, throughput=total)
        except InputError as error:
            found.extend(Problem(_COLUMNS[problem.path], problem.message) for problem in error.problems)
    findings.extend(Problem(f"{where}, {problem.path}", problem.message) for problem in found.problems)
    return None


def _encoded(tables: Iterable[ProfileTable]) -> Raw:
    tables = tuple(tables)
    problems = list(repeated([(table.model, table.gpu) for table in tables], "tables", ""))
    if not tables:
        problems.append(Problem("tables", "needs at least one entry, is empty"))
    if problems:
        raise InputError(problems)
    document: Raw = {}
    kinds = {table.gpu for table in tables}
    only = next(iter(kinds)) if len(kinds) == 1 else None
    if only:
        document["gpu"] = only
    document["profiles"] = [table_document(table, only) for table in tables]
    return document


def table_document(table: ProfileTable, gpu: str | None) -> Raw:
    """Return a table as part of a document in which tables without a GPU are of the kind ``gpu``."""
    document: Raw = {"model": table.model}
    if table.gpu != gpu:
        document["gpu"] = table.gpu
    if table.memory_gb is not None:
        document["memory_gb"] = table.memory_gb
    return {**document, "points": [encoded(point) for point in table.points]}


PROFILES = FileKind("profiles", _profiles, _encoded)
write_profiles = PROFILES.write
profiles_from_json, profiles_to_json = PROFILES.from_json, PROFILES.to_json
