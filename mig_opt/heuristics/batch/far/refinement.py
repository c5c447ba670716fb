"""FAR, phase 3: moves and swaps of tasks between instances of one size (paper, Section 3.3, Algorithm 2)."""

from __future__ import annotations

import bisect
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mig_opt.batch.batch import Batch
from mig_opt.batch.schedule import OperationKind, Schedule
from mig_opt.batch.timeline import GpuTimeline, Slot, Times
from mig_opt.batch.timing import PlannedInstance, timed_schedule
from mig_opt.control import Control
from mig_opt.gpu.model import Profile

_SECONDS_PER_TRIAL, _SECONDS_PER_GPU = 2e-4, 2e-6
"""What it takes to find a step and to judge it, and more for each GPU."""
_SAME = 1e-9
"""Times that differ by less than this share of the makespan are equal."""

Entry = tuple[float, int]
"""A task as (seconds, index)."""
_Place = tuple[int, int]
"""A slot as (GPU, index)."""
_End = tuple[float, int]
"""The last end of a slot's slices in seconds, and the slot."""
_NEVER: _End = (math.inf, -1)


@dataclass(slots=True)
class SlotTasks:
    """A slot and the tasks that it runs, as indices."""

    slot: Slot
    tasks: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Step:
    """A move (``back`` is None) or a swap: ``task`` goes from one place to another, ``back`` the other way."""

    source: _Place
    target: _Place
    task: Entry
    back: Entry | None


class _Gpu:
    """The slots of one GPU with their tasks, shortest first, and the times that follow."""

    def __init__(self, timeline: GpuTimeline, tasks: list[list[Entry]]) -> None:
        self.timeline = timeline
        self.tasks = tasks
        self.retime([sum(seconds for seconds, _ in entries) for entries in tasks])

    def retime(self, loads: list[float], times: Times | None = None) -> None:
        """Take over some loads."""
        self.loads = loads
        self.times = times or self.timeline.times(loads)
        self.slacks = self.timeline.slacks(loads, self.times)
        # For each profile the slot whose last slice ends first.
        self.first_ends: dict[Profile, _End] = {}
        for index, (slot, slack) in enumerate(zip(self.timeline.slots, self.slacks, strict=True)):
            profile = slot.placement.profile
            self.first_ends[profile] = min((self.times.makespan - slack, index), self.first_ends.get(profile, _NEVER))


