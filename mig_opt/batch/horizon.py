"""The horizon of a batch: when a simple schedule ends, and all that can be part of one that ends no later.

A shorter schedule than the simple one has no use for a task where it cannot end by then, however long that is, nor for
an instance that is busy until later: neither says anything about the optimum. So exact methods leave both out, and the
unit of their time (:mod:`mig_opt.batch.integer_batch`) depends on what is left.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Generic, TypeVar

from mig_opt.batch.batch import Batch, LiveInstance
from mig_opt.batch.schedule import Schedule
from mig_opt.batch.timing import nested_makespan, nested_schedule
from mig_opt.gpu.model import GpuModel, GpuPlacement, Placement, Profile

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Reals = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.intp]

Time = TypeVar("Time", int, float)

_MARGIN = 1 + 1e-6
"""Factor by which something may end later and still counts: more than sums of floating-point numbers are off, and than
the rounding of a schedule's times to nanoseconds (:mod:`mig_opt.batch.timing`)."""

_GAIN = 0.95
"""Factor by which the next simple schedule, of shorter tasks, has to be shorter to be worth another one."""

_LONG = 2.0
"""Factor by which a simple schedule may be longer than it has to be without another attempt."""

_Found = tuple[float, tuple[GpuPlacement, ...]]
"""Makespan of a schedule, and GPU and placement of each task in it."""


@dataclass(frozen=True, slots=True)
class Place(Generic[Time]):
    """A placement on one GPU, with its times, in seconds or in ticks.

    Some task can end there by the horizon, or else a live instance may have to make room.
    """

    gpu: int  # index of the GPU
    placement: Placement  # where on the GPU
    free: Time | None  # when the instance that exists there at the start becomes free; None if there is none
    # times of the operations
    create: Time
    destroy: Time
    # Time of each task that can end on this profile by the horizon, by index: the same object for all places of the
    # profile, but an empty one where nothing can end in time.
    durations: Mapping[int, Time]

    def conflicts(self, other: Place[Time]) -> bool:
        """Return True if instances at two different places exclude each other."""
        return self is not other and self.gpu == other.gpu and self.placement.conflicts(other.placement)


def shared_durations(places: Iterable[Place[Time]]) -> dict[int, Mapping[int, Time]]:
    """Return the durations of places, each mapping that several of them share once, by its identity."""
    return {id(place.durations): place.durations for place in places}


@dataclass(frozen=True)
class Horizon:
    """A second by which some schedule ends, and what can be part of a schedule that does.

    Tasks that can run nowhere are left out.

    Examples
    --------
    >>> from mig_opt import Batch, LiveInstance, Task, get_gpu
    >>> batch = Batch((Task("a", {1: 4.0, 4: 1e8}),), get_gpu("A30"), initial=(LiveInstance(0, "2g.12gb", 0, 86400.0),))
    >>> horizon = Horizon.of(batch)
    >>> horizon.seconds, [str(place.placement) for place in horizon.places]
    (4.11, ['1g.6gb@2', '1g.6gb@3'])
    """

    batch: Batch  # without tasks that can run nowhere, and without GPUs that nobody needs
    seconds: float
    assignment: tuple[GpuPlacement, ...]  # GPU and placement of each task in a schedule that ends by then
    places: tuple[Place[float], ...]  # in seconds, outer ones first on each GPU
    begins: Mapping[Profile, float]  # second before which nothing can run on a profile, on any GPU

    @classmethod
    def of(cls, batch: Batch) -> Horizon:
        """Return the second at which a simple schedule of a batch ends."""
        misfits = batch.unplaceable()
        if misfits:
            able = tuple(task for at, task in enumerate(batch.tasks) if at not in misfits)
            return cls.of(batch.replace(tasks=able)) if able else cls(batch, 0.0, (), (), {})
        batch = _without_idle_gpus(batch)
        tasks = _Tasks(batch)
        seconds, assignment = tasks.simple_schedule()
        return cls(batch, seconds, assignment, tuple(tasks.reachable(seconds * _MARGIN)), tasks.begins)

    def until(self, seconds: float) -> Horizon:
        """Return the same with a later second."""
        return replace(self, seconds=seconds, places=tuple(_Tasks(self.batch).reachable(seconds * _MARGIN)))

    @property
    def latest(self) -> float:
        """Seconds by which something has to end to count."""
        return self.seconds * _MARGIN

    @cached_property
    def in_reach(self) -> Batch:
        """The batch without sizes of which no instance can be there by the horizon: what is in the way is busy longer.

        A method that does not look at the clock when it chooses sizes would wait for them.
        """
        kinds = self.batch.kinds
        sizes: dict[GpuModel, set[int]] = {kind: set() for kind in kinds}
        for kind in kinds:
            there = kind.profiles_of(self.batch.profile_set)
            sizes[kind] = {p.compute_slices for p in there if self.begins[p] <= self.latest}
        if all(p.compute_slices in sizes[kind] for kind in kinds for p in kind.profiles_of(self.batch.profile_set)):
            return self.batch
        tasks = []
        for task in self.batch.tasks:
            times = {
                kind.name: own
                for kind in kinds
                if (own := {size: time for size, time in task.times_on(kind).items() if size in sizes[kind]})
            }
            tasks.append(task.with_times(times if task.by_kind else next(iter(times.values()))))
        return self.batch.replace(tasks=tuple(tasks))

    @cached_property
    def schedule(self) -> Schedule:
        """A schedule that ends by then."""
        return nested_schedule(self.batch, self.assignment)

    def times(self) -> Iterator[float]:
        """Yield the seconds of everything that can be part of a schedule that ends by then."""
        for durations in shared_durations(self.places).values():
            yield from durations.values()
        for operations in dict.fromkeys((place.create, place.destroy) for place in self.places):
            yield from (seconds for seconds in operations if seconds <= self.latest)
        yield from (place.free for place in self.places if place.free is not None)


