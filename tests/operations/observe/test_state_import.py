"""States from the texts of other programs. The files in ``forms`` are one fleet, in each form of two versions."""

import json
from typing import Any

import pytest
from command_line import refuses
from state_forms import FILES, LGI, TEXTS, cluster, complaints, places, state_from_text

from mig_opt import Device, catalogue
from mig_opt.operations.observe.gpu_models import profile_named
from mig_opt.operations.observe.state_import import import_state

BUSY = [(0, "3g.20gb", 0), (0, "3g.20gb", 4), (2, "4g.20gb", 0), (2, "2g.10gb", 4)]
IDLE = [(1, "3g.20gb", 0), (1, "3g.20gb", 4), (2, "1g.5gb", 6)]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_one_fleet_in_every_form_is_the_same_state(file):
    found = import_state(file)
    state = found.state
    assert file.name.startswith(found.format)
    assert (state.gpu.name, state.gpus, state.nodes) == ("A100-40GB", 3, ("node-1", "node-1", "node-2"))
    assert state.indices == ()  # those of each node have no gaps
    if found.format == "hami":
        # HAMi knows the instances of pods only.
        assert places(state) == BUSY
    else:
        assert places(state) == sorted(BUSY + IDLE, key=lambda place: (place[0], place[2]))
    if any(held.idle for held in state.instances):
        assert (places(state, idle=False), places(state, idle=True)) == (BUSY, IDLE)
    else:
        assert found.format == "hami" or any("all count as busy" in note for note in found.notes)
    assert state.manager == ("" if found.format == "nvidia-smi" else found.format)


def _pair(text: str, between: str = "\n") -> str:
    """Return a text for GPU 1 and for GPU 3, whose number has a sign in it."""
    return between.join(text.replace("#", number) for number in "13")


def _hami(kind: str, annotation: str, entry: str) -> dict[str, Any]:
    metadata = {"name": "n1", "annotations": {f"hami.io/{annotation}": f"[{_pair(entry, ',')}]"}}
    return {"kind": kind, "metadata": metadata, "spec": {"nodeName": "n1"}}


_A100 = "NVIDIA A100-SXM4-40GB"
_XML = f"""<gpu><mig_mode><current_mig>Disabled</current_mig></mig_mode></gpu>
    <gpu><product_name>{_A100}</product_name><uuid>GPU-#</uuid><mig_mode><current_mig>Enabled</current_mig></mig_mode>
    <mig_devices><mig_device><index>0</index><gpu_instance_id>1</gpu_instance_id><device_attributes><shared>
    <multiprocessor_count>42</multiprocessor_count></shared></device_attributes>
    <fb_memory_usage><total>20096 MiB</total></fb_memory_usage></mig_device></mig_devices></gpu>"""
_DRA = (
    '{"name": "gpu-#-mig-3g20gb-9-0", "attributes": {"type": {"string": "mig"}, "parentUUID": {"string": "GPU-#"}, '
    f'"productName": {{"string": "{_A100}"}}}}}}'
)
_SLICE = '{"driver": "gpu.nvidia.com", "nodeName": "n1", "pool": {"name": "n1"}, "devices": '
_GRES = "NodeName=n1 Name=gpu Type=a100_3g.20gb MultipleFiles=/dev/nvidia#,/dev/nvidia-caps/nvidia-cap#2"
_GPU = f'{{"id": "GPU-#", "index": #, "type": "{_A100}", "mode": "mig"}}'
_ALLOCATION = '{"gpuUUID": "GPU-#", "profile": "3g.20gb", "placement": {"start": 0, "size": 4}}'
APART = {
    "list": (_pair(f"GPU #: {_A100} (UUID: GPU-#)\n  MIG 3g.20gb Device 0: (UUID: MIG-#)"), "", True),
    "lgi": (f"{LGI}\n{_pair('|   #  MIG 3g.20gb  9  1  0:4  |')}", "", False),
    "xml": (f"<nvidia_smi_log>{_pair(_XML)}</nvidia_smi_log>", "", True),
    "dra": (f'{{"kind": "ResourceSlice", "spec": {_SLICE}[{_pair(_DRA, ",")}]}}}}', "n1", True),
    "hami": (
        cluster(_hami("Node", "node-nvidia-register", _GPU), _hami("Pod", "vgpu-mig-allocations", _ALLOCATION)),
        *("n1", True),
    ),
    "slurm": (_pair(_GRES), "n1", False),
}
"""Texts of GPUs 1 and 3 with an instance each; the node, and whether the UUIDs of the GPUs are told."""


