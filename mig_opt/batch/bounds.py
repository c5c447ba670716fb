"""Lower bounds on the makespan that need no solver.

Each bound comes with its reason, and each is computed in exact arithmetic, in ticks in which every time of the batch is
a whole number (:mod:`mig_opt.batch.integer_batch`): a bound is never above the makespan of any schedule, not even by
rounding, and not below what it should be because some other time is long.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from mig_opt.batch.batch import Batch, check_placeable
from mig_opt.batch.integer_batch import Ticks
from mig_opt.gpu.model import GpuModel, Placement, Profile, ProfileSet

if TYPE_CHECKING:
    import numpy as np

    Shares = np.ndarray[tuple[int], np.dtype[np.float64]]

_SCALE = 10**6
"""Parts of 1 to which weights of slices are rounded once they are found; any weights give a valid bound."""


_Slice = tuple[GpuModel, int]
"""Memory slice of a kind of GPU."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A lower bound in seconds, and why it holds."""

    name: str
    value: float
    reason: str


def lower_bounds(batch: Batch) -> tuple[Bound, ...]:
    """Return every bound of this module for ``batch``, the best one first.

    Parameters
    ----------
    batch : Batch
        The batch.

    Raises
    ------
    InputError
        If a task can run nowhere: there is no schedule to bound.

    Examples
    --------
    >>> from mig_opt import load
    >>> for bound in lower_bounds(load("rodinia-a30")):
    ...     print(bound.name, round(bound.value, 3))
    slice load 24.734
    area 24.624
    critical task 20.604
    """
    check_placeable(batch, "bound")
    measured = _Measured.of(batch)
    bounds = (_area(measured), _critical_task(measured), _slice_load(measured))
    return tuple(sorted(bounds, key=lambda bound: -bound.value))


def best_lower_bound(batch: Batch) -> float:
    """Return the value of the best bound in seconds."""
    return lower_bounds(batch)[0].value


def slice_dual_prices(batch: Batch) -> dict[GpuModel, list[float]]:
    """Return the dual price of each memory slice of a GPU of each kind; in sum 1 if there is one GPU of each kind.

    They are the weights that make the slice-load bound largest: dual prices of the linear program that spreads the
    tasks over placements, found by a search. A task costs its time x the dual prices of the slices that it covers, and
    no way to spread the tasks has a lower total cost than each task at its cheapest. They are the same on every GPU of
    a kind.

    Examples
    --------
    >>> from mig_opt import Task, get_gpu
    >>> a30 = get_gpu("A30")
    >>> slice_dual_prices(Batch((Task("a", {4: 3.0}),), a30))[a30]
    [0.25, 0.25, 0.25, 0.25]
    """
    coverage = _Coverage.of(_Measured.of(batch))
    weights = _search_weights(batch, coverage)
    total = sum(weight * len(orbit) for weight, orbit in zip(weights, coverage.orbits, strict=True))
    found = {kind: [0.0] * kind.memory_slices for kind in batch.kinds}
    for weight, orbit in zip(weights, coverage.orbits, strict=True):
        for kind, position in orbit:
            found[kind][position] = weight / total
    return found


