"""Traces of the public benchmark MIGBench, and its published results.

MIGBench (https://github.com/FouoF/MIG-scheduler-benchmark) replays jobs on simulated H100s through real Kubernetes
schedulers. It writes ``*-trace.jsonl``, with a job on each line, and ``*-summary.csv``, with a scheduler on each line.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from mig_opt.errors import InputError, Problem, nearest
from mig_opt.files.documents import integer, read_text, shown
from mig_opt.files.tables import check_columns, figure, read_rows
from mig_opt.files.values import Findings
from mig_opt.fleet.job import Job
from mig_opt.fleet.trace import Trace
from mig_opt.gpu.catalogue import gpu_noting
from mig_opt.gpu.model import GpuModel, Profile
from mig_opt.rules import wrong_integer
from mig_opt.rules.vocabulary import MOST_GPUS

Sizes = Literal["smallest", "any"]
"""Instances that a job may have: the smallest one with its memory, or any that is as large or larger."""

GPUS = 8
"""Number of GPUs of the published runs: two nodes with four H100 each."""

COMPUTE_PERCENT: Mapping[int, int] = MappingProxyType({1: 14, 2: 28, 3: 42, 7: 100})
"""Percent of a GPU by compute slices, as the benchmark counts them. It has no 4g, which HAMi does not offer."""

_MS = 1000.0
_MIB = 1024.0
_PUBLISHED = ("backend", "jobs", "makespan_ms", "mean_wait_ms", "p95_wait_ms")


@dataclass(frozen=True, slots=True)
class PublishedResult:
    """Published figures of one scheduler, in seconds.

    Attributes
    ----------
    scheduler : str
        Its name and version, as the benchmark has them.
    jobs : int
        Number of jobs in the trace.
    makespan, mean_wait, p95_wait : float
        Last end; mean and 95th percentile of the waiting times, from the arrival to the begin of the run.
    """

    scheduler: str
    jobs: int
    makespan: float
    mean_wait: float
    p95_wait: float


def import_migbench(
    path: str | Path, *, gpu: str = "H100-80GB", gpus: int | None = None, sizes: Sizes = "smallest"
) -> Trace:
    """Read a trace of MIGBench (``*-trace.jsonl``).

    A job of the layout ``resource-bound-v2`` has work and memory. On an instance it takes the work divided by the
    percent of the GPU that the benchmark counts for it (14, 28, 42, 100 for 1g, 2g, 3g, 7g), and it runs wherever its
    memory is enough. A job of the layout ``profile-bound-v1`` has a profile and its seconds there. Node selectors are
    left out: all GPUs are alike.

    Parameters
    ----------
    path : str or Path
        The file.
    gpu : str
        Name or alias of the GPU.
    gpus : int, optional
        How many there are; by default 8, as in the published runs.
    sizes : str
        ``smallest``: each job asks for the smallest profile that has its memory, which is what the published schedulers
        gave to nearly all. ``any``: the scheduler chooses among all profiles that have it.

    Returns
    -------
    Trace
        Times in seconds, memory in GB. Creations and destructions take what the GPU's own table says.

    Raises
    ------
    InputError
        With every problem of the arguments and of the file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> job = '{"jobID": "a", "arrivalMS": 500, "computeCoreMS": 84000, "memoryMB": 20480}'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "trace.jsonl"
    ...     _ = path.write_text(job)
    ...     import_migbench(path).jobs[0].times, import_migbench(path, sizes="any").jobs[0].times
    ({2: 3.0}, {2: 3.0, 3: 2.0, 7: 0.84})
    """
    problems: list[Problem] = []
    model = gpu_noting(gpu, problems)
    if gpus is not None:
        problems += wrong_integer("gpus", gpus, 1, MOST_GPUS)
    if sizes not in ("smallest", "any"):
        problems.append(Problem("sizes", f"must be smallest or any, is {sizes!r:.60}"))
    if model is not None and not _profiles(model):
        problems.append(Problem("gpu", f"must have profiles of 1, 2, 3 or 7 compute slices, {model.name} has none"))
    if problems or model is None:
        raise InputError(problems)
    findings = Findings(str(path))
    lines: dict[str, int] = {}
    jobs = []
    for line, text in enumerate(read_text(path).split("\n"), 1):
        if text.strip():
            job = _job(text, f"line {line}", findings, model, sizes)
            if job is not None:
                if lines.setdefault(job.name, line) != line:
                    findings.add(f"line {line}, jobID", f"{job.name!r} is the name of line {lines[job.name]} already")
                jobs.append(job)
    if not jobs and not findings.problems:
        findings.add("", 'is empty; a job on each line is wanted: {"jobID": "job-1", "arrivalMS": 0, ...}')
    findings.check()
    return Trace(tuple(jobs), model, GPUS if gpus is None else gpus, name=Path(path).stem)


def read_published(path: str | Path) -> tuple[PublishedResult, ...]:
    """Read the published results of MIGBench (``*-summary.csv``), in the order of the file.

    Columns beside those that are used do not matter. An InputError has every problem of the file.
    """
    findings = Findings(str(path))
    check = partial(check_columns, needed=dict.fromkeys(_PUBLISHED, ", which summaries of MIGBench have"))
    rows = read_rows(read_text(path), findings, check, example=",".join(_PUBLISHED), what="scheduler")
    found = []
    for line, cells in rows:
        figures = {column: figure(cells[column], f"line {line}, {column}", findings) for column in _PUBLISHED[1:]}
        jobs, makespan, mean_wait, p95_wait = figures.values()
        found.append(PublishedResult(cells["backend"], int(jobs), makespan / _MS, mean_wait / _MS, p95_wait / _MS))
    findings.check()
    return tuple(found)


def _profiles(gpu: GpuModel) -> list[Profile]:
    """Return the profiles that the benchmark knows, smallest first."""
    return [profile for profile in reversed(gpu.profiles_of("base")) if profile.compute_slices in COMPUTE_PERCENT]


def _job(text: str, where: str, findings: Findings, gpu: GpuModel, sizes: Sizes) -> Job | None:
    """Return the job of a line; None if something is wrong with it, which is noted."""
    try:
        raw = json.loads(text, parse_int=integer)
    except (ValueError, RecursionError) as error:
        findings.add(where, f"is not JSON: {error}")
        return None
    if not isinstance(raw, dict):
        findings.add(where, f"must be an object {{...}}, is {shown(raw)}")
        return None
    count = len(findings.problems)
    name = raw.get("jobID")
    if not isinstance(name, str) or not name.strip():
        findings.add(f"{where}, jobID", f"must be the name of the job, is {shown(name)}")
    arrival = _figure(raw, "arrivalMS", where, findings, positive=False) / _MS
    asks = _by_profile if raw.get("profile") else _by_memory
    times, profile, memory_gb = asks(raw, where, findings, gpu, sizes)
    return None if len(findings.problems) > count else Job(str(name), arrival, times, profile, memory_gb)


_Needs = tuple[dict[int, float], str | None, float | None]
"""Seconds by size, profile and memory of a job."""


def _by_profile(raw: Mapping[str, Any], where: str, findings: Findings, gpu: GpuModel, _: Sizes) -> _Needs:
    wanted, seconds = raw["profile"], _figure(raw, "durationMS", where, findings) / _MS
    sizes = {profile.name: profile.compute_slices for profile in gpu.profiles}
    if not isinstance(wanted, str) or wanted not in sizes:
        findings.add(f"{where}, profile", f"{gpu.name} has no profile {shown(wanted)}; {nearest(str(wanted), sizes)}")
        return {}, None, None
    return {sizes[wanted]: seconds}, wanted, None


def _by_memory(raw: Mapping[str, Any], where: str, findings: Findings, gpu: GpuModel, sizes: Sizes) -> _Needs:
    work = _figure(raw, "computeCoreMS", where, findings) / _MS
    memory_gb = _figure(raw, "memoryMB", where, findings) / _MIB
    percent = _figure(raw, "minComputePercent", where, findings, positive=False) if "minComputePercent" in raw else 0.0
    enough = [
        profile
        for profile in _profiles(gpu)
        if profile.memory_gb >= memory_gb and COMPUTE_PERCENT[profile.compute_slices] >= percent
    ]
    if not enough:
        findings.add(where, f"no profile of {gpu.name} has {memory_gb:g} GB and {percent:g} % of the compute slices")
        return {}, None, None
    times = {profile.compute_slices: work / COMPUTE_PERCENT[profile.compute_slices] for profile in enough}
    if sizes == "any":
        return times, None, memory_gb
    size = enough[0].compute_slices
    return {size: times[size]}, enough[0].name, None


def _figure(raw: Mapping[str, Any], key: str, where: str, findings: Findings, *, positive: bool = True) -> float:
    """Return the number of a key; 1 if it is not there or wrong, which is noted."""
    value = raw.get(key)
    wanted = "a finite number > 0" if positive else "a finite number >= 0"
    fine = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf
    if not fine or (positive and not value):
        missing = "" if key in raw else "; it is missing"
        findings.add(f"{where}, {key}", f"must be {wanted}, is {shown(value)}{missing}")
        return 1.0
    return float(value)  # type: ignore[arg-type]  # it has been checked
