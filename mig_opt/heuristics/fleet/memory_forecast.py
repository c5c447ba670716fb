"""The time-series predictor of MIGM: a forecast of the peak memory of a running job.

From *Managing Multi Instance GPUs for High Throughput and Energy Savings* (MIGM), section 3.2.3 and Algorithm 1. One
straight line is fitted to the memory that a job has requested so far, a second one to how little of it was reused. Both
are continued to the last iteration. The prediction counts once it has converged.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from mig_opt.errors import InputError, Problem
from mig_opt.rules import wrong_integer, wrong_number

_LEAST = 3
"""Two points are on a line always; from the third on there are residuals."""


class LinearFit:
    """Line of least squares through points that come one by one.

    Examples
    --------
    >>> fit = LinearFit()
    >>> for at, value in [(1, 2.0), (2, 4.0), (3, 6.0)]:
    ...     fit.add(at, value)
    >>> fit.at(10), fit.deviation
    (20.0, 0.0)
    """

    def __init__(self) -> None:
        self.count = 0
        self._mean_x = self._mean_y = 0.0
        self._xx = self._xy = self._yy = 0.0

    def add(self, x: float, y: float) -> None:
        """Add a point. Sums of deviations from the means lose no digits where the values are large."""
        self.count += 1
        from_x, from_y = x - self._mean_x, y - self._mean_y
        self._mean_x += from_x / self.count
        self._mean_y += from_y / self.count
        self._xx += from_x * (x - self._mean_x)
        self._xy += from_x * (y - self._mean_y)
        self._yy += from_y * (y - self._mean_y)

    @property
    def slope(self) -> float:
        """Rise of y for each x; 0 while all points have the same x."""
        return self._xy / self._xx if self._xx else 0.0

    @property
    def deviation(self) -> float:
        """Standard deviation of the residuals (n - 2 degrees of freedom); 0 below three points."""
        if self.count < _LEAST:
            return 0.0
        return math.sqrt(max(0.0, self._yy - self.slope * self._xy) / (self.count - 2))

    def at(self, x: float) -> float:
        """Return the value of the line."""
        return self._mean_y + self.slope * (x - self._mean_x)


class MemoryForecast:
    """Forecast of the most memory that a job will need, from its iterations so far.

    The memory that is physically needed is the requested one times a *reuse ratio* from 0 to 1. Lines are fitted to the
    requested memory and to 1 / ratio. The predicted peak is the upper end of the interval of the first over the lower
    end of that of the second (at least 1) at the last iteration, and at least what has been needed so far. It has
    converged (which the paper leaves open) when it has changed by no more than ``tolerance`` of itself ``steady`` times
    in a row; the first prediction is made of three iterations.

    Parameters
    ----------
    last : float
        The last iteration, in the unit of those that are observed: a number, or 1 for shares of the work.
    confidence : float
        Probability of the two-sided interval around each line, above 0 and below 1.
    tolerance : float
        Share of a prediction by which it may differ from the one before.
    steady : int
        Number of such predictions in a row.
    fixed_gb : float
        GB that a job needs besides those that it requests, the same from begin to end: the CUDA context and workspaces
        of libraries, which the paper keeps out of the series (section 3.2.2). No part of them is reused.

    Raises
    ------
    InputError
        With every problem of the arguments.

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

    def __init__(
        self,
        *,
        last: float = 1.0,
        confidence: float = 0.99,
        tolerance: float = 0.05,
        steady: int = 3,
        fixed_gb: float = 0.0,
    ) -> None:
        problems = [
            *wrong_number("last", last, "a finite number > 0", above=0),
            *wrong_number("confidence", confidence, "a number above 0 and below 1", above=0),
            *wrong_number("tolerance", tolerance, "a finite number >= 0", at_least=0),
            *wrong_integer("steady", steady, 1, 10**6),
            *wrong_number("fixed_gb", fixed_gb, "a finite number of GB >= 0", at_least=0),
        ]
        if not problems and confidence >= 1:
            problems.append(Problem("confidence", f"must be a number above 0 and below 1, is {confidence}"))
        if problems:
            raise InputError(problems)
        self._last = last
        self._deviations = NormalDist().inv_cdf((1 + confidence) / 2)
        self._tolerance = tolerance
        self._steady = steady
        self._fixed_gb = fixed_gb
        self._requested = LinearFit()
        self._inverse_reuse = LinearFit()
        self._needed = 0.0
        self._steady_so_far = 0
        self._previous_peak: float | None = None
        self.peak = 0.0
        """GB that the job is predicted to need; what it has needed until there are three iterations."""

    def observe(self, iteration: float, requested_gb: float, reuse: float = 1.0) -> None:
        """Add the observation of an iteration, which is later than those before.

        The iteration is its number, or the share of the work that is done. Of the memory that the job has requested the
        share ``reuse`` (above 0, up to 1) is physically needed.
        """
        if not 0 < reuse <= 1:
            raise InputError([Problem("reuse", f"must be a share above 0 and up to 1, is {reuse!r:.60}")])
        self._requested.add(iteration, requested_gb)
        self._inverse_reuse.add(iteration, 1 / reuse)
        self.peak = self._needed = max(self._needed, self._fixed_gb + requested_gb * reuse)
        if self._requested.count < _LEAST:
            return
        upper = self._requested.at(self._last) + self._deviations * self._requested.deviation
        lower = self._inverse_reuse.at(self._last) - self._deviations * self._inverse_reuse.deviation
        self.peak = max(self._needed, self._fixed_gb + upper / max(1.0, lower))
        if self._previous_peak is not None:
            steady = abs(self.peak - self._previous_peak) <= self._tolerance * self.peak
            self._steady_so_far = self._steady_so_far + 1 if steady else 0
        self._previous_peak = self.peak

    @property
    def converged(self) -> bool:
        """True if the prediction has converged."""
        return self._steady_so_far >= self._steady
