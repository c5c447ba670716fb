"""Configurations of mig-parted, resources of Kubernetes, and what counts of profiles leave open."""

import dataclasses

import yaml
from documents import refused
from scripts import segment

from mig_opt import Deployment, Device, Segment, catalogue, get_gpu, plan_change
from mig_opt.gpu.model import KNOWN
from mig_opt.operations.rollout.changes import change_script
from mig_opt.operations.rollout.kubernetes import kubernetes_resources, mig_parted_config, resource_name
from mig_opt.operations.rollout.nvidia_smi import deployment_script


def on_gpu(gpu: int, *placements: str) -> list[Segment]:
    return [segment("a", gpu, profile, int(start)) for profile, _, start in (p.partition("@") for p in placements)]


def test_gpus_that_counts_leave_open_are_named():
    deployment = Deployment(
        ("A100-40GB", "A100-40GB", "A30", "A100-40GB"),
        (
            *on_gpu(0, "3g.20gb@4", "2g.10gb@2", "2g.10gb@0"),
            *on_gpu(1, "3g.20gb@0", "2g.10gb@4"),
            *on_gpu(3, "3g.20gb@4", "2g.10gb@2", "2g.10gb@0"),
        ),
    )
    config = mig_parted_config(deployment)
    assert config.remarks[1:] == (
        "GPU 0, 3 (1 x 3g.20gb + 2 x 2g.10gb): creation may get stuck, since some places for one instance leave none "
        "for another.",
        "GPU 1 (1 x 3g.20gb + 1 x 2g.10gb): 3 layouts have these profiles, the deployment has 3g.20gb@0 + 2g.10gb@4.",
    )
    comments = [line for line in str(config).splitlines() if line.startswith("#")]
    assert comments[1:] == [f"# {remark}" for remark in config.remarks]
    assert list(config.configs) == ["mig-opt-mixed"]
    known = dataclasses.replace(deployment, devices=(Device(2, "n1"),))
    refused(mig_parted_config, known, match="must name 4, one for each GPU, and only those of the first 1 are known")
    known = dataclasses.replace(
        deployment, devices=tuple(Device(index, "n1", f"GPU-{index}") for index in (2, 3, 5, 7))
    )
    config = mig_parted_config(known)
    assert [entry["devices"] for entry in config.configs["mig-opt-mixed"]] == [[2, 7], [3], [5]]
    assert [remark.partition(" (")[0] for remark in config.remarks[1:]] == ["GPU 2, 7 of n1", "GPU 3 of n1"]
    assert list(kubernetes_resources(known).hosts) == ["n1"]
    assert mig_parted_config(known, devices=list("0123")).remarks == mig_parted_config(deployment).remarks


def test_machines_share_a_configuration_or_have_their_own(monkeypatch):
    monkeypatch.setitem(KNOWN, "a30-24gb 2", dataclasses.replace(get_gpu("A100"), name="A30-24GB 2"))
    deployment = Deployment(
        ("A30",) * 6 + ("A30-24GB 2",),
        tuple(entry for gpu in (0, 2, 4) for entry in on_gpu(gpu, "4g.24gb@0")) + tuple(on_gpu(6, "7g.40gb@0")),
    )
    devices = ["n1/0", "n1/1", "n2/0", "n2/1", "n3/1", "n3/0", "big/3"]
    config = mig_parted_config(deployment, devices=devices, name="serving")
    assert config.hosts == {
        "n1": "serving-a30-24gb-1",
        "n2": "serving-a30-24gb-1",
        "n3": "serving-a30-24gb--2",
        "big": "serving-a30-24gb-2",
    }
    document = yaml.safe_load(str(config))["mig-configs"]
    assert document["serving-a30-24gb--2"][0] == {"devices": [1], "mig-enabled": True, "mig-devices": {"4g.24gb": 1}}
    assert document["serving-a30-24gb-2"][0]["devices"] == [3]
    assert "# n3: serving-a30-24gb--2" in str(config)


def test_names_and_devices_that_mig_parted_cannot_have_are_refused():
    two = Deployment(("A30", "A30"), ())
    assert refused(mig_parted_config, two, devices=["GPU-5fa1", "0"], name="x\ny: z") == ["devices[0]", "name"]


def test_every_profile_of_the_catalogue_is_a_label():
    for profile in (profile for gpu in catalogue() for profile in gpu.profiles):
        label = resource_name(profile).removeprefix("nvidia.com/")
        assert len(label) <= 63
        assert all(character.isalnum() or character in ".-" for character in label)


def test_resources_of_machines_and_services():
    deployment = Deployment(
        ("A100-80GB", "A100-80GB", "H100"),
        (
            segment("chat\n", 0, "1g.10gb", 0),
            segment("chat\n", 1, "1g.10gb", 3),
            segment("chat\n", 1, "1g.10gb", 2, batch=16),
            segment("übersetzer", 1, "3g.40gb", 4),
            segment("chat\n", 2, "1g.10gb", 0),
            segment("übersetzer", 2, "1g.10gb+me", 1),
        ),
    )
    found = kubernetes_resources(deployment, devices=["n1/0", "n1/1", "n2/0"])
    small, large, media = (f"nvidia.com/mig-{name}" for name in ("1g.10gb", "3g.40gb", "1g.10gb.me"))
    assert found.hosts == {"n1": {large: 1, small: 3}, "n2": {small: 1, media: 1}}
    assert [(r["service"], r["gpu"], *r["resources"]["limits"], r["replicas"], r["batch"]) for r in found.services] == [
        ("chat\n", "A100-80GB", small, 2, 8),
        ("chat\n", "A100-80GB", small, 1, 16),
        ("chat\n", "H100-80GB", small, 1, 8),
        ("übersetzer", "A100-80GB", large, 1, 8),
        ("übersetzer", "H100-80GB", media, 1, 8),
    ]
    assert [remark for remark in found.remarks if "several kinds" in remark] == [
        f"{small} is on GPUs of several kinds (A100-80GB, H100-80GB); choose the kind by a node selector."
    ]
    assert '"service": "übersetzer"' in str(found)


def test_on_gpus_without_mig_kubernetes_has_whole_ones_and_scripts_are_refused():
    part = segment("search", 1, "1g.6gb", 0)
    mixed = Deployment(("A30-24GB without MIG", "A30-24GB"), (segment("chat", 0, "4g.24gb", 0), part))
    found = kubernetes_resources(mixed)
    assert found.hosts == {"": {"nvidia.com/gpu": 1, "nvidia.com/mig-1g.6gb": 1}}
    assert [[*one["resources"]["limits"]] for one in found.services] == [["nvidia.com/gpu"], ["nvidia.com/mig-1g.6gb"]]
    assert yaml.safe_load(str(mig_parted_config(mixed)))["mig-configs"]["mig-opt-a30-24gb"] == [
        {"devices": [0], "mig-enabled": False, "mig-devices": {}},
        {"devices": [1], "mig-enabled": True, "mig-devices": {"1g.6gb": 1}},
    ]
    change = plan_change(Deployment(mixed.gpus, ()), mixed).plan
    for script in (lambda: deployment_script(mixed), lambda: change_script(change)):
        refused(script, match=r"gpus\[0\]: has MIG off \(A30-24GB without MIG\), .* MIG on, or export for kubernetes$")
    assert "create_missing 1" in deployment_script(Deployment(mixed.gpus, (part,)))