@dataclass(frozen=True, slots=True)
class _Measured:
    """A batch with its times in ticks."""

    batch: Batch
    ticks: Ticks
    times: list[dict[Profile, int]]  # for each task its ticks on every profile on which it can run
    # ticks of a creation and of a destruction
    create: dict[Profile, int]
    destroy: dict[Profile, int]
    # for each GPU with live instances its kind, and the tick at which each of them is free
    live: list[tuple[GpuModel, dict[Placement, int]]]
    idle: dict[GpuModel, int]  # number of the other GPUs of each kind

    @classmethod
    def of(cls, batch: Batch) -> _Measured:
        costs, profiles, kinds = batch.operations, batch.profiles(), batch.kinds
        seconds = [time for task in batch.tasks for kind in kinds for time in task.times_on(kind).values()]
        for own in map(costs.of_kind, kinds):
            seconds += [*own.create.values(), *own.destroy.values()]
        seconds += [entry.free for entry in batch.initial]
        ticks = Ticks.exactly(seconds)
        times = [
            {profile: ticks.floor(time) for profile in profiles if (time := task.time_on(profile)) is not None}
            for task in batch.tasks
        ]
        create, destroy = (
            {profile: ticks.floor(costs.of(operation, profile)) for kind in kinds for profile in kind.profiles}
            for operation in ("create", "destroy")
        )
        live: dict[int, dict[Placement, int]] = defaultdict(dict)
        for entry in batch.initial:
            placement = batch.placement(entry)
            live[entry.gpu][placement] = ticks.floor(entry.free)
        idle = {kind: sum(gpu not in live for gpu in gpus) for kind, gpus in kinds.items()}
        on_gpus = [(batch.kind(gpu), there) for gpu, there in live.items()]
        return cls(batch, ticks, times, create, destroy, on_gpus, idle)

    def ready(self) -> dict[Profile, int]:
        """Return for each profile the tick before which nothing runs on an instance of it, wherever it is."""
        idle = (kind for kind, gpus in self.idle.items() if gpus)
        ready = {profile: self.create[profile] for kind in idle for profile in kind.profiles}
        for kind, live in self.live:
            for placement in kind.placements(self.batch.profile_set):
                profile = placement.profile
                obstacles = (at for at in live if at.conflicts(placement))
                cleared = max((live[at] + self.destroy[at.profile] for at in obstacles), default=0)
                there = [free for at, free in live.items() if at.shape == placement.shape]
                begin = there[0] if there else self.create[profile] + cleared
                ready[profile] = min(begin, ready.get(profile, begin))
        return ready

    def begins(self) -> Iterator[tuple[tuple[GpuModel, int], int, int]]:
        """Yield memory slices with the tick before which nothing runs there, and on how many GPUs that is so."""
        used = {profile for row in self.times for profile in row}
        for kind, idle in self.idle.items():
            # Where no task can run the tick does not matter: whatever is there, other kinds have all the load.
            own = [self.create[profile] for profile in kind.profiles if profile in used]
            create = min(own or [self.create[profile] for profile in used])
            for position in range(kind.memory_slices):
                if idle:
                    yield (kind, position), create, idle
                for live in (there for on, there in self.live if on == kind):
                    begin = next((free for at, free in live.items() if position in at.footprint), create)
                    yield (kind, position), begin, 1


def _area(measured: _Measured) -> Bound:
    """Return the baseline of the FAR paper (Section 6.4): least total work, spread evenly over all compute slices."""
    work = sum(min(profile.compute_slices * ticks for profile, ticks in row.items()) for row in measured.times)
    slices = sum(len(gpus) * kind.compute_slices for kind, gpus in measured.batch.kinds.items())
    return Bound(
        "area",
        measured.ticks.seconds_below(Fraction(work, slices)),
        f"even if every task ran at its least work (slices x seconds), {slices} compute slices would need this long",
    )


def _critical_task(measured: _Measured) -> Bound:
    """Return the longest of the tasks' shortest times, each with the creation of its instance, or the wait for one."""
    ready = measured.ready()
    value, name = max(
        (min(ready[profile] + ticks for profile, ticks in row.items()), task.name)
        for task, row in zip(measured.batch.tasks, measured.times, strict=True)
    )
    wait = "creation of the instance, or the wait for it" if measured.live else "creation of the instance"
    reason = f"task {name!r} takes this long even on the instance that suits it best, with the {wait}"
    return Bound("critical task", measured.ticks.seconds_below(value), reason)


