"""Schedules that are planned anew while they run, after tasks that end late."""

import pytest
from documents import refused

from mig_opt import Batch, Commands, Run, Task, get_gpu, run_schedule, undo_schedule
from mig_opt.batch.timing import retimed_schedule
from mig_opt.files.batch.journals import read_journal
from mig_opt.validation import validate

LATE = Batch((Task("late", {2: 0.3}), Task("next", {2: 0.3}), Task("short", {2: 0.5})), get_gpu("A30"))
RUNS = Run("late", 0, "2g.12gb", 0, 0, 1), Run("short", 0, "2g.12gb", 2, 0, 1), Run("next", 0, "2g.12gb", 0, 1, 2)
LATE_PLAN = retimed_schedule(LATE, RUNS)


def late_commands(seconds: float) -> Commands:
    slept = {"late": seconds, "next": 0.3, "short": 0.5}
    return Commands({name: ("sleep", str(time)) for name, time in slept.items()})


def test_what_waits_behind_a_late_task_is_planned_anew(machine, journal):
    wrong = r"replan: must be a share from 0 to 1 .0.01 is one percent., is 20"
    refused(run_schedule, LATE, LATE_PLAN, late_commands(1), match=wrong, journal=journal, replan=20)
    told: list[str] = []
    observe = lambda _, event: told.append(event.text)  # noqa: E731
    found = run_schedule(LATE, LATE_PLAN, late_commands(3.0), journal=journal, replan=0.2, observe=observe)
    runs = {step.task: step for step in found.steps if step.kind == "run"}
    assert (found.complete, runs["next"].start) == (True, 2)
    assert runs["next"].measured[1] < runs["late"].measured[1]
    known = read_journal(journal)
    assert (known.replan, len(known.stages)) == (0.2, 2)
    assert any(text.startswith("the last task ends at ") and text.endswith(" earlier") for text in told)
    assert found.document()["steps"]
    assert validate(*known.measured()).valid
    assert undo_schedule(journal) == []
    assert machine.instances(0) == []


@pytest.mark.parametrize(("seconds", "replan"), [(3.0, None), (0.31, 0.5), (0.31, 0.0)])
def test_a_plan_stays_without_reason_or_gain(machine, journal, seconds, replan):
    found = run_schedule(LATE, LATE_PLAN, late_commands(seconds), journal=journal, replan=replan)
    assert (found.complete, len(read_journal(journal).stages)) == (True, 1)
    assert [step.start for step in found.steps if step.task == "next"] == [0]


def test_a_new_plan_leaves_instances_of_others_alone(machine, journal):
    batch = LATE.replace(tasks=(Task("late", {1: 0.3}), Task("next", {1: 0.3})))
    plan = retimed_schedule(batch, [Run("late", 0, "1g.6gb", 0, 0, 1), Run("next", 0, "1g.6gb", 0, 1, 2)])
    for start in (1, 2, 3):
        machine.add(0, "1g.6gb", start, pid=7)
    found = run_schedule(batch, plan, late_commands(1.5), journal=journal, replan=0.2)
    assert (found.complete, len(read_journal(journal).stages)) == (True, 1)
