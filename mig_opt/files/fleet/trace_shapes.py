"""The shape of the files of traces: their keys, their types, and what their JSON Schema says about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from mig_opt.arguments import MOST_GPUS
from mig_opt.fleet.trace import PCIE_LIMIT, Job
from mig_opt.gpu.model import OperationCosts

_JOB = {"name": "train", "arrival": 12.0, "times": {"2": 30.0}, "profile": "2g.10gb"}


@dataclass(frozen=True, slots=True)
class TraceFile:
    """Jobs that arrive over time at a fleet of identical MIG GPUs."""

    schema: Literal["mig-opt/trace/1"]
    gpu: str
    jobs: tuple[Job, ...]
    gpus: int = 1
    operations: OperationCosts | None = None
    pcie_limit: float = PCIE_LIMIT


TRACE_KEYWORDS: dict[type, dict[str, dict[str, Any]]] = {
    TraceFile: {
        "schema": {"description": "Name and version of the format.", "examples": ["mig-opt/trace/1"]},
        "gpu": {"description": "Name of the GPU in the catalogue, or a short alias.", "examples": ["A100-40GB", "A30"]},
        "jobs": {
            "description": "What arrives, in any order. Names must be unique.",
            "minItems": 1,
            "examples": [[_JOB]],
        },
        "gpus": {"description": "How many GPUs there are.", "minimum": 1, "maximum": MOST_GPUS},
        "operations": {"description": "Seconds per creation and destruction; default: the GPU's own table."},
        "pcie_limit": {"description": "GB/s that the PCIe link of each GPU carries.", "exclusiveMinimum": 0},
    },
    Job: {
        "name": {"description": "Unique in its trace.", "minLength": 1, "pattern": r"\S", "examples": ["train"]},
        "arrival": {"description": "Seconds after the start of the trace.", "minimum": 0, "examples": [12.0]},
        "times": {
            "description": "Seconds alone on a GPU, by number of compute slices of the instance. On a size that is "
            "left out the job cannot run. The GPU must have the sizes.",
            "patternProperties": {"^[1-9][0-9]?$": {"type": "number", "exclusiveMinimum": 0}},
            "additionalProperties": False,
            "minProperties": 1,
            "examples": [{"2": 30.0}],
        },
        "profile": {"description": "Profile that it asks for; its size is one of times. Default: any that fits."},
        "memory_gb": {"description": "Most memory in GB that it needs at any moment.", "exclusiveMinimum": 0},
        "memory_growth": {
            "description": "From a share of its work on (0 to 1, rising) it needs so many GB; default: memory_gb from "
            "the start.",
            "items": {
                "type": "array",
                "prefixItems": [
                    {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
                    {"type": "number", "exclusiveMinimum": 0},
                ],
                "minItems": 2,
                "maxItems": 2,
            },
        },
        "pcie_gbps": {"description": "PCIe bandwidth in GB/s that it uses when it runs alone.", "minimum": 0},
        "sensitivity": {
            "description": "By how much it slows down for each share of the PCIe limit that is asked for.",
            "minimum": 0,
        },
    },
}
"""For each kind of object and each of its keys: keywords of JSON Schema beside those that follow from the type."""