def _slice_load(measured: _Measured) -> Bound:
    """Return the best bound of the form "weighted load of the memory slices".

    Give each memory slice a weight >= 0, in sum 1 over all GPUs. On every slice the runs that cover it follow each
    other, so the makespan is at least their total time, and therefore at least the weighted mean over the slices. A
    task adds its time x the weight of the footprint that it covers, at least the least of that over its placements, of
    whatever kind of GPU. Any weights give a valid bound; the best ones are the dual solution of the linear program that
    spreads tasks over placements, and a search comes close to them. With equal weights on the slices that carry compute
    this is at least the area bound.

    A slice is of use only once an instance is there: one that is live from when it is free, any other after a creation.
    So the load fills the slices like water, those first that are of use first, and the bound is the level.
    """
    coverage = _Coverage.of(measured)
    weights = _search_weights(measured.batch, coverage)
    weight_of = {at: weight for weight, orbit in zip(weights, coverage.orbits, strict=True) for at in orbit}
    begins = [(begin, weight_of[position] * gpus) for position, begin, gpus in measured.begins()]
    total = sum(weight_of.values())
    spelled = _spell(weights, coverage.orbits, total)
    room = (
        "and where instances are live after these are free, there is no room for all of it before this"
        if measured.live
        else "the mean load of a slice and one creation take at least this long"
    )
    return Bound(
        "slice load",
        measured.ticks.seconds_below(_level(coverage.load(weights), begins)),
        f"runs that cover the same memory slice follow each other: with the weights {spelled}, {room}",
    )


def _level(load: int, begins: list[tuple[int, int]]) -> Fraction:
    """Return the tick by which slices have room for a weighted load, each from its begin on, given with its weight."""
    weight = before = 0
    for begin, share in sorted(begins):
        if weight and load + before <= weight * begin:
            break
        weight += share
        before += share * begin
    # Without weights that tell anything, something begins all the same.
    return Fraction(load + before, weight) if load else Fraction(min(begins)[0])


@dataclass(frozen=True, slots=True)
class _Coverage:
    """The footprints that tasks can have, with interchangeable slices counted together."""

    orbits: tuple[tuple[_Slice, ...], ...]  # the memory slices of each kind in groups of interchangeable ones
    footprints: tuple[tuple[int, ...], ...]  # the distinct footprints, each as its number of slices in every group
    durations: list[list[int | None]]  # for each task its ticks on each footprint; None where it cannot run
    ticks: Ticks

    @classmethod
    def of(cls, measured: _Measured) -> _Coverage:
        kinds, profiles = measured.batch.kinds, measured.batch.profile_set
        orbits = tuple(orbit for kind in kinds for orbit in _slice_orbits(kind, profiles))
        shape = {
            placement: tuple(sum(on == kind and at in placement.footprint for on, at in orbit) for orbit in orbits)
            for kind in kinds
            for placement in kind.placements(profiles)
        }
        footprints = tuple(dict.fromkeys(shape.values()))
        at = {footprint: index for index, footprint in enumerate(footprints)}
        columns: dict[Profile, set[int]] = {}
        for placement, footprint in shape.items():
            columns.setdefault(placement.profile, set()).add(at[footprint])
        durations: list[list[int | None]] = []
        for times in measured.times:
            row: list[int | None] = [None] * len(footprints)
            for profile, ticks in times.items():
                for column in columns[profile]:
                    known = row[column]
                    row[column] = ticks if known is None else min(known, ticks)
            durations.append(row)
        return cls(orbits, footprints, durations, measured.ticks)

    def load(self, weights: tuple[int, ...]) -> int:
        """Return the least weighted load of all tasks, in ticks x weight, exactly."""
        factors = [sum(w * count for w, count in zip(weights, footprint, strict=True)) for footprint in self.footprints]
        return sum(
            min(factor * ticks for factor, ticks in zip(factors, row, strict=True) if ticks is not None)
            for row in self.durations
        )


