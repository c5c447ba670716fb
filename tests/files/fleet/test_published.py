"""Lists of pods in the layout of Alibaba's openb traces, and traces of MIGBench with its published results."""

import os
from collections import Counter

import pytest
from documents import complaints
from freeze import HERE
from places import PUBLISHED

from mig_opt import simulate
from mig_opt.files.fleet.migbench import import_migbench
from mig_opt.files.fleet.openb import import_trace
from mig_opt.fleet.bounds import trace_bounds

DATA = PUBLISHED / "alibaba_openb"


def test_pods_that_are_no_jobs_are_counted(tmp_path):
    pods = (HERE / "inputs" / "pods.csv").read_text(encoding="utf-8")
    (tmp_path / "pods.csv").write_text(f"{pods}p7,6000,12288,1e9,300,,BE,Succeeded,300,300,300\n")
    assert "must be a whole number of at most 1000000" in complaints(import_trace, tmp_path / "pods.csv")[0]
    (tmp_path / "pods.csv").write_text(f"{pods}p7,6000,12288,1,300,,BE,Succeeded,300,300,300\n")
    assert complaints(import_trace, tmp_path / "pods.csv", first_s=1000) == [
        "no pod becomes a job: 1 ask for no GPU, 1 were never scheduled, 1 took no time, 5 outside of the window"
    ]


@pytest.mark.skipif(not DATA.is_dir(), reason="needs the published data: MIG_OPT_PUBLISHED")
def test_the_published_list():
    found = import_trace(DATA / "openb_pod_list_default.csv", nodes=DATA / "openb_node_list_gpu_node.csv")
    assert (found.pods, found.trace.gpus) == (8152, 6212)
    assert found.left_out == {"ask for no GPU": 1088, "were never scheduled": 861}
    assert found.several == 442
    profiles = Counter(job.profile for job in found.trace.jobs)
    # 470 to 550 thousandths are above 3/7 and at most 4/7.
    assert profiles == {"7g.40gb": 5295, "4g.20gb": 675, "3g.20gb": 347, "2g.10gb": 228, "1g.5gb": 26}


@pytest.mark.skipif("MIGBENCH_TRACE" not in os.environ, reason="needs MIGBENCH_TRACE, the path of the published trace")
def test_the_published_trace_of_migbench():
    """First fit with backfilling on the real geometry, and the bounds: figures that the pages name."""
    path = os.environ["MIGBENCH_TRACE"]
    fixed, free = import_migbench(path), import_migbench(path, sizes="any")
    assert len(fixed.jobs) == 500
    assert trace_bounds(fixed).makespan[0].value == pytest.approx(23562.77, abs=0.01)
    assert trace_bounds(free).makespan[0].value == pytest.approx(17222.13, abs=0.01)
    metrics = simulate(fixed, "first-fit", backfill=True, patience=None).metrics
    assert (round(metrics.makespan), round(metrics.wait.mean)) == (24255, 2766)


def test_a_profile_that_is_no_name(tmp_path):
    (tmp_path / "jobs.jsonl").write_text('{"jobID": "a", "arrivalMS": 0, "profile": [1], "durationMS": 5}')
    (found,) = complaints(import_migbench, tmp_path / "jobs.jsonl")
    assert found.startswith("line 1, profile: H100-80GB has no profile a list; ")
