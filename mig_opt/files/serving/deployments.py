"""Deployments as JSON and CSV, also in ParvaGPU's published layout."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from mig_opt.errors import InputError, Problem, raise_any
from mig_opt.files.documents import file_path, read_text, shown
from mig_opt.files.kinds import INSTANCE, FileKind
from mig_opt.files.tables import Table, check_columns, columns_of, entries_of_rows, gpu_of_table, read_rows
from mig_opt.files.values import Findings, Raw, made
from mig_opt.gpu.catalogue import GpuName, get_gpu
from mig_opt.gpu.model import GpuModel
from mig_opt.gpu.problems import wrong_size
from mig_opt.rules.vocabulary import MOST_GPUS
from mig_opt.serving.demand import Demand
from mig_opt.serving.deployment import Deployment, Segment, check_deployments
from mig_opt.serving.profile_table import Point, smallest_profile
from mig_opt.texts import number_in

_FIGURES = ("throughput", "latency")
_CSV_FIGURES = ("throughput_rps", "latency_s")

_NUMBERS = {
    "server": "Num instance",
    "gpu": "Num GPU",
    "start": "Placement",
    "size": "Instance size",
    "batch": "Batch size",
    "processes": "Num proc",
}
"""The column of each number of a segment in the published layout."""

_COLUMNS = [*_NUMBERS.values(), "Model"]

_TABLE = {key: key for key in ("gpu", "kind", "service", "profile", "start", "batch", "processes")}
_TABLE |= dict(zip(_CSV_FIGURES, _FIGURES, strict=True))
"""The key of a segment that each column of our own layout gives; ``kind`` is that of its GPU."""


def _deployment(
    values: Raw, _: Raw, path: str, findings: Findings, *, demand: Demand | None = None, **_given: object
) -> Deployment:
    models = [name and get_gpu(name) for name in values["gpus"] or ()]
    points = _points(demand) if demand else {}
    segments = []
    for index, segment in enumerate(values["segments"] or ()):
        if segment is None or segment.gpu is None or values["gpus"] is None:
            continue
        where = Problem(f"segments[{index}]", "").below(path).path
        if not 0 <= segment.gpu < len(models):
            message = f"there is no GPU {segment.gpu}; those in gpus are counted from 0, there are {len(models)}"
            findings.add(f"{where}.gpu", message)
            continue
        model = models[segment.gpu]
        if not model or segment.profile is None:
            continue
        try:
            size = model.profile(segment.profile).compute_slices
        except InputError as error:
            findings.extend(error.problems, where)
            continue
        point = points.get((segment.service, model.name, size, segment.batch, segment.processes))
        figures = {key: getattr(segment, key) or getattr(point, key) for key in _FIGURES if point}
        segments.append(dataclasses.replace(segment, **figures))
    good = not findings.problems
    gpus = tuple(model.name for model in models if model) if good else values["gpus"]
    known = {**values, "gpus": gpus, "segments": tuple(segments)}
    deployment: Deployment = made(Deployment, known, path, findings, good=good)
    return deployment


def _points(demand: Demand) -> dict[tuple[str, str, int, int, int], Point]:
    """Return the points of the profile tables by service, GPU, size, batch and processes."""
    return {
        (service.name, table.gpu, point.size, point.batch, point.processes): point
        for service in demand.services
        for table in demand.measured
        if table.model == service.model
        for point in table.points
    }


def _from_table(text: str, gpu: str | None, source: str, *, demand: Demand | None = None) -> Deployment:
    """Return the deployment of a table in our own layout, read as the JSON document that says the same."""
    findings = Findings(source)
    needed = [column for column in _TABLE if column not in (*_CSV_FIGURES, "kind" if gpu else "")]
    rows = _rows(text, findings, list(_TABLE), needed)
    # A GPU without segments has a row of its own, with nothing but its number and kind.
    full = [row for row in rows if any(cell for column, cell in row[1].items() if column not in ("gpu", "kind"))]
    lines = [line for line, _ in full]
    columns = {column: key for column, key in _TABLE.items() if column != "kind"}
    entries = entries_of_rows((cells for _, cells in full), columns, Segment)
    seen: dict[int, tuple[object, int]] = {}  # the kind of each GPU, and the line that says it
    for line, cells in rows:
        number, kind = number_in(cells["gpu"]), cells.get("kind") or gpu
        if not isinstance(number, int) or not 0 <= number < MOST_GPUS:
            findings.add(f"line {line}, gpu", f"must be a whole number from 0 to {MOST_GPUS - 1}, is {shown(number)}")
        elif (first := seen.setdefault(number, (kind, line)))[0] != kind:
            findings.add(f"line {line}, kind", f"GPU {number} is {first[0]} on line {first[1]}, and {kind} here")
    kinds, numbers = {kind for kind, _ in seen.values()}, range(max(seen, default=-1) + 1)
    gaps = [number for number in numbers if number not in seen]
    if gaps and len(kinds) > 1:
        findings.add("", f"no row says which kind GPU {gaps[0]} is; number the GPUs without gaps, or write JSON")
    findings.check()
    listed = [seen.get(number, (next(iter(kinds)), rows[0][0])) for number in numbers]
    raw = {"schema": "mig-opt/deployment/1", "gpus": [kind for kind, _ in listed], "segments": entries}
    column_of = {key: column for column, key in columns.items()}
    with (
        Table(raw, "segments", lines, lambda _, key: column_of.get(key, key)).told(source),
        Table(raw, "gpus", [line for _, line in listed], lambda *_: "kind").told(source),
    ):
        deployment = DEPLOYMENT.part(raw, "", findings, demand=demand)
        findings.check()
        return deployment


def _rows(text: str, findings: Findings, known: list[str], needed: list[str]) -> list[tuple[int, dict[str, str]]]:
    """Return the rows of a table with only known columns."""

    def check(header: list[str], where: str, findings: Findings) -> bool:
        advice = dict.fromkeys(needed, f"; the columns are {','.join(known)}")
        return check_columns(header, where, findings, known, advice) and set(header) <= set(known)

    return read_rows(text, findings, check, example=",".join(known), what="segment")


def import_deployment(path: str | Path, gpu: str | None, *, demand: Demand | None = None) -> Deployment:
    """Read a deployment in the CSV layout in which those of ParvaGPU were published.

    The columns are ``Num instance`` (the server), ``Num GPU`` (in the server), ``Model``, ``Placement`` (start slice),
    ``Instance size`` (compute slices), ``Batch size`` and ``Num proc``. The services are called like the models. GPUs
    are numbered by server and number, without those that have no segment.

    Parameters
    ----------
    path : str or Path
        The file.
    gpu : str
        Name or alias of the GPUs.
    demand : Demand, optional
        Whose profile tables have throughput and latency of the segments. Where they are not known, they are 0.

    Returns
    -------
    Deployment
        Segments in the order of the file.

    Raises
    ------
    InputError
        With every problem of the file.
    """
    findings = Findings(str(path))
    model = gpu_of_table(gpu, findings, example="A100-80GB")
    rows = _rows(read_text(path), findings, _COLUMNS, _COLUMNS)
    read = [_numbers(cells, f"line {line}", model, findings) for line, cells in rows]
    findings.check()
    assert model is not None
    gpus = sorted({(numbers["server"], numbers["gpu"]) for numbers in read})
    segments = []
    for numbers, (_, cells) in zip(read, rows, strict=True):
        profile = smallest_profile(model, numbers["size"], None)
        assert profile is not None
        place = {"gpu": gpus.index((numbers["server"], numbers["gpu"])), "profile": profile.name}
        way = {key: numbers[key] for key in ("start", "batch", "processes")}
        segments.append({"service": cells["Model"], **place, **way})
    raw = {"schema": "mig-opt/deployment/1", "gpus": [model.name] * len(gpus), "segments": segments}
    return DEPLOYMENT.from_json(raw, demand=demand)


def _numbers(cells: dict[str, str], where: str, model: GpuModel | None, findings: Findings) -> dict[str, Any]:
    numbers = {key: number_in(cells[column]) for key, column in _NUMBERS.items()}
    if not cells["Model"]:
        findings.add(f"{where}, Model", "must not be empty")
    for key, column in _NUMBERS.items():
        number = numbers[key]
        if not isinstance(number, int) or number < 0:
            findings.add(f"{where}, {column}", f"must be a whole number from 0 on, is {shown(cells[column])}")
        elif key == "size" and model:
            findings.extend(wrong_size(f"{where}, {column}", model, number))
    return numbers


def _cells(deployment: Deployment) -> tuple[Iterable[str], Iterable[list[object]]]:
    """Return the table of a deployment for spreadsheets, one segment on each row, by GPU and start slice.

    A GPU without segments has a row with its number and kind only.
    """
    check_deployments(deployment=deployment)
    lost = (f"segments[{at}].service" for at, s in enumerate(deployment.segments) if s.service != s.service.strip())
    raise_any(Problem(path, "a CSV file loses the space around it; write a JSON file") for path in lost)
    ways: dict[int, list[list[object]]] = {gpu: [] for gpu in range(len(deployment.gpus))}
    for s in sorted(deployment.segments, key=lambda segment: segment.start):
        figures = (getattr(s, figure) or "" for figure in _FIGURES)
        ways[s.gpu].append([s.service, s.profile, s.start, s.batch, s.processes, *figures])
    nothing = [[""] * (len(_TABLE) - 2)]
    rows = ([gpu, deployment.gpus[gpu], *way] for gpu, own in ways.items() for way in own or nothing)
    return _TABLE, rows


def _shaped(deployment: Deployment) -> Deployment:
    check_deployments(deployment=deployment)
    return deployment


class _DeploymentKind(FileKind[Deployment]):
    """Deployments, of which there are tables in two layouts.

    The profile tables of a ``demand`` have throughput and latency of segments that a document leaves without; where
    they are not known either, they are 0. Whether a deployment is right for a demand is the question of the validator:
    here, segments may overlap, or be where no instance can be.
    """

    def read(self, path: str | Path, *, gpu: str | None = None, **given: Any) -> Deployment:
        """Return the deployment in a file: JSON, or a CSV table of our own layout or that of :func:`import_deployment`.

        ``gpu`` is the name or alias of the GPUs, for a CSV file that does not say it.
        """
        path = file_path(path)
        text = read_text(path)
        if path.suffix.lower() != ".csv":
            return self.from_json(text, source=str(path), **given)
        if not _TABLE.keys().isdisjoint(columns_of(text)):
            return _from_table(text, gpu, str(path), **given)
        return import_deployment(path, gpu, **given)


DEPLOYMENT = _DeploymentKind(
    "deployment",
    Deployment,
    {
        Deployment: {"gpus": ["A100-80GB"], "segments": []},
        Segment: {"service": "chat", **INSTANCE, "batch": 8, "processes": 2},
    },
    hints={"gpus": Annotated[tuple[GpuName, ...], Field(description="The kind of each GPU.")]},
    options=("demand",),
    build=_deployment,
    shaped=_shaped,
    cells=_cells,
    in_results="deployment-result",
)
