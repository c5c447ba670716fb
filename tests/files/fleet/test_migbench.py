"""Traces of MIGBench and its published results."""

import os

import pytest

from mig_opt import simulate
from mig_opt.files.fleet.migbench import import_migbench
from mig_opt.fleet.bounds import trace_bounds


@pytest.mark.skipif("MIGBENCH_TRACE" not in os.environ, reason="needs MIGBENCH_TRACE, the path of the published trace")
def test_the_published_trace() -> None:
    """First fit with backfilling on the real geometry, and the bounds: figures that the pages name."""
    path = os.environ["MIGBENCH_TRACE"]
    fixed, free = import_migbench(path), import_migbench(path, sizes="any")
    assert len(fixed.jobs) == 500
    assert trace_bounds(fixed).makespan[0].value == pytest.approx(23562.77, abs=0.01)
    assert trace_bounds(free).makespan[0].value == pytest.approx(17222.13, abs=0.01)
    metrics = simulate(fixed, "first-fit", backfill=True, patience=None).metrics
    assert (round(metrics.makespan), round(metrics.wait.mean)) == (24255, 2766)
