"""Bound on the sum of completion times by prices of a fleet's capacity (Lagrangian relaxation).

Let a unit of the capacity cost something that never rises with time. In any schedule, the sum of the ends and of what
all jobs pay is at least the sum of what each would have at best if it were alone, and all that is paid is at most what
the whole capacity costs. The difference bounds the sum of the ends, whatever the prices are: they are dual prices of
the linear program in which jobs share the capacity of each second, none gets through its area faster than on its best
instance, and each ends when it is done (Dyer and Wolsey, Discrete Applied Mathematics 26, 1990, with jobs that may be
divided). Alone, a job works at its full speed, as late as its end allows, since that is cheapest.

The prices begin in proportion to the jobs that wait or run in the relaxed schedule, since that is by how much an
earlier second would help; subgradient steps improve them.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from mig_opt.fleet.relaxation import Relaxation, ends_in_order

Floats = npt.NDArray[np.float64]

_CELLS = 64  # intervals of equal prices
_STEPS = 120  # subgradient steps
_HOPED = 0.02  # share of the flow times by which the steps hope to raise the bound, at the beginning
_ROUNDING = 1e-12  # share of sums that rounding may add or take
_SCALES = (1.0, 0.8, 0.6, 0.4, 0.2, 0.1, 0.0)  # factors on the first prices that are tried


def priced_ends(relaxed: Relaxation) -> float:
    """Return a lower bound on the sum of the ends of jobs."""
    with np.errstate(all="ignore"):  # of times that are longer than squares of numbers can be
        return _best_value(_PricedJobs(relaxed))


def _best_value(jobs: _PricedJobs) -> float:
    best, prices = max(
        ((jobs.value(scale * jobs.unfinished)[0], scale * jobs.unfinished) for scale in _SCALES),
        key=lambda each: each[0],
    )
    value, excess = jobs.value(prices)
    for step in range(_STEPS):
        length = math.sqrt(float(excess @ excess))
        if not jobs.negligible < length < math.inf:
            break
        # Polyak's step towards a value that is a little above the best one.
        hoped = best + _HOPED * (best - jobs.begun) * (1 - step / _STEPS)
        prices = np.maximum(prices + (hoped - value) / length * (excess / length), 0.0)
        prices = (np.minimum.accumulate(prices) + np.maximum.accumulate(prices[::-1])[::-1]) / 2
        value, excess = jobs.value(prices)
        best = max(best, value)
    return best


class _PricedJobs:
    """Jobs that pay for the capacity that they use; prices are those of equal intervals and never rise."""

    def __init__(self, relaxed: Relaxation) -> None:
        areas = np.array(relaxed.areas)
        first = np.array(relaxed.ready) + np.array(relaxed.seconds)
        self.begun = float(np.array(relaxed.ready).sum())
        # Those that use nothing pay nothing.
        paying = areas > 0
        self._others = float(first[~paying].sum())
        first, areas = first[paying], areas[paying]
        self._speeds = np.array(relaxed.speeds)[paying]
        ends = np.array(ends_in_order(relaxed))[-len(first) :]
        bounds = np.linspace(min(relaxed.ready), max(ends[-1], first.max()), _CELLS + 1)
        self._bounds, self._widths = bounds, np.diff(bounds)
        self._offered = np.diff([relaxed.capacity.by(float(second)) for second in bounds])
        self.negligible = _ROUNDING * float(self._offered.max())
        self.unfinished = len(ends) - np.searchsorted(ends, bounds[:-1], side="right").astype(float)
        # The best end of a job is its first one, or it or its begin is where prices change.
        busy = (areas / self._speeds)[:, None]
        self._ends = np.maximum(np.concatenate([bounds + 0 * busy, bounds + busy], axis=1), first[:, None])
        self._begins = self._ends - busy

    def value(self, prices: Floats) -> tuple[float, Floats]:
        """Return the bound with some prices, and by how much jobs want more than there is in each interval."""
        paid = np.concatenate([[0.0], np.cumsum(prices * self._widths)])
        each = np.interp(self._ends, self._bounds, paid) - np.interp(self._begins, self._bounds, paid)
        costs = self._ends + self._speeds[:, None] * each
        chosen = costs.argmin(axis=1)[:, None]
        at_end, at_begin = (
            np.clip(np.take_along_axis(seconds, chosen, 1), self._bounds[:-1], self._bounds[1:])
            for seconds in (self._ends, self._begins)
        )
        wanted = self._speeds @ (at_end - at_begin)
        # Differences of high prices would say nothing: what rounding may have added is taken off again.
        worth = prices @ self._offered
        rounding = _ROUNDING * (self._speeds.sum() * paid[-1] + worth)
        total = float(np.take_along_axis(costs, chosen, 1).sum() - worth - rounding)
        return self._others + (total if math.isfinite(total) else -math.inf), wanted - self._offered
