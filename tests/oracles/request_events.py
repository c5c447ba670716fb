"""Requests at the segments of one service once more, by events: slow, and written in another way than the loop in C.

Every batch is kept with its process and its requests, so that a test can see that none is lost or served twice and that
no process has two batches at a time.
"""

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from mig_opt.simulation.serving.service import Router, Worker

_COME, _GO_ON = 0, 1


@dataclass
class Segment:
    worker: Worker
    queue: deque[int] = field(default_factory=deque)
    free: list[float] = field(default_factory=list)
    last: int = -1  # request that came last


@dataclass(frozen=True)
class Batch:
    segment: int
    process: int
    requests: tuple[int, ...]
    begin: float
    released: float
    end: float


def _chosen(segments: Sequence[Segment], now: float, done: Sequence[Batch], router: Router) -> int:
    """Number of the segment that a request joins."""

    def rank(number: int) -> tuple[float, int]:
        segment = segments[number]
        queued, seconds = len(segment.queue), 1 / segment.worker.throughput
        if router == Router.LEAST_WORK:
            ahead = sum(max(free - now, 0.0) for free in segment.free) / segment.worker.processes
            return (queued + 1) * seconds + ahead, 0
        opened = queued + sum(len(one.requests) for one in done if one.segment == number and one.end > now)
        return (opened + 1) * seconds if opened else 0.0, segment.last

    return min(range(len(segments)), key=rank)


def batches_of(workers: Sequence[Worker], arrivals: Sequence[float], router: Router) -> list[Batch]:
    """All batches in the order of their begins; requests join the segment with the least work, or fewest open ones."""
    segments = [Segment(worker, free=[0.0] * worker.processes) for worker in workers]
    events = [(time, _COME, index) for index, time in enumerate(arrivals)]
    heapq.heapify(events)
    done: list[Batch] = []

    def begin(number: int, now: float) -> None:
        segment = segments[number]
        worker = segment.worker
        while segment.queue:
            process = min(range(worker.processes), key=lambda index: segment.free[index])
            due = arrivals[segment.queue[0]] + worker.wait
            sizes = [*worker.preferred, worker.batch]
            if len(segment.queue) < min(sizes) and now < due:
                heapq.heappush(events, (due, _GO_ON, number))
                return
            if segment.free[process] > now:
                heapq.heappush(events, (segment.free[process], _GO_ON, number))
                return
            count = min(len(segment.queue), worker.batch)
            if now < due:
                count = max(size for size in sizes if size <= count)
            requests = tuple(segment.queue.popleft() for _ in range(count))
            segment.free[process] = now + worker.busy[count - 1]
            done.append(Batch(number, process, requests, now, segment.free[process], now + worker.answer[count - 1]))

    while events:
        now = events[0][0]
        touched = set()
        while events and events[0][0] == now:
            _, kind, index = heapq.heappop(events)
            if kind == _COME:
                index_of = _chosen(segments, now, done, router)
                segments[index_of].last = index
                segments[index_of].queue.append(index)
                touched.add(index_of)
            else:
                touched.add(index)
        for number in sorted(touched):
            begin(number, now)
    return done
