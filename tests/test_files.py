"""Files: what is written is read again, what is wrong is reported in full, nothing is half-written."""

from __future__ import annotations

import contextlib
import copy
import json
import math
import os
import re
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mig_opt.batch import Batch, LiveInstance, Task
from mig_opt.errors import InputError
from mig_opt.files import (
    batch_from_json,
    batch_to_json,
    certificate_from_json,
    check_writable,
    json_schema,
    read_batch,
    read_result,
    read_schedule,
    result_from_json,
    result_to_json,
    schedule_from_json,
    schedule_to_json,
    write_batch,
    write_result,
    write_schedule,
)
from mig_opt.gpu import OperationCosts, catalogue, get_gpu
from mig_opt.result import Result, Status, TrajectoryPoint
from mig_opt.schedule import Operation, Run, Schedule
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
    "repetitions": 2,
    "seed": 1,
    "fresh": False,
}
DOCUMENTS = {"batch": BATCH, "schedule": SCHEDULE, "result": RESULT, "certificate": CERTIFICATE, "study": STUDY}
READERS = {
    "batch": batch_from_json,
    "schedule": schedule_from_json,
    "result": result_from_json,
    "certificate": certificate_from_json,
    "study": study_from_json,
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


# ---------------------------------------------------------------------------------------------------- round trips

seconds = st.floats(min_value=1e-9, max_value=1e12)
moments = st.floats(min_value=0, max_value=1e9)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(str.strip)


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    gpu = draw(st.sampled_from(catalogue()))
    times = st.dictionaries(st.sampled_from(gpu.sizes), seconds, min_size=1)
    least = max(profile.memory_gb for profile in gpu.profiles)
    memory = st.none() | st.floats(min_value=1e-3, max_value=least)
    tasks = [
        Task(name, draw(times), draw(memory)) for name in draw(st.lists(names, min_size=1, max_size=6, unique=True))
    ]
    costs = st.fixed_dictionaries(dict.fromkeys(gpu.sizes, st.floats(min_value=0, max_value=10)))
    operations = st.builds(OperationCosts, costs, costs, st.text(st.characters(codec="utf-8")), st.booleans())
    gpus = draw(st.integers(min_value=1, max_value=3))
    initial = [
        LiveInstance(index, placement.profile.name, placement.start, draw(moments))
        for index in range(gpus)
        for placement in draw(st.sampled_from(list(gpu.placed_states())[:40]))
    ]
    return Batch(
        tuple(tasks),
        gpu,
        gpus,
        draw(st.just(gpu.operation_costs) | operations),
        tuple(initial),
        draw(st.booleans()),
    )


places: dict[str, Any] = {
    "gpu": st.integers(min_value=-1, max_value=9),
    "profile": names,
    "start": st.integers(min_value=-1, max_value=12),
    "begin": st.floats(allow_nan=False, allow_infinity=False),
    "end": st.floats(allow_nan=False, allow_infinity=False),
}
schedules = st.builds(
    Schedule,
    st.lists(st.builds(Run, task=names, **places), max_size=4).map(tuple),
    st.none()
    | st.lists(st.builds(Operation, kind=st.sampled_from(["create", "destroy"]), **places), max_size=4).map(tuple),
)
bounds = moments | st.just(math.inf)
results = st.builds(
    Result,
    status=st.sampled_from(Status),
    method=names,
    schedule=st.none() | schedules,
    lower_bound=bounds,
    runtime_s=moments,
    trajectory=st.lists(st.builds(TrajectoryPoint, moments, st.none() | moments, bounds), max_size=3).map(tuple),
    seed=st.integers(min_value=-(2**70), max_value=2**70),
    versions=st.dictionaries(names, names, max_size=3),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(batches())
def test_batch_round_trip(batch: Batch) -> None:
    text = batch_to_json(batch)
    assert batch_from_json(text) == batch
    assert batch_from_json(text.encode()) == batch
    assert batch_from_json(json.loads(text)) == batch
    assert flaws(json_schema("batch"), json.loads(text)) == []


@settings(max_examples=60, deadline=None)
@given(schedules)
def test_schedule_round_trip(schedule: Schedule) -> None:
    text = schedule_to_json(schedule)
    again = schedule_from_json(text)
    assert again == schedule
    assert again.stated_makespan == schedule.makespan
    assert flaws(json_schema("schedule"), json.loads(text)) == []


@settings(max_examples=60, deadline=None)
@given(results)
def test_result_round_trip(result: Result) -> None:
    text = result_to_json(result)
    assert result_from_json(text) == result
    document = json.loads(text, parse_constant=pytest.fail)
    assert flaws(json_schema("result"), document) == []
    if result.schedule is not None:
        assert schedule_from_json(document["schedule"]) == result.schedule


def test_files_round_trip(tmp_path: Path) -> None:
    batch = batch_from_json(BATCH)
    schedule = schedule_from_json(SCHEDULE)
    result = result_from_json(RESULT)
    write_batch(batch, tmp_path / "mine.json")
    write_schedule(schedule, str(tmp_path / "schedule.json"))
    write_result(result, tmp_path / "result.json")
    assert read_batch(tmp_path / "mine.json") == batch
    assert read_batch(tmp_path / "mine.json").name == "mine"
    assert read_schedule(tmp_path / "schedule.json") == schedule
    assert read_result(str(tmp_path / "result.json")) == result
    assert len(list(tmp_path.iterdir())) == 3


def test_values_are_taken_over() -> None:
    batch = batch_from_json(BATCH, name="b")
    assert batch.gpu is get_gpu("A30")
    assert batch.tasks == (Task("gaussian", {1: 22.31, 2: 11.52, 4: 6.39}, 3.2), Task("lu", {2: 4.0}))
    assert batch.operations.destroy == {1: 0.1, 2: 0.1, 4: 0.0}
    assert batch.initial == (LiveInstance(1, "2g.12gb", 0, 1.5),)
    assert (batch.gpus, batch.parallel_operations, batch.name) == (2, True, "b")
    schedule = schedule_from_json(changed(SCHEDULE, ("makespan", 99)))
    assert (schedule.stated_makespan, schedule.makespan) == (99.0, 11.64)
    result = result_from_json(RESULT)
    assert (result.status, result.gap, result.seed) == (Status.FEASIBLE, 0.5, 3)


def test_optional_keys_have_defaults() -> None:
    batch = batch_from_json(changed(BATCH, *((key, DELETE) for key in ("gpus", "operations", "parallel_operations"))
                                    , ("initial", [])))  # fmt: skip
    assert (batch.gpus, batch.operations, batch.initial) == (1, get_gpu("A30").operation_costs, ())
    assert not batch.parallel_operations
    schedule = schedule_from_json(changed(SCHEDULE, ("makespan", DELETE), ("operations", DELETE)))
    assert (schedule.operations, schedule.stated_makespan) == (None, None)
    assert schedule_from_json(changed(SCHEDULE, ("operations", []))).operations == ()
    optional = ("makespan", "gap", "seed", "trajectory", "versions")
    assert result_from_json(changed(RESULT, *((key, DELETE) for key in optional))).trajectory == ()


def test_the_gpu_can_be_replaced(tmp_path: Path) -> None:
    document = changed(BATCH, ("operations", DELETE), ("initial", DELETE), ("gpu", "no such"))
    assert batch_from_json(document, gpu="a100").gpu.name == "A100-40GB"
    (tmp_path / "x.json").write_text(json.dumps(changed(document, ("gpu", DELETE))))
    assert read_batch(tmp_path / "x.json", "H100").gpu.name == "H100-80GB"


def test_layout_of_the_text() -> None:
    text = batch_to_json(batch_from_json(changed(BATCH, ("gpus", 1), ("initial/0/gpu", 0), ("initial/0/free", 0))))
    assert text == (
        "{\n"
        '  "schema": "mig-opt/batch/1",\n'
        '  "gpu": "A30-24GB",\n'
        '  "tasks": [\n'
        '    {"name": "gaussian", "times": {"1": 22.31, "2": 11.52, "4": 6.39}, "memory_gb": 3.2},\n'
        '    {"name": "lu", "times": {"2": 4.0}}\n'
        "  ],\n"
        '  "operations": {"create": {"1": 0.11, "2": 0.12, "4": 0.13}, "destroy": {"1": 0.1, "2": 0.1, "4": 0.0}},\n'
        '  "initial": [\n'
        '    {"gpu": 0, "profile": "2g.12gb", "start": 0}\n'
        "  ],\n"
        '  "parallel_operations": true\n'
        "}\n"
    )
    nested = result_to_json(result_from_json(RESULT))
    assert '\n      {"task": "gaussian", "gpu": 0,' in nested
    assert '\n  "versions": {"mig-opt": "1.0"}\n' in nested


def test_result_without_details_has_the_keys_of_the_contract() -> None:
    document = json.loads(result_to_json(result_from_json(RESULT), details=False))
    assert list(document) == ["status", "method", "makespan", "lower_bound", "gap", "runtime_s", "schedule"]
    assert schedule_from_json(document["schedule"]) == schedule_from_json(SCHEDULE)


def test_infinite_bound_is_null() -> None:
    text = result_to_json(Result(Status.INFEASIBLE, "cp", None, math.inf, 1.0))
    assert json.loads(text)["lower_bound"] is None
    assert result_from_json(text).lower_bound == math.inf


def test_numbers_of_numpy_are_written() -> None:
    batch = Batch((Task("a", {np.int64(1): np.float64(2.5), np.int64(2): np.float32(1.5)}),), get_gpu("A30"))
    assert batch_from_json(batch_to_json(batch)).tasks[0] == Task("a", {1: 2.5, 2: 1.5})
    schedule = Schedule((Run("a", np.int64(0), "1g.6gb", 0, np.float32(0.5), 2),))  # type: ignore[arg-type]
    assert schedule_from_json(schedule_to_json(schedule)).runs == (Run("a", 0, "1g.6gb", 0, 0.5, 2.0),)


# ------------------------------------------------------------------------------------------------- wrong documents


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([("gpu", "A31")], "gpu: unknown GPU 'A31'; did you mean A30"),
        ([("gpu", 3)], "gpu: must be a text in quotes, is 3"),
        ([("gpu", DELETE)], 'gpu: is missing; add it, for example "gpu": "A100-40GB"'),
        ([("schema", DELETE)], 'schema: is missing; add it, for example "schema": "mig-opt/batch/1"'),
        ([("schema", "batch")], 'schema: must be "mig-opt/batch/1", is "batch"'),
        ([("schema", 1)], 'schema: must be "mig-opt/batch/1", is 1'),
        ([("schema", "mig-opt/batch/2")], "schema: mig-opt/batch/2 is newer than the version that this mig_opt reads"),
        ([("schema", "mig-opt/batch/0")], 'schema: must be "mig-opt/batch/1", is "mig-opt/batch/0"'),
        ([("gpus", 0)], "gpus: must be from 1 to 1000000, is 0"),
        ([("gpus", -3)], "gpus: must be from 1 to 1000000, is -3"),
        ([("gpus", 10**50)], "gpus: must be from 1 to 1000000, is 1000000000000000000000000000000000000..."),
        ([("gpus", 2.0)], "gpus: must be a whole number without a decimal point, is 2.0"),
        ([("gpus", True)], "gpus: must be a whole number without a decimal point, is true"),
        ([("tasks", [])], "tasks: needs at least one task, is empty"),
        ([("tasks", {})], "tasks: must be a list [...], is an empty object"),
        ([("tasks", DELETE)], "tasks: is missing; add it"),
        ([("task", [])], "task: unknown key; did you mean tasks?"),
        ([("tasks/1", None)], "tasks[1]: must be an object {...}, is null"),
        ([("tasks/1/name", " ")], "tasks[1].name: must not be empty"),
        ([("tasks/1/name", "gaussian")], "tasks[1].name: 'gaussian' is the name of tasks[0] already"),
        ([("tasks/1/name", DELETE)], 'tasks[1].name: is missing; add it, for example "name": "lu"'),
        ([("tasks/1/memory", 3)], "tasks[1].memory: unknown key; did you mean memory_gb?"),
        ([("tasks/1/times", {})], "tasks[1].times: needs the seconds on at least one instance size, is empty"),
        ([("tasks/1/times/2", -1)], "tasks[1].times.2: must be > 0 seconds, is -1.0"),
        ([("tasks/1/times/2", 0)], "tasks[1].times.2: must be > 0 seconds, is 0.0"),
        ([("tasks/1/times/2", math.nan)], "tasks[1].times.2: must be a finite number of seconds, is nan"),
        ([("tasks/1/times/2", math.inf)], "tasks[1].times.2: must be a finite number of seconds, is inf"),
        ([("tasks/1/times/2", 10**400)], "tasks[1].times.2: must be a finite number of seconds, is inf"),
        ([("tasks/1/times/2", "4")], 'tasks[1].times.2: must be a number, is "4"'),
        ([("tasks/1/times/2", False)], "tasks[1].times.2: must be a number, is false"),
        ([("tasks/1/times/2", None)], "tasks[1].times.2: must be a number, is null"),
        ([("tasks/1/times/3", 1)], "tasks[1].times.3: A30-24GB has no instances of 3 compute slices; its sizes are"),
        ([("tasks/1/times/two", 1)], "tasks[1].times.two: the key must be a number of compute slices"),
        ([("tasks/1/times/02", 1)], "tasks[1].times.02: the key must be a number of compute slices"),
        ([("tasks/1/times/ 2", 1)], 'tasks[1].times." 2": the key must be a number of compute slices'),
        ([("tasks/1/memory_gb", 25)], "tasks[1].memory_gb: 25 GB is more than any profile of A30-24GB has"),
        ([("tasks/1/memory_gb", 0)], "tasks[1].memory_gb: must be a finite number of GB > 0"),
        ([("tasks/1/memory_gb", "3")], 'tasks[1].memory_gb: must be a number, is "3"'),
        ([("operations/create/2", -0.1)], "operations.create.2: must be a finite number of seconds >= 0, is -0.1"),
        ([("operations/create/2", DELETE)], "operations.create: has no seconds for size 2 of A30-24GB"),
        ([("operations/create/7", 1)], "operations.create.7: A30-24GB has no instances of 7 compute slices"),
        ([("operations/create", {}), ("operations/destroy", {})], "operations.create: has no seconds for size 1, 2, 4"),
        ([("operations/destroy", DELETE)], "operations.destroy: is missing; add it"),
        ([("operations/resize", {})], "operations.resize: unknown key"),
        ([("operations/assumed", 1)], "operations.assumed: must be true or false, is 1"),
        ([("operations", [])], "operations: must be an object {...}, is an empty list"),
        ([("initial/0/gpu", 2)], "initial[0].gpu: must be from 0 to 1, is 2"),
        ([("initial/0/profile", "2g.10gb")], "initial[0].profile: A30-24GB has no profile '2g.10gb'; did you mean"),
        ([("initial/0/start", 1)], "initial[0].start: 2g.12gb cannot start at slice 1; legal starts: 0, 2"),
        ([("initial/0/free", -1)], "initial[0].free: must be a finite number of seconds >= 0, is -1.0"),
        ([("initial/0/start", DELETE)], 'initial[0].start: is missing; add it, for example "start": 0'),
        ([("parallel_operations", "yes")], 'parallel_operations: must be true or false, is "yes"'),
    ],
)
def test_wrong_batch(changes: list[tuple[str, Any]], expected: str) -> None:
    (complaint,) = [line for line in complaints(batch_from_json, changed(BATCH, *changes)) if line.startswith(expected)]
    assert complaint


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("runs", DELETE), "runs: is missing; add it"),
        (("runs/0", 1), "runs[0]: must be an object {...}, is 1"),
        (("runs/0/begin", math.nan), "runs[0].begin: must be a finite number, is nan"),
        (("runs/0/end", "x"), 'runs[0].end: must be a number, is "x"'),
        (("runs/0/ned", 1), "runs[0].ned: unknown key; did you mean end?"),
        (("runs/0/gpu", 0.5), "runs[0].gpu: must be a whole number without a decimal point, is 0.5"),
        (("operations/0/kind", "creat"), "operations[0].kind: must be 'create' or 'destroy', is \"creat\""),
        (("operations/0/end", math.inf), "operations[0].end: must be a finite number, is inf"),
        (("operations", {}), "operations: must be a list [...], is an empty object"),
        (("makespan", math.inf), "makespan: must be a finite number, is inf"),
        (("makespan", "1"), 'makespan: must be a number, is "1"'),
        (("schema", "mig-opt/batch/1"), "schema: this is a batch (mig-opt/batch/1), but a schedule is wanted"),
    ],
)
def test_wrong_schedule(change: tuple[str, Any], expected: str) -> None:
    (complaint,) = complaints(schedule_from_json, changed(SCHEDULE, change))
    assert complaint.startswith(expected)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("status", "best"), "status: must be 'optimal', 'feasible', 'infeasible', 'no_solution' or 'interrupted', is"),
        (("method", DELETE), "method: is missing; add it"),
        (("schedule", 3), "schedule: must be an object {...} or null, is 3"),
        (("schedule/runs/0/end", None), "schedule.runs[0].end: must be a number, is null"),
        (("schedule/schema", "mig-opt/result/1"), "schedule.schema: this is a result"),
        (("makespan", 12), "makespan: is 12.0, but follows from the schedule as 11.64"),
        (("gap", None), "gap: is None, but follows from the schedule as 0.5"),
        (("lower_bound", math.nan), "lower_bound: must be a finite number, is nan"),
        (("runtime_s", math.inf), "runtime_s: must be a finite number, is inf"),
        (("runtime_s", None), "runtime_s: must be a number, is null"),
        (("seed", "1"), 'seed: must be a whole number without a decimal point, is "1"'),
        (("trajectory/0/seconds", math.inf), "trajectory[0].seconds: must be a finite number, is inf"),
        (("trajectory/0/lower_bound", math.nan), "trajectory[0].lower_bound: must be a finite number, is nan"),
        (("trajectory/0/bound", 1), "trajectory[0].bound: unknown key; did you mean lower_bound"),
        (("versions/ortools", 9), "versions.ortools: must be a text in quotes, is 9"),
    ],
)
def test_wrong_result(change: tuple[str, Any], expected: str) -> None:
    (complaint,) = complaints(result_from_json, changed(RESULT, change))
    assert complaint.startswith(expected)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("claim", "true"), "claim: must be 'proved', 'refuted' or 'open', is \"true\""),
        (("digest", DELETE), "digest: is missing; add it"),
        (("batch", 3), "batch: must be a text in quotes, is 3"),
        (("better", 3), "better: must be an object {...} or null, is 3"),
        (("better/runs/0/end", None), "better.runs[0].end: must be a number, is null"),
        (("slice_load/weights/1", 0.5), "slice_load.weights[1]: must be a whole number without a decimal point"),
        (("critical_task/value", 4), "critical_task.value: must be a text in quotes, is 4"),
        (("lower_bound", math.nan), "lower_bound: must be a finite number, is nan"),
        (("exact", 1), "exact: must be true or false, is 1"),
        (("schema", "mig-opt/certificate/2"), "schema: mig-opt/certificate/2 is newer than the version"),
    ],
)
def test_wrong_certificate(change: tuple[str, Any], expected: str) -> None:
    (complaint,) = complaints(certificate_from_json, changed(CERTIFICATE, change))
    assert complaint.startswith(expected)


