"""Profile tables as JSON, and the CSV layout in which ParvaGPU's were published."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from mig_opt.errors import InputError, Problem, raise_any
from mig_opt.files.documents import file_path, read_text
from mig_opt.files.kinds import FileKind
from mig_opt.files.tables import Table, check_columns, entries_of_rows, gpu_of_table, number, read_rows
from mig_opt.files.values import REPORTED, Findings, Raw, encoded, read_value
from mig_opt.gpu.catalogue import GpuName, KnownName, get_gpu
from mig_opt.rules.vocabulary import NotEmpty
from mig_opt.serving.demand import repeated
from mig_opt.serving.profile_table import Point, ProfileTable


@dataclass(frozen=True, slots=True)
class ProfilesFile:
    """Measurements of models on instances of each size."""

    profiles: Annotated[
        tuple[ProfileTable, ...],
        NotEmpty("at least one entry"),
        Field(description="One for each model and kind of GPU."),
    ]
    gpu: Annotated[GpuName | None, Field(description="The GPU of the profiles that do not name one.")] = None


POINT = {"size": 1, "batch": 8, "processes": 2, "throughput": 128.69, "latency": 0.124}
_WITHOUT_GPU = {"model": "bert", "points": [POINT]}

_COLUMNS = {
    "size": "Mig instance",
    "batch": "Batch size",
    "processes": "Workload Number",
    "throughput": "Throughput",
    "latency": "Latency",
}
"""The column of each figure of a point in the published layout."""

_NO_DEFAULT = "is missing; name the GPU that was measured, here or for all profiles at the top of the file"


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


def _read_folder(
    folder: Path, endings: tuple[str, ...], gpu: str | None, read: Callable[[Path], tuple[ProfileTable, ...]]
) -> tuple[ProfileTable, ...]:
    findings = Findings(str(folder))
    try:
        files = sorted(file for file in folder.iterdir() if file.suffix.lower() in endings and file.is_file())
    except OSError as error:
        raise InputError([Problem("", f"cannot be read: {error.strerror}")], str(folder)) from None
    if not files:
        findings.add("", f"has no file whose name ends in {' or '.join(endings)}; name a folder with profiles")
        findings.check()
    if gpu is None and any(file.suffix.lower() == ".csv" for file in files):
        gpu_of_table(None, findings, example="A100-80GB")
        files = [file for file in files if file.suffix.lower() != ".csv"]
    if gpu is not None:
        get_gpu(gpu)
    found: dict[tuple[str, str], tuple[ProfileTable, str]] = {}
    for file in files:
        try:
            for table in read(file):
                _, other = found.setdefault((table.model, table.gpu), (table, file.name))
                if other != file.name:
                    message = f"has a table of {table.model!r} on {table.gpu}, as {other} has; keep one of them"
                    findings.add(file.name, message)
        except InputError as error:
            for problem in error.problems:
                findings.add(", ".join(filter(None, (file.name, problem.path))), problem.message)
    findings.check()
    return tuple(table for table, _ in found.values())


def _prepared(raw: Raw, _: str, findings: Findings, *, gpu: str | None = None) -> Raw:
    named = gpu if raw.get("gpu") is None else raw["gpu"]
    no_gpu = _NO_DEFAULT if named is None else ""
    return with_gpus(raw, None if KnownName().wrong(named) else named, no_gpu, findings)


def with_gpus(raw: Raw, gpu: str | None, no_gpu: str, findings: Findings) -> Raw:
    """Return a document whose profile tables without a kind of GPU have a given one.

    Without one, ``no_gpu`` is what is wrong with them; empty if that has been reported.
    """
    entries = raw.get("profiles")
    if not isinstance(entries, list):
        return raw
    nameless = [isinstance(entry, dict) and entry.get("gpu") is None for entry in entries]
    if gpu is None and no_gpu:
        findings.extend(Problem(f"profiles[{index}].gpu", no_gpu) for index, lacks in enumerate(nameless) if lacks)
    named = {"gpu": REPORTED if gpu is None else gpu}
    tables = [{**entry, **named} if lacks else entry for entry, lacks in zip(entries, nameless, strict=True)]
    return {**raw, "profiles": tables}


def _profiles(values: Raw, _: Raw, _path: str, findings: Findings, **_given: object) -> tuple[ProfileTable, ...]:
    tables = values["profiles"] or ()
    findings.extend(repeated([table and (table.model, table.gpu) for table in tables], "profiles", ""))
    return tuple(tables)


def _imported(text: str, gpu: str | None, model: str, memory_gb: float | None, source: str) -> ProfileTable:
    findings = Findings(source)
    gpu_of_table(gpu, findings, example="A100-80GB")
    names = list(_COLUMNS.values())
    needed = dict.fromkeys(names, f"; the columns are {','.join(names)}")
    check = partial(check_columns, known=names, needed=needed)
    rows = read_rows(text, findings, check, example=",".join(names), what="row of measurements")
    figures = [_COLUMNS[key] for key in ("throughput", "latency")]
    ran = [(line, cells) for line, cells in rows if any(number(cells[column]) != 0 for column in figures)]
    if rows and not ran:
        findings.add("", "has no row that ran: throughput and latency are 0 in all of them")
    raw = {"model": model, "gpu": gpu or REPORTED, "memory_gb": memory_gb}
    with Table(raw, "points", [line for line, _ in ran], lambda _, key: _COLUMNS.get(key, key)).told(source):
        raw["points"] = _points([cells for _, cells in ran]) or REPORTED
        table: ProfileTable = read_value(ProfileTable, raw, "", findings)
        findings.check()
    return table


def _points(rows: list[dict[str, str]]) -> list[Raw]:
    points = entries_of_rows(rows, {column: key for key, column in _COLUMNS.items()}, Point)
    for point, cells in zip(points, rows, strict=True):
        processes = point["processes"]
        if isinstance(processes, int) and processes > 0 and not isinstance(point["throughput"], str):
            # In decimal, so that 3 x 39.917 is 119.751.
            point["throughput"] = float(processes * Decimal(cells[_COLUMNS["throughput"]]))
    return points


def _shaped(tables: ProfileTable | Iterable[ProfileTable]) -> ProfilesFile:
    tables = (tables,) if isinstance(tables, ProfileTable) else tuple(tables)
    problems = list(repeated([(table.model, table.gpu) for table in tables], "tables", ""))
    if not tables:
        problems.append(Problem("tables", "needs at least one entry, is empty"))
    raise_any(problems)
    kinds = {table.gpu for table in tables}
    return ProfilesFile(tables, next(iter(kinds)) if len(kinds) == 1 else None)


def table_document(table: ProfileTable, gpu: str | None) -> Raw:
    """Return a table as part of a document in which tables without a GPU are of the kind ``gpu``."""
    document = encoded(table)
    if table.gpu == gpu:
        del document["gpu"]
    points = document.pop("points")
    return {**document, "points": points}


class _ProfilesKind(FileKind[tuple[ProfileTable, ...]]):
    """Profile tables, which are in folders of such files, too, and in tables of another layout."""

    def read(self, path: str | Path, **given: Any) -> tuple[ProfileTable, ...]:
        """Return the tables of a JSON file, a CSV file (see :func:`import_profiles`), or all such files of a folder.

        ``gpu`` is the name or alias of the GPU for what does not name its own: CSV files need it. Those of a folder
        come by file; problems of all its files are told at once.
        """
        path = file_path(path)
        if path.is_dir():
            return _read_folder(path, (".json", ".csv"), given.get("gpu"), lambda file: self.read(file, **given))
        if path.suffix.lower() == ".csv":
            return import_profiles(path, **{"gpu": None, **given})
        return super().read(path, **given)


PROFILES = _ProfilesKind(
    "profiles",
    ProfilesFile,
    {ProfilesFile: {"profiles": [{**_WITHOUT_GPU, "gpu": "A100-80GB"}]}, ProfileTable: _WITHOUT_GPU, Point: POINT},
    ("gpu", "profiles"),
    options=("gpu",),
    prepare=_prepared,
    build=_profiles,
    shaped=_shaped,
    finish=lambda file, document: {
        **document,
        "profiles": [table_document(table, file.gpu) for table in file.profiles],
    },
)
