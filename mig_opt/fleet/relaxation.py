"""Relaxation of a fleet to one machine that divides itself among the jobs at will, and what it bounds.

*Useful speed.* A job has an area: the least that its work takes of a fleet, as a share of it times seconds
(:mod:`mig_opt.fleet.bounds`). An instance gets through areas at no more than the best speed of any job on its size,
and a GPU at no more than the instances that exist there at the time. GPUs start without instances, and the driver
creates one after the other: what exists at some second has been created in this time, one operation after the other,
and belongs to one partition. So the machine has a speed for each second, which rises in steps (:class:`Capacity`).

*Ends in order.* Let ``n(t)`` be the number of jobs that can have ended by ``t``. On one machine that may be preempted
at will, shortest remaining processing time first maximises ``n(t)`` for all ``t`` at once (Schrage, Operations Research
16, 1968), in seconds or in units of a speed that changes, and that machine can do whatever the fleet can.

*Mean busy times.* A job's mean busy time is the mean second at which its area is done. It gets no faster than on its
best instance, so it ends later than that by no less than the mean of what it still takes there: half of its shortest
time, if it makes the same progress in each second. On the machine, the sum of all mean busy times is least if always
the job of the least area is worked on that is there, whatever is left of it (Goemans, Proc. SODA 1997; Schulz and
Skutella use it for machines in parallel). The fleet does no better.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mig_opt.fleet.trace import Trace
from mig_opt.gpu.model import GpuModel


@dataclass(frozen=True, slots=True)
class Capacity:
    """Work that a fleet can have done by each second, in seconds at its full speed."""

    seconds: tuple[float, ...] = (0.0,)  # seconds at which the speed rises, the first one 0
    speeds: tuple[float, ...] = (1.0,)  # speed from each of them on, as a share of the full one
    done: tuple[float, ...] = (0.0,)  # work that can be done by each of them

    @classmethod
    def of(cls, trace: Trace, useful: Mapping[str, Mapping[int, float]], worth: Mapping[GpuModel, float]) -> Capacity:
        """Return the capacity of the empty GPUs of a trace.

        ``useful`` has the best useful speed on each kind and size of instances, ``worth`` the most of a GPU of each.
        """
        parts = [
            (len(gpus) / trace.gpus, _steps(trace, kind, useful[kind.name], worth[kind]))
            for kind, gpus in trace.kinds.items()
            if kind.name in useful
        ]
        seconds, speeds, done = [0.0], [math.fsum(share * steps[0][1] for share, steps in parts)], [0.0]
        for at in sorted({at for _, steps in parts for at, _ in steps[1:]}):
            done.append(done[-1] + speeds[-1] * (at - seconds[-1]))
            seconds.append(at)
            now = ((share, max(speed for since, speed in steps if since <= at)) for share, steps in parts)
            speeds.append(math.fsum(share * speed for share, speed in now))
        return cls(tuple(seconds), tuple(speeds), tuple(done))

    def by(self, second: float) -> float:
        """Return the work that can be done by a second."""
        at = bisect.bisect_right(self.seconds, second) - 1
        return self.done[at] + self.speeds[at] * (second - self.seconds[at])

    def when(self, work: float) -> float:
        """Return the first second by which some work can be done."""
        at = max(bisect.bisect_left(self.done, work) - 1, 0)
        return self.seconds[at] + (work - self.done[at]) / self.speeds[at] if work > self.done[at] else 0.0


@dataclass(frozen=True, slots=True)
class Relaxation:
    """Jobs on one machine as fast as a fleet."""

    capacity: Capacity  # work that the machine can have done by each second
    # for each job the second from which it can run, its area, its least seconds, and its most area in a second
    ready: Sequence[float]
    areas: Sequence[float]
    seconds: Sequence[float]
    speeds: Sequence[float]


def _steps(trace: Trace, gpu: GpuModel, useful: Mapping[int, float], most: float) -> list[tuple[float, float]]:
    """Return the seconds at which the speed of an empty GPU can rise, 0 first, each with the speed from then on."""
    profile_set = trace.profile_set_on(gpu)
    profiles = gpu.profiles_of(profile_set)
    create = {
        size: min(trace.operations.of("create", each) for each in profiles if each.compute_slices == size)
        for size in useful
    }
    sizes = {profile.name: profile.compute_slices for profile in profiles}
    partitions = {
        tuple(sorted(sizes[name] for name in names if sizes[name] in useful))
        for names in gpu.partition_multisets(profile_set)
    }
    steps = {0.0: 0.0}
    for chosen in set().union(*map(_parts_of, partitions)):
        at = math.fsum(create[size] for size in chosen)
        steps[at] = max(steps.get(at, 0.0), min(most, math.fsum(useful[size] for size in chosen)))
    found = [(0.0, steps.pop(0.0))]
    for at, speed in sorted(steps.items()):
        if speed > found[-1][1]:
            found.append((at, speed))
    return found


def _parts_of(sizes: tuple[int, ...]) -> set[tuple[int, ...]]:
    """Return all that can exist of a partition while the rest does not yet."""
    counts = [[(size,) * number for number in range(most + 1)] for size, most in sorted(Counter(sizes).items())]
    return {tuple(itertools.chain.from_iterable(choice)) for choice in itertools.product(*counts)}


def last_end(relaxed: Relaxation) -> tuple[float, float]:
    """Return the best bound on the last end over all moments, and that moment: what is ready later is done later."""
    capacity = relaxed.capacity
    best, since, left = 0.0, 0.0, 0.0
    for start, area in sorted(zip(relaxed.ready, relaxed.areas, strict=True), reverse=True):
        left += area
        end = capacity.when(capacity.by(start) + left)
        if end > best:
            best, since = end, start
    return best, since


def ends_in_order(relaxed: Relaxation) -> list[float]:
    """Return the ends, in order, of the schedule that always works on what has the least left."""
    capacity, areas = relaxed.capacity, relaxed.areas
    ends: list[float] = []
    waiting: list[float] = []
    now = 0.0
    for start, area in sorted(zip(map(capacity.by, relaxed.ready), areas, strict=True)):
        while waiting and now + waiting[0] <= start:
            now += heapq.heappop(waiting)
            ends.append(now)
        if waiting:
            heapq.heapreplace(waiting, waiting[0] - (start - now))
        now = start
        heapq.heappush(waiting, area)
    while waiting:
        now += heapq.heappop(waiting)
        ends.append(now)
    return [capacity.when(end) for end in ends]


def mean_busy_times(relaxed: Relaxation) -> list[float]:
    """Return the mean busy time of each job where the job of the least area is always worked on.

    A job without an area is done when it is ready.
    """
    capacity, ready, areas = relaxed.capacity, relaxed.ready, relaxed.areas
    means, left = list(ready), list(areas)
    parts = [0.0] * len(left)
    waiting: list[tuple[float, int]] = []
    now = second = 0.0
    order = sorted((capacity.by(start), job) for job, start in enumerate(ready) if areas[job] > 0)
    for start, job in [*order, (math.inf, -1)]:
        while waiting and now < start:
            first = waiting[0][1]
            part = min(left[first], start - now)
            left[first] -= part
            now += part
            # The speed never falls, so that the middle of the seconds is not after the mean of the work.
            begin, second = second, capacity.when(now)
            parts[first] += part
            means[first] += ((begin + second) / 2 - means[first]) * (part / parts[first])
            if left[first] <= 0.0:
                heapq.heappop(waiting)
        if job >= 0:
            now, second = max(now, start), max(second, ready[job])
            heapq.heappush(waiting, (areas[job], job))
    return means
