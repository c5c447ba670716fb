"""Instances made and destroyed through the genuine bindings, with everything that drivers do to those who try."""

import socket
import subprocess
import sys
import tempfile
from ctypes.util import find_library
from pathlib import Path

import pytest
from documents import refused
from nvml_machine import Machine

from mig_opt import DriverError, get_gpu
from mig_opt.operations.driver.instances import Patience
from mig_opt.operations.driver.nvml import Nvml
from mig_opt.operations.driver.surroundings import owner_of_partitions

pytest.importorskip("pynvml", reason="needs nvidia-ml-py")

A100 = get_gpu("A100")
GPU = Machine.uuid(1)


@pytest.fixture
def machine(tmp_path):
    with Machine(tmp_path, "A30", "A100").loaded() as found:
        found.set("clock", 1000)
        yield found


@pytest.fixture
def waited():
    return []


@pytest.fixture
def driver(machine, waited, tmp_path):
    def sleep(seconds: float) -> None:
        waited.append(seconds)
        machine.set("clock", 1000 + sum(waited))

    with Nvml(Patience(first=1, growth=2, longest=8, limit=30), sleep=sleep, root=tmp_path) as found:
        yield found


def program(root: Path, pid: int, name: str) -> None:
    folder = root / "proc" / str(pid)
    folder.mkdir(parents=True)
    (folder / "comm").write_text(f"{name[:15]}\n")  # as Linux cuts it


def test_every_placement_is_created_listed_and_destroyed(machine, driver):
    for placement in A100.placements("all"):
        made = driver.create(GPU, placement)
        assert (made.profile, made.start, made.size) == (placement.profile.name, *placement.shape[:2])
        assert (made.uuid[:4], driver.instances(GPU)) == ("MIG-", (made,))
        assert all(made.at(other) == (other.shape == placement.shape) for other in A100.placements("all"))
        driver.destroy(GPU, made.number)
        assert driver.instances(GPU) == ()
    assert machine.instances(1) == []


def test_gpus_are_found_by_number_uuid_and_address(machine, driver):
    found = driver.device("1")
    assert (found.uuid, found.name, found.mig, found.trouble()) == (GPU, "NVIDIA A100-PCIE-40GB", True, "")
    assert driver.device(GPU) == driver.device("00000000:08:00.0") == driver.device("0000:08:00.0") == found
    with pytest.raises(DriverError, match=r"there is no GPU 7; this machine has: 0 \(NVIDIA A30"):
        driver.device("7")
    machine.renumber(1, 0)
    assert driver.device("0").uuid == GPU


def test_numbers_that_shift_do_no_harm(machine, driver):
    made = driver.create(GPU, A100.placement("2g.10gb", 2))
    other = driver.create(GPU, A100.placement("1g.5gb", 0))
    machine.renumber(1, 0)
    driver.destroy(GPU, made.number)
    assert driver.instances(GPU) == (other,)


@pytest.mark.parametrize(
    ("fault", "cause", "remedy"),
    [
        ("no-permission", "no permission", "by root only; use sudo"),
        ("lost", "lost", "does not answer any more; restart the machine"),
    ],
)
def test_refusals_for_good(machine, driver, fault, cause, remedy):
    machine.fault(fault, -1, gpu=1)
    with pytest.raises(DriverError, match=remedy) as error:
        driver.create(GPU, A100.placement("7g.40gb", 0))
    assert error.value.cause == cause


@pytest.mark.parametrize(
    ("current", "pending", "remedy"), [(0, 0, f"-i {GPU} -mig 1"), (0, 1, "only after a reset"), (1, 0, "keep it with")]
)
def test_mig_mode(machine, driver, current, pending, remedy):
    machine.mode(1, current, pending)
    assert remedy in driver.device("1").trouble()
    if not current:
        with pytest.raises(DriverError, match="MIG mode is off") as error:
            driver.create(GPU, A100.placement("7g.40gb", 0))
        assert error.value.cause == "no mig"


@pytest.mark.parametrize("mib", [1, 0])
def test_an_instance_of_somebody_else_is_left_alone_and_named(machine, driver, mib):
    uuid = machine.add(1, "2g.10gb", 2, pid=4711, mib=mib)
    with pytest.raises(DriverError) as error:
        driver.create(GPU, A100.placement("3g.20gb", 0))
    assert error.value.cause == "in the way"
    assert f"2g.10gb at slice 2 ({uuid}, used by process 4711)" in str(error.value)
    assert [each.uuid for each in machine.instances(1)] == [uuid]


def test_refusals_for_a_while_are_waited_for(machine, driver, waited):
    machine.fault("insufficient", 3, gpu=1)
    made = driver.create(GPU, A100.placement("3g.20gb", 0))
    assert waited == [1, 2, 4]
    machine.fault("in-use", 4, gpu=1)
    driver.destroy(GPU, made.number)
    assert waited[3:] == [1, 2, 4, 8]


