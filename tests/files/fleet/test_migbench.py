"""Traces of MIGBench and its published results."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from documents import complaints

from mig_opt import Job, simulate
from mig_opt.files.fleet.migbench import import_migbench, read_published
from mig_opt.fleet.bounds import trace_bounds

LINES = (
    {"jobID": "j1", "format": "resource-bound-v2", "arrivalMS": 0, "computeCoreMS": 2_800_000, "memoryMB": 10240},
    {"jobID": "j2", "format": "resource-bound-v2", "arrivalMS": 0, "computeCoreMS": 840_000, "memoryMB": 10241},
    {"jobID": "j3", "format": "resource-bound-v2", "arrivalMS": 1500, "computeCoreMS": 2_100_000, "memoryMB": 40960},
    {"jobID": "j4", "format": "resource-bound-v2", "arrivalMS": 2500, "computeCoreMS": 500_000, "memoryMB": 81920},
    {
        "jobID": "j5",
        "arrivalMS": 3000,
        "computeCoreMS": 42_000,
        "memoryMB": 1,
        "minComputePercent": 29,
        "nodeSelector": {"zone": "a"},
    },
    {"jobID": "j6", "format": "profile-bound-v1", "arrivalMS": 4000, "durationMS": 7000, "profile": "2g.20gb"},
)
SUMMARY = """backend,jobs,completed,makespan_ms,mean_wait_ms,p95_wait_ms,high_load_valid
hami,6,6,60000,1500.5,9000,true
dra,6,6,59000,1400,8000.25,true
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "small-trace.jsonl"
    path.write_text("\n".join(map(json.dumps, LINES)) + "\n\n")
    return path


def test_smallest_profiles(path: Path) -> None:
    trace = import_migbench(path)
    assert trace.jobs == (
        Job("j1", 0.0, {1: 200.0}, "1g.10gb"),
        Job("j2", 0.0, {2: 30.0}, "2g.20gb"),  # one MB more than 1g.10gb has
        Job("j3", 1.5, {3: 50.0}, "3g.40gb"),
        Job("j4", 2.5, {7: 5.0}, "7g.80gb"),
        Job("j5", 3.0, {3: 1.0}, "3g.40gb"),  # 2g has 28 %
        Job("j6", 4.0, {2: 7.0}, "2g.20gb"),
    )
    assert (trace.gpu.name, trace.gpus, trace.name) == ("H100-80GB", 8, "small-trace")


def test_a_job_takes_its_work_divided_by_the_percent(path: Path) -> None:
    """In all sizes the work is the same: seconds x percent."""
    for job in import_migbench(path, sizes="any").jobs[:4]:
        work = [seconds * {1: 14, 2: 28, 3: 42, 7: 100}[size] for size, seconds in job.times.items()]
        assert work == pytest.approx([work[0]] * len(work))


def test_published(tmp_path: Path) -> None:
    path = tmp_path / "summary.csv"
    path.write_text(SUMMARY)
    one, two = read_published(path)
    assert (one.scheduler, one.jobs, one.makespan, one.mean_wait, one.p95_wait) == ("hami", 6, 60.0, 1.5005, 9.0)
    assert (two.scheduler, two.p95_wait) == ("dra", 8.00025)
    path.write_text(SUMMARY.replace("1400", "x").replace("60000", "-1"))
    assert [complaint.split(":")[0] for complaint in complaints(lambda: read_published(path))] == [
        "line 2, makespan_ms",
        "line 3, mean_wait_ms",
    ]
    path.write_text(SUMMARY.replace("p95_wait_ms", "p99"))
    assert "has no column p95_wait_ms" in " ".join(complaints(lambda: read_published(path)))


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