def test_all_problems_at_once() -> None:
    document = changed(
        BATCH,
        ("gpus", True),
        ("gpuss", 1),
        ("parallel_operations", 0),
        ("tasks/0/times/1", -1),
        ("tasks/0/times/2", "3"),
        ("tasks/0/times/3", 1.5),
        ("tasks/0/memory_gb", None),
        ("tasks/0/mem", 3),
        ("tasks/1/name", 7),
        ("tasks/1/times/x", 1),
        ("tasks/1/times/2", math.nan),
        ("operations/create/1", "1"),
        ("operations/destroy/4", DELETE),
        ("initial/0/gpu", None),
    )
    document["tasks"] += [{"name": "gaussian", "times": {"2": 0}}, "lu", *[{"name": f"t{i}", "times": {"2": 1}}
                          for i in range(6)], {"name": "last"}]  # fmt: skip
    document["initial"].append({"gpu": 0, "profile": "1g.6gb", "start": 9})
    found = complaints(batch_from_json, document, source="b.json")
    assert [line.split(": ")[0] for line in found] == [
        "gpus",
        "gpuss",
        "initial[0].gpu",
        "initial[1].start",
        "operations.create.1",
        "operations.destroy",
        "parallel_operations",
        "tasks[0].mem",
        "tasks[0].times.1",
        "tasks[0].times.2",
        "tasks[0].times.3",
        "tasks[1].name",
        "tasks[1].times.2",
        "tasks[1].times.x",
        "tasks[2].name",
        "tasks[2].times.2",
        "tasks[3]",
        "tasks[10].times",
    ]


