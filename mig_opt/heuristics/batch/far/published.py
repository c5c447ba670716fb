"""FAR as its authors' program carries it out (github.com/artecs-group/RL_MIG_scheduler): phases 2 and 3 to the letter.

Where it differs from what is printed:

* Phase 2 spends a destruction on every instance that has run something, whether or not something follows there.
* Phase 3 keeps only the last end of each slice, to which it adds and from which it takes whole tasks; operations are
  placed when it is done. So a step can make the schedule longer, and a later one profit from it.
* The task to move is looked for by bisection, which passes by most tasks; of those that it meets, one that is shorter
  than half of the margin always replaces the one before.
* The pair to swap is looked for in one pass over both instances, which passes by some pairs, too.
* An instance of three slices that leaves a fourth idle counts for three until a step changes it.
* After 100 rounds it ends.
* Its join has steps of its own: it times the batch again after each one and looks for the instance with the longest
  idle time before it, and it keeps a step whether or not the end is earlier. After 20 rounds it ends.

So this reading is here to be compared with, and as one of the starts of ``far``. Schedules that come of its assignments
are timed like all others.
"""

from __future__ import annotations

import copy
import heapq
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from mig_opt.batch.timeline import Slot
from mig_opt.heuristics.batch.far.allocation import AllocationFamily
from mig_opt.heuristics.batch.far.refinement import Entry, SlotTasks
from mig_opt.heuristics.batch.far.repartitioning import Repartitioning

_ROUNDS, _ROUNDS_BEHIND = 100, 20
_SAFETY = 1e-5
"""Seconds by which a task has to be shorter than the margin."""


@dataclass(slots=True)
class _Instance:
    """An instance of the tree."""

    # where it is in the order of :attr:`Repartitioning.nodes`
    index: int
    kind: int
    parent: _Instance | None
    # The slices that its tasks end on, as (GPU, position), and one that is idle beside them, if there is one.
    slices: list[tuple[int, int]]
    idle: list[tuple[int, int]]
    children: list[_Instance] = field(default_factory=list)
    tasks: list[Entry] = field(default_factory=list)  # longest first
    end: float = 0.0  # seconds at which its last task ends

    def __lt__(self, other: _Instance) -> bool:
        return self.end < other.end

    def preorder(self) -> list[_Instance]:
        """Return it and all below it, outer ones first."""
        return [self, *(each for child in self.children for each in child.preorder())]


