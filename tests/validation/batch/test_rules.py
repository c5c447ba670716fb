"""The rules for schedules: each mistake is found, once, where it is."""

import math
from dataclasses import replace

import pytest
from small_schedule import A30, BATCH, OPERATIONS, RUNS, TINY, codes, found

from mig_opt.batch.batch import Batch, LiveInstance, Task
from mig_opt.batch.schedule import Operation, OperationKind, Run, Schedule
from mig_opt.validation import ViolationCode, validate


def with_run(index: int, **changes: object) -> Schedule:
    return replace(TINY, runs=tuple(replace(run, **changes) if i == index else run for i, run in enumerate(RUNS)))


def with_operation(index: int, **changes: object) -> Schedule:
    operations = (replace(op, **changes) if i == index else op for i, op in enumerate(OPERATIONS))
    return replace(TINY, operations=tuple(operations))


def and_operation(*more: tuple[OperationKind, str, int, float, float]) -> Schedule:
    added = (Operation(kind, 0, profile, start, begin, end) for kind, profile, start, begin, end in more)
    return replace(TINY, operations=(*OPERATIONS, *added))


def and_run(task: str, profile: str, start: int, begin: float, end: float) -> Schedule:
    return replace(TINY, runs=(*RUNS, Run(task, 0, profile, start, begin, end)))


def without(index: int) -> Schedule:
    return replace(TINY, operations=OPERATIONS[:index] + OPERATIONS[index + 1 :])


def test_the_tiny_schedule_is_valid() -> None:
    result = validate(BATCH, TINY)
    assert (result.valid, result.violations, result.makespan, result.schedule) == (True, (), 6.46, TINY)
    assert str(result) == "valid, makespan 6.46 s"