def test_unknown_gpu_does_not_hide_the_rest() -> None:
    document = changed(BATCH, ("gpu", "A3000"), ("tasks/1/name", "gaussian"), ("tasks/1/times/2", 0), ("gpus", 0))
    found = [line.split(": ")[0] for line in complaints(batch_from_json, document)]
    assert found == ["gpu", "gpus", "tasks[1].name", "tasks[1].times.2"]


def test_another_kind_of_file_is_named() -> None:
    expected = "schema: this is a schedule (mig-opt/schedule/1), but a batch is wanted (mig-opt/batch/1)"
    assert complaints(batch_from_json, SCHEDULE) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "is empty, a JSON object {...} is wanted"),
        ("[1]", "must be a JSON object {...}, is a list"),
        ("null", "must be a JSON object {...}, is null"),
        ('{\n  "schema": 1,\n}', "line 3, column 1: not valid JSON: Expecting property name"),
        ('{"a":' * 100_000, "is nested too deeply"),
        ('{"runs": ' + "[" * 500 + "]" * 500 + "}", "runs[0]: must be an object {...}, is a list"),
    ],
)
def test_no_json_object(text: str, expected: str) -> None:
    assert any(line.startswith(expected) for line in complaints(schedule_from_json, text))


def test_nesting_deeper_than_pydantic_goes() -> None:
    deep = json.loads("[" * 400 + "]" * 400)
    (complaint,) = complaints(schedule_from_json, changed(SCHEDULE, ("runs/0/begin", deep)))
    assert complaint.startswith("runs[0]: cannot be read: recursion limit")


