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
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from mig_opt.batch.batch import Batch
from mig_opt.batch.schedule import OperationKind, Schedule
from mig_opt.batch.timing import PlannedInstance, timed_schedule
from mig_opt.gpu.model import Placement
from mig_opt.heuristics.batch.far.refinement import Entry
from mig_opt.heuristics.batch.far.repartitioning import AllocationFamily, profiles_by_size

_MAX_ROUNDS, _MAX_ROUNDS_BEHIND = 100, 20
"""Rounds of the refinement, on empty GPUs and behind other batches."""
_SAFETY_SECONDS = 1e-5
"""Seconds by which a task has to be shorter than the margin."""

_Slice = tuple[int, int]
"""GPU and position."""


@dataclass(slots=True, eq=False)
class _Instance:
    """An instance of the tree."""

    gpu: int
    placement: Placement
    kind: int  # number of its profile, smallest first
    # the slices that its tasks end on, and one that is idle beside them, if there is one
    slices: list[_Slice]
    idle: list[_Slice]
    children: list[_Instance] = field(default_factory=list)  # by start
    tasks: list[Entry] = field(default_factory=list)  # longest first
    end: float = 0.0  # seconds at which its last task ends

    def __lt__(self, other: _Instance) -> bool:
        return self.end < other.end

    def preorder(self) -> list[_Instance]:
        """Return it and all below it, outer ones first."""
        return [self, *(each for child in self.children for each in child.preorder())]