NEVER_MADE = ("destroy-without-create", "operations[4]")
# Each entry: the schedule, and everything that is to be reported - nothing else may follow from one mistake.
BROKEN: dict[str, tuple[Schedule, list[tuple[str, str]]]] = {
    "unknown task": (with_run(0, task="bog"), [("unknown-task", "runs[0].task"), ("missing-task", "tasks[0]")]),
    "missing task": (replace(TINY, runs=RUNS[:2]), [("missing-task", "tasks[2]")]),
    "repeated task": (and_run("left", "2g.12gb", 0, 5.35, 8.35), [("repeated-task", "runs[3].task")]),
    "run on unknown gpu": (with_run(1, gpu=1), [("unknown-gpu", "runs[1].gpu")]),
    "run on negative gpu": (with_run(1, gpu=-1), [("unknown-gpu", "runs[1].gpu")]),
    "operation on unknown gpu": (with_operation(2, gpu=7), [("unknown-gpu", "operations[2].gpu")]),
    "run on unknown profile": (with_run(1, profile="3g.20gb"), [("unknown-placement", "runs[1].profile")]),
    "run at illegal start": (with_run(1, start=1), [("unknown-placement", "runs[1].start")]),
    "operation at illegal start": (with_operation(0, start=2), [("unknown-placement", "operations[0].start")]),
    "gpu and profile unknown": (
        with_run(1, gpu=3, profile="x"),
        [("unknown-gpu", "runs[1].gpu"), ("unknown-placement", "runs[1].profile")],
    ),
    "run not profiled": (
        # The 4g stays (operations 1 and 2 are gone), so its slices are not free for the 1g either.
        Schedule(
            (RUNS[0], Run("right", 0, "4g.24gb", 0, 2.13, 6.13), Run("left", 0, "1g.6gb", 2, 6.13, 11.13)),
            (OPERATIONS[0], OPERATIONS[3]),
        ),
        [("size-not-profiled", "runs[1]"), ("instances-overlap", "operations[1]")],
    ),
    "wrong duration": (with_run(1, end=5.34), [("wrong-duration", "runs[1]")]),
    "too late to tell the duration": (
        Schedule(tuple(replace(run, begin=1e17, end=1e17) for run in RUNS), ()),
        [(code, f"runs[{index}]") for code in ("too-late", "run-without-instance") for index in range(3)],
    ),
    "negative begin": (with_run(0, begin=-1.0, end=1.0), [("bad-time", "runs[0].begin")]),
    "end before begin": (with_run(0, end=0.1), [("bad-time", "runs[0].end")]),
    "not a number": (with_run(0, begin=math.nan), [("bad-time", "runs[0].begin")]),
    "infinite end": (with_run(0, end=math.inf), [("bad-time", "runs[0].end")]),
    "operation without time": (with_operation(2, end=math.nan), [("bad-time", "operations[2].end")]),
    "no instance": (with_run(2, start=3), [("run-without-instance", "runs[2]")]),
    "run before instance": (with_run(2, begin=2.4, end=6.4), [("run-outside-instance", "runs[2]")]),
    "run after instance": (with_run(0, begin=2.0, end=4.0), [("run-outside-instance", "runs[0]")]),
    "run in destroyed instance": (with_run(0, begin=7.0, end=9.0), [("run-outside-instance", "runs[0]")]),
    "runs overlap": (
        and_run("x", "1g.6gb", 2, 6.0, 9.0),
        [("unknown-task", "runs[3].task"), ("runs-overlap", "runs[3]")],
    ),
    "never destroyed": (without(1), [("instances-overlap", f"operations[{index}]") for index in (1, 2)]),
    "footprints overlap": (and_operation(("create", "1g.6gb", 1, 3.0, 3.11)), [("instances-overlap", "operations[4]")]),
    "created during destruction": (
        with_operation(2, begin=2.2, end=2.32),
        [("instances-overlap", "operations[2]"), ("operations-overlap", "operations[2]")],
    ),
    "too many": (
        and_operation(
            ("create", "1g.6gb+me", 3, 3.0, 3.11),
            ("destroy", "1g.6gb", 2, 7.0, 7.1),
            ("create", "1g.6gb+me", 2, 7.1, 7.21),
        ),
        [("too-many-instances", "operations[6]")],
    ),
    "operation too late": (
        replace(TINY, runs=(), operations=(replace(OPERATIONS[0], begin=1e17, end=1e17),)),
        [("missing-task", f"tasks[{index}]") for index in range(3)] + [("too-late", "operations[0]")],
    ),
    "operation too short": (with_operation(3, begin=2.36), [("operation-duration", "operations[3]")]),
    "operations overlap": (
        and_operation(("create", "1g.6gb", 3, 2.4, 2.51)),
        [("operations-overlap", "operations[4]")],
    ),
    "no creation": (without(3), [("run-without-instance", "runs[2]")]),
    "nothing to destroy": (and_operation(("destroy", "1g.6gb", 3, 3.0, 3.1)), [NEVER_MADE]),
    "destroyed twice": (and_operation(("destroy", "4g.24gb", 0, 5.0, 5.1)), [NEVER_MADE]),
    "created twice": (and_operation(("create", "2g.12gb", 0, 3.0, 3.12)), [("create-twice", "operations[4]")]),
    "destroyed before it is created": (
        and_operation(("create", "1g.6gb", 3, 3.0, 3.11), ("destroy", "1g.6gb", 3, 3.05, 3.15)),
        [("operations-overlap", "operations[5]"), ("destroy-too-early", "operations[5]")],
    ),
    "wrong makespan": (replace(TINY, stated_makespan=6.5), [("wrong-makespan", "makespan")]),
    "makespan not a number": (replace(TINY, stated_makespan=math.nan), [("wrong-makespan", "makespan")]),
    "no sequence": (
        Schedule((RUNS[0], replace(RUNS[1], begin=2.34, end=5.34), RUNS[2])),
        [("no-operation-sequence", "runs[1]")],
    ),
}


