"""Certificates of second proofs: a claim about a schedule, and the evidence for it."""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, field, fields

from mig_opt.batch.batch import Batch, Task
from mig_opt.batch.schedule import Schedule
from mig_opt.gpu.model import GpuModel
from mig_opt.rules import Checked


class Claim(enum.StrEnum):
    """Claim about schedules that are shorter than the one in question."""

    PROVED = "proved"
    """There is none."""
    REFUTED = "refuted"
    """There is one, which the certificate holds."""
    OPEN = "open"
    """Neither was shown: the method ended, was interrupted, or its time was up."""


@dataclass(frozen=True, slots=True)
class SliceLoad(Checked):
    """A bound from the weighted load of the memory slices.

    Attributes
    ----------
    weights : tuple of int
        For each memory slice of a GPU; of several kinds of GPUs one after the other.
    value : str
        Seconds as an exact fraction, such as ``109/25``.
    """

    weights: tuple[int, ...]
    value: str


@dataclass(frozen=True, slots=True)
class CriticalTask(Checked):
    """A bound from the task whose shortest time is longest.

    Attributes
    ----------
    task : str
        Name of the task.
    value : str
        Seconds as an exact fraction, such as ``411/100``.
    """

    task: str
    value: str


@dataclass(frozen=True, slots=True)
class PricedWork(Checked):
    """A bound from prices of the tasks, which together are worth more than the GPUs can run within a shorter time.

    Attributes
    ----------
    prices : tuple of int
        For each task of the batch, up to a million.
    value : str
        Seconds as an exact fraction, such as ``9032/100``.
    """

    prices: tuple[int, ...]
    value: str


@dataclass(frozen=True, slots=True)
class Certificate(Checked):
    """Claim about schedules that are shorter than one, and the evidence for it: what :func:`mig_opt.prove` returns.

    Attributes
    ----------
    claim : Claim
        The claim about schedules that are shorter than the one in question.
    batch : str
        Digest (SHA-256) of the batch as canonical JSON, defaults spelled out.
    schedule : str
        Digest (SHA-256) of the schedule as canonical JSON.
    makespan : float
        Of the schedule, in seconds.
    tick : str
        Seconds of a tick, as an exact fraction.
    exact : bool
        True if every time that matters is a whole number of ticks. Else a millionth of the makespan counts in place of
        a tick.
    within : float
        Seconds: schedules that are shorter by no more than that do not count either.
    lower_bound : float
        Seconds; no schedule of the batch has a smaller makespan.
    slice_load : SliceLoad
        A bound that can be recomputed without any solver.
    critical_task : CriticalTask
        Another one.
    method : str
        The method that was asked.
    seed : int
        Its seed.
    runtime_s : float
        Wall-clock seconds of the whole; 0 if the bounds without a solver were enough.
    versions : mapping of str to str
        Versions of this package and of the programs that it ran.
    better : Schedule or None
        The shorter schedule, if the claim is that there is one.
    interrupted : bool
        True if Ctrl-C ended the method.
    digest : str
        Digest (SHA-256) of all but itself.
    priced_work : PricedWork or None
        A third bound that can be recomputed without any solver, if one was found.
    """

    claim: Claim
    batch: str
    schedule: str
    makespan: float
    tick: str
    exact: bool
    within: float
    lower_bound: float
    slice_load: SliceLoad
    critical_task: CriticalTask
    method: str
    seed: int
    runtime_s: float
    versions: Mapping[str, str] = field(hash=False)
    interrupted: bool
    better: Schedule | None
    digest: str
    priced_work: PricedWork | None = None

    def computed_digest(self) -> str:
        """Return the digest that follows from the other attributes."""
        content = {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name != "digest"}
        content |= {name: float(content[name]) for name in ("makespan", "within", "lower_bound", "runtime_s")}
        content |= {
            "slice_load": astuple(self.slice_load),
            "critical_task": astuple(self.critical_task),
            "versions": dict(self.versions),
            "better": None if self.better is None else _schedule_content(self.better),
        }
        priced = content.pop("priced_work")
        content |= {} if priced is None else {"priced_work": astuple(priced)}  # certificates of version 1.0 have none
        return _digest(content)


def batch_digest(batch: Batch) -> str:
    """Return the SHA-256 of a batch as canonical JSON: all that its schedules depend on, defaults and GPU spelled out.

    The name of the batch is no part of it, nor is the source of the operation costs.
    """

    def of_kinds(content: Callable[[GpuModel], object]) -> object:
        """Return something of the only kind of GPU, or of each of them."""
        return content(batch.gpu) if batch.gpu else [content(kind) for kind in batch.kinds]

    def costs(of: str) -> object:
        own = (getattr(batch.operations.of_kind(kind), of) for kind in batch.kinds)
        tables = dict(zip(batch.kinds, own, strict=True))
        return of_kinds(lambda kind: [float(tables[kind][size]) for size in sorted(kind.sizes)])

    def times(task: Task) -> object:
        return of_kinds(lambda kind: [[int(size), float(time)] for size, time in sorted(task.times_on(kind).items())])

    return _digest(
        {
            "gpu": of_kinds(_gpu_content),
            "gpus": of_kinds(lambda kind: len(batch.kinds[kind])),
            "tasks": [
                [task.name, times(task), None if task.memory_gb is None else float(task.memory_gb)]
                for task in batch.tasks
            ],
            "create": costs("create"),
            "destroy": costs("destroy"),
            "initial": sorted(
                [int(live.gpu), live.profile, int(live.start), float(live.free)] for live in batch.initial
            ),
            "parallel_operations": bool(batch.parallel_operations),
        }
    )


def _gpu_content(gpu: GpuModel) -> object:
    return {
        "name": gpu.name,
        "compute_slices": gpu.compute_slices,
        "memory_slices": gpu.memory_slices,
        "profiles": [
            [
                profile.name,
                profile.compute_slices,
                profile.memory_slices,
                float(profile.memory_gb),
                profile.max_count,
                list(profile.starts),
                list(profile.attributes),
            ]
            for profile in gpu.profiles
        ],
    }


def schedule_digest(schedule: Schedule) -> str:
    """Return the SHA-256 of a schedule as canonical JSON; the order of its runs and operations does not matter."""
    return _digest(_schedule_content(schedule))


def _schedule_content(schedule: Schedule) -> dict[str, object]:
    runs = ([run.task, run.gpu, run.profile, run.start, float(run.begin), float(run.end)] for run in schedule.runs)
    operations = (
        None
        if schedule.operations is None
        else sorted(
            [entry.kind, entry.gpu, entry.profile, entry.start, float(entry.begin), float(entry.end)]
            for entry in schedule.operations
        )
    )
    return {"runs": sorted(runs), "operations": operations}


def _digest(content: Mapping[str, object]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), default=int)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
