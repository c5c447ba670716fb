"""The shape of a study file: its keys, their types, and what its JSON Schema says about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from mig_opt.arguments import MOST_GPUS, MOST_SEEDS
from mig_opt.files.serving.shapes import WHOLE
from mig_opt.study import (
    BatchFromFile,
    BundledBatch,
    GeneratedBatches,
    GeneratedTraces,
    MethodSettings,
    PolicySettings,
    TraceFromFile,
)

ITEMS = "one or items"
"""Marks keys whose values are lists where a single value may stand for a list of one, with keywords of a value."""

LISTS = "lists by name"
"""Marks keys whose values are objects, each of whose values may be a list or stand for a list of one."""


@dataclass(frozen=True, slots=True)
class StudyFile:
    """Batches with the methods that run on each of them, traces with the schedulers that run on each of them."""

    schema: Literal["mig-opt/study/1"]
    batches: tuple[BundledBatch | BatchFromFile | GeneratedBatches, ...] = ()
    methods: tuple[MethodSettings, ...] = ()
    repetitions: int = 1
    seed: int = 0
    fresh: bool = False
    traces: tuple[TraceFromFile | GeneratedTraces, ...] = ()
    policies: tuple[PolicySettings, ...] = ()


_FROM_1: dict[str, Any] = {"minimum": 1, "maximum": MOST_GPUS}


def _one_or_more(**keywords: float) -> dict[str, Any]:
    """Let a single value stand for a list of one; the keywords are those of a value."""
    return {ITEMS: keywords}


_ONE_OR_MORE = _one_or_more()

_SEEDS: dict[str, Any] = {
    "description": "How many seeds (0, 1, ...), or a list of them.",
    "default": 1,
    "anyOf": [
        {"type": "integer", "minimum": 1, "maximum": MOST_SEEDS},
        {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1},
    ],
}

_PAIRS = (("batches", "methods"), ("traces", "policies"))
"""Lists of which one is nothing without the other."""

STUDY_KEYWORDS: dict[type, dict[str, dict[str, Any]]] = {
    StudyFile: {
        WHOLE: {
            "anyOf": [{"required": list(pair)} for pair in _PAIRS],
            "dependentRequired": {key: [other] for pair in _PAIRS for key, other in (pair, pair[::-1])},
        },
        "schema": {"description": "Name and version of the format.", "examples": ["mig-opt/study/1"]},
        "batches": {
            "description": "Where the batches come from.",
            "minItems": 1,
            "examples": [[{"n": [10, 20], "seeds": 30}]],
        },
        "methods": {
            "description": "What runs on each batch.",
            "minItems": 1,
            "examples": [[{"method": "far"}, {"method": "cp", "time_limit": 10}]],
        },
        "traces": {
            "description": "Where the traces come from.",
            "minItems": 1,
            "examples": [[{"family": ["normal-25", "long-25"], "seeds": 5}]],
        },
        "policies": {
            "description": "What is simulated on each trace.",
            "minItems": 1,
            "examples": [[{"policy": "first-fit"}]],
        },
        "repetitions": {"description": "How often methods run, each time with the next seed.", "minimum": 1},
        "seed": {"description": "Seed of the methods, the first time.", "minimum": 0},
        "fresh": {"description": "Whether each run has a process of its own, whose memory is measured."},
    },
    BundledBatch: {
        "instance": {"description": "Name of a bundled instance.", "examples": ["rodinia-a30"]},
        "gpus": {"description": "In place of its number of GPUs.", **_FROM_1},
        "operation_costs": {"description": "Whether creations and destructions take time."},
    },
    BatchFromFile: {
        "file": {"description": "Path of a batch file, seen from this one.", "examples": ["batch.json"]},
        "gpu": {"description": "In place of the GPU that the file names; CSV files need it.", "examples": ["A100"]},
        "gpus": {"description": "In place of the file's number of GPUs.", **_FROM_1},
        "operation_costs": {"description": "Whether creations and destructions take time."},
    },
    GeneratedBatches: {
        "n": {"description": "Number of tasks, or a list of them.", **_one_or_more(minimum=1), "examples": [20]},
        "seeds": _SEEDS,
        "scaling": {"description": "PoorScaling, MixedScaling, GoodScaling, or a list.", **_ONE_OR_MORE},
        "times": {"description": "WideTimes, NarrowTimes, or a list.", **_ONE_OR_MORE},
        "p_sup": {
            "description": "Share of super-linear tasks, or a list.",
            **_one_or_more(minimum=0, maximum=1),
        },
        "gpu": {"description": "Name of the GPU, or a list.", **_ONE_OR_MORE},
        "gpus": {"description": "How many, or a list.", **_one_or_more(minimum=1, maximum=MOST_GPUS)},
        "variant": {"description": "paper, published-program, or a list.", **_ONE_OR_MORE},
        "operation_costs": {"description": "Whether operations take time, or a list of both.", **_ONE_OR_MORE},
    },
    MethodSettings: {
        "method": {"description": "Name of the method.", "examples": ["cp"]},
        "time_limit": {
            "description": "Seconds for a run, null for no limit, or a list.",
            **_one_or_more(exclusiveMinimum=0),
        },
        "gap": {"description": "Gap at which a run ends, or a list.", **_one_or_more(minimum=0, maximum=1)},
        "workers": {"description": "Threads of a run, or a list.", **_one_or_more(minimum=1)},
        "partition": {
            "description": "For fixpart: instances from the first slice to the last, or a list of partitions.",
            **_ONE_OR_MORE,
            "examples": ["4+2+1"],
        },
        "deterministic": {"description": "Whether time limits count work instead of time."},
        "label": {"description": "What tables call it; default: the method with its arguments."},
    },
    TraceFromFile: {
        "file": {"description": "Path of a trace file, seen from this one.", "examples": ["trace.json"]},
        "gpu": {"description": "In place of the GPU that the file names; CSV files need it.", "examples": ["A100"]},
        "gpus": {"description": "In place of the file's number of GPUs.", **_FROM_1},
        "operation_costs": {"description": "Whether creations and destructions take time."},
        "group": {"description": "Traces of the same group are summarised together; default: by file."},
    },
    GeneratedTraces: {
        "family": {"description": "Family of traces, or a list of them.", **_ONE_OR_MORE, "examples": ["normal-25"]},
        "seeds": _SEEDS,
        "gpu": {"description": "Name of the GPU, or a list.", **_ONE_OR_MORE},
        "gpus": {
            "description": "How many, null for as many as the family is for, or a list.",
            **_one_or_more(minimum=1, maximum=MOST_GPUS),
        },
        "parameters": {
            "description": "Parameters of the family, each with its value or a list.",
            LISTS: {"type": ["number", "string"]},
        },
        "operation_costs": {"description": "Whether operations take time, or a list of both.", **_ONE_OR_MORE},
        "group": {"description": "Traces of the same group are summarised together; default: all but the seed."},
    },
    PolicySettings: {
        "policy": {"description": "Name of the scheduler.", "examples": ["first-fit"]},
        "options": {"description": "Its options, each with its value or a list of values.", LISTS: {}},
        "label": {"description": "What tables call it; default: the scheduler with its options."},
    },
}
"""For each kind of object and each of its keys: keywords of JSON Schema beside those that follow from the type."""
