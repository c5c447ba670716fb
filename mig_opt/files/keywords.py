"""Words about the shapes of files beside their types: limits as JSON Schema has them, descriptions, and examples."""

from __future__ import annotations

from typing import Any

from mig_opt import study
from mig_opt.arguments import MOST_GPUS, MOST_SEEDS
from mig_opt.batch.batch import Batch, LiveInstance, Task
from mig_opt.batch.certificate import Certificate, CriticalTask, SliceLoad
from mig_opt.batch.journal import Commands, Event
from mig_opt.batch.schedule import Operation, Run, Schedule
from mig_opt.files import shapes
from mig_opt.fleet.state import MOST_WEIGHT, FleetState, HeldInstance
from mig_opt.fleet.trace import MOST_SMS, Job, Trace
from mig_opt.gpu.model import OperationCosts
from mig_opt.result import Result, TrajectoryPoint
from mig_opt.serving.demand import MOST_REPLICAS, Demand, GpuPool, Service
from mig_opt.serving.deployment import Deployment, Segment
from mig_opt.serving.profile_table import Point, ProfileTable

Keywords = dict[str, Any]
"""Keywords of JSON Schema."""

_ABOVE_0: Keywords = {"exclusiveMinimum": 0}
_FROM_0: Keywords = {"minimum": 0}
_FROM_1: Keywords = {"minimum": 1}
_COUNT: Keywords = {"minimum": 1, "maximum": 2**31 - 1}
_GPUS: Keywords = {"minimum": 1, "maximum": MOST_GPUS}
_SHARE: Keywords = {"minimum": 0, "maximum": 1}
_NAME: Keywords = {"minLength": 1, "pattern": r"\S"}

SIZE = "^[1-9][0-9]?$"
"""Pattern of a number of compute slices as a key."""


def _by_size(seconds: Keywords) -> Keywords:
    return {
        "patternProperties": {SIZE: {"type": "number", **seconds}},
        "additionalProperties": False,
        "minProperties": 1,
    }


DESCRIBED_BY: dict[type, type] = {
    shapes.BatchFile: Batch,
    shapes.ScheduleFile: Schedule,
    shapes.PointEntry: TrajectoryPoint,
    Operation: Run,
    shapes.ResultFile: Result,
    shapes.CertificateFile: Certificate,
    shapes.CommandsFile: Commands,
    shapes.TableEntry: ProfileTable,
    shapes.PoolEntry: GpuPool,
    shapes.ServicesFile: Demand,
    shapes.SegmentEntry: Segment,
    shapes.DeploymentFile: Deployment,
    shapes.CostsFile: OperationCosts,
    shapes.DeploymentResultFile: Result,
    shapes.TraceFile: Trace,
    shapes.StateFile: FleetState,
    shapes.StudyFile: study.Study,
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
    shapes.CostsFile: {"create": _by_size(_FROM_0), "destroy": _by_size(_FROM_0)},
    LiveInstance: {**_PLACED, "free": _FROM_0},
    HeldInstance: {**_PLACED, "weight": {"minimum": 1, "maximum": MOST_WEIGHT}},
    shapes.StateFile: {"budgets": {"additionalProperties": {"type": "integer", **_FROM_0, "maximum": MOST_WEIGHT}}},
    Operation: {"kind": {"description": "Creation or destruction."}},
    shapes.TableEntry: {"model": _NAME, "memory_gb": _ABOVE_0},
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
        "energy_j": _FROM_0,
        "sms": {"minimum": 1, "maximum": MOST_SMS},
        "weight": _ABOVE_0,
        "due": _FROM_0,
        "declared": _by_size(_ABOVE_0),
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
    study.BundledBatch: {"gpus": _GPUS},
    study.BatchFromFile: {"gpus": _GPUS},
    study.TraceFromFile: {"gpus": _GPUS},
    study.GeneratedBatches: {
        **_COMMON,
        "n": {"description": "Number of tasks, or a list of them.", "minimum": 1},
        "seeds": _SEEDS,
        "scaling": {"description": "PoorScaling, MixedScaling, GoodScaling, or a list."},
        "times": {"description": "WideTimes, NarrowTimes, or a list."},
        "p_sup": {"description": "Share of super-linear tasks, or a list.", **_SHARE},
        "variant": {"description": "paper, published-program, or a list."},
    },
    study.MethodSettings: {"time_limit": _ABOVE_0, "gap": _SHARE, "workers": _FROM_1},
    study.GeneratedTraces: {**_COMMON, "seeds": _SEEDS, "parameters": {"type": ["number", "string"]}},
}
"""Keywords of JSON Schema for the keys of an object, or for each value of a list of values, beside its types."""

