"""Batches as JSON and CSV."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field

from mig_opt.batch.batch import Batch, LiveInstance, Task, batch_problems, spread_problems
from mig_opt.errors import Problem
from mig_opt.files.documents import shown
from mig_opt.files.kinds import FileKind, Table, encoded_fleet, encoded_operations, read_fleet
from mig_opt.files.shapes import (
    ABOVE_0,
    FROM_0,
    INSTANCE,
    NAME,
    PLACED,
    SIZE,
    TIMES,
    WORDS,
    GpuCount,
    GpuName,
    NotEmpty,
    Words,
    by_size,
)
from mig_opt.files.tables import check_columns, check_times, gpu_of_table, number, read_rows, time_column, times_in
from mig_opt.files.values import Findings, Raw, encoded, gpu_of, in_place, read_object
from mig_opt.gpu.devices import Device, device_problems
from mig_opt.gpu.model import GpuModel, OperationCosts

_SPREAD: dict[str, Any] = {
    "type": "object",
    "patternProperties": {SIZE: {"type": "number", **FROM_0}},
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class BatchFile:
    """Tasks to be run on identical MIG GPUs so that the last one ends as early as possible."""

    schema: Literal["mig-opt/batch/1"]
    gpu: GpuName
    tasks: Annotated[tuple[Task, ...], NotEmpty]
    gpus: GpuCount = 1
    operations: OperationCosts | None = None
    initial: tuple[LiveInstance, ...] = ()
    parallel_operations: bool = False
    source: str = ""
    spread: Annotated[Mapping[str, Mapping[int, float]], Field(json_schema_extra={"additionalProperties": _SPREAD})] = (
        field(default_factory=dict)
    )
    devices: tuple[Device, ...] = ()


_TASK = {"name": "lu", "times": TIMES}
WORDS[BatchFile] = Words({"schema": "mig-opt/batch/1", "gpu": "A100-40GB", "tasks": [_TASK]}, described_by=Batch)
WORDS[Task] = Words(_TASK, {"name": NAME, "times": by_size(ABOVE_0), "memory_gb": ABOVE_0})
WORDS[LiveInstance] = Words(INSTANCE, {**PLACED, "free": FROM_0})

_KNOWN_WITHOUT_GPU = r"tasks|gpus|tasks\[\d+\]\.name|initial\[\d+\]\.(gpu|free)|devices.*"
"""Paths of the problems of a batch that do not depend on the kind of GPU."""


def _batch(raw: Raw, _: str, findings: Findings, *, gpu: str | None = None, name: str = "") -> Batch:
    raw = in_place(raw, gpu=gpu)
    model = gpu_of(raw, findings)

    def task(entry: object, path: str, findings: Findings) -> Task | None:
        # Stand-ins must not cause problems of their own: a name that no other task has, a size that exists.
        stand_ins = {"name": f"\0{path}", "times": {str(model.sizes[0] if model else 1): 1.0}}
        return read_object(Task, entry, path, findings, stand_ins)

    values = read_fleet(
        BatchFile, raw, findings, model, _problems, known_without_gpu=_KNOWN_WITHOUT_GPU, readers={"tasks": task}
    )
    return Batch(**values, name=name)


def _problems(gpu: GpuModel, values: dict[str, Any]) -> list[Problem]:
    found = batch_problems(gpu, values["gpus"], values["tasks"], values["operations"], values["initial"])
    found += device_problems(values["devices"], values["gpus"])
    spread = values["spread"]
    return [*found, *spread_problems(spread if isinstance(spread, dict) else {})]  # what cannot be read is reported


def _table(text: str, findings: Findings, *, gpu: str | None = None, **_: object) -> Table:
    model = gpu_of_table(gpu, findings)
    rows = read_rows(text, findings, partial(_check_header, gpu=model), example="task,t1_s,...", what="task")
    tasks = [_entry(cells, model) for _, cells in rows]
    lines = [line for line, _ in rows]
    return Table({"tasks": tasks}, "tasks", lines, lambda _, key: "task" if key == "name" else time_column(key))


def _check_header(header: list[str], where: str, findings: Findings, *, gpu: GpuModel | None) -> bool:
    others, times = check_times(header, where, findings, gpu)
    known = ["task", *times, "memory_gb"]
    perhaps = f" (perhaps {shown(header[0])})" if header[0] not in known else ""
    needed = {"task": f"; give this name to the one with the names of the tasks{perhaps}"}
    complete = check_columns(others, where, findings, known, needed)
    if others == header:
        findings.add(
            where,
            "has no column with times; a row is a task, with its seconds on 1, 2, ... compute slices in columns t1_s, "
            "t2_s, ...",
        )
    return complete and others != header


def _entry(cells: dict[str, str], gpu: GpuModel | None) -> Raw:
    task: Raw = {"name": cells["task"], "times": times_in(cells, gpu)}
    if cells.get("memory_gb"):
        task["memory_gb"] = number(cells["memory_gb"])
    return task


def _encoded(batch: Batch) -> Raw:
    document = encoded_fleet(batch, "tasks") | encoded_operations(batch)
    if batch.initial:
        document["initial"] = [encoded(live) for live in batch.initial]
    if batch.devices:
        document["devices"] = [encoded(device) for device in batch.devices]
    if batch.parallel_operations:
        document["parallel_operations"] = True
    if batch.source:
        document["source"] = batch.source
    if batch.spread:
        tables = batch.spread.items()
        document["spread"] = {name: {str(size): found for size, found in each.items()} for name, each in tables}
    return document


BATCH = FileKind("batch", _batch, _encoded, _table, named=True)
read_batch, write_batch = BATCH.read, BATCH.write
batch_from_json, batch_to_json = BATCH.from_json, BATCH.to_json
