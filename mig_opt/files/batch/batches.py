"""Batches as JSON and CSV."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from mig_opt.batch.batch import Batch, Task, batch_problems
from mig_opt.errors import Problem
from mig_opt.files.documents import Document, read_table_or_json, rendered, write_text
from mig_opt.files.reading import (
    Findings,
    Raw,
    encoded,
    fleet_head,
    gpu_of,
    read_document,
    read_fleet,
    read_object,
)
from mig_opt.files.shapes import BatchFile
from mig_opt.files.tables import (
    check_columns,
    check_times,
    gpu_of_table,
    number,
    read_rows,
    time_column,
    times_in,
    told_by_row,
)
from mig_opt.gpu.model import GpuModel

_KNOWN_WITHOUT_GPU = r"tasks|gpus|tasks\[\d+\]\.name|initial\[\d+\]\.(gpu|free)"
"""Paths of the problems of a batch that do not depend on the kind of GPU."""


def read_batch(path: str | Path, gpu: str | None = None) -> Batch:
    """Read a batch from a JSON file, or from a CSV file if its name ends in ``.csv``.

    A CSV file has the columns ``task``, ``t<k>_s`` (seconds on ``k`` compute slices) for any sizes of the GPU, and
    optionally ``memory_gb``, in any order. A blank time means that the task cannot run there.

    Parameters
    ----------
    path : str or Path
        The file. Its name without the ending becomes the name of the batch.
    gpu : str, optional
        Name or alias of the GPU; in place of the one that a JSON file names. A CSV file needs it.

    Returns
    -------
    Batch
        The batch.

    Raises
    ------
    InputError
        With every problem of the file.
    """
    return read_table_or_json(path, _batch_from_csv, batch_from_json, gpu=gpu)


def batch_from_json(document: Document, *, gpu: str | None = None, name: str = "", source: str = "") -> Batch:
    """Return the batch that a JSON document describes.

    Parameters
    ----------
    document : str, bytes or mapping
        JSON text, or the object that it stands for.
    gpu : str, optional
        Name or alias of the GPU, in place of the one in the document.
    name : str
        Name of the batch, for display.
    source : str
        Where the document is from, for messages.

    Raises
    ------
    InputError
        With every problem of the document.

    Examples
    --------
    >>> batch = batch_from_json(
    ...     '{"schema": "mig-opt/batch/1", "gpu": "A30", "tasks": [{"name": "lu", "times": {"1": 4, "2": 2.5}}]}'
    ... )
    >>> batch.gpu.name, batch.tasks
    ('A30-24GB', (Task(name='lu', times={1: 4.0, 2: 2.5}, memory_gb=None),))
    """
    raw, findings = read_document(document, "batch", source, gpu=gpu)
    return _batch(raw, gpu_of(raw, findings), name, findings)


def _batch(raw: Raw, model: GpuModel | None, name: str, findings: Findings) -> Batch:
    def task(entry: object, path: str, findings: Findings) -> Task | None:
        # Stand-ins must not cause problems of their own: a name that no other task has, a size that exists.
        stand_ins = {"name": f"\0{path}", "times": {str(model.sizes[0] if model else 1): 1.0}}
        return read_object(Task, entry, path, findings, stand_ins)

    values = read_fleet(
        BatchFile, raw, model, findings, _problems, known_without_gpu=_KNOWN_WITHOUT_GPU, readers={"tasks": task}
    )
    return Batch(**values, name=name)


def _problems(gpu: GpuModel, values: dict[str, Any]) -> list[Problem]:
    return batch_problems(gpu, values["gpus"], values["tasks"], values["operations"], values["initial"])


def _batch_from_csv(text: str, *, gpu: str | None, name: str, source: str) -> Batch:
    findings = Findings(source)
    model = gpu_of_table(gpu, findings)
    rows = read_rows(text, findings, partial(_check_header, gpu=model), example="task,t1_s,...", what="task")
    raw = {"schema": "mig-opt/batch/1", "gpu": gpu, "tasks": [_entry(cells, model) for _, cells in rows]}
    lines = [line for line, _ in rows]
    with told_by_row(source, "tasks", lines, lambda _, key: "task" if key == "name" else time_column(key)):
        return _batch(raw, model, name, findings)


def _check_header(header: list[str], where: str, findings: Findings, *, gpu: GpuModel | None) -> bool:
    times, known = check_times(header, where, findings, gpu)
    if not times:
        findings.add(where, "has no column with times; add t1_s, t2_s, ... with seconds")
    needed = {"task": "; add one with the names of the tasks"}
    return check_columns(header, where, findings, ["task", *known, "memory_gb", *times], needed) and bool(times)


def _entry(cells: dict[str, str], gpu: GpuModel | None) -> Raw:
    task: Raw = {"name": cells["task"], "times": times_in(cells, gpu)}
    if cells.get("memory_gb"):
        task["memory_gb"] = number(cells["memory_gb"])
    return task


def batch_to_json(batch: Batch) -> str:
    """Return a batch as JSON text, one task on each line.

    Optional keys are left out where they have their default. The name of the batch is not part of the text: it is the
    name of the file.

    Raises
    ------
    InputError
        If the GPU is not the catalogue's, so that its name does not say what it is.

    Examples
    --------
    >>> from mig_opt import Batch, Task, get_gpu
    >>> print(batch_to_json(Batch((Task("lu", {1: 4.0, 2: 2.5}),), get_gpu("A30"))), end="")
    {
      "schema": "mig-opt/batch/1",
      "gpu": "A30-24GB",
      "tasks": [
        {"name": "lu", "times": {"1": 4.0, "2": 2.5}}
      ]
    }
    """
    document = fleet_head("batch", batch.gpu, batch.gpus)
    document["tasks"] = [encoded(task) for task in batch.tasks]
    if batch.operations != batch.gpu.operation_costs:
        document["operations"] = encoded(batch.operations)
    if batch.initial:
        document["initial"] = [encoded(live) for live in batch.initial]
    if batch.parallel_operations:
        document["parallel_operations"] = True
    return rendered(document)


def write_batch(batch: Batch, path: str | Path) -> None:
    """Write a batch to a JSON file; an existing file is replaced only when all is written.

    Parameters
    ----------
    batch : Batch
        The batch.
    path : str or Path
        The file.

    Raises
    ------
    InputError
        If the file cannot be written, or see :func:`batch_to_json`.
    """
    write_text(path, batch_to_json(batch))
