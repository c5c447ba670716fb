"""Batches as JSON and CSV."""

from __future__ import annotations

from functools import partial

from mig_opt.batch.batch import Batch, LiveInstance, Task
from mig_opt.batch.problems import NO_COUNT, NO_GPU
from mig_opt.files.documents import shown
from mig_opt.files.kinds import OPERATIONS, POOL, FileKind, Table, pools_document
from mig_opt.files.tables import (
    check_columns,
    check_times,
    entries_of_rows,
    gpu_of_table,
    names_gpus,
    read_rows,
    time_column,
    times_in,
)
from mig_opt.files.values import Findings, Raw, read_value
from mig_opt.gpu.catalogue import Gpu
from mig_opt.gpu.devices import Device
from mig_opt.gpu.model import GpuModel, OperationCosts
from mig_opt.gpu.pools import Pool

TIMES = {"1": 4.0, "2": 2.5}
INSTANCE = {"gpu": 0, "profile": "2g.10gb", "start": 0}
COSTS = {"create": {"1": 0.1, "2": 0.1, "4": 0.1}, "destroy": {"1": 0.1, "2": 0.1, "4": 0.1}}
_TASK = {"name": "lu", "times": TIMES}
_KEYS = "gpu gpus pools tasks operations initial devices parallel_operations source spread"
_WHOLE = {
    "oneOf": [
        {"required": ["gpu"], "properties": {"gpu": {"type": ["string", "object"]}}},
        {"required": ["pools"], "properties": {"pools": {"type": "array", "minItems": 1}, "gpu": {"type": "null"}}},
    ]
}


def _table(text: str, findings: Findings, *, gpu: str | None = None, **_: object) -> Table:
    by_kind = names_gpus(text)
    model = None if by_kind and gpu is None else gpu_of_table(gpu, findings)
    rows = read_rows(text, findings, partial(_check_header, gpu=model), example="task,t1_s,...", what="task")
    tasks = entries_of_rows((cells for _, cells in rows), {"task": "name", "memory_gb": "memory_gb"}, Task)
    for entry, (_line, cells) in zip(tasks, rows, strict=True):
        entry["times"] = times_in(cells, model)
    lines = [line for line, _ in rows]
    raw: Raw = {"tasks": tasks}
    if by_kind:
        raw, lines = _merged(tasks, rows, findings, only=model)
    return Table(raw, "tasks", lines, lambda _, key: "task" if key == "name" else time_column(key))


def _merged(
    tasks: list[Raw], rows: list[tuple[int, dict[str, str]]], findings: Findings, *, only: GpuModel | None
) -> tuple[Raw, list[int]]:
    """Return a document with one task for all rows of its name, each of which has the times on one kind of GPU.

    There is one GPU of each kind, or as many as are given of the only one that counts.
    """
    merged: dict[str, Raw] = {}
    lines: list[int] = []
    kinds: dict[str, None] = {}
    for entry, (line, cells) in zip(tasks, rows, strict=True):
        model = read_value(Gpu, cells["gpu"], f"line {line}, gpu", findings)
        if model is None or only not in (None, model):
            continue
        kinds[model.name] = None
        if entry["name"] not in merged:
            merged[entry["name"]] = {**entry, "times": {}}
            lines.append(line)
        known = merged[entry["name"]]
        if model.name in known["times"]:
            findings.add(f"line {line}", f"task {entry['name']!r} has its times on {model.name} already; keep one row")
        if entry.get("memory_gb") != known.get("memory_gb"):
            findings.add(f"line {line}, memory_gb", "differs from that of the task's first row; give the same")
        known["times"][model.name] = entry["times"]
    findings.check()
    raw: Raw = {"tasks": list(merged.values())}
    return raw if only else {**raw, "pools": [{"gpu": name, "count": 1} for name in kinds], "gpu": None}, lines


def _check_header(header: list[str], where: str, findings: Findings, *, gpu: GpuModel | None) -> bool:
    others, times = check_times(header, where, findings, gpu)
    known = ["task", "gpu", *times, "memory_gb"]
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


def _prepared(raw: Raw, path: str, findings: Findings, *, gpu: str | None = None, **_: object) -> Raw:
    if gpu is not None:
        raw = {**raw, "gpu": gpu}
    if raw.get("gpu") is None and not raw.get("pools"):
        findings.add(f"{path}.gpu" if path else "gpu", NO_GPU)
    pools = raw.get("pools")
    for index, pool in enumerate(pools if isinstance(pools, list) else ()):
        if isinstance(pool, dict) and pool.get("count") is None:
            findings.add(f"{path}.pools[{index}].count" if path else f"pools[{index}].count", NO_COUNT)
    return raw


BATCH: FileKind[Batch] = FileKind(
    "batch",
    Batch,
    {
        Batch: {"gpu": "A100-40GB", "tasks": [_TASK]},
        Task: _TASK,
        LiveInstance: INSTANCE,
        Device: {"index": 3},
        OperationCosts: COSTS,
        Pool: POOL,
    },
    tuple(_KEYS.split()),
    OPERATIONS,
    whole=_WHOLE,
    options=("gpu",),
    prepare=_prepared,
    finish=pools_document,
    table=_table,
    named=True,
)
