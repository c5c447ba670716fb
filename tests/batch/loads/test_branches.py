"""Branches of a GPU: their choices and orders against all of first creations."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

import pytest

from mig_opt import Batch, OperationCosts, Task, generate_batch, get_gpu
from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.branches import Branches, _Listing, branches_of
from mig_opt.gpu.model import Placement

A30 = IntegerBatch(generate_batch(6, gpu="A30", seed=0))

Path = tuple[tuple[str, ...], int]
"""The profiles used around a slice, and the first creations that it waits for."""


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


WIDTHS = {"1g.6gb": 1, "2g.12gb": 2, "4g.24gb": 4}


def listed(branches: Branches) -> set[tuple[Path, ...]]:
    """Return the paths of the A30 for each choice and order of members, at all levels."""

    def member(at: int) -> Iterator[tuple[Path, ...]]:
        branch = branches.branches[at]
        for use in branch.uses:
            names = tuple(branches.places[kind].placement.profile.name for kind in use.kinds)
            width = WIDTHS[names[0]]
            for order in branch.orders:
                for paths in together(order):
                    around = [(tuple(sorted((*names, *inner))), late) for inner, late in paths]
                    yield (*around, *((names, 0) for _ in range(width - len(paths))))

    def together(order: tuple[int, ...]) -> Iterator[tuple[Path, ...]]:
        for parts in itertools.product(*map(member, order)):
            yield tuple((names, late + place) for place, paths in enumerate(parts) for names, late in paths)

    found = (paths for order in branches.orders for paths in together(order))
    return {tuple(sorted((*paths, *(4 - len(paths)) * (((), 0),)))) for paths in found}


@pytest.mark.deep
def test_every_subset_and_order_on_an_a30() -> None:
    placements = [place.placement for place in A30.places]
    expected = set()
    for count in range(len(placements) + 1):
        for used in itertools.combinations(placements, count):
            for order in itertools.permutations(used):
                waits = queues(used, order)
                paths = (
                    (tuple(sorted(p.profile.name for p in used if slice_ in p.footprint)), waits.get(slice_, 0))
                    for slice_ in range(4)
                )
                expected.add(tuple(sorted(paths)))
    assert listed(branches_of(A30)) == expected


def test_the_branches_of_an_a100() -> None:
    branches = branches_of(IntegerBatch(generate_batch(8, seed=0)))
    # 1g, 2g, the right and the left half, and all of it.
    assert [len(branch.orders) for branch in branches.branches] == [1, 3, 7, 12, 112]
    # Of the left half 4g, 3g or both.
    assert [len(branch.uses) for branch in branches.branches] == [1, 1, 1, 3, 1]
    assert set(branches.orders) == {*branches.branches[-1].orders, (4,)}
    assert 7 * (0,) in branches.orders
    assert branches.inner == {0, 1, 2, 3}
    numbers = Counter(map(len, branches.orders))
    # Six members: all small, or one of them 2g. Five: all small, one or two of them 2g, or the right half and four.
    assert (numbers[7], numbers[6], numbers[5]) == (1, 1 + 6, 1 + 5 + 10 + 5)


def test_nobody_waits_where_creations_take_no_time_or_do_not_queue() -> None:
    batch = generate_batch(8, gpu="A30", seed=0)
    for other in (
        batch.replace(parallel_operations=True),
        batch.replace(operations=OperationCosts.zero(batch.gpu)),
    ):
        branches = branches_of(IntegerBatch(other))
        assert branches.wait == 0
        assert all(tuple(sorted(order)) == order for order in branches.orders)


def test_a_use_takes_its_operations() -> None:
    branches = branches_of(IntegerBatch(generate_batch(6, seed=1)))
    for use in branches.uses:
        places = [branches.places[kind] for kind in use.kinds]
        assert use.full == sum(place.create + place.destroy for place in places)
        assert use.spared == use.full - max(place.destroy for place in places)


def test_many_kinds_with_the_same_footprint_are_one() -> None:
    listing = _Listing(A30.places[:1] + A30.places[1:2] + A30.places[3:5] * 2, queue=True)
    listing.add([0, 1, 2, 3], [])
    (use,) = listing.branches[0].uses
    assert use.kinds == (0, 1, 2, 3)
    # At least one of them is used, and it may be the one that takes the least.
    assert use.full == min(place.create + place.destroy for place in A30.places)
    assert use.spared == min(place.create for place in A30.places)


def test_double_memory_profiles() -> None:
    tasks = (Task("a", {1: 3.0, 2: 2.0}), Task("b", {1: 2.0}, memory_gb=10.0))
    branches = branches_of(IntegerBatch(Batch(tasks, get_gpu("A100"))))
    names = {tuple(sorted(branches.places[kind].placement.profile.name for kind in use.kinds)) for use in branches.uses}
    assert {("1g.10gb",), ("2g.10gb",), ("1g.10gb", "2g.10gb")} <= names
