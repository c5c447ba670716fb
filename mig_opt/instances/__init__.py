"""Batches to try things on: bundled ones with measured times, and a generator of synthetic ones."""

from __future__ import annotations

from mig_opt.instances.best_known import BestKnown, Finding
from mig_opt.instances.bundled import InstanceInfo, instance_info, instance_names, load_instance
from mig_opt.instances.generator import (
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
from mig_opt.instances.recording import record_best_known

__all__ = [
    "SCALINGS",
    "TIME_RANGES",
    "VARIANTS",
    "BestKnown",
    "Finding",
    "InstanceInfo",
    "ScalingName",
    "TimesName",
    "Variant",
    "generate_batch",
    "instance_info",
    "instance_names",
    "load_instance",
    "record_best_known",
    "scaling_shares",
    "task_counts",
]
