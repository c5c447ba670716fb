"""FAR, phases 1 and 2.

Phase 1 is a family of allocations of instance sizes to tasks (paper, Section 3.1; after Turek et al.), phase 2 list
scheduling on the repartition tree (Section 3.2, Algorithm 1).
"""

from __future__ import annotations

import bisect
import heapq
from dataclasses import dataclass

from mig_opt.batch.batch import Batch
from mig_opt.batch.schedule import OperationKind, Schedule
from mig_opt.batch.timing import PlannedInstance, live_instances, timed_schedule
from mig_opt.gpu.model import Placement, Profile


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
        work = {profile: batch.kind(0).blocked_slices(profile) for profile in profiles}
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
    return sorted(batch.kind(0).profiles_of(batch.profile_set), key=size_of)


def size_of(profile: Profile) -> tuple[int, int]:
    """Return what profiles are ordered by: compute slices, then memory slices."""
    return profile.compute_slices, profile.memory_slices


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


@dataclass(frozen=True, slots=True)
class _Node:
    """A placement of the repartition tree on one GPU."""

    # where it is
    gpu: int
    placement: Placement
    children: tuple[int, ...]  # its children in the tree, as indices of nodes
    below: tuple[int, ...]  # all its descendants
    kind: int  # Number of its profile, in the order of :func:`profiles_by_size`. (Profiles take long to hash.)
    kinds_below: tuple[int, ...]  # the profiles of its descendants, in the same way


class Repartitioning:
    """Algorithm 1 for one batch, reusable for many allocations.

    The instance that becomes free first takes the longest task that is left for its size. When none is left, it is
    destroyed and its children in the tree take its place - unless nothing is left that could run below it, in which
    case the paper's algorithm would spend a destruction for nothing. Where another instance takes what was left, the
    destruction is removed from the schedule in the end. Every task must have a placement.
    """

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.nodes: list[_Node] = []
        self.roots: list[int] = []
        children = batch.kind(0).children(batch.profile_set)
        kinds = {profile: kind for kind, profile in enumerate(profiles_by_size(batch))}
        descendants = batch.kind(0).below(batch.profile_set)
        tops = batch.kind(0).outermost(batch.profile_set)
        for gpu in range(batch.gpus):
            index = {placement: len(self.nodes) + at for at, placement in enumerate(children)}
            for placement in children:
                below = descendants[placement]
                self.nodes.append(
                    _Node(
                        gpu,
                        placement,
                        tuple(index[child] for child in children[placement]),
                        tuple(sorted(index[other] for other in below)),
                        kinds[placement.profile],
                        tuple({kinds[other.profile] for other in below}),
                    )
                )
                if placement in tops:
                    self.roots.append(index[placement])
        # A live instance of a variant (media engines, ...) serves like the plain profile of the same shape.
        where = {(node.gpu, node.placement.shape): at for at, node in enumerate(self.nodes)}
        self.live = {where[live.gpu, live.placement.shape]: live for live in live_instances(batch)}


