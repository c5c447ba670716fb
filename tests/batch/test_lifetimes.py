"""Lives of instances: what operations at one place amount to."""

from __future__ import annotations

import pytest

from mig_opt.batch.batch import LiveInstance
from mig_opt.batch.lifetimes import Life, lives_of
from mig_opt.batch.schedule import Operation, OperationKind

PLACE = (0, "2g.12gb", 0)


def operation(kind: OperationKind, begin: float, end: float, start: int = 0) -> Operation:
    return Operation(kind, 0, "2g.12gb", start, begin, end)


def test_an_instance_that_exists_goes_and_comes_back() -> None:
    operations = [
        operation("create", 2.6, 2.72),
        operation("destroy", 2.5, 2.6),
        operation("create", 1.0, 1.1, start=2),
    ]
    lives, stray = lives_of([LiveInstance(0, "2g.12gb", 0, 0.5)], operations)
    assert lives == [Life(*PLACE, 0.5, None, 1), Life(*PLACE, None, 0, None), Life(0, "2g.12gb", 2, None, 2, None)]
    assert not stray


@pytest.mark.parametrize("late", [0.0, 1e-7])
def test_of_operations_at_one_moment_the_one_that_makes_sense_is_first(late: float) -> None:
    operations = [operation("create", 0.0, 0.0), operation("create", 2.0, 2.0), operation("destroy", 2.0 + late, 2.0)]
    assert lives_of((), operations) == ([Life(*PLACE, None, 0, 2), Life(*PLACE, None, 1, None)], [])


def test_beyond_the_tolerance_the_order_counts() -> None:
    operations = [operation("create", 0.0, 0.0), operation("create", 2.0, 2.0), operation("destroy", 2.1, 2.1)]
    assert lives_of((), operations) == ([Life(*PLACE, None, 0, 2)], [1])


def test_what_never_existed_is_not_destroyed() -> None:
    assert lives_of((), [operation("destroy", 1.0, 1.1)]) == ([], [0])
