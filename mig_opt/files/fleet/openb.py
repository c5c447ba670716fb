"""The published list of pods of a production cluster with shared GPUs (Alibaba's ``openb``) as a trace."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from mig_opt.errors import InputError, Problem
from mig_opt.files.documents import file_path, read_text
from mig_opt.files.tables import check_columns, figure, read_rows
from mig_opt.files.values import Findings
from mig_opt.fleet.job import Job
from mig_opt.fleet.trace import Trace
from mig_opt.gpu.catalogue import gpu_noting
from mig_opt.gpu.model import GpuModel, Profile
from mig_opt.rules import wrong_integer, wrong_number
from mig_opt.rules.vocabulary import MOST_GPUS

Cover = Literal["compute", "both"]
"""Part of a fraction of a GPU that the smallest profile has to cover: compute slices, or memory as well."""

_FIGURES = ("num_gpu", "gpu_milli", "creation_time", "deletion_time")
_NEEDED = ("name", *_FIGURES, "scheduled_time")
_WHOLE = 1000
"""Thousandths of a GPU."""


@dataclass(frozen=True, slots=True)
class TraceImport:
    """A trace that was made from another kind of file, and what did not become part of it.

    Attributes
    ----------
    trace : Trace
        The jobs.
    pods : int
        How many rows the file has.
    left_out : mapping of str to int
        The number of pods that are no jobs, by the reason.
    several : int
        How many of the jobs are one of several GPUs of a pod.
    """

    trace: Trace
    pods: int
    left_out: Mapping[str, int] = field(default_factory=dict)
    several: int = 0


class _Pod(NamedTuple):
    name: str
    gpus: int
    milli: float
    arrival: float
    seconds: float


def import_trace(
    path: str | Path,
    *,
    gpu: str = "A100",
    gpus: int | None = None,
    nodes: str | Path | None = None,
    cover: Cover = "compute",
    first_s: float = 0.0,
    last_s: float = math.inf,
) -> TraceImport:
    """Read a list of pods in the layout of Alibaba's ``openb`` traces (``openb_pod_list_default.csv``).

    A pod arrives at its ``creation_time`` and works from its ``scheduled_time`` to its ``deletion_time``. The file says
    which fraction of a GPU it asks for, not what it would do on another one, so some things are assumed:

    * ``gpu_milli`` thousandths of a GPU are the smallest profile that has at least this fraction of the compute slices
      (and, with ``cover="both"``, of the memory). The pod takes as long there as it took.
    * A pod with several GPUs is that many jobs on a whole GPU each, which arrive together but need not run together.
    * All GPUs are of one kind, whatever the nodes have.

    Pods without a GPU, pods that were never scheduled, pods that took no time, and those outside of the window are left
    out and counted. Seconds count from the first arrival that is kept.

    Parameters
    ----------
    path : str or Path
        The list of pods.
    gpu : str
        Name or alias of the GPU that stands for those of the cluster.
    gpus : int, optional
        How many there are, if no ``nodes`` say it; by default 1.
    nodes : str or Path, optional
        The list of nodes (``openb_node_list_gpu_node.csv``), whose column ``gpu`` is summed.
    cover : str
        ``compute`` or ``both``.
    first_s, last_s : float
        Only pods that arrive from one to the other, in seconds of the file.

    Returns
    -------
    TraceImport
        The trace and what was left out.

    Raises
    ------
    InputError
        With every problem of the arguments and the files.
    """
    problems: list[Problem] = []
    model = gpu_noting(gpu, problems)
    if gpus is not None:
        problems += wrong_integer("gpus", gpus, 1, MOST_GPUS)
        problems += [Problem("nodes", "say how many GPUs there are, as gpus does; give one of them")] if nodes else []
    if cover not in ("compute", "both"):
        problems.append(Problem("cover", f"must be compute or both, is {cover!r:.60}"))
    for name, value in (("first_s", first_s), ("last_s", last_s)):
        if value != math.inf:
            problems += wrong_number(name, value, "a finite number of seconds")
    if problems or model is None:
        raise InputError(problems)
    count = gpus if gpus is not None else _gpus_of(nodes) if nodes is not None else 1
    left_out: Counter[str] = Counter()
    pods = _pods(file_path(path), left_out)
    total = len(pods) + left_out.total()
    kept = [pod for pod in pods if first_s <= pod.arrival <= last_s]
    left_out["outside of the window"] = len(pods) - len(kept)
    jobs = _jobs(model, cover, kept)
    if not jobs:
        reasons = ", ".join(f"{number} {reason}" for reason, number in left_out.items() if number)
        raise InputError([Problem("", f"no pod becomes a job: {reasons}")], str(path))
    several = sum(pod.gpus for pod in kept if pod.gpus > 1)
    trace = Trace(tuple(jobs), model, count, name=Path(path).stem)
    return TraceImport(trace, total, {reason: n for reason, n in left_out.items() if n}, several)


def _jobs(gpu: GpuModel, cover: Cover, pods: list[_Pod]) -> list[Job]:
    start = min((pod.arrival for pod in pods), default=0.0)
    # Several GPUs are whole ones, whatever the fraction says.
    profiles = {milli: _covering(gpu, milli, cover) for milli in {_WHOLE, *(pod.milli for pod in pods)}}
    jobs = []
    for pod in pods:
        profile = profiles[pod.milli if pod.gpus == 1 else _WHOLE]
        names = [pod.name] if pod.gpus == 1 else [f"{pod.name}/{index}" for index in range(pod.gpus)]
        times = {profile.compute_slices: pod.seconds}
        jobs += [Job(name, pod.arrival - start, times, profile.name) for name in names]
    return jobs


def _covering(gpu: GpuModel, milli: float, cover: Cover) -> Profile:
    """Return the smallest profile that has the fraction of a GPU."""
    enough = [
        profile
        for profile in gpu.profiles_of("base")
        if profile.compute_slices * _WHOLE >= milli * gpu.compute_slices
        and (cover == "compute" or profile.memory_slices * _WHOLE >= milli * gpu.memory_slices)
    ]
    return min(enough, key=lambda profile: (profile.compute_slices, profile.memory_slices))


def _pods(path: Path, left_out: Counter[str]) -> list[_Pod]:
    findings = Findings(str(path))
    rows = _rows(path, findings, _NEEDED, ",".join(_NEEDED), "pod")
    first: dict[str, int] = {}
    pods = []
    for line, cells in rows:
        where = f"line {line}"
        if first.setdefault(cells["name"], line) != line:
            findings.add(f"{where}, name", f"{cells['name']!r} is the name of line {first[cells['name']]} already")
        # A pod that was never scheduled says so by an empty cell.
        needed = (*_FIGURES, *(["scheduled_time"] if cells["scheduled_time"] else []))
        figures = {column: figure(cells[column], f"{where}, {column}", findings) for column in needed}
        gpus, milli = figures["num_gpu"], figures["gpu_milli"]
        if gpus != int(gpus) or gpus > MOST_GPUS:
            findings.add(f"{where}, num_gpu", f"must be a whole number of at most {MOST_GPUS}, is {gpus:g}")
        if not cells["name"]:
            findings.add(f"{where}, name", "must not be empty")
        if milli > _WHOLE:
            findings.add(f"{where}, gpu_milli", f"must be at most {_WHOLE} thousandths of each GPU, is {milli:g}")
        seconds = figures["deletion_time"] - figures.get("scheduled_time", 0.0)
        if gpus == 0 or milli == 0:
            left_out["ask for no GPU"] += 1
        elif "scheduled_time" not in figures:
            left_out["were never scheduled"] += 1
        elif seconds <= 0:
            left_out["took no time"] += 1
        else:
            pods.append(_Pod(cells["name"], int(gpus), milli, figures["creation_time"], seconds))
    findings.check()
    return pods


def _gpus_of(path: str | Path) -> int:
    findings = Findings(str(path))
    rows = _rows(path, findings, ("gpu",), "sn,cpu_milli,memory_mib,gpu,model", "node")
    total = sum(figure(cells["gpu"], f"line {line}, gpu", findings) for line, cells in rows)
    findings.check()
    if not 1 <= total <= MOST_GPUS:
        raise InputError([Problem("gpu", f"the nodes have {total:g} GPUs; from 1 to {MOST_GPUS} are fine")], str(path))
    return int(total)


def _rows(
    path: str | Path, findings: Findings, needed: Iterable[str], example: str, what: str
) -> list[tuple[int, dict[str, str]]]:
    check = partial(check_columns, needed=dict.fromkeys(needed, ", which lists in this layout have"))
    return read_rows(read_text(path), findings, check, example=example, what=what)
