"""States of clusters with three kinds of GPUs, one node with MIG off, from every source, and plans for them."""

import itertools
from unittest.mock import Mock

import pytest
from documents import refused
from nvml_machine import Machine
from state_forms import cluster, complaints, node, places, state_from_text

from mig_opt import Device, DriverError, FleetState, HeldInstance, Status, defragment, get_gpu
from mig_opt.operations.observe.state_import import import_state

KINDS = ("A30-24GB", "A100-40GB", "H100-80GB")
PLACES = [(0, "1g.6gb", 1), (1, "1g.5gb", 1), (1, "2g.10gb", 4), (2, "3g.40gb", 4)]

LIST = """\
a: GPU 0: NVIDIA A30 (UUID: GPU-a0)
a:   MIG 1g.6gb      Device  0: (UUID: MIG-a0)
b: GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-b0)
b:   MIG 2g.10gb     Device  0: (UUID: MIG-b0)
b:   MIG 1g.5gb      Device  1: (UUID: MIG-b1)
c: GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-c0)
c:   MIG 3g.40gb     Device  0: (UUID: MIG-c0)
d: GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-d0)
"""
LGI = """\
a: | GPU instances:                                     |
a: |   0  MIG 1g.6gb         14        3          1:1     |
b: | GPU instances:                                     |
b: |   0  MIG 2g.10gb        14        3          4:2     |
b: |   0  MIG 1g.5gb         19        8          1:1     |
c: | GPU instances:                                     |
c: |   0  MIG 3g.40gb         9        2          4:4     |
"""


def test_from_nvidia_smi():
    found = state_from_text(LIST + LGI)
    state = found.state
    assert (state.names, state.nodes, state.uuids) == (KINDS, ("a", "b", "c"), ("GPU-a0", "GPU-b0", "GPU-c0"))
    assert sorted(places(state)) == PLACES
    assert any("GPU 0 of d" in note for note in found.notes)


def test_from_nvml(tmp_path, monkeypatch):
    pynvml = pytest.importorskip("pynvml", reason="needs nvidia-ml-py")
    with Machine(tmp_path, "A30", "A100", "H100", "A100").loaded() as machine:
        uuid = machine.add(0, "1g.6gb", 1, pid=4711)
        machine.add(1, "2g.10gb", 4)
        machine.add(1, "1g.5gb", 1)
        machine.add(2, "3g.40gb", 4, compute=False)
        machine.mode(3, 0, 1)
        found = import_state(format="nvml")
        assert (found.state.names, sorted(places(found.state))) == (KINDS, PLACES)
        assert [(held.name, held.idle) for held in found.state.instances] == [("pid 4711", False), *[("", True)] * 3]
        assert (found.state.instances[0].uuid, found.state.uuids) == (uuid, tuple(map(Machine.uuid, range(3))))
        pending = "GPU 3: MIG is off, and will be on after the next reset of the GPU"
        assert set(found.notes) == {"left out 1 GPU (MIG is off): GPU 3", pending}
        for gpu in (0, 1):
            machine.mode(gpu, 0)
        assert import_state(format="nvml").state.devices == (Device(2, uuid=Machine.uuid(2)),)
        machine.fault("lost", -1, gpu=3)
        monkeypatch.setattr("pynvml.nvmlDeviceGetComputeRunningProcesses", Mock(side_effect=pynvml.NVMLError(4)))
        machine.add(2, "1g.10gb", 0)
        found = import_state(format="nvml")
        assert [held.idle for held in found.state.instances] == [False, True]  # nothing can run on the other one
        assert (
            "left out 1 GPU (GPU is lost: the GPU does not answer any more; restart the machine): GPU 3" in found.notes
        )
        machine.fault("no-permission", -1, gpu=2)
        with pytest.raises(DriverError, match="sudo"):
            import_state(format="nvml")


