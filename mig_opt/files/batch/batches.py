"""Batches as JSON and CSV."""

from __future__ import annotations

from functools import partial

from mig_opt.batch.batch import Batch, LiveInstance, Task
from mig_opt.files.documents import shown
from mig_opt.files.kinds import GPUS_OR_POOLS, INSTANCE, OPERATIONS, POOL, FileKind, pools_document, with_gpus
from mig_opt.files.tables import (
    Table,
    check_columns,
    check_times,
    columns_of,
    entries_of_rows,
    gpu_of_table,
    merged_by_kind,
    read_rows,
    time_column,
    times_in,
)
from mig_opt.files.values import Findings, Raw
from mig_opt.gpu.devices import Device
from mig_opt.gpu.model import GpuModel
from mig_opt.gpu.pools import Pool

TIMES = {"1": 4.0, "2": 2.5}
_TASK = {"name": "lu", "times": TIMES}
_KEYS = "gpu gpus pools tasks operations initial devices parallel_operations source spread"


def _table(text: str, findings: Findings, *, gpu: str | None = None, **_: object) -> Table:
    by_kind = "gpu" in columns_of(text)
    model = None if by_kind and gpu is None else gpu_of_table(gpu, findings)
    one = None if by_kind else model  # the kind of which all times are
    rows = read_rows(text, findings, partial(_check_header, gpu=one), example="task,t1_s,...", what="task")
    tasks = entries_of_rows((cells for _, cells in rows), {"task": "name", "memory_gb": "memory_gb"}, Task)
    for entry, (_line, cells) in zip(tasks, rows, strict=True):
        entry["times"] = times_in(cells, one)
    lines = [line for line, _ in rows]
    raw: Raw = {"tasks": tasks}
    kinds: dict[tuple[int, str], int] = {}
    if by_kind:
        raw, lines, kinds = merged_by_kind("tasks", tasks, rows, findings, only=model)
    return Table(raw, "tasks", lines, lambda _, key: "task" if key == "name" else time_column(key), kinds)


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


BATCH: FileKind[Batch] = FileKind(
    "batch",
    Batch,
    {
        Batch: {"gpu": "A100-40GB", "tasks": [_TASK]},
        Task: _TASK,
        LiveInstance: INSTANCE,
        Device: {"index": 3},
        Pool: POOL,
    },
    tuple(_KEYS.split()),
    OPERATIONS,
    whole=GPUS_OR_POOLS,
    options=("gpu",),
    prepare=with_gpus,
    finish=pools_document,
    table=_table,
    named=True,
)
