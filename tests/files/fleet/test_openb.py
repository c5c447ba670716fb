"""Lists of pods in the layout of Alibaba's openb traces."""

from collections import Counter
from pathlib import Path

import pytest
from documents import complaints
from freeze import HERE
from places import PUBLISHED

from mig_opt.files.fleet.openb import import_trace

DATA = PUBLISHED / "alibaba_openb"


def test_pods_that_are_no_jobs_are_counted(tmp_path: Path) -> None:
    pods = (HERE / "inputs" / "pods.csv").read_text(encoding="utf-8")
    (tmp_path / "pods.csv").write_text(f"{pods}p7,6000,12288,1,300,,BE,Succeeded,300,300,300\n")
    assert complaints(import_trace, tmp_path / "pods.csv", first_s=1000) == [
        "no pod becomes a job: 1 ask for no GPU, 1 were never scheduled, 1 took no time, 5 outside of the window"
    ]


@pytest.mark.skipif(not DATA.is_dir(), reason="needs the published data: MIG_OPT_PUBLISHED")
def test_the_published_list() -> None:
    found = import_trace(DATA / "openb_pod_list_default.csv", nodes=DATA / "openb_node_list_gpu_node.csv")
    assert (found.pods, found.trace.gpus) == (8152, 6212)
    assert found.left_out == {"ask for no GPU": 1088, "were never scheduled": 861}
    assert found.several == 442
    profiles = Counter(job.profile for job in found.trace.jobs)
    # 470 to 550 thousandths are above 3/7 and at most 4/7.
    assert profiles == {"7g.40gb": 5295, "4g.20gb": 675, "3g.20gb": 347, "2g.10gb": 228, "1g.5gb": 26}
