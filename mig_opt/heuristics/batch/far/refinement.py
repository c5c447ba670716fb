"""FAR, phase 3: moves and swaps of tasks between instances of one size (paper, Section 3.3, Algorithm 2)."""

from __future__ import annotations

import bisect
import heapq
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from mig_opt.batch.batch import Batch
from mig_opt.batch.schedule import OperationKind, Schedule
from mig_opt.batch.timing import GpuTimeline, PlannedInstance, Times, timed_schedule
from mig_opt.gpu.model import Profile
from mig_opt.method.control import Control

_SECONDS_PER_TRIAL, _SECONDS_PER_GPU = 2e-4, 2e-6
"""Time to find a step and to judge it, and time that each GPU adds."""
_EQUAL_SHARE = 1e-9
"""Times that differ by less than this share of the makespan are equal."""

_MAX_TARGETS = 8
"""Instances of a size that are looked at when several are: those that end first."""
_MAX_TRIALS = 8
"""Steps that are judged then before the refinement gives up."""

Reading = Literal["margins", "slacks"]
"""Ends of the slices of an instance, which decide where steps begin and where they lead.

``margins``: as printed, with the last task on them. ``slacks``: before the makespan by the time that the work on the
instance could grow without a longer makespan, which also counts what waits for it on other slices (critical path).
"""

Entry = tuple[float, int]
"""A task as (seconds, index)."""
_Place = tuple[int, int]
"""An instance as (GPU, index on it)."""
_End = tuple[float, int]
"""The last end of an instance's slices in seconds, and its index on the GPU."""
_NEVER: _End = (math.inf, -1)


@dataclass(frozen=True, slots=True)
class _Step:
    """A move (``back`` is None) or a swap: ``task`` goes from one place to another, ``back`` the other way."""

    source: _Place
    target: _Place
    task: Entry
    back: Entry | None

    @property
    def change(self) -> float:
        """Seconds by which the source's load falls."""
        return self.task[0] - (self.back[0] if self.back else 0.0)


class _Gpu:
    """The instances of one GPU with their tasks, shortest first, and the times that follow."""

    def __init__(self, timeline: GpuTimeline, tasks: list[list[Entry]], reading: Reading) -> None:
        self.timeline, self.tasks, self.reading = timeline, tasks, reading
        self.retime([sum(seconds for seconds, _ in entries) for entries in tasks])

    def retime(self, loads: list[float], times: Times | None = None) -> None:
        """Take over some loads."""
        self.loads = loads
        self.times = times or self.timeline.times(loads)
        self.last_ends = self.ends_for(loads, self.times)
        # For each profile the instance whose last slice ends first.
        self.first_ends: dict[Profile, _End] = {}
        for index, (instance, end) in enumerate(zip(self.timeline.instances, self.last_ends, strict=True)):
            profile = instance.placement.profile
            self.first_ends[profile] = min((end, index), self.first_ends.get(profile, _NEVER))

    def ends_for(self, loads: Sequence[float], times: Times) -> list[float]:
        """Return for each instance the second at which its slices end, as they are read."""
        if self.reading == "slacks":
            return [times.makespan - slack for slack in self.timeline.slacks(loads, times)]
        return self.timeline.last_ends(loads, times)


