"""Shape of each kind of file: its keys with their types and limits, and an example of each object.

Readers and JSON Schemas both follow from it. The parts of a file are mostly objects of the domain: their docstrings
describe the keys, and the limits that they check themselves stand here in the words of JSON Schema (:data:`KEYWORDS`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from mig_opt.arguments import MOST_GPUS, MOST_SEEDS
from mig_opt.batch.batch import Batch, LiveInstance, Task
from mig_opt.batch.certificate import Certificate, Claim, CriticalTask, SliceLoad
from mig_opt.batch.schedule import Operation, Run, Schedule
from mig_opt.errors import InputError, Problem
from mig_opt.files.documents import shown
from mig_opt.fleet.state import FleetState, HeldInstance
from mig_opt.fleet.trace import PCIE_LIMIT, Job, Trace
from mig_opt.gpu.model import OperationCosts
from mig_opt.result import DeploymentResult, Result, Status, TrajectoryPoint
from mig_opt.serving.demand import MOST_REPLICAS, Demand, GpuPool, Service
from mig_opt.serving.deployment import Deployment, Segment
from mig_opt.serving.profile_table import Point, ProfileTable
from mig_opt.study import (
    BatchFromFile,
    BundledBatch,
    GeneratedBatches,
    GeneratedTraces,
    MethodSettings,
    PolicySettings,
    Study,
    TraceFromFile,
)

Kind = Literal[
    "batch",
    "schedule",
    "result",
    "certificate",
    "study",
    "services",
    "profiles",
    "deployment",
    "deployment-result",
    "trace",
    "state",
]
Keywords = dict[str, Any]
"""Keywords of JSON Schema."""


@dataclass(frozen=True, slots=True)
class Whole:
    """Annotation of a whole number from ``least`` to ``most``, for readers and JSON Schemas."""

    least: int
    most: int

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> Keywords:
        return {**handler(schema), "minimum": self.least, "maximum": self.most}

    def _checked(self, value: int) -> int:
        if not self.least <= value <= self.most:
            raise InputError([Problem("", f"must be from {self.least} to {self.most}, is {shown(value)}")])
        return value


_ABOVE_0: Keywords = {"exclusiveMinimum": 0}
_FROM_0: Keywords = {"minimum": 0}
_FROM_1: Keywords = {"minimum": 1}
_COUNT: Keywords = {"minimum": 1, "maximum": 2**31 - 1}
_GPUS: Keywords = {"minimum": 1, "maximum": MOST_GPUS}
_SHARE: Keywords = {"minimum": 0, "maximum": 1}
_NAME: Keywords = {"minLength": 1, "pattern": r"\S"}

NotEmpty = Field(min_length=1)
Count = Annotated[int, Whole(1, 2**31 - 1)]
GpuCount = Annotated[int, Whole(1, MOST_GPUS)]
GpuName = Annotated[str, Field(description="Name of the GPU in the catalogue, or a short alias.")]
Seconds = Annotated[float, Field(description="Wall-clock seconds.")]
Versions = Mapping[str, str]

SIZE = "^[1-9][0-9]?$"
"""Pattern of a number of compute slices as a key."""


def _by_size(seconds: Keywords) -> Keywords:
    return {
        "patternProperties": {SIZE: {"type": "number", **seconds}},
        "additionalProperties": False,
        "minProperties": 1,
    }


# Files about batches


@dataclass(frozen=True, slots=True)
class BatchFile:
    """Tasks to be run on identical MIG GPUs so that the last one ends as early as possible."""

    schema: Literal["mig-opt/batch/1"]
    gpu: GpuName
    tasks: Annotated[tuple[Task, ...], NotEmpty]
    gpus: GpuCount = 1
    operations: OperationCosts | None = None
    initial: tuple[LiveInstance, ...] = ()
    parallel_operations: bool = False


@dataclass(frozen=True, slots=True)
class ScheduleFile:
    """When each task runs on which instance, and when the instances are created and destroyed."""

    schema: Literal["mig-opt/schedule/1"]
    runs: tuple[Run, ...]
    makespan: Annotated[float | None, Field(description="Seconds until the last run ends, as the file states it.")] = (
        None
    )
    operations: tuple[Operation, ...] | None = None


@dataclass(frozen=True, slots=True)
class PointEntry:
    """What was known at some moment of the run."""

    seconds: float
    makespan: Annotated[float | None, Field(description="Of the best schedule so far, in seconds; null: none yet.")]
    lower_bound: Annotated[float | None, Field(description="Best lower bound so far in seconds; null: infinite.")]


@dataclass(frozen=True, slots=True)
class ResultFile:
    """How a method ended, what it found and what it proved."""

    schema: Literal["mig-opt/result/1"]
    status: Status
    method: str
    lower_bound: Annotated[
        float | None, Field(description="Seconds; no schedule is shorter. null: infinite, there is no schedule.")
    ]
    runtime_s: Seconds
    schedule: Annotated[ScheduleFile | None, Field(description="The best schedule; null if there is none.")]
    makespan: Annotated[float | None, Field(description="Seconds, of the schedule; null without one.")] = None
    gap: Annotated[float | None, Field(description="(makespan - lower_bound) / makespan; null without one.")] = None
    seed: int = 0
    trajectory: tuple[PointEntry, ...] = ()
    versions: Versions = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CertificateFile:
    """A claim about schedules that are shorter than one, and the evidence for it."""

    schema: Literal["mig-opt/certificate/1"]
    claim: Claim
    batch: Annotated[str, Field(description="SHA-256 of the batch as canonical JSON, defaults spelled out.")]
    schedule: Annotated[str, Field(description="SHA-256 of the schedule as canonical JSON.")]
    makespan: float
    tick: str
    exact: bool
    within: float
    lower_bound: float
    slice_load: SliceLoad
    critical_task: CriticalTask
    method: str
    seed: int
    runtime_s: float
    versions: Versions
    interrupted: bool
    better: ScheduleFile | None
    digest: str


# Files about services


@dataclass(frozen=True, slots=True)
class TableEntry:
    """What a model achieves on the instances of one kind of GPU."""

    model: str
    points: Annotated[tuple[Point, ...], NotEmpty]
    gpu: Annotated[str | None, Field(description="The kind of GPU; default: the only one that the file names.")] = None
    memory_gb: float | None = None


@dataclass(frozen=True, slots=True)
class PoolEntry:
    """GPUs of one kind that may be used."""

    gpu: GpuName
    count: Count | None = None


@dataclass(frozen=True, slots=True)
class ServicesFile:
    """Services that have to be served within their limits of latency with as few GPUs as possible."""

    schema: Literal["mig-opt/services/1"]
    services: Annotated[tuple[Service, ...], NotEmpty]
    gpu: Annotated[str | None, Field(description="The only kind of GPU, as many as it takes; else pools.")] = None
    pools: Annotated[tuple[PoolEntry, ...] | None, NotEmpty] = None
    slo_share: Annotated[
        float,
        Field(
            description="Share of the SLO that latency may take; the rest is for requests that wait for a batch.",
            json_schema_extra={"exclusiveMinimum": 0, "maximum": 1},
        ),
    ] = 0.5
    whole_ms: Annotated[
        bool,
        Field(description="True if the SLO is cut to whole milliseconds and latency must be below the share of it."),
    ] = False
    max_processes: Count | None = None
    profiles: Annotated[
        tuple[TableEntry, ...],
        Field(
            description="What the models achieve; one for each model and kind of GPU. "
            "May be left out where profiles are given from elsewhere."
        ),
    ] = ()


@dataclass(frozen=True, slots=True)
class ProfilesFile:
    """What models achieve on instances of each size."""

    schema: Literal["mig-opt/profiles/1"]
    profiles: Annotated[tuple[TableEntry, ...], Field(min_length=1, description="One for each model and kind of GPU.")]
    gpu: Annotated[str | None, Field(description="The GPU of the profiles that do not name one.")] = None


@dataclass(frozen=True, slots=True)
class SegmentEntry:
    """An instance that serves a service."""

    service: str
    gpu: Annotated[int, Field(json_schema_extra={"minimum": 0})]
    profile: str
    start: int
    batch: int
    processes: int
    throughput: float | None = None
    latency: float | None = None


@dataclass(frozen=True, slots=True)
class DeploymentFile:
    """Which instances serve which service, and where they are."""

    schema: Literal["mig-opt/deployment/1"]
    gpus: Annotated[tuple[str, ...], Field(description="Name of each GPU in the catalogue, or a short alias.")]
    segments: tuple[SegmentEntry, ...]


@dataclass(frozen=True, slots=True)
class DeploymentResultFile:
    """How a method ended, the deployment that it found and what it proved."""

    schema: Literal["mig-opt/deployment-result/1"]
    status: Status
    method: str
    lower_bound: Annotated[int, Field(description="No deployment has fewer GPUs; 0 if that is not known.")]
    runtime_s: Seconds
    deployment: Annotated[DeploymentFile | None, Field(description="The best deployment; null if there is none.")]
    gpus: Annotated[int | None, Field(description="GPUs with a segment; null without a deployment.")] = None
    compute_slices: Annotated[
        int | None, Field(description="Compute slices of all segments; null without a deployment.")
    ] = None
    reason: str = ""
    proven: tuple[str, ...] = ()
    seed: int = 0
    versions: Versions = field(default_factory=dict)


# Files about fleets


@dataclass(frozen=True, slots=True)
class TraceFile:
    """Jobs that arrive over time at a fleet of identical MIG GPUs."""

    schema: Literal["mig-opt/trace/1"]
    gpu: GpuName
    jobs: Annotated[tuple[Job, ...], NotEmpty]
    gpus: GpuCount = 1
    operations: OperationCosts | None = None
    pcie_limit: Annotated[float, Field(json_schema_extra={"exclusiveMinimum": 0})] = PCIE_LIMIT


@dataclass(frozen=True, slots=True)
class StateFile:
    """Identical MIG GPUs and the instances on them at one moment."""

    schema: Literal["mig-opt/state/1"]
    gpu: GpuName
    instances: tuple[HeldInstance, ...]
    gpus: GpuCount = 1


# Studies


@dataclass(frozen=True, slots=True)
class StudyFile:
    """Batches with the methods that run on each of them, traces with the schedulers that run on each of them."""

    schema: Literal["mig-opt/study/1"]
    batches: Annotated[tuple[BundledBatch | BatchFromFile | GeneratedBatches, ...], NotEmpty] = ()
    methods: Annotated[tuple[MethodSettings, ...], NotEmpty] = ()
    repetitions: Annotated[int, Whole(1, 2**30 - 1)] = 1
    seed: Annotated[int, Whole(0, 2**30 - 1)] = 0
    fresh: bool = False
    traces: Annotated[tuple[TraceFromFile | GeneratedTraces, ...], NotEmpty] = ()
    policies: Annotated[tuple[PolicySettings, ...], NotEmpty] = ()


FILES: dict[Kind, type] = {
    "batch": BatchFile,
    "schedule": ScheduleFile,
    "result": ResultFile,
    "certificate": CertificateFile,
    "study": StudyFile,
    "services": ServicesFile,
    "profiles": ProfilesFile,
    "deployment": DeploymentFile,
    "deployment-result": DeploymentResultFile,
    "trace": TraceFile,
    "state": StateFile,
}

DESCRIBED_BY: dict[type, type] = {
    BatchFile: Batch,
    ScheduleFile: Schedule,
    PointEntry: TrajectoryPoint,
    Operation: Run,
    ResultFile: Result,
    CertificateFile: Certificate,
    TableEntry: ProfileTable,
    PoolEntry: GpuPool,
    ServicesFile: Demand,
    SegmentEntry: Segment,
    DeploymentFile: Deployment,
    DeploymentResultFile: DeploymentResult,
    TraceFile: Trace,
    StateFile: FleetState,
    StudyFile: Study,
}
"""The class of the domain whose docstring describes the keys of an object; by default its own."""

_PLACED: dict[str, Keywords] = {"gpu": _FROM_0, "start": _FROM_0}
_COMMON = {"gpu": {"description": "Name of the GPU, or a list of them."}, "gpus": _GPUS}
_SEEDS: Keywords = {
    "description": "How many seeds (0, 1, ...), or a list of them.",
    "default": 1,
    "anyOf": [
        {"type": "integer", "minimum": 1, "maximum": MOST_SEEDS},
        {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1},
    ],
}
KEYWORDS: dict[type, dict[str, Keywords]] = {
    Task: {"name": _NAME, "times": _by_size(_ABOVE_0), "memory_gb": _ABOVE_0},
    OperationCosts: {"create": _by_size(_FROM_0), "destroy": _by_size(_FROM_0)},
    LiveInstance: {**_PLACED, "free": _FROM_0},
    HeldInstance: _PLACED,
    Operation: {"kind": {"description": "Creation or destruction."}},
    TableEntry: {"model": _NAME, "memory_gb": _ABOVE_0},
    Service: {
        "name": _NAME,
        "slo": _ABOVE_0,
        "rate": _ABOVE_0,
        "min_replicas": {"minimum": 1, "maximum": MOST_REPLICAS},
    },
    Point: {"size": _COUNT, "batch": _COUNT, "processes": _COUNT, "throughput": _ABOVE_0, "latency": _ABOVE_0},
    Job: {
        "name": _NAME,
        "arrival": _FROM_0,
        "times": _by_size(_ABOVE_0),
        "memory_gb": _ABOVE_0,
        "pcie_gbps": _FROM_0,
        "sensitivity": _FROM_0,
        "memory_growth": {
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
    },
    BundledBatch: {"gpus": _GPUS},
    BatchFromFile: {"gpus": _GPUS},
    TraceFromFile: {"gpus": _GPUS},
    GeneratedBatches: {
        **_COMMON,
        "n": {"description": "Number of tasks, or a list of them.", "minimum": 1},
        "seeds": _SEEDS,
        "scaling": {"description": "PoorScaling, MixedScaling, GoodScaling, or a list."},
        "times": {"description": "WideTimes, NarrowTimes, or a list."},
        "p_sup": {"description": "Share of super-linear tasks, or a list.", **_SHARE},
        "variant": {"description": "paper, published-program, or a list."},
    },
    MethodSettings: {"time_limit": _ABOVE_0, "gap": _SHARE, "workers": _FROM_1},
    GeneratedTraces: {**_COMMON, "seeds": _SEEDS, "parameters": {"type": ["number", "string"]}},
}
"""Keywords of JSON Schema for the keys of an object, or for each value of a list of values, beside its types."""

_PAIRS = (("batches", "methods"), ("traces", "policies"))
"""Lists of a study that need each other."""

WHOLE_OBJECT: dict[type, Keywords] = {
    ServicesFile: {
        "oneOf": [
            {"required": ["gpu"], "properties": {"gpu": {"type": "string"}}},
            {"required": ["pools"], "properties": {"pools": {"type": "array"}}},
        ]
    },
    StudyFile: {
        "anyOf": [{"required": list(pair)} for pair in _PAIRS],
        "dependentRequired": {key: [other] for pair in _PAIRS for key, other in (pair, pair[::-1])},
    },
}
"""Keywords of JSON Schema about the keys of an object together."""

_TIMES = {"1": 4.0, "2": 2.5}
_COSTS = {"1": 0.1, "2": 0.1, "4": 0.1}
_INSTANCE = {"gpu": 0, "profile": "2g.10gb", "start": 0}
_SPAN = {**_INSTANCE, "begin": 0.12, "end": 2.62}
_TASK = {"name": "lu", "times": _TIMES}
_JOB = {"name": "train", "arrival": 12.0, "times": _TIMES}
_SERVICE = {"name": "chat", "model": "bert", "slo": 0.4, "rate": 250}
_POINT = {"size": 1, "batch": 8, "processes": 2, "throughput": 128.69, "latency": 0.124}
_TABLE = {"model": "bert", "gpu": "A100-80GB", "points": [_POINT]}
_SHA = "0123456789abcdef" * 4
EXAMPLES: dict[type, dict[str, Any]] = {
    BatchFile: {"schema": "mig-opt/batch/1", "gpu": "A100-40GB", "tasks": [_TASK]},
    Task: _TASK,
    OperationCosts: {"create": _COSTS, "destroy": _COSTS},
    LiveInstance: _INSTANCE,
    Run: {"task": "lu", **_SPAN},
    Operation: {"kind": "create", **_SPAN},
    ScheduleFile: {"schema": "mig-opt/schedule/1", "runs": []},
    PointEntry: {"seconds": 0.1, "makespan": 20.0, "lower_bound": 12.5},
    ResultFile: {
        "schema": "mig-opt/result/1",
        "status": "feasible",
        "method": "cp",
        "lower_bound": 12.5,
        "runtime_s": 0.5,
        "schedule": None,
    },
    SliceLoad: {"weights": [1, 1, 1, 1], "value": "109/25"},
    CriticalTask: {"task": "right", "value": "411/100"},
    CertificateFile: {
        "schema": "mig-opt/certificate/1",
        "claim": "proved",
        "batch": _SHA,
        "schedule": _SHA,
        "makespan": 6.34,
        "tick": "1/100",
        "exact": True,
        "within": 0,
        "lower_bound": 6.34,
        "slice_load": {"weights": [1, 1, 1, 1], "value": "109/25"},
        "critical_task": {"task": "right", "value": "411/100"},
        "method": "milp",
        "seed": 0,
        "runtime_s": 0.5,
        "versions": {"mig-opt": "0.1.0"},
        "interrupted": False,
        "better": None,
        "digest": _SHA,
    },
    ServicesFile: {"schema": "mig-opt/services/1", "services": [_SERVICE], "gpu": "A100-80GB"},
    Service: _SERVICE,
    PoolEntry: {"gpu": "A100-80GB"},
    TableEntry: _TABLE,
    Point: _POINT,
    ProfilesFile: {"schema": "mig-opt/profiles/1", "profiles": [_TABLE]},
    SegmentEntry: {"service": "chat", **_INSTANCE, "batch": 8, "processes": 2},
    DeploymentFile: {"schema": "mig-opt/deployment/1", "gpus": ["A100-80GB"], "segments": []},
    DeploymentResultFile: {
        "schema": "mig-opt/deployment-result/1",
        "status": "optimal",
        "method": "exact",
        "lower_bound": 2,
        "runtime_s": 0.5,
        "deployment": None,
    },
    TraceFile: {"schema": "mig-opt/trace/1", "gpu": "A100-40GB", "jobs": [_JOB]},
    Job: _JOB,
    StateFile: {"schema": "mig-opt/state/1", "gpu": "A100-40GB", "instances": [_INSTANCE]},
    HeldInstance: _INSTANCE,
    StudyFile: {"schema": "mig-opt/study/1", "batches": [{"n": [10, 20], "seeds": 30}], "methods": [{"method": "far"}]},
    BundledBatch: {"instance": "rodinia-a30"},
    BatchFromFile: {"file": "batch.json"},
    GeneratedBatches: {"n": 20},
    MethodSettings: {"method": "cp"},
    TraceFromFile: {"file": "trace.json"},
    GeneratedTraces: {"family": "normal-25"},
    PolicySettings: {"policy": "first-fit"},
}
"""An object of each shape, with every key that it needs."""
