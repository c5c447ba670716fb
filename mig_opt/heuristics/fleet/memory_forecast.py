"""The time-series predictor of MIGM: a forecast of the peak memory of a running job.

From *Managing Multi Instance GPUs for High Throughput and Energy Savings* (MIGM), section 3.2.3 and Algorithm 1. A
straight line is fitted to the memory that a job has used so far, and continued to its last iteration. The prediction
counts once it has converged. The paper fits another line to how little of the requested memory is reused; where the
used memory is all that is known, as in a simulation, that line stays at 1.
"""

from __future__ import annotations

from statistics import NormalDist

from mig_opt.heuristics.fleet.base import LinearFit

_MIN_ITERATIONS = 3  # two points are on a line always; from the third on there are residuals
_MIN_STEADY_PREDICTIONS = 3  # predictions in a row that hardly differ, for the forecast to have converged
_DEVIATIONS = NormalDist().inv_cdf(0.995)  # standard deviations from the line within which 99 % of the values are


class MemoryForecast:
    """Forecast of the most memory that a job will need, from its iterations so far.

    The predicted peak is the upper end of the 99 % interval of the line at the last iteration, and at least what has
    been used so far. It has converged (which the paper leaves open) when it has changed by no more than ``tolerance``
    of itself three times in a row; the first prediction is made of three iterations. ``last`` is the last iteration, in
    the unit of those that are observed: a number, or 1 for shares of the work.

    Examples
    --------
    Memory that grows by 0.1 GB from iteration to iteration has reached 12 GB after 100 of them.

    >>> forecast = MemoryForecast(last=100)
    >>> for iteration in range(1, 7):
    ...     forecast.observe(iteration, 2.0 + 0.1 * iteration)
    ...     print(iteration, forecast.converged, round(forecast.peak, 2))
    1 False 2.1
    2 False 2.2
    3 False 12.0
    4 False 12.0
    5 False 12.0
    6 True 12.0
    """

    def __init__(self, *, last: float = 1.0, tolerance: float = 0.05) -> None:
        self.peak = 0.0  # GB that the job is predicted to need; what it has used until there are three iterations
        self._last = last
        self._tolerance = tolerance
        self._line = LinearFit()
        self._used = 0.0
        self._steady = 0
        self._previous_peak: float | None = None

    def observe(self, iteration: float, gb: float) -> None:
        """Add the memory used at an iteration, by its number or the share of the work that is done; later ones last."""
        self._line.add(iteration, gb)
        self.peak = self._used = max(self._used, gb)
        if self._line.count < _MIN_ITERATIONS:
            return
        self.peak = max(self._used, self._line.at(self._last) + _DEVIATIONS * self._line.deviation)
        if self._previous_peak is not None:
            steady = abs(self.peak - self._previous_peak) <= self._tolerance * self.peak
            self._steady = self._steady + 1 if steady else 0
        self._previous_peak = self.peak

    @property
    def converged(self) -> bool:
        """True if the prediction has converged."""
        return self._steady >= _MIN_STEADY_PREDICTIONS
