"""Schedules without operations: the validator finds them, or says why there are none."""

from __future__ import annotations

from dataclasses import replace

import pytest
from small_schedule import A30, BATCH, OPERATIONS, RUNS, codes, found

from mig_opt.batch.batch import Batch, Task
from mig_opt.batch.schedule import Run, Schedule
from mig_opt.gpu.model import OperationCosts
from mig_opt.validation import validate


def test_operations_are_found_and_the_stated_makespan_is_kept() -> None:
    result = validate(BATCH, Schedule(RUNS, stated_makespan=6.46))
    assert result.valid
    assert result.schedule.stated_makespan == 6.46
    operations = result.schedule.operations or ()
    assert [(o.kind, o.profile, o.start) for o in operations] == [(o.kind, o.profile, o.start) for o in OPERATIONS]
    assert [o.begin for o in operations] == pytest.approx([o.begin for o in OPERATIONS])


def test_without_a_sequence_the_message_names_gpu_operation_and_task() -> None:
    late = Schedule((RUNS[0], replace(RUNS[1], begin=2.34, end=5.34)))
    result = validate(BATCH.replace(tasks=BATCH.tasks[:2]), late)
    assert result.schedule is late
    assert [violation.message for violation in result.violations] == [
        "GPU 0: no sequence of operations is in time for the runs: the destruction of 4g.24gb@0 has to end by 2.22 s, "
        "so that 2g.12gb@0 exists when task 'left' begins on it at 2.34 s, but it cannot end before 2.23 s"
    ]


def test_two_runs_at_once_on_one_instance_are_not_a_matter_of_operations() -> None:
    batch = Batch((Task("a", {2: 3.0}), Task("b", {2: 3.0})), A30)
    runs = (Run("a", 0, "2g.12gb", 0, 1.0, 4.0), Run("b", 0, "2g.12gb", 0, 3.0, 6.0))
    assert found(validate(batch, Schedule(runs))) == [("runs-overlap", "runs[1]")]


def test_one_gpu_without_a_sequence_does_not_hide_what_is_wrong_on_another() -> None:
    batch = Batch((Task("a", {1: 1.0}), Task("b", {1: 1.0}), Task("c", {1: 1.0})), A30, gpus=2)
    runs = (
        Run("a", 0, "1g.6gb", 0, 0.05, 1.05),
        Run("b", 1, "1g.6gb", 0, 0.11, 1.11),
        Run("c", 1, "1g.6gb", 0, 0.6, 1.6),
    )
    result = validate(batch, Schedule(runs))
    assert sorted(found(result)) == [("no-operation-sequence", "runs[0]"), ("runs-overlap", "runs[2]")]
    assert result.schedule.operations is None


def test_an_older_instance_further_down_is_waited_for() -> None:
    # 4g@0, then 2g@0 at once, then 2g@2: the last waits for the end of the 4g, not only for its neighbour in time.
    costs = OperationCosts({1: 0, 2: 0, 4: 0}, {1: 0, 2: 0, 4: 1})
    batch = Batch((Task("a", {4: 1.0}), Task("b", {2: 1.0}), Task("c", {2: 1.0})), A30, operations=costs)
    a, b = Run("a", 0, "4g.24gb", 0, 0.0, 1.0), Run("b", 0, "2g.12gb", 0, 2.0, 3.0)
    assert validate(batch, Schedule((a, b, Run("c", 0, "2g.12gb", 2, 2.5, 3.5)))).valid
    early = Schedule((a, replace(b, begin=5, end=6), Run("c", 0, "2g.12gb", 2, 1.5, 2.5)))
    assert codes(validate(batch, early)) == {"no-operation-sequence"}


def test_a_media_engine_profile_exists_once() -> None:
    batch = Batch((Task("a", {1: 1.0}), Task("b", {1: 1.0}), Task("c", {1: 1.0})), A30)
    me = "1g.6gb+me"
    at_once = (Run("a", 0, me, 0, 1.0, 2.0), Run("b", 0, me, 1, 1.5, 2.5), Run("c", 0, me, 0, 4.0, 5.0))
    assert found(validate(batch, Schedule(at_once))) == [("too-many-instances", "runs[1]")]
    # One after the other, each is destroyed (0.1 s) before the next is created (0.11 s).
    in_turn = (Run("a", 0, me, 0, 1.0, 2.0), Run("b", 0, me, 1, 2.21, 3.21), Run("c", 0, me, 0, 4.0, 5.0))
    result = validate(batch, Schedule(in_turn))
    assert result.valid
    assert [o.kind for o in result.schedule.operations or ()] == ["create", "destroy", "create", "destroy", "create"]
    too_soon = (in_turn[0], Run("b", 0, me, 1, 2.2, 3.2), in_turn[2])
    assert codes(validate(batch, Schedule(too_soon))) == {"no-operation-sequence"}


def test_thousands_of_recreations_need_no_recursion() -> None:
    count = 3000
    batch = Batch(tuple(Task(f"t{i}", {2: 1.0, 4: 1.0}) for i in range(count)), A30)
    runs = []
    for i in range(count):
        profile, start = (("4g.24gb", 0), ("2g.12gb", 2))[i % 2]
        begin = round(0.13 + 1.23 * i, 9)  # 1 s, then 0.1 s to destroy and at most 0.13 s to create
        runs.append(Run(f"t{i}", 0, profile, start, begin, round(begin + 1, 9)))
    result = validate(batch, Schedule(tuple(runs)))
    assert result.valid
    assert len(result.schedule.operations or ()) == 2 * count - 1


def test_operations_that_take_no_time_may_share_a_moment() -> None:
    batch = Batch(BATCH.tasks, A30, operations=OperationCosts.zero(A30))
    runs = (
        replace(RUNS[0], begin=0.0, end=2.0),
        replace(RUNS[1], begin=2.0, end=5.0),
        replace(RUNS[2], begin=2.0, end=6.0),
    )
    result = validate(batch, Schedule(runs))
    assert result.valid
    backwards = result.schedule.replace(operations=reversed(result.schedule.operations or ()))
    assert validate(batch, backwards).valid
