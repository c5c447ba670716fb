"""Runs, operations and what is computed from them; lifetimes: the operations at one place, and the runs."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import pytest

from mig_opt.batch.batch import Batch, LiveInstance, Task
from mig_opt.batch.schedule import Operation, OperationKind, Run, Schedule, lifetimes, lifetimes_with_runs
from mig_opt.gpu.catalogue import get_gpu


def test_makespan_and_utilisation_of_the_tiny_schedule(tiny_batch: Batch, tiny_best: Schedule) -> None:
    assert tiny_best.makespan == 6.34
    # big 4 slices x 2 s, left 2 x 3, right 1 x 4, of 4 slices x 6.34 s
    assert tiny_best.utilisation(tiny_batch) == pytest.approx((8 + 6 + 4) / (4 * 6.34))
    assert tiny_best.utilisation(tiny_batch.replace(gpus=2)) == pytest.approx((8 + 6 + 4) / (8 * 6.34))


def test_destructions_after_the_last_run_do_not_count(tiny_best: Schedule) -> None:
    late = Operation("destroy", 0, "2g.12gb", 0, 99.0, 99.1)
    assert tiny_best.replace(operations=(*(tiny_best.operations or ()), late)).makespan == 6.34


def test_without_runs(tiny_batch: Batch) -> None:
    empty = Schedule(())
    assert empty.makespan == 0.0
    assert empty.utilisation(tiny_batch) == 0.0
    assert empty.operations is None


def test_a_stated_makespan_is_a_claim_and_no_part_of_the_plan(tiny_best: Schedule) -> None:
    stated = dataclasses.replace(tiny_best, stated_makespan=7.0)
    assert stated == tiny_best
    assert hash(stated) == hash(tiny_best)
    assert stated.makespan == 6.34
    assert stated.replace(runs=tiny_best.runs).stated_makespan is None


def test_schedules_survive_pickle_and_copy_and_are_frozen(tiny_best: Schedule) -> None:
    for twin in (pickle.loads(pickle.dumps(tiny_best)), copy.copy(tiny_best), copy.deepcopy(tiny_best)):
        assert twin == tiny_best
        assert hash(twin) == hash(tiny_best)
    with pytest.raises(dataclasses.FrozenInstanceError):
        tiny_best.runs = ()
    with pytest.raises(dataclasses.FrozenInstanceError):
        Run("a", 0, "4g.24gb", 0, 0.0, 1.0).begin = 1.0


# Lifetimes

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
