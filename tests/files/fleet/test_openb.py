"""Lists of pods in the layout of Alibaba's openb traces."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from documents import complaints
from places import SHARED

from mig_opt.files.fleet.openb import import_trace
from mig_opt.fleet.job import Job

HEADER = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
PODS = f"""{HEADER}
p0,12000,16384,1,1000,,LS,Running,100,500,110
p1,6000,12288,1,142,,LS,Running,120,160,121
p2,6000,12288,1,143,,LS,Running,150,250,150
p3,6000,12288,0,0,,LS,Running,151,152,151
p4,6000,12288,1,550,,BE,Pending,160,190,
p5,6000,12288,1,550,,BE,Failed,170,190,180
p6,6000,12288,2,1000,,BE,Succeeded,200,290,210
p7,6000,12288,1,300,,BE,Succeeded,300,300,300
"""
DATA = SHARED / "alibaba_openb"


@pytest.fixture
def pods(tmp_path: Path) -> Path:
    path = tmp_path / "pods.csv"
    path.write_text(PODS)
    return path


def test_a_small_list(pods: Path) -> None:
    found = import_trace(pods, gpus=3)
    assert found.trace.jobs == (
        Job("p0", 0.0, {7: 390.0}, "7g.40gb"),
        Job("p1", 20.0, {1: 39.0}, "1g.5gb"),  # 0.142 of a GPU is below 1/7, 0.143 is above
        Job("p2", 50.0, {2: 100.0}, "2g.10gb"),
        Job("p5", 70.0, {4: 10.0}, "4g.20gb"),
        Job("p6/0", 100.0, {7: 80.0}, "7g.40gb"),
        Job("p6/1", 100.0, {7: 80.0}, "7g.40gb"),
    )
    assert (found.pods, found.several, found.trace.gpus, found.trace.name) == (8, 2, 3, "pods")
    assert found.left_out == {"ask for no GPU": 1, "were never scheduled": 1, "took no time": 1}


def test_a_window(pods: Path) -> None:
    found = import_trace(pods, first_s=120, last_s=170)
    assert [(job.name, job.arrival) for job in found.trace.jobs] == [("p1", 0.0), ("p2", 30.0), ("p5", 50.0)]
    assert found.left_out["outside of the window"] == 2
    assert found.pods == 8
    assert complaints(import_trace, pods, first_s=1000) == [
        "no pod becomes a job: 1 ask for no GPU, 1 were never scheduled, 1 took no time, 5 outside of the window"
    ]


def test_the_nodes_say_how_many_gpus(pods: Path, tmp_path: Path) -> None:
    nodes = tmp_path / "nodes.csv"
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\nn1,64000,262144,8,T4\n")
    assert import_trace(pods, nodes=nodes).trace.gpus == 10
    assert import_trace(pods, nodes=nodes, gpus=4).trace.gpus == 4
    nodes.write_text("sn,gpu\nn0,x\n")
    assert complaints(import_trace, pods, nodes=nodes) == ['line 2, gpu: must be a finite number >= 0, is "x"']


@pytest.mark.skipif(not DATA.is_dir(), reason="the published data are not there")
def test_the_published_list() -> None:
    found = import_trace(DATA / "openb_pod_list_default.csv", nodes=DATA / "openb_node_list_gpu_node.csv")
    assert (found.pods, found.trace.gpus) == (8152, 6212)
    assert found.left_out == {"ask for no GPU": 1088, "were never scheduled": 861}
    assert found.several == 442
    profiles = Counter(job.profile for job in found.trace.jobs)
    # 470 to 550 thousandths are above 3/7 and at most 4/7.
    assert profiles == {"7g.40gb": 5295, "4g.20gb": 675, "3g.20gb": 347, "2g.10gb": 228, "1g.5gb": 26}
