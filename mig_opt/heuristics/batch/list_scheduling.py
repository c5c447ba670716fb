"""The methods ``list`` and ``lpt``: list scheduling of the allocation of least work.

R. L. Graham: "Bounds on multiprocessing timing anomalies", SIAM Journal on Applied Mathematics 17 (1969),
doi:10.1137/0117039. Sizes are chosen as in the first allocation of J. Turek et al. (SPAA 1992): of least work.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from mig_opt.batch.batch import Batch, Task
from mig_opt.batch.schedule import Schedule
from mig_opt.control import Control
from mig_opt.gpu.model import Profile
from mig_opt.heuristics.batch.far.allocation import AllocationFamily
from mig_opt.heuristics.batch.placing import Placing

_SECONDS_PER_TASK = 1.5e-5
"""What it takes to place a task."""


def list_scheduling(batch: Batch, control: Control[Schedule]) -> None:
    """Put the tasks, in the order of the batch, where they begin first, and offer the schedule to ``control``.

    Each task runs on the profile of least work (slices x seconds; of equal ones the smallest). Of all placements of
    that profile, on all GPUs, it gets the one where it begins first, creations and destructions included; of equal ones
    the first. There is one schedule, so limits come into effect only after it.

    Parameters
    ----------
    batch : Batch
        Any number of GPUs and any initial state; every task has a placement.
    control : Control
        Limits and reports.
    """
    profiles = _profiles_of_least_work(batch)
    _schedule(batch, control, list(zip(batch.tasks, profiles, strict=True)))


def longest_first(batch: Batch, control: Control[Schedule]) -> None:
    """Do the same as :func:`list_scheduling`, longest tasks first (LPT; of equal ones in the order of the batch)."""
    pairs = list(zip(batch.tasks, _profiles_of_least_work(batch), strict=True))
    _schedule(batch, control, sorted(pairs, key=lambda pair: -pair[0].times[pair[1].compute_slices]))


def _profiles_of_least_work(batch: Batch) -> list[Profile]:
    """Return the profile of each task in the first allocation of the family."""
    groups = AllocationFamily(batch).groups
    chosen = {index: profile for profile, group in groups.items() for _, index in group}
    return [chosen[index] for index in range(len(batch.tasks))]


def _schedule(batch: Batch, control: Control[Schedule], pairs: Sequence[tuple[Task, Profile]]) -> None:
    placing = Placing(batch)
    places = [(gpu, placement) for gpu in range(batch.gpus) for placement in batch.placements()]
    # For each profile its places as (second at which a task would begin, place). That second may have grown since.
    heaps: dict[Profile, list[tuple[float, int]]] = {}
    for at, (gpu, placement) in enumerate(places):
        heaps.setdefault(placement.profile, []).append((placing.begin(gpu, placement), at))
    for heap in heaps.values():
        heapq.heapify(heap)
    control.spend(_SECONDS_PER_TASK * len(pairs))
    for task, profile in pairs:
        heap = heaps[profile]
        while True:
            known, at = heap[0]
            begin = placing.begin(*places[at])
            if begin <= known:
                break
            heapq.heapreplace(heap, (begin, at))
        heapq.heapreplace(heap, (placing.put(task, *places[at]), at))
    control.offer(placing.schedule())