def _slice_orbits(kind: GpuModel, profiles: ProfileSet) -> tuple[tuple[_Slice, ...], ...]:
    """Group the memory slices that look alike: the same placements cover them, with the same ones inside.

    The best weights may then be taken equal within a group, since the load is concave in the weights.
    """
    placements = kind.placements(profiles)
    groups: dict[object, list[_Slice]] = {}
    for position in range(kind.memory_slices):
        looks = tuple(
            (
                outer.profile.name,
                *sorted(p.profile.name for p in placements if set(p.footprint) <= set(outer.footprint)),
            )
            for outer in placements
            if position in outer.footprint
        )
        groups.setdefault(looks, []).append((kind, position))
    return tuple(tuple(group) for group in groups.values())


def _search_weights(batch: Batch, coverage: _Coverage) -> tuple[int, ...]:
    """Return integer weights by group of slices for which the weighted load is close to its largest value."""
    import numpy as np

    # The slices of a group on all GPUs of its kind, in multiples of the number of GPUs of the first kind.
    first = len(next(iter(batch.kinds.values())))
    gpus = [len(batch.kinds[orbit[0][0]]) / first for orbit in coverage.orbits]
    sizes = [len(orbit) * count for orbit, count in zip(coverage.orbits, gpus, strict=True)]
    computing = {(kind, at) for kind in batch.kinds for at in _computing(kind)}
    shares = np.array([float(sum(at in computing for at in orbit)) for orbit in coverage.orbits]) * gpus
    shares /= shares.sum()
    footprints = np.array(coverage.footprints) / sizes
    # In seconds, as some ticks are too many for a float.
    unit, scale = coverage.ticks.step, 10**coverage.ticks.decimals
    durations = np.array(
        [[np.inf if ticks is None else ticks * unit / scale for ticks in row] for row in coverage.durations]
    )
    finite = np.isfinite(durations)

    def load(shares: Shares) -> float:
        weighted = np.multiply(durations, footprints @ shares, out=np.full_like(durations, np.inf), where=finite)
        return float(weighted.min(axis=1).sum())

    best, step = load(shares), 0.25
    kinds = [[at for at, orbit in enumerate(coverage.orbits) if orbit[0][0] == kind] for kind in batch.kinds]

    def current() -> Shares:
        return shares

    while step > 1e-4 and len(sizes) > 1:
        improved = False
        for trial in _moved(current, kinds, step):
            value = load(trial)
            if value > best * (1 + 1e-12):
                shares, best, improved = trial, value, True
        if not improved:
            step /= 2
    weights = tuple(round(_SCALE * share / size) for share, size in zip(shares, sizes, strict=True))
    return weights if any(weights) else tuple(1 for _ in sizes)


def _moved(current: Callable[[], Shares], kinds: Sequence[Sequence[int]], step: float) -> Iterator[Shares]:
    """Yield the current shares after a step from one group of slices to another, or from all of a kind to another."""
    for one, two in itertools.permutations(range(len(current())), 2):
        amount = min(step, current()[one])
        if amount > 0:
            trial = current().copy()
            trial[one] -= amount
            trial[two] += amount
            yield trial
    for source, target in itertools.permutations(map(list, kinds), 2):
        there, known = current()[source].sum(), current()[target].sum()
        if there > 0:
            trial, amount = current().copy(), min(step, there)
            trial[source] -= amount * (trial[source] / there)
            trial[target] += amount * (trial[target] / known if known else 1 / len(target))
            yield trial


def _computing(kind: GpuModel) -> set[int]:
    """Return the memory slices of a kind of GPU that have compute slices."""
    smallest = min(kind.profiles_of("base"), key=lambda profile: profile.compute_slices)
    return {at for start in smallest.starts for at in range(start, start + smallest.memory_slices)}


def _spell(weights: tuple[int, ...], orbits: tuple[tuple[_Slice, ...], ...], total: int) -> str:
    several = len({kind for orbit in orbits for kind, _ in orbit}) > 1
    return ", ".join(
        f"{weight / total:.3g} on slice{'s' if len(orbit) > 1 else ''} {', '.join(str(at) for _, at in orbit)}"
        f"{f' of {orbit[0][0].name}' if several else ''}"
        for weight, orbit in zip(weights, orbits, strict=True)
        if weight
    )
