"""Integer time, and a batch as the exact models see it: places and durations in ticks, and only those that matter.

Exact methods count in integer ticks. Where a tick can be chosen in which every time that matters is a whole number,
nothing is rounded. Otherwise times are rounded *down*: a bound computed from shorter times holds for the true ones,
while a schedule is never taken from the rounded times but re-timed with the true ones (:mod:`mig_opt.batch.timing`).

What cannot be part of a schedule no longer than a simple one is left out (:mod:`mig_opt.batch.horizon`): tasks where
they end too late, places where all do, and live instances in the way of such places only. No schedule shorter than that
one is lost, but a model may only be asked for such schedules, and its bounds hold up to the horizon.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property

from mig_opt.batch.batch import Batch
from mig_opt.batch.horizon import Horizon, Place, shared_durations
from mig_opt.batch.schedule import Schedule
from mig_opt.batch.timing import nested_schedule
from mig_opt.method.result import RESOLUTION
from mig_opt.rules.decimals import as_decimal, as_fraction

_LONGEST = 2**28
"""Ticks that a schedule may last. CP-SAT 9.15 was seen to lose solutions of models whose times exceed 1e9 - it called
them infeasible, or proved optima above valid schedules - and never below 7e8, in thousands of random models."""

_NOISE, _SHORT = 1e-9, 1e-3
"""Difference that sums of floating-point numbers may have from those of the decimals that are meant: as a share, and
in seconds unless they are short. Times of a schedule are rounded to that (:func:`mig_opt.batch.timing.tidy`)."""

_MANY_TIMES, _FEW_DECIMALS, _MANY_DIGITS = 1000, 9, 1e15
"""Number of times from which they are looked at all at once; decimals that they have then at most, and a number that is
above their digits."""


@dataclass(frozen=True, slots=True)
class Ticks:
    """A unit of integer time.

    Examples
    --------
    >>> from mig_opt import Batch, Task, get_gpu
    >>> ticks = Ticks.of(Batch((Task("a", {1: 1.25}),), get_gpu("A30")))
    >>> ticks.length, ticks.exact, ticks.floor(1.25)
    (Fraction(1, 100), True, 125)
    """

    # a tick is ``step / 10**decimals`` seconds
    decimals: int
    step: int
    exact: bool  # true if every time that matters is a whole number of ticks

    @classmethod
    def of(cls, batch: Batch) -> Ticks:
        """Return the longest tick in which all that matters of ``batch`` is exact, or else one that is fine enough."""
        return cls.within(Horizon.of(batch))

    @classmethod
    def within(cls, horizon: Horizon) -> Ticks:
        """Return the same for the batch of a horizon."""
        return cls.for_times(horizon.times(), horizon.seconds)

    @classmethod
    def exactly(cls, seconds: Iterable[float]) -> Ticks:
        """Return the longest tick in which all ``seconds`` are exact, however many ticks they are."""
        return cls(*_common_unit(list(seconds)), exact=True)

    @classmethod
    def for_times(cls, seconds: Iterable[float], longest: float) -> Ticks:
        """Return the longest tick in which all ``seconds`` are exact, or else one that is fine enough.

        Times count as the shortest decimals that stand for them: 0.1 is one tenth. Where that takes ticks so short that
        schedules of ``longest`` seconds become longer than the solver can count, a schedule is cut into some hundred
        million ticks: the rounding of all times on its longest chain is then about a millionth of it at most.
        """
        decimals, step = _common_unit(list(seconds))
        most = as_decimal(longest)
        if most.scaleb(decimals) / step <= _LONGEST:
            return cls(decimals, step, exact=True)
        decimals = (_LONGEST / most).adjusted()
        for step in (2, 5):
            if most.scaleb(decimals + 1) / step <= _LONGEST:
                return cls(decimals + 1, step, exact=False)
        return cls(decimals, 1, exact=False)

    @property
    def length(self) -> Fraction:
        """Seconds per tick."""
        return self.step / Fraction(10) ** self.decimals

    def floor(self, seconds: float) -> int:
        """Return the whole ticks in ``seconds``."""
        return int(as_decimal(seconds).scaleb(self.decimals)) // self.step

    def ceil(self, seconds: float) -> int:
        """Return the least whole ticks that are not shorter than ``seconds``."""
        return math.ceil(as_fraction(seconds) / self.length)

    def nearest(self, seconds: float) -> int:
        """Return the number of ticks closest to ``seconds``: what a sum of floating-point numbers stands for."""
        return round(as_fraction(seconds) / self.length)

    def of_model(self, makespan: float) -> int:
        """Return the ticks that a schedule takes at most in a model, whose times are rounded down if not exact."""
        return self.nearest(makespan) if self.exact else self.floor(makespan) + 1

    def of_sum(self, seconds: float) -> Fraction:
        """Return the ticks that a sum of floating-point numbers stands for.

        That is the closest whole number of them if rounding explains the difference, else what the decimal says: a
        schedule longer than the horizon can have times that are no whole number of ticks.
        """
        ticks, near = as_fraction(seconds) / self.length, self.nearest(seconds)
        noise = _NOISE * seconds if seconds < _SHORT else _NOISE * (1 + seconds)
        return Fraction(near) if abs(near - ticks) * self.length <= noise else ticks

    def meet(self, makespan: float, lower_bound: float) -> bool:
        """Return True if a makespan meets a lower bound: no schedule can be between the two.

        Both are in seconds. Where ticks are exact, the shortest makespan is a whole number of them, so less than a tick
        apart is enough for one that is a whole number, too.
        """
        if not self.exact:
            return equal_within_resolution(makespan, lower_bound)
        ticks = self.of_sum(makespan)
        return ticks - as_fraction(lower_bound) / self.length < (1 if ticks.denominator == 1 else 0)

    def seconds_below(self, ticks: Fraction | int) -> float:
        """Return the seconds of ``ticks`` as a float that does not stand for more.

        The float is the nearest one if the decimal that it stands for is not above, as for whole ticks; else the next
        one below.
        """
        exact = ticks * self.length
        near = float(exact)
        return near if as_fraction(near) <= exact else math.nextafter(near, 0.0)


def equal_within_resolution(makespan: float, lower_bound: float) -> bool:
    """Return True if a makespan is at most a millionth above a lower bound (both in seconds)."""
    return makespan - lower_bound <= RESOLUTION * makespan


def _common_unit(seconds: list[float]) -> tuple[int, int]:
    """Return the least decimals that all times can be written with, and the greatest common divisor of their digits."""
    found = _common_unit_of_many(seconds) if len(seconds) >= _MANY_TIMES else None
    if found is None:
        times = {as_decimal(time) for time in seconds}
        decimals = max((0, *(-int(time.normalize().as_tuple().exponent) for time in times)))
        found = decimals, math.gcd(*(int(time.scaleb(decimals)) for time in times)) or 1
    return found


def _common_unit_of_many(seconds: list[float]) -> tuple[int, int] | None:
    """Do the same some thirty times as fast, if the times are short decimals."""
    import numpy as np

    values = np.array(seconds, float)
    for decimals in range(_FEW_DECIMALS + 1):
        digits = np.rint(values * 10.0**decimals)
        if (digits >= _MANY_DIGITS).any():
            break
        # Both are whole numbers that floats hold exactly, so their quotient is the float that stands for the decimal;
        # and of so few digits no other decimal has the same float.
        if (digits / 10.0**decimals == values).all():
            return decimals, int(np.gcd.reduce(digits.astype(np.int64))) or 1
    return None


class IntegerBatch:
    """A batch in ticks, rounded down where they are not exact; every task has a placement."""

    def __init__(self, batch: Batch, horizon: Horizon | None = None) -> None:
        self.batch = batch
        self.horizon = Horizon.of(batch) if horizon is None else horizon  # when a schedule has to end to count
        self.ticks = Ticks.within(self.horizon)
        floor = cache(self.ticks.floor)
        # What takes longer than the horizon only has to be seen to do so.
        longest = floor(self.horizon.latest) + 1
        durations = {
            key: {task: self.ticks.floor(time) for task, time in shared.items()}
            for key, shared in shared_durations(self.horizon.places).items()
        }
        # Every place where something can end by the horizon, in ticks, and live instances that may have to make room;
        # outer ones first on each GPU.
        self.places: tuple[Place[int], ...] = tuple(
            Place(
                place.gpu,
                place.placement,
                None if place.free is None else floor(place.free),
                min(floor(place.create), longest),
                min(floor(place.destroy), longest),
                durations[id(place.durations)],
            )
            for place in self.horizon.places
        )
        # the places with an instance that exists at the start, by index
        self.live = frozenset(at for at, place in enumerate(self.places) if place.free is not None)

    def part(self, tasks: Sequence[int], gpus: Collection[int]) -> IntegerBatch:
        """Return some of the tasks, by index, with all places of some GPUs, in the same ticks; nothing is live."""
        part = self.within([at for at, place in enumerate(self.places) if place.gpu in gpus])
        part.batch = self.batch.replace(tasks=tuple(self.batch.tasks[task] for task in tasks))
        kept = {
            key: {number: shared[task] for number, task in enumerate(tasks) if task in shared}
            for key, shared in shared_durations(self.places).items()
        }
        part.places = tuple(replace(place, durations=kept[id(place.durations)]) for place in part.places)
        return part

    def within(self, places: Sequence[int]) -> IntegerBatch:
        """Return the batch with some of the places only, by index; nothing is live."""
        part = object.__new__(IntegerBatch)
        part.batch, part.horizon, part.ticks, part.live = self.batch, self.horizon, self.ticks, frozenset()
        part.places = tuple(self.places[at] for at in places)
        return part

    @cached_property
    def on_gpu(self) -> dict[int, list[int]]:
        """The indices of the places of each GPU on which something can end by the horizon."""
        found: dict[int, list[int]] = {}
        for at, place in enumerate(self.places):
            found.setdefault(place.gpu, []).append(at)
        return found

    @cached_property
    def gpus(self) -> tuple[int, ...]:
        """These GPUs, by index."""
        return tuple(self.on_gpu)

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """These GPUs in groups that have the same places; each one on which something is live is by itself."""
        used = {self.places[at].gpu for at in self.live}
        groups: dict[object, list[int]] = {}
        for gpu, there in self.on_gpu.items():
            looks = tuple((place.placement, id(place.durations)) for place in map(self.places.__getitem__, there))
            groups.setdefault(gpu if gpu in used else looks, []).append(gpu)
        return tuple(map(tuple, groups.values()))

    @cached_property
    def alike(self) -> bool:
        """True if all these GPUs have the same places, and nothing is live on them."""
        return not self.live and len(self.groups) == 1

    @property
    def choices(self) -> int:
        """The number of choices of a place that all tasks have together."""
        return sum(len(place.durations) for place in self.places)

    @cached_property
    def operations_take_no_time(self) -> bool:
        """True if nothing is live and operations cost nothing: then the slice loads alone decide.

        Running outer placements before inner ones reaches the largest slice load.
        """
        return not self.live and not any(place.create or place.destroy for place in self.places)

    def first_use(self, place: Place[int]) -> int:
        """Return the tick before which nothing can run in a place: its creation, and what is live there, come first."""
        if place.free is not None:
            return place.free
        live = (self.places[other] for other in self.live)
        waits = ((other.free or 0) + other.destroy for other in live if other.conflicts(place))
        return place.create + max(waits, default=0)

    def slices(self, gpus: Iterable[int] | None = None) -> Iterator[list[int]]:
        """Yield for each memory slice of some GPUs the indices of the places that cover it, without repetitions."""
        seen: set[tuple[int, ...]] = set()
        for gpu in self.gpus if gpus is None else gpus:
            for position in range(self.batch.kind(gpu).memory_slices):
                covering = [at for at in self.on_gpu[gpu] if position in self.places[at].placement.footprint]
                if covering and tuple(covering) not in seen:
                    seen.add(tuple(covering))
                    yield covering

    @cached_property
    def interchangeable(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """Groups of sets of places that can be exchanged, each set in corresponding order.

        These are the GPUs, and on each GPU the siblings of the repartition tree with subtrees of equal shape; none of
        them where something is live.
        """
        at = {(place.gpu, place.placement): index for index, place in enumerate(self.places)}
        profiles = self.batch.profile_set
        forests = {kind: (kind.children(profiles), kind.below(profiles)) for kind in self.batch.kinds}
        groups = [tuple(tuple(self.on_gpu[gpu]) for gpu in alike) for alike in self.groups if len(alike) > 1]
        for gpu in self.gpus:
            forest, below = forests[self.batch.kind(gpu)]
            for siblings in forest.values():
                shapes: dict[tuple[tuple[str, int], ...], list[tuple[int, ...]]] = {}
                for child in siblings:
                    members = tuple(at[gpu, one] for one in (child, *below[child]) if (gpu, one) in at)
                    if members and self.live.isdisjoint(members):
                        placements = [self.places[index].placement for index in members]
                        shape = tuple((p.profile.name, p.start - child.start) for p in placements)
                        shapes.setdefault(shape, []).append(members)
                groups += [tuple(members) for members in shapes.values() if len(members) > 1]
        return tuple(groups)

    @cached_property
    def identical(self) -> tuple[tuple[int, ...], ...]:
        """Groups of tasks, by index, that take the same time everywhere and can be exchanged."""
        groups: dict[tuple[int | None, ...], list[int]] = {}
        kinds = shared_durations(self.places).values()
        for task in range(len(self.batch.tasks)):
            groups.setdefault(tuple(durations.get(task) for durations in kinds), []).append(task)
        return tuple(tuple(group) for group in groups.values() if len(group) > 1)

    def symmetry_reduced(self, places: Sequence[int]) -> list[int]:
        """Return an equivalent assignment of tasks to places.

        Interchangeable sets are ordered by area in it, and identical tasks by place.
        """
        area = [0] * len(self.places)
        for task, at in enumerate(places):
            area[at] += self.places[at].placement.profile.memory_slices * self.places[at].durations[task]
        held = [*zip(area, range(len(area)), strict=True)]  # by place: the area there now, and its place at first
        for group in self.interchangeable:
            ranked = sorted(group, key=lambda members: -sum(held[at][0] for at in members))
            moved = [held[at] for members in ranked for at in members]
            for at, there in zip(itertools.chain(*group), moved, strict=True):
                held[at] = there
        now = {first: at for at, (_, first) in enumerate(held)}
        assignment = [now[at] for at in places]
        for tasks in self.identical:
            for task, at in zip(tasks, sorted(assignment[task] for task in tasks), strict=True):
                assignment[task] = at
        return assignment

    def nested(self, places: Sequence[int]) -> Schedule:
        """Return the schedule that runs outer places before inner ones, given the place of each task."""
        chosen = [self.places[at] for at in places]
        return nested_schedule(self.batch, [(place.gpu, place.placement) for place in chosen])

    def places_of(self, schedule: Schedule) -> list[int]:
        """Return the place of each task in a schedule no longer than the horizon, as :meth:`symmetry_reduced` does."""
        at = {(place.gpu, place.placement.shape): index for index, place in enumerate(self.places)}
        shapes = {run.task: self.batch.placement(run).shape for run in schedule.runs}
        where = {run.task: at[run.gpu, shapes[run.task]] for run in schedule.runs}
        return self.symmetry_reduced([where[task.name] for task in self.batch.tasks])
