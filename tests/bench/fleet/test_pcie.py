"""The study of PCIe-aware scheduling, on a cut so small that its figures mean nothing, and its parts."""

import math

import pytest

from bench.fleet import pcie as online_pcie
from mig_opt import Job, Trace, generate_trace, get_gpu, simulate


def test_figures_of_a_trace() -> None:
    """a and b are slower by 2 beside each other, from their begin to their ends; c is not PCIe-bound."""
    jobs = [Job(name, 0.0, {1: 30.0}, "1g.5gb", pcie_gbps=30.0, sensitivity=1.0) for name in "ab"]
    jobs.append(Job("c", 0.0, {1: 10.0}, "1g.5gb"))
    trace = Trace(tuple(jobs), get_gpu("A100"), pcie_limit=30.0)
    found = online_pcie.run(trace, "first-fit", {})
    log = simulate(trace, "first-fit").log
    assert found.completion == pytest.approx(math.fsum(log.finished) / 3)
    assert (found.wait, found.short) == (0, 0)
    assert online_pcie.run(trace.replace(gpus=2), "pcie-aware", {}).short == 1
    better = found._replace(completion=found.completion * 2)
    assert online_pcie.lower([found], [better]) == [pytest.approx(50)]


def test_gpus_with_more_instances() -> None:
    gpu = online_pcie.hypothetical(14)
    trace = generate_trace("pcie-4", gpu=gpu, jobs=60, load=1000.0, gpus=2)
    for policy in ("pcie-aware", "pcie-unaware", "first-fit"):
        done = simulate(trace, policy)
        assert not done.unfinished
        assert {run.placement.start for run in done.log.runs()} == set(range(14))
    assert online_pcie.hypothetical(7) is get_gpu("A100")
