"""A batch as the exact models see it: places and durations in integer ticks, and only those that matter.

What cannot be part of a schedule no longer than a simple one is left out (:mod:`mig_opt.batch.horizon`): tasks where
they end too late, places where all do, and live instances in the way of such places only. No schedule shorter than that
one is lost, but a model may only be asked for such schedules, and its bounds hold up to the horizon.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, cached_property

from mig_opt.batch.batch import Batch
from mig_opt.batch.horizon import Horizon, Place, shared_durations
from mig_opt.batch.integer_time import Ticks
from mig_opt.batch.schedule import Schedule
from mig_opt.batch.timing import nested_schedule


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

    def part(self, tasks: Sequence[int], gpus: int) -> IntegerBatch:
        """Return some of the tasks, by index, with all places of the first GPUs, in the same ticks; nothing is live."""
        part = object.__new__(IntegerBatch)
        part.batch = self.batch.replace(tasks=tuple(self.batch.tasks[task] for task in tasks))
        part.horizon, part.ticks, part.live = self.horizon, self.ticks, frozenset()
        kept = {
            key: {number: shared[task] for number, task in enumerate(tasks) if task in shared}
            for key, shared in shared_durations(self.places).items()
        }
        first = (place for place in self.places if place.gpu in self.gpus[:gpus])
        part.places = tuple(replace(place, durations=kept[id(place.durations)]) for place in first)
        return part

    @cached_property
    def gpus(self) -> tuple[int, ...]:
        """The GPUs on which something can end by the horizon, by index."""
        return tuple(dict.fromkeys(place.gpu for place in self.places))

    @cached_property
    def alike(self) -> bool:
        """True if all these GPUs have the same places, and nothing is live on them."""
        return not self.live and len({self._looks(gpu) for gpu in self.gpus}) == 1

    def _looks(self, gpu: int) -> tuple[object, ...]:
        """Return what GPUs on which nothing is live share if they can be exchanged."""
        return tuple((place.placement, id(place.durations)) for place in self.places if place.gpu == gpu)

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

    def slices(self) -> Iterator[list[int]]:
        """Yield for each memory slice of each GPU the indices of the places that cover it, without repetitions."""
        seen: set[tuple[int, ...]] = set()
        for gpu in self.gpus:
            for position in range(self.batch.gpu.memory_slices):
                covering = [
                    at
                    for at, place in enumerate(self.places)
                    if place.gpu == gpu and position in place.placement.footprint
                ]
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
        forest, below = (of(self.batch.profile_set) for of in (self.batch.gpu.children, self.batch.gpu.below))
        idle: dict[tuple[object, ...], list[tuple[int, ...]]] = {}
        for gpu in self.gpus:
            members = tuple(index for index, place in enumerate(self.places) if place.gpu == gpu)
            if self.live.isdisjoint(members):
                idle.setdefault(self._looks(gpu), []).append(members)
        groups = [tuple(alike) for alike in idle.values() if len(alike) > 1]
        for gpu in self.gpus:
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
        assignment = list(places)
        for group in self.interchangeable:
            area = [0] * len(self.places)
            for task, at in enumerate(assignment):
                area[at] += self.places[at].placement.profile.memory_slices * self.places[at].durations[task]
            ranked = sorted(group, key=lambda members: -sum(area[at] for at in members))
            moved = {
                old: new
                for before, after in zip(ranked, group, strict=True)
                for old, new in zip(before, after, strict=True)
            }
            assignment = [moved.get(at, at) for at in assignment]
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
        where = {run.task: at[run.gpu, self.batch.gpu.placement(run.profile, run.start).shape] for run in schedule.runs}
        return self.symmetry_reduced([where[task.name] for task in self.batch.tasks])
