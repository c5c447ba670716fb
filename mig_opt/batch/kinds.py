"""Kinds of GPUs of a batch or a trace: their names, their numbers, and what is given by kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mig_opt.errors import InputError, Problem, raise_any
from mig_opt.gpu.catalogue import KnownName, known_gpu, with_mig
from mig_opt.gpu.model import WITHOUT_MIG, GpuModel, OperationCosts, Profile, ProfileSet
from mig_opt.gpu.pools import Pool
from mig_opt.rules import ReadOnlyDict


def kind_name(name: str) -> str:
    """Return the name of a kind of GPU for its name or an alias."""
    found = known_gpu(name)
    return found.name if found else name


def kinds_named(name: str, kinds: Sequence[GpuModel]) -> list[GpuModel]:
    """Return those of some kinds of GPUs that a name or an alias stands for, whether their MIG is on or off."""
    known = kind_name(name)
    return [gpu for gpu in kinds if known == gpu.name or (not gpu.mig and known == with_mig(gpu).name)]


def kinds_of(gpu: GpuModel | None, gpus: int, pools: Sequence[Pool | None]) -> Mapping[GpuModel, range]:
    """Return the kinds of GPUs, each with the numbers of its GPUs."""
    if gpu:
        return {gpu: range(gpus)}
    found: dict[GpuModel, range] = {}
    first = 0
    for pool in pools:
        if pool and pool.count:
            found[pool.kind] = range(first, first + pool.count)
            first += pool.count
    return found


def named_tables(path: str, tables: Mapping[Any, Any]) -> ReadOnlyDict:
    """Return what is given by kind of GPU with the names that the catalogue has; refuse unknown and repeated ones."""
    own: dict[Any, Any] = {}
    problems = []
    for kind, table in tables.items():
        found = known_gpu(str(kind))
        if found is None:
            problems.append(Problem(f"{path}.{kind}", KnownName().wrong(kind)))
        elif found.name in own:
            problems.append(Problem(f"{path}.{kind}", f"{found.name} has its {path} already; keep one of the two"))
        own[found.name if found else kind] = table
    raise_any(problems)
    return ReadOnlyDict(own)


def times_on(times: Mapping[Any, Any], gpu: GpuModel) -> Mapping[int, float]:
    """Return the seconds by size on a kind of GPU out of times by size or by kind; empty if there are none.

    With MIG off they are those of the whole GPU with MIG on, unless there are own ones.
    """
    if next(iter(times)).__class__ is str:
        times = times.get(gpu.name) or times.get(with_mig(gpu).name) or {}
    return times if gpu.mig else ReadOnlyDict((size, times[size]) for size in gpu.sizes if size in times)


def seconds_on(times: Mapping[Any, Any], profile: Profile) -> float | None:
    """Return the seconds on an instance out of times by size or by kind, as :func:`times_on` does; None without any."""
    found: float | None = times.get(profile.compute_slices)
    if found is None:
        own = times.get(profile.gpu) or times.get(profile.gpu.removesuffix(WITHOUT_MIG)) or {}
        found = own.get(profile.compute_slices)
    return found


def own_table(table: Mapping[Any, Any], gpu: GpuModel) -> Any:
    """Return the part of a table by kind that is of a kind of GPU; None if there is none."""
    return next((part for name, part in table.items() if kind_name(name) == gpu.name), None)


def joined_costs(costs: Mapping[GpuModel, OperationCosts]) -> OperationCosts:
    """Return the costs of operations of several kinds, by kind; those of the only one as they are."""
    if len(costs) == 1:
        return next(iter(costs.values()))
    create, destroy = ({kind.name: getattr(own, key) for kind, own in costs.items()} for key in ("create", "destroy"))
    sources = "; ".join(dict.fromkeys(filter(None, (own.source for kind, own in costs.items() if kind.mig))))
    return OperationCosts(create, destroy, sources, assumed=any(own.assumed for own in costs.values()))


def settled_costs(costs: OperationCosts | None, kinds: Sequence[GpuModel]) -> OperationCosts:
    """Return costs of operations by kind, of one kind by size alone; the usual ones in place of none."""
    if costs is None or not (costs.create or costs.destroy):
        return joined_costs({kind: kind.operation_costs for kind in kinds})
    both: tuple[Mapping[Any, Any], Mapping[Any, Any]] = costs.create, costs.destroy
    if not isinstance(next(iter(both[0]), 0), str):
        return costs if kinds[0].mig else kinds[0].operation_costs
    own = {}
    for kind in kinds:
        create, destroy = (own_table(table, kind) for table in both)
        own[kind] = kind.operation_costs
        if create and destroy and kind.mig:
            own[kind] = OperationCosts(create, destroy, costs.source, costs.assumed)
    return joined_costs(own)


class OnKinds:
    """Problem on GPUs of one kind or several, which are numbered through their kinds."""

    __slots__ = ()
    gpu: GpuModel | None
    operations: OperationCosts
    kinds: Mapping[GpuModel, range]

    @property
    def label(self) -> str:
        """Number and kind of the GPUs in words."""
        return " + ".join(f"{len(gpus)} x {kind.name}" for kind, gpus in self.kinds.items())

    @property
    def usual_operations(self) -> bool:
        """True if the costs of operations are the GPUs' own tables."""
        usual = joined_costs({kind: kind.operation_costs for kind in self.kinds})
        costs = self.operations
        return costs == usual if self.gpu else (costs.create, costs.destroy) == (usual.create, usual.destroy)

    def kind(self, gpu: int) -> GpuModel:
        """Return the kind of the GPU of that number; where there are several kinds, refuse one that no GPU has."""
        found = self.gpu or next((kind for kind, gpus in self.kinds.items() if gpu in gpus), None)
        if found is None:
            raise InputError([Problem("gpu", f"there is no GPU {gpu} among {self.label}, numbered from 0")])
        return found

    def has_mig(self, gpu: int) -> bool:
        """Return True if MIG is on at the GPU of that number."""
        return self.kind(gpu).mig


def no_costs(kinds: Iterable[GpuModel]) -> OperationCosts:
    """Return costs of operations on GPUs of some kinds that take no time."""
    return joined_costs({kind: OperationCosts.zero(kind) for kind in kinds})


def profile_set_of(kinds: Sequence[GpuModel], tasks: Sequence[Any], initial: Sequence[Any]) -> ProfileSet:
    """Return the profiles that methods have to consider.

    A double-memory profile is of use only if it is live, or if some task can run on it but not on the base profile with
    as much compute: any other run is moved to the smaller footprint at no cost.
    """
    live = {entry.profile for entry in initial}
    needs = [task for task in tasks if task.memory_gb is not None]
    for gpu in kinds:
        least = {profile.compute_slices: profile for profile in gpu.profiles_of("base")}
        larger = [each for each in gpu.profiles if each.memory_slices > least[each.compute_slices].memory_slices]
        needed = any(
            least[profile.compute_slices].memory_gb < (task.memory_gb or 0) and task.time_on(profile) is not None
            for profile in larger
            for task in needs
        )
        if needed or any(profile.name in live for profile in larger):
            return "double-memory"
    return "base"