class Refinement:
    """Refines an assignment of tasks to instances, step by step.

    The paper looks at the instances on whose slices the makespan is reached, from the innermost outwards. For each it
    takes the instance of the same size whose slices end first, and moves the task there that fits best: its time has to
    be below the margin between that end and the makespan, and as close to half of it as possible. If there is none, it
    swaps two tasks whose difference fits best. Here each step is judged by the times that follow from it, creations and
    destructions included: the makespan has to fall, or else what is critical has to become less. The paper places the
    operations only after the last step, so its steps may make a schedule longer.

    The instances of each GPU are given in the order of a :class:`~mig_opt.batch.timing.GpuTimeline`; ``driver_free``
    and ``clear`` are as in :func:`mig_opt.batch.timing.timed_schedule`. ``moves`` and ``swaps`` count the steps so far.
    """

    def __init__(
        self,
        batch: Batch,
        instances: Sequence[PlannedInstance],
        *,
        driver_free: Mapping[int, float] | None = None,
        clear: Mapping[tuple[int, int], float] | None = None,
    ) -> None:
        self.moves = self.swaps = 0
        self._batch = batch
        self._driver_free = driver_free or {}
        self._clear = clear or {}
        self._gpus: list[_Gpu] = []
        index = {task.name: at for at, task in enumerate(batch.tasks)}
        on_gpu: dict[int, list[PlannedInstance]] = defaultdict(list)
        for instance in instances:
            on_gpu[instance.gpu].append(instance)
        for gpu in range(batch.gpus):
            timeline = GpuTimeline(
                on_gpu[gpu],
                batch.operations,
                parallel_operations=batch.parallel_operations,
                driver_free=self._driver_free.get(gpu, 0.0),
                clear={position: at for (where, position), at in self._clear.items() if where == gpu},
            )
            tasks = [
                sorted((task.seconds(instance.placement.profile), index[task.name]) for task in instance.tasks)
                for instance in on_gpu[gpu]
            ]
            self._gpus.append(_Gpu(timeline, tasks, "margins"))
        self._makespans = [gpu.times.makespan for gpu in self._gpus]
        # The profiles by size, and for each of them what its GPUs say about it.
        self._profiles: dict[int, list[Profile]] = defaultdict(list)
        self._first_ends: dict[Profile, list[_End]] = {}
        for profile in dict.fromkeys(profile for gpu in self._gpus for profile in gpu.first_ends):
            self._profiles[profile.compute_slices].append(profile)
            self._first_ends[profile] = [gpu.first_ends.get(profile, _NEVER) for gpu in self._gpus]
        self._any_memory = any(task.memory_gb is not None for task in batch.tasks)

    @property
    def makespan(self) -> float:
        """Seconds of the assignment as it is."""
        return max(self._makespans)

    def run(
        self,
        control: Control[Schedule],
        *,
        reading: Reading = "margins",
        several: bool = False,
        max_steps: int | None = None,
        min_improvement: float = 0.0,
    ) -> None:
        """Take steps until none is left that improves, or the time is up; nothing is reported to ``control``.

        With ``several`` a step may lead to any of the instances of its size that end first, not only to the first of
        them; what promises most is tried first. ``max_steps`` limits moves and swaps together, those of earlier calls
        included, and a step that makes the makespan shorter by less than the share ``min_improvement`` is the last one.
        """
        self._read(reading)
        while max_steps is None or self.moves + self.swaps < max_steps:
            before = self.makespan
            if several:
                taken = self._improve_most(control)
            else:
                taken = any(self._improve(source, control) for source in self._critical_places())
            if not taken:
                break
            gain = before - self.makespan
            if _EQUAL_SHARE * before < gain < min_improvement * before:
                break

    def schedule(self) -> Schedule:
        """Return the schedule of the assignment."""
        batch = self._batch
        instances: list[PlannedInstance] = []
        operations: list[tuple[OperationKind, int]] = []
        for gpu in self._gpus:
            first = len(instances)
            for instance, entries in zip(gpu.timeline.instances, gpu.tasks, strict=True):
                tasks = [batch.tasks[at] for _, at in sorted(entries, key=lambda entry: (-entry[0], entry[1]))]
                instances.append(replace(instance, tasks=tasks))
            operations += [(kind, first + at) for kind, at in gpu.times.order]
        return timed_schedule(batch, instances, operations, driver_free=self._driver_free, clear=self._clear)

    def _read(self, reading: Reading) -> None:
        for number, gpu in enumerate(self._gpus):
            gpu.reading = reading
            gpu.retime(gpu.loads, gpu.times)
            self._note_ends(number)

    def _note_ends(self, number: int) -> None:
        for profile, end in self._gpus[number].first_ends.items():
            self._first_ends[profile][number] = end

    def _critical_places(self) -> list[_Place]:
        """Return the instances whose loads decide the makespan, innermost first."""
        makespan = self.makespan
        limit = makespan * (1 - _EQUAL_SHARE)
        found = [
            (number, at)
            for number, gpu in enumerate(self._gpus)
            if self._makespans[number] >= limit
            for at in _critical(gpu.loads, gpu.last_ends, makespan)
        ]
        return sorted(found, key=lambda place: self._profile(place).memory_slices)

    def _profile(self, place: _Place) -> Profile:
        return self._gpus[place[0]].timeline.instances[place[1]].placement.profile

    def _improve(self, source: _Place, control: Control[Schedule]) -> bool:
        """Take a step that relieves ``source``, if one is found."""
        for profile in self._profiles[self._profile(source).compute_slices]:
            ends = self._first_ends[profile]
            number = min(range(len(ends)), key=ends.__getitem__)
            end, at = ends[number]
            target, margin = (number, at), self.makespan - end
            for find in (self._move, self._swap):
                if control.expired:
                    return False
                step = find(source, target, margin)
                if step is not None:
                    control.spend(_SECONDS_PER_TRIAL + _SECONDS_PER_GPU * len(self._gpus))
                    if self._take(step):
                        return True
        return False

    def _improve_most(self, control: Control[Schedule]) -> bool:
        """Take the first step that is an improvement, from those that promise most to those that promise least."""
        makespan = self.makespan
        found: list[tuple[float, int, _Step]] = []
        targets: dict[int, list[tuple[float, _Place]]] = {}
        for source in self._critical_places():
            size = self._profile(source).compute_slices
            if size not in targets:
                targets[size] = self._first_to_end(size)
            for end, target in targets[size]:
                margin = makespan - end
                if target == source or margin <= makespan * _EQUAL_SHARE:
                    continue
                control.spend(_SECONDS_PER_TRIAL)
                if control.expired:
                    return False
                for find in (self._move, self._swap):
                    step = find(source, target, margin)
                    if step is not None:
                        found.append((abs(step.change - margin / 2) - margin / 2, len(found), step))
        return any(self._take(step) for _, _, step in sorted(found, key=lambda entry: entry[:2])[:_MAX_TRIALS])

    def _first_to_end(self, size: int) -> list[tuple[float, _Place]]:
        """Return the instances of a size whose slices end first, with that end."""
        return heapq.nsmallest(
            _MAX_TARGETS,
            (
                (end, (number, at))
                for number, gpu in enumerate(self._gpus)
                for at, end in enumerate(gpu.last_ends)
                if gpu.timeline.instances[at].placement.profile.compute_slices == size
            ),
        )

    def _move(self, source: _Place, target: _Place, margin: float) -> _Step | None:
        task = _closest(self._entries(source, target), margin / 2, margin)
        return None if task is None else _Step(source, target, task, None)

    def _swap(self, source: _Place, target: _Place, margin: float) -> _Step | None:
        best: tuple[float, _Step] | None = None
        shorter = self._entries(target, source)
        for task in self._entries(source, target) if shorter else ():
            # The other one is shorter than this one, but by less than the margin.
            at = bisect.bisect_left(shorter, (task[0] - margin / 2, 0))
            for back in shorter[max(at - 1, 0) : at + 1]:
                gain = task[0] - back[0]
                if 0 < gain < margin and (best is None or abs(gain - margin / 2) < best[0]):
                    best = abs(gain - margin / 2), _Step(source, target, task, back)
        return None if best is None else best[1]

    def _entries(self, source: _Place, target: _Place) -> list[Entry]:
        """Return the tasks of ``source`` that can run at ``target``, shortest first."""
        entries = self._gpus[source[0]].tasks[source[1]]
        profile = self._profile(target)
        if not self._any_memory or profile.memory_gb >= self._profile(source).memory_gb:
            return entries
        return [entry for entry in entries if self._batch.tasks[entry[1]].time_on(profile) is not None]

    def _take(self, step: _Step) -> bool:
        """Take a step if it is an improvement."""
        loads = {number: list(self._gpus[number].loads) for number in (step.source[0], step.target[0])}
        for (number, at), entry, other, sign in (
            (step.source, step.task, step.back, -1),
            (step.target, step.back, step.task, +1),
        ):
            left = len(self._gpus[number].tasks[at]) - (entry is not None) + (other is not None)
            loads[number][at] = loads[number][at] + sign * step.change if left else 0.0
        times = {number: self._gpus[number].timeline.times(after) for number, after in loads.items()}
        if not self._better(loads, times):
            return False
        for number, after in loads.items():
            gpu = self._gpus[number]
            gpu.retime(after, times[number])
            self._makespans[number] = gpu.times.makespan
            self._note_ends(number)
        for place, entry, other in ((step.source, step.task, step.back), (step.target, step.back, step.task)):
            tasks = self._gpus[place[0]].tasks[place[1]]
            if entry is not None:
                del tasks[bisect.bisect_left(tasks, entry)]
            if other is not None:
                bisect.insort(tasks, other)
        if step.back is None:
            self.moves += 1
        else:
            self.swaps += 1
        return True

    def _better(self, loads: Mapping[int, list[float]], times: Mapping[int, Times]) -> bool:
        """Return True if the makespan falls or, where it stays, if less is critical than before."""
        before = self.makespan
        same = before * _EQUAL_SHARE
        if any(entry.makespan > before for entry in times.values()):
            return False
        makespans = list(self._makespans)
        for number, entry in times.items():
            makespans[number] = entry.makespan
        if max(makespans) < before - same:
            return True
        fewer = 0
        for number, entry in times.items():
            gpu = self._gpus[number]
            if gpu.times.makespan >= before - same:
                fewer += len(_critical(gpu.loads, gpu.last_ends, before))
            if entry.makespan >= before - same:
                fewer -= len(_critical(loads[number], gpu.ends_for(loads[number], entry), before))
        return fewer > 0


def _critical(loads: Sequence[float], last_ends: Sequence[float], makespan: float) -> list[int]:
    """Return the instances with a load whose slices end at the makespan."""
    limit = makespan * (1 - _EQUAL_SHARE)
    return [at for at, (load, end) in enumerate(zip(loads, last_ends, strict=True)) if load and end >= limit]


def _closest(entries: Sequence[Entry], wanted: float, below: float) -> Entry | None:
    """Return the entry whose time is closest to ``wanted`` seconds among those with less than ``below``."""
    at = bisect.bisect_left(entries, (wanted, 0))
    near = [entry for entry in entries[max(at - 1, 0) : at + 1] if entry[0] < below]
    return min(near, key=lambda entry: abs(entry[0] - wanted), default=None)