class RepartitionPlan:
    """One run of Algorithm 1 on the current allocation of a family, and the decisions that it took.

    It ends early, with a longer makespan than ``stop_at`` seconds, once it is certain that this will be so.
    """

    def __init__(self, repartitioning: Repartitioning, family: AllocationFamily, stop_at: float = float("inf")) -> None:
        # Seconds, with every destruction that the algorithm spends; the schedule may do without some and be shorter.
        self.makespan = 0.0
        self._batch = repartitioning.batch
        self._nodes = repartitioning.nodes
        # By kind of profile: the tasks that are left, and how many they are.
        self._left = [iter(group) for group in family.groups.values()]
        self._pending = [len(group) for group in family.groups.values()]
        self._instances = live_instances(self._batch)
        self._operations: list[tuple[OperationKind, int]] = []
        self._driver_free = [0.0] * self._batch.gpus
        self._any_live = bool(self._instances)
        # Of the nodes that have a live instance: its index, and when it becomes free.
        self._instance_of = {at: index for index, at in enumerate(repartitioning.live)}
        self._ends = {at: live.free or 0.0 for at, live in repartitioning.live.items()}
        # Entries are (end of the instance or time at which its place is clear, tie-breaker, node).
        self._heap = [(self._ends.get(at, 0.0), turn, at) for turn, at in enumerate(repartitioning.roots)]
        self._turns = len(self._heap)
        # Of the nodes that wait for live instances below them: the time at which their place is clear but for those.
        self._waiting: dict[int, float] = {}
        heapq.heapify(self._heap)
        while self._heap and self.makespan <= stop_at:
            now, _, at = self._heap[0]
            if self._pending[self._nodes[at].kind]:
                if not self._any_live or not self._wait(now, at):
                    self._place(now, at)
            else:
                heapq.heappop(self._heap)
                if any(self._pending[kind] for kind in self._nodes[at].kinds_below):
                    self._split(now, at)

    def schedule(self) -> Schedule:
        """Return the schedule of the decisions."""
        return timed_schedule(self._batch, self._instances, self._useful_operations())

    def instances(self) -> list[PlannedInstance]:
        """Return the live instances and then one on each node, outer ones first, with the tasks that they run."""
        live = [instance for instance in self._instances if instance.free is not None]
        created = {(one.gpu, one.placement): one.tasks for one in self._instances if one.free is None}
        places = [(node.gpu, node.placement) for node in self._nodes]
        return live + [PlannedInstance(*place, list(created.get(place, ()))) for place in places]

    def _useful_operations(self) -> list[tuple[OperationKind, int]]:
        """Return the operations without the destructions that make room for nothing."""
        wanted: set[tuple[int, int]] = set()
        useful: list[tuple[OperationKind, int]] = []
        for kind, index in reversed(self._operations):
            instance = self._instances[index]
            footprint = {(instance.gpu, position) for position in instance.placement.footprint}
            if kind == "create":
                wanted |= footprint
            elif wanted.isdisjoint(footprint):
                continue
            useful.append((kind, index))
        return useful[::-1]

    def _wait(self, now: float, at: int) -> bool:
        """Move the node at the top of the heap to the time when the last live instance below it is free, if later."""
        clear = max((self._ends[other] for other in self._nodes[at].below if other in self._ends), default=now)
        if clear <= now:
            self._waiting.pop(at, None)
            return False
        self._waiting[at] = now
        heapq.heapreplace(self._heap, (clear, self._turns, at))
        self._turns += 1
        return True

    def _stop_waiting(self, kind: int) -> None:
        """Put the nodes that waited for a place for a profile back to where they were: all its tasks have one."""
        if any(self._nodes[at].kind == kind for at in self._waiting):
            self._heap = [
                (self._waiting.pop(at), turn, at)
                if at in self._waiting and self._nodes[at].kind == kind
                else (end, turn, at)
                for end, turn, at in self._heap
            ]
            heapq.heapify(self._heap)

    def _place(self, now: float, at: int) -> None:
        """Give the node at the top of the heap the longest tasks that are left for its size."""
        node = self._nodes[at]
        kind = node.kind
        if at not in self._instance_of:
            for other in sorted((o for o in node.below if o in self._ends), key=self._ends.__getitem__):
                now = max(now, self._operate("destroy", other, self._ends[other]))
            self._instance_of[at] = len(self._instances)
            self._instances.append(PlannedInstance(node.gpu, node.placement))
            now = self._operate("create", at, now)
        others = self._heap[1:3]
        next_end = min(others)[0] if others else float("inf")
        left, pending = self._left[kind], self._pending[kind]
        tasks = self._instances[self._instance_of[at]].tasks
        while True:
            minus_seconds, task = next(left)
            tasks.append(self._batch.tasks[task])
            now -= minus_seconds
            pending -= 1
            # The instance goes on for as long as it is the first to become free; of equal ones the others come first.
            if not pending or now >= next_end:
                break
        self._pending[kind] = pending
        self._ends[at] = now
        self.makespan = max(self.makespan, now)
        heapq.heapreplace(self._heap, (now, self._turns, at))
        self._turns += 1
        if not pending:
            self._stop_waiting(kind)

    def _split(self, now: float, at: int) -> None:
        """Put the children of a node, just taken from the heap, in its place."""
        if at in self._instance_of:
            cleared = self._operate("destroy", at, now)
            now = cleared if self._batch.parallel_operations else now
        for child in self._nodes[at].children:
            heapq.heappush(self._heap, (self._ends.get(child, now), self._turns, child))
            self._turns += 1

    def _operate(self, kind: OperationKind, at: int, ready: float) -> float:
        """Append an operation and return its end."""
        gpu = self._nodes[at].gpu
        begin = ready if self._batch.parallel_operations else max(ready, self._driver_free[gpu])
        end = begin + self._batch.operations.of(kind, self._nodes[at].placement.profile)
        self._driver_free[gpu] = max(self._driver_free[gpu], end)
        self._operations.append((kind, self._instance_of[at]))
        if kind == "destroy":
            del self._instance_of[at], self._ends[at]
        return end