def _without_idle_gpus(batch: Batch) -> Batch:
    """Leave out GPUs at the end that nobody needs: there are no more used ones than tasks."""
    used = max((live.gpu + 1 for live in batch.initial), default=0)
    *others, last = batch.kinds.values()
    needed = max(used, last.start) + len(batch.tasks)
    if batch.gpus <= needed:
        return batch
    return batch.of_gpus([*map(len, others), needed - last.start])


class _Tasks:
    """The tasks of a batch on its profiles, outer ones first, and how to place them."""

    def __init__(self, batch: Batch) -> None:
        import numpy as np

        self._batch = batch
        # GPU and placement of all places, by profile
        places: dict[Profile, list[GpuPlacement]] = defaultdict(list)
        for kind, gpus in batch.kinds.items():
            placements = kind.placements(batch.profile_set)
            for profile in dict.fromkeys(placement.profile for placement in placements):
                places[profile] = [(gpu, at) for gpu in gpus for at in placements if at.profile == profile]
        self._profiles, self._places = list(places), list(places.values())
        # seconds of each task on each profile, infinite where it cannot run
        seconds = [[task.time_on(profile) for task in batch.tasks] for profile in self._profiles]
        self._times: Reals = np.array([[math.inf if time is None else time for time in row] for row in seconds])
        self._live: dict[tuple[int, tuple[int, int, int]], LiveInstance] = {}
        # For each slice of each GPU the second from which it is clear of what is live at the start.
        self._clear = [[0.0] * kind.memory_slices for kind, gpus in batch.kinds.items() for _ in gpus]
        for live in batch.initial:
            placement = batch.placement(live)
            self._live[live.gpu, placement.shape] = live
            cleared = live.free + batch.operations.of("destroy", placement.profile)
            for position in placement.footprint:
                self._clear[live.gpu][position] = cleared
        begins = (min(self._begin(self._clear, *place) for place in places) for places in self._places)
        self.begins = dict(zip(self._profiles, begins, strict=True))

    def simple_schedule(self) -> _Found:
        """Return the makespan of a schedule, and the GPU and placement of each task in it.

        Each task runs where it takes the least area. As that may be very long, it is then to end within half of the
        makespan wherever it can, again and again, as long as that gains much. Where the schedule is still long, because
        operations are, as many tasks as can run on instances of one profile, whichever is best.
        """
        import numpy as np

        area = self._times * np.array([[profile.memory_slices] for profile in self._profiles])
        ends = self._times + np.array([*self.begins.values()])[:, np.newaxis]
        first = ends.min(axis=0)
        profiles = area.argmin(axis=0)
        least = self._nested(profiles)
        while True:
            # The one that ends first, where none ends in time.
            in_time = ends <= np.maximum(least[0] / 2, first)
            sooner = np.where(in_time, area, np.inf).argmin(axis=0)
            found = self._nested(sooner) if (sooner != profiles).any() else least
            if found[0] >= least[0] * _GAIN:
                break
            least, profiles = found, sooner
        slices = max(1, sum(clear < least[0] for gpu in self._clear for clear in gpu))
        if least[0] > _LONG * max(float(area.min(axis=0).sum()) / slices, float(first.max())):
            alone = [np.where(row < least[0], at, profiles) for at, row in enumerate(ends)]
            least = min(least, *map(self._nested, alone), key=lambda found: found[0])
        return least

    def _nested(self, profiles: Integers) -> _Found:
        assignment = self._spread(profiles)
        return nested_makespan(self._batch, assignment), assignment

    def _spread(self, profiles: Integers) -> tuple[GpuPlacement, ...]:
        """Return a place for each task on its profile: the longest one first, each where it begins first."""
        import numpy as np

        times = self._times[profiles, np.arange(len(profiles))]
        seconds: list[float] = times.tolist()
        queues: list[list[int]] = [[] for _ in self._profiles]
        for task in np.argsort(-times, kind="stable").tolist():
            queues[profiles[task]].append(task)
        clear = [list(slices) for slices in self._clear]
        assignment: dict[int, GpuPlacement] = {}
        for places, queue in zip(self._places, queues, strict=True):
            if not queue:
                continue
            begins = [(self._begin(clear, *place), at) for at, place in enumerate(places)]
            heapq.heapify(begins)
            ends: dict[int, float] = {}
            for task in queue:
                begin, at = begins[0]
                ends[at] = begin + seconds[task]
                heapq.heapreplace(begins, (ends[at], at))
                assignment[task] = places[at]
            for at, end in ends.items():
                gpu, placement = places[at]
                cleared = end + self._batch.operations.of("destroy", placement.profile)
                for position in placement.footprint:
                    clear[gpu][position] = max(clear[gpu][position], cleared)
        return tuple(assignment[task] for task in range(len(profiles)))

    def _begin(self, clear: Sequence[Sequence[float]], gpu: int, placement: Placement) -> float:
        """Return the second before which nothing can run in a place, if its slices are clear from some second on."""
        live = self._live.get((gpu, placement.shape))
        if live is not None:
            return live.free
        cleared = max(clear[gpu][at] for at in placement.footprint)
        return cleared + self._batch.operations.of("create", placement.profile)

    def reachable(self, latest: float) -> Iterator[Place[float]]:
        """Yield the places where some task can end by a second, and the live instances that are in the way of one."""
        import numpy as np

        times: dict[Profile, dict[int, float]] = {}
        for profile, seconds in zip(self._profiles, self._times, strict=True):
            tasks = np.nonzero(self.begins[profile] + seconds <= latest)[0]
            times[profile] = dict(zip(tasks.tolist(), seconds[tasks].tolist(), strict=True))
        operations = self._batch.operations
        costs = {of: (operations.of("create", of), operations.of("destroy", of)) for of in self._profiles}
        shortest = dict(zip(self._profiles, self._times.min(axis=1).tolist(), strict=True))
        kinds = self._batch.kinds.items()
        on_gpus = ((gpu, kind.placements(self._batch.profile_set)) for kind, gpus in kinds for gpu in gpus)
        for gpu, placements in on_gpus:
            found: list[Place[float]] = []
            for placement in placements:
                in_time = self._begin(self._clear, gpu, placement) + shortest[placement.profile] <= latest
                live = self._live.get((gpu, placement.shape))
                free, durations = live.free if live else None, times[placement.profile] if in_time else {}
                found.append(Place(gpu, placement, free, *costs[placement.profile], durations))
            wanted = [place.placement for place in found if place.durations]
            for place in found:
                if place.durations or (place.free is not None and any(map(place.placement.conflicts, wanted))):
                    yield place
