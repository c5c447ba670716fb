"""Shape of each kind of file: its keys with their types. Readers and JSON Schemas both follow from it.

The parts of a file are mostly objects of the domain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from mig_opt import study
from mig_opt.arguments import MOST_GPUS
from mig_opt.batch.batch import LiveInstance, Task
from mig_opt.batch.certificate import Claim, CriticalTask, SliceLoad
from mig_opt.batch.schedule import Operation, Run
from mig_opt.errors import InputError, Problem
from mig_opt.files.documents import shown
from mig_opt.fleet.state import HeldInstance
from mig_opt.fleet.trace import PCIE_LIMIT, Job
from mig_opt.gpu.model import OperationCosts
from mig_opt.result import Status
from mig_opt.serving.demand import Service
from mig_opt.serving.profile_table import Point

Kind = Literal[
    "batch",
    "schedule",
    "result",
    "certificate",
    "commands",
    "study",
    "services",
    "profiles",
    "deployment",
    "deployment-result",
    "trace",
    "state",
    "costs",
]


@dataclass(frozen=True, slots=True)
class Whole:
    """Annotation of a whole number from ``least`` to ``most``, for readers and JSON Schemas."""

    least: int
    most: int

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), "minimum": self.least, "maximum": self.most}

    def _checked(self, value: int) -> int:
        if not self.least <= value <= self.most:
            raise InputError([Problem("", f"must be from {self.least} to {self.most}, is {shown(value)}")])
        return value


NotEmpty = Field(min_length=1)
Count = Annotated[int, Whole(1, 2**31 - 1)]
GpuCount = Annotated[int, Whole(1, MOST_GPUS)]
GpuName = Annotated[str, Field(description="Name of the GPU in the catalogue, or a short alias.")]
Seconds = Annotated[float, Field(description="Wall-clock seconds.")]
Versions = Mapping[str, str]

_SPREAD: dict[str, Any] = {
    "type": "object",
    "patternProperties": {"^[1-9][0-9]?$": {"type": "number", "minimum": 0}},
    "additionalProperties": False,
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
    source: str = ""
    spread: Annotated[Mapping[str, Mapping[int, float]], Field(json_schema_extra={"additionalProperties": _SPREAD})] = (
        field(default_factory=dict)
    )


@dataclass(frozen=True, slots=True)
class ScheduleFile:
    """Times at which each task runs on an instance, and at which the instances are created and destroyed."""

    schema: Literal["mig-opt/schedule/1"]
    runs: tuple[Run, ...]
    makespan: Annotated[float | None, Field(description="Seconds until the last run ends, as the file states it.")] = (
        None
    )
    operations: tuple[Operation, ...] | None = None


@dataclass(frozen=True, slots=True)
class PointEntry:
    """Best makespan and best lower bound at one moment of a run."""

    seconds: float
    makespan: Annotated[float | None, Field(description="Of the best schedule so far, in seconds; null: none yet.")]
    lower_bound: Annotated[float | None, Field(description="Best lower bound so far in seconds; null: infinite.")]


@dataclass(frozen=True, slots=True)
class ResultFile:
    """Outcome of a method: the schedule that it found, and the lower bound that it proved."""

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


Command = Annotated[
    tuple[str, ...], Field(json_schema_extra={"minItems": 1, "prefixItems": [{"type": "string", "minLength": 1}]})
]


@dataclass(frozen=True, slots=True)
class CommandsFile:
    """Commands of tasks, and of programs that measure models: a program and its arguments, which no shell reads."""

    schema: Literal["mig-opt/commands/1"]
    tasks: Mapping[str, Command] = field(default_factory=dict)
    models: Mapping[str, Command] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JournalHead:
    """First line of a journal: the plan."""

    schema: Literal["mig-opt/journal/1"]
    batch: BatchFile
    schedule: ScheduleFile
    commands: CommandsFile
    gpus: tuple[str, ...]
    folder: str = "."
    run: str = ""
    name: str = ""


# Files about services


@dataclass(frozen=True, slots=True)
class TableEntry:
    """Measurements of a model on the instances of one kind of GPU."""

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
    """Measurements of models on instances of each size."""

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
    """Instances that serve services, and their places on GPUs."""

    schema: Literal["mig-opt/deployment/1"]
    gpus: Annotated[tuple[str, ...], Field(description="Name of each GPU in the catalogue, or a short alias.")]
    segments: tuple[SegmentEntry, ...]


@dataclass(frozen=True, slots=True)
class DeploymentResultFile:
    """Outcome of a method: the deployment that it found, and the lower bound that it proved."""

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
    nodes: tuple[str, ...] = ()
    uuids: tuple[str, ...] = ()
    manager: str = ""
    budgets: Mapping[str, int] = field(default_factory=dict)


# Operations


@dataclass(frozen=True, slots=True)
class CostsFile:
    """Seconds that creations and destructions of instances take, by number of compute slices."""

    schema: Literal["mig-opt/costs/1"]
    gpu: GpuName
    create: Mapping[int, float]
    destroy: Mapping[int, float]
    source: str = ""
    assumed: bool = False


# Studies


@dataclass(frozen=True, slots=True)
class StudyFile:
    """Batches with the methods that run on each of them, traces with the schedulers that run on each of them."""

    schema: Literal["mig-opt/study/1"]
    batches: Annotated[tuple[study.BundledBatch | study.BatchFromFile | study.GeneratedBatches, ...], NotEmpty] = ()
    methods: Annotated[tuple[study.MethodSettings, ...], NotEmpty] = ()
    repetitions: Annotated[int, Whole(1, 2**30 - 1)] = 1
    seed: Annotated[int, Whole(0, 2**30 - 1)] = 0
    fresh: bool = False
    traces: Annotated[tuple[study.TraceFromFile | study.GeneratedTraces, ...], NotEmpty] = ()
    policies: Annotated[tuple[study.PolicySettings, ...], NotEmpty] = ()


FILES: dict[Kind, type] = {
    "batch": BatchFile,
    "schedule": ScheduleFile,
    "result": ResultFile,
    "certificate": CertificateFile,
    "commands": CommandsFile,
    "study": StudyFile,
    "services": ServicesFile,
    "profiles": ProfilesFile,
    "deployment": DeploymentFile,
    "deployment-result": DeploymentResultFile,
    "trace": TraceFile,
    "state": StateFile,
    "costs": CostsFile,
}