def test_broken_unicode_escape() -> None:
    text = json.dumps(BATCH).replace('"lu"', '"\\ud800"')
    (complaint,) = complaints(batch_from_json, text)
    assert complaint.startswith("tasks[1]: cannot be read: ")


def test_no_json_values() -> None:
    (complaint,) = complaints(batch_from_json, {"schema": {1, 2}})
    assert complaint.startswith("is not made of what JSON can hold")


def test_repeated_keys() -> None:
    text = json.dumps(BATCH).replace('"2": 4', '"2": 4, "2": 5').replace('"gpus": 2', '"gpus": 2, "gpus": 3')
    assert complaints(batch_from_json, text) == [
        "gpus: this key is given more than once; keep one",
        "tasks[1].times.2: this key is given more than once; keep one",
    ]


def test_integers_too_long_for_python() -> None:
    digits = "9" * 5000
    text = json.dumps(BATCH).replace('"2": 4', f'"2": {digits}').replace('"gpus": 2', f'"gpus": {digits}')
    assert complaints(batch_from_json, text) == [
        "gpus: must be a whole number without a decimal point, is Infinity",
        "tasks[1].times.2: must be a finite number of seconds, is inf",
    ]


def test_unknown_gpu_model_is_not_written() -> None:
    gpu = copy.copy(get_gpu("A30"))
    object.__setattr__(gpu, "memory_gb", 25.0)
    assert complaints(batch_to_json, Batch((Task("a", {1: 1.0}),), gpu))[0].startswith("gpu: A30-24GB is not a GPU of")