class PublishedPlan:
    """One run of phase 2 for the present allocation of a family, and of phase 3 on its result.

    Live instances do not count. Phase 2 ends early, with an infinite makespan, if it does not end before ``stop_at``
    seconds.
    """

    def __init__(self, batch: Batch, family: AllocationFamily, stop_at: float = inf) -> None:
        self.moves = self.swaps = 0
        self._batch = batch
        self._grow()
        self._ends: dict[_Slice, float] = {}
        left = [sorted((-minus_seconds, task) for minus_seconds, task in group) for group in family.groups.values()]

        def take(instance: _Instance) -> Entry | None:
            if not left[instance.kind]:
                return None
            instance.tasks.append(left[instance.kind].pop())
            return instance.tasks[-1]

        in_time = self._serve(self._roots, take, stop_at) is not None
        self.makespan = max(each.end for each in self._all if each.tasks) if in_time else inf

    def _grow(self) -> None:
        """Make the trees of all GPUs."""
        model, profiles = self._batch.kind(0), self._batch.profile_set
        kinds = {profile: kind for kind, profile in enumerate(profiles_by_size(self._batch))}
        smallest = model.profiles_of("base")[-1]
        inside = model.children(profiles)
        covered = {at: [s for s in smallest.starts if s in at.footprint] or [at.start] for at in inside}
        self._roots: list[_Instance] = []
        for gpu in range(self._batch.gpus):
            there: dict[Placement, _Instance] = {}
            for at, starts in covered.items():
                slices, size = [(gpu, start) for start in starts], at.profile.compute_slices
                there[at] = _Instance(gpu, at, kinds[at.profile], slices[:size], slices[size:])
            for at, instance in there.items():
                instance.children = [there[child] for child in sorted(inside[at], key=lambda child: child.start)]
            self._roots += [there[top] for top in model.outermost(profiles)]
        self._all = [each for root in self._roots for each in root.preorder()]
        self._alike: dict[int, list[_Instance]] = defaultdict(list)
        for each in self._all:
            self._alike[each.kind].append(each)

    def _serve(
        self, roots: Iterable[_Instance], take: Callable[[_Instance], Entry | None], stop_at: float = inf
    ) -> list[tuple[OperationKind, _Instance]] | None:
        """Time what instances run, outer ones first, if the driver always serves what is ready first.

        ``take`` gives the next task of an instance, or None. Returned are the operations; None, once a task does not
        end before ``stop_at``.
        """
        costs, driver, missing = self._batch.operations, [0.0] * self._batch.gpus, len(self._batch.tasks)
        done: list[tuple[OperationKind, _Instance]] = []
        created: set[_Instance] = set()
        heap: list[_Instance] = []
        for root in roots:
            root.end = 0.0
            heapq.heappush(heap, root)
        while heap and missing:
            instance = heapq.heappop(heap)
            gpu, profile, task = instance.gpu, instance.placement.profile, take(instance)
            if task is not None:
                missing -= 1
                if instance not in created:
                    created.add(instance)
                    done.append(("create", instance))
                    instance.end = driver[gpu] = max(driver[gpu], instance.end) + costs.of("create", profile)
                instance.end += task[0]
                if instance.end >= stop_at:
                    return None
                heapq.heappush(heap, instance)
                continue
            if instance in created:
                done.append(("destroy", instance))
                driver[gpu] = max(driver[gpu], instance.end) + costs.of("destroy", profile)
            for child in instance.children:
                child.end = instance.end
                heapq.heappush(heap, child)
        return done

    def _serve_again(self, roots: Iterable[_Instance]) -> list[tuple[OperationKind, _Instance]]:
        """Time the instances with the tasks that they have now."""
        left = {each: iter(each.tasks) for each in self._all}
        return self._serve(roots, lambda instance: next(left[instance], None)) or []

    def _slice_ends(self) -> dict[_Slice, float]:
        """Return when the last task of each slice ends."""
        ends = dict.fromkeys((place for each in self._all for place in each.slices), 0.0)
        for instance in self._all:
            for place in instance.slices if instance.tasks else ():
                ends[place] = max(ends[place], instance.end)
        return ends

    def refine(self, before: Mapping[_Slice, float] | None = None, over: Callable[[], bool] = lambda: False) -> None:
        """Run phase 3, from where an earlier call has ended, until ``over`` returns True.

        With ``before``, the seconds until which the batch before keeps memory slices (GPU and position) busy, tasks are
        moved and swapped so that this batch ends early behind it (paper, Section 4.3).
        """
        busy = before or {}
        ends = {place: end + busy.get(place, 0.0) for place, end in (self._ends or self._slice_ends()).items()}
        makespan = inf

        def latest() -> float:
            nonlocal makespan
            makespan = max(ends.values())
            return makespan

        def step(instance: _Instance) -> bool:
            other = min(self._alike[instance.kind], key=lambda each: max(ends[place] for place in each.slices))
            margin = makespan - max(ends[place] for place in other.slices)
            return self._exchange(instance, other, margin, ends)

        self._climb(_MAX_ROUNDS, lambda leaf: ends[leaf.slices[0]], latest, step, over)
        self._ends = {place: end - busy.get(place, 0.0) for place, end in ends.items()}

    def refine_behind(self, before: Mapping[_Slice, float], over: Callable[[], bool] = lambda: False) -> None:
        """Move and swap tasks as the program does when it joins this batch to another one.

        The batch runs backwards there, so where a slice ends early, it is idle before. ``before`` and ``over`` are as
        for :meth:`refine`; the makespan of this batch may grow. A task goes to the instance that is idle longest before
        it runs.
        """
        ends: dict[_Slice, float] = {}

        def retime() -> None:
            self._serve_again(self._roots)
            ends.update(self._slice_ends())

        def end_of(place: _Slice) -> float:
            return before.get(place, 0.0) + ends[place]

        def step(instance: _Instance) -> bool:
            latest = max(map(end_of, ends))
            # What runs nothing counts as idle without end.
            idle = {place: latest - before.get(place, 0.0) - end if end else inf for place, end in ends.items()}
            other = max(self._alike[instance.kind], key=lambda each: min(idle[place] for place in each.slices))
            changed = self._exchange(instance, other, min(idle[place] for place in other.slices), dict(ends))
            if changed:
                retime()
            return changed

        retime()
        self._climb(_MAX_ROUNDS_BEHIND, lambda leaf: end_of(leaf.slices[0]), lambda: max(map(end_of, ends)), step, over)

    def _climb(
        self,
        rounds: int,
        end: Callable[[_Instance], float],
        latest: Callable[[], float],
        step: Callable[[_Instance], bool],
        over: Callable[[], bool],
    ) -> None:
        """Take steps from the leaves that end last, and from what is around them where nothing fits."""
        leaves = [instance for instance in self._all if not instance.children]
        parents = {child: instance for instance in self._all for child in instance.children}
        for _ in range(rounds):
            last = latest()
            queue = deque(leaf for leaf in leaves if end(leaf) == last)
            while queue:
                instance = queue.popleft()
                parent = parents.get(instance)
                if parent is None or over():
                    return
                if not step(instance) and not (queue and queue[-1] is parent):
                    queue.append(parent)

    def _exchange(self, instance: _Instance, other: _Instance, margin: float, ends: dict[_Slice, float]) -> bool:
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
        other._grow()
        for mine, own in zip(self._all, other._all, strict=True):
            own.tasks, own.end = list(mine.tasks), mine.end
        return other

    def instances(self) -> list[PlannedInstance]:
        """Return an instance on every placement of every GPU, outer ones first, with the tasks that it runs."""
        tasks = {(each.gpu, each.placement): [self._batch.tasks[at] for _, at in each.tasks] for each in self._all}
        placements = self._batch.kind(0).children(self._batch.profile_set)
        places = ((gpu, placement) for gpu in range(self._batch.gpus) for placement in placements)
        return [PlannedInstance(*place, tasks[place]) for place in places]

    def fifo_driver_schedule(self) -> Schedule:
        """Return the schedule whose driver always serves what is ready first, as in the authors' program.

        It also waits for destructions that nothing follows. Other schedules begin with the instance that has most work
        behind it. They mostly end earlier; which is better to follow, depends.
        """
        instances = self.instances()
        index = {(instance.gpu, instance.placement): at for at, instance in enumerate(instances)}
        operations: list[tuple[OperationKind, int]] = []
        for gpu in range(self._batch.gpus):
            for kind, each in self._serve_again(root for root in self._roots if root.gpu == gpu):
                if kind == "create" or any(below.tasks for below in each.preorder()[1:]):
                    operations.append((kind, index[gpu, each.placement]))
        return timed_schedule(self._batch, instances, operations)


def _to_move(tasks: Sequence[Entry], margin: float) -> int | None:
    """Return which task to move, from tasks that are sorted longest first."""
    found: int | None = None
    low, high = 0, len(tasks) - 1
    while low <= high:
        middle = (low + high) // 2
        seconds = tasks[middle][0]
        closer = not found or seconds - margin / 2 < abs(tasks[found][0] - margin / 2)
        if seconds < margin - _SAFETY_SECONDS and closer:
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


def _hand_over(source: _Instance, target: _Instance, at: int, ends: dict[_Slice, float]) -> None:
    """Move a task, and add up the ends of slices."""
    entry = source.tasks.pop(at)
    for place in (*source.slices, *source.idle):
        ends[place] -= entry[0]
    for place in (*target.slices, *target.idle):
        ends[place] += entry[0]
    position = next((index for index, other in enumerate(target.tasks) if other[0] < entry[0]), len(target.tasks))
    target.tasks.insert(position, entry)
