"""A batch as the exact models see it: places and durations in integer ticks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from mig_opt.batch.batch import Batch, LiveInstance
from mig_opt.batch.integer_time import Ticks
from mig_opt.batch.schedule import Schedule
from mig_opt.gpu.model import Placement


@dataclass(frozen=True, slots=True)
class Place:
    """A placement on one GPU, with its costs in ticks."""

    gpu: int  # index of the GPU
    placement: Placement  # where on the GPU
    # ticks of the operations
    create: int
    destroy: int
    free: int | None  # tick at which the instance that exists there at the start becomes free; None if there is none
    durations: Mapping[int, int]  # ticks of each task that can run here, by index

    def conflicts(self, other: Place) -> bool:
        """Return True if instances at two different places exclude each other."""
        return self is not other and self.gpu == other.gpu and self.placement.conflicts(other.placement)


class IntegerBatch:
    """A batch in ticks, rounded down where they are not exact."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.ticks = Ticks.of(batch)  # the unit
        floor, costs = self.ticks.floor, batch.operations
        live = {(entry.gpu, batch.gpu.placement(entry.profile, entry.start).shape): entry for entry in batch.initial}
        profiles = batch.gpu.profiles_of(batch.profile_set)
        operations = {p: (floor(costs.of("create", p)), floor(costs.of("destroy", p))) for p in profiles}
        durations = {
            profile: {
                index: floor(seconds)
                for index, task in enumerate(batch.tasks)
                if (seconds := task.time_on(profile)) is not None
            }
            for profile in profiles
        }
        places: list[Place] = []
        self.live: dict[int, LiveInstance] = {}  # the instances that exist at the start, by index of place
        for gpu in range(batch.gpus):
            for placement in batch.placements():
                entry = live.get((gpu, placement.shape))
                if entry is not None:
                    self.live[len(places)] = entry
                elif not durations[placement.profile]:
                    continue
                free = None if entry is None else floor(entry.free)
                places.append(Place(gpu, placement, *operations[placement.profile], free, durations[placement.profile]))
        # every placement on every GPU where something can run or is live; outer ones first on each GPU
        self.places = tuple(places)

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

    def first_use(self, place: Place, at_most: int) -> int:
        """Return the tick before which nothing can run in a place: its creation, and what is live there, come first.

        Solvers are spared numbers far above ``at_most``.
        """
        if place.free is not None:
            return min(place.free, 2 * at_most)
        live = (self.places[other] for other in self.live)
        waits = (min(other.free or 0, 2 * at_most) + other.destroy for other in live if other.conflicts(place))
        return place.create + max(waits, default=0)

    def slices(self) -> Iterator[list[int]]:
        """Yield for each memory slice of each GPU the indices of the places that cover it, without repetitions."""
        seen: set[tuple[int, ...]] = set()
        for gpu in range(self.batch.gpus):
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
        children = self.batch.gpu.children(self.batch.profile_set)
        gpus = range(self.batch.gpus)

        def subtree(gpu: int, top: Placement) -> list[int]:
            below = [at[gpu, top]] if (gpu, top) in at else []
            for child in children[top]:
                below += subtree(gpu, child)
            return below

        groups: list[tuple[tuple[int, ...], ...]] = []
        idle = [
            tuple(index for index, place in enumerate(self.places) if place.gpu == gpu)
            for gpu in gpus
            if all(self.places[index].gpu != gpu for index in self.live)
        ]
        if len(idle) > 1:
            groups.append(tuple(idle))
        for gpu in gpus:
            for siblings in children.values():
                shapes: dict[tuple[tuple[str, int], ...], list[tuple[int, ...]]] = {}
                for child in siblings:
                    members = tuple(subtree(gpu, child))
                    if members and not any(index in self.live for index in members):
                        placements = [self.places[index].placement for index in members]
                        shape = tuple((p.profile.name, p.start - child.start) for p in placements)
                        shapes.setdefault(shape, []).append(members)
                groups += [tuple(members) for members in shapes.values() if len(members) > 1]
        return tuple(groups)

    @cached_property
    def identical(self) -> tuple[tuple[int, ...], ...]:
        """Groups of tasks, by index, that take the same time everywhere and can be exchanged."""
        groups: dict[tuple[int | None, ...], list[int]] = {}
        kinds = list({id(place.durations): place.durations for place in self.places}.values())
        for task in range(len(self.batch.tasks)):
            groups.setdefault(tuple(durations.get(task) for durations in kinds), []).append(task)
        return tuple(tuple(group) for group in groups.values() if len(group) > 1)

    def canonical(self, places: Sequence[int]) -> list[int]:
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

    def places_of(self, schedule: Schedule) -> list[int]:
        """Return the place of each task in a schedule, ordered as :meth:`canonical` does."""
        at = {(place.gpu, place.placement.shape): index for index, place in enumerate(self.places)}
        where = {run.task: at[run.gpu, self.batch.gpu.placement(run.profile, run.start).shape] for run in schedule.runs}
        return self.canonical([where[task.name] for task in self.batch.tasks])
