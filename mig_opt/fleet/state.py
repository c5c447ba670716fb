"""State of a fleet at one moment, and migrations."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated

from mig_opt.batch.batch import LiveInstance
from mig_opt.batch.kinds import kind_name, own_table
from mig_opt.batch.problems import instance_problems
from mig_opt.errors import InputError, Problem, problems_of
from mig_opt.gpu.catalogue import Gpu, KnownName, get_gpu
from mig_opt.gpu.devices import Device, devices_of, entry_of, gpu_name, repeated_devices
from mig_opt.gpu.model import GpuModel, Placement
from mig_opt.rules import check_values, is_listed
from mig_opt.rules.vocabulary import MOST_GPUS, GpuCount, Index, Whole

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
    elsewhere : mapping of str to str
        Profile that the job may have on GPUs of other kinds, by the names of these; on others it may not run. After a
        migration the kind that it left is among them.
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
    elsewhere: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Migration:
    """Migration of a job from one instance to another one, of the same profile unless it is on another kind of GPU.

    The new instance is created while the old one exists, and takes over before that is destroyed.

    Attributes
    ----------
    gpu, start : int
        GPU and start slice of the old instance.
    profile : str
        Profile name of the old instance.
    to_gpu, to_start : int
        GPU and start slice of the new instance.
    name : str
        Name of the job.
    owner : str
        To whom the job belongs.
    to_profile : str
        Profile name of the new instance; empty if it is the same.
    """

    gpu: int
    profile: str
    start: int
    to_gpu: int
    to_start: int
    name: str = ""
    owner: str = ""
    to_profile: str = ""

    def __str__(self) -> str:
        new = f"{self.to_profile}@" if self.to_profile else ""
        return f"{self.profile}@{self.start} of GPU {self.gpu} to {new}{self.to_start} of GPU {self.to_gpu}"

    @property
    def new_profile(self) -> str:
        """Profile name of the new instance."""
        return self.to_profile or self.profile


@dataclass(frozen=True)
class FleetState:
    """MIG GPUs and the instances on them at one moment.

    Attributes
    ----------
    gpu : GpuModel or None
        The kind of GPU; None if there are several.
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
    kinds : tuple of GpuModel
        In place of ``gpu`` and ``gpus``: the kind of each GPU, where they are not all of one.

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

    gpu: Gpu | None
    gpus: GpuCount
    instances: tuple[HeldInstance, ...]
    name: str = field(default="", compare=False)
    nodes: tuple[str, ...] = ()
    uuids: tuple[str, ...] = ()
    manager: str = ""
    budgets: Mapping[str, Annotated[int, Whole(0, MOST_WEIGHT)]] = field(default_factory=dict, hash=False)
    indices: tuple[Annotated[int, Whole(0, MOST_GPUS - 1)], ...] = ()
    kinds: tuple[Gpu, ...] = ()

    def __post_init__(self) -> None:
        if is_listed(self.kinds) and (kinds := tuple(self.kinds)):
            object.__setattr__(self, "kinds", kinds)
            object.__setattr__(self, "gpus", len(kinds))
        check_values(self)
        if self.gpu is None and not self.kinds:
            raise InputError([Problem("gpu", 'is missing; give the kind of GPU, or "kinds" with that of each GPU')])
        if len(set(self.kinds)) == 1:
            object.__setattr__(self, "gpu", self.kinds[0])
            object.__setattr__(self, "kinds", ())

    def _problems(self) -> Iterator[Problem]:
        if self.gpu is not None and self.kinds:
            yield Problem("kinds", "say what each GPU is, and so does gpu; leave out one of the two")
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
        elif self.kinds and None not in self.kinds:
            # Those on GPUs that there are not are told once, with the first kind.
            numbers = dict(enumerate(self.kinds))
            for kind in dict.fromkeys(self.kinds):
                there = self.instances or ()
                own = [one if one and numbers.get(one.gpu, self.kinds[0]) == kind else None for one in there]
                yield from instance_problems({kind: range(len(self.kinds))}, "instances", own)
        for index, held in enumerate(self.instances or ()):
            yield from _elsewhere_problems(f"instances[{index}].elsewhere", (held and held.elsewhere) or {})

    def kind(self, gpu: int) -> GpuModel:
        """Return the kind of a GPU."""
        return self.gpu or entry_of(gpu, self.kinds)

    @property
    def names(self) -> tuple[str, ...]:
        """The name of the kind of each GPU."""
        return tuple(self.kind(gpu).name for gpu in range(self.gpus))

    @property
    def fleet(self) -> str:
        """Number and kind of the GPUs in words."""
        return " + ".join(f"{count} x {name}" for name, count in Counter(self.names).items())

    def parts(self) -> tuple[tuple[FleetState, tuple[int, ...]], ...]:
        """Return a state for each kind of GPU, with the numbers that its GPUs have in this one."""
        found = []
        for kind in dict.fromkeys(map(self.kind, range(self.gpus))):
            gpus = tuple(gpu for gpu in range(self.gpus) if self.kind(gpu) == kind)
            number = {gpu: at for at, gpu in enumerate(gpus)}
            held = (dataclasses.replace(one, gpu=number[one.gpu]) for one in self.instances if one.gpu in number)
            part = FleetState(
                *(kind, len(gpus), tuple(held), self.name),
                nodes=tuple(self.nodes[gpu] for gpu in gpus if self.nodes),
                uuids=tuple(self.uuids[gpu] for gpu in gpus if self.uuids),
                manager=self.manager,
                budgets=self.budgets,
                indices=tuple(self.devices[gpu].index for gpu in gpus if self.devices),
            )
            found.append((part, gpus))
        return tuple(found)

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
        for gpu, profile, start in (*((m.to_gpu, m.new_profile, m.to_start) for m in migrations), *room):
            needed.setdefault(gpu, []).append(self.kind(gpu).placement(profile, start))

        def stays(held: HeldInstance) -> bool:
            there = self.kind(held.gpu).placement(held.profile, held.start)
            return not held.idle or not any(there.excludes(one) for one in needed.get(held.gpu, ()))

        return dataclasses.replace(self, instances=tuple(filter(stays, self.instances)))

    def live_instances(self, busy_until: float | None = None) -> tuple[LiveInstance, ...]:
        """Return the instances as those with which a batch starts.

        Those that something runs on are free after ``busy_until`` seconds, which have to be given then, idle ones at
        once.

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
        busy = self.busy().instances
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
            instances[index] = moved(self, instances[index], migration)
            where[migration.to_gpu, migration.new_profile, migration.to_start] = index
        return dataclasses.replace(self, instances=tuple(instances))


def profile_on(state: FleetState, held: HeldInstance, gpu: int) -> str | None:
    """Return the profile that the job of an instance may have on a GPU; None if it may not run there."""
    kind = state.kind(gpu)
    found: str | None = held.profile if kind == state.kind(held.gpu) else own_table(held.elsewhere, kind)
    return found


def moved(state: FleetState, held: HeldInstance, migration: Migration) -> HeldInstance:
    """Return an instance after its migration."""
    elsewhere = held.elsewhere
    old, new = state.kind(held.gpu).name, state.kind(migration.to_gpu).name
    if old != new:
        others = {name: profile for name, profile in elsewhere.items() if kind_name(name) != new}
        elsewhere = {**others, old: held.profile}
    place = {"gpu": migration.to_gpu, "profile": migration.new_profile, "start": migration.to_start}
    return dataclasses.replace(held, **place, elsewhere=elsewhere)  # type: ignore[arg-type]  # of their types


def _elsewhere_problems(path: str, elsewhere: Mapping[str, str]) -> Iterator[Problem]:
    """Yield what is wrong with the profiles that a job may have on other kinds of GPUs."""
    told = set()
    for name, profile in elsewhere.items():
        if message := KnownName().wrong(name):
            yield Problem(f"{path}.{name}", message)
        elif kind_name(name) in told:
            yield Problem(f"{path}.{name}", f"{kind_name(name)} has its profile already; keep one of the two")
        elif profile is not None:
            wrong = problems_of(get_gpu(name).profile, profile)
            yield from (Problem(f"{path}.{name}", problem.message) for problem in wrong)
        told.add(kind_name(name))