def test_numbers_that_json_cannot_hold_are_not_written() -> None:
    run = Run("a", 0, "1g.6gb", 0, math.nan, math.inf)
    assert complaints(schedule_to_json, Schedule((run,))) == [
        "makespan: must be a finite number, is inf",
        "runs[0].begin: must be a finite number, is nan",
        "runs[0].end: must be a finite number, is inf",
    ]


# ------------------------------------------------------------------------------------------------------------- CSV


def csv_file(folder: Path, text: str, name: str = "tasks.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def test_csv(tmp_path: Path) -> None:
    text = '\ufefft4_s,task,memory_gb,t1_s\r\n6.39,gaussian,3.2,22.31\r\n\r\n3,"l,\nu",,\r\n , ,,\r\n'
    batch = read_batch(csv_file(tmp_path, text, "mine.CSV"), "A30")
    assert batch.tasks == (Task("gaussian", {1: 22.31, 4: 6.39}, 3.2), Task("l,\nu", {4: 3.0}))
    assert (batch.name, batch.gpu.name, batch.gpus) == ("mine", "A30-24GB", 1)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.from_regex(r"\A[a-z,\" ]*[a-z]\Z"), seconds, min_size=1, max_size=5))
def test_csv_says_what_json_says(tmp_path: Path, times: dict[str, float]) -> None:
    times = {name.strip(): value for name, value in times.items()}
    rows = ['"' + name.replace('"', '""') + f'",{value!r},' for name, value in times.items()]
    batch = read_batch(csv_file(tmp_path, "\n".join(["task,t1_s,t2_s", *rows])), "A30")
    assert batch.tasks == tuple(Task(name, {1: value}) for name, value in times.items())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["is empty; a line with the columns is wanted: task,t1_s,..."]),
        ("task,t1_s\n\n", ["has no rows; add at least one task below the header"]),
        ("name,t1_s\na,1", ["line 1: has no column task", "line 1, name: unknown column \"name\"; known: task, t1_s"]),
        ("task,memory_gb\na,1", ["line 1: has no column with times; add t1_s, t2_s, ..."]),
        ("task;t1_s\na;1", ["line 1: has one column only; separate the columns by commas"]),
        ("task,t1_s,t2\na,1,2", ["line 1, t2: unknown column \"t2\"; did you mean t2_s?"]),
        ("task,t1_s,t3_s\na,1,2\nb,1,2", ["line 1, t3_s: A30-24GB has no instances of 3 compute slices; its sizes"]),
        ("task,t1_s,t1_s\na,1,2", ["line 1, t1_s: this column is given more than once"]),
        ("task,t1_s\na,1\nb\nc,1,2", ["line 3: has 1 cells, the header has 2", "line 4: has 3 cells, the header"]),
        ("task,t1_s\na", ["line 2: has 1 cells, the header has 2"]),
        ("task,t1_s,t2_s\n\na,1,2\nb,3,-1", ["line 4, t2_s: must be > 0 seconds, is -1.0"]),
        ("task,t1_s\na,nan\nb,inf", ["line 2, t1_s: must be a finite number", "line 3, t1_s: must be a finite number"]),
        ('task,t1_s\na,"1,5"\nb,1_0', ["line 2, t1_s: must be a number, is \"1,5\"", "line 3, t1_s: must be a number"]),
        ("task,t1_s\na,1\n,2", ["line 3, task: must not be empty"]),
        ("task,t1_s\na,\nb,1", ["line 2: needs the seconds on at least one instance size, is empty"]),
        ("task,t1_s\nb,1\n\na,1\na,1", ["line 5, task: 'a' is the name of line 4 already; give each task its own"]),
        ("task,t1_s,memory_gb\na,1,99", ["line 2, memory_gb: 99 GB is more than any profile of A30-24GB has"]),
        ("task,t1_s,memory_gb\na,1,x", ["line 2, memory_gb: must be a number, is \"x\""]),
        ('task,t1_s\na,1\n"b,1\n', ["line 3: not valid CSV: unexpected end of data"]),
    ],
)  # fmt: skip
def test_wrong_csv(tmp_path: Path, text: str, expected: list[str]) -> None:
    found = complaints(read_batch, csv_file(tmp_path, text), "A30")
    assert len(found) == len(expected)
    assert all(line.startswith(start) for line, start in zip(found, expected, strict=True)), found


