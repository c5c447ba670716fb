"""Instances with what happens to them, as plans show them."""

from __future__ import annotations

from mig_opt.batch.batch import Batch, LiveInstance, Task
from mig_opt.batch.occupancy import lives_with_runs
from mig_opt.batch.schedule import Operation, Run, Schedule
from mig_opt.gpu.model import get_gpu


def test_lives_of_instances_that_come_again():
    batch = Batch((Task("a", {2: 2.0}), Task("b", {2: 1.0}), Task("c", {4: 1.0})), get_gpu("A30")).replace(
        initial=(LiveInstance(0, "2g.12gb", 0, 0.5), LiveInstance(0, "1g.6gb", 3))
    )
    operations = (
        Operation("destroy", 0, "2g.12gb", 0, 2.5, 2.6),
        Operation("create", 0, "2g.12gb", 0, 2.6, 2.72),
        Operation("destroy", 0, "2g.12gb", 0, 3.72, 3.82),
    )
    runs = (Run("b", 0, "2g.12gb", 0, 2.72, 3.72), Run("a", 0, "2g.12gb", 0, 0.5, 2.5))
    first, idle, second = lives_with_runs(batch, Schedule(runs, operations))
    assert [step.label for step in first.steps] == ["(exists)", "a", "(destroy)"]
    assert (first.begin, first.last) == (0.0, 2.6)
    assert [(str(idle), step.label, step.end) for step in idle.steps] == [("1g.6gb@3", "(exists)", 0.0)]
    assert [step.label for step in second.steps] == ["(create)", "b", "(destroy)"]
    assert (second.begin, second.last) == (2.6, 3.82)


def test_lives_show_operations_that_take_no_time_in_order():
    batch = Batch((Task("a", {4: 2.0}), Task("b", {4: 1.0})), get_gpu("A30"))
    place = (0, "4g.24gb", 0)
    runs = (Run("a", *place, 0.0, 2.0), Run("b", *place, 2.0, 3.0))
    operations = (
        Operation("create", *place, 0.0, 0.0),
        Operation("destroy", *place, 2.0, 2.0),
        Operation("create", *place, 2.0, 2.0),
    )
    lives = lives_with_runs(batch, Schedule(runs, operations))
    assert [[step.label for step in life.steps] for life in lives] == [
        ["(create)", "a", "(destroy)"],
        ["(create)", "b"],
    ]


def test_lives_without_operations():
    batch = Batch((Task("a", {4: 2.0}),), get_gpu("A30"))
    (life,) = lives_with_runs(batch, Schedule((Run("a", 0, "4g.24gb", 0, 0.13, 2.13),)))
    assert (life.begin, life.last, [step.is_run for step in life.steps]) == (0.13, 2.13, [True])
