"""Batches and demands to try things on: bundled ones with measured figures, and a generator of synthetic batches."""

from __future__ import annotations

from mig_opt.instances.batch import (
    SCALINGS,
    TIME_RANGES,
    VARIANTS,
    ScalingName,
    TimesName,
    Variant,
    generate_batch,
    scaling_shares,
    task_counts,
)
from mig_opt.instances.bundled import (
    BestKnown,
    FewestGpus,
    Finding,
    InstanceInfo,
    InstanceKind,
    instance_info,
    instance_names,
    load_demand,
    load_instance,
)
from mig_opt.instances.recording import record_best_known

__all__ = [
    "SCALINGS",
    "TIME_RANGES",
    "VARIANTS",
    "BestKnown",
    "FewestGpus",
    "Finding",
    "InstanceInfo",
    "InstanceKind",
    "ScalingName",
    "TimesName",
    "Variant",
    "generate_batch",
    "instance_info",
    "instance_names",
    "load_demand",
    "load_instance",
    "record_best_known",
    "scaling_shares",
    "task_counts",
]
