"""The methods ``fixpart`` and ``fixpart-best``: one partition for the whole batch.

FixPart(P) and FixPartBest of J. Villarrubia et al., JPDC 204 (2025), doi:10.1016/j.jpdc.2025.105128, Section 6.5. They
stand for a GPU that is configured once, by hand.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator, Sequence

from mig_opt.batch.batch import Batch
from mig_opt.batch.schedule import Schedule
from mig_opt.batch.timing import PlannedInstance, live_by_shape, sequenced_schedule
from mig_opt.gpu.model import Placement, Profile
from mig_opt.gpu.partitions import partitions_for
from mig_opt.heuristics.batch.kinds import by_kind
from mig_opt.method.control import Control

_SECONDS_PER_TASK, _SECONDS_PER_PLAN = 1.5e-6, 1e-4
"""Seconds to give the tasks to the instances of a partition."""

_Partitions = Sequence[Sequence[Placement]]
"""Partitions that the GPUs get in turn."""


def fixpart(batch: Batch, control: Control[Schedule], partition: Sequence[Placement]) -> None:
    """Give the tasks, in the order of the batch, to the first free instance of a partition.

    Every GPU gets the partition at the start, from the first slice to the last; live instances that belong to it are
    kept, others are destroyed as soon as they are free. Each task goes to the instance on which it begins first among
    those that it can run on (there has to be one); of equal ones to the one on the first GPU and slice. There is one
    schedule, so limits come into effect only after it.
    """
    _offer_best(batch, control, [(partition,)])


@by_kind
def fixpart_best(batch: Batch, control: Control[Schedule]) -> None:
    """Run :func:`fixpart` for each maximal partition and report what is better than all before.

    If no partition has an instance for every task, several GPUs get different ones, see :func:`mixed_partitions`. There
    is no schedule if these have none either, else there always is one when the time is up.
    """
    alike = [(partition,) for partition in suitable_partitions(batch)]
    _offer_best(batch, control, alike or mixed_partitions(batch))


def _offer_best(batch: Batch, control: Control[Schedule], choices: Iterable[_Partitions]) -> None:
    best = float("inf")
    for partitions in choices:
        plan = _Plan(batch, partitions)
        shorter = plan.run(stop_at=best)
        control.spend(plan.seconds)
        if shorter:
            best = plan.makespan
            control.report_plan(plan.schedule())
        if control.expired:
            return


def suitable_partitions(batch: Batch) -> Iterator[tuple[Placement, ...]]:
    """Return the maximal partitions that have an instance for every task."""
    return partitions_for(batch.kind(0), batch.profile_set, batch.usable_profiles().values())


def mixed_partitions(batch: Batch) -> Iterator[_Partitions]:
    """Yield the fewest maximal partitions that together have an instance for every task, if GPUs get them in turn.

    Of partitions with the same instances only the first counts. There are none if and only if some task has no instance
    however each of the GPUs is partitioned.
    """
    needs = set(batch.usable_profiles().values())
    distinct: dict[tuple[str, ...], tuple[Placement, ...]] = {}
    for partition in batch.kind(0).maximal_partitions(batch.profile_set):
        distinct.setdefault(tuple(sorted(placement.profile.name for placement in partition)), partition)
    met = {
        partition: {need for need in needs if any(placement.profile in need for placement in partition)}
        for partition in distinct.values()
    }
    # Each partition of the fewest is there for a need of its own.
    for count in range(2, min(batch.gpus, len(needs)) + 1):
        found = False
        for chosen in itertools.combinations(met, count):
            if len(set().union(*(met[partition] for partition in chosen))) == len(needs):
                found = True
                yield chosen
        if found:
            return


class _Plan:
    """Partitions, which the GPUs get in turn, and the tasks on their instances."""

    def __init__(self, batch: Batch, partitions: _Partitions) -> None:
        self._batch = batch
        kept = live_by_shape(batch)
        # Those of the partition in the order of the slices, and all in the order in which they exist.
        places = [
            (gpu, place)
            for gpu, partition in zip(range(batch.gpus), itertools.cycle(partitions))
            for place in partition
        ]
        self._instances = [kept.get((gpu, place.shape), PlannedInstance(gpu, place)) for gpu, place in places]
        created = [instance for instance in self._instances if instance.free is None]
        self._sequence = [*kept.values(), *created]
        # A live instance of a variant (media engines, ...) counts as the plain profile of the same shape.
        self._profile_of = [place.profile for _, place in places]
        self.makespan = 0.0
        self.seconds = _SECONDS_PER_PLAN * batch.gpus  # what the run takes on a typical machine

    def run(self, stop_at: float) -> bool:
        """Give all tasks to instances; return False as soon as the makespan is ``stop_at`` or more."""
        queues = list(self._free_instances().items())
        for task in self._batch.tasks:
            best: tuple[float, int] | None = None
            for profile, queue in queues:
                seconds = task.time_on(profile)
                if seconds is not None and (best is None or queue[0] < best):
                    best, duration, chosen = queue[0], seconds, queue
            assert best is not None, "misfits are refused before"
            free, index = best
            self._instances[index].tasks.append(task)
            self.seconds += _SECONDS_PER_TASK * len(queues)
            self.makespan = max(self.makespan, free + duration)
            heapq.heapreplace(chosen, (free + duration, index))
            if self.makespan >= stop_at:
                return False
        return True

    def schedule(self) -> Schedule:
        """Return the schedule of a run that came to its end."""
        return sequenced_schedule(self._batch, self._sequence)

    def _free_instances(self) -> dict[Profile, list[tuple[float, int]]]:
        """Return for each profile its instances as a heap of (second at which it is free, index)."""
        bare = sequenced_schedule(self._batch, self._sequence)
        created = {
            (operation.gpu, operation.start): operation.end
            for operation in bare.operations or ()
            if operation.kind == "create"
        }
        heaps: dict[Profile, list[tuple[float, int]]] = {profile: [] for profile in self._profile_of}
        for index, (instance, profile) in enumerate(zip(self._instances, self._profile_of, strict=True)):
            free = created[instance.gpu, instance.placement.start] if instance.free is None else instance.free
            heaps[profile].append((free, index))
        for heap in heaps.values():
            heapq.heapify(heap)
        return heaps
