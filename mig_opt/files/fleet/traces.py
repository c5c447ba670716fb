"""Traces as JSON and CSV."""

from __future__ import annotations

import re
from pathlib import Path

from mig_opt.batch.batch import operation_problems
from mig_opt.files.documents import Document, read_table_or_json, rendered, write_text
from mig_opt.files.fleet.tables import read_jobs, rows_of
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
from mig_opt.files.rows import gpu_of_table, told_by_row
from mig_opt.fleet.trace import PCIE_LIMIT, Job, Trace, trace_problems
from mig_opt.gpu.model import GpuModel, catalogue

_KNOWN_WITHOUT_GPU = re.compile(r"jobs|jobs\[\d+\]\.name")
"""Paths of the problems of a trace that do not depend on the kind of GPU."""


def read_trace(path: str | Path, gpu: str | None = None, gpus: int | None = None) -> Trace:
    """Read a trace from a JSON file, or from a CSV file if its name ends in ``.csv``.

    A CSV file has the columns ``job`` and ``arrival_s``, and ``t<k>_s`` (seconds on ``k`` compute slices) for any sizes
    of the GPU or ``work_s`` (seconds on the profile that the job asks for), and optionally ``profile``, ``memory_gb``,
    ``pcie_gbps`` and ``sensitivity``, in any order. A blank cell means that there is no such figure.

    Parameters
    ----------
    path : str or Path
        The file. Its name without the ending becomes the name of the trace.
    gpu : str, optional
        Name or alias of the GPU; in place of the one that a JSON file names. A CSV file needs it.
    gpus : int, optional
        How many GPUs; in place of what a JSON file says. By default a CSV file is for one.

    Raises
    ------
    InputError
        With every problem of the file.
    """
    return read_table_or_json(path, trace_from_csv, trace_from_json, gpu=gpu, gpus=gpus)


def trace_from_json(
    document: Document, *, gpu: str | None = None, gpus: int | None = None, name: str = "", source: str = ""
) -> Trace:
    """Return the trace that a JSON document describes.

    Parameters
    ----------
    document : str, bytes or mapping
        JSON text, or the object that it stands for.
    gpu : str, optional
        Name or alias of the GPU, in place of the one in the document.
    gpus : int, optional
        How many GPUs, in place of what the document says.
    name : str
        Name of the trace, for display.
    source : str
        Where the document is from, for messages.

    Raises
    ------
    InputError
        With every problem of the document.

    Examples
    --------
    >>> trace = trace_from_json(
    ...     '{"schema": "mig-opt/trace/1", "gpu": "A30", "jobs": [{"name": "lu", "arrival": 3, "times": {"1": 4}}]}'
    ... )
    >>> trace.gpu.name, trace.jobs[0].arrival
    ('A30-24GB', 3.0)
    """
    raw, findings = read_document(document, source)
    raw = in_place(raw, gpu=gpu, gpus=gpus)
    check_keys(raw, "trace", findings)
    return _trace(raw, read_gpu(raw, findings), name, findings)


def _trace(raw: Raw, model: GpuModel | None, name: str, findings: Findings) -> Trace:
    sizes = model.sizes if model else (1,)
    times = {str(size): 1.0 for size in sizes}
    # Stand-ins must not cause problems of their own: sizes that exist, a name that no other job has.
    jobs = read_list(
        Job, raw, "jobs", findings, stand_ins=lambda index: {"name": f"\0{index}", "arrival": 0.0, "times": times}
    )
    operations = read_operations(raw, model, findings)
    gpus = read_gpus(raw, findings)
    limit = read_value(float, raw, "pcie_limit", findings) if "pcie_limit" in raw else PCIE_LIMIT
    if limit is not None and not 0 < limit < float("inf"):
        findings.add("pcie_limit", f"must be a finite number of GB/s > 0, is {limit}")
    stand_in = model or catalogue()[0]
    # An entry that is not there and one that cannot be read have been reported; an empty list has not.
    more = trace_problems(stand_in, jobs if raw.get("jobs") == [] else jobs or [None])
    findings.extend(problem for problem in more if model or _KNOWN_WITHOUT_GPU.fullmatch(problem.path))
    if model and operations:
        findings.extend(operation_problems(model, operations))
    findings.check()
    assert model is not None
    assert gpus is not None
    return Trace(
        tuple(job for job in jobs if job),
        model,
        gpus,
        operations or model.operation_costs,
        pcie_limit=limit,
        name=name,
    )


def trace_from_csv(
    text: str, *, gpu: str | None = None, gpus: int | None = None, name: str = "", source: str = ""
) -> Trace:
    r"""Return the trace that a CSV table describes; see :func:`read_trace`.

    Raises
    ------
    InputError
        With every problem of the table, each with its line and column.

    Examples
    --------
    >>> trace_from_csv("job,arrival_s,profile,work_s\nlu,3,2g.12gb,4\n", gpu="A30").jobs[0].times
    {2: 4.0}
    """
    findings = Findings(source)
    raw = in_place(gpu_of_table(gpu, findings), gpus=gpus)
    model = read_gpu(raw, findings)
    rows = read_jobs(text, model, findings)
    raw["jobs"] = rows.entries
    with told_by_row(source, rows.translated):
        return _trace(raw, model, name, findings)


def trace_to_json(trace: Trace) -> str:
    """Return a trace as JSON text, one job on each line.

    Optional keys are left out where they have their default. The name of the trace is not part of the text: it is the
    name of the file.

    Raises
    ------
    InputError
        If the GPU is not the catalogue's, so that its name does not say what it is.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> print(trace_to_json(Trace((Job("lu", 3.0, {1: 4.0}),), get_gpu("A30"))), end="")
    {
      "schema": "mig-opt/trace/1",
      "gpu": "A30-24GB",
      "jobs": [
        {"name": "lu", "arrival": 3.0, "times": {"1": 4.0}}
      ]
    }
    """
    document = fleet_head("trace", trace.gpu, trace.gpus)
    document["jobs"] = [encoded(job) for job in trace.jobs]
    if trace.operations != trace.gpu.operation_costs:
        document["operations"] = encoded(trace.operations)
    if trace.pcie_limit != PCIE_LIMIT:
        document["pcie_limit"] = trace.pcie_limit
    return rendered(document)


def trace_to_csv(trace: Trace) -> str:
    """Return the jobs of a trace as a CSV table; it says nothing of the fleet.

    Raises
    ------
    InputError
        If the memory of a job grows, which a row cannot say.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> print(trace_to_csv(Trace((Job("lu", 3.0, {1: 4.0, 2: 2.5}),), get_gpu("A30"))), end="")
    job,arrival_s,t1_s,t2_s
    lu,3.0,4.0,2.5
    """
    return rows_of(trace.jobs)


def write_trace(trace: Trace, path: str | Path) -> None:
    """Write a trace to a JSON file, or its jobs to a CSV file if the name ends in ``.csv``.

    An existing file is replaced only when all is written.

    Raises
    ------
    InputError
        If the file cannot be written, or see :func:`trace_to_json` and :func:`trace_to_csv`.
    """
    to_text = trace_to_csv if Path(path).suffix.lower() == ".csv" else trace_to_json
    write_text(path, to_text(trace))
