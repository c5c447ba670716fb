"""Tasks, batches and schedules: every problem with its path, which placements count, lifetimes."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
import tiny
from documents import refused
from hypothesis import given
from hypothesis import strategies as st
from strategies import A30, A100, H100, any_gpu, batches, gpus, tasks

from mig_opt import Batch, LiveInstance, OperationCosts, Task
from mig_opt.batch.schedule import Operation, Run, Schedule, lifetimes_with_runs

ONE = (Task("a", {1: 1.0}),)


def test_instances_on_different_gpus_may_have_one_footprint() -> None:
    initial = (LiveInstance(0, "1g.6gb+me", 0), LiveInstance(1, "1g.6gb+me", 0))
    assert Batch(ONE, A30, 2, initial=initial).initial == initial
    twice = (LiveInstance(0, "1g.6gb+me", 0), LiveInstance(0, "1g.6gb+me", 1))
    assert refused(Batch, ONE, A30, initial=twice) == ["initial[1]"]


def test_entries_that_are_something_else_keep_the_others_indices_right() -> None:
    bad = Task("b", {3: 1.0})
    found = refused(Batch, (None, bad), A30, initial=(None, LiveInstance(4, "1g.6gb", 0)))
    assert found == ["tasks[0]", "initial[0]", "tasks[1].times.3", "initial[1].gpu"]


@pytest.mark.parametrize(
    ("times", "memory", "expected"),
    [
        ({1: 1.0}, None, "base"),
        ({1: 1.0}, 5, "base"),
        ({1: 1.0}, 5.5, "double-memory"),
        ({1: 1.0, 7: 1.0}, 10, "double-memory"),
        ({3: 1.0, 7: 1.0}, 20, "base"),
    ],
)
def test_double_memory_profiles_count_if_a_task_needs_one(
    times: dict[int, float], memory: float | None, expected: str
) -> None:
    batch = Batch((*ONE, Task("b", times, memory)), A100)
    assert batch.profile_set == expected
    assert len(batch.placements()) == (14 if expected == "base" else 18)


@given(st.data())
def test_options_are_all_that_a_task_can_use(data: st.DataObject) -> None:
    gpu = data.draw(any_gpu)
    batch = Batch((data.draw(tasks(gpu, "a")), data.draw(tasks(gpu, "b"))), gpu)
    for task in batch.tasks:
        options = dict(batch.options(task))
        assert options
        for placement in gpu.placements("double-memory"):
            profile = placement.profile
            able = profile.compute_slices in task.times and (task.memory_gb or 0) <= profile.memory_gb
            if placement in options:
                assert able
                assert options[placement] == task.times[profile.compute_slices]
            elif able:
                # Left out, because an instance inside this one has the same compute and enough memory.
                assert any(
                    set(other.footprint) < set(placement.footprint)
                    and other.profile.compute_slices == profile.compute_slices
                    for other in options
                )


def test_another_gpu_brings_its_own_costs_unless_they_were_given() -> None:
    assert Batch(ONE, A100).replace(gpu=H100).operations == H100.operation_costs
    assert Batch(ONE, A30).replace(gpu=A100).operations == A100.operation_costs
    zero = OperationCosts.zero(A100)
    assert Batch(ONE, A100, operations=zero).replace(gpu=H100).operations == zero
    assert Batch(ONE, A100).replace(gpu=H100, operations=zero).operations == zero
    assert Batch(ONE, A100).replace(gpus=3).operations == A100.operation_costs
    assert refused(Batch(ONE, A100).replace, gpus=np.ones(2)) == ["gpus"]


@pytest.mark.deep
@given(batches())
def test_batches_and_schedules_survive_pickle_and_copy(batch: Batch) -> None:
    for thing in (batch, tiny.BEST):
        for twin in (pickle.loads(pickle.dumps(thing)), copy.copy(thing), copy.deepcopy(thing), thing.replace()):
            assert twin == thing
            assert hash(twin) == hash(thing)


def test_what_makes_batches_equal() -> None:
    others = {
        tiny.BATCH.replace(gpus=2),
        tiny.BATCH.replace(operations=OperationCosts.zero(A30)),
        tiny.BATCH.replace(initial=(LiveInstance(0, "4g.24gb", 0),)),
        tiny.BATCH.replace(parallel_operations=True),
        tiny.BATCH.replace(tasks=tiny.BATCH.tasks[::-1]),
    }
    assert len(others | {tiny.BATCH, tiny.BATCH.replace(name="another name")}) == 6


@pytest.mark.deep
@given(st.data())
def test_whatever_is_wrong_is_reported_and_nothing_else(data: st.DataObject) -> None:
    """Break a good batch in some ways: exactly those paths are reported."""
    gpu = data.draw(gpus)
    batch = data.draw(batches(st.just(gpu), max_gpus=1))
    entries, expected = list(batch.tasks), set()
    for index, task in enumerate(entries):
        wrong = data.draw(st.sampled_from(["", "", "size", "memory", "name"]))
        if wrong == "size":
            entries[index] = Task(task.name, {**task.times, 5: 1.0}, task.memory_gb)
            expected.add(f"tasks[{index}].times.5")
        elif wrong == "memory":
            entries[index] = Task(task.name, task.times, gpu.memory_gb + 1)
            expected.add(f"tasks[{index}].memory_gb")
        elif wrong == "name" and index:
            entries[index] = Task(entries[0].name, task.times, task.memory_gb)
            expected.add(f"tasks[{index}].name")
    found = refused(batch.replace, tasks=tuple(entries)) if expected else []
    assert sorted(found) == sorted(expected)


def test_makespan_and_utilisation_of_the_tiny_schedule() -> None:
    # big 4 slices x 2 s, left 2 x 3, right 1 x 4, of 4 slices x 6.34 s
    assert tiny.BEST.utilisation(tiny.BATCH) == pytest.approx((8 + 6 + 4) / (4 * 6.34))
    assert tiny.BEST.utilisation(tiny.BATCH.replace(gpus=2)) == pytest.approx((8 + 6 + 4) / (8 * 6.34))
    # Destructions after the last run do not count.
    late = Operation("destroy", 0, "2g.12gb", 0, 99.0, 99.1)
    empty = Schedule(())
    assert (empty.makespan, empty.utilisation(tiny.BATCH), empty.operations) == (0.0, 0.0, None)
    assert tiny.BEST.replace(operations=(*(tiny.BEST.operations or ()), late)).makespan == 6.34


def test_a_stated_makespan_is_a_claim_and_no_part_of_the_plan() -> None:
    stated = dataclasses.replace(tiny.BEST, stated_makespan=7.0)
    assert stated == tiny.BEST
    assert hash(stated) == hash(tiny.BEST)
    assert stated.makespan == 6.34
    assert stated.replace(runs=tiny.BEST.runs).stated_makespan is None


@pytest.mark.parametrize(
    ("late", "expected"),
    [
        (0.0, [["(create)", "a", "(destroy)"], ["(create)", "b"]]),
        (1e-7, [["(create)", "a", "(destroy)"], ["(create)", "b"]]),
        (0.1, [["(create)", "a", "b", "(destroy)"]]),  # beyond the tolerance the order counts
    ],
)
def test_lifetimes_show_operations_that_take_no_time_in_order(late: float, expected: list[list[str]]) -> None:
    batch = Batch((Task("a", {4: 2.0}), Task("b", {4: 1.0})), A30)
    place = (0, "4g.24gb", 0)
    runs = (Run("a", *place, 0.0, 2.0), Run("b", *place, 2.0, 3.0))
    moments = (("create", 0.0), ("create", 2.0), ("destroy", 2.0 + late))
    operations = tuple(Operation(kind, *place, moment, moment) for kind, moment in moments)
    found = lifetimes_with_runs(batch, Schedule(runs, operations))
    assert [[step.label for step in each.steps] for each in found] == expected
    (each,) = lifetimes_with_runs(batch, Schedule((Run("a", *place, 0.13, 2.13),)))
    assert (each.begin, each.last, [step.is_run for step in each.steps]) == (0.13, 2.13, [True])
