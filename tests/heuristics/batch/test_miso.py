"""``miso-opt``: speedups and partitions by hand, and against every choice that there is."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mig_opt.batch.batch import Batch, LiveInstance, Task
from mig_opt.batch.schedule import Schedule
from mig_opt.gpu.catalogue import get_gpu
from mig_opt.gpu.model import ProfileSet
from mig_opt.heuristics.batch.miso import PartitionChoices, miso_opt, speedups_of
from mig_opt.method.control import Control

A30, A100 = get_gpu("A30"), get_gpu("A100")

SCALES, FLAT, LAST = {1: 6.0, 2: 2.0, 4: 2.0}, {1: 4.0, 2: 4.0, 4: 4.0}, {1: 9.0, 2: 3.0, 4: 1.0}


def run(batch: Batch) -> Schedule:
    control = Control[Schedule]()
    miso_opt(batch, control)
    assert control.plan is not None
    return control.plan


def runs_of(schedule: Schedule) -> dict[str, tuple[str, int, float]]:
    return {entry.task: (entry.profile[:2], entry.start, entry.begin) for entry in schedule.runs}


# By hand


def test_partitions_follow_each_other() -> None:
    # Speedups of a are 1, 3, 3, those of b and c 1: 4 gives 3, 2+2 gives 3 + 1, 2+1+1 gives 3 + 1 + 1, and four slices
    # 4 with d. What is left then is d, with 1, 3 and 9.
    batch = Batch((Task("a", SCALES), Task("b", FLAT), Task("c", FLAT), Task("d", LAST)), A30)
    schedule = run(batch)
    # Created until 0.12, 0.23, 0.34. The 2g is destroyed at 2.12, the slices at 4.23-4.33 and 4.34-4.44; 4g 4.44-4.57.
    assert runs_of(schedule) == {
        "a": ("2g", 0, 0.12),
        "b": ("1g", 2, 0.23),
        "c": ("1g", 3, 0.34),
        "d": ("4g", 0, 4.57),
    }
    assert [(entry.kind, entry.begin) for entry in schedule.operations or ()] == [
        ("create", 0.0),
        ("create", 0.12),
        ("create", 0.23),
        ("destroy", 2.12),
        ("destroy", 4.23),
        ("destroy", 4.34),
        ("create", 4.44),
    ]
    assert schedule.makespan == 5.57
    assert run(batch.cost_free()).makespan == 5.0


def test_the_next_partition_is_for_the_gpu_that_is_free_first() -> None:
    tasks = tuple(Task(f"t{index}", {4: seconds}) for index, seconds in enumerate((3.0, 1.0, 1.0, 1.5)))
    schedule = run(Batch(tasks, A30, gpus=2, initial=(LiveInstance(0, "4g.24gb", 0, 2.0),)))
    # GPU 0 is busy until 2: t0 on GPU 1 until 3.13, t1 and t2 on GPU 0 until 4, t3 on GPU 1.
    assert {entry.task: (entry.gpu, entry.begin) for entry in schedule.runs} == {
        "t0": (1, 0.13),
        "t1": (0, 2.0),
        "t2": (0, 3.0),
        "t3": (1, 3.13),
    }


def test_a_task_that_fits_on_nothing_that_is_left_waits_for_the_next_partition() -> None:
    batch = Batch((Task("narrow", {1: 2.0}), Task("wide", {4: 3.0}), Task("other", {1: 2.0})), A30)
    # narrow alone on a slice of 2+1+1, the first partition with one, the rest of it idle; then wide; then other.
    schedule = run(batch)
    assert runs_of(schedule) == {"narrow": ("1g", 2, 0.11), "wide": ("4g", 0, 2.34), "other": ("1g", 2, 5.55)}


@pytest.mark.parametrize(
    ("times", "memory", "expected"),
    [
        ({1: 6.0, 2: 2.0, 4: 1.5}, None, [4.0, 3.0, 1.0]),
        ({2: 3.0, 4: 2.0}, None, [3.0, 2.0, None]),  # as if it took 6 s on one slice
        ({1: 6.0, 2: 2.0, 4: 1.5}, 8.0, [4.0, 3.0, None]),  # measured there, but forbidden
        ({4: 2.0}, None, [4.0, None, None]),
        ({1: 1.0, 2: 2.0}, None, [None, 0.5, 1.0]),
    ],
)
def test_speedups(times: dict[int, float], memory: float | None, expected: list[float | None]) -> None:
    assert speedups_of(Task("a", times, memory), PartitionChoices(A30, "base").profiles) == expected


# Any batches


speedup = st.one_of(st.none(), st.integers(1, 12).map(lambda n: n / 4), st.floats(0.1, 10))


@given(st.data(), st.sampled_from(["base", "double-memory"]))
def test_the_sum_of_speedups_is_the_largest_of_all_choices(data: st.DataObject, profiles: ProfileSet) -> None:
    choices = PartitionChoices(A100, profiles)
    width = len(choices.profiles)
    rows = data.draw(st.lists(st.lists(speedup, min_size=width, max_size=width), min_size=1, max_size=4))
    column = {profile: at for at, profile in enumerate(choices.profiles)}

    def total(order: Sequence[int]) -> float:
        values = [row[at] for row, at in zip(rows, order, strict=False)]
        return -math.inf if None in values else sum(value or 0.0 for value in values)

    found = choices.best(rows)
    assert len(set(found)) == len(found) <= len(rows)
    assert any(set(found) <= set(partition) for partition in A100.maximal_partitions(profiles))
    multisets = {
        tuple(sorted(column[placement.profile] for placement in state))
        for state in A100.placed_states(profiles)
        if len(state) <= len(rows)
    }
    best = max(total(order) for state in multisets for order in set(itertools.permutations(state)))
    assert total([column[placement.profile] for placement in found]) == pytest.approx(best)
