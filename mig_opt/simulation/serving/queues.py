"""The loop over the requests of one service: where each one goes, and when its batch begins.

A segment has one queue and some processes. A batch begins as soon as a process is free and the batch is either full or
its oldest request has waited long enough; it takes the oldest requests, as many as it may have. Nothing depends on
requests that come later than the begin of a batch, so batches are begun when the next request after them arrives. The
loop is in C: ``mig_opt/native/requests.c``.
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
"""A request is late if its latency is more than so many times its SLO: sums of times are rounded."""

BATCHES, REQUESTS, LATE_BATCHES, SLOW_BATCHES, LATE_REQUESTS = range(5)
"""Columns of what is counted for each segment."""


class Segments(NamedTuple):
    """Segments of a service, their queues and processes; each array has an entry (or a row) for each segment.

    Attributes
    ----------
    sizes : numpy.ndarray
        Requests of a full batch.
    processes : numpy.ndarray
        Batches that run at the same time.
    waits : numpy.ndarray
        Most seconds that a request waits for its batch to fill.
    costs : numpy.ndarray
        Seconds of work that a request is.
    busy, answer : numpy.ndarray
        Seconds that a batch of so many requests (the column) occupies its process, and after which it is answered.
    free : numpy.ndarray
        Seconds at which each process (the column) is free.
    rings, heads, lengths : numpy.ndarray
        Queues: arrivals of the waiting requests, where the oldest one stands, and their number. The length of a ring is
        a power of two.
    starts : numpy.ndarray
        When the next batch begins if no further request comes; infinite without requests.
    """

    sizes: Whole
    processes: Whole
    waits: Floats
    costs: Floats
    busy: Floats
    answer: Floats
    free: Floats
    rings: Floats
    heads: Whole
    lengths: Whole
    starts: Floats


class Counted(NamedTuple):
    """Counts of what happens while requests are served.

    Attributes
    ----------
    limits : numpy.ndarray
        Seconds from and up to which what arrives or runs is counted, and the longest latency in time.
    batches : numpy.ndarray
        Batches and requests of each segment: the columns are named above.
    busy_seconds : numpy.ndarray
        Seconds of the processes of each segment.
    histogram : numpy.ndarray
        Requests by their latency; empty if nobody asks for quantiles.
    blocks : numpy.ndarray
        Requests, late ones, and the sum of latencies, for each of equal parts of the time in which they came.
    totals : numpy.ndarray
        Sum, sum of squares, minimum and maximum of latencies.
    """

    limits: Floats
    batches: Whole
    busy_seconds: Floats
    histogram: Whole
    blocks: Floats
    totals: Floats


def serve(
    arrivals: Floats,
    assigned: Whole,
    factors: Floats,
    segments: Segments,
    counted: Counted,
    *,
    begin: int = 0,
    last: bool = False,
) -> int:
    """Let requests arrive one after the other; return how many have, which is all unless a queue has no room.

    Parameters
    ----------
    arrivals : numpy.ndarray
        Seconds, ascending, also across calls.
    assigned : numpy.ndarray
        The segment of each request; empty if each joins the one with the least work.
    factors : numpy.ndarray
        Times of batches, as multiples of those of the profile, used in turn.
    segments, counted
        Changed in place.
    begin : int
        Index of the first request that has not arrived yet.
    last : bool
        True if no request comes after these: then all batches are begun.

    Returns
    -------
    int
        Index of the first request that still has not arrived.
    """
    reached: int = _serve(arrivals, assigned, factors, begin, last, segments, counted)
    return reached
