"""Problem 3: a trace of jobs that arrive over time at a fleet of GPUs, of one kind or several."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, NamedTuple

from mig_opt.batch.batch import Batch, Task
from mig_opt.batch.kinds import OnKinds, kinds_of, settled_costs
from mig_opt.batch.problems import NO_COUNT, NO_GPU, costs_problems, gpus_problems, repeated_names
from mig_opt.errors import InputError, Problem, raise_any
from mig_opt.fleet.job import Job, has_room, job_problems, profiles_on, whole_run_profiles_on
from mig_opt.gpu.catalogue import Gpu
from mig_opt.gpu.model import GivenCosts, GpuModel, OperationCosts, Profile, ProfileSet
from mig_opt.gpu.pools import Pool
from mig_opt.rules import Checked, check_values
from mig_opt.rules.vocabulary import MOST_GPUS, GpuCount, Index, Moment, NotEmpty, Number, Wanted

PCIE_LIMIT = 30.08
"""GB/s that a GPU's PCIe 4.0 link reached in the measurements of the PCIe-aware scheduler's paper (section 5.1)."""


@dataclass(frozen=True, slots=True)
class Outage(Checked):
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

    def _problems(self) -> Iterator[Problem]:
        if None not in (self.begin, self.end) and self.end <= self.begin:
            yield Problem("end", f"must be after begin ({self.begin:g} s), is {self.end:g}")


class TracePart(NamedTuple):
    """The jobs of a trace that GPUs of one kind can run, as a trace of these GPUs alone."""

    trace: Trace
    """The jobs with their times on this kind; GPU 0 is the first one of the kind."""
    jobs: Sequence[int]
    """Index of each of its jobs in the whole trace."""
    gpus: range
    """Index of each of its GPUs there."""


@dataclass(frozen=True)
class Trace(OnKinds):
    """Jobs that arrive over time at a fleet of MIG GPUs.

    Attributes
    ----------
    jobs : tuple of Job
        By arrival; jobs that arrive together keep their order.
    gpu : GpuModel or None
        The kind of GPU; None if there are several.
    gpus : int
        How many of them, of all kinds together; they start without instances.
    operations : OperationCosts
        Seconds per creation and destruction; by default the GPU's own table.
    pcie_limit : float
        GB/s of each GPU's link.
    name : str
        For display only.
    outages : tuple of Outage
        Times in which GPUs are not there, of which schedulers do not know before.
    pools : tuple of Pool
        In place of ``gpu`` and ``gpus``: several kinds of GPUs, and how many of each. GPUs are numbered through the
        pools in their order. A trace with one pool is the same as one without.
    kinds : mapping of GpuModel to range
        The kinds of GPUs, each with the numbers of its GPUs, derived from the rest.

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

    The second job cannot run on an A30.

    >>> jobs = (Job("a", 0.0, {"A30": {1: 5.0}, "A100": {1: 3.0}}), Job("b", 3.0, {"A100": {7: 2.0}}))
    >>> mixed = Trace(jobs, pools=(Pool(get_gpu("A100"), 1), Pool(get_gpu("A30"), 4)))
    >>> mixed.label, [part.jobs for part in mixed.parts()]
    ('1 x A100-40GB + 4 x A30-24GB', [(0, 1), (0,)])
    """

    jobs: Annotated[tuple[Job, ...], NotEmpty("at least one job")]
    gpu: Gpu | None = None
    gpus: GpuCount = 1
    operations: GivenCosts = OperationCosts({}, {})
    pcie_limit: Annotated[float, Number("GB/s", above=0)] = PCIE_LIMIT
    name: str = dataclasses.field(default="", compare=False)
    outages: tuple[Outage, ...] = ()
    pools: tuple[Annotated[Pool, Wanted("a Pool, for example Pool(get_gpu('A100'), 2)")], ...] = ()
    kinds: Mapping[GpuModel, range] = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_values(self)
        missing = [Problem(f"pools[{at}].count", NO_COUNT) for at, pool in enumerate(self.pools) if pool.count is None]
        if missing or not (self.gpu or self.pools):
            raise InputError(missing or [Problem("gpu", NO_GPU)])
        kinds = kinds_of(self.gpu, self.gpus, self.pools)
        jobs: Sequence[Job] = self.jobs
        object.__setattr__(self, "kinds", kinds)
        object.__setattr__(self, "gpus", sum(map(len, kinds.values())))
        if len(kinds) == 1:
            (only,) = kinds
            object.__setattr__(self, "gpu", only)
            object.__setattr__(self, "pools", ())
            jobs = [job.on(only) or job for job in jobs]
        object.__setattr__(self, "operations", settled_costs(self.operations, tuple(kinds)))
        object.__setattr__(self, "jobs", tuple(sorted(jobs, key=lambda job: job.arrival)))

    @property
    def one_kind(self) -> GpuModel:
        """The kind of GPU of a trace that must have one.

        Raises
        ------
        InputError
            If there are several.
        """
        if self.gpu is None:
            raise InputError([Problem("pools", "are of several kinds of GPUs; this is for traces of one kind")])
        return self.gpu

    def parts(self) -> tuple[TracePart, ...]:
        """Return a trace for each kind of GPU, with the jobs that it can run from begin to end; none without such jobs.

        With one kind that is the trace itself.
        """
        return (TracePart(self, range(len(self.jobs)), range(self.gpus)),) if self.gpu else self._parts

    @cached_property
    def _parts(self) -> tuple[TracePart, ...]:
        able: dict[GpuModel, list[tuple[int, Job]]] = {kind: [] for kind in self.kinds}
        for number, job in enumerate(self.jobs):
            known = [(kind, own) for kind in self.kinds if (own := job.on(kind)) and whole_run_profiles_on(kind, own)]
            # What asks for an instance that has too little memory for it does so only where nothing else can run it.
            roomy = [(kind, own) for kind, own in known if has_room(kind, own)]
            for kind, own in roomy or known:
                able[kind].append((number, own))
        found = []
        for kind, gpus in self.kinds.items():
            if able[kind]:
                numbers, jobs = zip(*able[kind], strict=True)
                there = (outage for outage in self.outages if outage.gpu in gpus)
                outages = tuple(dataclasses.replace(outage, gpu=outage.gpu - gpus.start) for outage in there)
                operations = self.operations.of_kind(kind)
                trace = Trace(jobs, kind, len(gpus), operations, self.pcie_limit, self.name, outages)
                found.append(TracePart(trace, numbers, gpus))
        return tuple(found)

    @property
    def profile_set(self) -> ProfileSet:
        """The profiles that instances may have: variants with attributes only if a job asks for one."""
        return self.profile_set_on(self.one_kind)

    def profile_set_on(self, gpu: GpuModel) -> ProfileSet:
        """Return the profiles that instances may have on a kind of GPU."""
        return gpu.profile_set({name for job in self.jobs if (name := job.asked(gpu.name)) is not None})

    def _problems(self) -> Iterator[Problem]:
        pools = self.pools or ()
        counts: list[int] = [(pool and pool.count) or MOST_GPUS for pool in pools]
        gpus = sum(counts) or self.gpus or MOST_GPUS
        yield from repeated_names("jobs", self.jobs or ())
        wrong = list(gpus_problems(self.gpu, self.gpus, pools))
        yield from wrong
        if not wrong and all(pool and pool.gpu and pool.mig is not None for pool in pools) and (self.gpu or pools):
            kinds = (self.gpu,) if self.gpu else tuple(pool.kind for pool in pools)
            for index, job in enumerate(self.jobs or ()):
                yield from () if job is None else job_problems(kinds, job, f"jobs[{index}]")
            yield from costs_problems(kinds, self.operations)
        yield from _outage_problems(self.outages or (), gpus)

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
        return profiles_on(self.one_kind, job, least_gb)

    def whole_run_profiles(self, job: Job) -> tuple[Profile, ...]:
        """Return the profiles on which a job can run from its begin to its end, however its memory grows."""
        return whole_run_profiles_on(self.one_kind, job)

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
        """Return a copy with some attributes changed.

        With other ``pools``, operation costs that were the old GPUs' own tables become the new ones'.
        """
        if "pools" in changes:
            usual = {"operations": OperationCosts({}, {})} if self.usual_operations else {}
            changes = {"gpu": None, "gpus": 1, **usual, **changes}
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]  # the constructor checks


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
    able = {number for part in trace.parts() for number in part.jobs} if trace.gpu is None else None
    problems = [
        Problem(
            f"jobs[{index}]",
            f"job {job.name!r} can run nowhere: no profile has its times and enough memory; give it seconds on a "
            "larger size, or leave it out",
        )
        for index, job in enumerate(trace.jobs)
        if (not trace.whole_run_profiles(job) if able is None else index not in able)
    ]
    raise_any(problems)


def batch_of(trace: Trace) -> Batch:
    """Return the jobs of a trace as the tasks of a batch, all there from the start; refuse jobs that can run nowhere.

    Every schedule of the trace without preemption and migration is one of the batch.
    """
    check_jobs(trace)
    times: list[dict[str, dict[int, float]]] = [{} for _ in trace.jobs]
    memory: list[list[float | None]] = [[] for _ in trace.jobs]
    for part in trace.parts():
        gpu = part.trace.one_kind
        for number, job in zip(part.jobs, part.trace.jobs, strict=True):
            sizes = {profile.compute_slices for profile in whole_run_profiles_on(gpu, job)}
            times[number][gpu.name] = {size: job.times[size] for size in sizes}
            memory[number].append(job.most_gb if job.profile is None else gpu.profile(job.profile).memory_gb)
    tasks = (
        Task(
            job.name,
            by_kind[trace.gpu.name] if trace.gpu else by_kind,
            None if None in needed else min(filter(None, needed)),
        )
        for job, by_kind, needed in zip(trace.jobs, times, memory, strict=True)
    )
    pools = tuple(Pool(kind, len(gpus)) for kind, gpus in trace.kinds.items())
    return Batch(tuple(tasks), pools=pools, operations=trace.operations, name=trace.name)


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
