"""Tasks and batches: every problem with its path, and which placements count."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import any_gpu, batches, gpus, tasks

from mig_opt.batch.batch import Batch, LiveInstance, Task
from mig_opt.errors import InputError
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.gpu.model import OperationCosts

A30, A100, H100 = get_gpu("A30"), get_gpu("A100"), get_gpu("H100")
ONE = (Task("a", {1: 1.0}),)


def problems(make: Callable[[], object]) -> list[tuple[str, str]]:
    with pytest.raises(InputError) as caught:
        make()
    return [(problem.path, problem.message) for problem in caught.value.problems]


# Batches


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: Batch((), A30), ["tasks"]),
        (lambda: Batch(ONE, A30, 0), ["gpus"]),
        (lambda: Batch((*ONE, *ONE), A30), ["tasks[1].name"]),
        (lambda: Batch((*ONE, Task("b", {3: 1.0, 7: 1.0})), A30), ["tasks[1].times.3", "tasks[1].times.7"]),
        (lambda: Batch((Task("a", {4: 1.0}, 24.5),), A30), ["tasks[0].memory_gb"]),
        (
            lambda: Batch(ONE, A30, operations=OperationCosts({1: 0.1, 2: 0.1}, {1: 0.1, 2: 0.1, 4: 0.1, 7: 0.1})),
            ["operations.create", "operations.destroy.7"],
        ),
        (lambda: Batch(ONE, A30, operations=OperationCosts({}, {1: 0.1, 2: 0.1, 4: 0.1})), ["operations.create"]),
        (lambda: Batch(ONE, A30, initial=(LiveInstance(1, "1g.6gb", 0),)), ["initial[0].gpu"]),
        (lambda: Batch(ONE, A30, initial=(LiveInstance(-1, "1g.6gb", 0),)), ["initial[0].gpu"]),
        (lambda: Batch(ONE, A30, initial=(LiveInstance(0, "1g.5gb", 0),)), ["initial[0].profile"]),
        (lambda: Batch(ONE, A30, initial=(LiveInstance(0, "2g.12gb", 1),)), ["initial[0].start"]),
        (lambda: Batch(ONE, A30, initial=(LiveInstance(0, "1g.6gb", 0, -1.0),)), ["initial[0].free"]),
        (lambda: Batch(ONE, A30, initial=(LiveInstance(0, "1g.6gb", 0, math.inf),)), ["initial[0].free"]),
        (
            lambda: Batch(ONE, A30, initial=(LiveInstance(0, "2g.12gb", 0), LiveInstance(0, "1g.6gb", 1))),
            ["initial[1]"],
        ),
        (
            lambda: Batch(ONE, A30, initial=(LiveInstance(0, "1g.6gb+me", 0), LiveInstance(0, "1g.6gb+me", 1))),
            ["initial[1]"],
        ),
    ],
)
def test_each_problem_of_a_batch(make: Callable[[], Batch], expected: list[str]) -> None:
    assert [path for path, _ in problems(make)] == expected


def test_instances_on_different_gpus_may_have_one_footprint() -> None:
    initial = (LiveInstance(0, "1g.6gb+me", 0), LiveInstance(1, "1g.6gb+me", 0))
    assert Batch(ONE, A30, 2, initial=initial).initial == initial


def test_entries_that_are_something_else_keep_the_others_indices_right() -> None:
    bad = Task("b", {3: 1.0})
    found = problems(lambda: Batch((None, bad), A30, initial=(None, LiveInstance(4, "1g.6gb", 0))))
    assert [path for path, _ in found] == ["tasks[0]", "initial[0]", "tasks[1].times.3", "initial[1].gpu"]


def test_a_task_that_fits_nowhere_is_no_input_error_but_has_no_options() -> None:
    # 20 GB exist on an A100, but not with one compute slice: the answer is "infeasible".
    task = Task("a", {1: 1.0}, memory_gb=20)
    assert Batch((task,), A100).options(task) == ()


# Which placements count


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


# Defaults and copies


def test_another_gpu_brings_its_own_costs_unless_they_were_given() -> None:
    assert Batch(ONE, A100).replace(gpu=H100).operations == H100.operation_costs
    assert Batch(ONE, A30).replace(gpu=A100).operations == A100.operation_costs
    zero = OperationCosts.zero(A100)
    assert Batch(ONE, A100, operations=zero).replace(gpu=H100).operations == zero
    assert Batch(ONE, A100).replace(gpu=H100, operations=zero).operations == zero
    assert Batch(ONE, A100).replace(gpus=3).operations == A100.operation_costs


@pytest.mark.deep
@given(batches())
def test_batches_survive_pickle_and_copy(batch: Batch) -> None:
    for twin in (pickle.loads(pickle.dumps(batch)), copy.copy(batch), copy.deepcopy(batch), batch.replace()):
        assert twin == batch
        assert hash(twin) == hash(batch)
        assert twin.placements() == batch.placements()


def test_what_makes_batches_equal(tiny_batch: Batch) -> None:
    others = {
        tiny_batch.replace(gpus=2),
        tiny_batch.replace(operations=OperationCosts.zero(A30)),
        tiny_batch.replace(initial=(LiveInstance(0, "4g.24gb", 0),)),
        tiny_batch.replace(parallel_operations=True),
        tiny_batch.replace(tasks=tiny_batch.tasks[::-1]),
    }
    assert len(others | {tiny_batch}) == 6
    assert tiny_batch.replace(name="another name") == tiny_batch
    assert hash(tiny_batch.replace(name="another name")) == hash(tiny_batch)


def test_batches_are_frozen(tiny_batch: Batch) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        tiny_batch.gpus = 2


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
    found = problems(lambda: batch.replace(tasks=tuple(entries))) if expected else []
    assert {path for path, _ in found} == expected
    assert len(found) == len(expected)


def test_a_name_is_not_a_gpu() -> None:
    with pytest.raises(InputError, match=r"gpu: must be a GpuModel, for example get_gpu\('A100'\), is 'A30'"):
        Batch((Task("a", {1: 1.0}),), "A30")