class PublishedPlan:
    """One run of phase 2, and of phase 3 on its result.

    Parameters
    ----------
    repartitioning : Repartitioning
        The tree. Live instances do not count.
    family : AllocationFamily
        Its present allocation.
    stop_at : float
        Seconds. Phase 2 ends early, with an infinite makespan, if it does not end before that.
    """

    def __init__(self, repartitioning: Repartitioning, family: AllocationFamily, stop_at: float = float("inf")) -> None:
        self.moves = self.swaps = 0
        self._repartitioning = repartitioning
        self._roots = _trees(repartitioning)
        self._all = [each for root in self._roots for each in root.preorder()]
        self._ends: dict[tuple[int, int], float] = {}
        self.makespan = self._schedule(family, stop_at)

    def _schedule(self, family: AllocationFamily, stop_at: float) -> float:
        """Run phase 2, and return the last end of a task."""
        operations = self._repartitioning.batch.operations
        nodes = self._repartitioning.nodes
        left = [sorted(((-minus_seconds, task) for minus_seconds, task in group)) for group in family.groups.values()]
        missing = sum(map(len, left))
        driver = [0.0] * self._repartitioning.batch.gpus
        last = 0.0
        heap: list[_Instance] = []
        for root in self._roots:
            heapq.heappush(heap, root)
        while heap and missing:
            instance = heapq.heappop(heap)
            node = nodes[instance.index]
            if left[instance.kind]:
                if not instance.tasks:
                    begin = max(driver[node.gpu], instance.end)
                    instance.end = driver[node.gpu] = begin + operations.of("create", node.placement.profile)
                entry = left[instance.kind].pop()
                missing -= 1
                instance.tasks.append(entry)
                instance.end += entry[0]
                last = max(last, instance.end)
                if last >= stop_at:
                    return float("inf")
                heapq.heappush(heap, instance)
                continue
            if instance.tasks:
                begin = max(driver[node.gpu], instance.end)
                driver[node.gpu] = begin + operations.of("destroy", node.placement.profile)
            for child in instance.children:
                child.end = instance.end
                heapq.heappush(heap, child)
        return last

    def refine(self, before: Mapping[tuple[int, int], float] | None = None) -> None:
        """Run phase 3, from where an earlier call has ended.

        With ``before``, the seconds until which the batch before keeps memory slices (GPU and position) busy, tasks are
        moved and swapped so that this batch ends early behind it (paper, Section 4.3).
        """
        if not self._ends:
            self._ends = dict.fromkeys((place for each in self._all for place in each.slices), 0.0)
            for instance in self._all:
                for place in instance.slices if instance.tasks else ():
                    self._ends[place] = max(self._ends[place], instance.end)
        ends = {place: end + (before or {}).get(place, 0.0) for place, end in self._ends.items()}
        self._steps(ends)
        self._ends = {place: end - (before or {}).get(place, 0.0) for place, end in ends.items()}

    def refine_behind(self, before: Mapping[tuple[int, int], float]) -> None:
        """Move and swap tasks as the program does when it joins this batch to another one.

        The batch runs backwards there, so where a slice ends early, it is idle before. ``before`` is as for
        :meth:`refine`; the makespan of this batch may grow.
        """
        leaves = [instance for instance in self._all if not instance.children]
        ends = self._retime()
        for _ in range(_ROUNDS_BEHIND):
            both = {place: before.get(place, 0.0) + end for place, end in ends.items()}
            latest = max(both.values())
            queue = deque(leaf for leaf in leaves if both[leaf.slices[0]] == latest)
            while queue:
                instance = queue.popleft()
                if instance.parent is None:
                    return
                if self._step_behind(instance, ends, before):
                    ends = self._retime()
                elif not (queue and queue[-1] is instance.parent):
                    queue.append(instance.parent)

    def _step_behind(
        self, instance: _Instance, ends: dict[tuple[int, int], float], before: Mapping[tuple[int, int], float]
    ) -> bool:
        """Move a task to the instance that is idle longest before it runs, or swap two; False if nothing fits."""
        latest = max(before.get(place, 0.0) + end for place, end in ends.items())
        # What runs nothing counts as idle without end.
        idle = {place: latest - before.get(place, 0.0) - end if end else inf for place, end in ends.items()}
        alike = [other for other in self._all if other.kind == instance.kind]
        other = max(alike, key=lambda each: min(idle[place] for place in each.slices))
        return self._exchange(instance, other, min(idle[place] for place in other.slices), dict(ends))

    def _retime(self) -> dict[tuple[int, int], float]:
        """Return when the tasks of each slice end, if the instances run what they have, outer ones first."""
        operations, nodes = self._repartitioning.batch.operations, self._repartitioning.nodes
        ends = dict.fromkeys((place for each in self._all for place in each.slices), 0.0)
        left = {each.index: deque(each.tasks) for each in self._all}
        driver = [0.0] * self._repartitioning.batch.gpus
        heap: list[_Instance] = []
        for root in self._roots:
            root.end = 0.0
            heapq.heappush(heap, root)
        while heap:
            instance = heapq.heappop(heap)
            node, tasks = nodes[instance.index], left[instance.index]
            if tasks:
                if len(tasks) == len(instance.tasks):
                    driver[node.gpu] = max(driver[node.gpu], instance.end)
                    instance.end = driver[node.gpu] = driver[node.gpu] + operations.of("create", node.placement.profile)
                instance.end += tasks.popleft()[0]
                heapq.heappush(heap, instance)
                continue
            if instance.tasks:
                driver[node.gpu] = max(driver[node.gpu], instance.end)
                driver[node.gpu] += operations.of("destroy", node.placement.profile)
                for place in instance.slices:
                    ends[place] = max(ends[place], instance.end)
            for child in instance.children:
                child.end = instance.end
                heapq.heappush(heap, child)
        return ends

    def _steps(self, ends: dict[tuple[int, int], float]) -> None:
        """Move and swap tasks until none of those on the slices that end last can be, and note the ends of slices."""
        makespan = max(ends.values())
        leaves = [instance for instance in self._all if not instance.children]
        for _ in range(_ROUNDS):
            queue = deque(leaf for leaf in leaves if ends[leaf.slices[0]] == makespan)
            while queue:
                instance = queue.popleft()
                if instance.parent is None:
                    return
                if not self._step(instance, ends, makespan) and not (queue and queue[-1] is instance.parent):
                    queue.append(instance.parent)
            makespan = max(ends.values())

    def _step(self, instance: _Instance, ends: dict[tuple[int, int], float], makespan: float) -> bool:
        """Move a task away from an instance, or swap two; return False if nothing fits."""
        alike = [other for other in self._all if other.kind == instance.kind]
        other = min(alike, key=lambda each: max(ends[place] for place in each.slices))
        margin = makespan - max(ends[place] for place in other.slices)
        return self._exchange(instance, other, margin, ends)

    def _exchange(
        self, instance: _Instance, other: _Instance, margin: float, ends: dict[tuple[int, int], float]
    ) -> bool:
        """Move a task from one instance to another, or swap two, and add up the ends; return False if nothing fits."""
        if other is instance:
            return False
        at = _to_move(instance.tasks, margin)
        if at is not None:
            _hand_over(instance, other, at, ends)
            self.moves += 1
            return True
        pair = _to_swap(instance.tasks, other.tasks, margin)
        if pair is None:
            return False
        back = other.tasks[pair[1]]
        _hand_over(instance, other, pair[0], ends)
        _hand_over(other, instance, other.tasks.index(back), ends)
        self.swaps += 1
        return True

    def copy(self) -> PublishedPlan:
        """Return a plan whose steps do not change this one."""
        other = copy.copy(self)
        other._roots = copy.deepcopy(self._roots)
        other._all = [each for root in other._roots for each in root.preorder()]
        other._ends = dict(self._ends)
        return other

    def slots(self) -> list[list[SlotTasks]]:
        """Return for each GPU all nodes, outer ones first, with the tasks that they run."""
        found: list[list[SlotTasks]] = [[] for _ in range(self._repartitioning.batch.gpus)]
        tasks = {instance.index: [task for _, task in instance.tasks] for instance in self._all}
        for index, node in enumerate(self._repartitioning.nodes):
            found[node.gpu].append(SlotTasks(Slot(node.placement), tasks[index]))
        return found