class Refinement:
    """Refines an assignment of tasks to slots, step by step.

    The paper looks at the instances on whose slices the makespan is reached, from the innermost outwards. For each it
    takes the instance of the same size whose slices end first, and moves the task there that fits best: its time has to
    be below the margin between that end and the makespan, and as close to half of it as possible. If there is none, it
    swaps two tasks whose difference fits best. Here each step is judged by the times that follow from it, creations and
    destructions included: the makespan has to fall, or else what is critical has to become less. The paper places the
    operations only after the last step, so its steps may make a schedule longer.

    The slots of each GPU are given in the order of a timeline; ``driver_free`` and ``clear`` are as in
    :func:`mig_opt.batch.timing.timed_schedule`. ``moves`` and ``swaps`` count the steps so far.
    """

    def __init__(
        self,
        batch: Batch,
        gpus: Sequence[Sequence[SlotTasks]],
        *,
        driver_free: Mapping[int, float] | None = None,
        clear: Mapping[tuple[int, int], float] | None = None,
    ) -> None:
        self.moves = self.swaps = 0
        self._batch = batch
        self._driver_free = driver_free or {}
        self._clear = clear or {}
        self._gpus: list[_Gpu] = []
        for gpu, entries in enumerate(gpus):
            timeline = GpuTimeline(
                [entry.slot for entry in entries],
                batch.operations,
                parallel_operations=batch.parallel_operations,
                driver_free=self._driver_free.get(gpu, 0.0),
                clear={position: at for (where, position), at in self._clear.items() if where == gpu},
            )
            tasks = [
                sorted((batch.tasks[at].times[entry.slot.placement.profile.compute_slices], at) for at in entry.tasks)
                for entry in entries
            ]
            self._gpus.append(_Gpu(timeline, tasks))
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

    def run(self, control: Control[Schedule], *, max_steps: int | None = None, min_improvement: float = 0.0) -> None:
        """Take steps until none is left that improves, or the time is up; nothing is reported to ``control``.

        ``max_steps`` limits moves and swaps together, and a step that makes the makespan shorter by less than the share
        ``min_improvement`` is the last one.
        """
        while max_steps is None or self.moves + self.swaps < max_steps:
            before = self.makespan
            if not any(self._improve(source, control) for source in self._critical()):
                break
            gain = before - self.makespan
            if _SAME * before < gain < min_improvement * before:
                break

    def schedule(self) -> Schedule:
        """Return the schedule of the assignment."""
        batch = self._batch
        instances: list[PlannedInstance] = []
        operations: list[tuple[OperationKind, int]] = []
        for number, gpu in enumerate(self._gpus):
            first = len(instances)
            for slot, entries in zip(gpu.timeline.slots, gpu.tasks, strict=True):
                tasks = [batch.tasks[at] for _, at in sorted(entries, key=lambda entry: (-entry[0], entry[1]))]
                instances.append(PlannedInstance(number, slot.placement, tasks, slot.free))
            operations += [(kind, first + at) for kind, at in gpu.times.order]
        return timed_schedule(batch, instances, operations, driver_free=self._driver_free, clear=self._clear)

    def _critical(self) -> list[_Place]:
        """Return the places whose loads decide the makespan as (gpu, slot), innermost first."""
        makespan = self.makespan
        limit = makespan * (1 - _SAME)
        found = [
            (number, slot)
            for number, gpu in enumerate(self._gpus)
            if self._makespans[number] >= limit
            for slot in _critical_slots(gpu.loads, gpu.slacks, makespan)
        ]
        return sorted(found, key=lambda place: self._profile(place).memory_slices)

    def _profile(self, place: _Place) -> Profile:
        return self._gpus[place[0]].timeline.slots[place[1]].placement.profile

    def _improve(self, source: _Place, control: Control[Schedule]) -> bool:
        """Take a step that relieves ``source``, if one is found."""
        for profile in self._profiles[self._profile(source).compute_slices]:
            ends = self._first_ends[profile]
            number = min(range(len(ends)), key=ends.__getitem__)
            end, slot = ends[number]
            target, margin = (number, slot), self.makespan - end
            for find in (self._move, self._swap):
                if control.expired:
                    return False
                step = find(source, target, margin)
                if step is not None:
                    control.spend(_SECONDS_PER_TRIAL + _SECONDS_PER_GPU * len(self._gpus))
                    if self._take(step):
                        return True
        return False

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
        change = step.task[0] - (step.back[0] if step.back else 0.0)
        loads = {number: list(self._gpus[number].loads) for number in (step.source[0], step.target[0])}
        for (number, slot), entry, other, sign in (
            (step.source, step.task, step.back, -1),
            (step.target, step.back, step.task, +1),
        ):
            left = len(self._gpus[number].tasks[slot]) - (entry is not None) + (other is not None)
            loads[number][slot] = loads[number][slot] + sign * change if left else 0.0
        times = {number: self._gpus[number].timeline.times(after) for number, after in loads.items()}
        if not self._better(loads, times):
            return False
        for number, after in loads.items():
            gpu = self._gpus[number]
            gpu.retime(after, times[number])
            self._makespans[number] = gpu.times.makespan
            for profile, end in gpu.first_ends.items():
                self._first_ends[profile][number] = end
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
        same = before * _SAME
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
                fewer += len(_critical_slots(gpu.loads, gpu.slacks, before))
            if entry.makespan >= before - same:
                fewer -= len(_critical_slots(loads[number], gpu.timeline.slacks(loads[number], entry), before))
        return fewer > 0


def _critical_slots(loads: Sequence[float], slacks: Sequence[float], makespan: float) -> list[int]:
    """Return the slots with a load that cannot grow, on a GPU that reaches the makespan."""
    same = makespan * _SAME
    return [slot for slot, (load, slack) in enumerate(zip(loads, slacks, strict=True)) if load and slack <= same]


def _closest(entries: Sequence[Entry], wanted: float, below: float) -> Entry | None:
    """Return the entry whose time is closest to ``wanted`` seconds among those with less than ``below``."""
    at = bisect.bisect_left(entries, (wanted, 0))
    near = [entry for entry in entries[max(at - 1, 0) : at + 1] if entry[0] < below]
    return min(near, key=lambda entry: abs(entry[0] - wanted), default=None)
