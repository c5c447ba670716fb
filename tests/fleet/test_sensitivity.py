"""The sensitivity to PCIe from profiled runs. The link has 30 GB/s where not said otherwise."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from online_worlds import NO_COSTS, job, trace

from mig_opt import InputError, simulate
from mig_opt.errors import problems_of
from mig_opt.instances.fleet.poisson import TABLE_2
from mig_opt.simulation import ProfiledRun, SensitivityFit, fit_sensitivity

LIMIT = 30.0


def fit(demand: float, *seconds: float) -> SensitivityFit:
    """Runs with 1, 2, ... competitors."""
    runs = [ProfiledRun(value, count) for count, value in enumerate(seconds, 1)]
    return fit_sensitivity(runs, demand, pcie_limit=LIMIT)


def test_runs_that_do_not_compete_yet_do_not_count() -> None:
    """A line through all points would have a slope far below 2."""
    assert fit(3.0, 10, 10, 10, 10, 10, 12, 14).sensitivity == pytest.approx(2.0)


def test_bandwidth_in_place_of_competitors() -> None:
    """With 12 GB/s for 18 it is slower by 1.5 x its sensitivity."""
    found = fit_sensitivity([ProfiledRun(15.0, bandwidth=12.0), ProfiledRun(10.0, bandwidth=30.0)], 18.0, alone=10.0)
    assert found.sensitivity == pytest.approx(1.0)


def test_several_runs_alone_are_averaged() -> None:
    runs = [ProfiledRun(9.0, 1), ProfiledRun(11.0, 1), ProfiledRun(20.0, 2)]
    assert fit_sensitivity(runs, 30.0, pcie_limit=LIMIT).slowdown(30.0, 2, LIMIT) == pytest.approx(2.0, abs=0.02)


@pytest.mark.parametrize("kind", ["bloom560m", "bloom7b1"])
def test_profiles_from_the_simulator(kind: str) -> None:
    """One to seven jobs of a kind on one GPU, as the paper profiles: what comes out is what went in."""
    demand, sensitivity = TABLE_2[kind]
    runs = []
    for count in range(1, 8):
        jobs = [
            job(f"j{number}", 0, "1g.5gb", 50, pcie_gbps=demand, sensitivity=sensitivity) for number in range(count)
        ]
        done = simulate(trace(*jobs, costs=NO_COSTS, pcie_limit=30.08), "first-fit")
        runs.append(ProfiledRun(done.metrics.execution.mean, count))
    found = fit_sensitivity(runs, demand)
    assert found.sensitivity == pytest.approx(sensitivity)
    assert found.r_squared == pytest.approx(1)


@given(st.floats(1, 60), st.floats(0.1, 3), st.lists(st.floats(0.9, 1.1), min_size=7, max_size=7))
def test_no_other_sensitivity_is_nearer(demand: float, truth: float, noise: list[float]) -> None:
    factor = truth * demand / LIMIT
    slowdowns = [max(1.0, factor * count) * noise[count - 1] for count in range(1, 8)]
    assume(max(slowdowns) > 1.01)
    runs = [ProfiledRun(10 * slower, count) for count, slower in enumerate(slowdowns, 1)]
    found = fit_sensitivity(runs, demand, alone=10.0, pcie_limit=LIMIT)

    def error(sensitivity: float) -> float:
        made = (max(1.0, sensitivity * demand * count / LIMIT) for count in range(1, 8))
        return math.fsum((one - two) ** 2 for one, two in zip(made, slowdowns, strict=True))

    assert found.error**2 * 7 == pytest.approx(error(found.sensitivity))
    assert all(error(found.sensitivity) <= error(found.sensitivity * step / 50) + 1e-9 for step in range(1, 200))
    assert found.r_squared <= 1


def test_all_that_is_wrong() -> None:
    for run, paths in (
        (lambda: ProfiledRun(0.0), ["seconds", "competitors"]),
        (lambda: ProfiledRun(1.0, 2, 3.0), ["competitors"]),
        (lambda: ProfiledRun(1.0, 0), ["competitors", "competitors"]),
        (lambda: ProfiledRun(1.0, bandwidth=0.0), ["bandwidth", "competitors"]),
        (lambda: fit_sensitivity([ProfiledRun(1.0, 2)], 0.0, pcie_limit=-1.0), ["demand", "pcie_limit", "alone"]),
    ):
        assert [problem.path for problem in problems_of(run)] == paths
    with pytest.raises(InputError, match="no run is slowed down"):
        fit(5.0, 10, 10)
