"""Servers that batch continuously: requests join a running batch and leave it one by one, as in language models.

A segment has up to a number of requests in flight, others wait. With ``n`` in flight each of them goes on at a speed of
``throughput(n) / n`` requests per second, as the points of the profile say, and what lies between them. All go equally
fast, so a request is done when the progress of the segment has grown by its work: no other event changes when. The loop
is in C: ``mig_opt/native/continuous.c``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mig_opt.native import loop
from mig_opt.serving.demand import Demand, Service
from mig_opt.serving.profile_table import LATENCIES, Point
from mig_opt.simulation.serving.queues import BINS, BINS_PER_UNIT, LATE, LEAST_LATENCY, Counted, Floats, Whole
from mig_opt.simulation.serving.service import BLOCKS, Assignment, Router, varied

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

        def longer(seconds: tuple[float, ...]) -> tuple[float, ...]:
            return tuple(one * factor for one in seconds)

        speeds = tuple(speed / factor for speed in self.speeds)
        times = longer(self.limits), self.overhead * factor, speeds, longer(self.ttft), longer(self.itl)
        return ContinuousWorker(self.batch, self.processes, self.throughput / factor, *times)


def continuous_worker(demand: Demand, service: Service, gpu: str, point: Point, overhead: float) -> ContinuousWorker:
    """Return a segment with the figures of a point on a kind of GPU, and those of the points with fewer in flight."""
    tables = (table for table in demand.measured if (table.model, table.gpu) == (service.model, gpu))
    points = [p for t in tables for p in t.points if (p.size, p.processes) == (point.size, point.processes)]
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
    opens: Floats  # from when on, and until when, requests come
    closes: Floats
    # by the number of requests in flight, from 0 on
    speeds: Floats
    ttft: Floats
    itl: Floats
    state: Floats  # now, the progress, and the sum of times between tokens over time, both since the begin
    flights: (
        Floats  # of each request in flight: progress at its end, arrival, begin, sum at its begin, ttft, number then
    )
    flying: Whole
    # queues: arrivals and works in rings of a power of two, where the oldest one stands, their number
    rings: Floats
    works: Floats
    heads: Whole
    waiting: Whole


class ContinuousRequests:
    """Segments of one service that batch continuously, while requests arrive.

    As :class:`mig_opt.simulation.serving.service.ServedRequests`: a request is late if it breaks one of the SLOs of
    its service. For each request in flight a share of a batch is counted, as large as it was at its begin.
    """

    def __init__(
        self,
        workers: Sequence[ContinuousWorker],
        window: tuple[float, float],
        *,
        router: Router = Router.LEAST_WORK,
        spread: float = 0.0,
        rng: np.random.Generator,
        times: Sequence[tuple[float, float]] | None = None,
    ) -> None:
        count, most = len(workers), max(worker.most for worker in workers)
        self._workers, self._window, self._spread, self._rng = workers, window, spread, rng
        throughput = np.array([worker.throughput for worker in workers])
        self._assignment = Assignment(router, throughput, times, rng)

        def rows(name: str) -> Floats:
            found = np.zeros((count, most + 1))
            for row, worker in zip(found, workers, strict=True):
                row[1 : worker.most + 1] = getattr(worker, name)
            return found

        self._flights = _Flights(
            most=np.array([worker.most for worker in workers], dtype=np.int64),
            costs=1 / throughput,
            opens=self._assignment.opens,
            closes=self._assignment.closes,
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
        )
        self._batches = np.zeros((count, 5))
        limit = min(worker.limits[0] for worker in workers) * LATE
        self._counted = Counted(
            limits=np.array([*window, limit]),
            batches=np.zeros((count, 5), dtype=np.int64),
            busy_seconds=np.zeros(count),
            histogram=np.zeros(BINS, dtype=np.int64),
            blocks=np.zeros((BLOCKS, 3)),
            totals=np.array([0.0, 0.0, math.inf, 0.0]),
        )

    def run(self, arrivals: Iterable[Floats]) -> None:
        """Let all requests arrive, then answer those that wait."""
        for times in arrivals:
            self._feed(times, last=False)
        self._feed(np.zeros(0), last=True)

    @property
    def counted(self) -> Counted:
        """Counts of the requests that have arrived within the window, and are answered."""
        self._counted.batches[:] = np.ceil(self._batches - 1e-9)
        return self._counted

    def _feed(self, times: Floats, *, last: bool) -> None:
        flights, room = self._flights, 1
        while room < flights.waiting.max() + len(times):
            room *= 2
        if room > flights.rings.shape[1]:
            self._flights = flights = _widened(flights, room)
        works = varied(self._spread, len(times), self._rng) if self._spread else np.ones(len(times))
        rows = np.zeros((int(flights.waiting.sum() + flights.flying.sum()) + len(times), 7))
        done = _serve(times, works, self._assignment.of(times), last, flights, rows)
        for index in range(len(self._workers)):
            self._count(index, rows[:done][rows[:done, 0] == index].T[1:])

    def _count(self, index: int, rows: Floats) -> None:
        """Count the requests of a segment."""
        (first, last), worker, counted = self._window, self._workers[index], self._counted
        arrival, begin, end, ttft, itl, flying = rows
        spent = np.clip(np.minimum(end, last) - np.maximum(begin, first), 0.0, None).sum()
        counted.busy_seconds[index] += spent / worker.batch  # so that the share of the time is that of all places
        inside = (first <= arrival) & (arrival < last)
        if not inside.any():
            return
        arrival, begin, end, ttft, itl, flying = rows[:, inside]
        seconds = end + worker.overhead - arrival, ttft + worker.overhead, itl
        late = np.any([of > limit * LATE for of, limit in zip(seconds, worker.limits, strict=True)], axis=0)
        latency, shares = seconds[0], 1 / flying
        slow = end + worker.overhead - begin > worker.limits[0] * LATE
        # Columns as queues.py names them.
        self._batches[index] += shares.sum(), len(late), shares[late].sum(), shares[slow].sum(), late.sum()
        at = np.minimum(((arrival - first) / (last - first) * BLOCKS).astype(int), BLOCKS - 1)
        np.add.at(counted.blocks, at, np.stack([np.ones(len(at)), late, latency], axis=1))
        bins = np.clip(np.log(latency / LEAST_LATENCY) * BINS_PER_UNIT, 0, BINS - 1).astype(int)
        counted.histogram[:] += np.bincount(bins, minlength=BINS)
        totals = counted.totals
        totals[:2] += latency.sum(), (latency**2).sum()
        totals[2:] = min(totals[2], latency.min()), max(totals[3], latency.max())


def _widened(flights: _Flights, room: int) -> _Flights:
    """Return the segments with more room in their queues, whose oldest requests stand first."""
    wider = []
    for of in (flights.rings, flights.works):
        wider.append(np.zeros((len(of), room)))
        for row, old, head in zip(wider[-1], of, flights.heads, strict=True):
            row[: len(old)] = np.roll(old, -head)
    flights.heads[:] = 0
    return flights._replace(rings=wider[0], works=wider[1])
