"""Problem 3: a trace of jobs that arrive over time at a fleet of GPUs."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from mig_opt.batch.batch import Batch, Task
from mig_opt.errors import InputError, Problem
from mig_opt.gpu.catalogue import operation_problems
from mig_opt.gpu.model import GpuModel, OperationCosts, Profile, ProfileSet, wrong_size
from mig_opt.rules import MOST_GPUS, wrong_integer, wrong_number
from mig_opt.serving.profile_table import smallest_profile

PCIE_LIMIT = 30.08
"""GB/s that a GPU's PCIe 4.0 link reached in the measurements of the PCIe-aware scheduler's paper (section 5.1)."""

MOST_SMS = 1_000_000
"""Streaming multiprocessors that a job may fill; more is taken for a slip of the pen."""


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
        How its memory grows: from a share of its work on (0 to 1, rising) it needs so many GB. By default it needs
        ``memory_gb`` from the start.
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

    Raises
    ------
    InputError
        With every problem of the job.

    Examples
    --------
    >>> Job("train", arrival=12.0, times={2: 30.0}, profile="2g.10gb").work
    30.0
    """

    name: str
    arrival: float
    times: Mapping[int, float]
    profile: str | None = None
    memory_gb: float | None = None
    memory_growth: tuple[tuple[float, float], ...] = ()
    pcie_gbps: float = 0.0
    sensitivity: float = 0.0
    energy_j: float | None = None
    sms: int | None = None
    weight: float = 1.0
    due: float | None = None
    declared: Mapping[int, float] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "times", dict(sorted(self.times.items())))
        object.__setattr__(self, "declared", None if self.declared is None else dict(sorted(self.declared.items())))
        object.__setattr__(self, "memory_growth", tuple((share, gb) for share, gb in self.memory_growth))
        problems = []
        if not self.name.strip():
            problems.append(Problem("name", "must not be empty"))
        problems += wrong_number("arrival", self.arrival, "a finite number of seconds >= 0", at_least=0)
        if not self.times:
            problems.append(Problem("times", "needs the seconds on at least one instance size, is empty"))
        for size, seconds in self.times.items():
            problems += wrong_number(f"times.{size}", seconds, "a finite number of seconds > 0", above=0)
        problems += _declared_problems(self.declared, self.times)
        for name, unit, above in (
            ("memory_gb", "GB >", True),
            ("energy_j", "joules >=", False),
            ("due", "seconds >=", False),
        ):
            if getattr(self, name) is not None:
                least = {"above" if above else "at_least": 0}
                wanted = f"a finite number of {unit} 0 (or left out)"
                problems += wrong_number(name, getattr(self, name), wanted, **least)
        for name, wanted in (("pcie_gbps", "a finite number of GB/s >= 0"), ("sensitivity", "a finite number >= 0")):
            value = getattr(self, name)
            if not (isinstance(value, int | float) and 0 <= value < math.inf):
                problems.append(Problem(name, f"must be {wanted}, is {value!r:.60}"))
        if self.sms is not None:
            problems += wrong_integer("sms", self.sms, 1, MOST_SMS)
        problems += wrong_number("weight", self.weight, "a finite number > 0", above=0)
        problems += _growth_problems(self.memory_growth, self.memory_gb)
        if problems:
            raise InputError(problems)

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
        """Return the share of its work at which it needs more memory than so many GB; 1 if it never does."""
        if self.memory_growth:
            return next((share for share, gb in self.memory_growth if gb > memory_gb), 1.0)
        return 0.0 if self.memory_gb is not None and self.memory_gb > memory_gb else 1.0

    def memory_at(self, share: float) -> float:
        """Return the GB that it needs when it has done a share of its work."""
        if self.memory_growth:
            return next((gb for begin, gb in reversed(self.memory_growth) if begin <= share), 0.0)
        return self.memory_gb or 0.0


def _declared_problems(declared: Mapping[int, float] | None, times: Mapping[int, float]) -> Iterator[Problem]:
    if declared is None:
        return
    for size, seconds in declared.items():
        yield from wrong_number(f"declared.{size}", seconds, "a finite number of seconds > 0", above=0)
    if times and declared.keys() != times.keys():
        sizes, wanted = (", ".join(map(str, known)) or "none" for known in (declared, times))
        yield Problem("declared", f"must have the sizes of times ({wanted}), has {sizes}")


