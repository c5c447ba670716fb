"""Branches of a GPU, the load tree, and the pricing problem: the best patterns and partitions against all of them."""

import itertools
import time
from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from strategies import A30, A100, any_gpu, batches
from whole_problems import whole_problem

from mig_opt import Batch, LiveInstance, OperationCosts, Task, generate_batch
from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.branches import Branches, _Listing, branches_of
from mig_opt.batch.loads.columns import PricingProblem, combine_in_orders, fill_knapsack, knapsack_choice, order_rows
from mig_opt.batch.loads.gpu_sets import GpuSets
from mig_opt.batch.loads.layout_values import PricedTasks
from mig_opt.batch.loads.partitions import partition_of_sets
from mig_opt.batch.loads.subsets import NEVER, contents, rows_of_sets
from mig_opt.batch.loads.tree import LoadTree
from mig_opt.gpu.model import GpuModel, Profile

tables = st.lists(st.integers(-1, 30), min_size=9, max_size=9).map(lambda values: np.array(sorted(values), np.int32))


@given(st.lists(st.tuples(*2 * [st.integers(1, 12)], st.integers(0, 50)), min_size=1, max_size=5), st.integers(0, 30))
@settings(max_examples=60)
def test_the_best_tasks_of_a_placement_against_all_of_them(tasks: list[tuple[int, int, int]], room: int) -> None:
    times = np.array([task[:2] for task in tasks], np.int32)
    times[0, 1] = NEVER
    prices = np.array([task[2] for task in tasks], np.int32)
    table = np.zeros((len(tasks) + 1, 31), np.int32)
    fill_knapsack(times, prices, table)
    last = np.zeros((2, 31), np.int32)
    fill_knapsack(times, prices, last)
    assert (last[len(tasks) % 2] == table[-1]).all()
    best = 0
    for kinds in itertools.product((-1, 0, 1), repeat=len(tasks)):
        chosen = [(task, kind) for task, kind in enumerate(kinds) if kind >= 0]
        if sum(int(times[at]) for at in chosen) <= room:
            best = max(best, sum(int(prices[task]) for task, _ in chosen))
    assert table[-1, room] == best
    picked = [(task, int(kind)) for task, kind in enumerate(knapsack_choice(times, prices, table, room)) if kind >= 0]
    assert sum(int(times[at]) for at in picked) <= room
    assert sum(int(prices[task]) for task, _ in picked) == best


@given(
    st.lists(tables, min_size=1, max_size=3),
    st.lists(st.lists(st.integers(0, 2), max_size=4), max_size=6),
    st.integers(0, 4),
)
def test_members_in_orders(members: list[np.ndarray], orders: list[list[int]], wait: int) -> None:
    orders = [[at % len(members) for at in order] for order in orders]
    best = np.full(9, 5, np.int32)
    combine_in_orders(np.array(members), order_rows([tuple(order) for order in orders]), wait, best)
    for room in range(9):
        highest = 5
        for order in orders:
            lefts = [room - place * wait for place in range(len(order))]
            values = [members[at][left] if left >= 0 else -1 for at, left in zip(order, lefts, strict=True)]
            if min(values, default=0) >= 0:
                highest = max(highest, sum(map(int, values)))
        assert best[room] == highest


