"""Run-time calibration: how far declared run times were from those that jobs took, and what to expect of the others.

Of the jobs that are done, the logarithm of the time that each took is compared with that of the time that was declared
for it, by a line of least squares (ridge regression, which begins at "as declared"). Where declared times say nothing,
the line becomes flat: all jobs are expected to take equally long. It is a correction that keeps their order.
"""

from __future__ import annotations

import math

from mig_opt.fleet.trace import Trace
from mig_opt.heuristics.fleet.base import LinearFit

_MIN_JOBS_DONE = 3  # jobs that must be done before anything is concluded
_PRIOR_SLOPE = 1.0  # sum of the squares of the logarithms that speaks for times as declared
_PRIOR_JOBS = 1.0  # jobs that were exactly as declared, before any is done
_MAX_LOG_FACTOR = math.log(1e6)  # logarithm of the largest factor, up and down


class Calibration:
    """Record of how far the declared run times of a trace were from those that jobs took.

    Of the trace only what jobs declare is read, not their true times.
    """

    def __init__(self, trace: Trace) -> None:
        self._declared = [
            math.nan if job.declared is None else math.log(next(iter(job.declared.values()))) for job in trace.jobs
        ]
        self.changes = 0  # another number whenever factors have changed
        self._errors = LinearFit()  # of the logarithms, against the declared ones
        self._slope = self._level = 0.0

    def learn(self, job: int, declared: float, taken: float) -> None:
        """Note that a job is done, which took ``taken`` seconds in place of ``declared``."""
        told, errors = self._declared[job], self._errors
        if math.isnan(told):
            return
        errors.add(told, math.log(taken) - math.log(declared))
        if errors.count < _MIN_JOBS_DONE:
            return
        self._slope = max(-1.0, min(0.0, errors.xy / (errors.xx + _PRIOR_SLOPE)))
        self._level = errors.mean_y * errors.count / (errors.count + _PRIOR_JOBS)
        self.changes += 1

    def factor(self, job: int) -> float:
        """Return by how much longer than declared a job is expected to run."""
        told = self._declared[job]
        if not self.changes or math.isnan(told):
            return 1.0
        exponent = self._level + self._slope * (told - self._errors.mean_x)
        return math.exp(max(-_MAX_LOG_FACTOR, min(_MAX_LOG_FACTOR, exponent)))

    @property
    def error(self) -> float | None:
        """Standard deviation of the logarithms of the times around what is expected now; None while little is known."""
        errors = self._errors
        if errors.count < _MIN_JOBS_DONE:
            return None
        rest = errors.yy - 2 * self._slope * errors.xy + self._slope**2 * errors.xx
        return math.sqrt(max(0.0, rest) / errors.count)
