"""Servers that batch continuously: requests join a running batch and leave it one by one, as in language models.

A segment has up to a number of requests in flight, others wait. With ``n`` in flight each of them goes on at a speed of
``throughput(n) / n`` requests per second, as the points of the profile say, and what lies between them. All go equally
fast, so a request is done when the progress of the segment has grown by its work: no other event changes when.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from mig_opt.serving.demand import Demand, Service
from mig_opt.serving.deployment import Deployment, Segment
from mig_opt.simulation.serving.queues import (
    BATCHES,
    BINS,
    BINS_PER_UNIT,
    LATE,
    LATE_BATCHES,
    LATE_REQUESTS,
    LEAST_LATENCY,
    REQUESTS,
    SLOW_BATCHES,
    Counted,
    Floats,
)
from mig_opt.simulation.serving.service import ALWAYS, BLOCKS, Router


def is_continuous(demand: Demand, service: Service) -> bool:
    """Return True if the model of a service is batched continuously."""
    return any(table.continuous for table in demand.tables if table.model == service.model)


class ContinuousSegment:
    """Segment with the requests that are in flight and those that wait."""

    def __init__(
        self,
        demand: Demand,
        service: Service,
        deployment: Deployment,
        segment: Segment,
        *,
        times: tuple[float, float] = ALWAYS,
        overhead: float = 0.0,
    ) -> None:
        gpu, size = deployment.model(segment.gpu).name, deployment.placement(segment).profile.compute_slices
        tables = (table for table in demand.measured if (table.model, table.gpu) == (service.model, gpu))
        points = [p for t in tables for p in t.points if (p.size, p.processes) == (size, segment.processes)]
        self.most, self.throughput = segment.batch * segment.processes, segment.throughput
        self.batch, (self.opens, self.closes), self.overhead = segment.batch, times, overhead
        known = {p.batch * p.processes: p for p in sorted(points, key=lambda p: p.batch)}
        flying, at = np.arange(self.most + 1), [n for n in known if n < self.most]
        rates = [*(known[n].throughput for n in at), segment.throughput]
        with np.errstate(invalid="ignore"):
            self._speeds = np.interp(flying, [0, *at, self.most], [0.0, *rates]) / flying

        def between(name: str) -> Floats:
            there = [n for n in known if getattr(known[n], name) is not None]
            found: Floats = np.interp(flying, there or [0], [getattr(known[n], name) for n in there] or [0.0])
            return found

        self._ttft, self._itl = between("ttft"), between("itl")
        # Progress, and the sum of times between tokens over time, both since the begin.
        self._now = self._progress = self._tokens = 0.0
        self._flights: list[tuple[float, float, float, float, float, int]] = []
        self._queue: deque[tuple[float, float]] = deque()
        self.done: list[tuple[float, ...]] = []
        """Arrival, begin, end, seconds to the first token, and from token to token, requests in flight at the begin."""

    @property
    def waiting(self) -> int:
        """Requests that are not done."""
        return len(self._flights) + len(self._queue)

    def arrive(self, moment: float, work: float) -> None:
        """Let a request arrive, after :meth:`advance` to this moment; its work is in requests of the profile."""
        self._queue.append((moment, work))
        self._admit()

    def _admit(self) -> None:
        while self._queue and len(self._flights) < self.most and self._now >= self.opens:
            arrival, work = self._queue.popleft()
            number = len(self._flights) + 1
            flight = (self._progress + work, arrival, self._now, self._tokens, float(self._ttft[number]), number)
            heapq.heappush(self._flights, flight)

    def advance(self, moment: float) -> None:
        """Go on to a moment: what is done by then leaves, and what waits begins, if the segment has opened."""
        if self._now < self.opens <= moment:
            self._now = self.opens
            self._admit()
        while self._flights:
            number = len(self._flights)
            speed, target = float(self._speeds[number]), self._flights[0][0]
            end = self._now + max(target - self._progress, 0.0) / speed
            reached = min(end, moment)
            self._tokens += (reached - self._now) * float(self._itl[number])
            if end > moment:
                self._progress += (moment - self._now) * speed
                break
            self._progress, self._now = target, end
            _, arrival, begin, tokens, ttft, flying = heapq.heappop(self._flights)
            itl = (self._tokens - tokens) / (end - begin) if end > begin else 0.0
            self.done.append((arrival, begin, end, begin - arrival + ttft, itl, flying))
            self._admit()
        self._now = max(self._now, moment) if math.isfinite(moment) else self._now


class ContinuousRequests:
    """Segments of one service that batch continuously, while requests arrive.

    As :class:`mig_opt.simulation.serving.service.ServedRequests`: a request is late if it breaks one of the SLOs of
    its service. For each request in flight a share of a batch is counted, as large as it was at its begin.
    """

    def __init__(
        self,
        segments: Sequence[ContinuousSegment],
        service: Service,
        window: tuple[float, float],
        *,
        router: Router,
        spread: float,
        rng: np.random.Generator,
    ) -> None:
        self._segments, self._service, self._window = segments, service, window
        self._router, self._spread, self._rng = router, spread, rng
        self._turns = [0] * len(segments)

    def run(self, arrivals: Iterable[Floats]) -> None:
        """Let all requests arrive, then answer those that wait."""
        sigma = math.sqrt(math.log1p(self._spread**2))
        for times in arrivals:
            works = self._rng.lognormal(-(sigma**2) / 2, sigma, len(times)) if sigma else np.ones(len(times))
            for moment, work in zip(times.tolist(), works.tolist(), strict=True):
                for segment in self._segments:
                    segment.advance(moment)
                self._segments[self._chosen(moment)].arrive(moment, work)
        for segment in self._segments:
            segment.advance(math.inf)

    def _chosen(self, moment: float) -> int:
        """Return the segment for a request: an open one, or else the one that opens next."""
        there = [at for at, one in enumerate(self._segments) if one.opens <= moment < one.closes]
        if not there:
            later = [at for at, one in enumerate(self._segments) if one.opens > moment]
            return min(later or range(len(self._segments)), key=lambda at: self._segments[at].opens)
        rates = np.array([self._segments[at].throughput for at in there])
        if self._router in (Router.RANDOM, Router.UNIFORM):
            rates = rates if self._router == Router.RANDOM else np.ones(len(there))
            return there[int(self._rng.choice(len(there), p=rates / rates.sum()))]
        if self._router == Router.ROUND_ROBIN:
            index = min(there, key=lambda at: (self._turns[at] + 0.5) / self._segments[at].throughput)
            self._turns[index] += 1
            return index
        return min(there, key=lambda at: (self._segments[at].waiting + 1) / self._segments[at].throughput)

    @cached_property
    def counted(self) -> Counted:
        """Counts of the requests that have arrived within the window, when all are answered."""
        first, last = self._window
        slos = self._service.slos
        limits = [slos.get(name, math.inf) * LATE for name in ("latency", "ttft", "itl")]
        batches, busy = np.zeros((len(self._segments), 5)), np.zeros(len(self._segments))
        blocks, histogram = np.zeros((BLOCKS, 3)), np.zeros(BINS, dtype=np.int64)
        totals = np.array([0.0, 0.0, math.inf, 0.0])
        for index, segment in enumerate(self._segments):
            if not segment.done:
                continue
            arrival, begin, end, ttft, itl, flying = np.array(segment.done).T
            answered, ttft = end + segment.overhead, ttft + segment.overhead
            spent = np.clip(np.minimum(end, last) - np.maximum(begin, first), 0.0, None).sum()
            busy[index] = spent / segment.batch  # so that the share of the time is that of all places
            inside = (first <= arrival) & (arrival < last)
            latency, itl, ttft = (answered - arrival)[inside], itl[inside], ttft[inside]
            late = (latency > limits[0]) | (ttft > limits[1]) | (itl > limits[2])
            shares, slow = 1 / flying[inside], (answered - begin)[inside] > limits[0]
            for column, which in ((BATCHES, late | True), (LATE_BATCHES, late), (SLOW_BATCHES, slow)):
                batches[index, column] = math.ceil(shares[which].sum() - 1e-9)
            batches[index, REQUESTS], batches[index, LATE_REQUESTS] = len(latency), late.sum()
            at = np.minimum(((arrival[inside] - first) / (last - first) * BLOCKS).astype(int), BLOCKS - 1)
            np.add.at(blocks, at, np.stack([np.ones(len(at)), late, latency], axis=1))
            bins = np.clip(np.log(latency / LEAST_LATENCY) * BINS_PER_UNIT, 0, BINS - 1).astype(int)
            np.add.at(histogram, bins, 1)
            if len(latency):
                totals[:2] += latency.sum(), (latency**2).sum()
                totals[2:] = min(totals[2], latency.min()), max(totals[3], latency.max())
        limit = np.array([*self._window, limits[0]])
        return Counted(limit, batches.astype(np.int64), busy, histogram, blocks, totals)
