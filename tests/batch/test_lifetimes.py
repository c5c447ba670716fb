"""Lifetimes of instances: the operations at one place, and the runs."""

from __future__ import annotations

import pytest

from mig_opt.batch.batch import Batch, LiveInstance, Task
from mig_opt.batch.schedule import Operation, OperationKind, Run, Schedule, lifetimes, lifetimes_with_runs
from mig_opt.gpu.catalogue import get_gpu

PLACE = (0, "2g.12gb", 0)


def operation(kind: OperationKind, begin: float, end: float, start: int = 0) -> Operation:
    return Operation(kind, 0, "2g.12gb", start, begin, end)


Seen = tuple[int, bool, int | None, int | None]


def seen(initial: list[LiveInstance], operations: list[Operation]) -> tuple[list[Seen], list[int]]:
    found, stray = lifetimes(initial, operations)
    assert {(each.gpu, each.profile) for each in found} <= {PLACE[:2]}
    for each in found:
        if each.created is not None:
            assert (each.begin, each.ready) == (operations[each.created].begin, operations[each.created].end)
        if each.destroyed is not None:
            assert (each.close, each.end) == (operations[each.destroyed].begin, operations[each.destroyed].end)
    return [(each.start, each.initial, each.created, each.destroyed) for each in found], stray


@pytest.mark.parametrize("late", [0.0, 1e-7])
def test_of_operations_at_one_moment_the_one_that_makes_sense_is_first(late: float) -> None:
    operations = [operation("create", 0.0, 0.0), operation("create", 2.0, 2.0), operation("destroy", 2.0 + late, 2.0)]
    assert seen([], operations) == ([(0, False, 0, 2), (0, False, 1, None)], [])


def test_beyond_the_tolerance_the_order_counts() -> None:
    operations = [operation("create", 0.0, 0.0), operation("create", 2.0, 2.0), operation("destroy", 2.1, 2.1)]
    assert seen([], operations) == ([(0, False, 0, 2)], [1])


def test_what_never_existed_is_not_destroyed() -> None:
    assert seen([], [operation("destroy", 1.0, 1.1)]) == ([], [0])


def test_lifetimes_show_operations_that_take_no_time_in_order() -> None:
    batch = Batch((Task("a", {4: 2.0}), Task("b", {4: 1.0})), get_gpu("A30"))
    place = (0, "4g.24gb", 0)
    runs = (Run("a", *place, 0.0, 2.0), Run("b", *place, 2.0, 3.0))
    operations = (
        Operation("create", *place, 0.0, 0.0),
        Operation("destroy", *place, 2.0, 2.0),
        Operation("create", *place, 2.0, 2.0),
    )
    found = lifetimes_with_runs(batch, Schedule(runs, operations))
    assert [[step.label for step in each.steps] for each in found] == [
        ["(create)", "a", "(destroy)"],
        ["(create)", "b"],
    ]


def test_lifetimes_without_operations() -> None:
    batch = Batch((Task("a", {4: 2.0}),), get_gpu("A30"))
    (each,) = lifetimes_with_runs(batch, Schedule((Run("a", 0, "4g.24gb", 0, 0.13, 2.13),)))
    assert (each.begin, each.last, [step.is_run for step in each.steps]) == (0.13, 2.13, [True])