def test_a_gpu_instance_without_compute_instance_is_taken_back(machine, driver):
    machine.fault("no-compute", 2, gpu=1)
    made = driver.create(GPU, A100.placement("3g.20gb", 4))
    assert [line[0] for line in machine.log] == ["create", "destroy", "create", "destroy", "create", "compute"]
    assert machine.instances(1) == [("3g.20gb", 4, made.uuid, made.number)]
    driver.destroy(GPU, made.number)
    machine.fault("no-compute", -1, gpu=1)
    with pytest.raises(DriverError, match="no room"):
        driver.create(GPU, A100.placement("3g.20gb", 4))
    assert machine.instances(1) == []


def test_who_holds_an_instance_is_named(machine, driver, waited, tmp_path):
    made = driver.create(GPU, A100.placement("1g.5gb", 3))
    machine.fault("in-use", -1, gpu=1)
    program(tmp_path, 99, "dcgm-exporter")
    program(tmp_path, 100, "nvidia_gpu_exporter")
    program(tmp_path, 98, "python3")
    with pytest.raises(DriverError) as error:
        driver.destroy(GPU, made.number)
    holders = "DCGM exporter (process 99), nvidia_gpu_exporter (process 100)"
    assert f"still in use; stop {holders}, then resume" in str(error.value)
    assert sum(waited) == 30


def test_a_destruction_that_lingers(machine, driver, waited):
    made = driver.create(GPU, A100.placement("7g.40gb", 0))
    machine.fault("linger", seconds=5, gpu=1)
    driver.destroy(GPU, made.number)
    assert sum(waited) >= 5
    driver.create(GPU, A100.placement("3g.20gb", 0))
    machine.fault("linger", seconds=1e9, gpu=1)
    with pytest.raises(DriverError, match="says that instance 5 is destroyed, but still lists it"):
        driver.destroy(GPU, 5)


def test_another_kind_of_gpu(driver):
    h100 = get_gpu("H100")
    assert driver.check(GPU, A100.placements()) == []
    assert driver.check(GPU, [h100.placement("7g.80gb", 0)]) == []  # as large, by its number: names drift
    (problem,) = driver.check(Machine.uuid(0), [A100.placement("3g.20gb", 0)])
    assert "the driver has no profile 3g.20gb, only: 1g.6gb, 2g.12gb, 4g.24gb" in problem


@pytest.mark.parametrize(
    ("name", "words", "owner", "instead"),
    [
        ("gpu-kubelet-plugin", " -v 4", "NVIDIA's DRA driver owns", "mig-opt defragment"),
        ("vGPUmonitor", "", "HAMi owns", "mig-opt defragment"),
        ("nvidia-device-plugin", " --config-file=/device-config.yaml", "HAMi owns", "drain the node"),
        ("nvidia-mig-manager", "", "MIG manager owns", "nvidia.com/gpu.deploy.mig-manager=false"),
        ("nvidia-device-plugin", " --mig-strategy=mixed", "", ""),
        ("compute-domain-kubelet-plugin", "", "", ""),
    ],
)
def test_programs_that_own_partitions(tmp_path, name, words, owner, instead):
    assert owner_of_partitions(tmp_path) == ""
    program(tmp_path, 7, name)
    (tmp_path / "proc/7/cmdline").write_bytes(f"{name}{words}".replace(" ", "\0").encode() + b"\0")
    found = owner_of_partitions(tmp_path)
    assert (owner in found) if owner else (found == "")
    assert instead in found


def test_a_plugin_of_which_only_the_socket_is_seen():
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as plugin:  # paths must be short
        root = Path(folder)
        path = root / "var/lib/kubelet/plugins/gpu.nvidia.com/dra.sock"
        path.parent.mkdir(parents=True)
        assert owner_of_partitions(root) == ""
        plugin.bind(str(path))
        assert owner_of_partitions(root) == ""  # left by one that was killed: nobody answers
        plugin.listen()
        assert owner_of_partitions(root).startswith("NVIDIA's DRA driver owns the partitions of this node")


def test_nothing_of_the_tests_gpu_is_left_for_others(tmp_path, monkeypatch):
    import pynvml

    monkeypatch.chdir(tmp_path)
    (tmp_path / "machine").mkdir()
    with Machine(tmp_path / "machine", "A30").loaded():
        pynvml.nvmlInit()  # and nobody shuts it down
        assert pynvml.nvmlDeviceGetCount() == 1
    before = sorted(tmp_path.iterdir())
    with pytest.raises(pynvml.NVMLError_Uninitialized):
        pynvml.nvmlDeviceGetCount()
    with pytest.raises(DriverError, match="load NVIDIA's driver"), Nvml():
        pass
    assert sorted(tmp_path.iterdir()) == before


def test_without_driver_or_bindings(tmp_path, monkeypatch):
    program = "from mig_opt.operations.driver.nvml import Nvml\nwith Nvml(): pass"
    if find_library("nvidia-ml"):
        pytest.skip("this machine has a driver")
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "there is no libnvidia-ml.so.1: install NVIDIA's driver" in found.stderr
    monkeypatch.setitem(sys.modules, "pynvml", None)
    refused(Nvml, match=r'pip install "mig-opt\[nvml\]"')