DESCRIPTIONS = {
    "schema": "Name and version of the format.",
    "instance": "Name of a bundled instance.",
    "file": "Path of a JSON or CSV file, seen from this one.",
    "gpu": "In place of the GPU that the file names; CSV files need it.",
    "gpus": "In place of its number of GPUs, or one for each of a list.",
    "operation_costs": "Whether creations and destructions take time.",
    "family": "Family of traces, or a list of them.",
    "parameters": "Parameters of the family, each with its value or a list.",
    "group": "Traces of the same group are summarised together.",
    "policy": "Name of the scheduler.",
    "options": "Its options, each with its value or a list of values.",
    "label": "Name in tables.",
}
"""Descriptions of keys that no docstring describes."""

_PAIRS = (("batches", "methods"), ("traces", "policies"))
"""Lists of a study that need each other."""

WHOLE_OBJECT: dict[type, Keywords] = {
    shapes.CommandsFile: {"anyOf": [{"required": ["tasks"]}, {"required": ["models"]}]},
    shapes.ServicesFile: {
        "oneOf": [
            {"required": ["gpu"], "properties": {"gpu": {"type": "string"}}},
            {"required": ["pools"], "properties": {"pools": {"type": "array"}}},
        ]
    },
    shapes.StudyFile: {
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
    shapes.BatchFile: {"schema": "mig-opt/batch/1", "gpu": "A100-40GB", "tasks": [_TASK]},
    Task: _TASK,
    OperationCosts: {"create": _COSTS, "destroy": _COSTS},
    LiveInstance: _INSTANCE,
    Run: {"task": "lu", **_SPAN},
    Operation: {"kind": "create", **_SPAN},
    shapes.ScheduleFile: {"schema": "mig-opt/schedule/1", "runs": []},
    shapes.PointEntry: {"seconds": 0.1, "makespan": 20.0, "lower_bound": 12.5},
    shapes.ResultFile: {
        "schema": "mig-opt/result/1",
        "status": "feasible",
        "method": "cp",
        "lower_bound": 12.5,
        "runtime_s": 0.5,
        "schedule": None,
    },
    SliceLoad: {"weights": [1, 1, 1, 1], "value": "109/25"},
    CriticalTask: {"task": "right", "value": "411/100"},
    shapes.CertificateFile: {
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
    shapes.CommandsFile: {"schema": "mig-opt/commands/1", "tasks": {"gaussian": ["./gaussian", "-s", "4096"]}},
    shapes.JournalHead: {
        "schema": "mig-opt/journal/1",
        "batch": {"schema": "mig-opt/batch/1", "gpu": "A100-40GB", "tasks": [_TASK]},
        "schedule": {"schema": "mig-opt/schedule/1", "runs": []},
        "commands": {"schema": "mig-opt/commands/1", "tasks": {"lu": ["./lu"]}},
        "gpus": ["GPU-8c5a3d6e-1f2b-4c3d-9e8f-0a1b2c3d4e5f"],
    },
    Event: {"time": 1750000000.0, "kind": "begin"},
    shapes.ServicesFile: {"schema": "mig-opt/services/1", "services": [_SERVICE], "gpu": "A100-80GB"},
    Service: _SERVICE,
    shapes.PoolEntry: {"gpu": "A100-80GB"},
    shapes.TableEntry: _TABLE,
    Point: _POINT,
    shapes.ProfilesFile: {"schema": "mig-opt/profiles/1", "profiles": [_TABLE]},
    shapes.SegmentEntry: {"service": "chat", **_INSTANCE, "batch": 8, "processes": 2},
    shapes.DeploymentFile: {"schema": "mig-opt/deployment/1", "gpus": ["A100-80GB"], "segments": []},
    shapes.DeploymentResultFile: {
        "schema": "mig-opt/deployment-result/1",
        "status": "optimal",
        "method": "exact",
        "lower_bound": 2,
        "runtime_s": 0.5,
        "deployment": None,
    },
    shapes.TraceFile: {"schema": "mig-opt/trace/1", "gpu": "A100-40GB", "jobs": [_JOB]},
    Job: _JOB,
    shapes.StateFile: {"schema": "mig-opt/state/1", "gpu": "A100-40GB", "instances": [_INSTANCE]},
    HeldInstance: _INSTANCE,
    shapes.CostsFile: {"schema": "mig-opt/costs/1", "gpu": "A30-24GB", "create": _COSTS, "destroy": _COSTS},
    shapes.StudyFile: {
        "schema": "mig-opt/study/1",
        "batches": [{"n": [10, 20], "seeds": 30}],
        "methods": [{"method": "far"}],
    },
    study.BundledBatch: {"instance": "rodinia-a30"},
    study.BatchFromFile: {"file": "batch.json"},
    study.GeneratedBatches: {"n": 20},
    study.MethodSettings: {"method": "cp"},
    study.TraceFromFile: {"file": "trace.json"},
    study.GeneratedTraces: {"family": "normal-25"},
    study.PolicySettings: {"policy": "first-fit"},
}
"""An object of each shape, with every key that it needs."""
