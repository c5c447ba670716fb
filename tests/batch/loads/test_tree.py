"""The load tree: every place once, the root last, and waits only where somebody has to wait."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import any_gpu, batches
from whole_problems import whole_problem

from mig_opt import Batch, LiveInstance, OperationCosts, Task, get_gpu
from mig_opt.batch.loads.tree import LoadTree

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
