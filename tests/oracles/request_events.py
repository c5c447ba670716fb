"""Requests at the segments of one service once more, by events: slow, and written in another way than the loop in C.

Every batch is kept with its process and its requests, so that a test can see that none is lost or served twice and that
no process has two batches at a time.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from mig_opt.simulation.serving.service import Worker

_COME, _GO_ON = 0, 1


@dataclass
class Segment:
    worker: Worker
    queue: deque[int] = field(default_factory=deque)
    free: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Batch:
    segment: int
    process: int
    requests: tuple[int, ...]
    begin: float
    released: float
    end: float


def batches_of(workers: Sequence[Worker], arrivals: Sequence[float]) -> list[Batch]:
    """All batches in the order of their begins, for requests that join the segment with the least work."""
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
            if len(segment.queue) < worker.batch and now < due:
                heapq.heappush(events, (due, _GO_ON, number))
                return
            if segment.free[process] > now:
                heapq.heappush(events, (segment.free[process], _GO_ON, number))
                return
            count = min(len(segment.queue), worker.batch)
            requests = tuple(segment.queue.popleft() for _ in range(count))
            segment.free[process] = now + worker.busy[count - 1]
            done.append(Batch(number, process, requests, now, segment.free[process], now + worker.answer[count - 1]))

    while events:
        now = events[0][0]
        touched = set()
        while events and events[0][0] == now:
            _, kind, index = heapq.heappop(events)
            if kind == _COME:
                work = [
                    (len(segment.queue) + 1) * (1 / segment.worker.throughput)
                    + sum(max(free - now, 0.0) for free in segment.free) / segment.worker.processes
                    for segment in segments
                ]
                index_of = work.index(min(work))
                segments[index_of].queue.append(index)
                touched.add(index_of)
            else:
                touched.add(index)
        for number in sorted(touched):
            begin(number, now)
    return done
