"""Deployments on GPUs without MIG: whole GPUs for Kubernetes and mig-parted, and no script about instances."""

from __future__ import annotations

import pytest

from mig_opt import Deployment, InputError, Segment, plan_change
from mig_opt.operations.rollout.changes import change_script
from mig_opt.operations.rollout.kubernetes import kubernetes_resources, mig_parted_config
from mig_opt.operations.rollout.nvidia_smi import deployment_script

WHOLE = Segment("chat", 0, "4g.24gb", 0, batch=8, processes=1, throughput=42.0, latency=0.01)
PART = Segment("search", 1, "1g.6gb", 0, batch=8, processes=1, throughput=10.0, latency=0.01)
MIXED = Deployment(("A30-24GB without MIG", "A30-24GB"), (WHOLE, PART))


def test_kubernetes_asks_for_a_whole_gpu() -> None:
    found = kubernetes_resources(MIXED)
    assert found.total == {"nvidia.com/gpu": 1, "nvidia.com/mig-1g.6gb": 1}
    assert [request.resource for request in found.requests] == ["nvidia.com/gpu", "nvidia.com/mig-1g.6gb"]


def test_mig_parted_switches_mig_off_there() -> None:
    assert str(mig_parted_config(MIXED)).splitlines()[-9:] == [
        "mig-configs:",
        '  "mig-opt-a30-24gb":',
        "    - devices: [0]",
        "      mig-enabled: false",
        "      mig-devices: {}",
        "    - devices: [1]",
        "      mig-enabled: true",
        "      mig-devices:",
        '        "1g.6gb": 1',
    ]


def test_scripts_refuse_them() -> None:
    refused = r"gpus\[0\]: has MIG off \(A30-24GB without MIG\), .*; export mig-parted or kubernetes"
    with pytest.raises(InputError, match=refused):
        deployment_script(MIXED)
    plan = plan_change(Deployment(MIXED.gpus, ()), MIXED).plan
    with pytest.raises(InputError, match=refused):
        change_script(plan)
    assert "create_missing 1" in deployment_script(Deployment(MIXED.gpus, (PART,)))
