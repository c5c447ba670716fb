"""The predictor of memory on series that can be computed by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mig_opt.heuristics.fleet.base import LinearFit
from mig_opt.heuristics.fleet.memory_forecast import MemoryForecast

Z = 2.5758293035489004
"""Standard deviations within which 99 % of a normal distribution are."""


def seen(forecast: MemoryForecast, *requested: float) -> MemoryForecast:
    for iteration, gb in enumerate(requested, 1):
        forecast.observe(iteration, gb)
    return forecast


def test_a_noisy_line() -> None:
    """Through (1, 1), (2, 3), (3, 2): slope 0.5, mean 2, residuals -0.5, 1, -0.5; 1.5 by one degree of freedom."""
    forecast = seen(MemoryForecast(last=10), 1.0, 3.0, 2.0)
    assert forecast.peak == pytest.approx(2 + 0.5 * (10 - 2) + Z * math.sqrt(1.5))


def test_convergence() -> None:
    """Predictions are there from the third iteration on; three steady ones follow at the sixth.

    With 3.0 in place of 2.5 the prediction of 10.5 moves by far more than 5 %, so the count begins again.
    """
    assert seen(MemoryForecast(last=20), 1.0, 1.5, 2.0, 2.5, 3.0, 3.5).converged
    assert not seen(MemoryForecast(last=20), 1.0, 1.5, 2.0, 3.0, 3.0, 3.5).converged


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0.1, 40.0), min_size=3, max_size=30), st.floats(0.01, 3.0))
def test_the_fit_is_that_of_least_squares(values: list[float], step: float) -> None:
    fit = LinearFit()
    xs = [step * number for number in range(len(values))]
    for x, y in zip(xs, values, strict=True):
        fit.add(x, y)
    slope, offset = np.polyfit(xs, values, 1)
    residuals = np.array(values) - (slope * np.array(xs) + offset)
    assert fit.at(xs[-1] * 2) == pytest.approx(slope * xs[-1] * 2 + offset, abs=1e-6)
    assert fit.deviation == pytest.approx(math.sqrt((residuals**2).sum() / (len(xs) - 2)), abs=1e-6)
