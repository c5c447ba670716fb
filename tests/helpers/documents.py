"""A document of each kind of file, for every test of files."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
from hypothesis import strategies as st

from mig_opt.errors import InputError
from mig_opt.files.batch.batches import batch_from_json
from mig_opt.files.batch.certificates import certificate_from_json
from mig_opt.files.batch.journals import commands_from_json
from mig_opt.files.batch.schedules import result_from_json, schedule_from_json
from mig_opt.files.costs import costs_from_json
from mig_opt.files.fleet.states import state_from_json
from mig_opt.files.fleet.traces import trace_from_json
from mig_opt.files.serving.demands import demand_from_json
from mig_opt.files.serving.deployment_results import deployment_result_from_json
from mig_opt.files.serving.deployments import deployment_from_json
from mig_opt.files.serving.profiles import profiles_from_json
from mig_opt.studies import study_from_json

BATCH: dict[str, Any] = {
    "schema": "mig-opt/batch/1",
    "gpu": "A30",
    "gpus": 2,
    "tasks": [
        {"name": "gaussian", "times": {"1": 22.31, "2": 11.52, "4": 6.39}, "memory_gb": 3.2},
        {"name": "lu", "times": {"2": 4}},
    ],
    "operations": {"create": {"1": 0.11, "2": 0.12, "4": 0.13}, "destroy": {"1": 0.1, "2": 0.1, "4": 0}},
    "initial": [{"gpu": 1, "profile": "2g.12gb", "start": 0, "free": 1.5}],
    "parallel_operations": True,
    "source": "measured",
    "spread": {"gaussian": {"1": 0.2, "4": 0}},
}
SCHEDULE: dict[str, Any] = {
    "schema": "mig-opt/schedule/1",
    "makespan": 11.64,
    "runs": [{"task": "gaussian", "gpu": 0, "profile": "2g.12gb", "start": 0, "begin": 0.12, "end": 11.64}],
    "operations": [{"kind": "create", "gpu": 0, "profile": "2g.12gb", "start": 0, "begin": 0.0, "end": 0.12}],
}
RESULT: dict[str, Any] = {
    "schema": "mig-opt/result/1",
    "status": "feasible",
    "method": "cp",
    "makespan": 11.64,
    "lower_bound": 5.82,
    "gap": 0.5,
    "runtime_s": 0.25,
    "schedule": SCHEDULE,
    "seed": 3,
    "trajectory": [{"seconds": 0.1, "makespan": None, "lower_bound": 5.82}],
    "versions": {"mig-opt": "1.0"},
}
CERTIFICATE: dict[str, Any] = {
    "schema": "mig-opt/certificate/1",
    "claim": "refuted",
    "batch": "ab" * 32,
    "schedule": "cd" * 32,
    "makespan": 12.5,
    "tick": "1/100",
    "exact": True,
    "within": 0,
    "lower_bound": 5.82,
    "slice_load": {"weights": [1, 1, 1, 1], "value": "109/25"},
    "critical_task": {"task": "gaussian", "value": "411/100"},
    "method": "milp",
    "seed": 0,
    "runtime_s": 0.25,
    "versions": {"mig-opt": "1.0"},
    "interrupted": False,
    "better": SCHEDULE,
    "digest": "ef" * 32,
}
COMMANDS: dict[str, Any] = {
    "schema": "mig-opt/commands/1",
    "tasks": {"gaussian": ["./gaussian", "-s", "4096"], "lu": ["./lu"]},
    "models": {"resnet50": ["./serve", "{batch}"]},
}
STUDY = {
    "schema": "mig-opt/study/1",
    "batches": [
        {"instance": "rodinia-a30", "gpus": 2, "operation_costs": True},
        {"n": [2, 3], "seeds": 2, "scaling": "MixedScaling", "p_sup": [0.5], "gpus": 1, "operation_costs": [True]},
    ],
    "methods": [
        {"method": "cp", "time_limit": [1, None], "gap": 0.5, "workers": 2, "deterministic": False, "label": "a"},
        {"method": "far", "label": "b"},
    ],
    "traces": [
        {"family": ["normal-25", "long-25"], "seeds": 2, "gpus": [2, None], "parameters": {"jobs": 5, "sigma": [0.5]}},
        {"family": "pcie-4", "gpu": ["A30"], "operation_costs": [True], "group": "g"},
    ],
    "policies": [
        {"policy": "first-fit", "label": "c"},
        {"policy": "fragmentation-aware", "options": {"threshold": [0.2, 0.4], "backfill": True}},
    ],
    "repetitions": 2,
    "seed": 1,
    "fresh": False,
}
POINT: dict[str, Any] = {"size": 1, "batch": 8, "processes": 2, "throughput": 128.69, "latency": 0.124}
SERVICES: dict[str, Any] = {
    "schema": "mig-opt/services/1",
    "pools": [{"gpu": "A100-80GB", "count": 4}, {"gpu": "A30"}],
    "slo_share": 0.45,
    "whole_ms": True,
    "max_processes": 3,
    "services": [
        {"name": "chat", "model": "bert", "slo": 0.4, "rate": 250, "min_replicas": 2},
        {"name": "bert", "slo": 6.5, "rate": 19.5},
    ],
    "profiles": [
        {"model": "bert", "gpu": "A100-80GB", "memory_gb": 9.5, "points": [dict(POINT), {**POINT, "batch": 16}]},
        {"model": "bert", "gpu": "A30", "points": [{**POINT, "size": 4}]},
    ],
}
PROFILES: dict[str, Any] = {
    "schema": "mig-opt/profiles/1",
    "gpu": "A100-80GB",
    "profiles": [
        {"model": "bert", "memory_gb": 9.5, "points": [dict(POINT)]},
        {"model": "bert", "gpu": "A30", "points": [dict(POINT)]},
    ],
}
DEPLOYMENT: dict[str, Any] = {
    "schema": "mig-opt/deployment/1",
    "gpus": ["A100-80GB", "A30"],
    "segments": [
        {
            "service": "chat",
            "gpu": 0,
            "profile": "1g.10gb",
            "start": 6,
            "batch": 8,
            "processes": 2,
            "throughput": 128.69,
            "latency": 0.124,
        },
        {"service": "bert", "gpu": 1, "profile": "4g.24gb", "start": 0, "batch": 8, "processes": 2},
    ],
}
DEPLOYMENT_RESULT: dict[str, Any] = {
    "schema": "mig-opt/deployment-result/1",
    "status": "optimal",
    "method": "exact",
    "gpus": 2,
    "lower_bound": 2,
    "compute_slices": 5,
    "runtime_s": 0.25,
    "deployment": DEPLOYMENT,
    "reason": "two kinds are needed",
    "proven": ["gpus"],
    "seed": 3,
    "versions": {"mig-opt": "1.0"},
}
TRACE: dict[str, Any] = {
    "schema": "mig-opt/trace/1",
    "gpu": "A30",
    "gpus": 2,
    "jobs": [
        {"name": "train", "arrival": 12.5, "times": {"1": 30.0, "2": 16.0}, "profile": "2g.12gb", "memory_gb": 9.5},
        {
            "name": "chat",
            "arrival": 3,
            "times": {"1": 4},
            "memory_growth": [[0.0, 2.5], [0.5, 4]],
            "pcie_gbps": 5.7,
            "sensitivity": 1.25,
        },
    ],
    "operations": {"create": {"1": 0.11, "2": 0.12, "4": 0.13}, "destroy": {"1": 0.1, "2": 0.1, "4": 0}},
    "pcie_limit": 24.5,
}
STATE: dict[str, Any] = {
    "schema": "mig-opt/state/1",
    "gpu": "A30",
    "gpus": 2,
    "instances": [
        {"gpu": 0, "profile": "1g.6gb", "start": 3, "name": "chat"},
        {"gpu": 1, "profile": "2g.12gb", "start": 0, "name": "train", "pinned": True},
    ],
}
COSTS: dict[str, Any] = {
    "schema": "mig-opt/costs/1",
    "gpu": "A30",
    "create": {"1": 0.11, "2": 1, "4": 0.13},
    "destroy": {"1": 0.1, "2": 0.1, "4": 0},
    "source": "a stopwatch",
    "assumed": True,
}
DOCUMENTS = {
    "batch": BATCH,
    "schedule": SCHEDULE,
    "result": RESULT,
    "certificate": CERTIFICATE,
    "commands": COMMANDS,
    "study": STUDY,
    "services": SERVICES,
    "profiles": PROFILES,
    "deployment": DEPLOYMENT,
    "deployment-result": DEPLOYMENT_RESULT,
    "trace": TRACE,
    "state": STATE,
    "costs": COSTS,
}
READERS = {
    "batch": batch_from_json,
    "schedule": schedule_from_json,
    "result": result_from_json,
    "certificate": certificate_from_json,
    "commands": commands_from_json,
    "study": study_from_json,
    "services": demand_from_json,
    "profiles": profiles_from_json,
    "deployment": deployment_from_json,
    "deployment-result": deployment_result_from_json,
    "trace": trace_from_json,
    "state": state_from_json,
    "costs": costs_from_json,
}
DELETE = object()


def changed(document: dict[str, Any], *changes: tuple[str, Any]) -> dict[str, Any]:
    """Return a copy with the values at some paths (``tasks/0/name``) replaced or deleted."""
    document = copy.deepcopy(document)
    for path, value in changes:
        place: Any = document
        *way, last = path.split("/")
        for step in way:
            place = place[int(step) if isinstance(place, list) else step]
        if isinstance(place, list):
            place[int(last)] = value
            continue
        if value is DELETE:
            del place[last]
        else:
            place[last] = value
    return document


def complaints(read: Any, *args: Any, **kwargs: Any) -> list[str]:
    with pytest.raises(InputError) as caught:
        read(*args, **kwargs)
    return [str(problem) for problem in caught.value.problems]


seconds = st.floats(min_value=1e-9, max_value=1e12)


# What a JSON Schema says about a value

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "integer": int}
SIZED = {"minItems": list, "minLength": str, "minProperties": dict}
SAY_NOTHING = {"$schema", "$defs", "title", "description", "examples", "default", "properties", "patternProperties"}


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_a(kind: str, value: Any) -> bool:
    if kind == "number":
        return is_number(value)
    return isinstance(value, TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


CHECKS = {
    "type": lambda wanted, value: any(is_a(kind, value) for kind in ([wanted] if isinstance(wanted, str) else wanted)),
    "const": lambda wanted, value: value == wanted,
    "enum": lambda wanted, value: value in wanted,
    "minimum": lambda wanted, value: not is_number(value) or value >= wanted,
    "maximum": lambda wanted, value: not is_number(value) or value <= wanted,
    "exclusiveMinimum": lambda wanted, value: not is_number(value) or value > wanted,
    "exclusiveMaximum": lambda wanted, value: not is_number(value) or value < wanted,
    "maxItems": lambda wanted, value: not isinstance(value, list) or len(value) <= wanted,
    "prefixItems": lambda wanted, value: (
        not isinstance(value, list) or not any(map(flaws, wanted, value[: len(wanted)]))
    ),
    "pattern": lambda wanted, value: not isinstance(value, str) or re.search(wanted, value),
    "dependentRequired": lambda wanted, value: (
        not isinstance(value, dict)
        or all(set(others) <= value.keys() for key, others in wanted.items() if key in value)
    ),
    "required": lambda wanted, value: not isinstance(value, dict) or set(wanted) <= value.keys(),
    **{
        keyword: lambda wanted, value, kind=kind: not isinstance(value, kind) or len(value) >= wanted
        for keyword, kind in SIZED.items()
    },
}


def flaws(schema: dict[str, Any], value: Any, defs: dict[str, Any] | None = None) -> list[str]:
    """Check a value by the keywords that our schemas use; a keyword that is not among them fails the test."""
    defs = schema.get("$defs", {}) if defs is None else defs
    found = []
    for keyword, wanted in schema.items():
        if keyword in CHECKS:
            found += [] if CHECKS[keyword](wanted, value) else [f"{keyword} {wanted}: {value}"]
        elif keyword == "$ref":
            found += flaws(defs[wanted.removeprefix("#/$defs/")], value, defs)
        elif keyword == "anyOf":
            options = [flaws(option, value, defs) for option in wanted]
            found += [] if [] in options else options[0]
        elif keyword == "oneOf":
            fitting = sum(flaws(option, value, defs) == [] for option in wanted)
            found += [] if fitting == 1 else [f"{fitting} of {len(wanted)} alternatives: {value}"]
        elif keyword == "properties" and "additionalProperties" not in schema:
            found += flaws_of_entries({"additionalProperties": {}, **schema}, value, defs)
        elif keyword == "items":
            found += [
                flaw for entry in (value if isinstance(value, list) else ()) for flaw in flaws(wanted, entry, defs)
            ]
        elif keyword == "additionalProperties":
            found += flaws_of_entries(schema, value if isinstance(value, dict) else {}, defs)
        elif keyword not in SAY_NOTHING:
            pytest.fail(f"this check does not know the keyword {keyword}")
    return found


def flaws_of_entries(schema: dict[str, Any], value: dict[str, Any], defs: dict[str, Any]) -> list[str]:
    found = []
    for key, entry in value.items():
        options = [schema["properties"][key]] if key in schema.get("properties", {}) else []
        patterns = schema.get("patternProperties", {})
        options += [option for pattern, option in patterns.items() if re.search(pattern, key)]
        if not options and schema["additionalProperties"] is False:
            found.append(f"{key}: not allowed")
        for option in options or [schema["additionalProperties"] or {}]:
            found += flaws(option, entry, defs)
    return found