def test_csv_without_gpu_and_with_unknown_gpu(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "task,t1_s\na,-1")
    for gpu, expected in ((None, "gpu: a CSV file does not name its GPU; give it"), ("A31", "gpu: unknown GPU 'A31'")):
        first, second = complaints(read_batch, path, gpu)
        assert first.startswith(expected)
        assert second == "line 2, t1_s: must be > 0 seconds, is -1.0"


# ----------------------------------------------------------------------------------------------- reading from disk


def test_unreadable_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError) as caught:
        read_batch(tmp_path / "none.json")
    assert str(caught.value) == f"{tmp_path / 'none.json'}:\n  no such file"
    assert complaints(read_schedule, tmp_path) == ["is a folder, a file is wanted"]
    assert complaints(read_schedule, "a\0b")[0].startswith("cannot be read: ")
    (tmp_path / "latin.csv").write_bytes("task,t1_s\ncafé,1".encode("latin-1"))
    expected = "is not UTF-8 text (byte 0xe9 at 13); save it as UTF-8"
    assert complaints(read_batch, tmp_path / "latin.csv", "A30") == [expected]

    def refuse(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert complaints(read_result, tmp_path / "secret.json") == ["may not be read; ask for permission"]


def test_the_file_is_named_in_errors(tmp_path: Path) -> None:
    for name, read in (("b", read_batch), ("s", read_schedule), ("r", read_result)):
        path = tmp_path / f"{name}.json"
        path.write_text("{}")
        with pytest.raises(InputError) as caught:
            read(path)
        assert caught.value.source == str(path)


def test_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "bom.json").write_text(json.dumps(BATCH), encoding="utf-8-sig")
    assert read_batch(tmp_path / "bom.json") == batch_from_json(BATCH)