KUBERNETES = cluster(
    node("a", "NVIDIA-A30", 1, **{"1g.6gb": 1}),
    node("b", "NVIDIA-A100-SXM4-40GB", 1, **{"2g.10gb": 1, "1g.5gb": 1}),
    node("c", "NVIDIA-H100-80GB-HBM3", 1, **{"3g.40gb": 1}),
    node("d", "NVIDIA-A100-SXM4-40GB", 1, "mig.capable=false", "mig.strategy=mixed"),
)
GRES = {"a": "a30_1g.6gb:1", "b": "a100_2g.10gb:1,gpu:a100_1g.5gb:1", "c": "h100_3g.40gb:1", "d": "a100:1"}
SLURM = "".join(f"NodeName={name} Arch=x86_64\n   Gres=gpu:{types}\n" for name, types in GRES.items())


@pytest.mark.parametrize(("manager", "text"), [("device-plugin", KUBERNETES), ("slurm", SLURM)])
def test_from_counts(manager, text):
    state = state_from_text(text, manager, assume_places=True).state
    assert (state.names, state.nodes, state.manager) == (KINDS, ("a", "b", "c"), manager)
    assert [profile for _, profile, _ in sorted(places(state))] == [profile for _, profile, _ in PLACES]


def test_a_kind_that_is_not_told_among_several():
    text = cluster(node("a", "NVIDIA-A30", 1, **{"1g.6gb": 1}), node("b", "A100", 1, **{"1g.10gb": 1}))
    assert "does not tell whether A100 is A100-40GB or A100-80GB" in complaints(text, assume_places=True)[0]


def mixed(*held: tuple[int, str, int], kinds: str = "A100 A30 A100 H100 A30") -> FleetState:
    instances = tuple(HeldInstance(*entry, name=f"job {at}") for at, entry in enumerate(held))
    return FleetState(None, 1, instances, kinds=tuple(map(get_gpu, kinds.split())))


FLEET = mixed((0, "1g.5gb", 0), (1, "1g.6gb", 1), (2, "2g.10gb", 4), (2, "1g.5gb", 0), (3, "1g.10gb", 2),
              (3, "3g.40gb", 4), (4, "2g.12gb", 2), (0, "1g.5gb", 5))  # fmt: skip


def test_a_limit_of_migrations_goes_where_it_helps_most():
    """Brute force over all shares of the limit."""
    for limit in range(4):
        result = defragment(FLEET, most_migrations=limit)
        assert len(result.migrations or ()) <= limit
        apart = [
            sum(
                defragment(part, most_migrations=share).fragmentation * part.gpus
                for (part, _), share in zip(FLEET.parts(), shares, strict=True)
            )
            for shares in itertools.product(range(limit + 1), repeat=3)
            if sum(shares) == limit
        ]
        assert result.fragmentation == pytest.approx(min(apart) / FLEET.gpus)


def test_room_for_a_profile_that_several_kinds_have():
    """A100-80GB and H100-80GB both have 3g.40gb: the room is made where it takes fewer migrations."""
    held = ((0, "1g.10gb", 0), (0, "1g.10gb", 4), (1, "1g.10gb", 1), (1, "2g.20gb", 2))
    fleet = mixed(*held, kinds="A100-80GB H100-80GB")
    assert defragment(fleet, ["3g.40gb"]).migrations == ()
    two = defragment(fleet, ["3g.40gb"] * 2)
    assert (two.status, len(two.migrations), len(two.room)) == (Status.OPTIMAL, 1, 2)
    assert defragment(fleet, ["7g.80gb"]).status is Status.INFEASIBLE
    refused(defragment, fleet, ["nix"], match="A100-80GB has no profile 'nix'")


def test_free_gpus_of_several_kinds():
    result = defragment(FLEET, free="gpus")
    assert (result.status, result.free) == (Status.OPTIMAL, (0, 1))
    one_node = FleetState(None, 1, (), kinds=FLEET.kinds, nodes=("n",) * 5)
    refused(defragment, one_node, match="node n has GPUs of several kinds", free="nodes")
