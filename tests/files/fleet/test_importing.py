"""States from the texts of other programs. The files in ``forms`` are one fleet, in each form of two versions."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import Command
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mig_opt import Device, FleetState, InputError
from mig_opt.gpu.catalogue import catalogue, get_gpu
from mig_opt.operations.observe.kinds import profile_named
from mig_opt.operations.observe.state_import import Format, StateImport, import_state, state_from_text

FORMS = Path(__file__).parent / "forms"
FILES = sorted(FORMS.iterdir())
TEXTS = {file.name: file.read_text() for file in FILES}

BUSY = [(0, "3g.20gb", 0), (0, "3g.20gb", 4), (2, "4g.20gb", 0), (2, "2g.10gb", 4)]
IDLE = [(1, "3g.20gb", 0), (1, "3g.20gb", 4), (2, "1g.5gb", 6)]
USERS = {"shop": ["shop/train-0", "shop/train-0", "shop/web-6d5f-a", "shop/web-6d5f-b"]}
LGI = "| GPU instances:                                         |"


def places(state: FleetState, *, idle: bool | None = None) -> list[tuple[int, str, int]]:
    return [(held.gpu, held.profile, held.start) for held in state.instances if idle in (None, held.idle)]


def complaints(text: str, form: Format | None = None, **options: Any) -> list[str]:
    with pytest.raises(InputError) as error:
        state_from_text(text, form, **options)
    return [str(problem) for problem in error.value.problems]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_one_fleet_in_every_form_is_the_same_state(file: Path) -> None:
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


@pytest.mark.parametrize("name", [name for name in TEXTS if name.startswith(("dra", "hami"))])
def test_kubernetes_tells_pods_owners_and_budgets(name: str) -> None:
    state = import_state(FORMS / name).state
    busy = state.busy().instances
    assert [held.name for held in busy] == USERS["shop"]
    assert [held.owner for held in busy] == ["shop/train", "shop/train", "shop/web", "shop/web"]
    assert state.budgets == {"shop/web": 1}
    assert all(uuid.startswith("GPU-") for uuid in state.uuids)
    assert len(state.uuids) == 3


def test_slurm_tells_jobs_and_users() -> None:
    for name in ("slurm-21.08.txt", "slurm-24.05.txt"):
        busy = import_state(FORMS / name).state.busy().instances
        assert [(held.name, held.owner) for held in busy] == [
            *[("job 41", "ada")] * 2,
            ("job 42", "bob"),
            ("job 43", "bob"),
        ]


def test_texts_of_nvidia_smi_are_joined_by_instance() -> None:
    states = [import_state(FORMS / f"nvidia-smi-{version}.txt").state for version in ("450", "550")]
    for state in states:
        assert all(held.uuid.startswith("MIG-") for held in state.instances)
        assert [held.name for held in state.busy().instances] == ["pid 4007", "pid 4014"] * 2
    assert states[0].uuids == states[1].uuids


def _xml_gpu(index: int) -> str:
    if index not in (1, 3):
        return "<gpu><mig_mode><current_mig>Disabled</current_mig></mig_mode></gpu>"
    size = "<shared><multiprocessor_count>42</multiprocessor_count></shared>"
    return (
        f"<gpu><product_name>NVIDIA A100-SXM4-40GB</product_name><uuid>GPU-{index}</uuid>"
        "<mig_mode><current_mig>Enabled</current_mig></mig_mode><mig_devices><mig_device><index>0</index>"
        f"<gpu_instance_id>1</gpu_instance_id><device_attributes>{size}</device_attributes>"
        "<fb_memory_usage><total>20096 MiB</total></fb_memory_usage></mig_device></mig_devices></gpu>"
    )


def _dra_device(index: int) -> dict[str, Any]:
    attributes = {"type": "mig", "parentUUID": f"GPU-{index}", "productName": "NVIDIA A100-SXM4-40GB"}
    texts = {key: {"string": text} for key, text in attributes.items()}
    return {"name": f"gpu-{index}-mig-3g20gb-9-0", "attributes": texts}


_SLICE = {"driver": "gpu.nvidia.com", "nodeName": "n1", "pool": {"name": "n1"}, "devices": [*map(_dra_device, (1, 3))]}
_REGISTER = [{"id": f"GPU-{index}", "index": index, "type": "NVIDIA A100-SXM4-40GB", "mode": "mig"} for index in (1, 3)]
_ALLOCATIONS = [
    {"gpuUUID": f"GPU-{index}", "profile": "3g.20gb", "placement": {"start": 0, "size": 4}} for index in (1, 3)
]
APART: dict[str, tuple[str, str, bool]] = {
    "list": (
        "\n".join(
            f"GPU {index}: NVIDIA A100-SXM4-40GB (UUID: GPU-{index})\n  MIG 3g.20gb Device 0: (UUID: MIG-{index})"
            for index in (1, 3)
        ),
        *("", True),
    ),
    "lgi": ("\n".join([LGI, *(f"|   {index}  MIG 3g.20gb  9  1  0:4  |" for index in (1, 3))]), "", False),
    "xml": (f"<nvidia_smi_log>{''.join(map(_xml_gpu, range(4)))}</nvidia_smi_log>", "", True),
    "dra": (json.dumps({"kind": "ResourceSlice", "spec": _SLICE}), "n1", True),
    "hami": (
        json.dumps(
            {
                "kind": "List",
                "items": [
                    {"kind": kind, "metadata": {"name": "n1", "annotations": {f"hami.io/{key}": json.dumps(value)}}}
                    | ({"spec": {"nodeName": "n1"}} if kind == "Pod" else {})
                    for kind, key, value in (
                        ("Node", "node-nvidia-register", _REGISTER),
                        ("Pod", "vgpu-mig-allocations", _ALLOCATIONS),
                    )
                ],
            }
        ),
        *("n1", True),
    ),
    "slurm": (
        "\n".join(
            f"NodeName=n1 Name=gpu Type=a100_3g.20gb MultipleFiles=/dev/nvidia{index},/dev/nvidia-caps/nvidia-cap{cap}"
            for index, cap in ((1, 12), (3, 48))
        ),
        *("n1", False),
    ),
}
"""Texts of GPUs 1 and 3 with an instance each; the node, and whether the UUIDs of the GPUs are told."""


@pytest.mark.parametrize("form", APART)
def test_gpus_keep_their_indices(form: str) -> None:
    text, node, identified = APART[form]
    state = state_from_text(text, gpu="A100", assume_places=True).state
    assert [held.gpu for held in state.instances] == [0, 1]
    uuids = ("GPU-1", "GPU-3") if identified else ("", "")
    assert state.devices == tuple(Device(index, node, uuid) for index, uuid in zip((1, 3), uuids, strict=True))


# Damage

JUNK = ["", "garbage", "|   0  MIG", "{", "}", "</gpu>", "<a>", "GPU 0:", "null", "[1]", "\x00", "=", '"']

Change = Callable[[list[str], int, int, str], object]
"""Changes a list of lines, given the index of a line, one in it, and a piece of text."""


def _character(lines: list[str], at: int, where: int, piece: str) -> None:
    lines[at] = lines[at][:where] + piece[:1] + lines[at][where + 1 :]


def _number(lines: list[str], at: int, where: int, piece: str) -> None:
    digits = [index for index, character in enumerate(lines[at]) if character.isdigit()]
    if digits:
        _character(lines, at, digits[where % len(digits)], str(len(piece) % 10))


def _replace(lines: list[str], at: int, where: int, piece: str) -> None:
    lines[at] = lines[at][:where] if where % 2 else piece


CHANGES: list[Change] = [
    lambda lines, at, *_: lines.pop(at),
    lambda lines, at, *_: lines.insert(at, lines[at]),
    lambda lines, at, where, _: lines.insert(where % len(lines), lines.pop(at)),
    lambda lines, at, *_: lines.__delitem__(slice(at + 1, None)),
    _character,
    _number,
    _replace,
]


@st.composite
def mutations(draw: st.DrawFn, text: str) -> str:
    """A text with some lines left out, doubled, moved, cut or replaced, and some characters changed."""
    lines = text.split("\n")
    for change in draw(st.lists(st.sampled_from(CHANGES), min_size=1, max_size=3)):
        at = draw(st.integers(0, len(lines) - 1))
        piece = draw(st.sampled_from(JUNK) | st.text(st.characters(codec="utf-8"), max_size=2))
        change(lines, at, draw(st.integers(0, len(lines[at]))), piece)
        lines = lines or [""]
    return "\n".join(lines)


def outcome(text: str, form: Format | None = None, **options: Any) -> StateImport | InputError:
    try:
        return state_from_text(text, form, **options)
    except InputError as error:
        return error


@pytest.mark.deep
@pytest.mark.parametrize("name", TEXTS)
def test_damaged_texts_are_refused_with_lines_or_read(name: str) -> None:
    @settings(max_examples=120, deadline=None)
    @given(mutations(TEXTS[name]), st.booleans())
    def check(text: str, assume: bool) -> None:
        found = outcome(text, assume_places=assume)
        assert isinstance(found, StateImport) or all(problem.message for problem in found.problems)

    check()


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=200), st.sampled_from(["nvidia-smi", "dra", "device-plugin", "hami", "slurm", None]))
@example("<!DOCTYPE a [<!ENTITY b 'c'>]><nvidia_smi_log>&b;</nvidia_smi_log>", "nvidia-smi")
@example("[" * 5000, "dra")
@example('{"kind": "Node", "metadata": {"labels": {"nvidia.com/gpu.product": "A30"}}}', None)
@example("NodeName=a[1-99999999] Name=gpu Type=1g.5gb MultipleFiles=/dev/nvidia0", "slurm")
def test_any_text_is_refused_or_read(text: str, form: Format | None) -> None:
    found = outcome(text, form, gpu="A100")
    assert isinstance(found, StateImport) or found.problems


def test_every_damaged_line_of_a_table_is_told() -> None:
    text = TEXTS["nvidia-smi-lgi-550.txt"].split("\n")
    text[5] = text[5].replace("0:4", "0;4")
    text[9] = text[9].replace("MIG 3g", "MOG 3g")
    text[13] = "node-1: Segmentation fault"
    assert complaints("\n".join(text), gpu="A100") == [
        "line 6: is no row of the table of GPU instances, like |   0  MIG 1g.5gb  19  7  0:1  |: "
        '"|   0  MIG 3g.20gb            9        1          0;4   ...',
        "line 10: is no row of the table of GPU instances, like |   0  MIG 1g.5gb  19  7  0:1  |: "
        '"|   1  MOG 3g.20gb            9        1          0:4   ...',
        'line 14: cannot be read as a row like |   0  MIG 1g.5gb  19  7  0:1  |: "Segmentation fault"',
    ]


ROWS = (
    "0  MIG 3g.20gb  9  1  0:4",
    "0  MIG 2g.10gb  14  3  1:2",
    "0  MIG 9g.9gb  7  4  4:2",
    "0  MIG 1g.5gb  19  9  2:2",
)


def test_what_the_hardware_cannot_have_is_told_by_its_line() -> None:
    text = "\n".join([LGI, *(f"|   {row}     |" for row in ROWS)])
    names = ", ".join(profile.name for profile in get_gpu("A100").profiles)
    assert complaints(text, gpu="A100") == [
        "line 3: 2g.10gb cannot start at slice 1; legal starts: 0, 2, 4",
        f'line 4: A100-40GB has not the profile "9g.9gb" with the number 7; its profiles are {names}',
        "line 5: 1g.5gb has 1 memory slice, not 2",
    ]
    overlapping = "\n".join([LGI, f"|   {ROWS[0]}     |", "|   0  MIG 1g.5gb  19  9  2:1     |"])
    assert complaints(overlapping, gpu="A100") == ["line 3: 1g.5gb@2 overlaps 3g.20gb@0 of line 2 on GPU 0"]


def test_outputs_of_different_moments_are_refused() -> None:
    text = TEXTS["nvidia-smi-550.txt"].split("\n")
    rows = [at for at, line in enumerate(text) if line.startswith("node-2: |   0  MIG 2g.10gb")]
    found = complaints("\n".join(text[: rows[0]] + text[rows[0] + 2 :]))
    assert [line.partition(": ")[2] for line in found] == [
        "instance 5 of GPU 0 is not in the table of GPU instances",
        "instance 5 of GPU 0 is not in the table of GPU instances: the two outputs are of different moments",
    ]


def test_damaged_json_is_told_by_the_line_of_the_object() -> None:
    text = TEXTS["dra-25.3.json"]
    lines = text.split("\n")
    claimed = next(at for at, line in enumerate(lines, 1) if '"device": "gpu-0-mig-9-4-4"' in line)
    named = next(at for at, line in enumerate(lines, 1) if '"name": "gpu-0-mig-14-4-2"' in line)
    broken = text.replace('"name": "gpu-0-mig-9-4-4"', '"name": "gpu-0-mig-9-5-4"').replace(
        '"name": "gpu-0-mig-14-4-2"', '"name": 7'
    )
    begin = max(at for at, line in enumerate(lines[:claimed], 1) if line.strip() == "{")
    first = max(at for at, line in enumerate(lines[:named], 1) if line.strip() == "{")
    found = [problem for problem in complaints(broken) if "legal starts" not in problem]
    assert found[0] == f"line {first}: items[2].spec.devices[1].name must be a text, is 7"
    assert found[1].startswith(f"line {begin}: items[5].status.allocation.devices.results[0] has the device")
    assert [problem.partition(":")[0] for problem in complaints(text[:-20])] == [f"line {len(lines) - 5}"]


def test_a_gpu_of_the_slices_needs_its_claims_pool() -> None:
    document = json.loads(TEXTS["dra-25.12.json"])
    document["items"] = [item for item in document["items"] if item["metadata"]["name"] != "node-2-gpu"]
    found = complaints(json.dumps(document, indent=1))
    assert len(found) == 2
    assert all('is of the pool "node-2", and no resource slice is' in line for line in found)


# What forms cannot tell


def test_places_are_never_guessed_unless_that_is_wanted() -> None:
    text = "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-1)\n  MIG 2g.10gb     Device  0: (UUID: MIG-1)\n"
    (found,) = complaints(text)
    assert found.startswith(
        "line 2: GPU 0: the places of its instances are not in the text, and there are several ways"
    )
    assumed = state_from_text(text, assume_places=True)
    assert places(assumed.state) == [(0, "2g.10gb", 0)]
    assert "the places of 1 instance are assumed, they are not in the text" in assumed.notes


def test_instances_that_differ_in_their_use_are_not_mixed_up() -> None:
    text = (
        TEXTS["slurm-24.05.txt"]
        .replace("(IDX:0-1)", "(IDX:0)")
        .replace("a100_3g.20gb:2(IDX:0)", "a100_3g.20gb:1(IDX:0)")
    )
    (found,) = complaints(text)
    assert "GPU 0 of node-1: the places of its instances are not in the text" in found


def test_dynamic_partitions_exist_only_when_allocated() -> None:
    document = json.loads(TEXTS["dra-25.12.json"])
    for item in document["items"]:
        for device in item.get("spec", {}).get("devices", []):
            device["consumesCounters"] = [{"counterSet": "gpu-0-counter-set", "counters": {}}]
    state = state_from_text(json.dumps(document)).state
    assert places(state) == BUSY
    assert state.gpus == 3


def test_gpus_that_are_not_partitioned_are_left_out_with_a_note() -> None:
    text = TEXTS["nvidia-smi-xml-550.txt"]
    one = text.replace("node-2: \t\t\t<current_mig>Enabled", "node-2: \t\t\t<current_mig>Disabled")
    lines = [line for line in one.split("\n") if line.startswith("node-1") or not line]
    off = [line for line in one.split("\n") if line.startswith("node-2")]
    begin, end = (next(at for at, line in enumerate(off) if tag in line) for tag in ("<mig_devices>", "</mig_devices>"))
    found = state_from_text("\n".join(lines + off[: begin + 1] + off[end:]))
    assert found.state.gpus == 2
    assert "left out 1 GPU (MIG is off): GPU 0 of node-2" in found.notes


def test_several_kinds_of_gpus_need_a_choice() -> None:
    text = TEXTS["nvidia-smi-list-550.txt"] + (
        "node-3: GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-9)\nnode-3:   MIG 7g.80gb     Device  0: (UUID: MIG-9)\n"
        "node-3: GPU 1: Tesla T4 (UUID: GPU-8)\n"
    )
    (found,) = complaints(text)
    assert found == (
        "gpu: a state is of GPUs of one kind, and there are 3 x NVIDIA A100-SXM4-40GB, 1 x NVIDIA H100 80GB HBM3; "
        "choose one with --gpu A100-40GB or --gpu H100-80GB"
    )
    chosen = state_from_text(text, gpu="H100")
    assert places(chosen.state) == [(0, "7g.80gb", 0)]
    assert "left out 1 GPU (no GPU of the catalogue): GPU 1 of node-3" in chosen.notes
    assert any(note.startswith("left out 3 GPUs (not H100-80GB)") for note in chosen.notes)


def test_a_table_alone_does_not_tell_the_kind() -> None:
    row = "|   3  MIG 1g.10gb           19        7          0:1     |"
    (found,) = complaints(f"{LGI}\n{row}")
    assert found.startswith("gpu: the text does not tell the kind of GPU, which may be A100-80GB or H100-80GB")
    assert state_from_text(f"{LGI}\n{row}", gpu="H100").state.gpu.name == "H100-80GB"


def test_several_files_are_several_nodes(tmp_path: Path) -> None:
    table = f"{LGI}\n|   0  MIG 3g.20gb  9  1  4:4     |"
    for name in ("b10", "b9"):
        (tmp_path / f"{name}.txt").write_text(table)
    found = import_state(tmp_path / "b10.txt", tmp_path / "b9.txt").state
    assert (found.nodes, found.gpus) == (("b9", "b10"), 2)
    (tmp_path / "b9.txt").write_text(table.replace("4:4", "4:2"))
    with pytest.raises(InputError, match=r"b9\.txt, line 2: 3g\.20gb has 4 memory slices, not 2"):
        import_state(tmp_path / "b10.txt", tmp_path / "b9.txt", gpu="A100")


def test_what_autodetect_finds_is_counted_only() -> None:
    gres = "   Gres=gpu:a100_1g.5gb:14(S:0)\n   GresUsed=gpu:a100_1g.5gb:14(IDX:0-13)\n"
    found = state_from_text(f"AutoDetect=nvml\nNodeName=a1 Arch=x86_64\n{gres}")
    assert found.state.gpus == 2
    assert places(found.state) == [(gpu, "1g.5gb", start) for gpu in range(2) for start in range(7)]


def test_lines_of_gres_conf_that_cannot_be_read() -> None:
    lines = (
        "Name=gpu Type=a100_3g.20gb MultipleFiles=/dev/nvidia0",
        "Name=gpu Colour=red",
        "Name=gpu MultipleFiles=/dev/nvidia0",
        "Name=gpu Type=a100_3g.20gb MultipleFiles=/dev/zero",
        "nonsense",
        "NodeName=x Arch=a",
        "   GresUsed=gpu:1",
    )
    text = "\n".join(lines)
    assert [line.partition(": ")[0] for line in complaints(text, gpu="A100")] == [f"line {n}" for n in (2, 3, 4, 5, 7)]


def test_every_profile_is_found_by_its_name_number_and_label() -> None:
    for gpu in catalogue():
        for profile in gpu.profiles:
            names = (profile.name, f"MIG {profile.name}", profile.name.replace("+", "."))
            assert {profile_named(gpu, name) for name in names} == {profile}
            assert profile_named(gpu, "", profile.id) == profile
            if profile.sm_count and profile.usable_mib and not profile.attributes:
                assert profile_named(gpu, "", size=(profile.sm_count, float(profile.usable_mib))) == profile


# The command


def test_the_command(run: Command, tmp_path: Path) -> None:
    out = tmp_path / "state.json"
    ended = run("state", "import", str(FORMS / "dra-25.3.json"), "-o", str(out))
    assert ended.code == 0
    assert "3 x A100-40GB on 2 nodes" in ended.out
    assert "2 of 4 resource slices are of other drivers" in ended.err
    assert run("defragment", str(out), "--for", "7g.40gb").code == 0
    printed = run("state", "import", str(FORMS / "dra-25.3.json"))
    assert json.loads(printed.out) == json.loads(out.read_text())


@pytest.mark.parametrize("name", [name for name in TEXTS if name.endswith(".txt")])
def test_nothing_is_written_for_a_damaged_text(run: Command, tmp_path: Path, name: str) -> None:
    source, out = tmp_path / "source.txt", tmp_path / "state.json"
    source.write_text(TEXTS[name].replace("20gb", "20 gb").replace("multiprocessor_count", "count"))
    ended = run("state", "import", str(source), "-o", str(out))
    assert ended.code == 2
    assert "line " in ended.err
    assert "Traceback" not in ended.err
    assert not out.exists()


def test_wrong_arguments(run: Command, tmp_path: Path) -> None:
    assert "no form is called 'xml'" in run("state", "import", str(FILES[0]), "--format", "xml").err
    assert "SOURCE: is missing; name at least one file" in run("state", "import").err
    assert "--nvml: and --format slurm exclude" in run("state", "import", "--nvml", "--format", "slurm").err
    assert "NVML is asked itself" in run("state", "import", str(FILES[0]), "--format", "nvml").err
    assert run("state", "import", str(tmp_path / "none.txt")).code == 2
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    ended = run("state", "import", str(empty))
    assert ended.code == 2
    assert "is in no form that is known" in ended.err


def test_standard_input(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    class Piped:
        buffer = io.BytesIO(TEXTS["nvidia-smi-lgi-450.txt"].encode())

    monkeypatch.setattr(sys, "stdin", Piped)
    ended = run("state", "import", "-")
    assert json.loads(ended.out)["gpus"] == 3
