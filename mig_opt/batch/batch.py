"""Batches: tasks with their execution times, and the GPUs that they run on."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from mig_opt.batch.kinds import (
    OnKinds,
    kinds_of,
    named_tables,
    no_costs,
    profile_set_of,
    seconds_on,
    settled_costs,
    times_on,
)
from mig_opt.batch.problems import (
    NO_COUNT,
    NO_GPU,
    Located,
    costs_problems,
    gpus_problems,
    instance_problems,
    repeated_names,
    task_problems,
    total_problems,
)
from mig_opt.errors import InputError, Problem
from mig_opt.gpu.catalogue import Gpu
from mig_opt.gpu.devices import Device, device_problems
from mig_opt.gpu.model import (
    GivenCosts,
    GpuModel,
    OperationCosts,
    Placement,
    Profile,
    ProfileSet,
)
from mig_opt.gpu.pools import Pool
from mig_opt.method.shown import Shown
from mig_opt.rules import check_values, wrong_type
from mig_opt.rules.vocabulary import (
    MOST_GPUS,
    Costs,
    Gigabytes,
    GpuCount,
    Index,
    Moment,
    Name,
    NotEmpty,
    TimesByKind,
    Wanted,
    is_integer,
)


@dataclass(frozen=True, slots=True)
class Task:
    """A task with its execution time on each instance size.

    Attributes
    ----------
    name : str
        Unique in its batch.
    times : mapping of int to float
        Seconds on an instance with that many compute slices. A size that is missing means that the task cannot run
        there. Times need not fall with size, and may fall faster than the size grows. Where a batch has several kinds
        of GPUs, such a mapping for each kind, by its name; a kind that is missing cannot run the task.
    memory_gb : float, optional
        Memory that the task needs in GB; instances with less nominal memory are forbidden.

    Raises
    ------
    InputError
        If the name is empty, there is no time, or a figure is not finite and > 0.

    Examples
    --------
    >>> Task("gaussian", {1: 22.31, 2: 11.52, 4: 6.39}, memory_gb=3.2).times[2]
    11.52
    """

    name: Name
    times: TimesByKind
    memory_gb: Gigabytes | None = None

    def __post_init__(self) -> None:
        check_values(self)
        if next(iter(self.times)).__class__ is str:  # by kind
            object.__setattr__(self, "times", named_tables("times", self.times))

    def __hash__(self) -> int:
        return hash((self.name, tuple(self.times), self.memory_gb))

    @property
    def by_kind(self) -> bool:
        """True if the times are by kind of GPU."""
        return next(iter(self.times)).__class__ is str

    def times_on(self, gpu: GpuModel) -> Mapping[int, float]:
        """Return the seconds by size on a kind of GPU, empty if there are none.

        With MIG off they are those of the whole GPU with MIG on, unless there are own ones.
        """
        return times_on(self.times, gpu)

    def time_on(self, profile: Profile) -> float | None:
        """Return the seconds on an instance of ``profile``, or None if the task cannot run there."""
        if self.memory_gb is not None and self.memory_gb > profile.memory_gb:
            return None
        return self.profiled(profile)

    def profiled(self, profile: Profile) -> float | None:
        """Return the seconds on an instance of ``profile`` if its memory is enough; None if they are not known."""
        return seconds_on(self.times, profile)

    def seconds(self, profile: Profile) -> float:
        """Return the seconds on an instance of ``profile``, where the task can run."""
        return self.profiled(profile) or 0.0

    def with_times(self, times: TimesByKind) -> Task:
        """Return the task with other times."""
        return Task(self.name, times, self.memory_gb)

    def on(self, gpu: GpuModel) -> Task:
        """Return the task with its times on a kind of GPU that can run it, by size alone; they need no second check."""
        own, settle = object.__new__(Task), object.__setattr__
        settle(own, "name", self.name)
        settle(own, "times", times_on(self.times, gpu))
        settle(own, "memory_gb", self.memory_gb)
        return own


@dataclass(frozen=True, slots=True)
class LiveInstance:
    """An instance that exists when the batch starts.

    Attributes
    ----------
    gpu : int
        Index of the GPU, from 0.
    profile : str
        Profile name.
    start : int
        Start slice.
    free : float
        Seconds after the start of the batch at which the instance has finished its earlier work.
    """

    gpu: Index
    profile: str
    start: Index
    free: Moment = 0.0


@dataclass(frozen=True, slots=True)
class Batch(OnKinds, Shown):
    """Tasks to be run on MIG GPUs so that the last one ends as early as possible.

    Attributes
    ----------
    tasks : tuple of Task
        At least one; names are unique.
    gpu : GpuModel or None
        The kind of GPU, see :func:`mig_opt.get_gpu`; None if there are several.
    gpus : int
        How many of them, of all kinds together.
    operations : OperationCosts
        Seconds per creation and destruction; by default the GPU's own table.
    initial : tuple of LiveInstance
        Instances that exist already. By default the GPUs start empty.
    parallel_operations : bool
        True if creations and destructions on one GPU may overlap in time. By default the driver serialises them.
    name : str
        For display only.
    source : str
        Where the times come from, for display only.
    spread : mapping of str to mapping of int to float
        For tasks whose times were measured, by size: seconds between the shortest and the longest run; for display
        only.
    devices : tuple of Device
        What each GPU is, for scripts, executions and pictures. By default GPU 3 of the batch is number 3 of the machine
        at which a plan is carried out.
    pools : tuple of Pool
        In place of ``gpu`` and ``gpus``: several kinds of GPUs, and how many of each. GPUs are numbered through the
        pools in their order. A batch with one pool is the same as one without.
    kinds : mapping of GpuModel to range
        The kinds of GPUs, each with the numbers of its GPUs, derived from the rest.
    profile_set : ProfileSet
        The profiles that methods have to consider, derived from the rest.

    Raises
    ------
    InputError
        With every problem of the batch, each with its path.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> batch = Batch((Task("a", {1: 4.0, 2: 2.5}), Task("b", {4: 3.0})), get_gpu("A30"))
    >>> [str(placement) for placement, seconds in batch.options(batch.tasks[1])]
    ['4g.24gb@0']
    """

    tasks: Annotated[tuple[Task, ...], NotEmpty("at least one task")]
    gpu: Gpu | None = None
    gpus: GpuCount = 1
    operations: GivenCosts = OperationCosts({}, {})
    initial: tuple[LiveInstance, ...] = ()
    parallel_operations: bool = False
    name: str = dataclasses.field(default="", compare=False)
    source: str = dataclasses.field(default="", compare=False)
    spread: Mapping[str, Costs] = dataclasses.field(default_factory=dict, compare=False, repr=False)
    devices: tuple[Device, ...] = ()
    pools: tuple[Annotated[Pool, Wanted("a Pool, for example Pool(get_gpu('A100'), 2)")], ...] = ()
    kinds: Mapping[GpuModel, range] = dataclasses.field(init=False, repr=False, compare=False)
    profile_set: ProfileSet = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_values(self)
        missing = [Problem(f"pools[{at}].count", NO_COUNT) for at, pool in enumerate(self.pools) if pool.count is None]
        if missing or not (self.gpu or self.pools):
            raise InputError(missing or [Problem("gpu", NO_GPU)])
        self._settle()
        object.__setattr__(self, "profile_set", profile_set_of(tuple(self.kinds), self.tasks, self.initial))

    def _settle(self) -> None:
        """Say what there is in one way: of one kind by size alone, of several by kind; without MIG GPUs are whole."""
        object.__setattr__(self, "kinds", kinds_of(self.gpu, self.gpus, self.pools))
        if len(self.pools) == 1:
            object.__setattr__(self, "gpu", self.pools[0].kind)
            object.__setattr__(self, "gpus", self.pools[0].count)
            object.__setattr__(self, "pools", ())
        elif self.pools:
            object.__setattr__(self, "gpus", sum(pool.count or 0 for pool in self.pools))
        only = self.gpu
        if only and (not only.mig or any(task.by_kind for task in self.tasks)):
            object.__setattr__(self, "tasks", tuple(task.on(only) for task in self.tasks))
        object.__setattr__(self, "operations", settled_costs(self.operations, tuple(self.kinds)))
        whole = [gpu for kind, gpus in self.kinds.items() if not kind.mig for gpu in gpus]
        if whole:
            there = {live.gpu for live in self.initial}
            more = (LiveInstance(gpu, self.kind(gpu).profiles[0].name, 0) for gpu in whole if gpu not in there)
            object.__setattr__(self, "initial", (*self.initial, *more))

    def _problems(self) -> Iterator[Problem]:
        tasks, initial = self.tasks or (), self.initial or ()
        gpus = self.gpus or MOST_GPUS
        pools = self.pools or ()
        yield from repeated_names("tasks", tasks)
        wrong = list(gpus_problems(self.gpu, self.gpus, pools))
        yield from wrong
        if not wrong and all(pool and pool.gpu and pool.mig is not None for pool in pools) and (self.gpu or pools):
            kinds = (self.gpu,) if self.gpu else tuple(pool.kind for pool in pools if pool)
            for index, task in enumerate(tasks):
                yield from () if task is None else task_problems(kinds, task, f"tasks[{index}]")
            if self.gpu or all(pool and pool.count for pool in pools):
                numbers = kinds_of(self.gpu, gpus, pools)
                gpus = max(own.stop for own in numbers.values())
                yield from instance_problems(numbers, "initial", initial)
            yield from costs_problems(kinds, self.operations)
        yield from total_problems(tasks, self.operations, initial)
        yield from device_problems(self.devices or (), gpus)

    def placement(self, located: Located) -> Placement:
        """Return the placement of an instance, or of an entry of a plan, on its GPU."""
        return self.kind(located.gpu).placement(located.profile, located.start)

    @property
    def kind_names(self) -> str:
        """Names of the kinds of GPUs."""
        return " + ".join(kind.name for kind in self.kinds)

    def of_kind(self, kind: GpuModel, tasks: Iterable[int]) -> Batch:
        """Return the batch of some tasks on the GPUs of one kind that they need.

        Parameters
        ----------
        kind : GpuModel
            The kind.
        tasks : iterable of int
            Indices of tasks that the kind can run.

        Returns
        -------
        Batch
            A batch on GPUs that are alike; its GPU 0 is the first one of the kind.
        """
        gpus, own = self.kinds[kind], tuple(self.tasks[task].on(kind) for task in tasks)
        live = tuple(dataclasses.replace(live, gpu=live.gpu - gpus.start) for live in self.initial if live.gpu in gpus)
        # There are no more used ones than tasks, besides those on which something is live.
        needed = max((each.gpu + 1 for each in live), default=0) + len(own)
        return Batch(
            own,
            kind,
            min(len(gpus), needed),
            operations=self.operations.of_kind(kind),
            initial=live,
            parallel_operations=self.parallel_operations,
            name=self.name,
        )

    def placements(self, gpu: int = 0) -> tuple[Placement, ...]:
        """Return the placements that methods have to consider on a GPU, outermost first."""
        return self.kind(gpu).placements(self.profile_set)

    def profiles(self) -> tuple[Profile, ...]:
        """Return the profiles that methods have to consider, largest first, of each kind of GPU."""
        return tuple(profile for kind in self.kinds for profile in kind.profiles_of(self.profile_set))

    def options(self, task: Task) -> tuple[tuple[Placement, float], ...]:
        """Return where ``task`` can run, with the seconds that it takes there."""
        return tuple(
            (placement, seconds)
            for kind in self.kinds
            for placement in kind.placements(self.profile_set)
            if (seconds := task.time_on(placement.profile)) is not None
        )

    def unplaceable(self) -> tuple[int, ...]:
        """Return the indices of the tasks that can run nowhere. If there is one, the batch has no schedule."""
        profiles = self.profiles()
        return tuple(
            index for index, task in enumerate(self.tasks) if all(task.time_on(profile) is None for profile in profiles)
        )

    def usable_profiles(self) -> dict[str, frozenset[Profile]]:
        """Return for each task, by name, the profiles on which it can run."""
        profiles = self.profiles()
        return {task.name: frozenset(p for p in profiles if task.time_on(p) is not None) for task in self.tasks}

    def replace(self, **changes: object) -> Batch:
        """Return a copy with some attributes changed.

        With another ``gpu``, or other ``pools``, operation costs that were the old ones' own tables become the new
        ones'. With another number of GPUs it is not known any more which ones they are, unless ``devices`` says it.
        """
        gpus = changes.get("gpus", self.gpus)
        if not is_integer(gpus) or gpus != self.gpus or "pools" in changes:
            changes.setdefault("devices", ())
        if not changes.keys().isdisjoint(("gpu", "gpus", "pools")):  # instances that are whole GPUs come anew
            changes.setdefault("initial", tuple(live for live in self.initial if live.free or self.has_mig(live.gpu)))
        if ("gpu" in changes or "pools" in changes) and self.usual_operations:
            changes.setdefault("operations", OperationCosts({}, {}))
        if "pools" in changes:
            changes = {"gpu": None, "gpus": 1, **changes}
        elif "gpu" in changes:
            changes.setdefault("pools", ())
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]  # the constructor checks

    def settled(self, by_kind: Mapping[str, Mapping[int, float]]) -> Mapping[Any, Any]:
        """Return a table by kind of GPU as tasks and costs of this batch have it: by size alone if there is one."""
        return next(iter(by_kind.values())) if self.gpu else by_kind

    def of_gpus(self, counts: Sequence[int]) -> Batch:
        """Return the batch with other numbers of GPUs, one for each kind; what is live stays on GPUs of its kind."""
        if self.gpu:
            return self.replace(gpus=counts[0])
        pools = (dataclasses.replace(pool, count=count) for pool, count in zip(self.pools, counts, strict=True))
        first = dict(zip(self.kinds, itertools.accumulate([0, *counts]), strict=False))
        initial = []
        for live in self.initial:
            kind = self.kind(live.gpu)
            initial.append(dataclasses.replace(live, gpu=live.gpu - self.kinds[kind].start + first[kind]))
        return self.replace(pools=tuple(pools), initial=tuple(initial))

    def cost_free(self) -> Batch:
        """Return the batch with creations and destructions that take no time.

        Papers often leave them out. What is scheduled is then another batch: solve, validate and draw that one.

        Examples
        --------
        >>> from mig_opt import get_gpu, solve
        >>> batch = Batch((Task("a", {4: 3.0}),), get_gpu("A30"))
        >>> solve(batch, "miso-opt").makespan, solve(batch.cost_free(), "miso-opt").makespan
        (3.13, 3.0)
        """
        return self.replace(operations=no_costs(self.kinds))


def wrong_batch(batch: object) -> Iterator[Problem]:
    """Yield a problem unless ``batch`` is a Batch."""
    if not isinstance(batch, Batch):
        yield wrong_type("batch", batch, "a Batch, for example load('rodinia-a30')")


def check_placeable(batch: Batch, purpose: str) -> None:
    """Refuse a batch that has no schedule for some purpose, with a problem for each task that can run nowhere."""
    problems = [
        Problem(
            f"tasks[{index}]", f"task {batch.tasks[index].name!r} can run nowhere, so there is no schedule to {purpose}"
        )
        for index in batch.unplaceable()
    ]
    if problems:
        raise InputError(problems)
