"""The shape of each file: its keys, their types, and what its JSON Schema says about them.

Structure and types come from the dataclasses, here and in the domain; :data:`KEYWORDS` adds what types do not say.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import TypeAdapter

from mig_opt.arguments import MOST_GPUS
from mig_opt.batch.batch import LiveInstance, Task
from mig_opt.batch.certificate import Claim, CriticalTask, SliceLoad
from mig_opt.batch.schedule import Operation, Run
from mig_opt.errors import InputError, Problem, nearest
from mig_opt.files.fleet.state_shapes import STATE_KEYWORDS, StateFile
from mig_opt.files.fleet.trace_shapes import TRACE_KEYWORDS, TraceFile
from mig_opt.files.serving.shapes import (
    SERVING_KEYWORDS,
    WHOLE,
    DeploymentFile,
    DeploymentResultFile,
    ProfilesFile,
    ServicesFile,
)
from mig_opt.files.study_shapes import ITEMS, LISTS, STUDY_KEYWORDS, StudyFile
from mig_opt.gpu.model import OperationCosts
from mig_opt.result import Status

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

SIZE = "^[1-9][0-9]?$"
"""Pattern of a number of compute slices as a key."""


@dataclass(frozen=True, slots=True)
class BatchFile:
    """Tasks to be run on identical MIG GPUs so that the last one ends as early as possible."""

    schema: Literal["mig-opt/batch/1"]
    gpu: str
    tasks: tuple[Task, ...]
    gpus: int = 1
    operations: OperationCosts | None = None
    initial: tuple[LiveInstance, ...] = ()
    parallel_operations: bool = False


@dataclass(frozen=True, slots=True)
class ScheduleFile:
    """When each task runs on which instance, and when the instances are created and destroyed."""

    schema: Literal["mig-opt/schedule/1"]
    runs: tuple[Run, ...]
    makespan: float | None = None
    operations: tuple[Operation, ...] | None = None


@dataclass(frozen=True, slots=True)
class PointFile:
    """Best makespan and best lower bound at one moment of a run."""

    seconds: float
    makespan: float | None
    lower_bound: float


@dataclass(frozen=True, slots=True)
class ResultFile:
    """How a method ended, what it found and what it proved."""

    schema: Literal["mig-opt/result/1"]
    status: Status
    method: str
    lower_bound: float | None
    runtime_s: float
    schedule: ScheduleFile | None
    makespan: float | None = None
    gap: float | None = None
    seed: int = 0
    trajectory: tuple[PointFile, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CertificateFile:
    """What is claimed about schedules that are shorter than one, and the evidence for it."""

    schema: Literal["mig-opt/certificate/1"]
    claim: Claim
    batch: str
    schedule: str
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
    versions: Mapping[str, str]
    interrupted: bool
    better: ScheduleFile | None
    digest: str


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


def _by_size(number: dict[str, Any]) -> dict[str, Any]:
    return {
        "patternProperties": {SIZE: {"type": "number", **number}},
        "additionalProperties": False,
        "minProperties": 1,
    }


_PLACED: dict[str, dict[str, Any]] = {
    "gpu": {"description": "Index of the GPU, from 0.", "examples": [0]},
    "profile": {"description": "Profile name of the instance.", "examples": ["2g.10gb"]},
    "start": {"description": "First memory slice of the instance.", "examples": [0]},
}
_TIMED: dict[str, dict[str, Any]] = {
    **_PLACED,
    "begin": {"description": "Seconds after the start of the batch.", "examples": [0.12]},
    "end": {"description": "Seconds after the start of the batch.", "examples": [11.64]},
}

_SHA = "0123456789abcdef" * 4

KEYWORDS: dict[type, dict[str, dict[str, Any]]] = {
    BatchFile: {
        "schema": {"description": "Name and version of the format.", "examples": ["mig-opt/batch/1"]},
        "gpu": {"description": "Name of the GPU in the catalogue, or a short alias.", "examples": ["A100-40GB", "A30"]},
        "tasks": {
            "description": "What is to be run. Names must be unique.",
            "minItems": 1,
            "examples": [[{"name": "lu", "times": {"1": 4.0, "2": 2.5}}]],
        },
        "gpus": {"description": "How many GPUs there are.", "minimum": 1, "maximum": MOST_GPUS},
        "operations": {"description": "Seconds per creation and destruction; default: the GPU's own table."},
        "initial": {"description": "Instances that exist when the batch starts; default: none."},
        "parallel_operations": {"description": "Whether creations and destructions on one GPU may overlap in time."},
    },
    Task: {
        "name": {"description": "Unique in its batch.", "minLength": 1, "pattern": r"\S", "examples": ["lu"]},
        "times": {
            "description": "Seconds on an instance, by number of compute slices. On a size that is left out the task "
            "cannot run. The GPU must have the sizes.",
            **_by_size({"exclusiveMinimum": 0}),
            "examples": [{"1": 4.0, "2": 2.5}],
        },
        "memory_gb": {"description": "Memory in GB that the task needs.", "exclusiveMinimum": 0},
    },
    OperationCosts: {
        kind: {
            "description": f"Seconds to {kind} an instance, by number of compute slices; for every size of the GPU.",
            **_by_size({"minimum": 0}),
            "examples": [{"1": 0.1, "2": 0.1, "4": 0.1}],
        }
        for kind in ("create", "destroy")
    }
    | {
        "source": {"description": "Where the figures come from."},
        "assumed": {"description": "Whether they were measured on another GPU."},
    },
    LiveInstance: {
        **_PLACED,
        "gpu": {**_PLACED["gpu"], "minimum": 0},
        "start": {**_PLACED["start"], "minimum": 0},
        "free": {
            "description": "Seconds after the start of the batch at which its earlier work ends.",
            "minimum": 0,
        },
    },
    Run: {"task": {"description": "Name of the task.", "examples": ["lu"]}, **_TIMED},
    Operation: {"kind": {"description": "What is done to the instance.", "examples": ["create"]}, **_TIMED},
    ScheduleFile: {
        "schema": {"description": "Name and version of the format.", "examples": ["mig-opt/schedule/1"]},
        "makespan": {"description": "Seconds until the last run ends, as the writer of the file states it."},
        "runs": {"description": "One for each task.", "examples": [[]]},
        "operations": {"description": "Creations and destructions; null or left out if they are not known."},
    },
    ResultFile: {
        "schema": {"description": "Name and version of the format.", "examples": ["mig-opt/result/1"]},
        "status": {"description": "How the run of the method ended.", "examples": ["feasible"]},
        "method": {"description": "The method that ran.", "examples": ["cp"]},
        "makespan": {"description": "Makespan of the schedule in seconds; null without one."},
        "lower_bound": {
            "description": "Seconds; no schedule is shorter. null: infinite, there is no schedule.",
            "examples": [12.5],
        },
        "gap": {"description": "(makespan - lower_bound) / makespan; null without a schedule."},
        "runtime_s": {"description": "Wall-clock seconds.", "examples": [0.5]},
        "schedule": {"description": "The best schedule; null if there is none.", "examples": [None]},
        "seed": {"description": "The seed that was used."},
        "trajectory": {"description": "Every improvement of the makespan or the lower bound."},
        "versions": {"description": "Versions of the programs that ran."},
    },
    CertificateFile: {
        "schema": {"description": "Name and version of the format.", "examples": ["mig-opt/certificate/1"]},
        "claim": {"description": "What is known about shorter schedules.", "examples": ["proved"]},
        "batch": {"description": "SHA-256 of the batch as canonical JSON, defaults spelled out.", "examples": [_SHA]},
        "schedule": {"description": "SHA-256 of the schedule as canonical JSON.", "examples": [_SHA]},
        "makespan": {"description": "Of the schedule, in seconds.", "examples": [6.34]},
        "tick": {"description": "Seconds of a tick as an exact fraction.", "examples": ["1/100"]},
        "exact": {
            "description": "Whether a schedule counts as shorter by one tick; else by a millionth of the makespan.",
            "examples": [True],
        },
        "within": {"description": "Seconds by which a schedule may be shorter without counting.", "examples": [0]},
        "lower_bound": {"description": "Seconds; no schedule is shorter.", "examples": [6.34]},
        "slice_load": {
            "description": "Bound by the weighted load of the memory slices.",
            "examples": [{"weights": [1, 1, 1, 1], "value": "109/25"}],
        },
        "critical_task": {
            "description": "Bound by the task whose shortest time is longest.",
            "examples": [{"task": "right", "value": "411/100"}],
        },
        "method": {"description": "The method that was asked.", "examples": ["milp"]},
        "seed": {"description": "The seed that was used.", "examples": [0]},
        "runtime_s": {"description": "Wall-clock seconds of the method; 0 if it was not needed.", "examples": [0.5]},
        "versions": {"description": "Versions of the programs that ran.", "examples": [{"mig-opt": "0.1.0"}]},
        "interrupted": {"description": "Whether Ctrl-C ended the method.", "examples": [False]},
        "better": {"description": "The shorter schedule, if the claim is refuted; else null.", "examples": [None]},
        "digest": {"description": "SHA-256 of the rest as canonical JSON.", "examples": [_SHA]},
    },
    SliceLoad: {
        "weights": {"description": "For each memory slice of a GPU.", "examples": [[1, 1, 1, 1]]},
        "value": {"description": "Seconds as an exact fraction.", "examples": ["109/25"]},
    },
    CriticalTask: {
        "task": {"description": "Name of the task.", "examples": ["right"]},
        "value": {"description": "Seconds as an exact fraction.", "examples": ["411/100"]},
    },
    PointFile: {
        "seconds": {"description": "Seconds since the start of the run.", "examples": [0.1]},
        "makespan": {"description": "Seconds, of the best schedule so far; null before the first.", "examples": [20.0]},
        "lower_bound": {
            "description": "Best lower bound so far in seconds; null: infinite.",
            "type": ["number", "null"],
            "examples": [12.5],
        },
    },
    **STUDY_KEYWORDS,
    **SERVING_KEYWORDS,
    **TRACE_KEYWORDS,
    **STATE_KEYWORDS,
}
"""For each kind of object and each of its keys: keywords of JSON Schema beside those that follow from the type."""


def json_schema(kind: Kind) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a file.

    It states everything about a file that can be said without knowing the GPU, and without comparing one part of the
    file with another.

    Parameters
    ----------
    kind : str
        The kind of file: ``batch``, ``schedule``, ``result``, ``certificate``, ``study``, ``services``, ``profiles``,
        ``deployment``, ``deployment-result``, ``trace`` or ``state``.

    Raises
    ------
    InputError
        If there is no such kind.

    Examples
    --------
    >>> schema = json_schema("batch")
    >>> schema["required"], schema["properties"]["gpus"]["minimum"]
    (['schema', 'gpu', 'tasks'], 1)
    """
    if kind not in FILES:
        raise InputError([Problem("kind", f"no kind of file is called {kind!r}; {nearest(str(kind), FILES)}")])
    root = TypeAdapter(FILES[kind]).json_schema()
    definitions = root.pop("$defs", {})
    for shape, keywords in KEYWORDS.items():
        if shape is FILES[kind]:
            _complete(root, shape, keywords)
        elif shape.__name__ in definitions:
            _complete(definitions[shape.__name__], shape, keywords)
    for kinds in (Status, Claim):
        if kinds.__name__ in definitions:
            del definitions[kinds.__name__]["title"]
            definitions[kinds.__name__]["description"] = inspect.getdoc(kinds)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"mig-opt/{kind}/1",
        **{key: value for key, value in root.items() if key != "title"},
        "$defs": definitions,
    }


