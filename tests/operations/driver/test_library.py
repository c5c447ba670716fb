"""The tests' GPU keeps the rules of the hardware, as the genuine bindings see them."""

from __future__ import annotations

import subprocess
import sys
from ctypes import byref, c_uint
from pathlib import Path

import pytest
from nvml_machine import Machine

from mig_opt.gpu.catalogue import catalogue, get_gpu

pynvml = pytest.importorskip("pynvml", reason="needs nvidia-ml-py")


@pytest.fixture
def machine(tmp_path: Path):
    with Machine(tmp_path, "A30", "A100").loaded() as found:
        pynvml.nvmlInit()
        yield found
        pynvml.nvmlShutdown()


def created(device, profile: int, start: int, size: int):
    return pynvml.nvmlDeviceCreateGpuInstanceWithPlacement(
        device, profile, byref(pynvml.c_nvmlGpuInstancePlacement_t(start, size))
    )


def refused(code: int, call, *arguments) -> None:
    with pytest.raises(pynvml.NVMLError) as error:
        call(*arguments)
    assert error.value.value == code


def test_the_number_of_a_profile_is_not_its_place_in_the_list(machine: Machine) -> None:
    device = pynvml.nvmlDeviceGetHandleByIndex(1)
    infos = [pynvml.nvmlDeviceGetGpuInstanceProfileInfo(device, kind) for kind in (0, 1, 2, 3, 4)]
    assert [info.id for info in infos] == [19, 14, 9, 5, 0]
    assert [info.name for info in infos][:2] == ["MIG 1g.5gb", "MIG 2g.10gb"]
    refused(pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.nvmlDeviceGetGpuInstanceProfileInfo, device, 5)


@pytest.mark.parametrize("name", [gpu.name for gpu in catalogue()])
def test_places_are_those_of_the_catalogue(tmp_path: Path, name: str) -> None:
    gpu = get_gpu(name)
    with Machine(tmp_path, name).loaded():
        pynvml.nvmlInit()
        device = pynvml.nvmlDeviceGetHandleByIndex(0)
        for profile in gpu.profiles:
            places = (pynvml.c_nvmlGpuInstancePlacement_t * 16)()
            count = c_uint(16)
            pynvml.nvmlDeviceGetGpuInstancePossiblePlacements(device, profile.id, places, byref(count))
            found = [(place.start, place.size) for place in places[: count.value]]
            assert found == [(start, profile.memory_slices) for start in profile.starts]
        pynvml.nvmlShutdown()


def test_instances_live_and_exclude_each_other(machine: Machine) -> None:
    device = pynvml.nvmlDeviceGetHandleByUUID(Machine.uuid(1))
    instance = created(device, 9, 4, 4)
    refused(pynvml.NVML_ERROR_INSUFFICIENT_RESOURCES, created, device, 0, 0, 8)
    refused(pynvml.NVML_ERROR_INVALID_ARGUMENT, created, device, 9, 2, 4)
    refused(pynvml.NVML_ERROR_INVALID_ARGUMENT, created, device, 9, 0, 3)
    compute = pynvml.nvmlGpuInstanceCreateComputeInstance(instance, 2)
    uuid = pynvml.nvmlDeviceGetUUID(pynvml.nvmlComputeInstanceGetInfo(compute).device)
    assert uuid.startswith("MIG-")
    assert machine.instances(1) == [("3g.20gb", 4, uuid, 5)]
    refused(pynvml.NVML_ERROR_IN_USE, pynvml.nvmlGpuInstanceDestroy, instance)
    pynvml.nvmlComputeInstanceDestroy(compute)
    pynvml.nvmlGpuInstanceDestroy(instance)
    assert machine.instances(1) == []
    assert [line[0] for line in machine.log] == ["create", "compute", "discompute", "destroy"]


def test_faults(machine: Machine) -> None:
    device = pynvml.nvmlDeviceGetHandleByIndex(0)
    for name, code in (("no-permission", 4), ("insufficient", 23), ("lost", 15)):
        machine.fault(name)
        refused(code, created, device, 0, 0, 4)
        machine.fault(name, 0)
    machine.set("clock", 100)
    machine.fault("linger", seconds=2)
    instance = created(device, 0, 0, 4)
    pynvml.nvmlGpuInstanceDestroy(instance)
    refused(pynvml.NVML_ERROR_INSUFFICIENT_RESOURCES, created, device, 5, 0, 2)
    machine.set("clock", 103)
    created(device, 5, 0, 2)
    machine.renumber(1, 0)
    assert pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(0)) == Machine.uuid(1)
    machine.mode(0, 0, 1)
    assert pynvml.nvmlDeviceGetMigMode(device) == [0, 1]
    machine.reboot()
    assert machine.instances(0) == []


def test_programs_find_it_through_the_library_path(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "H100")
    uuid = machine.add(0, "3g.40gb", 4, pid=17)
    program = f"""
import pynvml
pynvml.nvmlInit()
device = pynvml.nvmlDeviceGetHandleByUUID({uuid!r})
processes = pynvml.nvmlDeviceGetComputeRunningProcesses(device)
print(pynvml.nvmlDeviceGetGpuInstanceId(device), *[entry.pid for entry in processes])
"""
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, env=machine.environment, capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["40", "17"]
