"""Runs, operations and what is computed from them."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import pytest

from mig_opt.batch.batch import Batch
from mig_opt.batch.schedule import Operation, Run, Schedule


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