@pytest.mark.parametrize(("schedule", "expected"), BROKEN.values(), ids=BROKEN)
def test_each_mistake_is_reported_once_and_under_its_own_code(
    schedule: Schedule, expected: list[tuple[str, str]]
) -> None:
    result = validate(BATCH, schedule)
    assert found(result) == expected
    assert not result.valid
    assert all(violation.message for violation in result.violations)


def test_every_code_has_a_case_and_a_description() -> None:
    tested = {code for _, expected in BROKEN.values() for code, _ in expected}
    assert tested | {"insufficient-memory", "without-mig"} == {str(code) for code in ViolationCode}
    assert all(code.description and "\n" not in code.description for code in ViolationCode)
    assert ViolationCode("runs-overlap") is ViolationCode.RUNS_OVERLAP


def test_memory_is_checked() -> None:
    hungry = BATCH.replace(tasks=(*BATCH.tasks[:2], Task("right", {1: 4.0, 2: 3.0}, memory_gb=7)))
    assert found(validate(hungry, TINY)) == [("insufficient-memory", "runs[2]")]
    assert "needs 7 GB; 1g.6gb has 6 GB" in validate(hungry, TINY).violations[0].message


def test_all_violations_are_reported_together_in_words() -> None:
    result = validate(BATCH, replace(with_run(0, end=2.5), stated_makespan=1.0))
    assert str(result).startswith("not valid, 3 violations:\n  runs[0]: ")
    assert str(result.violations[-1]) == (
        "runs[0]: task 'big' ends at 2.5 s, but the destruction of 4g.24gb@0 of GPU 0 begins at 2.13 s "
        "(run-outside-instance)"
    )


def test_tolerance() -> None:
    almost = with_run(1, end=5.3505)
    assert codes(validate(BATCH, almost)) == {"wrong-duration"}
    assert validate(BATCH, almost, tolerance=1e-3).valid
    early = with_run(2, begin=2.4595, end=6.4595)
    assert codes(validate(BATCH, early)) == {"run-outside-instance"}
    assert validate(BATCH, early, tolerance=1e-3).valid
    assert codes(validate(BATCH, Schedule(early.runs))) == {"no-operation-sequence"}
    assert validate(BATCH, Schedule(early.runs), tolerance=1e-3).valid
    assert validate(BATCH, replace(TINY, stated_makespan=6.4600009)).valid


def initial_batch(free: float) -> Batch:
    return Batch(BATCH.tasks, A30, initial=(LiveInstance(0, "4g.24gb", 0, free),))


def test_an_initial_instance_is_not_destroyed_before_it_is_free_nor_created_again() -> None:
    runs = (
        replace(RUNS[1], begin=4.0, end=7.0),
        replace(RUNS[2], begin=4.0, end=8.0),
        Run("big", 0, "4g.24gb", 0, 9, 11),
    )
    operations = (
        Operation("destroy", 0, "4g.24gb", 0, 2.0, 2.1),
        Operation("create", 0, "2g.12gb", 0, 2.1, 2.22),
        Operation("create", 0, "1g.6gb", 2, 2.22, 2.33),
        Operation("destroy", 0, "2g.12gb", 0, 8.0, 8.1),
        Operation("destroy", 0, "1g.6gb", 2, 8.1, 8.2),
        Operation("create", 0, "4g.24gb", 0, 8.2, 8.33),
    )
    assert validate(initial_batch(2.0), Schedule(runs, operations)).valid
    assert found(validate(initial_batch(2.5), Schedule(runs, operations))) == [("destroy-too-early", "operations[0]")]
    result = validate(initial_batch(2.0), Schedule(runs))
    assert result.valid
    assert len(result.schedule.operations or ()) == 6
    again = (Operation("create", 0, "4g.24gb", 0, 0.0, 0.13), *operations[1:])
    assert codes(validate(initial_batch(2.0), Schedule(runs, again))) == {"create-twice", "instances-overlap"}
    # Free at 3.9 s, it makes room at 4.0 s, when the tasks are running already.
    assert found(validate(initial_batch(3.9), Schedule(runs))) == [("no-operation-sequence", "runs[0]")]
