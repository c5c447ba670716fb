"""One service under its requests: where each one goes, when its batch begins, and what has been counted.

A segment has one queue and some processes. A batch begins as soon as a process is free and the batch is full, or of a
preferred size, or its oldest request has waited long enough; it takes the oldest requests, as many as it may have.
Nothing depends on requests that come later than the begin of a batch, so batches are begun when the next request after
them arrives. The loop is in C: ``mig_opt/native/requests.c``.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from mig_opt.native import loop

_serve = loop("serve")

Floats: TypeAlias = npt.NDArray[np.float64]
Whole: TypeAlias = npt.NDArray[np.int64]

BINS_PER_UNIT = 1000.0
"""Bins of the histogram for each unit of the natural logarithm of a latency: neighbours differ by 0.1 %."""
LEAST_LATENCY = 1e-7
"""Seconds below which all latencies share a bin."""
BINS = 35_000
"""Bins of a histogram: up to 1e8 seconds."""
LATE = 1 + 1e-6
"""Multiple of its SLO above which the latency of a request is late: sums of times are rounded."""

BATCHES, REQUESTS, LATE_BATCHES, SLOW_BATCHES, LATE_REQUESTS = range(5)
"""Columns of what is counted for each segment."""

BLOCKS = 50
"""Parts of the counted time, which tell how much late requests come together."""
_FIRST_ROOM = 1024
_FACTORS = 4096
ALWAYS = (0.0, math.inf)
_MOST_OPEN = 256
"""Batches of a segment whose requests are counted as open; of more, those that are answered first are not."""


class Router(enum.StrEnum):
    """Rule by which a request is sent to one of the segments of its service."""

    LEAST_WORK = "least-work"
    """The segment that would need the fewest seconds for all its requests, this one included."""
    ROUND_ROBIN = "round-robin"
    """One after the other, as often as their throughput says."""
    RANDOM = "random"
    """Any, as likely as their throughput says."""
    LEAST_CONNECTIONS = "least-connections"
    """The segment with the fewest requests that are not answered, for its throughput: ``leastconn`` of HAProxy."""
    UNIFORM = "uniform"
    """Any, all as likely, whatever their throughput: a Service of Kubernetes."""


class Segments(NamedTuple):
    """Segments of a service, their queues and processes; each array has an entry (or a row) for each segment."""

    sizes: Whole  # requests of a full batch
    processes: Whole  # batches that run at the same time
    enough: Whole  # requests with which a batch begins although the oldest has not waited for as long as it may
    taken: Whole  # how many it takes then, of as many as the column says
    waits: Floats  # most seconds that a request waits for its batch to fill
    costs: Floats  # seconds of work that a request is
    opens: Floats  # from when on, and until when, requests come
    closes: Floats
    # seconds that a batch occupies its process, and after which it is answered; columns are numbers of requests
    busy: Floats
    answer: Floats
    free: Floats  # seconds at which each process (the column) is free
    # queues: arrivals of the waiting requests, in rings of a power of two, where the oldest one stands, their number
    rings: Floats
    heads: Whole
    lengths: Whole
    starts: Floats  # when the next batch begins if no further request comes; infinite without requests
    # batches that are not answered yet, for the router that counts them: when they will be, and their requests; without
    # columns requests join the segment with the least work
    ends: Floats
    open: Whole
    turns: Whole  # number of the request that came last
    # batches that are formed ahead: seconds to the next look if nothing else is a reason for one; 0 if none is formed
    looks: Floats
    formed: Whole  # requests of each, the oldest first
    formed_batches: Whole
    formed_requests: Whole
    growing: Whole  # 1 if the last one may grow
    lacking: Whole  # requests that have to wait for the next look
    looked: Floats  # when the last look was
    wakes: Floats  # when the next one is, at the latest


class Counted(NamedTuple):
    """Counts of what happens while requests are served."""

    limits: Floats  # seconds from and up to which what arrives or runs is counted, and the longest latency in time
    batches: Whole  # batches and requests of each segment: the columns are named above
    busy_seconds: Floats  # seconds of the processes of each segment
    histogram: Whole  # requests by their latency; empty if nobody asks for quantiles
    blocks: Floats  # requests, late ones, and the sum of latencies, for each of equal parts of the counted time
    totals: Floats  # sum, sum of squares, minimum and maximum of latencies


@dataclass(frozen=True)
class Worker:
    """A segment as the requests see it."""

    batch: int  # requests of a full batch
    processes: int  # batches that run at the same time
    # seconds that a batch occupies its process, and until its requests are answered, by their number, from 1 on
    busy: tuple[float, ...]
    answer: tuple[float, ...]
    wait: float  # seconds that a request waits at most for its batch to fill while a process is free
    preferred: tuple[int, ...] = ()  # sizes, below a full batch, with which a batch begins at once
    look: float = 0.0  # seconds after which a batch that is formed ahead takes what has come; 0 if none is

    @property
    def throughput(self) -> float:
        """Requests per second that full batches answer."""
        return self.batch * self.processes / self.busy[-1]

    def scaled(self, factor: float) -> Worker:
        """Return the same segment where every second is ``factor`` seconds."""
        busy, answer = (tuple(seconds * factor for seconds in of) for of in (self.busy, self.answer))
        return replace(self, busy=busy, answer=answer, wait=self.wait * factor, look=self.look * factor)


class Served:
    """The segments of one service while requests arrive, and what is counted of these.

    Requests count within a ``window`` of seconds, and are in time up to the ``limit``. The time of a batch, or the work
    of a request that is batched continuously, varies with a standard deviation of ``spread``, as a share of it: it is
    lognormal, or the same for 0, or exponential, which queueing theory has formulas for, if it is infinite. Without
    ``quantiles``, which take a third of the time, there is no histogram of latencies. A segment gets requests from the
    one second in ``times`` on until the other, and then answers those that it has; while none gets any, they wait for
    the one that opens next.
    """

    def __init__(
        self,
        throughput: Floats,
        limit: float,
        window: tuple[float, float],
        *,
        router: Router = Router.LEAST_WORK,
        spread: float = 0.0,
        rng: np.random.Generator,
        quantiles: bool = True,
        times: Sequence[tuple[float, float]] | None = None,
    ) -> None:
        self._router, self._spread, self._rng = router, spread, rng
        self._weights = np.ones(len(throughput)) if router == Router.UNIFORM else throughput
        self._last_weights, self._turns = self._weights, np.zeros(len(throughput), dtype=np.int64)
        self._opens, self._closes = np.array(times or [ALWAYS] * len(throughput), dtype=float).T.copy()
        # not by np.unique, which loads all of numpy.ma
        self._moments = np.array(sorted({each for each in (*self._opens, *self._closes) if 0 < each < math.inf}))
        self.counted = Counted(
            limits=np.array([*window, limit]),
            batches=np.zeros((len(throughput), 5), dtype=np.int64),
            busy_seconds=np.zeros(len(throughput)),
            histogram=np.zeros(BINS if quantiles else 0, dtype=np.int64),
            blocks=np.zeros((BLOCKS, 3)),
            totals=np.array([0.0, 0.0, math.inf, 0.0]),
        )

    def run(self, arrivals: Iterable[Floats]) -> None:
        """Let all requests arrive, then answer those that wait."""
        for times in arrivals:
            self._feed(times, last=False)
        self._feed(np.zeros(0), last=True)

    def _feed(self, times: Floats, *, last: bool) -> None:
        raise NotImplementedError

    def _assigned(self, times: Floats) -> Whole:
        """Return the segments of requests; none if each goes where there is the least to do."""
        if self._router in (Router.LEAST_WORK, Router.LEAST_CONNECTIONS):
            return np.zeros(0, dtype=np.int64)
        parts = np.split(times, np.searchsorted(times, self._moments))
        return np.concatenate([self._among(part) for part in parts])

    def _among(self, times: Floats) -> Whole:
        """Return the segments of requests, by turns or at random, while the same ones are open."""
        count, opens, closes = len(times), self._opens, self._closes
        if not count:
            return np.zeros(0, dtype=np.int64)
        weights = self._weights * ((opens <= times[0]) & (times[0] < closes))
        if not np.array_equal(weights, self._last_weights):
            self._turns[:], self._last_weights = 0, weights
        if not weights.any():
            later = opens > times[0]
            next_open = np.argmin(np.where(later, opens, math.inf)) if later.any() else np.argmax(closes)
            return np.full(count, next_open, dtype=np.int64)
        shares = weights / weights.sum()
        if self._router != Router.ROUND_ROBIN:
            return self._rng.choice(len(shares), count, p=shares).astype(np.int64)
        # The k-th turn of a segment is due at (k + 1/2) / share; turns come in the order in which they are due.
        own = np.where(shares > 0, np.ceil(shares * count).astype(np.int64) + 2, 0)
        segments = np.repeat(np.arange(len(shares)), own)
        turns = np.concatenate([first + np.arange(more) for first, more in zip(self._turns, own, strict=True)])
        due = (turns + 0.5) / shares[segments]
        order = segments[np.argsort(due, kind="stable")[:count]]
        self._turns += np.bincount(order, minlength=len(shares))
        return order.astype(np.int64)


def late_from(slo: float, end: float) -> float:
    """Return the latency above which a request is late, in a simulation up to some second."""
    # Of long simulations of rare requests the clock itself is rounded to more.
    return max(slo * LATE, slo + 4 * math.ulp(end))


class ServedRequests(Served):
    """The segments of one service that form batches; ``how`` is what :class:`Served` takes."""

    def __init__(self, workers: Sequence[Worker], slo: float, window: tuple[float, float], **how: Any) -> None:
        count, most = len(workers), max(worker.batch for worker in workers)
        throughput = np.array([worker.throughput for worker in workers])
        super().__init__(throughput, late_from(slo, window[1]), window, **how)
        self._before = 0
        formed = 2 * max(worker.processes for worker in workers)
        # how many batches of a segment are not answered at a time, if their times do not vary
        most_open = (w.processes * (1 + math.ceil(max(w.answer) / min(w.busy))) for w in workers)
        open_batches = min(max(most_open), _MOST_OPEN) if self._router == Router.LEAST_CONNECTIONS else 0
        counts = ("heads", "lengths", "turns", "formed_batches", "formed_requests", "growing", "lacking")
        self._segments = Segments(
            **{name: np.zeros(count, dtype=np.int64) for name in counts},
            sizes=np.array([worker.batch for worker in workers], dtype=np.int64),
            processes=np.array([worker.processes for worker in workers], dtype=np.int64),
            enough=np.array([min(worker.preferred, default=worker.batch) for worker in workers], dtype=np.int64),
            taken=np.zeros((count, most + 1), dtype=np.int64),
            waits=np.array([worker.wait for worker in workers], dtype=float),
            costs=1 / throughput,
            opens=self._opens,
            closes=self._closes,
            busy=np.zeros((count, most + 1)),
            answer=np.zeros((count, most + 1)),
            free=np.tile(self._opens[:, None], max(worker.processes for worker in workers)),
            rings=np.zeros((count, _FIRST_ROOM)),
            starts=np.full(count, math.inf),
            ends=np.zeros((count, open_batches)),
            open=np.zeros((count, open_batches), dtype=np.int64),
            looks=np.array([worker.look for worker in workers], dtype=float),
            formed=np.zeros((count, formed), dtype=np.int64),
            looked=np.zeros(count),
            wakes=np.full(count, math.inf),
        )
        for index, worker in enumerate(workers):
            self._segments.busy[index, 1 : worker.batch + 1] = worker.busy
            self._segments.answer[index, 1 : worker.batch + 1] = worker.answer
            sizes = np.array([*worker.preferred, worker.batch])
            self._segments.taken[index] = [max(sizes[sizes <= some], default=some) for some in range(most + 1)]

    def _feed(self, times: Floats, *, last: bool) -> None:
        """Let requests arrive one after the other, as long as the queues have room, which they get then."""
        count, assigned = len(times), self._assigned(times)
        # times of batches as multiples of those of the profile, used in turn
        factors = np.ones(1) if self._spread == 0 else varied(self._spread, max(count, _FACTORS), self._rng)
        given, reached = (times, assigned, factors), 0
        while (reached := _serve(*given, reached, last, self._before, self._segments, self.counted)) < count:
            rings, heads = self._segments.rings, self._segments.heads
            self._segments = self._segments._replace(rings=widened(rings, heads, 2 * rings.shape[1]))
            heads[:] = 0
        self._before += count


def varied(spread: float, count: int, rng: np.random.Generator) -> Floats:
    """Return random factors of mean 1 with a standard deviation: lognormal, or exponential if it is infinite."""
    if math.isinf(spread):
        return rng.standard_exponential(count)
    sigma = math.sqrt(math.log1p(spread**2))
    return rng.lognormal(-(sigma**2) / 2, sigma, count)


def widened(rings: Floats, heads: Whole, room: int) -> Floats:
    """Return rings with more room, in which the oldest entries, where the heads say, stand first."""
    wider = np.zeros((len(rings), room))
    for row, old, head in zip(wider, rings, heads, strict=True):
        row[: len(old)] = np.roll(old, -head)
    return wider
