"""Experience with declared run times: how far they were from those that jobs took, and what to expect of the others.

Of the jobs that are done, the logarithm of the time that each took is compared with that of the time that was declared
for it, by a line of least squares (ridge regression, which begins at "as declared"). Where declared times say nothing,
the line becomes flat: all jobs are expected to take equally long. It is a correction that keeps their order.
"""

from __future__ import annotations

import math

from mig_opt.fleet.trace import Trace

_LEAST = 3
"""Jobs that must be done before anything is concluded."""

_PRIOR_SLOPE = 1.0
"""Sum of the squares of the logarithms that speaks for times as declared."""

_PRIOR_JOBS = 1.0
"""Jobs that were exactly as declared, before any is done."""

_MOST = 1e6
"""Largest factor, up and down."""


class Experience:
    """Record of how far the declared run times of a trace were from those that jobs took.

    Parameters
    ----------
    trace : Trace
        The trace, with what its jobs declare. Of the true times nothing is read.

    Attributes
    ----------
    changes : int
        Number that is another one whenever factors have changed.
    """

    def __init__(self, trace: Trace) -> None:
        self._declared = [
            math.nan if job.declared is None else math.log(next(iter(job.declared.values()))) for job in trace.jobs
        ]
        self.changes = 0
        self._count = 0
        self._means = [0.0, 0.0]
        # Sums of squares and products of the deviations from the means: declared logarithms, and their errors.
        self._spread = self._product = self._errors = 0.0
        self._slope = self._level = 0.0

    def learn(self, job: int, declared: float, taken: float) -> None:
        """Note that a job is done, which took ``taken`` seconds in place of ``declared``."""
        told = self._declared[job]
        if math.isnan(told):
            return
        error = math.log(taken) - math.log(declared)
        self._count += 1
        before, wrong_before = told - self._means[0], error - self._means[1]
        self._means[0] += before / self._count
        self._means[1] += wrong_before / self._count
        self._spread += before * (told - self._means[0])
        self._product += before * (error - self._means[1])
        self._errors += wrong_before * (error - self._means[1])
        if self._count < _LEAST:
            return
        slope = max(-1.0, min(0.0, self._product / (self._spread + _PRIOR_SLOPE)))
        level = self._means[1] * self._count / (self._count + _PRIOR_JOBS)
        if (slope, level) != (self._slope, self._level) or slope:
            self._slope, self._level = slope, level
            self.changes += 1

    def factor(self, job: int) -> float:
        """Return by how much longer than declared a job is expected to run."""
        told = self._declared[job]
        if not self.changes or math.isnan(told):
            return 1.0
        exponent = self._level + self._slope * (told - self._means[0])
        return math.exp(max(-math.log(_MOST), min(math.log(_MOST), exponent)))

    @property
    def error(self) -> float | None:
        """Standard deviation of the logarithms of the times around what is expected now; None while little is known."""
        if self._count < _LEAST:
            return None
        rest = self._errors - 2 * self._slope * self._product + self._slope**2 * self._spread
        return math.sqrt(max(0.0, rest) / self._count)