def _complete(schema: dict[str, Any], shape: type, keywords: dict[str, dict[str, Any]]) -> None:
    """Add to the schema of an object what its types do not say; drop what nobody needs."""
    schema.pop("title", None)
    schema["description"] = (inspect.getdoc(shape) or "").partition("\n")[0].replace("``", "")
    schema["additionalProperties"] = False
    schema.update(keywords.get(WHOLE, {}))
    for key, found in schema["properties"].items():
        found.pop("title", None)
        alternatives = [alternative.get("type") for alternative in found.get("anyOf", ())]
        if alternatives and set(alternatives) <= {"number", "null"}:
            del found["anyOf"]
            found["type"] = alternatives
        if "minItems" in keywords[key]:
            found.pop("default", None)  # of a list that is left out or has entries
        if ITEMS in keywords[key]:
            _let_one_stand_for_a_list(found, keywords[key][ITEMS])
        elif LISTS in keywords[key]:
            item = keywords[key][LISTS]
            found["additionalProperties"] = {"anyOf": [item, {"type": "array", "items": item, "minItems": 1}]}
        elif "anyOf" in keywords[key]:
            found.clear()
        found.update({name: value for name, value in keywords[key].items() if name not in (ITEMS, LISTS)})


def _let_one_stand_for_a_list(schema: dict[str, Any], keywords: dict[str, Any]) -> None:
    item = {**schema.pop("items"), **keywords}
    alternatives = [alternative["type"] for alternative in item.pop("anyOf", ())]
    if alternatives:
        item["type"] = alternatives
    del schema["type"]
    default = schema.get("default")
    if default is not None and len(default) == 1:
        schema["default"] = default[0]
    schema["anyOf"] = [item, {"type": "array", "items": item, "minItems": 1}]


def key_names(shape: type) -> dict[str, bool]:
    """Return the keys of an object, each with whether it must be there."""
    missing = dataclasses.MISSING
    return {
        entry.name: entry.default is missing and entry.default_factory is missing for entry in dataclasses.fields(shape)
    }


def listed_keys(shape: type) -> tuple[str, ...]:
    """Return the keys of an object whose values are lists, where a single value may stand for a list of one."""
    return tuple(key for key, keywords in KEYWORDS[shape].items() if ITEMS in keywords)


def mapped_keys(shape: type) -> tuple[str, ...]:
    """Return the keys of an object whose values are objects of such lists."""
    return tuple(key for key, keywords in KEYWORDS[shape].items() if LISTS in keywords)


def sized_keys(shape: type) -> tuple[str, ...]:
    """Return the keys of an object whose values are figures by number of compute slices."""
    return tuple(key for key, keywords in KEYWORDS[shape].items() if "patternProperties" in keywords)
