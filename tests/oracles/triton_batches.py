"""Batches of Triton's dynamic batcher once more, request by request: its threads as events, its payloads as objects.

It follows what the batcher does (triton-inference-server/core, 24.10: dynamic_batch_scheduler.cc, instance_queue.cc),
with threads that take no time; the loop in C comes to the same by fewer variables.
"""

import heapq
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass
class Payload:
    requests: list[float] = field(default_factory=list)
    queued: bool = False
    stale: bool = False


class Batcher:
    """The thread that forms payloads, and the processes that take them; each batch that begins goes to ``done``."""

    def __init__(self, size: int, processes: int, preferred: Sequence[int], delay: float, period: float) -> None:
        self.size, self.processes, self.delay, self.period = size, processes, delay, period
        self.preferred = {*preferred, size}
        self.waiting: deque[float] = deque()
        self.payloads: deque[Payload] = deque()
        self.current, self.saturated, self.lacking = Payload(), False, 0
        self.free = [-math.inf] * processes
        self.timeout = math.inf
        self.done: list[tuple[float, tuple[float, ...]]] = []

    def come(self, now: float) -> bool:
        """Return True if the request wakes the thread."""
        self.waiting.append(now)
        return len(self.payloads) < 2 * self.processes and len(self.waiting) >= self.lacking

    def work(self, now: float) -> bool:
        """Go through the loop of the thread once; return True if it goes on at once."""
        if self.saturated or self.current.stale:
            self.current, self.saturated, self.lacking = Payload(), False, 0
        if not self.waiting:
            self.timeout = now + self.period
            return False
        self.timeout = math.inf
        if len(self.payloads) >= 2 * self.processes:
            return False
        count, wait = self.batch(now)
        if wait > 0:
            self.timeout = self.waiting[0] + self.delay
            return False
        self.current.requests += [self.waiting.popleft() for _ in range(count)]
        if count and not self.current.queued:
            self.current.queued = True
            self.payloads.append(self.current)
        return True

    def batch(self, now: float) -> tuple[int, float]:
        """Return how many requests join the payload, and how long to wait before any do."""
        had, pending, best = len(self.current.requests), 0, 0
        for _ in self.waiting:
            if had + pending == self.size:
                self.saturated = True
                break
            pending += 1
            if had + pending in self.preferred:
                best = pending
        if not pending:
            return 0, 0.0
        exceeded = self.delay > 0 and now >= self.waiting[0] + self.delay
        if best and not exceeded:
            self.saturated = self.delay == 0
            return best, 0.0
        if had + pending >= self.size:
            self.saturated = True
        if self.saturated or exceeded or self.delay == 0:
            return pending, 0.0
        self.lacking = min(one for one in self.preferred if one > had + pending) - had
        if had and had not in self.preferred:
            return pending, 0.0
        return 0, 1.0

    def begin(self, now: float, busy: Callable[[int], float]) -> bool:
        """Let a process that is free take a payload, and merge those that are overdue; return False if none can."""
        process = min(range(self.processes), key=self.free.__getitem__)
        if not self.payloads or self.free[process] > now:
            return False
        first = self.payloads.popleft()
        first.stale = True
        while self.delay > 0 and self.size > 1 and self.payloads and now > self.payloads[0].requests[0] + self.delay:
            front = self.payloads[0]
            front.stale = True
            if len(first.requests) + len(front.requests) > self.size:
                break
            first.requests += self.payloads.popleft().requests
        self.free[process] = now + busy(len(first.requests))
        self.done.append((now, tuple(first.requests)))
        return True


def triton_batches(
    arrivals: Sequence[float],
    *,
    size: int,
    processes: int,
    delay: float,
    busy: Callable[[int], float],
    preferred: Sequence[int] = (),
    period: float = 0.5,
) -> list[tuple[float, tuple[float, ...]]]:
    """Return when each batch begins, and the arrivals of its requests."""
    batcher = Batcher(size, processes, preferred, delay, period)
    batcher.work(0.0)
    coming = deque(arrivals)
    ends: list[float] = []
    while coming or batcher.waiting or batcher.payloads:
        now = min([*(ends[:1]), *([coming[0]] if coming else []), batcher.timeout])
        woken = batcher.timeout == now
        if ends and ends[0] == now:
            heapq.heappop(ends)
        elif coming and coming[0] == now:
            woken = batcher.come(coming.popleft()) or woken
        while True:
            begun = batcher.begin(now, busy)
            if begun:
                heapq.heappush(ends, now + busy(len(batcher.done[-1][1])))
            if not begun and not woken:
                break
            woken = batcher.work(now)
    return batcher.done
