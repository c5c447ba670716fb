"""The instances of this machine, as its driver tells them."""

from __future__ import annotations

from mig_opt.operations.driver import MigInstance, Nvml
from mig_opt.operations.observe.sightings import SeenInstance, Sightings


def read_nvml(seen: Sightings) -> None:
    """Add what NVML tells of this machine.

    Raises
    ------
    InputError, DriverError
        Without the bindings, and if the driver cannot be asked.
    """
    with Nvml() as driver:
        for device in driver.devices():
            where = f"GPU {device.index}"
            seen.gpu("", device.index, where, product=device.name, uuid=device.uuid, mig=bool(device.mig))
            if device.mig is not None and device.mig_pending != device.mig:
                seen.pending("", device.index, mig=device.mig)
            if device.mig:
                seen.instances += (_instance(device.index, held) for held in driver.instances(device.uuid))


def _instance(gpu: int, held: MigInstance) -> SeenInstance:
    return SeenInstance(
        *("", gpu, f"instance {held.number} of GPU {gpu}", held.profile),
        start=held.start,
        slices=held.size,
        instance=held.number,
        uuid=held.uuid,
        name=", ".join(f"pid {process}" for process in held.processes),
        idle=not held.processes,
    )
