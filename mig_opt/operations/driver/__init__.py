"""The driver of NVIDIA's GPUs: MIG instances that exist, and their creation and destruction through NVML."""

from mig_opt.operations.driver.instances import Device, DriverProfile, MigInstance, Patience
from mig_opt.operations.driver.nvml import Nvml
from mig_opt.operations.driver.surroundings import monitors, owner_of_partitions, slurm_in_the_way

__all__ = [
    "Device",
    "DriverProfile",
    "MigInstance",
    "Nvml",
    "Patience",
    "monitors",
    "owner_of_partitions",
    "slurm_in_the_way",
]
