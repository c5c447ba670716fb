"""Partitions of all tasks into sets that are known."""

from __future__ import annotations

import itertools
import time
from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mig_opt.batch.loads.gpu_sets import GpuSets
from mig_opt.batch.loads.layout_values import PricedTasks
from mig_opt.batch.loads.partitions import partition_of_sets

EVERYTHING = 2**9 - 1


def found_in(
    sets: list[int], prices: list[int], count: int, *, most_steps: int = 2**30, workers: int = 1, expired: bool = False
) -> tuple[tuple[int, ...] | None, int]:
    known, priced = np.unique(np.array(sets, np.int64)), np.array(prices, np.int32)
    values = np.array([sum(prices[at] for at in range(9) if one >> at & 1) for one in known.tolist()], np.int64)
    tasks = PricedTasks(np.ones((1, 9), np.int32), priced, int(priced.sum()), 10, 1, 2**20)
    listed = GpuSets(known, values, np.zeros(len(known), np.int64), np.zeros(len(known), np.int64))
    return partition_of_sets(listed, tasks, count, most_steps, workers, lambda: expired)


@given(
    st.lists(st.integers(1, EVERYTHING), min_size=1, max_size=60),
    st.lists(st.integers(0, 20), min_size=9, max_size=9),
    st.integers(1, 5),
    st.integers(1, 3),
)
@example([EVERYTHING], [1] * 9, 1, 1)
@settings(max_examples=300)
def test_there_is_one_if_there_is_any(sets: list[int], prices: list[int], count: int, workers: int) -> None:
    found, steps = found_in(sets, prices, count, workers=workers)
    exists = any(
        sum(some) == EVERYTHING and all(not one & other for one, other in itertools.combinations(some, 2))
        for some in itertools.combinations(sorted(set(sets)), count)
    )
    assert found is not None
    assert bool(found) == exists
    assert steps >= 0
    if found:
        assert len(found) == count
        assert sum(found) == EVERYTHING
        assert set(found) <= set(sets)


@pytest.mark.parametrize("limits", [{"most_steps": 3}, {"expired": True}])
def test_a_search_that_ends_too_early_says_so(limits: dict[str, int]) -> None:
    found, _ = found_in(list(range(1, EVERYTHING)), [1] * 9, 4, **limits)  # type: ignore[arg-type]
    assert found is None


def test_many_sets_with_the_first_task() -> None:
    """The partition is found in whichever part of the sets its first one is."""
    sets = [one for one in range(1, EVERYTHING) if one & 1 and one.bit_count() == 5] + [0b111100000]
    assert found_in(sets, [1] * 9, 2)[0] == (0b000011111, 0b111100000)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_search_ends_with_the_time(workers: int) -> None:
    """Five tasks in each set, and none with the last task: all has to be looked at."""
    rng, end = Random(1), time.monotonic() + 0.3
    known = np.unique([sum(1 << at for at in rng.sample(range(39), 5)) for _ in range(20_000)])
    figures = np.full(len(known), 5, np.int64)
    tasks = PricedTasks(np.ones((1, 40), np.int32), np.ones(40, np.int32), 40, 10, 1, 2**20)
    found, _ = partition_of_sets(
        GpuSets(known, figures, figures, figures), tasks, 8, 2**60, workers, lambda: time.monotonic() > end
    )
    assert found is None
    assert time.monotonic() < end + 2.0
