"""Servers that batch continuously: requests join a running batch and leave it one by one, as in language models.

A segment has up to a number of requests in flight, others wait. With ``n`` in flight each of them goes on at a speed of
``throughput(n) / n`` requests per second, as the points of the profile say, and what lies between them. All go equally
fast, so a request is done when the progress of the segment has grown by its work: no other event changes when. The loop
is in C: ``mig_opt/native/continuous.c``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mig_opt.native import loop
from mig_opt.serving.demand import Demand, Service
from mig_opt.serving.profile_table import LATENCIES, Point
from mig_opt.simulation.serving.service import (
    BATCHES,
    LATE,
    LATE_BATCHES,
    SLOW_BATCHES,
    Floats,
    Served,
    Whole,
    late_from,
    varied,
    widened,
)

_serve = loop("serve_continuously")

_PARTS = 6
"""Numbers that are known of a request in flight."""


def is_continuous(demand: Demand, service: Service) -> bool:
    """Return True if the model of a service is batched continuously."""
    return any(table.continuous for table in demand.tables if table.model == service.model)


@dataclass(frozen=True)
class ContinuousWorker:
    """A segment as the requests of a model that is batched continuously see it."""

    batch: int
    processes: int
    throughput: float  # requests per second, with as many in flight as there may be
    limits: tuple[float, ...]  # SLOs on latency, time to the first token, and from token to token; infinite if none
    overhead: float
    # requests per second of each, seconds to the first token and from token to token, by the number in flight from 1 on
    speeds: tuple[float, ...]
    ttft: tuple[float, ...]
    itl: tuple[float, ...]

    @property
    def most(self) -> int:
        """Requests that may be in flight."""
        return len(self.speeds)

    @property
    def answer(self) -> tuple[float, ...]:
        """Seconds until a request that is alone is answered; infinite if it breaks an SLO on tokens."""
        kept = self.ttft[0] + self.overhead <= self.limits[1] * LATE and self.itl[0] <= self.limits[2] * LATE
        return (1 / self.speeds[0] + self.overhead if kept else math.inf,)

    def scaled(self, factor: float) -> ContinuousWorker:
        """Return the same segment where every second is ``factor`` seconds."""
        limits, ttft, itl = (tuple(one * factor for one in of) for of in (self.limits, self.ttft, self.itl))
        speeds, overhead = tuple(speed / factor for speed in self.speeds), self.overhead * factor
        return ContinuousWorker(
            self.batch, self.processes, self.throughput / factor, limits, overhead, speeds, ttft, itl
        )


def continuous_worker(service: Service, point: Point, points: Sequence[Point], overhead: float) -> ContinuousWorker:
    """Return a segment with the figures of a point, and those of ``points`` that have other numbers in flight."""
    most = point.batch * point.processes
    known = {p.batch * p.processes: p for p in sorted(points, key=lambda p: p.batch)}
    flying, at = np.arange(1, most + 1), [number for number in known if number < most]
    rates = [*(known[number].throughput for number in at), point.throughput]
    speeds = np.interp(flying, [0, *at, most], [0.0, *rates]) / flying

    def between(name: str) -> tuple[float, ...]:
        there = [number for number in known if getattr(known[number], name) is not None]
        seconds = [getattr(known[number], name) for number in there]
        return tuple(np.interp(flying, there or [0], seconds or [0.0]).tolist())

    limits = tuple(service.slos.get(name, math.inf) for name in LATENCIES)
    tokens = between("ttft"), between("itl")
    return ContinuousWorker(
        point.batch, point.processes, point.throughput, limits, overhead, tuple(speeds.tolist()), *tokens
    )


class _Flights(NamedTuple):
    """Segments of a service; each array has an entry (or a row) for each segment."""

    most: Whole  # requests that may be in flight
    costs: Floats  # seconds of work that a request is
    processes: Floats  # batches that run at the same time, among which those in flight are divided
    opens: Floats  # from when on, and until when, requests come
    closes: Floats
    overheads: Floats  # seconds that each answer takes longer
    limits: Floats  # latency, time to the first token, and from token to token above which a request is late
    # by the number of requests in flight, from 0 on
    speeds: Floats
    ttft: Floats
    itl: Floats
    state: Floats  # now, the progress, and the sum of times between tokens over time, both since the begin
    # of each in flight: progress at its end, arrival, begin, sum then, time to the first token, share of a batch
    flights: Floats
    flying: Whole
    # queues: arrivals and works in rings of a power of two, where the oldest one stands, their number
    rings: Floats
    works: Floats
    heads: Whole
    waiting: Whole
    shares: Floats  # of batches that the requests were: all, late ones, and those longer than the SLO by themselves


class ContinuousRequests(Served):
    """The segments of one service that batch continuously; ``how`` is what ``Served`` takes.

    A request is late if it breaks one of the SLOs of its service. For each in flight a share of a batch is counted, as
    large as it was at its begin.
    """

    def __init__(self, workers: Sequence[ContinuousWorker], window: tuple[float, float], **how: Any) -> None:
        count, most = len(workers), max(worker.most for worker in workers)
        throughput = np.array([worker.throughput for worker in workers])
        limits = np.array([[late_from(limit, window[1]) for limit in worker.limits] for worker in workers])
        super().__init__(throughput, limits[:, 0].min(), window, **how)
        self._workers = workers

        def rows(name: str) -> Floats:
            found = np.zeros((count, most + 1))
            for row, worker in zip(found, workers, strict=True):
                row[1 : worker.most + 1] = getattr(worker, name)
            return found

        self._flights = _Flights(
            most=np.array([worker.most for worker in workers], dtype=np.int64),
            costs=1 / throughput,
            processes=np.array([worker.processes for worker in workers], dtype=float),
            opens=self._opens,
            closes=self._closes,
            overheads=np.array([worker.overhead for worker in workers], dtype=float),
            limits=limits,
            speeds=rows("speeds"),
            ttft=rows("ttft"),
            itl=rows("itl"),
            state=np.zeros((count, 3)),
            flights=np.zeros((count, _PARTS * most)),
            flying=np.zeros(count, dtype=np.int64),
            rings=np.zeros((count, 1)),
            works=np.zeros((count, 1)),
            heads=np.zeros(count, dtype=np.int64),
            waiting=np.zeros(count, dtype=np.int64),
            shares=np.zeros((count, 3)),
        )

    def _feed(self, times: Floats, *, last: bool) -> None:
        flights, room = self._flights, 1
        while room < flights.waiting.max() + len(times):
            room *= 2
        if room > flights.rings.shape[1]:
            wider = (widened(rings, flights.heads, room) for rings in (flights.rings, flights.works))
            self._flights = flights = flights._replace(rings=next(wider), works=next(wider))
            flights.heads[:] = 0
        works = varied(self._spread, len(times), self._rng) if self._spread else np.ones(len(times))
        _serve(times, works, self._assigned(times), last, flights, self.counted)
        if last:
            self.counted.batches[:, [BATCHES, LATE_BATCHES, SLOW_BATCHES]] = np.ceil(flights.shares - 1e-9)
            self.counted.busy_seconds[:] /= [worker.batch for worker in self._workers]  # the share of all places