def _growth_problems(growth: Sequence[tuple[float, float]], most: float | None) -> Iterator[Problem]:
    for index, (share, gb) in enumerate(growth):
        if not 0 <= share < 1:
            yield Problem(f"memory_growth[{index}]", f"its share of the work must be from 0 to below 1, is {share}")
        if not 0 < gb < math.inf:
            yield Problem(f"memory_growth[{index}]", f"must have a finite number of GB > 0, has {gb}")
    if any(one[0] >= two[0] for one, two in itertools.pairwise(growth)):
        yield Problem("memory_growth", "shares of the work must rise from entry to entry")
    if growth and most is not None and max(gb for _, gb in growth) > most:
        yield Problem(
            "memory_gb", f"{most:g} GB is less than memory_growth reaches; the most counts, so raise or drop it"
        )


@dataclass(frozen=True)
class Trace:
    """Jobs in the order in which they arrive, and the fleet.

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

    jobs: tuple[Job, ...]
    gpu: GpuModel
    gpus: int = 1
    operations: OperationCosts = OperationCosts({}, {})
    pcie_limit: float = PCIE_LIMIT
    name: str = dataclasses.field(default="", compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.gpu, GpuModel):
            raise InputError([Problem("gpu", f"must be a GpuModel, for example get_gpu('A100'), is {self.gpu!r:.60}")])
        if not self.operations.create and not self.operations.destroy:
            object.__setattr__(self, "operations", self.gpu.operation_costs)
        problems = list(trace_problems(self.gpu, self.jobs))
        problems += operation_problems(self.gpu, self.operations)
        problems += wrong_integer("gpus", self.gpus, 1, MOST_GPUS)
        problems += wrong_number("pcie_limit", self.pcie_limit, "a finite number of GB/s > 0", above=0)
        if problems:
            raise InputError(problems)
        object.__setattr__(self, "jobs", tuple(sorted(self.jobs, key=lambda job: job.arrival)))

    @property
    def profile_set(self) -> ProfileSet:
        """The profiles that instances may have: variants with attributes only if a job asks for one."""
        asked = {job.profile for job in self.jobs if job.profile is not None}
        return "all" if any(self.gpu.profile(name).attributes for name in asked) else "double-memory"

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

    def slowdown(self, job: Job, competitors: int) -> float:
        """Return by how much a job is slower than alone where so many PCIe-bound jobs, itself included, share a GPU."""
        return max(1.0, job.sensitivity * job.pcie_gbps * competitors / self.pcie_limit)

    def pcie_factor(self, job: Job) -> float:
        """Return by how much a job slows down for each PCIe-bound job on its GPU; 0 if PCIe does not hold it up."""
        return job.sensitivity * job.pcie_gbps / self.pcie_limit

    def as_declared(self) -> Trace:
        """Return the trace that schedulers know: jobs with declared times have these as their times.

        Returns
        -------
        Trace
            The trace itself if no job has any.

        Examples
        --------
        >>> from mig_opt import get_gpu
        >>> trace = Trace((Job("a", 0.0, {1: 60.0}, declared={1: 45.0}),), get_gpu("A30"))
        >>> trace.as_declared().jobs[0].times
        {1: 45.0}
        """
        if all(job.declared is None for job in self.jobs):
            return self
        jobs = (
            job if job.declared is None else dataclasses.replace(job, times=job.declared, declared=None)
            for job in self.jobs
        )
        return self.replace(jobs=tuple(jobs))

    def replace(self, **changes: object) -> Trace:
        """Return a copy with some attributes changed."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]  # the constructor checks


@lru_cache(maxsize=4096)  # few kinds of jobs are many jobs
def _smallest_profiles(gpu: GpuModel, sizes: tuple[int, ...], memory_gb: float) -> tuple[Profile, ...]:
    found = (smallest_profile(gpu, size, memory_gb) for size in sizes)
    return tuple(profile for profile in found if profile is not None)


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


def trace_problems(gpu: GpuModel, jobs: Sequence[Job | None]) -> Iterator[Problem]:
    """Yield everything that is wrong with the jobs of a trace beyond each for itself; ``None`` is one not read."""
    if not jobs:
        yield Problem("jobs", "needs at least one job, is empty")
    first: dict[str, int] = {}
    for index, job in enumerate(jobs):
        if job is None:
            continue
        if first.setdefault(job.name, index) != index:
            message = f"{job.name!r} is the name of jobs[{first[job.name]}] already; give each job its own"
            yield Problem(f"jobs[{index}].name", message)
        for size in job.times:
            yield from wrong_size(f"jobs[{index}].times.{size}", gpu, size)
        if job.profile is not None:
            yield from _profile_problems(gpu, job, f"jobs[{index}].profile")


def _profile_problems(gpu: GpuModel, job: Job, path: str) -> Iterator[Problem]:
    assert job.profile is not None
    try:
        profile = gpu.profile(job.profile)
    except InputError as error:
        yield from (Problem(path, problem.message) for problem in error.problems)
        return
    if profile.compute_slices not in job.times:
        message = f"times has no seconds for its {profile.compute_slices} compute slices; add them"
        yield Problem(path, message)
