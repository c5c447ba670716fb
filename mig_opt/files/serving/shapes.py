"""The shape of the files about services: their keys, their types, and what their JSON Schemas say about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mig_opt.result import Status
from mig_opt.serving.demand import MOST_REPLICAS, Service
from mig_opt.serving.profile_table import Point

WHOLE = ""
"""In place of a key: keywords of the object itself."""


@dataclass(frozen=True, slots=True)
class TableEntry:
    """What a model achieves on the instances of one kind of GPU."""

    model: str
    points: tuple[Point, ...]
    gpu: str | None = None
    memory_gb: float | None = None


@dataclass(frozen=True, slots=True)
class PoolEntry:
    """GPUs of one kind that may be used."""

    gpu: str
    count: int | None = None


@dataclass(frozen=True, slots=True)
class SegmentEntry:
    """An instance that serves a service."""

    service: str
    gpu: int
    profile: str
    start: int
    batch: int
    processes: int
    throughput: float | None = None
    latency: float | None = None


@dataclass(frozen=True, slots=True)
class ServicesFile:
    """Services that have to be served within their limits of latency with as few GPUs as possible."""

    schema: Literal["mig-opt/services/1"]
    services: tuple[Service, ...]
    gpu: str | None = None
    pools: tuple[PoolEntry, ...] | None = None
    slo_share: float = 0.5
    whole_ms: bool = False
    max_processes: int | None = None
    profiles: tuple[TableEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class ProfilesFile:
    """What models achieve on instances of each size."""

    schema: Literal["mig-opt/profiles/1"]
    profiles: tuple[TableEntry, ...]
    gpu: str | None = None


@dataclass(frozen=True, slots=True)
class DeploymentFile:
    """Which instances serve which service, and where they are."""

    schema: Literal["mig-opt/deployment/1"]
    gpus: tuple[str, ...]
    segments: tuple[SegmentEntry, ...]


@dataclass(frozen=True, slots=True)
class DeploymentResultFile:
    """How a method ended, the deployment that it found and what it proved."""

    schema: Literal["mig-opt/deployment-result/1"]
    status: Status
    method: str
    lower_bound: int
    runtime_s: float
    deployment: DeploymentFile | None
    gpus: int | None = None
    compute_slices: int | None = None
    reason: str = ""
    proven: tuple[str, ...] = ()
    seed: int = 0
    versions: Mapping[str, str] = field(default_factory=dict)


_COUNTED: dict[str, Any] = {"minimum": 1, "maximum": 2**31 - 1}
_POINT = {"size": 1, "batch": 8, "processes": 2, "throughput": 128.69, "latency": 0.124}
_SERVICE = {"name": "chat", "model": "bert", "slo": 0.4, "rate": 250}
_GPU = {"description": "Name of the GPU in the catalogue, or a short alias.", "examples": ["A100-80GB"]}

SERVING_KEYWORDS: dict[type, dict[str, dict[str, Any]]] = {
    ServicesFile: {
        "schema": {"description": "Name and version of the format.", "examples": ["mig-opt/services/1"]},
        "services": {
            "description": "What is to be served. Names must be unique.",
            "minItems": 1,
            "examples": [[_SERVICE]],
        },
        "gpu": {**_GPU, "description": "The only kind of GPU, as many as it takes; else pools."},
        "pools": {"description": "The kinds of GPUs that may be used; each kind once.", "minItems": 1},
        "slo_share": {
            "description": "Share of the SLO that latency may take; the rest is for requests that wait for a batch.",
            "exclusiveMinimum": 0,
            "maximum": 1,
        },
        "whole_ms": {
            "description": "Whether the SLO is cut to whole milliseconds and latency must be below the share of it."
        },
        "max_processes": {
            "description": "Most processes that may share an instance; default: all that the profiles have.",
            **_COUNTED,
        },
        "profiles": {
            "description": "What the models achieve; one for each model and kind of GPU. "
            "May be left out where profiles are given from elsewhere."
        },
        WHOLE: {
            "oneOf": [
                {"required": ["gpu"], "properties": {"gpu": {"type": "string"}}},
                {"required": ["pools"], "properties": {"pools": {"type": "array"}}},
            ]
        },
    },
    Service: {
        "name": {"description": "Unique in its file.", "minLength": 1, "pattern": r"\S", "examples": ["chat"]},
        "slo": {
            "description": "Seconds within which a request must be answered.",
            "exclusiveMinimum": 0,
            "examples": [0.4],
        },
        "rate": {"description": "Requests per second.", "exclusiveMinimum": 0, "examples": [250]},
        "model": {"description": "Model of the profiles; default: the one called like the service."},
        "min_replicas": {"description": "Segments that it needs at least.", "minimum": 1, "maximum": MOST_REPLICAS},
    },
    PoolEntry: {
        "gpu": _GPU,
        "count": {"description": "How many there are; default: as many as it takes.", **_COUNTED},
    },
    TableEntry: {
        "model": {"description": "Name of the model.", "minLength": 1, "pattern": r"\S", "examples": ["bert"]},
        "gpu": {**_GPU, "description": "The kind of GPU; default: the only one that the file names."},
        "memory_gb": {
            "description": "Memory in GB that the model needs; instances with less are forbidden.",
            "exclusiveMinimum": 0,
        },
        "points": {
            "description": "What was measured. Ways that did not run have no point.",
            "minItems": 1,
            "examples": [[_POINT]],
        },
    },
    Point: {
        "size": {"description": "Compute slices of the instance.", **_COUNTED, "examples": [1]},
        "batch": {"description": "Requests that each process answers together.", **_COUNTED, "examples": [8]},
        "processes": {"description": "Processes that share the instance.", **_COUNTED, "examples": [2]},
        "throughput": {
            "description": "Requests per second of all processes together.",
            "exclusiveMinimum": 0,
            "examples": [128.69],
        },
        "latency": {
            "description": "Seconds from the begin of a batch to its end.",
            "exclusiveMinimum": 0,
            "examples": [0.124],
        },
    },
    ProfilesFile: {
        "schema": {"description": "Name and version of the format.", "examples": ["mig-opt/profiles/1"]},
        "gpu": {**_GPU, "description": "The GPU of the profiles that do not name one."},
        "profiles": {
            "description": "One for each model and kind of GPU.",
            "minItems": 1,
            "examples": [[{"model": "bert", "gpu": "A100-80GB", "points": [_POINT]}]],
        },
    },
    DeploymentFile: {
        "schema": {"description": "Name and version of the format.", "examples": ["mig-opt/deployment/1"]},
        "gpus": {
            "description": "Name of each GPU in the catalogue, or a short alias.",
            "examples": [["A100-80GB"]],
        },
        "segments": {"description": "In any order.", "examples": [[]]},
    },
    SegmentEntry: {
        "service": {"description": "Name of the service.", "examples": ["chat"]},
        "gpu": {"description": "Index of the GPU, from 0.", "minimum": 0, "examples": [0]},
        "profile": {"description": "Profile name of the instance.", "examples": ["3g.40gb"]},
        "start": {"description": "First memory slice of the instance.", "examples": [4]},
        "batch": {"description": "Requests that each process answers together.", "examples": [8]},
        "processes": {"description": "Processes that share the instance.", "examples": [2]},
        "throughput": {"description": "Requests per second of all processes together; null or left out: not known."},
        "latency": {"description": "Seconds from the begin of a batch to its end; null or left out: not known."},
    },
    DeploymentResultFile: {
        "schema": {"description": "Name and version of the format.", "examples": ["mig-opt/deployment-result/1"]},
        "status": {"description": "How the run of the method ended.", "examples": ["optimal"]},
        "method": {"description": "The method that ran.", "examples": ["exact"]},
        "gpus": {"description": "GPUs with a segment; null without a deployment."},
        "lower_bound": {"description": "No deployment has fewer GPUs; 0 if that is not known.", "examples": [2]},
        "compute_slices": {"description": "Compute slices of all segments; null without a deployment."},
        "runtime_s": {"description": "Wall-clock seconds.", "examples": [0.5]},
        "deployment": {"description": "The best deployment; null if there is none.", "examples": [None]},
        "reason": {"description": "Why the lower bound holds, or why there is no deployment."},
        "proven": {"description": "The goals in which nothing is better, each given those before it."},
        "seed": {"description": "The seed that was used."},
        "versions": {"description": "Versions of the programs that ran."},
    },
}
"""For each kind of object and each of its keys: keywords of JSON Schema beside those that follow from the type."""
