"""Tables of operation costs as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from mig_opt.files.kinds import FileKind, check_catalogued
from mig_opt.files.shapes import WORDS, GpuName, Words
from mig_opt.files.values import Findings, Raw, encoded, gpu_of, in_place, read_keys, read_object
from mig_opt.gpu.catalogue import operation_problems
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
read_costs, write_costs = COSTS.read, COSTS.write
costs_from_json, costs_to_json = COSTS.from_json, COSTS.to_json
