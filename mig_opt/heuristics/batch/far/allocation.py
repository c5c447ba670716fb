"""FAR, phase 1: a family of allocations of instance sizes to tasks (paper, Section 3.1; after Turek et al.)."""

from __future__ import annotations

import bisect
import heapq

from mig_opt.batch.batch import Batch
from mig_opt.gpu.model import Profile


class AllocationFamily:
    """The allocations, one after the other.

    The first one gives each task the profile of least work (slices x seconds; of equal ones the smallest). The next
    ones move the longest task to a larger profile on which it is faster, again the one of least work. The paper
    assumes that a larger instance is never slower; where measured times break this, slower profiles are left out,
    since they make a task both longer and larger. The family ends when the longest task cannot be sped up.

    Two properties hold for every step, and FAR's search relies on them: ``area`` never decreases, ``longest`` never
    grows. Every task must have a placement.
    """

    def __init__(self, batch: Batch) -> None:
        profiles = profiles_by_size(batch)
        # Work counts compute slices, as in the paper.
        work = {profile: batch.gpu.blocked_slices(profile) for profile in profiles}
        self._steps: list[list[tuple[Profile, float]]] = []
        # for each profile the tasks that are allocated to it as (-seconds, index), longest first
        self.groups: dict[Profile, list[tuple[float, int]]] = {profile: [] for profile in profiles}
        self.group_area = dict.fromkeys(profiles, 0.0)  # the area by profile
        self._heap: list[tuple[float, int]] = []
        for index, task in enumerate(batch.tasks):
            options = [(p, seconds) for p in profiles if (seconds := task.time_on(p)) is not None]
            steps = _steps(options, work)
            self._steps.append(steps)
            profile, seconds = steps[-1]
            self.group_area[profile] += profile.compute_slices * seconds
            self.groups[profile].append((-seconds, index))
            self._heap.append((-seconds, index))
        heapq.heapify(self._heap)
        for group in self.groups.values():
            group.sort()

    @property
    def area(self) -> float:
        """Sum over tasks of compute slices x seconds, in slice-seconds."""
        return sum(self.group_area.values())

    @property
    def longest(self) -> float:
        """Seconds of the longest task."""
        return -self._heap[0][0]

    def advance(self) -> bool:
        """Go to the next allocation; return False if this one is the last."""
        entry = self._heap[0]
        steps = self._steps[entry[1]]
        if len(steps) == 1:
            return False
        profile, seconds = steps.pop()
        faster, fewer = steps[-1]
        self.group_area[profile] -= profile.compute_slices * seconds
        self.group_area[faster] += faster.compute_slices * fewer
        del self.groups[profile][bisect.bisect_left(self.groups[profile], entry)]
        bisect.insort(self.groups[faster], (-fewer, entry[1]))
        heapq.heapreplace(self._heap, (-fewer, entry[1]))
        return True


def profiles_by_size(batch: Batch) -> list[Profile]:
    """Return the profiles to allocate, smallest first."""
    return sorted(batch.gpu.profiles_of(batch.profile_set), key=lambda p: (p.compute_slices, p.memory_slices))


def _steps(options: list[tuple[Profile, float]], work: dict[Profile, int]) -> list[tuple[Profile, float]]:
    """Return the profiles that a task goes through, last one first, from its options by ascending size."""
    steps: list[tuple[Profile, float]] = []
    areas = [work[profile] * seconds for profile, seconds in options]
    while options:
        least = areas.index(min(areas))
        longest = options[least][1]
        steps.append(options[least])
        larger = [at for at in range(least + 1, len(options)) if options[at][1] <= longest]
        options, areas = [options[at] for at in larger], [areas[at] for at in larger]
    return steps[::-1]
