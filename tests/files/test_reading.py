"""Documents that are wrong: every problem is named, with its path."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
from documents import BATCH, CERTIFICATE, DELETE, RESULT, SCHEDULE, changed, complaints

from mig_opt.batch.batch import Batch, Task
from mig_opt.batch.schedule import Run, Schedule
from mig_opt.files.batch.batches import batch_from_json, batch_to_json
from mig_opt.files.batch.certificates import certificate_from_json
from mig_opt.files.batch.schedules import result_from_json, schedule_from_json, schedule_to_json
from mig_opt.gpu.catalogue import get_gpu


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