# ------------------------------------------------------------------------------------------------- writing to disk

EMPTY = Schedule(())


def test_unwritable_paths(tmp_path: Path) -> None:
    for write in (lambda path: write_schedule(EMPTY, path), check_writable):
        assert complaints(write, tmp_path) == ["cannot be written: is a folder; name a file in it"]
        missing = tmp_path / "none" / "s.json"
        assert complaints(write, missing) == [
            f"cannot be written: there is no folder {missing.parent}; create it first"
        ]
        assert complaints(write, tmp_path / ("x" * 300))[0].startswith("cannot be written: ")
        assert complaints(write, "a\0b")[0].startswith("cannot be written: ")
        (tmp_path / "loop").unlink(missing_ok=True)
        (tmp_path / "loop").symlink_to(tmp_path / "loop")
        with contextlib.suppress(InputError):  # Python 3.13 replaces such a link, earlier ones refuse
            write(tmp_path / "loop")
        (tmp_path / "loop").unlink(missing_ok=True)
    assert list(tmp_path.iterdir()) == []


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "s.json"
    old.write_text("old")
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda *_: False)
        assert complaints(check_writable, old) == ["cannot be written: the file is write-protected"]

    def refuse(self: Path, **_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "touch", refuse)
    with pytest.raises(InputError) as caught:
        check_writable(old)
    assert str(caught.value) == f"{old}:\n  cannot be written: Permission denied"
    assert complaints(write_schedule, EMPTY, old) == ["cannot be written: Permission denied"]
    assert old.read_text() == "old"


