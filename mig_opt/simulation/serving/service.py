"""One service under its requests: the state of its segments, and what has been counted."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from mig_opt.simulation.serving.queues import BINS, LATE, Counted, Floats, Segments, Whole, serve

_BLOCKS = 50
"""Parts of the counted time, which tell how much late requests come together."""
_FIRST_ROOM = 1024
_FACTORS = 4096


class Router(enum.StrEnum):
    """Rule by which a request is sent to one of the segments of its service."""

    LEAST_WORK = "least-work"
    """The segment that would need the fewest seconds for all its requests, this one included."""
    ROUND_ROBIN = "round-robin"
    """One after the other, as often as their throughput says."""
    RANDOM = "random"
    """Any, as likely as their throughput says."""


@dataclass(frozen=True)
class Worker:
    """A segment as the requests see it."""

    batch: int  # requests of a full batch
    processes: int  # batches that run at the same time
    # seconds that a batch occupies its process, and until its requests are answered, by their number, from 1 on
    busy: tuple[float, ...]
    answer: tuple[float, ...]
    wait: float  # seconds that a request waits at most for its batch to fill while a process is free

    @property
    def throughput(self) -> float:
        """Requests per second that full batches answer."""
        return self.batch * self.processes / self.busy[-1]


class ServedRequests:
    """The segments of one service while requests arrive.

    Requests count within a ``window`` of seconds, and are in time up to the SLO. The time of a batch varies with a
    standard deviation of ``spread``, as a share of it: times are lognormal, or the same for 0, or exponential, which
    queueing theory has formulas for, if it is infinite. Without ``quantiles``, which take a third of the time, there is
    no histogram of latencies.
    """

    def __init__(
        self,
        workers: Sequence[Worker],
        slo: float,
        window: tuple[float, float],
        *,
        router: Router = Router.LEAST_WORK,
        spread: float = 0.0,
        rng: np.random.Generator,
        quantiles: bool = True,
    ) -> None:
        count, most = len(workers), max(worker.batch for worker in workers)
        self._router, self._spread, self._rng = router, spread, rng
        throughput = np.array([worker.throughput for worker in workers])
        self._shares = throughput / throughput.sum()
        self._turns = np.zeros(count, dtype=np.int64)
        self._segments = Segments(
            sizes=np.array([worker.batch for worker in workers], dtype=np.int64),
            processes=np.array([worker.processes for worker in workers], dtype=np.int64),
            waits=np.array([worker.wait for worker in workers], dtype=float),
            costs=1 / throughput,
            busy=np.zeros((count, most + 1)),
            answer=np.zeros((count, most + 1)),
            free=np.zeros((count, max(worker.processes for worker in workers))),
            rings=np.zeros((count, _FIRST_ROOM)),
            heads=np.zeros(count, dtype=np.int64),
            lengths=np.zeros(count, dtype=np.int64),
            starts=np.full(count, math.inf),
        )
        for index, worker in enumerate(workers):
            self._segments.busy[index, 1 : worker.batch + 1] = worker.busy
            self._segments.answer[index, 1 : worker.batch + 1] = worker.answer
        self.counted = Counted(
            # Of long simulations of rare requests the clock itself is rounded to more.
            limits=np.array([*window, max(slo * LATE, slo + 4 * math.ulp(window[1]))]),
            batches=np.zeros((count, 5), dtype=np.int64),
            busy_seconds=np.zeros(count),
            histogram=np.zeros(BINS if quantiles else 0, dtype=np.int64),
            blocks=np.zeros((_BLOCKS, 3)),
            totals=np.array([0.0, 0.0, math.inf, 0.0]),
        )

    def run(self, arrivals: Iterable[Floats]) -> None:
        """Let all requests arrive, then answer those that wait."""
        for times in arrivals:
            self._feed(times, last=False)
        self._feed(np.zeros(0), last=True)

    @property
    def waiting(self) -> int:
        """Requests in the queues."""
        return int(self._segments.lengths.sum())

    def _feed(self, times: Floats, *, last: bool) -> None:
        assigned, factors = self._assigned(len(times)), self._factors(len(times))
        begin = 0
        while True:
            begin = serve(times, assigned, factors, self._segments, self.counted, begin=begin, last=last)
            if begin >= len(times):
                return
            self._make_room()

    def _make_room(self) -> None:
        """Double the room of all queues; their oldest requests stand first afterwards."""
        rings, heads = self._segments.rings, self._segments.heads
        room = rings.shape[1]
        wider = np.zeros((len(rings), 2 * room))
        for index, head in enumerate(heads):
            wider[index, :room] = np.roll(rings[index], -head)
        heads[:] = 0
        self._segments = self._segments._replace(rings=wider)

    def _assigned(self, count: int) -> Whole:
        shares = self._shares
        if self._router == Router.LEAST_WORK:
            return np.zeros(0, dtype=np.int64)
        if self._router == Router.RANDOM:
            return self._rng.choice(len(shares), count, p=shares).astype(np.int64)
        # The k-th turn of a segment is due at (k + 1/2) / share; turns come in the order in which they are due.
        own = np.ceil(shares * count).astype(np.int64) + 2
        segments = np.repeat(np.arange(len(shares)), own)
        turns = np.concatenate([first + np.arange(more) for first, more in zip(self._turns, own, strict=True)])
        due = (turns + 0.5) / shares[segments]
        order = segments[np.argsort(due, kind="stable")[:count]]
        self._turns += np.bincount(order, minlength=len(shares))
        return order.astype(np.int64)

    def _factors(self, count: int) -> Floats:
        if self._spread == 0:
            return np.ones(1)
        size = max(count, _FACTORS)
        if math.isinf(self._spread):
            return self._rng.standard_exponential(size)
        sigma = math.sqrt(math.log1p(self._spread**2))
        return self._rng.lognormal(-(sigma**2) / 2, sigma, size)
