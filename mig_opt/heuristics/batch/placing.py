"""Greedy placement of tasks, one after the other, for methods that never revise a decision."""

from __future__ import annotations

from mig_opt.batch.batch import Batch, Task
from mig_opt.batch.schedule import Schedule
from mig_opt.batch.timing import PlannedInstance, sequenced_schedule
from mig_opt.gpu.model import Placement


class Placing:
    """State of the GPUs while tasks are put on placements: instances, and when they and the free slices are available.

    A task runs on the instance of that shape which exists there, after what that one has to run already; if there is
    none, whatever is in the way is destroyed and one is created. Live instances of the initial state count like others,
    those of a variant (media engines, ...) as the plain profile of the same shape.

    The times here are estimates in which no operation waits for the driver; :meth:`schedule` has the true ones.

    Parameters
    ----------
    batch : Batch
        The batch.
    """

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._instances: list[PlannedInstance] = []
        self._ends: list[float] = []
        # For each slice of each GPU the instance there, or since when it is empty.
        self._holders: list[list[int | None]] = [[None] * batch.gpu.memory_slices for _ in range(batch.gpus)]
        self._clear = [[0.0] * batch.gpu.memory_slices for _ in range(batch.gpus)]
        for live in batch.initial:
            placement = batch.gpu.placement(live.profile, live.start)
            self._append(PlannedInstance(live.gpu, placement, free=live.free), live.free)

    def begin(self, gpu: int, placement: Placement) -> float:
        """Return the second at which a task that is put there now would begin.

        It never falls, whatever is put wherever.
        """
        index = self._existing(gpu, placement)
        if index is not None:
            return self._ends[index]
        clear = max(self._clear_from(gpu, position) for position in placement.footprint)
        return clear + self._batch.operations.of("create", placement.profile)

    def put(self, task: Task, gpu: int, placement: Placement) -> float:
        """Put ``task`` there and return the second at which it ends."""
        index = self._existing(gpu, placement)
        if index is None:
            begin = self.begin(gpu, placement)
            for position in placement.footprint:
                self._retire(gpu, position)
            index = self._append(PlannedInstance(gpu, placement), begin)
        self._instances[index].tasks.append(task)
        self._ends[index] += task.times[placement.profile.compute_slices]
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

    def _retire(self, gpu: int, position: int) -> None:
        """Destroy the instance on a slice, if there is one."""
        index = self._holders[gpu][position]
        if index is None:
            return
        clear = self._clear_from(gpu, position)
        for other in self._instances[index].placement.footprint:
            self._holders[gpu][other] = None
            self._clear[gpu][other] = clear

    def _append(self, instance: PlannedInstance, end: float) -> int:
        index = len(self._instances)
        self._instances.append(instance)
        self._ends.append(end)
        for position in instance.placement.footprint:
            self._holders[instance.gpu][position] = index
        return index
