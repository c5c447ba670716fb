"""Reading and writing files: what is written can be read, and is the same."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import strategies
from documents import complaints, round_trip
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import any_gpu

from mig_opt import Batch, Device, Operation, Run, Schedule, ScheduleResult, Task, get_gpu
from mig_opt.files.batch.batches import BATCH as BATCH_FILE
from mig_opt.files.batch.schedules import RESULT as RESULT_FILE
from mig_opt.files.batch.schedules import SCHEDULE as SCHEDULE_FILE
from mig_opt.files.batch.schedules import result_summary
from mig_opt.method.result import Status, TrajectoryPoint

moments = st.floats(min_value=0, max_value=1e9)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(str.strip)


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    """Any batch, with any names and sources, perhaps on GPUs that are known."""
    drawn = draw(strategies.batches(any_gpu, max_tasks=6, max_gpus=3))
    own = draw(st.lists(names, min_size=len(drawn.tasks), max_size=len(drawn.tasks), unique=True))
    tasks = tuple(replace(task, name=name) for task, name in zip(drawn.tasks, own, strict=True))
    source = draw(st.text(st.characters(codec="utf-8")))
    devices = tuple(Device(2 * gpu, "n1", f"GPU-{gpu}") for gpu in range(drawn.gpus))
    operations = draw(st.sampled_from([drawn.operations, replace(drawn.operations, source=source, assumed=True)]))
    return drawn.replace(tasks=tasks, operations=operations, devices=draw(st.sampled_from([(), devices])))


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
    ScheduleResult,
    status=st.sampled_from(Status),
    method=names,
    plan=st.none() | schedules,
    lower_bound=bounds,
    runtime_s=moments,
    trajectory=st.lists(st.builds(TrajectoryPoint, moments, st.none() | moments, bounds), max_size=3).map(tuple),
    seed=st.integers(min_value=-(2**70), max_value=2**70),
    versions=st.dictionaries(names, names, max_size=3),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(batches())
def test_batch_round_trip(batch):
    text = round_trip(BATCH_FILE, batch)
    assert BATCH_FILE.from_json(text.encode()) == batch


@settings(max_examples=60, deadline=None)
@given(schedules)
def test_schedule_round_trip(schedule):
    text = round_trip(SCHEDULE_FILE, schedule)
    assert SCHEDULE_FILE.from_json(text).stated_makespan == schedule.makespan


@settings(max_examples=60, deadline=None)
@given(results)
def test_result_round_trip(result):
    document = json.loads(round_trip(RESULT_FILE, result), parse_constant=pytest.fail)
    for stands_for_it in (document, result_summary(result)):
        if result.schedule is not None:
            assert SCHEDULE_FILE.from_json(document["schedule"]) == result.schedule
            assert SCHEDULE_FILE.from_json(stands_for_it) == result.schedule
        else:
            problem = "schedule: must be an object {...}, is null: the run has found no schedule"
            assert complaints(SCHEDULE_FILE.from_json, stands_for_it) == [problem]


def test_numbers_of_numpy_are_written():
    batch = Batch((Task("a", {np.int64(1): np.float64(2.5), np.int64(2): np.float32(1.5)}),), get_gpu("A30"))
    assert BATCH_FILE.from_json(BATCH_FILE.to_json(batch)).tasks[0] == Task("a", {1: 2.5, 2: 1.5})
    schedule = Schedule((Run("a", np.int64(0), "1g.6gb", 0, np.float32(0.5), 2),))
    assert SCHEDULE_FILE.from_json(SCHEDULE_FILE.to_json(schedule)).runs == (Run("a", 0, "1g.6gb", 0, 0.5, 2.0),)