def _trees(repartitioning: Repartitioning) -> list[_Instance]:
    smallest = repartitioning.batch.gpu.profiles_of("base")[-1]

    def tree(index: int, parent: _Instance | None) -> _Instance:
        node = repartitioning.nodes[index]
        covered = [(node.gpu, start) for start in smallest.starts if start in node.placement.footprint]
        size = node.placement.profile.compute_slices
        instance = _Instance(index, node.kind, parent, covered[:size], covered[size:])
        inner = sorted(node.children, key=lambda child: repartitioning.nodes[child].placement.start)
        instance.children = [tree(child, instance) for child in inner]
        return instance

    return [tree(root, None) for root in repartitioning.roots]


def _to_move(tasks: Sequence[Entry], margin: float) -> int | None:
    """Return which task to move, from tasks that are sorted longest first."""
    found: int | None = None
    low, high = 0, len(tasks) - 1
    while low <= high:
        middle = (low + high) // 2
        seconds = tasks[middle][0]
        if seconds < margin - _SAFETY and (not found or seconds - margin / 2 < abs(tasks[found][0] - margin / 2)):
            found = middle
        if seconds >= margin / 2:
            low = middle + 1
        else:
            high = middle - 1
    return found


def _to_swap(tasks: Sequence[Entry], others: Sequence[Entry], margin: float) -> tuple[int, int] | None:
    """Return which tasks to swap, from tasks that are sorted longest first."""
    best: tuple[float, tuple[int, int]] | None = None
    at = other = 0
    while at < len(tasks) and other < len(others):
        gain = tasks[at][0] - others[other][0]
        fits = 0 < gain < margin
        if fits and (best is None or abs(gain - margin / 2) < best[0]):
            best = abs(gain - margin / 2), (at, other)
        if gain <= 0 or (fits and gain < margin / 2):
            other += 1
        else:
            at += 1
    return None if best is None else best[1]


def _hand_over(source: _Instance, target: _Instance, at: int, ends: dict[tuple[int, int], float]) -> None:
    """Move a task, and add up the ends of slices."""
    entry = source.tasks.pop(at)
    for place in (*source.slices, *source.idle):
        ends[place] -= entry[0]
    for place in (*target.slices, *target.idle):
        ends[place] += entry[0]
    position = next((index for index, other in enumerate(target.tasks) if other[0] < entry[0]), len(target.tasks))
    target.tasks.insert(position, entry)
