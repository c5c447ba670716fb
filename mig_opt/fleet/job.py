"""Jobs of traces: their work by kind of GPU and size, what else they need, and the profiles that they may run on."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any

from mig_opt.batch.kinds import kind_name, named_tables, own_table, seconds_on, times_on
from mig_opt.batch.problems import other_kinds, times_problems
from mig_opt.errors import InputError, Problem
from mig_opt.gpu.model import GpuModel, Profile
from mig_opt.rules import check_values
from mig_opt.rules.vocabulary import Gigabytes, Moment, Name, NameByKind, Number, TimesByKind, Wanted, Whole
from mig_opt.serving.profile_table import smallest_profile

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
        means that the job cannot run there. Where a trace has several kinds of GPUs, such a mapping for each kind, by
        its name; a kind that is missing cannot run the job.
    profile : str or mapping of str to str, optional
        The profile that it asks for; its size is one of ``times``. By default the scheduler chooses. Where there are
        several kinds of GPUs, the profile for each kind, by its name; on a kind that is missing the scheduler chooses.
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
    times: TimesByKind
    profile: NameByKind | None = None
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
    declared: TimesByKind | None = None
    crashes: tuple[CrashShare, ...] = ()

    def __post_init__(self) -> None:
        check_values(self)
        for key in ("times", "profile", "declared"):
            value: Any = getattr(self, key)
            if value.__class__ is not str and value and next(iter(value)).__class__ is str:
                object.__setattr__(self, key, named_tables(key, value))

    def _problems(self) -> Iterator[Problem]:
        if self.times and self.declared:
            pairs: list[tuple[Any, Any]] = [(self.declared, self.times)]
            told = {kind_name(str(kind)): own for kind, own in self.declared.items() if self.by_kind}
            if told and told.keys() == {kind_name(str(kind)) for kind in self.times}:
                pairs = [(told[kind_name(str(kind))], times) for kind, times in self.times.items()]
            for declared, times in pairs:
                if isinstance(declared, Mapping) and isinstance(times, Mapping) and declared.keys() != times.keys():
                    given, wanted = (", ".join(map(str, known)) for known in (declared, times))
                    what = "sizes" if next(iter(times)).__class__ is int else "kinds of GPUs"
                    yield Problem("declared", f"must have the {what} of times ({wanted}), has {given}")
        growth = [step for step in self.memory_growth or () if step and None not in step]
        if any(one[0] >= two[0] for one, two in itertools.pairwise(growth)):
            yield Problem("memory_growth", "shares of the work must rise from entry to entry")
        if growth and self.memory_gb is not None and max(gb for _, gb in growth) > self.memory_gb:
            message = f"{self.memory_gb:g} GB is less than memory_growth reaches; the most counts, so raise or drop it"
            yield Problem("memory_gb", message)

    def __hash__(self) -> int:
        profile = self.profile if self.profile.__class__ is str else tuple(self.profile or ())
        return hash((self.name, self.arrival, tuple(self.times), profile))

    @property
    def by_kind(self) -> bool:
        """True if the times are by kind of GPU."""
        return next(iter(self.times)).__class__ is str

    @property
    def work(self) -> float:
        """Seconds on the smallest size that it can run on; of several kinds of GPUs, on that where these are least."""
        return work_of(self.times)

    def on(self, gpu: GpuModel) -> Job | None:
        """Return the job as it is on one kind of GPU; None if this cannot run it.

        With MIG off its times are those of the whole GPU with MIG on, unless there are own ones, and any profile is the
        whole.
        """
        if gpu.mig and not self.by_kind and not isinstance(self.profile, dict):
            return self
        times = times_on(self.times, gpu)
        declared = self.declared and times_on(self.declared, gpu)
        asked = self.asked(gpu.name)
        return dataclasses.replace(self, times=times, profile=asked, declared=declared) if times else None

    def asked(self, gpu: str) -> str | None:
        """Return the profile that it asks for on a kind of GPU, by the name of the kind; None if it asks for none."""
        found: str | None = self.profile.get(gpu) if isinstance(self.profile, dict) else self.profile
        return found

    def seconds(self, profile: Profile) -> float | None:
        """Return the seconds that all of its work takes on an instance of a profile; None where it cannot run."""
        return seconds_on(self.times, profile)

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


def work_of(times: TimesByKind) -> float:
    """Return the seconds on the smallest size; of several kinds of GPUs, on that where these are least."""
    tables: Iterable[Mapping[int, float]] = times.values() if next(iter(times)).__class__ is str else [times]
    return min(next(iter(table.values())) for table in tables)


def with_each_time(times: TimesByKind, change: Callable[[float], float]) -> TimesByKind:
    """Return times with each one changed."""
    return {
        key: with_each_time(value, change) if isinstance(value, Mapping) else change(value)
        for key, value in times.items()
    }


@lru_cache(maxsize=4096)  # few kinds of jobs are many jobs
def _smallest_profiles(gpu: GpuModel, sizes: tuple[int, ...], memory_gb: float) -> tuple[Profile, ...]:
    found = (smallest_profile(gpu, size, memory_gb) for size in sizes)
    return tuple(profile for profile in found if profile is not None)


def profiles_on(gpu: GpuModel, job: Job, least_gb: float = 0.0) -> tuple[Profile, ...]:
    """Return the profiles of a kind of GPU that a job may run on, as :meth:`Trace.profiles` does; times are by size."""
    if job.profile is not None:
        profile = gpu.profile(job.profile)
        return (profile,) if profile.memory_gb >= least_gb else ()
    return _smallest_profiles(gpu, tuple(job.times), max(least_gb, job.memory_gb or 0.0))


def whole_run_profiles_on(gpu: GpuModel, job: Job) -> tuple[Profile, ...]:
    """Return the profiles of a kind on which a job can run from its begin to its end, however its memory grows."""
    return profiles_on(gpu, job, 0.0 if job.profile else job.most_gb or 0.0)


def has_room(gpu: GpuModel, job: Job) -> bool:
    """Return True if an instance on which a job may run from begin to end has all the memory that it will need."""
    return any(profile.memory_gb >= (job.most_gb or 0.0) for profile in whole_run_profiles_on(gpu, job))


def job_problems(kinds: Sequence[GpuModel], job: Job, path: str) -> Iterator[Problem]:
    """Yield what is wrong with the times and the profile of a job on some kinds of GPUs."""
    times, profile = job.times or {}, job.profile
    yield from times_problems(kinds, times, f"{path}.times")
    if isinstance(profile, Mapping):
        yield from other_kinds(f"{path}.profile", profile, kinds)
        asked = [(gpu, own_table(profile, gpu), f"{path}.profile.{gpu.name}") for gpu in kinds]
    elif profile is not None and len(kinds) > 1:
        example = f'{{"{kinds[0].name}": "{kinds[0].profiles[-1].name}", ...}}'
        yield Problem(f"{path}.profile", f"does not say on which kind of GPU; give it by kind: {example}")
        return
    else:
        asked = [(kinds[0], profile, f"{path}.profile")]
    for gpu, name, where in asked:
        yield from _profile_problems(gpu, name, times, where)


def _profile_problems(gpu: GpuModel, name: str | None, times: Mapping[Any, Any], path: str) -> Iterator[Problem]:
    """Yield what is wrong with the profile that a job asks for on a kind of GPU."""
    if name is None:
        return
    try:
        profile = gpu.profile(name)
    except InputError as error:
        yield from (Problem(path, problem.message) for problem in error.problems)
        return
    own = times and times_on(times, gpu)
    if times and profile.compute_slices not in (own or {}):
        yield Problem(path, f"times has no seconds for its {profile.compute_slices} compute slices; add them")
