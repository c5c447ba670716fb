"""Greedy placement of tasks; the methods ``list`` and ``lpt``: list scheduling of the allocation of least work.

R. L. Graham: "Bounds on multiprocessing timing anomalies", SIAM Journal on Applied Mathematics 17 (1969),
doi:10.1137/0117039. Sizes are chosen as in the first allocation of J. Turek et al. (SPAA 1992): of least work.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from mig_opt.batch.batch import Batch, Task
from mig_opt.batch.schedule import Schedule
from mig_opt.batch.timing import PlannedInstance, live_instances, sequenced_schedule
from mig_opt.gpu.model import GpuModel, Placement, Profile
from mig_opt.heuristics.batch.far.repartitioning import size_of
from mig_opt.method.control import Control

_SECONDS_PER_TASK = 1.5e-5
"""Seconds to place a task."""


def list_scheduling(batch: Batch, control: Control[Schedule]) -> None:
    """Put the tasks, in the order of the batch, where they begin first, and report the schedule.

    Each task runs on the profile of least work (slices x seconds; of equal ones the smallest). Of all placements of
    that profile, on all GPUs, it gets the one where it begins first, creations and destructions included; of equal ones
    the first. On several kinds of GPUs it gets the kind where it ends first. There is one schedule, so limits come into
    effect only after it.
    """
    _schedule(batch, control, by_length=False)


def longest_first(batch: Batch, control: Control[Schedule]) -> None:
    """Do the same as :func:`list_scheduling`, longest tasks first (LPT; of equal ones in the order of the batch)."""
    _schedule(batch, control, by_length=True)


def _schedule(batch: Batch, control: Control[Schedule], *, by_length: bool) -> None:
    kinds = [(kind, sorted(kind.profiles_of(batch.profile_set), key=size_of)) for kind in batch.kinds]
    allocated = []
    for index, task in enumerate(batch.tasks):
        found = [_least_work(task, kind, profiles) for kind, profiles in kinds]
        allocated.append((index, [choice for choice in found if choice is not None]))
    if by_length:
        allocated.sort(key=lambda entry: -min(seconds for _, seconds in entry[1]))
    builder = ScheduleBuilder(batch)
    places = [(gpu, placement) for gpu in range(batch.gpus) for placement in batch.placements(gpu)]
    # For each profile its places as (second at which a task would begin, place). That second may have grown since.
    heaps: dict[Profile, list[tuple[float, int]]] = {}
    for at, (gpu, placement) in enumerate(places):
        heaps.setdefault(placement.profile, []).append((builder.begin(gpu, placement), at))
    for heap in heaps.values():
        heapq.heapify(heap)
    control.spend(_SECONDS_PER_TASK * len(batch.tasks))

    def first(profile: Profile) -> float:
        """Return when a task would begin at the place on top of the heap, which is where it begins first."""
        heap = heaps[profile]
        while True:
            known, at = heap[0]
            begin = builder.begin(*places[at])
            if begin <= known:
                return known
            heapq.heapreplace(heap, (begin, at))

    for index, choices in allocated:
        _, chosen = min((first(profile) + seconds, at) for at, (profile, seconds) in enumerate(choices))
        heap = heaps[choices[chosen][0]]
        at = heap[0][1]
        heapq.heapreplace(heap, (builder.put(batch.tasks[index], *places[at]), at))
    control.report_plan(builder.schedule())


def _least_work(task: Task, kind: GpuModel, profiles: Sequence[Profile]) -> tuple[Profile, float] | None:
    """Return the profile of a kind on which a task is the least work, the first of equal ones, and the seconds."""
    found = [(profile, seconds) for profile in profiles if (seconds := task.time_on(profile)) is not None]
    return min(found, key=lambda choice: kind.blocked_slices(choice[0]) * choice[1], default=None)


class ScheduleBuilder:
    """State of the GPUs while tasks are put on placements: instances, and when they and the free slices are available.

    A task runs on the instance of that shape which exists there, after what that one has to run already; if there is
    none, whatever is in the way is destroyed and one is created. Live instances of the initial state count like others,
    those of a variant (media engines, ...) as the plain profile of the same shape.

    The times here are estimates in which no operation waits for the driver; :meth:`schedule` has the true ones.
    """

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._instances: list[PlannedInstance] = []
        self._ends: list[float] = []
        # For each slice of each GPU the instance there, or since when it is empty.
        slices = [kind.memory_slices for kind, gpus in batch.kinds.items() for _ in gpus]
        self._holders: list[list[int | None]] = [[None] * count for count in slices]
        self._clear = [[0.0] * count for count in slices]
        for live in live_instances(batch):
            self._append(live, live.free or 0.0)

    def begin(self, gpu: int, placement: Placement) -> float:
        """Return the second at which a task that is put there now would begin: it never falls, whatever is put."""
        index = self._existing(gpu, placement)
        if index is not None:
            return self._ends[index]
        clear = max(self._clear_from(gpu, position) for position in placement.footprint)
        return clear + self._batch.operations.of("create", placement.profile)

    def exists(self, gpu: int, placement: Placement) -> bool:
        """Return True if a task that is put there now would need no new instance."""
        return self._existing(gpu, placement) is not None

    def put(self, task: Task, gpu: int, placement: Placement) -> float:
        """Put ``task`` there and return the second at which it ends."""
        index = self._existing(gpu, placement)
        if index is None:
            begin = self.begin(gpu, placement)
            for position in placement.footprint:
                holder, clear = self._holders[gpu][position], self._clear_from(gpu, position)
                for other in () if holder is None else self._instances[holder].placement.footprint:
                    self._holders[gpu][other], self._clear[gpu][other] = None, clear
            index = self._append(PlannedInstance(gpu, placement), begin)
        self._instances[index].tasks.append(task)
        self._ends[index] += task.seconds(placement.profile)
        return self._ends[index]

    def schedule(self) -> Schedule:
        """Return the schedule of everything that was put."""
        return sequenced_schedule(self._batch, self._instances)

    def _existing(self, gpu: int, placement: Placement) -> int | None:
        index = self._holders[gpu][placement.start]
        if index is None or self._instances[index].placement.shape != placement.shape:
            return None
        return index

    def _clear_from(self, gpu: int, position: int) -> float:
        """Return the second from which a slice is clear, if the instance there is destroyed as soon as possible."""
        index = self._holders[gpu][position]
        if index is None:
            return self._clear[gpu][position]
        return self._ends[index] + self._batch.operations.of("destroy", self._instances[index].placement.profile)

    def _append(self, instance: PlannedInstance, end: float) -> int:
        index = len(self._instances)
        self._instances.append(instance)
        self._ends.append(end)
        for position in instance.placement.footprint:
            self._holders[instance.gpu][position] = index
        return index
