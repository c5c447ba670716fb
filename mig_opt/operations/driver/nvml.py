"""Creation, destruction and listing of MIG instances through NVML, by NVIDIA's own bindings ``nvidia-ml-py``.

GPUs are addressed by UUID: their numbers, and those of MIG devices, shift. A placement is passed by reference. The
number of a profile is asked for: it is not its place in NVML's list.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from ctypes import byref, c_uint
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from mig_opt.errors import DriverError, InputError, Problem
from mig_opt.gpu.model import Placement, Profile
from mig_opt.operations.driver.instances import Device, DriverProfile, MigInstance, Patience
from mig_opt.operations.driver.surroundings import monitors

T = TypeVar("T")

_GPU_KINDS, _COMPUTE_KINDS = range(24), range(12)
"""Places in NVML's lists of profiles; newer drivers have more of them than older bindings know."""

_MOST_INSTANCES = 64
_UNFINISHED = ("insufficient resources", "in use", "not found", "lingering", "unknown")
"""Refusals of a driver that has not yet finished with something else."""


class Nvml:
    """The driver of this machine, for ``with`` statements; other processes are looked for below the folder ``root``.

    InputError is raised where NVIDIA's bindings are not installed.
    """

    def __init__(
        self,
        patience: Patience = Patience(),  # noqa: B008 - never changes
        *,
        sleep: Callable[[float], object] = time.sleep,
        root: Path = Path("/"),
    ) -> None:
        try:
            import pynvml
        except ImportError:
            missing = 'needs nvidia-ml-py; install it with: pip install "mig-opt[nvml]"'
            raise InputError([Problem("", missing)]) from None
        self._nvml: Any = pynvml
        self._patience, self._sleep, self._root = patience, sleep, root
        self._known: dict[str, list[tuple[Any, str]]] = {}

    def __enter__(self) -> Nvml:
        with self._told(""):
            self._nvml.nvmlInit()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(self._nvml.NVMLError):
            self._nvml.nvmlShutdown()

    @contextlib.contextmanager
    def _told(self, gpu: str) -> Iterator[None]:
        """Let errors of NVML say how to mend them; ``gpu`` is the UUID of the GPU that they are about."""
        nvml = self._nvml
        try:
            yield
        except nvml.NVMLError as error:
            off = f"it has no MIG, or MIG mode is off; enable it with: nvidia-smi -i {gpu} -mig 1"
            absent = "there is no libnvidia-ml.so.1: install NVIDIA's driver, or run this on the machine with the GPU"
            updated = "driver and library have different versions, after an update; restart the machine"
            cause, remedy = {
                nvml.NVML_ERROR_NO_PERMISSION: ("no permission", "instances are managed by root only; use sudo"),
                nvml.NVML_ERROR_NOT_SUPPORTED: ("no mig", off),
                nvml.NVML_ERROR_LIBRARY_NOT_FOUND: ("no driver", absent),
                nvml.NVML_ERROR_DRIVER_NOT_LOADED: ("no driver", "load NVIDIA's driver: sudo modprobe nvidia"),
                nvml.NVML_ERROR_GPU_IS_LOST: ("lost", "the GPU does not answer any more; restart the machine"),
                nvml.NVML_ERROR_RESET_REQUIRED: ("reset", f"reset it with: nvidia-smi -i {gpu} --gpu-reset"),
                nvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: ("no driver", updated),
                nvml.NVML_ERROR_IN_USE: ("in use", "something still uses the instance"),
                nvml.NVML_ERROR_INSUFFICIENT_RESOURCES: ("insufficient resources", "there is no room for it"),
                nvml.NVML_ERROR_NOT_FOUND: ("not found", "it does not exist (any more)"),
            }.get(error.value, ("unknown", f"NVML's error {error.value}"))
            about = f"GPU {gpu}: " if gpu else ""
            text = str(error).strip()
            said = text if text[1:2].isupper() else text[:1].lower() + text[1:]  # "NVML Shared Library Not Found" stays
            raise DriverError(cause, f"{about}{said}: {remedy}") from error

    # GPUs

    def version(self) -> str:
        """Return the version of the driver."""
        with self._told(""):
            return str(self._nvml.nvmlSystemGetDriverVersion())

    def devices(self) -> tuple[Device, ...]:
        """Return the GPUs of the machine, those that are lost included."""
        with self._told(""):
            return tuple(map(self._device, range(self._nvml.nvmlDeviceGetCount())))

    def _device(self, index: int) -> Device:
        nvml = self._nvml
        mig: tuple[bool | None, bool] = None, False
        try:
            with self._told(""):
                handle = nvml.nvmlDeviceGetHandleByIndex(index)
                with contextlib.suppress(nvml.NVMLError_NotSupported):
                    current, pending = nvml.nvmlDeviceGetMigMode(handle)
                    mig = bool(current), bool(pending)
                bus = nvml.nvmlDeviceGetPciInfo(handle).busId
                return Device(nvml.nvmlDeviceGetUUID(handle), index, nvml.nvmlDeviceGetName(handle), bus, *mig)
        except DriverError as error:
            return Device("", index, "", "", None, mig_pending=False, lost=str(error))

    def device(self, identifier: str) -> Device:
        """Return the GPU with a number, UUID or PCI address; without one the DriverError lists those that there are."""
        there = self.devices()
        for each in there:
            names = {str(each.index), each.uuid.lower(), each.bus.lower(), each.bus.lower()[4:]}
            if identifier.lower() in names and each.lost:
                raise DriverError("lost", each.lost)
            if identifier.lower() in names:
                return each
        known = ", ".join(f"{one.index} ({one.lost or f'{one.name}, {one.uuid}'})" for one in there) or "none at all"
        raise DriverError("not found", f"there is no GPU {identifier}; this machine has: {known}")

    def _handle(self, gpu: str) -> Any:
        return self._nvml.nvmlDeviceGetHandleByUUID(gpu)

    # Instances

    def instances(self, gpu: str) -> tuple[MigInstance, ...]:
        """Return the instances on the GPU with UUID ``gpu``, by first slice."""
        nvml = self._nvml
        with self._told(gpu):
            handle = self._handle(gpu)
            found = []
            for kind, name in self._kinds(gpu):
                for instance in _listed(nvml.c_nvmlGpuInstance_t, nvml.nvmlDeviceGetGpuInstances, handle, kind.id):
                    with contextlib.suppress(nvml.NVMLError_NotFound):
                        found.append(self._instance(gpu, instance, name))
            return tuple(sorted(found, key=lambda each: each.start))

    def _kinds(self, gpu: str) -> list[tuple[Any, str]]:
        """Return what the driver says of each profile of a GPU, and its name."""
        if not self._known.get(gpu):
            nvml, handle, self._known[gpu] = self._nvml, self._handle(gpu), []
            for kind in _GPU_KINDS:
                with contextlib.suppress(nvml.NVMLError_NotSupported, nvml.NVMLError_InvalidArgument):
                    info = nvml.nvmlDeviceGetGpuInstanceProfileInfo(handle, kind)
                    self._known[gpu].append((info, info.name.removeprefix("MIG ")))
        return self._known[gpu]

    def profiles(self, gpu: str) -> tuple[DriverProfile, ...]:
        """Return the profiles that instances on the GPU with UUID ``gpu`` can have, MIG mode on."""
        with self._told(gpu):
            found = []
            for info, name in self._kinds(gpu):
                starts, size = self._places(gpu, info.id)
                figures = info.id, info.instanceCount, info.memorySizeMB, info.multiprocessorCount
                found.append(DriverProfile(name, *figures, tuple(sorted(starts)), size))
            if not found:
                raise self._nvml.NVMLError(self._nvml.NVML_ERROR_NOT_SUPPORTED)
            return tuple(found)

    def _instance(self, gpu: str, handle: Any, name: str) -> MigInstance:
        nvml = self._nvml
        info = nvml.nvmlGpuInstanceGetInfo(handle)
        uuids: list[str] = []
        running: list[set[int]] = []
        for compute in self._computes(handle):
            device = nvml.nvmlComputeInstanceGetInfo(compute).device
            uuids.append(nvml.nvmlDeviceGetUUID(device))
            with contextlib.suppress(nvml.NVMLError):
                there = {process.pid for process in nvml.nvmlDeviceGetComputeRunningProcesses(device)}
                with contextlib.suppress(nvml.NVMLError_NotSupported, nvml.NVMLError_FunctionNotFound):
                    there |= {process.pid for process in nvml.nvmlDeviceGetGraphicsRunningProcesses(device)}
                running.append(there)
        processes = tuple(sorted(set().union(*running))) if len(running) == len(uuids) else None
        place, uuid = info.placement, uuids[0] if len(uuids) == 1 else ""
        return MigInstance(gpu, info.id, name, place.start, place.size, uuid, len(uuids), processes)

    def _computes(self, instance: Any) -> Iterator[Any]:
        """Yield the handles of the compute instances of a GPU instance."""
        nvml = self._nvml
        for kind in _COMPUTE_KINDS:
            with contextlib.suppress(
                nvml.NVMLError_NotSupported, nvml.NVMLError_InvalidArgument, nvml.NVMLError_NotFound
            ):
                profile = nvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, kind, 0).id
                there = nvml.nvmlGpuInstanceGetComputeInstances
                yield from _listed(nvml.c_nvmlComputeInstance_t, there, instance, profile)

    def check(self, gpu: str, placements: Sequence[Placement]) -> list[str]:
        """Return why the driver could not create instances at these placements, whatever exists at the moment."""
        problems = []
        with self._told(gpu):
            for placement in dict.fromkeys(placements):
                try:
                    starts, size = self._places(gpu, self._profile(gpu, placement.profile))
                except DriverError as error:
                    problems.append(str(error))
                    continue
                if placement.start not in starts or size != placement.profile.memory_slices:
                    wanted = f"{placement.profile.name} of {placement.profile.memory_slices} memory slices"
                    problems.append(f"{wanted} cannot start at slice {placement.start}; is it another kind of GPU?")
        return list(dict.fromkeys(problems))

    def _profile(self, gpu: str, profile: Profile) -> int:
        """Return the driver's number of a profile: that of the same name, else that of the same number and size."""
        kinds = self._kinds(gpu)
        if not kinds:
            self._nvml.nvmlDeviceGetMigMode(self._handle(gpu))  # a GPU that does not answer says why
            raise self._nvml.NVMLError(self._nvml.NVML_ERROR_NOT_SUPPORTED)
        alike = [(kind.id, name) for kind, name in kinds if kind.sliceCount == profile.compute_slices]
        named = [number for number, name in alike if name == profile.name]
        found = named or [number for number, _ in alike if number == profile.id]
        if not found:
            known = ", ".join(name for _, name in kinds)
            raise DriverError("not found", f"the driver has no profile {profile.name}, only: {known}")
        return int(found[0])

    def _places(self, gpu: str, number: int) -> tuple[set[int], int]:
        """Return the first slices at which a profile can be, and its number of slices."""
        nvml = self._nvml
        possible = nvml.nvmlDeviceGetGpuInstancePossiblePlacements
        places = _listed(nvml.c_nvmlGpuInstancePlacement_t, possible, self._handle(gpu), number)
        return {place.start for place in places}, places[0].size if places else 0

    # Operations

    def create(self, gpu: str, placement: Placement) -> MigInstance:
        """Create an instance at a place, with one compute instance that fills it; without that it is destroyed again.

        If the driver still refuses when patience ends, the DriverError names what is in the way, which is left alone.
        """
        return self._patiently(partial(self._create_once, gpu, placement), partial(self._why_not, gpu, placement))

    def _create_once(self, gpu: str, placement: Placement) -> MigInstance:
        nvml, profile = self._nvml, placement.profile
        with self._told(gpu):
            number = self._profile(gpu, profile)
            where = nvml.c_nvmlGpuInstancePlacement_t(placement.start, profile.memory_slices)
            made = nvml.nvmlDeviceCreateGpuInstanceWithPlacement(self._handle(gpu), number, byref(where))
            instance = nvml.nvmlGpuInstanceGetInfo(made).id
        try:
            with self._told(gpu):
                compute = nvml.nvmlGpuInstanceCreateComputeInstance(made, self._filling(made, placement))
                uuid = nvml.nvmlDeviceGetUUID(nvml.nvmlComputeInstanceGetInfo(compute).device)
        except DriverError:
            self.destroy(gpu, instance)
            raise
        return MigInstance(gpu, instance, profile.name, placement.start, profile.memory_slices, uuid)

    def _filling(self, instance: Any, placement: Placement) -> int:
        """Return the profile of the compute instance that has all of a GPU instance."""
        nvml = self._nvml
        for kind in _COMPUTE_KINDS:
            with contextlib.suppress(nvml.NVMLError_NotSupported, nvml.NVMLError_InvalidArgument):
                info = nvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, kind, 0)
                if info.sliceCount == placement.profile.compute_slices:
                    return int(info.id)
        raise DriverError("not found", f"the driver has no compute instance that fills a {placement.profile.name}")

    def _why_not(self, gpu: str, placement: Placement, error: DriverError) -> DriverError:
        there = [each for each in self.instances(gpu) if each.overlaps(placement)]
        if error.cause != "insufficient resources" or not there:
            return error
        others = "; ".join(map(str, there))
        why = "cannot be created, since its slices are taken, and nothing is taken away"
        return DriverError("in the way", f"GPU {gpu}: {placement} {why}: {others}")

    def destroy(self, gpu: str, number: int) -> None:
        """Destroy a GPU instance, by its number, with its compute instances, and wait until it is gone.

        If it is still there when patience ends, the DriverError names the programs that keep GPUs open.
        """
        self._patiently(partial(self._destroy_once, gpu, number), partial(self._why_still, gpu, number))
        self._patiently(partial(self._check_gone, gpu, number), lambda error: error)

    def _check_gone(self, gpu: str, number: int) -> None:
        if any(each.number == number for each in self.instances(gpu)):
            message = f"GPU {gpu}: the driver says that instance {number} is destroyed, but still lists it"
            raise DriverError("lingering", f"{message}; reset the GPU, or restart the machine")

    def _destroy_once(self, gpu: str, number: int) -> None:
        nvml = self._nvml
        with self._told(gpu), contextlib.suppress(nvml.NVMLError_NotFound):  # gone is all that is wanted
            instance = nvml.nvmlDeviceGetGpuInstanceById(self._handle(gpu), number)
            for compute in list(self._computes(instance)):
                nvml.nvmlComputeInstanceDestroy(compute)
            nvml.nvmlGpuInstanceDestroy(instance)

    def _why_still(self, gpu: str, number: int, error: DriverError) -> DriverError:
        if error.cause != "in use":
            return error
        instance = next((each for each in self.instances(gpu) if each.number == number), None)
        holders = [f"process {pid}" for pid in instance.processes or ()] if instance else []
        holders += monitors(self._root)
        stop = f"stop {', '.join(holders)}" if holders else "stop monitoring tools (DCGM, exporters) on this machine"
        return DriverError("in use", f"GPU {gpu}: {instance or number} is still in use; {stop}, then resume")

    def _patiently(self, act: Callable[[], T], explained: Callable[[DriverError], DriverError]) -> T:
        """Return the value of an operation, which is tried again with growing waits; explain the last refusal."""
        waits = self._patience.waits()
        while True:
            try:
                return act()
            except DriverError as error:
                wait = next(waits, None)
                if error.cause not in _UNFINISHED or wait is None:
                    raise explained(error) from error
            self._sleep(wait)


def _listed(kind: Any, ask: Callable[..., object], *words: object) -> list[Any]:
    """Return the things of a kind that NVML lists when it is asked."""
    listed, count = (kind * _MOST_INSTANCES)(), c_uint(_MOST_INSTANCES)
    ask(*words, listed, byref(count))
    return list(listed[: count.value])
