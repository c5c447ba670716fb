"""The boards of a node, and those with MIG on: a gap in a text is told, and never taken for a free board."""

import pytest
from state_forms import LGI, cluster, complaints, node, places, state_from_text

from mig_opt import catalogue
from mig_opt.operations.observe.gpu_models import kinds_of

A100 = "NVIDIA-A100-SXM4-40GB"
OFF, NONE = "No MIG-enabled devices found.", "No GPU instances found: Not Found"
UNKNOWN = (
    "no GPU of the catalogue; if nvidia-smi mig -lgip lists the profiles of one that is, name that with --gpu, else a "
    "file that mig-opt gpus import makes"
)


def board(index: int, product: str = "NVIDIA A100-SXM4-40GB") -> str:
    return f"GPU {index}: {product} (UUID: GPU-{index})\n"


def row(gpu: int, profile: str = "3g.20gb", number: int = 9) -> str:
    return f"{LGI}\n|   {gpu}  MIG {profile}  {number}  1  0:4     |\n"


@pytest.mark.parametrize(
    ("kind", "products"),
    [
        ("A100-40GB", "NVIDIA A100-SXM4-40GB, A100-SXM4-40GB, NVIDIA A100-PCIE-40GB, nvidia_a100-pcie-40gb, a100_40g"),
        ("A100-80GB", "NVIDIA A100-SXM4-80GB, NVIDIA A100-SXM-80GB, NVIDIA A100 80GB PCIe, NVIDIA A100 80GB PCIe LC"),
        ("A100-80GB", "NVIDIA A800-SXM4-80GB, NVIDIA A800 80GB PCIe, NVIDIA A800 80GB PCIe LC"),
        ("H100-80GB", "NVIDIA H100 80GB HBM3, NVIDIA H100 PCIe, nvidia_h100_80gb_hbm3, NVIDIA H800, NVIDIA H800 PCIe"),
        ("H100-NVL-94GB", "NVIDIA H100 NVL, NVIDIA H100 SXM5 94GB"),
        ("H100-96GB", "NVIDIA H100 96GB HBM3, NVIDIA GH200 120GB, NVIDIA GH200 480GB, NVIDIA H20"),
        ("GH200-144GB", "NVIDIA GH200 144G HBM3e"),
        ("H200-141GB", "NVIDIA H200, NVIDIA H200 NVL"),
        ("B200-180GB", "NVIDIA B200"),
        ("GB200-186GB", "NVIDIA GB200"),
        ("B300-269GB", "NVIDIA B300 SXM6 AC"),
        ("GB300-278GB", "NVIDIA GB300"),
        ("A30-24GB", "NVIDIA A30, A30-24GB"),
        ("RTX-PRO-6000-96GB", "NVIDIA RTX PRO 6000 Blackwell Server Edition, NVIDIA RTX PRO 6000 Blac..."),
        ("RTX-PRO-6000-96GB", "NVIDIA-RTX-PRO-6000-Blackwell-Max-Q-Workstation-Edition"),
        ("RTX-PRO-6000-96GB", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition"),
        ("", "NVIDIA A800 40GB Active, NVIDIA A800-SXM4-40GB, a800, NVIDIA AX800, NVIDIA A100-SXM-64GB, NVIDIA A100X"),
        ("", "NVIDIA A30X, NVIDIA H100 64GB HBM2e, NVIDIA H800 NVL, NVIDIA H20-3e, NVIDIA RTX PRO 5000 Blackwell"),
        ("", "NVIDIA RTX 6000D, NVIDIA A10, NVIDIA A100-7-40C, GRID A100-10C, GRID A100D-80C, Tesla T4"),
        ("", "NVIDIA PG506-232, NVIDIA Graphics Device, NVIDIA, a100_small, 40GB"),
        ("A100-40GB A100-80GB", "a100, nvidia_a100, NVIDIA A100-SXM..., NVIDIA A100-SXM4-4..."),
        ("H100-80GB H100-NVL-94GB H100-96GB", "h100, NVIDIA H100"),
        ("H100-96GB GH200-144GB", "gh200"),
    ],
)
def test_a_name_stands_for_the_boards_that_have_it_and_for_no_others(kind, products):
    found = {product: " ".join(gpu.name for gpu in kinds_of(product)) for product in products.split(", ")}
    assert found == dict.fromkeys(found, kind)


def test_every_gpu_of_the_catalogue_is_found_by_its_names():
    for gpu in catalogue():
        assert kinds_of(gpu.name) == (gpu,)
        assert all(gpu in kinds_of(alias) for alias in gpu.aliases)


def test_an_unknown_board_is_told_and_left_to_the_user():
    text = board(0, "NVIDIA A800 40GB Active") + row(0)
    (told,) = complaints(text)
    assert told == (
        f"line 3: is on a GPU of the kind NVIDIA A800 40GB Active, which is {UNKNOWN}; "
        "to leave it out, name another one"
    )
    # The user knows what it is,
    found = state_from_text(text, gpu="A100")
    assert (places(found.state), found.state.gpus) == ([(0, "3g.20gb", 0)], 1)
    told = "NVIDIA A800 40GB Active is no GPU of the catalogue; it is taken for A100-40GB, as --gpu says"
    assert told in found.notes
    # which the profiles must not contradict.
    assert complaints(text, gpu="H100")[0].startswith('line 3: H100-80GB has not the profile "3g.20gb"')
    # Among GPUs of the chosen kind it is another one.
    found = state_from_text(text + board(1) + row(1), gpu="A100")
    assert (places(found.state), found.state.uuids) == ([(0, "3g.20gb", 0)], ("GPU-1",))
    assert f"left out 1 GPU (NVIDIA A800 40GB Active is {UNKNOWN}): GPU 0" in found.notes
    # Of two unknown ones none is taken.
    (two,) = complaints(text + board(1, "NVIDIA A100X") + row(1), gpu="A100")
    assert two.startswith("tells of no A100-40GB with MIG; left out 1 GPU (NVIDIA A800 40GB Active is no GPU")


def test_a_cut_name_is_that_of_the_whole_one():
    screen = (
        "| NVIDIA-SMI 470.57.02    Driver Version: 470.57.02    CUDA Version: 11.4     |\n"
        "|   0  {}  On   | 00000000:07:00.0 Off |                   On |\n"
        "|                               |                      |              Enabled |\n"
        "| MIG devices:                                                                |\n"
        "|  No MIG devices found                                                       |\n"
    )
    cut = screen.format("NVIDIA A100-SXM...")
    assert complaints(cut) == [
        "gpu: the text does not tell the kind of GPU, which may be A100-40GB or A100-80GB; give it with --gpu"
    ]
    for text in (cut + board(0), board(0) + cut):
        assert state_from_text(text).state.gpu.name == "A100-40GB"
    assert complaints(board(0) + screen.format("NVIDIA H100 80G...")) == [
        "line 3: GPU 0 has another product (NVIDIA H100 80G...) than in line 1 (NVIDIA A100-SXM4-40GB)"
    ]
    # A cut name of another kind than that of the other GPUs is not one of them.
    other = board(0) + "  MIG 7g.40gb     Device  0: (UUID: MIG-1)\n" + cut.replace("0  NVIDIA", "1  NVIDIA")
    found = state_from_text(other.replace("A100-SXM...", "H100 80G..."), gpu="A100")
    assert "left out 1 GPU (not A100-40GB): GPU 1" in found.notes


def test_a_cluster_of_two_kinds_names_them():
    text = cluster(node("a", f"{A100}-MIG-1g.5gb", 7), node("b", "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", 14))
    assert state_from_text(text).state.names == ("A100-40GB", "H100-80GB", "H100-80GB")
    # Without the other kind, though an A100 could have its instances, too.
    found = state_from_text(text, gpu="A100")
    assert (found.state.nodes, len(found.state.instances)) == (("a",), 7)
    assert "left out the GPUs of 1 node (not A100-40GB): b" in found.notes


SEVEN = {"1g.5gb": 7}
NO_INSTANCES = "left out 8 GPUs (whole, since the labels of their nodes count no instances): w"


@pytest.mark.parametrize(
    "labels",
    [
        ("mig.capable=true", "mig.config=all-disabled", "mig.config.state=success", "mig.strategy=single"),
        ("mig.capable=true", "mig.strategy=mixed"),
        ("mig.strategy=none",),
        (),
    ],
)
def test_whole_gpus_are_no_free_gpus_with_mig(labels):
    resources = {"resources": {"limits": {"nvidia.com/gpu": "8"}}}
    pod = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"nodeName": "w", "containers": [resources]}}
    whole = node("w", A100, 8, *labels, capacity="gpu=8")
    assert complaints(cluster(whole, pod)) == [f"tells of no GPU with MIG; {NO_INSTANCES}"]
    found = state_from_text(cluster(whole, pod, node("m", A100, 1, **SEVEN)))
    assert (found.state.nodes, found.state.gpus) == (("m",), 1)
    assert NO_INSTANCES in found.notes


