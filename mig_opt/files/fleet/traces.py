"""Traces as JSON and CSV, and logs of their simulation: one JSON object on each line."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mig_opt.errors import Problem, raise_any
from mig_opt.files.batch.batches import TIMES
from mig_opt.files.documents import file_path, write_text
from mig_opt.files.kinds import GPUS_OR_POOLS, OPERATIONS, POOL, FileKind, pools_document, with_gpus
from mig_opt.files.tables import (
    Table,
    check_columns,
    check_times,
    columns_of,
    entries_of_rows,
    gpu_of_table,
    merged_by_kind,
    number,
    read_rows,
    time_column,
    times_in,
)
from mig_opt.files.values import Findings, Raw
from mig_opt.fleet.job import Job
from mig_opt.fleet.trace import Outage, Trace
from mig_opt.gpu.catalogue import known_gpu
from mig_opt.gpu.model import GpuModel
from mig_opt.gpu.pools import Pool

if TYPE_CHECKING:
    from mig_opt.simulation.fleet.simulator import Simulation


_WORK = "work_s"
_DECLARED = "declared_s"
_FIGURES = {"memory_gb": None, "pcie_gbps": 0.0, "sensitivity": 0.0, "energy_j": None, "sms": None}
_FIGURES |= {"weight": 1.0, "due": None}
"""Optional figures of a job, with the values that a blank cell stands for."""
_COLUMNS = {"name": "job", "arrival": "arrival_s"}
"""The column of each key of a job that has another name in a table."""
_NEEDED = {
    "job": "; add one with the names of the jobs",
    "arrival_s": "; add one with the seconds at which they arrive",
}


def _table(text: str, findings: Findings, *, gpu: str | None = None, **_: object) -> Table:
    by_kind = "gpu" in columns_of(text)
    model = None if by_kind and gpu is None else gpu_of_table(gpu, findings)
    one = None if by_kind else model  # the kind of which all times are
    check = partial(_check_header, gpu=one)
    rows = read_rows(text, findings, check, example="job,arrival_s,profile,work_s,...", what="job")
    columns = {"job": "name", "arrival_s": "arrival", **{key: key for key in ("profile", *_FIGURES)}}
    jobs = entries_of_rows((cells for _, cells in rows), columns, Job)
    for job, (line, cells) in zip(jobs, rows, strict=True):
        own = known_gpu(cells["gpu"]) if by_kind else model
        sizes = {profile.name: str(profile.compute_slices) for profile in own.profiles} if own else {}
        job.update(_times(cells, sizes, times_in(cells, one), f"line {line}", findings))
    lines = [line for line, _ in rows]
    raw: Raw = {"jobs": jobs}
    kinds: dict[tuple[int, str], int] = {}
    works = {line: cells.get(_WORK) for line, cells in rows}
    if by_kind:
        raw, lines, kinds = merged_by_kind("jobs", jobs, rows, findings, only=model, columns=_COLUMNS)

    def column(index: int, key: str) -> str:
        if key.startswith("declared"):
            return _DECLARED
        by_work = key.startswith("times.") and works[lines[index]]
        return _WORK if by_work else _COLUMNS.get(key) or time_column(key)

    return Table(raw, "jobs", lines, column, kinds)


def _check_header(header: list[str], where: str, findings: Findings, *, gpu: GpuModel | None) -> bool:
    others, times = check_times(header, where, findings, gpu)
    known = ["job", "gpu", "arrival_s", "profile", _WORK, _DECLARED, *times, *_FIGURES]
    complete = check_columns(others, where, findings, known, _NEEDED)
    if others == header and _WORK not in header:
        message = "has no column with times; add work_s (on the profile that is asked for), or t1_s, t2_s, ..."
        findings.add(where, message)
    if _WORK in header and "profile" not in header:
        findings.add(where, "has work_s but no column profile; add one, since work_s is the seconds on that profile")
    return complete and (others != header or {_WORK, "profile"} <= set(header))


def _times(cells: dict[str, str], sizes: dict[str, str], times: Raw, where: str, findings: Findings) -> Raw:
    """Return the times of a job and those that it declares, by size; ``times`` are those in columns of sizes."""
    profile, work = cells.get("profile"), cells.get(_WORK)
    # Seconds without a size count for some size; that the size is missing is reported, or will be with the profile.
    some = next(iter(sizes.values()), "1")
    if work and times:
        findings.add(f"{where}, {_WORK}", "the row has times by size as well; keep one of the two")
    elif work:
        if not profile:
            message = "is empty, but work_s is the seconds on a profile; fill it in, or use t<k>_s"
            findings.add(f"{where}, profile", message)
        times = {sizes.get(profile or "", some): number(work)}
    elif not times:
        findings.add(where, "has no time; fill in work_s or t<k>_s of a size on which the job can run")
        times = dict.fromkeys([some, *sizes.values()], 1.0)
    if cells.get(_DECLARED) and work:
        return {"times": times, "declared": dict.fromkeys(times, number(cells[_DECLARED]))}
    if cells.get(_DECLARED):
        findings.add(f"{where}, {_DECLARED}", "is for rows with work_s; write a JSON file for times by size")
    return {"times": times}


def _cells(trace: Trace) -> tuple[Iterable[str], Iterable[list[object]]]:
    """Return the table of the jobs of a trace; it says nothing of the fleet.

    It cannot say how memory grows, that jobs crash or GPUs leave, nor what is declared for several sizes.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> print(TRACE.to_csv(Trace((Job("lu", 3.0, {1: 4.0, 2: 2.5}),), get_gpu("A30"))), end="")
    job,arrival_s,t1_s,t2_s
    lu,3.0,4.0,2.5
    """
    # Whoever asks for a profile and has its time only is a row with work_s.
    by_work = all(job.profile is not None and len(job.times) == 1 for job in trace.jobs)
    lost = [] if trace.gpu else [("pools", "cannot hold several kinds of GPUs")]
    for index, job in enumerate(trace.jobs):
        lost += [(f"jobs[{index}].memory_growth", "cannot hold how memory grows")] if job.memory_growth else []
        lost += [(f"jobs[{index}].name", "loses the space around it")] if job.name != job.name.strip() else []
        lost += [(f"jobs[{index}].crashes", "cannot hold crashes")] if job.crashes else []
        if job.declared is not None and not by_work:
            lost.append((f"jobs[{index}].declared", "can hold declared times only if all jobs ask for profiles"))
    lost += [("outages", "cannot hold those of GPUs")] if trace.outages else []
    raise_any(Problem(path, f"a CSV file {why}; write a JSON file") for path, why in lost)
    figures = [key for key, blank in _FIGURES.items() if any(getattr(job, key) != blank for job in trace.jobs)]
    profiles = any(job.profile for job in trace.jobs)
    declared = any(job.declared is not None for job in trace.jobs)
    sizes = [] if by_work else sorted({size for job in trace.jobs for size in job.times})
    times = [_WORK] if by_work else [f"t{size}_s" for size in sizes]
    rows = (
        [
            job.name,
            job.arrival,
            *[job.profile or ""] * profiles,
            *([job.work] if by_work else (job.times.get(size, "") for size in sizes)),
            *["" if job.declared is None else next(iter(job.declared.values()))] * declared,
            *("" if getattr(job, key) == _FIGURES[key] else getattr(job, key) for key in figures),
        ]
        for job in trace.jobs
    )
    header = ["job", "arrival_s", *["profile"] * profiles, *times, *[_DECLARED] * declared, *figures]
    return header, rows


_JOB = {"name": "train", "arrival": 12.0, "times": TIMES}
TRACE: FileKind[Trace] = FileKind(
    "trace",
    Trace,
    {
        Trace: {"gpu": "A100-40GB", "jobs": [_JOB]},
        Job: _JOB,
        Outage: {"gpu": 0, "begin": 60.0, "end": 90.0},
        Pool: POOL,
    },
    ("gpu", "gpus", "pools", "jobs", "operations", "pcie_limit", "outages"),
    OPERATIONS,
    whole=GPUS_OR_POOLS,
    options=("gpu", "gpus"),
    prepare=with_gpus,
    finish=pools_document,
    table=_table,
    cells=_cells,
    named=True,
)


def log_entries(simulation: Simulation) -> Iterator[dict[str, object]]:
    """Yield the objects of a log: one for the simulation, then its runs by their ends, then its operations as decided.

    Where jobs were turned away the first one says so, and these jobs come last, in the order of the trace.

    Examples
    --------
    >>> from mig_opt import get_gpu, simulate
    >>> done = simulate(Trace((Job("a", 0.0, {4: 10.0}),), get_gpu("A30"), name="one"), "first-fit")
    >>> for entry in log_entries(done):
    ...     print(json.dumps(entry))
    {"schema": "mig-opt/log/1", "policy": "first-fit", "trace": "one", "gpu": "A30-24GB", "gpus": 1}
    {"run": "a", "gpu": 0, "profile": "4g.24gb", "start": 0, "begin": 0.13, "end": 10.13, "outcome": "finished"}
    {"operation": "create", "gpu": 0, "profile": "4g.24gb", "start": 0, "begin": 0.0, "end": 0.13}
    """
    trace = simulation.trace
    head = {"schema": "mig-opt/log/1", "policy": simulation.label, "trace": trace.name}
    yield {**head, **fleet_of(trace), **({"admission": "reject"} if simulation.reject else {})}
    for run in simulation.log.runs():
        place = {"gpu": run.gpu, "profile": run.placement.profile.name, "start": run.placement.start}
        times = {"begin": run.begin, "end": run.end, "outcome": run.outcome.name.lower().replace("_", "-")}
        yield {"run": trace.jobs[run.job].name, **place, **times}
    for operation in simulation.log.operations():
        place = {"gpu": operation.gpu, "profile": operation.profile, "start": operation.start}
        yield {"operation": operation.kind, **place, "begin": operation.begin, "end": operation.end}
    for job, moment in zip(trace.jobs, simulation.log.rejected, strict=True):
        if not math.isnan(moment):
            yield {"rejected": job.name, "at": moment}


def fleet_of(trace: Trace) -> Raw:
    """Return the keys of a document that say which GPUs there are."""
    if trace.gpu:
        return {"gpu": trace.gpu.name, "gpus": trace.gpus}
    return {"pools": [{"gpu": kind.name, "count": len(gpus)} for kind, gpus in trace.kinds.items()]}


def write_log(simulations: Sequence[Simulation], path: str | Path) -> None:
    """Write the logs of some simulations to a file, one after the other."""
    entries = (entry for simulation in simulations for entry in log_entries(simulation))
    write_text(file_path(path), "".join(f"{json.dumps(entry, ensure_ascii=False)}\n" for entry in entries))
