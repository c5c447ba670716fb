"""State of a fleet at one moment, and migrations."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated

from mig_opt.batch.batch import LiveInstance
from mig_opt.batch.problems import instance_problems
from mig_opt.errors import InputError, Problem
from mig_opt.gpu.catalogue import Gpu
from mig_opt.gpu.devices import Device, devices_of, gpu_name, repeated_devices
from mig_opt.gpu.model import Placement
from mig_opt.method.report import Facts
from mig_opt.method.result import Result
from mig_opt.rules import check_values
from mig_opt.rules.vocabulary import MOST_GPUS, GpuCount, Index, Text, Whole
from mig_opt.texts import plural

_GOALS = {"fragmentation": "least fragmentation", "free": "most free", "migrations": "fewest migrations"}

MOST_WEIGHT = 1_000_000
"""Largest weight of a migration."""


@dataclass(frozen=True, slots=True)
class HeldInstance:
    """Instance that something runs on, or that is idle.

    Attributes
    ----------
    gpu : int
        Index of the GPU, from 0.
    profile : str
        Profile name.
    start : int
        Start slice.
    name : str
        Name of the job on it, for display; several may have the same.
    pinned : bool
        True if it must stay where it is.
    owner : str
        To whom the job belongs, for limits on the migrations of one owner at a time: a deployment, a user. Empty: the
        job belongs to nobody else.
    idle : bool
        True if nothing runs on it, so that it can be destroyed whenever it is in the way.
    weight : int
        Weight of its migration, for goals that count weights.
    uuid : str
        UUID of the MIG device, where it is known.
    """

    gpu: Index
    profile: str
    start: Index
    name: str = ""
    pinned: bool = False
    owner: str = ""
    idle: bool = False
    weight: Annotated[int, Whole(1, MOST_WEIGHT)] = 1
    uuid: str = ""


@dataclass(frozen=True, slots=True)
class Migration:
    """Migration of a job from one instance to another one of the same profile.

    The new instance is created while the old one exists, and takes over before that is destroyed.

    Attributes
    ----------
    gpu, start : int
        GPU and start slice of the old instance.
    profile : str
        Profile name of both.
    to_gpu, to_start : int
        GPU and start slice of the new instance.
    name : str
        Name of the job.
    owner : str
        To whom the job belongs.
    """

    gpu: int
    profile: str
    start: int
    to_gpu: int
    to_start: int
    name: str = ""
    owner: str = ""

    def __str__(self) -> str:
        return f"{self.profile}@{self.start} of GPU {self.gpu} to {self.to_start} of GPU {self.to_gpu}"


@dataclass(frozen=True)
class FleetState:
    """Identical MIG GPUs and the instances on them at one moment.

    Attributes
    ----------
    gpu : GpuModel
        The kind of GPU.
    gpus : int
        Number of GPUs.
    instances : tuple of HeldInstance
        In any order.
    name : str
        For display only.
    nodes : tuple of str
        Name of the node of each GPU; empty if there are none.
    uuids : tuple of str
        UUID of each GPU, where it is known; empty if none is.
    indices : tuple of int
        Index of each GPU in its node, as nvidia-smi counts. Empty: the GPUs of each node are 0, 1 and so on.
    manager : str
        Program that owns the partitions, so that nobody else may create or destroy instances: ``dra`` (NVIDIA's DRA
        driver), ``hami``, ``device-plugin`` or ``slurm``. Empty if there is none.
    budgets : mapping of str to int
        Disruption budgets: how many instances of an owner may migrate at a time; with 0 they stay.

    Raises
    ------
    InputError
        With everything that keeps the instances from existing together, each with its path.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> state = FleetState(get_gpu("A100"), 2, (HeldInstance(0, "1g.5gb", 2, "chat"), HeldInstance(1, "4g.20gb", 0)))
    >>> moved = state.after([Migration(0, "1g.5gb", 2, to_gpu=1, to_start=6)])
    >>> [(instance.gpu, instance.profile, instance.start) for instance in moved.instances]
    [(1, '1g.5gb', 6), (1, '4g.20gb', 0)]
    """

    gpu: Gpu
    gpus: GpuCount
    instances: tuple[HeldInstance, ...]
    name: str = field(default="", compare=False)
    nodes: tuple[str, ...] = ()
    uuids: tuple[str, ...] = ()
    manager: Annotated[str, Text("the name of a program")] = ""
    budgets: Mapping[str, Annotated[int, Whole(0, MOST_WEIGHT)]] = field(default_factory=dict, hash=False)
    indices: tuple[Annotated[int, Whole(0, MOST_GPUS - 1)], ...] = ()

    def __post_init__(self) -> None:
        check_values(self)

    def _problems(self) -> Iterator[Problem]:
        lists = {"nodes": self.nodes, "indices": self.indices, "uuids": self.uuids}
        for name, entries in lists.items():
            if self.gpus and entries and len(entries) != self.gpus:
                message = f"has {len(entries)} entries for {self.gpus} GPUs; give one for each GPU, or none"
                yield Problem(name, message)
        known = [entries for entries in lists.values() if entries != ()]
        if all(entries and None not in entries for entries in known) and len(set(map(len, known))) == 1:
            paths = {"index": "indices", "uuid": "uuids"}
            yield from repeated_devices(self.devices, lambda position, key: f"{paths[key]}[{position}]")
        if self.gpu:
            yield from instance_problems({self.gpu: range(self.gpus or MOST_GPUS)}, "instances", self.instances or ())

    @cached_property
    def devices(self) -> tuple[Device, ...]:
        """The GPUs by the names that are known of them; empty if none is."""
        return devices_of(self.nodes, self.indices, self.uuids)

    @property
    def idle(self) -> tuple[HeldInstance, ...]:
        """Instances that nothing runs on."""
        return tuple(held for held in self.instances if held.idle)

    def stays(self, held: HeldInstance) -> bool:
        """Return True if an instance must stay where it is: it is pinned, or none of its owner may migrate."""
        return held.pinned or self.budgets.get(held.owner or held.name, 1) == 0

    def busy(self) -> FleetState:
        """Return the state without the instances that nothing runs on."""
        if not self.idle:
            return self
        return dataclasses.replace(self, instances=tuple(held for held in self.instances if not held.idle))

    def without_idle_in_the_way(
        self, migrations: Iterable[Migration], room: Iterable[tuple[int, str, int]] = ()
    ) -> FleetState:
        """Return the state without the idle instances that have to make way for migrations and new instances.

        Parameters
        ----------
        migrations : iterable of Migration
            Each needs the place that it ends at.
        room : iterable of (int, str, int)
            GPU, profile name and start slice of each new instance.

        Returns
        -------
        FleetState
            All other instances.

        Raises
        ------
        InputError
            If there is no such placement.
        """
        needed: dict[int, list[Placement]] = {}
        for gpu, profile, start in (*((m.to_gpu, m.profile, m.to_start) for m in migrations), *room):
            needed.setdefault(gpu, []).append(self.gpu.placement(profile, start))

        def stays(held: HeldInstance) -> bool:
            there = self.gpu.placement(held.profile, held.start)
            return not held.idle or not any(there == one or there.excludes(one) for one in needed.get(held.gpu, ()))

        return dataclasses.replace(self, instances=tuple(filter(stays, self.instances)))

    def live_instances(self, busy_until: float | None = None) -> tuple[LiveInstance, ...]:
        """Return the instances as those with which a batch starts.

        Parameters
        ----------
        busy_until : float, optional
            Seconds after which the instances that something runs on are free; needed if there are any. Idle ones are
            free at once.

        Raises
        ------
        InputError
            If something runs and it is not known for how long.

        Examples
        --------
        >>> from mig_opt import Batch, Task, get_gpu
        >>> held = HeldInstance(0, "3g.20gb", 4, "train"), HeldInstance(0, "1g.5gb", 0, idle=True)
        >>> state = FleetState(get_gpu("A100"), 1, held)
        >>> [(live.profile, live.free) for live in state.live_instances(busy_until=60)]
        [('3g.20gb', 60), ('1g.5gb', 0.0)]
        """
        busy = [held for held in self.instances if not held.idle]
        if busy and busy_until is None:
            names = f"{busy[0].profile}@{busy[0].start} of GPU {gpu_name(self.devices, busy[0].gpu)}"
            more = f" and {len(busy) - 1} more" if len(busy) > 1 else ""
            message = f"say after how many seconds the instances in use are free ({names}{more})"
            raise InputError([Problem("busy_until", message)])
        return tuple(
            LiveInstance(held.gpu, held.profile, held.start, 0.0 if held.idle or busy_until is None else busy_until)
            for held in self.instances
        )

    def free(self, kind: str) -> tuple[int | str, ...]:
        """Return the GPUs, or with ``nodes`` the names of the nodes, that have no instances that something runs on."""
        used = {held.gpu for held in self.instances if not held.idle}
        if kind != "nodes":
            return tuple(gpu for gpu in range(self.gpus) if gpu not in used)
        full = {self.nodes[gpu] for gpu in used}
        return tuple(node for node in dict.fromkeys(self.nodes) if node not in full)

    def on(self, gpu: int) -> tuple[HeldInstance, ...]:
        """Return the instances of a GPU, by start slice."""
        return tuple(sorted((i for i in self.instances if i.gpu == gpu), key=lambda instance: instance.start))

    def after(self, migrations: Iterable[Migration]) -> FleetState:
        """Return what there is after some migrations, one after the other.

        Raises
        ------
        InputError
            If there is nothing to migrate where one of them says, or the instances cannot exist at the end.
        """
        where = {(held.gpu, held.profile, held.start): index for index, held in enumerate(self.instances)}
        instances = list(self.instances)
        for number, migration in enumerate(migrations):
            index = where.pop((migration.gpu, migration.profile, migration.start), None)
            if index is None:
                message = f"there is no {migration.profile}@{migration.start} on GPU {migration.gpu} then"
                raise InputError([Problem(f"migrations[{number}]", message)])
            instances[index] = dataclasses.replace(instances[index], gpu=migration.to_gpu, start=migration.to_start)
            where[migration.to_gpu, migration.profile, migration.to_start] = index
        return dataclasses.replace(self, instances=tuple(instances))


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """Migrations of instances, and the state that they lead to.

    Attributes
    ----------
    migrations : tuple of Migration
        In an order in which each can be done.
    fragmentation : float
        Mean fragmentation of the GPUs at the end, from 0 to 1.
    room : tuple of (int, str, int)
        GPU, profile and start slice of the instances for which room was asked: where they can all be created at the
        end.
    rounds : tuple of int
        Round of each migration, from 1. Those of a round can be done together, within the limits of their owners.
    weight : int
        Weight of the migrations: their number unless some count more.
    free : tuple of int or str
        GPUs, or nodes by their names, that are empty at the end, if that is the goal.
    """

    migrations: tuple[Migration, ...]
    fragmentation: float
    room: tuple[tuple[int, str, int], ...] = ()
    rounds: tuple[int, ...] = ()
    weight: int = 0
    free: tuple[int | str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DefragmentationResult(Result[MigrationPlan]):
    """Outcome of :func:`mig_opt.defragment`: its plan is a :class:`mig_opt.fleet.state.MigrationPlan`.

    The status is ``optimal`` if no plan is better in any goal. The lower bound is a weight of migrations, which is
    their number unless instances have weights: no plan that ends with as little fragmentation, with the room that was
    asked for, or with as many GPUs or nodes free, has less. The trajectory is about the first goal, which is the mean
    fragmentation unless there is another. ``proven`` has some of ``fragmentation``, ``free`` and ``migrations``.
    Fragmentation is the mean over the GPUs of the fragmentation cost (the fragmentation-aware paper, section IV-B).

    Attributes
    ----------
    state : FleetState
        State before the migrations.
    fragmentation_before : float
        Its mean fragmentation, from 0 to 1.
    least_fragmentation : float
        No allowed plan ends with less fragmentation; 0 where that was not asked for.
    freeing : str
        ``gpus`` or ``nodes`` if these are to be free, else empty.
    free_before : tuple of int or str
        Those that are free before, if that is the goal.
    most_free : int
        No allowed plan ends with more of them free; 0 where that was not asked for.
    """

    lower_bound: int
    state: FleetState
    fragmentation_before: float
    least_fragmentation: float
    freeing: str = ""
    free_before: tuple[int | str, ...] = ()
    most_free: int = 0

    @property
    def migrations(self) -> tuple[Migration, ...] | None:
        """Migrations in an order in which each can be done; None if no plan was found."""
        return None if self.plan is None else self.plan.migrations

    @property
    def objective(self) -> int | None:
        """Weight of the migrations, which is their number unless instances have weights; None without a plan."""
        return None if self.plan is None else self.plan.weight

    @property
    def fragmentation(self) -> float | None:
        """Mean fragmentation at the end, from 0 to 1; None without a plan."""
        return None if self.plan is None else self.plan.fragmentation

    @property
    def room(self) -> tuple[tuple[int, str, int], ...]:
        """Places where the instances for which room was asked can be created: GPU, profile and start slice."""
        return () if self.plan is None else self.plan.room

    @property
    def free(self) -> tuple[int | str, ...]:
        """GPUs, or nodes by their names, that are free at the end, if that is the goal."""
        return () if self.plan is None else self.plan.free

    @property
    def rounds(self) -> tuple[tuple[Migration, ...], ...]:
        """Migrations of each round: those of one can be done together, within the limits of their owners."""
        if self.plan is None:
            return ()
        numbered = list(zip(self.plan.rounds, self.plan.migrations, strict=True))
        last = max(self.plan.rounds, default=0)
        return tuple(tuple(step for number, step in numbered if number == at) for at in range(1, last + 1))

    @property
    def after(self) -> FleetState | None:
        """State after the migrations; None without a plan."""
        return None if self.plan is None else self.state.after(self.plan.migrations)

    def figures(self) -> Facts:
        """Return migrations with their bound, what they achieve, and what is proven."""
        state, plan, facts = self.state, self.plan, list[tuple[str, str | None]]()
        if plan is not None:
            weighed = plan.weight != len(plan.migrations)
            bound = f"a weight of {self.lower_bound}" if weighed else plural(self.lower_bound, "migration")
            of = len(set(state.nodes)) if self.freeing == "nodes" else state.gpus
            free = f"{len(self.free_before)} before, {len(self.free)} after, at most {self.most_free} of {of}"
            room = (f"{profile}@{start} of GPU {gpu_name(state.devices, gpu)}" for gpu, profile, start in plan.room)
            facts = [
                ("migrations", str(len(plan.migrations))),
                ("weight", str(plan.weight) if weighed else None),
                ("lower bound", bound),
                ("rounds", str(len(self.rounds)) if len(self.rounds) > 1 else None),
                (f"free {self.freeing}", free if self.freeing else None),
                ("fragmentation", f"{self.fragmentation_before:.4f} before, {plan.fragmentation:.4f} after"),
                ("room for", ", ".join(room) or None),
            ]
        return [*facts, ("proven", ", then ".join(_GOALS[goal] for goal in self.proven) or None)]