@pytest.mark.parametrize("gpu", ["A30", "A100", "RTX-PRO-6000"])
def test_patterns_have_the_value_in_the_tables_and_fit(gpu: str) -> None:
    problem = IntegerBatch(generate_batch(7, gpu=gpu, seed=3))
    branches = branches_of(problem)
    most = 4 * 10**4
    prices, alone = (PricingProblem(problem, branches, most, 40) for _ in range(2))
    rng = np.random.default_rng(5)
    for _ in range(3):
        values = rng.uniform(1, 1000, 7)
        prices.set_dual_prices(values)
        for ticks in (most // 3, most - 1):
            best = prices.best_values(ticks)
            assert len(best) == len(branches.orders)
            for order, value in zip(branches.orders, best, strict=True):
                if value > 0:
                    members = [prices.filled(at, place, ticks) for place, at in enumerate(order)]
                    for place, at in enumerate(order):
                        alone.set_dual_prices(values, member=at)
                        assert alone.filled(at, place, ticks) == members[place]
                    pattern = prices.pattern(members)
                    assert prices.ticks_within(pattern) <= ticks
                    share = sum(values[task] for task in pattern.tasks) / values.sum()
                    assert value / prices.value == pytest.approx(share, rel=1e-4)
    # A task that runs nowhere else is in one member only; the whole GPU takes it in once.
    whole = PricingProblem(problem, branches, most, 40)
    whole.set_dual_prices(np.eye(7)[0])
    assert 0 < whole.best_values(most - 1).max() <= len(problem.places) * whole.value


EVERYTHING = 2**9 - 1


def found_in(
    sets: list[int],
    prices: list[int],
    count: int,
    *,
    most_steps: int = 2**40,
    workers: int = 1,
    expired: bool = False,
    most_of_first: int | None = None,
) -> tuple[tuple[int, ...] | None, int]:
    known, priced = rows_of_sets(sorted(set(sets)), len(prices)), np.array(prices, np.int32)
    values = contents(known, len(prices)) @ priced.astype(np.int64)
    tasks = PricedTasks(np.ones((1, len(prices)), np.int32), priced, int(priced.sum()), 10, 1, 2**20)
    listed = GpuSets(known, values, np.zeros(len(known), np.int64), np.zeros(len(known), np.int64))
    return partition_of_sets(listed, tasks, count, most_steps, workers, lambda: expired, 0, most_of_first)[:2]


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
    blocks = {1 << at: (1 << 13) - 1 << 13 * at for at in range(9)}  # of tasks that stay together, in two words
    wide = [sum(block for bit, block in blocks.items() if one & bit) for one in sets]
    found_wide, _ = found_in(wide, [price for price in prices for _ in range(13)], count)
    exists = any(
        sum(some) == EVERYTHING and all(not one & other for one, other in itertools.combinations(some, 2))
        for some in itertools.combinations(sorted(set(sets)), count)
    )
    assert found is not None
    assert found_wide is not None
    assert bool(found) == bool(found_wide) == exists
    assert steps >= 0
    if found:
        assert len(found) == count
        assert sum(found) == EVERYTHING
        assert set(found) <= set(sets)


@pytest.mark.parametrize("seed", range(24))
def test_there_is_one_among_hundreds_of_sets_if_there_is_any(seed: int) -> None:
    rng, count = Random(seed), 2 + seed % 6
    sizes = [12 // count, 12 // count, 12 // count + 1, 12 // count + 2]
    sets = {sum(1 << at for at in rng.sample(range(12), rng.choice(sizes))) for _ in range(rng.choice([70, 150, 600]))}
    reached = {0}
    for _ in range(count):
        reached = {one | other for one in reached for other in sets if not one & other}
    found, _ = found_in(list(sets), [rng.randint(0, 9) for _ in range(12)], count, workers=2)
    assert found is not None
    assert bool(found) == (2**12 - 1 in reached)
    assert not found or (sum(found) == 2**12 - 1 and set(found) <= sets)


@pytest.mark.parametrize(("count", "most"), [(3, 60), (4, 60), (3, 64), (4, 126), (9, 126)])
def test_the_only_one_among_thousands_of_sets_is_found(count: int, most: int) -> None:
    rng, tasks = Random(count), list(range(most))
    rng.shuffle(tasks)
    parts = {sum(1 << at for at in tasks[part::count]) for part in range(count)}
    number = 40_000 if count < 9 else 900
    others = {sum(1 << at for at in rng.sample(range(most), most // count)) for _ in range(number)}
    found, _ = found_in([*parts, *others], [1] * most, count, workers=2)
    assert set(found or ()) == parts


def test_a_search_in_parts_never_says_that_there_is_none_where_there_is_one() -> None:
    rng, ones, outcomes, most = Random(3), [1] * 18, set(), 50_000
    for at in range(40):
        sets = [sum(1 << at for at in rng.sample(range(18), 3)) for _ in range(30 + 2 * at)]
        whole, _ = found_in(sets, ones, 6)
        found, _ = found_in(sets, ones, 6, most_steps=most, most_of_first=most // 16)
        assert whole is not None
        assert found is None or bool(found) == bool(whole)
        outcomes.add(None if found is None else bool(found))
    assert outcomes == {None, True, False}


@pytest.mark.parametrize("limits", [{"most_steps": 3}, {"expired": True}])
def test_a_search_that_ends_too_early_says_so(limits: dict[str, int]) -> None:
    found, _ = found_in(list(range(1, EVERYTHING)), [1] * 9, 4, **limits)
    assert found is None


def test_many_sets_with_the_first_task() -> None:
    """The partition is found in whichever part of the sets its first one is."""
    sets = [one for one in range(1, EVERYTHING) if one & 1 and one.bit_count() == 5] + [0b111100000]
    assert found_in(sets, [1] * 9, 2)[0] == (0b000011111, 0b111100000)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_search_ends_with_the_time(workers: int) -> None:
    """Five tasks in each set, but 41 tasks: all has to be looked at."""
    rng, looks = Random(1), itertools.count()
    known = rows_of_sets({sum(1 << at for at in rng.sample(range(41), 5)) for _ in range(20_000)}, 41)
    figures = np.full(len(known), 5, np.int64)
    tasks = PricedTasks(np.ones((1, 41), np.int32), np.ones(41, np.int32), 40, 10, 1, 2**20)
    sets = GpuSets(known, figures, figures, figures)
    found, *_ = partition_of_sets(sets, tasks, 8, 2**60, workers, lambda: next(looks) > 3)
    assert found is None  # and without an end it takes hours


SIX = IntegerBatch(generate_batch(6, gpu="A30", seed=0))


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


def sliced(slices: int, *sizes: int) -> Branches:
    """The branches of a GPU that can be cut into instances of these sizes, wherever there is room for one."""
    profiles = tuple(Profile(f"{s}g", s, s, s, s, slices // s, tuple(range(0, slices, s))) for s in sizes)
    costs = OperationCosts(*[dict.fromkeys(sizes, 0.1)] * 2)
    gpu = GpuModel("sliced", "sliced", slices, slices, slices, profiles, costs)
    return branches_of(IntegerBatch(Batch((Task("a", dict.fromkeys(sizes, 3.0)),), gpu)))


def test_orders_of_many_members_are_not_listed() -> None:
    assert sliced(12, 1).orders == tuple((0,) * count for count in range(13))
    some, many = sliced(8, 1, 2, 4), sliced(32, 1, 2, 4)
    assert (some.wait, (0, 1) in some.orders, (1, 0) in some.orders) == (1, True, True)
    assert (many.wait, (0, 1) in many.orders, (1, 0) in many.orders) == (0, True, False)


def test_branches_of_many_gpus_take_little_time() -> None:
    live = tuple(LiveInstance(gpu, "1g.5gb", 0, 1.0) for gpu in range(100))
    problem = IntegerBatch(Batch(generate_batch(10, seed=0).tasks, A100, 100, initial=live))
    before = time.process_time()
    assert len([branches_of(problem, gpus) for gpus in problem.groups]) == 100
    assert time.process_time() - before < 5, "seconds; each looked at the places of all GPUs, for 20 together"


def test_a_use_takes_its_operations() -> None:
    branches = branches_of(IntegerBatch(generate_batch(6, seed=1)))
    for use in branches.uses:
        places = [branches.places[kind] for kind in use.kinds]
        assert use.full == sum(place.create + place.destroy for place in places)
        assert use.spared == use.full - max(place.destroy for place in places)


def test_many_kinds_with_the_same_footprint_are_one() -> None:
    listing = _Listing(SIX.places[:1] + SIX.places[1:2] + SIX.places[3:5] * 2)
    listing.add([0, 1, 2, 3], [])
    (use,) = listing.branches[0].uses
    assert use.kinds == (0, 1, 2, 3)
    # At least one of them is used, and it may be the one that takes the least.
    assert use.full == min(place.create + place.destroy for place in SIX.places)
    assert use.spared == min(place.create for place in SIX.places)


def test_double_memory_profiles() -> None:
    tasks = (Task("a", {1: 3.0, 2: 2.0}), Task("b", {1: 2.0}, memory_gb=10.0))
    branches = branches_of(IntegerBatch(Batch(tasks, A100)))
    names = {tuple(sorted(branches.places[kind].placement.profile.name for kind in use.kinds)) for use in branches.uses}
    assert {("1g.10gb",), ("2g.10gb",), ("1g.10gb", "2g.10gb")} <= names


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
