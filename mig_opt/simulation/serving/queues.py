"""The loop over the requests of one service: where each one goes, and when its batch begins.

A segment has one queue and some processes. A batch begins as soon as a process is free and the batch is full, or of a
preferred size, or its oldest request has waited long enough; it takes the oldest requests, as many as it may have.
Nothing depends on requests that come later than the begin of a batch, so batches are begun when the next request after
them arrives. The loop is in C: ``mig_opt/native/requests.c``.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

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


def serve(
    arrivals: Floats,
    assigned: Whole,
    factors: Floats,
    segments: Segments,
    counted: Counted,
    *,
    begin: int = 0,
    last: bool = False,
    before: int = 0,
) -> int:
    """Let requests arrive one after the other; return how many have, which is all unless a queue has no room.

    Seconds of ``arrivals`` ascend, also across calls; ``begin`` is the first that has not arrived yet, ``before`` are
    those of earlier calls. ``assigned`` has the segment of each, or is empty if each joins the one with the least work
    or the fewest open requests. ``factors`` are times of batches as
    multiples of those of the profile, used in turn. Segments and counts change in place. After the ``last`` request all
    batches begin.
    """
    reached: int = _serve(arrivals, assigned, factors, begin, last, before, segments, counted)
    return reached
