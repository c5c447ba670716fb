"""The predictor of memory on series that can be computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mig_opt import InputError
from mig_opt.heuristics.fleet.memory_forecast import LinearFit, MemoryForecast

Z = 2.5758293035489004
"""99 % of a normal distribution are within so many standard deviations."""


def seen(forecast: MemoryForecast, *requested: float) -> MemoryForecast:
    for iteration, gb in enumerate(requested, 1):
        forecast.observe(iteration, gb)
    return forecast


def test_a_noisy_line() -> None:
    """Through (1, 1), (2, 3), (3, 2): slope 0.5, mean 2, residuals -0.5, 1, -0.5; 1.5 by one degree of freedom."""
    forecast = seen(MemoryForecast(last=10), 1.0, 3.0, 2.0)
    assert forecast.peak == pytest.approx(2 + 0.5 * (10 - 2) + Z * math.sqrt(1.5))
    assert seen(MemoryForecast(last=10, confidence=0.5), 1.0, 3.0, 2.0).peak == pytest.approx(
        6 + 0.6744897501960817 * math.sqrt(1.5)
    )


def test_the_interval_of_the_reuse_makes_the_peak_higher() -> None:
    """1 / reuse is 1, 3, 2 for a constant request of 60 GB: at the last iteration 2 + 0.5 x 28 less its interval."""
    forecast = MemoryForecast(last=30)
    for iteration, inverse in ((1, 1.5), (2, 3.5), (3, 2.5)):
        forecast.observe(iteration, 60.0, 1 / inverse)
    wanted = 60 / (2.5 + 0.5 * 28 - Z * math.sqrt(1.5))
    assert wanted < 40 == forecast.peak, "60 / 1.5 GB have been needed already"
    for iteration in (4, 5, 6):
        forecast.observe(iteration, 60.0 * iteration, 1 / 3)
    assert forecast.peak > 120


def test_no_more_can_be_needed_than_is_requested() -> None:
    """1 / reuse falls below 1 if its line is continued; it counts as 1."""
    forecast = MemoryForecast(last=10)
    for iteration, inverse in ((1, 2.0), (2, 1.5), (3, 1.0)):
        forecast.observe(iteration, 8.0, 1 / inverse)
    assert forecast.peak == pytest.approx(8)


def test_context_and_workspaces_are_not_reused() -> None:
    """0.5 GB besides 10, 20, 30 GB of which 1/1, 1/2, 1/3 is needed. In the series they would seem to be reused."""
    apart, within = MemoryForecast(last=10, fixed_gb=0.5), MemoryForecast(last=10)
    for iteration in (1, 2, 3):
        apart.observe(iteration, 10.0 * iteration, 1 / iteration)
        within.observe(iteration, 10.0 * iteration + 0.5, 1 / iteration)
    assert apart.peak == pytest.approx(10.5)
    assert within.peak == pytest.approx(10.5), "what the first iteration needed"
    for forecast, extra in ((apart, 0.0), (within, 0.5)):
        for iteration in (4, 5, 6):
            forecast.observe(iteration, 20.0 * iteration + extra, 1 / iteration)
    assert apart.peak - within.peak == pytest.approx(0.5 - 0.5 / 10, abs=1e-6)
    with pytest.raises(InputError, match="fixed_gb: must be a finite number of GB >= 0"):
        MemoryForecast(fixed_gb=-1)


def test_two_points_predict_nothing() -> None:
    forecast = seen(MemoryForecast(last=10, steady=1), 1.0, 2.0)
    assert (forecast.peak, forecast.converged) == (2, False)


def test_convergence() -> None:
    """Predictions are there from the third iteration on; three steady ones follow at the sixth."""
    line = [1.0 + 0.5 * number for number in range(6)]
    assert not seen(MemoryForecast(last=20), *line[:5]).converged
    assert seen(MemoryForecast(last=20), *line).converged
    assert seen(MemoryForecast(last=20, steady=1), *line[:4]).converged
    # The prediction was 10.5; 3.0 in place of 2.5 moves it by far more than 5 %, so the count begins again.
    jump = MemoryForecast(last=20)
    for iteration, gb in enumerate([1.0, 1.5, 2.0, 3.0, 3.0, 3.5], 1):
        jump.observe(iteration, gb)
        assert not jump.converged


def test_wrong_arguments_are_all_named() -> None:
    with pytest.raises(InputError) as caught:
        MemoryForecast(last=0, confidence=-1, tolerance=-0.1, steady=0)
    assert [problem.path for problem in caught.value.problems] == ["last", "confidence", "tolerance", "steady"]
    with pytest.raises(InputError, match="confidence: must be a number above 0 and below 1, is 1"):
        MemoryForecast(confidence=1)


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


@pytest.mark.parametrize("reuse", [0.0, -0.5, 1.5, math.nan])
def test_nothing_or_more_than_all_cannot_be_needed(reuse: float) -> None:
    with pytest.raises(InputError, match="reuse: must be a share above 0 and up to 1"):
        MemoryForecast().observe(1, 2.0, reuse)
