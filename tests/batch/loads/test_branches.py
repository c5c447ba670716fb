"""Branches of a GPU against all first creations, and the load tree: every place once, waits only where needed."""

import itertools
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import any_gpu, batches
from whole_problems import whole_problem

from mig_opt import Batch, LiveInstance, OperationCosts, Placement, Task, generate_batch, get_gpu
from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.branches import Branches, _Listing, branches_of
from mig_opt.batch.loads.tree import LoadTree

SIX = IntegerBatch(generate_batch(6, gpu="A30", seed=0))

Path = tuple[tuple[str, ...], int]
"""The profiles used around a slice, and the first creations that it waits for."""


def queues(used: tuple[Placement, ...], order: tuple[Placement, ...]) -> dict[int, int]:
    """Return how many first creations each used slice waits for, from the rule of the members alone."""
    waits = {slice_: 0 for placement in used for slice_ in placement.footprint}
    for one, other in itertools.product(used, repeat=2):
        inside, around = set(one.footprint), set(other.footprint)
        if not inside & around and all((inside < set(p.footprint)) == (around < set(p.footprint)) for p in used):
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
    placements = [place.placement for place in SIX.places]
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
    assert listed(branches_of(SIX)) == expected


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
    for other in (batch.replace(parallel_operations=True), batch.replace(operations=OperationCosts.zero(batch.gpu))):
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
    listing = _Listing(SIX.places[:1] + SIX.places[1:2] + SIX.places[3:5] * 2, queue=True)
    listing.add([0, 1, 2, 3], [])
    (use,) = listing.branches[0].uses
    assert use.kinds == (0, 1, 2, 3)
    # At least one of them is used, and it may be the one that takes the least.
    assert use.full == min(place.create + place.destroy for place in SIX.places)
    assert use.spared == min(place.create for place in SIX.places)


def test_double_memory_profiles() -> None:
    tasks = (Task("a", {1: 3.0, 2: 2.0}), Task("b", {1: 2.0}, memory_gb=10.0))
    branches = branches_of(IntegerBatch(Batch(tasks, get_gpu("A100"))))
    names = {tuple(sorted(branches.places[kind].placement.profile.name for kind in use.kinds)) for use in branches.uses}
    assert {("1g.10gb",), ("2g.10gb",), ("1g.10gb", "2g.10gb")} <= names


A30, A100 = get_gpu("A30"), get_gpu("A100")


@given(batches(any_gpu, max_tasks=3, max_gpus=3))
@settings(max_examples=100)
def test_the_root_is_last_and_has_every_place_once(batch: Batch) -> None:
    problem = whole_problem(batch)
    tree = LoadTree(problem)
    assert sorted(tree.places_below(len(tree.nodes) - 1)) == list(range(len(problem.places)))
    for gpu, root in enumerate(tree.roots):
        assert sorted(tree.places_below(root)) == [at for at, place in enumerate(problem.places) if place.gpu == gpu]
    for index, node in enumerate(tree.nodes):
        assert max(node.one, node.two) < index
        if node.kind == "stack":
            below = [problem.places[at] for at in tree.places_below(node.one)]
            assert all(problem.places[node.place].conflicts(place) for place in below)
        if node.kind == "split":
            ones, twos = ([problem.places[at] for at in tree.places_below(side)] for side in (node.one, node.two))
            assert not any(one.conflicts(two) for one in ones for two in twos)


COSTS = OperationCosts({1: 0.1, 2: 0.4, 4: 0.9}, {1: 0.2, 2: 0.2, 4: 0.2})
TASK = Task("a", {1: 4.0, 2: 2.0, 4: 1.0})


def waits(batch: Batch) -> set[tuple[int, int]]:
    return {(node.wait_one, node.wait_two) for node in LoadTree(whole_problem(batch)).nodes if node.kind == "split"}


def test_one_of_two_neighbours_waits_for_the_cheapest_creation() -> None:
    assert waits(Batch((TASK,), A30, operations=COSTS)) == {(1, 1)}
    without_ones = Task("a", {2: 2.0, 4: 1.0})
    assert waits(Batch((without_ones,), A30, operations=COSTS)) == {(4, 4)}


@given(st.booleans(), st.booleans())
def test_nobody_waits_for_what_need_not_be_created_or_not_in_turn(parallel: bool, live: bool) -> None:
    initial = (LiveInstance(0, "1g.6gb", 0, 0.0),) if live else ()
    found = waits(Batch((TASK,), A30, 1, COSTS, initial, parallel))
    assert found == ({(0, 0)} if parallel or live else {(1, 1)})


def live(*profiles: tuple[str, int], gpu: int = 0) -> tuple[LiveInstance, ...]:
    return tuple(LiveInstance(gpu, profile, start, 1.0) for profile, start in profiles)


def late(batch: Batch) -> set[tuple[int, int]]:
    return {(node.late_one, node.late_two) for node in LoadTree(whole_problem(batch)).nodes if node.kind == "split"}


DESTROY = OperationCosts({1: 0.1, 2: 0.1, 4: 0.1}, {1: 0.2, 2: 0.4, 4: 0.9})


@pytest.mark.parametrize(
    ("initial", "expected"),
    [
        (live(("1g.6gb", 0), ("1g.6gb", 1)), {(0, 0), (2, 2)}),
        (live(("1g.6gb", 1), ("1g.6gb", 2)), {(0, 0), (2, 2)}),
        (live(("1g.6gb", 0), ("1g.6gb", 1), ("2g.12gb", 2)), {(0, 0), (2, 2)}),
        (live(("1g.6gb", 0)), {(0, 0)}),
        (live(("4g.24gb", 0)), {(0, 0)}),
        ((*live(("1g.6gb", 0)), *live(("1g.6gb", 1), gpu=1)), {(0, 0)}),
    ],
)
def test_of_two_branches_with_live_instances_one_is_cleared_last(
    initial: tuple[LiveInstance, ...], expected: set[tuple[int, int]]
) -> None:
    gpus = 1 + max(entry.gpu for entry in initial)
    assert late(Batch((TASK,), A30, gpus, DESTROY, initial)) == expected
    assert late(Batch((TASK,), A30, gpus, DESTROY, initial, parallel_operations=True)) == {(0, 0)}