@pytest.mark.parametrize("form", APART)
def test_gpus_keep_their_indices(form):
    text, node, identified = APART[form]
    state = state_from_text(text, gpu="A100", assume_places=True).state
    assert [held.gpu for held in state.instances] == [0, 1]
    uuids = ("GPU-1", "GPU-3") if identified else ("", "")
    assert state.devices == tuple(Device(index, node, uuid) for index, uuid in zip((1, 3), uuids, strict=True))


def test_instances_that_differ_in_their_use_are_not_mixed_up():
    text = TEXTS["slurm-24.05.txt"].replace("(IDX:0-1)", "(IDX:0)")
    (found,) = complaints(text.replace("a100_3g.20gb:2(IDX:0)", "a100_3g.20gb:1(IDX:0)"))
    assert "GPU 0 of node-1: the places of its instances are not in the text" in found


def test_dynamic_partitions_exist_only_when_allocated():
    document = json.loads(TEXTS["dra-25.12.json"])
    for item in document["items"]:
        for device in item.get("spec", {}).get("devices", []):
            device["consumesCounters"] = [{"counterSet": "gpu-0-counter-set", "counters": {}}]
    state = state_from_text(json.dumps(document)).state
    assert (places(state), state.gpus) == (BUSY, 3)


def test_who_looks_after_devices_does_not_use_them():
    document = json.loads(TEXTS["dra-25.12.json"])
    claim = json.loads(json.dumps(next(item for item in document["items"] if item["kind"] == "ResourceClaim")))
    claim["metadata"]["name"] = "monitor"
    of = {"driver": "gpu.nvidia.com", "pool": "node-1", "adminAccess": True}
    results = [of | {"device": name} for name in ("gpu-0", "gpu-0-mig-3g20gb-9-0", "gpu-1-mig-3g20gb-9-0")]
    claim["status"]["allocation"]["devices"]["results"] = results
    document["items"].append(claim)
    assert state_from_text(json.dumps(document)) == state_from_text(TEXTS["dra-25.12.json"])


def test_a_table_alone_does_not_tell_the_kind():
    row = "|   3  MIG 1g.10gb           19        7          0:1     |"
    (found,) = complaints(f"{LGI}\n{row}")
    assert found.startswith("gpu: the text does not tell the kind of GPU, which may be A100-80GB or H100-80GB")
    assert state_from_text(f"{LGI}\n{row}", gpu="H100").state.gpu.name == "H100-80GB"


def test_what_autodetect_finds_is_counted_only():
    gres = "   Gres=gpu:a100_1g.5gb:14(S:0)\n   GresUsed=gpu:a100_1g.5gb:14(IDX:0-13)\n"
    found = state_from_text(f"AutoDetect=nvml\nNodeName=a1 Arch=x86_64\n{gres}")
    assert places(found.state) == [(gpu, "1g.5gb", start) for gpu in range(2) for start in range(7)]


def test_lines_of_gres_conf_that_cannot_be_read():
    lines = (
        "Name=gpu Type=a100_3g.20gb MultipleFiles=/dev/nvidia0",
        "Name=gpu Colour=red",
        "Name=gpu MultipleFiles=/dev/nvidia0",
        "Name=gpu Type=a100_3g.20gb MultipleFiles=/dev/zero",
        "nonsense",
        "NodeName=x Arch=a",
        "   GresUsed=gpu:1",
    )
    found = complaints("\n".join(lines), gpu="A100")
    assert [line.partition(": ")[0] for line in found] == [f"line {n}" for n in (2, 3, 4, 5, 7)]


def test_every_profile_is_found_by_its_name_number_and_label():
    for gpu in catalogue():
        for profile in gpu.profiles:
            names = (profile.name, f"MIG {profile.name}", profile.name.replace("+", "."))
            assert {profile_named(gpu, name) for name in names} == {profile}
            assert profile_named(gpu, "", profile.id) == profile
            if profile.sm_count and profile.usable_mib and not profile.attributes:
                assert profile_named(gpu, "", size=(profile.sm_count, float(profile.usable_mib))) == profile


@pytest.mark.parametrize("name", [name for name in TEXTS if name.endswith(".txt")])
def test_nothing_is_written_for_a_damaged_text(run, tmp_path, name):
    source, out = tmp_path / "source.txt", tmp_path / "state.json"
    source.write_text(TEXTS[name].replace("20gb", "20 gb").replace("multiprocessor_count", "count"))
    refuses(run("state", "import", source, "-o", out), "line ")
    assert not out.exists()
