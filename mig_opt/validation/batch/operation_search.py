"""Find operations for runs whose operations are not known, or prove that there are none.

Two runs on the same placement share one instance unless a placement that excludes it has a run between them: it is
never worse to keep an instance that no other one has to replace. So the runs alone determine the instances, which of
them are created and which destroyed, from when on (*release*) and until when (*deadline*), and which destruction comes
before which creation. It remains to sequence the operations of each GPU on its driver: a one-machine problem with
release times, deadlines and precedence.

It is solved exactly, by depth-first search over active schedules (no operation could be moved to the front without
delaying another: Giffler and Thompson, doi:10.1287/opre.8.4.487), most urgent operation first. Four things keep it
small: the problem is cut where time windows do not overlap; an operation that is both first to be ready and most
urgent needs no alternative; a node is pruned when even Jackson's preemptive schedule is late (Carlier,
doi:10.1016/S0377-2217(82)80007-6); and a set of operations that was finished as early before is not visited again.

Only deadlines are stretched by the tolerance: an operation of the sequence that is found never begins before it may.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from mig_opt.batch.batch import Batch
from mig_opt.batch.schedule import Operation, OperationKind, Run
from mig_opt.gpu.model import Placement
from mig_opt.validation.placed import Placed, clashes, in_seconds, leeway, spans_of
from mig_opt.validation.violations import Violation, ViolationCode

ROUNDING = 1e-9
"""Seconds by which sums of floating-point numbers may differ from the true sum."""


@dataclass(slots=True, eq=False)
class DriverJob:
    """An operation that has to be done between ``release`` and ``limit`` (seconds)."""

    kind: OperationKind
    placement: Placement  # of the instance
    release: float
    seconds: float  # that it takes
    deadline: float  # seconds at which it has to be done, and with the tolerance
    limit: float
    run: Placed[Run]  # a run that waits for it
    after: tuple[DriverJob, ...]  # those that have to be done before
    position: int = 0  # among all of the GPU


class LateOperation(NamedTuple):
    """The first operation that cannot be in time, and the second at which it would be done."""

    job: DriverJob
    end: float

    @property
    def alone(self) -> bool:
        """True if it would be late even if the driver had nothing else to do."""
        return self.job.release + self.job.seconds > self.job.limit


def operations_for(
    batch: Batch, runs: Iterable[Placed[Run]], tolerance: float
) -> tuple[list[Operation], dict[int, list[Violation]]]:
    """Return operations that make runs feasible, by begin, and what is wrong on the GPUs for which there are none."""
    operations: list[Operation] = []
    wrong: dict[int, list[Violation]] = {}
    on_gpu: dict[int, list[Placed[Run]]] = defaultdict(list)
    for placed in runs:
        on_gpu[placed.entry.gpu].append(placed)
    for gpu, there in sorted(on_gpu.items()):
        clashing = list(_clashing_runs(there, tolerance))
        found = () if clashing else find_operations(batch, gpu, there, tolerance)
        if clashing:
            wrong[gpu] = clashing
        elif isinstance(found, LateOperation):
            wrong[gpu] = [_no_operation_sequence(gpu, found)]
        else:
            operations += found
    return sorted(operations, key=lambda operation: operation.begin), wrong


def find_operations(
    batch: Batch, gpu: int, runs: Sequence[Placed[Run]], tolerance: float
) -> tuple[Operation, ...] | LateOperation:
    """Return operations that make the runs of one GPU feasible, or the operation at which every sequence fails.

    Runs on placements that exclude each other must not overlap in time. An operation may miss its deadline by
    ``tolerance`` seconds. A ``max_count`` above 1 that the footprints do not imply is not looked at here (no GPU of the
    catalogue has one).
    """
    jobs = _jobs(batch, _blocks(batch, gpu, runs), tolerance)
    begins: list[float] = []
    if batch.parallel_operations:
        for job in jobs:
            if job.release + job.seconds > job.limit:
                return LateOperation(job, job.release + job.seconds)
        begins = [job.release for job in jobs]
    else:
        for part in _parts(jobs):
            search = _Search(part)
            found = search.run()
            if found is None:
                assert search.late is not None
                return search.late
            begins += found
    timed = sorted(zip(begins, jobs, strict=True), key=lambda pair: pair[0])
    return tuple(
        Operation(job.kind, gpu, job.placement.profile.name, job.placement.start, begin, begin + job.seconds)
        for begin, job in timed
    )


@dataclass(slots=True)
class _Block:
    """An instance: from its first run to the end of its last."""

    placement: Placement
    first: Placed[Run] | None
    """None for an instance that exists when the batch starts: it is not created."""
    last: float
    cleared: list[int] = field(default_factory=list)
    """Earlier blocks that have to be destroyed before this one can be created."""


def _blocks(batch: Batch, gpu: int, runs: Iterable[Placed[Run]]) -> list[_Block]:
    ordered = sorted(runs, key=lambda placed: (placed.entry.begin, placed.entry.end))
    initial = [(batch.placement(live), live.free) for live in batch.initial if live.gpu == gpu]
    slots: dict[Placement, int] = {}
    for placement in chain((placement for placement, _ in initial), (placed.placement for placed in ordered)):
        slots.setdefault(placement, len(slots))
    against = [[slot for other, slot in slots.items() if other != one and one.excludes(other)] for one in slots]
    blocks: list[_Block] = []
    newest: list[int | None] = [None] * len(slots)
    live = [False] * len(slots)

    def add(slot: int, block: _Block) -> None:
        newest[slot] = len(blocks)
        live[slot] = True
        blocks.append(block)

    for placement, free in initial:
        add(slots[placement], _Block(placement, None, free))
    for placed in ordered:
        slot = slots[placed.placement]
        current = newest[slot]
        if current is not None and live[slot]:
            blocks[current].last = max(blocks[current].last, placed.entry.end)
            continue
        # Also blocks that were closed long ago count: of 4g@0, then 2g@0, then 2g@2, the last waits for the first.
        cleared = [earlier for rival in against[slot] if (earlier := newest[rival]) is not None]
        for rival in against[slot]:
            live[rival] = False
        add(slot, _Block(placed.placement, placed, placed.entry.end, cleared))
    return blocks


def _jobs(batch: Batch, blocks: Sequence[_Block], tolerance: float) -> list[DriverJob]:
    """Return the operations by release; each stands behind those that it has to wait for."""
    due: dict[int, tuple[float, Placed[Run]]] = {}
    for block in blocks:
        if block.first is not None:
            latest = block.first.entry.begin - batch.operations.of("create", block.placement.profile)
            for earlier in block.cleared:
                if earlier not in due or latest < due[earlier][0]:
                    due[earlier] = (latest, block.first)
    jobs: list[DriverJob] = []
    destructions: dict[int, DriverJob] = {}
    for index, block in enumerate(blocks):
        ready = block.last
        after: tuple[DriverJob, ...] = ()
        profile = block.placement.profile
        if block.first is not None:
            before = tuple(destructions[earlier] for earlier in block.cleared)
            release = max((job.release + job.seconds for job in before), default=0.0)
            seconds = batch.operations.of("create", profile)
            first, begin = block.first, block.first.entry.begin
            limit = begin + leeway(begin, tolerance)
            job = DriverJob("create", block.placement, release, seconds, begin, limit, first, before)
            jobs.append(job)
            ready, after = max(ready, release + seconds), (job,)
        if index in due:
            deadline, run = due[index]
            # The deadline is a difference of floating-point numbers; the creation behind it is checked exactly.
            limit = deadline + leeway(deadline, tolerance) + ROUNDING
            seconds = batch.operations.of("destroy", profile)
            destructions[index] = DriverJob("destroy", block.placement, ready, seconds, deadline, limit, run, after)
            jobs.append(destructions[index])
    jobs.sort(key=lambda job: job.release)
    for position, job in enumerate(jobs):
        job.position = position
    return jobs


def _parts(jobs: Sequence[DriverJob]) -> Iterator[Sequence[DriverJob]]:
    """Cut the operations where every earlier one has to be done before any later one may begin."""
    begin, latest = 0, -math.inf
    for index, job in enumerate(jobs):
        if index > begin and job.release >= latest:
            yield jobs[begin:index]
            begin = index
        latest = max(latest, job.limit)
    if jobs:
        yield jobs[begin:]


@dataclass(frozen=True, slots=True)
class _Node:
    """The operations that are left: some in front of ``frontier``, all behind it; and when the driver is free."""

    skipped: tuple[int, ...]
    frontier: int
    time: float


class _Search:
    """Sequence operations on one driver."""

    def __init__(self, jobs: Sequence[DriverJob]) -> None:
        self.late: LateOperation | None = None
        self._jobs = jobs
        self._offset = jobs[0].position
        self._urgency_behind = [math.inf] * (len(jobs) + 1)
        for index in range(len(jobs) - 1, -1, -1):
            self._urgency_behind[index] = min(jobs[index].limit, self._urgency_behind[index + 1])

    def run(self) -> list[float] | None:
        """Return when each operation begins, or None if there is no sequence that is in time."""
        root = _Node((), 0, self._jobs[0].release)
        if not self._relaxation_in_time(root):
            return None
        best: dict[tuple[tuple[int, ...], int], float] = {}
        chosen: list[tuple[int, float]] = []
        trail = [(root, iter(self._choices(root)))]
        while trail:
            node, choices = trail[-1]
            choice = next(choices, None)
            if choice is None:
                trail.pop()
                if chosen:
                    chosen.pop()
                continue
            child = self._child(node, *choice)
            if child is None:
                return [begin for _, begin in sorted([*chosen, choice])]
            key = (child.skipped, child.frontier)
            if best.get(key, math.inf) > child.time:
                best[key] = child.time
                chosen.append(choice)
                trail.append((child, iter(self._choices(child))))
        return None

    def _child(self, node: _Node, index: int, begin: float) -> _Node | None:
        """Return the node after an operation, None if it was the last."""
        if index < node.frontier:
            skipped = tuple(other for other in node.skipped if other != index)
            frontier = node.frontier
        else:
            skipped = (*node.skipped, *range(node.frontier, index))
            frontier = index + 1
        if not skipped and frontier == len(self._jobs):
            return None
        earliest = self._jobs[skipped[0] if skipped else frontier].release
        # Waiting that cannot be avoided is part of the time, so that more ways lead to the same node.
        return _Node(skipped, frontier, max(begin + self._jobs[index].seconds, earliest))

    def _choices(self, node: _Node) -> list[tuple[int, float]]:
        """Return the operations to try next with their begins, the most urgent first."""
        left: set[int] = set()
        ready: list[tuple[float, float, int]] = []
        first_end, behind = math.inf, len(self._jobs)
        for index in chain(node.skipped, range(node.frontier, len(self._jobs))):
            job = self._jobs[index]
            begin = max(node.time, job.release)
            if index >= node.frontier and begin >= first_end:
                behind = index
                break
            end = begin + job.seconds
            if end > job.limit:
                self._give_up(job, end)
                return []
            left.add(index)
            if not any(other.position - self._offset in left for other in job.after):
                ready.append((job.limit, begin, index))
                first_end = min(first_end, end)
        # What cannot begin before another could end can wait until that other one is done. (The first to end counts
        # in any case: if it takes no time, it does not begin before it ends.)
        ready.sort()
        active = [(limit, begin, index) for limit, begin, index in ready if begin < first_end]
        instant = next(entry for entry in ready if entry[1] + self._jobs[entry[2]].seconds == first_end)
        if instant not in active:
            active = sorted([instant, *active])
        limit, begin, index = active[0]
        if (
            begin == min(entry[1] for entry in ready)
            and limit <= self._urgency_behind[behind]
            and all(limit <= self._jobs[other].limit for other in left)
        ):
            # In any sequence that is in time it can be moved to the front: what it delays still ends before it did.
            return [(index, begin)]
        if len(active) > 1 and not self._relaxation_in_time(node, until_idle=True):
            return []
        return [(index, begin) for _, begin, index in active]

    def _relaxation_in_time(self, node: _Node, *, until_idle: bool = False) -> bool:
        """Return True if all are in time in Jackson's preemptive schedule: the most urgent operation always runs.

        From the first moment on at which the driver has nothing to do, the answer is that of the root.
        """
        time = node.time
        waiting = [(self._jobs[index].limit, index, self._jobs[index].seconds) for index in node.skipped]
        heapq.heapify(waiting)
        coming = node.frontier
        while waiting or coming < len(self._jobs):
            if not waiting and self._jobs[coming].release > time:
                if until_idle:
                    return True
                time = self._jobs[coming].release
            while coming < len(self._jobs) and self._jobs[coming].release <= time:
                heapq.heappush(waiting, (self._jobs[coming].limit, coming, self._jobs[coming].seconds))
                coming += 1
            limit, index, seconds = heapq.heappop(waiting)
            interrupted = self._jobs[coming].release if coming < len(self._jobs) else math.inf
            if time + seconds > interrupted:
                heapq.heappush(waiting, (limit, index, seconds - (interrupted - time)))
                time = interrupted
                continue
            time += seconds
            if time > limit + ROUNDING:
                self._give_up(self._jobs[index], time)
                return False
        return True

    def _give_up(self, job: DriverJob, end: float) -> None:
        if self.late is None:
            self.late = LateOperation(job, end)


def _clashing_runs(runs: Sequence[Placed[Run]], tolerance: float) -> Iterator[Violation]:
    for later, earlier in clashes(spans_of(runs), tolerance):
        others = [other for other in earlier if other.key != later.key]
        if not others:
            continue  # two runs on one instance: a rule of its own
        run, profile = later.item.entry, later.key.profile
        code, why = ViolationCode.INSTANCES_OVERLAP, "the instances share memory slices"
        if not later.key.conflicts(others[0].key):
            code, why = ViolationCode.TOO_MANY_INSTANCES, f"at most {profile.max_count} of {profile.name} may exist"
        running = (f"task {o.item.entry.task!r} runs on {o.key} until {in_seconds(o.end)}" for o in others)
        begins = f"task {run.task!r} begins on {later.key} of GPU {run.gpu} at {in_seconds(later.begin)}"
        yield Violation(code, f"runs[{later.item.index}]", f"{begins}, while {' and '.join(running)}; {why}")


def _no_operation_sequence(gpu: int, late: LateOperation) -> Violation:
    job, task, begin = late.job, late.job.run.entry.task, in_seconds(late.job.run.entry.begin)
    if job.kind == "create":
        wanted = f"the creation of {job.placement} has to end by {begin}, when task {task!r} begins there"
    else:
        wanted = (
            f"the destruction of {job.placement} has to end by {in_seconds(job.deadline)}, so that "
            f"{job.run.placement} exists when task {task!r} begins on it at {begin}"
        )
    if late.alone:
        fact = f"it cannot end before {in_seconds(job.release + job.seconds)}"
    else:
        fact = f"in order of urgency it ends at {in_seconds(late.end)}, and in no order are all in time"
    message = f"GPU {gpu}: no sequence of operations is in time for the runs: {wanted}, but {fact}"
    return Violation(ViolationCode.NO_OPERATION_SEQUENCE, f"runs[{job.run.index}]", message)
