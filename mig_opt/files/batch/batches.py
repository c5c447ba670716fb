"""Batches as JSON and CSV."""

from __future__ import annotations

import re
from pathlib import Path

from mig_opt.arguments import MOST_GPUS
from mig_opt.batch.batch import Batch, LiveInstance, Task, batch_problems
from mig_opt.files.batch.tables import read_tasks
from mig_opt.files.documents import Document, read_table_or_json, rendered, write_text
from mig_opt.files.parts import (
    Findings,
    Raw,
    check_keys,
    encoded,
    fleet_head,
    in_place,
    read_document,
    read_gpu,
    read_gpus,
    read_list,
    read_operations,
    read_value,
)
from mig_opt.files.rows import gpu_of_table, row_problem, time_column, told_by_row
from mig_opt.gpu.model import GpuModel, catalogue

_KNOWN_WITHOUT_GPU = re.compile(r"tasks|gpus|tasks\[\d+\]\.name|initial\[\d+\]\.(gpu|free)")
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
    raw, findings = read_document(document, source)
    raw = in_place(raw, gpu=gpu)
    check_keys(raw, "batch", findings)
    return _batch(raw, read_gpu(raw, findings), name, findings)


def _batch(raw: Raw, model: GpuModel | None, name: str, findings: Findings) -> Batch:
    size = str(model.sizes[0]) if model else "1"
    times = {size: 1.0}
    # Stand-ins must not cause problems of their own: a size that exists, a name that no other task has.
    tasks = read_list(Task, raw, "tasks", findings, stand_ins=lambda index: {"name": f"\0{index}", "times": times})
    initial = read_list(LiveInstance, raw, "initial", findings)
    operations = read_operations(raw, model, findings)
    gpus = read_gpus(raw, findings)
    parallel = bool(read_value(bool, raw, "parallel_operations", findings))
    stand_in = model or catalogue()[0]
    more = batch_problems(
        stand_in,
        MOST_GPUS if gpus is None else gpus,
        # An entry that is not there and one that cannot be read have been reported; an empty list has not.
        tasks if raw.get("tasks") == [] else tasks or [None],
        operations or stand_in.operation_costs,
        initial,
    )
    findings.extend(problem for problem in more if model or _KNOWN_WITHOUT_GPU.fullmatch(problem.path))
    findings.check()
    assert model is not None
    assert gpus is not None
    return Batch(
        tuple(task for task in tasks if task),
        model,
        gpus=gpus,
        operations=operations or model.operation_costs,
        initial=tuple(live for live in initial if live),
        parallel_operations=parallel,
        name=name,
    )


def _batch_from_csv(text: str, *, gpu: str | None, name: str, source: str) -> Batch:
    findings = Findings(source)
    raw = gpu_of_table(gpu, findings)
    model = read_gpu(raw, findings)
    raw["tasks"], lines = read_tasks(text, model, findings)
    with told_by_row(source, lambda problem: row_problem(problem, "tasks", lines, _column)):
        return _batch(raw, model, name, findings)


def _column(_: int, key: str) -> str:
    return "task" if key == "name" else time_column(key)


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

    Raises
    ------
    InputError
        If the file cannot be written, or see :func:`batch_to_json`.
    """
    write_text(path, batch_to_json(batch))