@pytest.mark.parametrize(
    ("gpus", "labels", "capacity", "told"),
    [
        (1, (), "", 1),
        (5, (), "gpu=4 mig-1g.5gb=7", 1),
        (5, ("gpu.replicas=2",), "gpu=8 mig-1g.5gb=7", 1),
        (5, ("gpu.replicas=2",), "gpu.shared=8 mig-1g.5gb=7", 1),
        (2, ("gpu.replicas=0",), "", 2),
        (2, (), "mig-1g.5gb=7", 2),
    ],
)
def test_gpus_beside_instances_are_with_mig_only_where_that_is_told(gpus, labels, capacity, told):
    text = cluster(node("w", A100, gpus, *labels, capacity=capacity, **SEVEN))
    found = state_from_text(text, assume_places=True)
    assert (found.state.gpus, len(found.state.instances)) == (told, 7)
    assert ("left out 4 GPUs (handed out whole by the device plugin): 4 of w" in found.notes) == (gpus == 5)


def test_partitions_that_the_device_plugin_calls_invalid_are_told():
    found = state_from_text(cluster(node("w", f"{A100}-MIG-INVALID", 0), node("m", A100, 1, **SEVEN)))
    assert found.state.nodes == ("m",)
    assert any("partitions that do not fit the strategy): w" in note for note in found.notes)


UNTOLD = "whether MIG is on is not told; nvidia-smi or nvidia-smi -q -x tells it"


def test_a_gpu_is_free_where_mig_is_said_to_be_on():
    assert (state_from_text(board(0) + NONE).state.gpus, state_from_text(board(0) + row(0)).state.gpus) == (1, 1)
    # Others may be in any mode.
    found = state_from_text(board(0) + board(1) + row(0))
    assert (found.state.gpus, found.state.uuids) == (1, ("GPU-0",))
    assert f"left out 1 GPU ({UNTOLD}): GPU 1" in found.notes


def test_a_whole_gpu_of_the_dra_driver_is_not_taken_for_free():
    product = {"productName": {"string": "NVIDIA A100-SXM4-40GB"}}
    devices = [{"name": name, "attributes": product} for name in ("gpu-0", "gpu-1-mig-9-0-4")]
    spec = {"driver": "gpu.nvidia.com", "nodeName": "n", "pool": {"name": "n"}, "devices": devices}
    found = state_from_text(cluster({"kind": "ResourceSlice", "spec": spec}))
    assert (found.state.gpus, places(found.state)) == (1, [(0, "3g.20gb", 0)])
    assert "left out 1 GPU (MIG is off): GPU 0 of n" in found.notes
