"""Tables of operation costs as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mig_opt.files.kinds import FileKind, check_catalogued
from mig_opt.files.shapes import WORDS, GpuName, Words
from mig_opt.files.values import Findings, Raw, encoded, gpu_of, in_place, read_keys, read_object
from mig_opt.gpu.costs import operation_problems
from mig_opt.gpu.model import GpuModel, OperationCosts


@dataclass(frozen=True, slots=True)
class CostsFile:
    """Seconds that creations and destructions of instances take, by number of compute slices."""

    schema: Literal["mig-opt/costs/1"]
    gpu: GpuName
    create: Mapping[int, float]
    destroy: Mapping[int, float]
    source: str = ""
    assumed: bool = False


_TABLES = ("create", "destroy")
WORDS[CostsFile] = Words(
    {"schema": "mig-opt/costs/1", "gpu": "A30-24GB", **WORDS[OperationCosts].example},
    WORDS[OperationCosts].keys,
    described_by=OperationCosts,
)


def read_costs(path: str | Path, gpu: str | None = None) -> OperationCosts:
    """Read a table of operation costs from a JSON file.

    Parameters
    ----------
    path : str or Path
        The file.
    gpu : str, optional
        Name or alias of the GPU that the table is to be for; in place of the one that the file names.

    Returns
    -------
    OperationCosts
        The costs.

    Raises
    ------
    InputError
        With every problem of the file, and with the sizes of the GPU that it lacks.
    """
    return COSTS.read(path, gpu=gpu)


def write_costs(costs: OperationCosts, path: str | Path, gpu: GpuModel) -> None:
    """Write a table of operation costs to a JSON file; an existing file is replaced only when all is written.

    Parameters
    ----------
    costs : OperationCosts
        The costs.
    path : str or Path
        The file.
    gpu : GpuModel
        The kind of GPU that they are for.

    Raises
    ------
    InputError
        If the file cannot be written, or if the GPU is not the catalogue's, so that its name does not say what it is.
    """
    COSTS.write(costs, path, gpu=gpu)


def _costs(raw: Raw, path: str, findings: Findings, *, gpu: str | None = None) -> OperationCosts:
    raw = in_place(raw, gpu=gpu)
    model = gpu_of(raw, findings)
    values = read_keys(CostsFile, raw, findings, path, skip=("gpu", *_TABLES))
    stand_ins = encoded(model.operation_costs) if model else {kind: {} for kind in _TABLES}
    tables = {kind: raw[kind] for kind in _TABLES if kind in raw}
    costs = read_object(OperationCosts, tables, path, findings, stand_ins)
    if model and costs:
        findings.extend(operation_problems(model, costs, path))
    findings.check()
    assert costs is not None
    return dataclasses.replace(costs, source=values["source"], assumed=values["assumed"])


def _encoded(costs: OperationCosts, *, gpu: GpuModel) -> Raw:
    check_catalogued(gpu=gpu)
    return {"gpu": gpu.name, **encoded(costs)}


COSTS = FileKind("costs", _costs, _encoded)
costs_from_json, costs_to_json = COSTS.from_json, COSTS.to_json
