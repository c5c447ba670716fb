"""Usages of a GPU: the queues against all orders of first creations, the knapsacks against all contents."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mig_opt import Batch, OperationCosts, Task, generate_batch, get_gpu
from mig_opt.gpu import Placement
from mig_opt.loads.contents import fill, read_off, sums
from mig_opt.loads.kernels import NEVER
from mig_opt.loads.usages import Usages, Way, usages_of
from mig_opt.ticked import TickedBatch

A30 = TickedBatch(generate_batch(6, gpu="A30", seed=0))


def queues(used: tuple[Placement, ...], order: tuple[Placement, ...]) -> dict[int, int]:
    """Return how many first creations each used slice waits for, from the rule of the members alone."""
    waits = {slice_: 0 for placement in used for slice_ in placement.footprint}
    for one in used:
        for other in used:
            inside, around = set(one.footprint), set(other.footprint)
            if inside & around:
                continue
            apart = [p for p in used if (inside < set(p.footprint)) != (around < set(p.footprint))]
            outer = [p for p in used if inside < set(p.footprint) or around < set(p.footprint)]
            if any(p in apart for p in outer):
                continue
            first_one = min(order.index(p) for p in used if set(p.footprint) <= inside)
            first_other = min(order.index(p) for p in used if set(p.footprint) <= around)
            if first_other < first_one:
                for slice_ in inside:
                    waits[slice_] += 1
    return waits


def way(usages: Usages, covering: list[Placement], queue: int) -> Way:
    kinds = tuple(
        sorted(
            next(at for at, kind in enumerate(usages.kinds) if kind.profile == placement.profile.name)
            for placement in covering
        )
    )
    operations = sum(usages.places[kind].create + usages.places[kind].destroy for kind in kinds)
    return Way(kinds, operations, queue)


def test_every_subset_and_order_on_an_a30() -> None:
    usages = usages_of(A30)
    found = {tuple(sorted(usages.ways[at] for at in row)) for row in usages.rows}
    placements = [place.placement for place in A30.places]
    expected = set()
    for count in range(len(placements) + 1):
        for used in itertools.combinations(placements, count):
            for order in itertools.permutations(used):
                waits = queues(used, order)
                ways = (
                    way(usages, [p for p in used if slice_ in p.footprint], waits.get(slice_, 0)) for slice_ in range(4)
                )
                expected.add(tuple(sorted(ways)))
    assert found == expected


def test_seven_small_instances_of_an_a100_queue_up() -> None:
    usages = usages_of(TickedBatch(generate_batch(8, seed=0)))
    small = next(at for at, kind in enumerate(usages.kinds) if kind.ways == 1)
    rows = [[usages.ways[at] for at in row] for row in usages.rows]
    (alone,) = ([way.queue for way in row] for row in rows if all(way.kinds == (small,) for way in row))
    assert alone == list(range(7))
    assert len(rows) == 14_944


def test_nobody_waits_where_creations_take_no_time_or_do_not_queue() -> None:
    batch = generate_batch(8, gpu="A30", seed=0)
    for other in (
        batch.replace(parallel_operations=True),
        batch.replace(operations=OperationCosts.zero(batch.gpu)),
    ):
        usages = usages_of(TickedBatch(other))
        assert usages.wait == 0
        assert {way.queue for way in usages.ways} == {0}


def test_of_many_placements_those_with_the_same_footprint_are_one() -> None:
    tasks = (Task("a", {1: 3.0}), Task("b", {1: 2.0}, memory_gb=10.0))
    usages = usages_of(TickedBatch(Batch(tasks, get_gpu("A100"))))
    pairs = [kind.profile for kind in usages.kinds if kind.ways == 2]
    assert len(pairs) == 1 or any({usages.kinds[at].profile for at in way.kinds} >= set(pairs) for way in usages.ways)
    for way in usages.ways:
        # At least one of them is used, and it may be the one that takes the least.
        assert way.operations <= sum(usages.places[at].create + usages.places[at].destroy for at in way.kinds)
        assert usages.ticks_around(way) >= 0 or way.queue == 0


@given(
    st.lists(st.tuples(*2 * [st.tuples(st.integers(1, 12), st.integers(0, 50))]), min_size=1, max_size=5),
    st.integers(0, 30),
)
@settings(max_examples=60)
def test_the_best_contents_against_all_of_them(tasks: list[tuple[tuple[int, int], ...]], room: int) -> None:
    times = np.array([[time for time, _ in task] for task in tasks], np.int32)
    times[0, 1] = NEVER
    prices = np.array([[price for _, price in task] for task in tasks], np.int32)
    table = np.zeros((len(tasks) + 1, 31), np.int32)
    fill(times, prices, table)
    best = 0
    for kinds in itertools.product((-1, 0, 1), repeat=len(tasks)):
        chosen = [(task, kind) for task, kind in enumerate(kinds) if kind >= 0]
        if sum(int(times[at]) for at in chosen) <= room:
            best = max(best, sum(int(prices[at]) for at in chosen))
    assert table[-1, room] == best
    picked = [(task, int(kind)) for task, kind in enumerate(read_off(times, prices, table, room)) if kind >= 0]
    assert sum(int(times[at]) for at in picked) <= room
    assert sum(int(prices[at]) for at in picked) == best


def test_sums_of_rows() -> None:
    assert sums(np.array([[0, 2], [1, 1]], np.int32), np.array([5, 7, 11])).tolist() == [16, 14]


@pytest.mark.parametrize("gpu", ["A30", "A100", "RTX-PRO-6000"])
def test_a_way_takes_its_operations_and_its_waits(gpu: str) -> None:
    usages = usages_of(TickedBatch(generate_batch(6, gpu=gpu, seed=1)))
    for way in usages.ways:
        places = [usages.places[at] for at in way.kinds]
        kept = max((place.destroy for place in places), default=0)
        ticks = sum(place.create + place.destroy for place in places) - kept + way.queue * usages.wait
        assert usages.ticks_around(way) == ticks