def test_check_writable_leaves_everything_as_it_is(tmp_path: Path) -> None:
    old = tmp_path / "old.json"
    old.write_text("old")
    check_writable(old)
    check_writable(str(tmp_path / "new.json"))
    assert [path.name for path in tmp_path.iterdir()] == ["old.json"]
    assert old.read_text() == "old"


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_nothing_is_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    old = tmp_path / "s.json"
    old.write_text("old")

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(*((os, "fsync") if step == "fsync" else (Path, "replace")), fail)  # type: ignore[call-overload]
    with pytest.raises((InputError, KeyboardInterrupt)) as caught:
        write_schedule(EMPTY, old)
    if isinstance(error, OSError):
        assert str(caught.value) == f"{old}:\n  cannot be written: No space left on device"
    assert old.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["s.json"]


def test_content_that_cannot_be_written_leaves_the_old_file(tmp_path: Path) -> None:
    old = tmp_path / "s.json"
    old.write_text("old")
    for run in (Run("a", 0, "1g.6gb", 0, 0.0, math.inf), Run("\ud800", 0, "1g.6gb", 0, 0.0, 1.0)):
        with pytest.raises(InputError):
            write_schedule(Schedule((run,)), old)
    assert old.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["s.json"]


def test_links_and_modes_are_kept(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    write_schedule(EMPTY, link)
    assert link.is_symlink()
    assert read_schedule(real) == EMPTY
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    (tmp_path / "plain").write_text("")
    write_schedule(EMPTY, tmp_path / "new.json")
    assert (tmp_path / "new.json").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        check_writable(pipe)
        write_schedule(EMPTY, pipe)
        assert schedule_from_json(os.read(reader, 10_000)) == EMPTY
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


# ----------------------------------------------------------------------------------------------------- JSON Schema

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
    "pattern": lambda wanted, value: not isinstance(value, str) or re.search(wanted, value),
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


def places_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of everything in a document."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] * bool(path) + [place for key, entry in entries for place in places_in(entry, (*path, key))]


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_schema_and_reader_agree(kind: Any) -> None:
    """Put wrong and right values everywhere: what the schema refuses the reader refuses, and the other way round."""
    schema, read = json_schema(kind), READERS[kind]
    values = [DELETE, None, True, 0, -1, 2, 2.5, "", "x", "create", [], {}, {"1": 1.0}, {"x": 1}, {"1": 0}]
    # About these a schema can say nothing: they depend on the GPU or on another part of the file.
    beyond = re.compile(
        r"gpu: unknown|cannot start|no profile|must be from 0 to|has no seconds|no instances|follows from|"
        r"no bundled|unknown method|unknown configuration|another label"
    )
    refused = accepted = 0
    for place in places_in(DOCUMENTS[kind]):
        for value in values:
            document = copy.deepcopy(DOCUMENTS[kind])
            parent: Any = document
            for step in place[:-1]:
                parent = parent[step]
            if value is DELETE:
                del parent[place[-1]]
            else:
                parent[place[-1]] = value
            flawed = flaws(schema, document)
            error = ""
            try:
                read(document)
            except InputError as caught:
                error = str(caught)
            if error:
                refused += 1
                assert flawed or beyond.search(error), (place, value, error)
            else:
                accepted += 1
                assert not flawed, (place, value)
    assert refused > 50
    assert accepted > 10


def test_schema_states_the_constraints() -> None:
    batch = json_schema("batch")
    assert batch["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert batch["properties"]["schema"]["const"] == "mig-opt/batch/1"
    task = batch["$defs"]["Task"]
    assert task["required"] == ["name", "times"]
    assert task["properties"]["times"]["patternProperties"] == {
        "^[1-9][0-9]?$": {"type": "number", "exclusiveMinimum": 0}
    }
    assert json_schema("result")["$defs"]["Status"]["enum"] == [status.value for status in Status]
    assert json_schema("schedule")["$defs"]["Operation"]["properties"]["kind"]["enum"] == ["create", "destroy"]
    for kind in DOCUMENTS:
        schema = json_schema(kind)  # type: ignore[arg-type]
        for shape in (schema, *schema["$defs"].values()):
            assert shape["description"]
            if "properties" in shape:
                assert shape["additionalProperties"] is False
                assert all(entry["description"] for entry in shape["properties"].values())


def test_schema_of_an_unknown_kind() -> None:
    assert complaints(json_schema, "bach") == ["kind: no kind of file is called 'bach'; did you mean batch?"]
