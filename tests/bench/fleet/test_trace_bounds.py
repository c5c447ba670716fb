"""The study of the bounds of traces, and its search for the best schedules of PCIe-bound jobs."""

from __future__ import annotations

import math

import pytest

from bench.fleet import trace_bounds as study
from mig_opt import Job, OperationCosts, Trace, generate_trace, get_gpu, simulate
from mig_opt.fleet.bounds import trace_bounds
from mig_opt.models.fleet.optimum import trace_optimum

A100 = get_gpu("A100")


def bound_job(name: str, arrival: float, seconds: float, factor: float) -> Job:
    return Job(name, arrival, {1: seconds}, "1g.5gb", pcie_gbps=30.0 * factor, sensitivity=1.0)


def test_two_jobs_that_ask_for_the_whole_link() -> None:
    """Side by side both end at 20 s; one after the other the first one at 10 s."""
    jobs = (bound_job("a", 0.0, 10.0, 1.0), bound_job("b", 0.0, 10.0, 1.0))
    trace = Trace(jobs, A100, 1, OperationCosts.zero(A100), 30.0)
    assert study.least_last_end(trace) == pytest.approx(20)
    assert study.least_sum_of_ends(trace) == pytest.approx(30)


def test_a_job_waits_for_a_short_one() -> None:
    """a alone from 0 s to 10 s; or b, which comes at 4 s, slows it down from then on."""
    jobs = (bound_job("a", 0.0, 10.0, 1.0), bound_job("b", 4.0, 1.0, 1.0))
    trace = Trace(jobs, A100, 1, OperationCosts.zero(A100), 30.0)
    # Together b ends at 6 s, with 5 s of a left: 11 s.
    assert study.least_sum_of_ends(trace) == pytest.approx(17)
    assert study.least_last_end(trace) == pytest.approx(11)


@pytest.mark.parametrize("seed", range(3))
def test_without_contention_it_finds_what_constraint_programming_finds(seed: int) -> None:
    trace = generate_trace("pcie-4", seed=seed, gpus=1, jobs=4, load=3.0, pcie_share=0.0)
    assert trace_optimum(trace, workers=1).value == pytest.approx(study.least_last_end(trace), abs=1e-6)
    assert trace_optimum(trace, "completion", workers=1).value == pytest.approx(study.least_sum_of_ends(trace))


@pytest.mark.parametrize("seed", range(4))
def test_bound_optimum_and_schedulers_are_in_order(seed: int) -> None:
    trace = generate_trace("pcie-4", seed=seed, gpus=1, jobs=4, load=3.0, pcie_share=1.0)
    bounds = trace_bounds(trace)
    last, ends = study.least_last_end(trace), study.least_sum_of_ends(trace)
    assert bounds.makespan[0].value <= last
    assert bounds.completion[0].value <= ends
    assert study.plain_bounds(trace)[0] <= bounds.makespan[0].value * (1 + 1e-8)
    for policy in ("first-fit", "pcie-aware", "planner"):  # none of them migrates
        done = simulate(trace, policy)
        assert done.metrics.makespan >= last - 1e-6
        assert math.fsum(done.log.finished) >= ends - 1e-6


def test_it_refuses_what_it_is_not_for() -> None:
    trace = generate_trace("long-25", gpus=1, jobs=3)
    with pytest.raises(ValueError, match="one profile on one GPU"):
        study.least_last_end(trace)
    with pytest.raises(ValueError, match="no more jobs than instances"):
        study.least_last_end(generate_trace("pcie-4", gpus=1, jobs=8))
