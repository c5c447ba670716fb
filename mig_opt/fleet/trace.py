"""Problem 3: a trace of jobs that arrive over time at a fleet of GPUs."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

from mig_opt.batch.batch import Batch, Task
from mig_opt.batch.problems import costs_problems, repeated_names
from mig_opt.errors import InputError, Problem
from mig_opt.gpu.catalogue import Gpu
from mig_opt.gpu.model import GpuModel, OperationCosts, Profile, ProfileSet
from mig_opt.gpu.problems import wrong_size
from mig_opt.rules import check_values
from mig_opt.rules.vocabulary import (
    MOST_GPUS,
    Gigabytes,
    GpuCount,
    Index,
    Moment,
    Name,
    NotEmpty,
    Number,
    Times,
    Wanted,
    Whole,
)
from mig_opt.serving.profile_table import smallest_profile

PCIE_LIMIT = 30.08
"""GB/s that a GPU's PCIe 4.0 link reached in the measurements of the PCIe-aware scheduler's paper (section 5.1)."""

MOST_SMS = 1_000_000
"""Streaming multiprocessors that a job may fill; more is taken for a slip of the pen."""

CrashShare = Annotated[float, Number(above=0, below=1, words="a share of the work between 0 and 1")]
WorkShare = Annotated[float, Number(at_least=0, below=1, words="a share of the work from 0 to below 1")]


@dataclass(frozen=True, slots=True)
class Job:
    """Job of a trace: it runs once, at or after its arrival.

    Attributes
    ----------
    name : str
        Unique in its trace.
    arrival : float
        Seconds after the start of the trace.
    times : mapping of int to float
        Seconds that it takes alone on its GPU, by the compute slices of the instance: its work. A size that is missing
        means that the job cannot run there.
    profile : str, optional
        The profile that it asks for; its size is one of ``times``. By default the scheduler chooses.
    memory_gb : float, optional
        Most memory that the job needs at any moment, in GB. Schedulers that do not know it see an instance with less
        fail.
    memory_growth : tuple of (float, float)
        Growth of its memory: shares of its work (0 to 1, rising), each with the GB that it needs from there on. By
        default it needs ``memory_gb`` from the start.
    pcie_gbps : float
        PCIe bandwidth that it uses when it runs alone, in GB/s; 0 for a job that PCIe does not hold up.
    sensitivity : float
        By how much it slows down for each share of the PCIe limit that is asked for (the paper's alpha).
    energy_j : float, optional
        Joules that all of its work costs beyond what an idle GPU draws, wherever it runs. By default the compute slices
        that it occupies count, see :class:`mig_opt.simulation.PowerModel`.
    sms : int, optional
        Streaming multiprocessors that its warps can fill at once, as compilers know it; schedulers may use it.
    weight : float
        By how much its flow time and its tardiness count more than those of others.
    due : float, optional
        Due date: second of the trace from which on it is late.
    declared : mapping of int to float, optional
        What schedulers are told in place of ``times``, with the same sizes: run times that somebody guessed. By default
        they know the true ones.
    crashes : tuple of float
        Shares of its work (between 0 and 1) at which it crashes: its first crash is at the first share, its second one
        at the second. Each time it starts from zero; schedulers do not know of it before. By default it never crashes.

    Raises
    ------
    InputError
        With every problem of the job.

    Examples
    --------
    >>> Job("train", arrival=12.0, times={2: 30.0}, profile="2g.10gb").work
    30.0
    """

    name: Name
    arrival: Moment
    times: Times
    profile: str | None = None
    memory_gb: Gigabytes | None = None
    memory_growth: tuple[
        Annotated[tuple[WorkShare, Annotated[float, Number("GB", above=0)]], Wanted("a share of the work with GB")], ...
    ] = ()
    pcie_gbps: Annotated[float, Number("GB/s", at_least=0)] = 0.0
    sensitivity: Annotated[float, Number(at_least=0)] = 0.0
    energy_j: Annotated[float, Number("joules", at_least=0, hint=" (or left out)")] | None = None
    sms: Annotated[int, Whole(1, MOST_SMS)] | None = None
    weight: Annotated[float, Number(above=0)] = 1.0
    due: Annotated[float, Number("seconds", at_least=0, hint=" (or left out)")] | None = None
    declared: Times | None = None
    crashes: tuple[CrashShare, ...] = ()

    def __post_init__(self) -> None:
        check_values(self)

    def _problems(self) -> Iterator[Problem]:
        if self.times and self.declared and self.declared.keys() != self.times.keys():
            sizes, wanted = (", ".join(map(str, known)) for known in (self.declared, self.times))
            yield Problem("declared", f"must have the sizes of times ({wanted}), has {sizes}")
        growth = [step for step in self.memory_growth or () if step and None not in step]
        if any(one[0] >= two[0] for one, two in itertools.pairwise(growth)):
            yield Problem("memory_growth", "shares of the work must rise from entry to entry")
        if growth and self.memory_gb is not None and max(gb for _, gb in growth) > self.memory_gb:
            message = f"{self.memory_gb:g} GB is less than memory_growth reaches; the most counts, so raise or drop it"
            yield Problem("memory_gb", message)

    def __hash__(self) -> int:
        return hash((self.name, self.arrival, tuple(self.times.items()), self.profile))

    @property
    def work(self) -> float:
        """Seconds on the smallest size that it can run on."""
        return next(iter(self.times.values()))

    @property
    def most_gb(self) -> float | None:
        """Most memory that it needs at any moment, in GB; None if that is not known."""
        if self.memory_gb is None and self.memory_growth:
            return max(gb for _, gb in self.memory_growth)
        return self.memory_gb

    def share_within(self, memory_gb: float) -> float:
        """Return the share of its work at which it needs more than ``memory_gb``; 1 if it never does."""
        if self.memory_growth:
            return next((share for share, gb in self.memory_growth if gb > memory_gb), 1.0)
        return 0.0 if self.memory_gb is not None and self.memory_gb > memory_gb else 1.0

    def memory_at(self, share: float) -> float:
        """Return the GB that it needs when it has done a share of its work."""
        if self.memory_growth:
            return next((gb for begin, gb in reversed(self.memory_growth) if begin <= share), 0.0)
        return self.memory_gb or 0.0


@dataclass(frozen=True, slots=True)
class Outage:
    """Time in which a GPU is not there: all of its instances are gone, and what ran on them has to start again.

    Attributes
    ----------
    gpu : int
        Index of the GPU.
    begin, end : float
        Seconds after the start of the trace at which it leaves, and at which it returns, empty.

    Raises
    ------
    InputError
        If it ends before it begins, or a figure is wrong.
    """

    gpu: Index
    begin: Moment
    end: Moment

    def __post_init__(self) -> None:
        check_values(self)

    def _problems(self) -> Iterator[Problem]:
        if None not in (self.begin, self.end) and self.end <= self.begin:
            yield Problem("end", f"must be after begin ({self.begin:g} s), is {self.end:g}")


@dataclass(frozen=True)
class Trace:
    """Jobs that arrive over time at a fleet of identical MIG GPUs.

    Attributes
    ----------
    jobs : tuple of Job
        By arrival; jobs that arrive together keep their order.
    gpu : GpuModel
        The kind of GPU.
    gpus : int
        How many of them; they start without instances.
    operations : OperationCosts
        Seconds per creation and destruction; by default the GPU's own table.
    pcie_limit : float
        GB/s of each GPU's link.
    name : str
        For display only.
    outages : tuple of Outage
        Times in which GPUs are not there, of which schedulers do not know before.

    Raises
    ------
    InputError
        With every problem of the trace, each with its path.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> trace = Trace((Job("b", 3.0, {1: 2.0}), Job("a", 0.0, {1: 5.0})), get_gpu("A100"), gpus=2)
    >>> [job.name for job in trace.jobs]
    ['a', 'b']
    """

    jobs: Annotated[tuple[Job, ...], NotEmpty("at least one job")]
    gpu: Gpu
    gpus: GpuCount = 1
    operations: OperationCosts = OperationCosts({}, {})
    pcie_limit: Annotated[float, Number("GB/s", above=0)] = PCIE_LIMIT
    name: str = dataclasses.field(default="", compare=False)
    outages: tuple[Outage, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.gpu, GpuModel) and not self.operations.create and not self.operations.destroy:
            object.__setattr__(self, "operations", self.gpu.operation_costs)
        check_values(self)
        object.__setattr__(self, "jobs", tuple(sorted(self.jobs, key=lambda job: job.arrival)))

    @property
    def profile_set(self) -> ProfileSet:
        """The profiles that instances may have: variants with attributes only if a job asks for one."""
        asked = {job.profile for job in self.jobs if job.profile is not None}
        return "all" if any(self.gpu.profile(name).attributes for name in asked) else "double-memory"

    def _problems(self) -> Iterator[Problem]:
        yield from repeated_names("jobs", self.jobs or ())
        if self.gpu:
            for index, job in enumerate(self.jobs or ()):
                yield from () if job is None else _job_problems(self.gpu, job, f"jobs[{index}]")
            yield from costs_problems((self.gpu,), self.operations)
        yield from _outage_problems(self.outages or (), self.gpus or MOST_GPUS)

    def profiles(self, job: Job, least_gb: float = 0.0) -> tuple[Profile, ...]:
        """Return the profiles that a job may run on, smallest first: the one that it asks for, else one for each size.

        Of the profiles of a size it is the one of least memory that is enough.

        Parameters
        ----------
        job : Job
            A job of the trace.
        least_gb : float
            GB that it is known to need, besides what it says itself.

        Returns
        -------
        tuple of Profile
            Empty if none has enough memory.
        """
        if job.profile is not None:
            profile = self.gpu.profile(job.profile)
            return (profile,) if profile.memory_gb >= least_gb else ()
        return _smallest_profiles(self.gpu, tuple(job.times), max(least_gb, job.memory_gb or 0.0))

    def whole_run_profiles(self, job: Job) -> tuple[Profile, ...]:
        """Return the profiles on which a job can run from its begin to its end, however its memory grows."""
        return self.profiles(job, 0.0 if job.profile else job.most_gb or 0.0)

    def pcie_factor(self, job: Job) -> float:
        """Return by how much a job slows down for each PCIe-bound job on its GPU; 0 if PCIe does not hold it up."""
        return job.sensitivity * job.pcie_gbps / self.pcie_limit

    def as_declared(self) -> Trace:
        """Return the trace that schedulers know: jobs have their declared times, nothing crashes, no GPU leaves.

        Returns
        -------
        Trace
            The trace itself if that is all the same.

        Examples
        --------
        >>> from mig_opt import get_gpu
        >>> trace = Trace((Job("a", 0.0, {1: 60.0}, declared={1: 45.0}),), get_gpu("A30"))
        >>> trace.as_declared().jobs[0].times
        {1: 45.0}
        """
        if not self.outages and all(job.declared is None and not job.crashes for job in self.jobs):
            return self
        jobs = (
            dataclasses.replace(job, times=job.declared or job.times, declared=None, crashes=())
            if job.declared or job.crashes
            else job
            for job in self.jobs
        )
        return self.replace(jobs=tuple(jobs), outages=())

    def replace(self, **changes: object) -> Trace:
        """Return a copy with some attributes changed."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]  # the constructor checks


@lru_cache(maxsize=4096)  # few kinds of jobs are many jobs
def _smallest_profiles(gpu: GpuModel, sizes: tuple[int, ...], memory_gb: float) -> tuple[Profile, ...]:
    found = (smallest_profile(gpu, size, memory_gb) for size in sizes)
    return tuple(profile for profile in found if profile is not None)


def pcie_slowdown(trace: Trace, job: Job, competitors: int) -> float:
    """Return by how much a job is slower than alone where ``competitors``, itself included, share a link."""
    return max(1.0, job.sensitivity * job.pcie_gbps * competitors / trace.pcie_limit)


def disturbances(trace: Trace) -> Iterator[Problem]:
    """Yield what a simulation only can reckon with: crashes of jobs and outages of GPUs."""
    for index, job in enumerate(trace.jobs):
        if job.crashes:
            yield Problem(f"jobs[{index}].crashes", "are for simulations only; leave them out")
    if trace.outages:
        yield Problem("outages", "are for simulations only; leave them out")


def check_jobs(trace: Trace) -> None:
    """Refuse a trace with jobs that can run nowhere, with a problem for each of them."""
    problems = [
        Problem(f"jobs[{index}]", f"job {job.name!r} can run nowhere: no profile has its times and enough memory")
        for index, job in enumerate(trace.jobs)
        if not trace.whole_run_profiles(job)
    ]
    if problems:
        raise InputError(problems)


def batch_of(trace: Trace) -> Batch:
    """Return the jobs of a trace as the tasks of a batch, all there from the start; refuse jobs that can run nowhere.

    Every schedule of the trace without preemption and migration is one of the batch.
    """
    check_jobs(trace)
    tasks = []
    for job in trace.jobs:
        sizes = {profile.compute_slices for profile in trace.whole_run_profiles(job)}
        memory = job.most_gb if job.profile is None else trace.gpu.profile(job.profile).memory_gb
        tasks.append(Task(job.name, {size: job.times[size] for size in sizes}, memory))
    return Batch(tuple(tasks), trace.gpu, trace.gpus, trace.operations, name=trace.name)


def _outage_problems(outages: tuple[Outage, ...], gpus: int) -> Iterator[Problem]:
    before: dict[int, tuple[float, int]] = {}
    known = [(outage.begin, outage.end, outage.gpu, index) for index, outage in enumerate(outages) if outage]
    for begin, end, gpu, index in sorted(entry for entry in known if None not in entry):
        if gpu >= gpus:
            yield Problem(f"outages[{index}].gpu", f"there is no GPU {gpu}; they are numbered from 0 to {gpus - 1}")
        if gpu in before and begin <= before[gpu][0]:
            message = f"must be after {before[gpu][0]:g} s, when GPU {gpu} has returned from outages[{before[gpu][1]}]"
            yield Problem(f"outages[{index}].begin", f"{message}, is {begin:g}")
        before[gpu] = max(before.get(gpu, (end, index)), (end, index))


def _job_problems(gpu: GpuModel, job: Job, path: str) -> Iterator[Problem]:
    for size in job.times or ():
        yield from wrong_size(f"{path}.times.{size}", gpu, size)
    if job.profile is None:
        return
    try:
        profile = gpu.profile(job.profile)
    except InputError as error:
        yield from (Problem(f"{path}.profile", problem.message) for problem in error.problems)
        return
    if job.times and profile.compute_slices not in job.times:
        message = f"times has no seconds for its {profile.compute_slices} compute slices; add them"
        yield Problem(f"{path}.profile", message)
