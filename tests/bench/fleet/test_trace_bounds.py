"""The study of the bounds of traces, and its search for the best schedules of PCIe-bound jobs."""

import math

import pytest

from bench.fleet import trace_bounds as study
from mig_opt import Job, OperationCosts, Trace, generate_trace, get_gpu, simulate
from mig_opt.fleet.bounds import trace_bounds
from mig_opt.models.fleet.optimum import trace_optimum

A100 = get_gpu("A100")


@pytest.mark.parametrize(
    ("arrival", "seconds", "last", "ends"),
    [
        (0.0, 10.0, 20, 30),  # side by side both end at 20 s; one after the other the first one at 10 s
        (4.0, 1.0, 11, 17),  # it slows the other down from 4 s on: it ends at 6 s, with 5 s of the other left
    ],
)
def test_two_jobs_that_ask_for_the_whole_link(arrival, seconds, last, ends):
    jobs = tuple(
        Job(name, at, {1: taken}, "1g.5gb", pcie_gbps=30.0, sensitivity=1.0)
        for name, at, taken in (("a", 0.0, 10.0), ("b", arrival, seconds))
    )
    trace = Trace(jobs, A100, 1, OperationCosts.zero(A100), 30.0)
    assert study.least_end(trace) == pytest.approx(last)
    assert study.least_end(trace, total=True) == pytest.approx(ends)


@pytest.mark.parametrize("seed", range(3))
def test_without_contention_it_finds_what_constraint_programming_finds(seed):
    trace = generate_trace("pcie-4", seed=seed, gpus=1, jobs=4, load=3.0, pcie_share=0.0)
    assert trace_optimum(trace, workers=1).value == pytest.approx(study.least_end(trace), abs=1e-6)
    assert trace_optimum(trace, "completion", workers=1).value == pytest.approx(study.least_end(trace, total=True))


@pytest.mark.parametrize("seed", range(4))
def test_bound_optimum_and_schedulers_are_in_order(seed):
    trace = generate_trace("pcie-4", seed=seed, gpus=1, jobs=4, load=3.0, pcie_share=1.0)
    bounds = trace_bounds(trace)
    last, ends = study.least_end(trace), study.least_end(trace, total=True)
    assert bounds.makespan[0].value <= last
    assert bounds.completion[0].value <= ends
    assert study.plain_bounds(trace)[0] <= bounds.makespan[0].value * (1 + 1e-8)
    for policy in ("first-fit", "pcie-aware", "planner"):  # none of them migrates
        done = simulate(trace, policy)
        assert done.metrics.makespan >= last - 1e-6
        assert math.fsum(done.log.finished) >= ends - 1e-6


def test_it_refuses_what_it_is_not_for():
    trace = generate_trace("long-25", gpus=1, jobs=3)
    with pytest.raises(ValueError, match="one profile on one GPU"):
        study.least_end(trace)
    with pytest.raises(ValueError, match="no more jobs than instances"):
        study.least_end(generate_trace("pcie-4", gpus=1, jobs=8))
