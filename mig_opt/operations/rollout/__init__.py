"""Plans for the tools that carry them out: ``nvidia-mig-parted``, ``nvidia-smi`` in a script, Kubernetes."""

from mig_opt.operations.rollout.changes import change_script, migration_script
from mig_opt.operations.rollout.kubernetes import (
    KubernetesResources,
    MigPartedConfig,
    MigPartedEntry,
    ResourceRequest,
    kubernetes_resources,
    mig_parted_config,
)
from mig_opt.operations.rollout.nvidia_smi import deployment_script, schedule_script
from mig_opt.operations.rollout.slurm import slurm_change

__all__ = [
    "KubernetesResources",
    "MigPartedConfig",
    "MigPartedEntry",
    "ResourceRequest",
    "change_script",
    "deployment_script",
    "kubernetes_resources",
    "mig_parted_config",
    "migration_script",
    "schedule_script",
    "slurm_change",
]
