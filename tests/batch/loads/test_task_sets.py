"""Sets of tasks in the branches of a layout, and the assignments that they make up, against all assignments."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from whole_problems import whole_problem

from mig_opt import generate_batch
from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.branches import Branches, branches_of
from mig_opt.batch.loads.layout_values import LayoutValues, PricedTasks, open_layouts, priced_tasks
from mig_opt.batch.loads.layouts import Layout, LayoutTree, Member, layouts_in, number_of_layouts, whole_layout
from mig_opt.batch.loads.subsets import NEVER
from mig_opt.batch.loads.task_sets import TaskSets


def paths(problem: IntegerBatch, branches: Branches, layout: Layout, gpu: int) -> list[tuple[int, frozenset[int]]]:
    """Return the ticks of operations and waits of each path, and its places, in any regions that nest alike."""
    tree = LayoutTree(problem, branches, [()] * gpu + [layout])
    found: list[tuple[int, frozenset[int]]] = []

    def go(at: int, places: frozenset[int]) -> None:
        node = tree.nodes[at]
        if node.kind == "leaf":
            found.append((node.ticks, places))
        elif node.kind == "stack":
            go(node.one, places | {node.place})
        else:
            go(node.one, places)
            go(node.two, places)

    go(len(tree.nodes) - 1, frozenset())
    return found


def members(layout: Layout, around: tuple[Member, ...] = (), waits: int = 0) -> list[tuple[tuple[Member, ...], int]]:
    """Return the members around each leaf, and the number of creations that it waits for."""
    found = []
    for number, member in enumerate(layout):
        here = (*around, member)
        if member.inside:
            found += members(member.inside, here, waits + number)
        else:
            found.append((here, waits + number))
    return found


def tasks_of(problem: IntegerBatch, branches: Branches, at_most: int, seed: int, grain: int = 7) -> PricedTasks:
    prices = np.random.default_rng(seed).uniform(0.1, 1.0, len(problem.batch.tasks))
    return priced_tasks(problem, branches, prices, at_most, grain)


@pytest.mark.parametrize("gpu", ["A30", "A100", "RTX-PRO-6000"])
def test_paths_of_a_layout_have_its_operations_and_waits(gpu: str) -> None:
    problem = whole_problem(generate_batch(4, gpu=gpu, seed=1))
    branches = branches_of(problem)
    layouts = [layout for order in branches.orders for layout in layouts_in(branches, order)]
    assert len(layouts) == number_of_layouts(branches)
    assert len(set(layouts)) == len(layouts)
    whole = whole_layout(branches)
    assert whole in layouts
    for layout in layouts[:: max(1, len(layouts) // 50)]:
        if not layout:
            continue
        expected = []
        for around, waits in members(layout):
            kinds = [kind for member in around for kind in member.use.kinds]
            operations = [(branches.places[kind].create, branches.places[kind].destroy) for kind in kinds]
            ticks = sum(map(sum, operations)) - max(destroy for _, destroy in operations)
            expected.append(
                (ticks + waits * branches.wait, sorted(branches.places[kind].placement.profile.name for kind in kinds))
            )
        found = paths(problem, branches, layout, 0)
        named = [(ticks, sorted(problem.places[at].placement.profile.name for at in places)) for ticks, places in found]
        assert sorted(named) == sorted(expected)
        # Placements of different paths are apart, those of one path are nested.
        for (_, one), (_, two) in itertools.combinations(found, 2):
            for first, second in itertools.product(one - two, two - one):
                assert not problem.places[first].conflicts(problem.places[second])
        for _, places in found:
            for first, second in itertools.combinations(places, 2):
                assert problem.places[first].conflicts(problem.places[second])
        used = set().union(*(places for _, places in found))
        assert len(used) <= len(set().union(*(places for _, places in paths(problem, branches, whole, 0))))


@pytest.mark.parametrize("gpu", ["A30", "A100"])
@pytest.mark.parametrize("may_be_empty", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_all_assignments_within_a_limit_are_listed(gpu: str, may_be_empty: bool, seed: int) -> None:
    problem = whole_problem(generate_batch(4, gpu=gpu, seed=seed))
    branches = branches_of(problem)
    rng = np.random.default_rng(seed)
    layouts = [layout for order in branches.orders for layout in layouts_in(branches, order) if layout][
        :: 7 if gpu == "A100" else 1
    ]
    listed = 0
    small = [
        layout
        for layout in layouts
        if len(set().union(*(places for _, places in paths(problem, branches, layout, 0))))
        <= (6 if may_be_empty else 3)
    ]
    for at in rng.choice(len(small), 6):
        layout = small[at]
        found = paths(problem, branches, layout, 0)
        places = sorted(set().union(*(places for _, places in found)))

        def length(chosen: tuple[int, ...], found: list[tuple[int, frozenset[int]]] = found) -> int:
            return max(
                ticks + sum(problem.places[at].durations[task] for task, at in enumerate(chosen) if at in path)
                for ticks, path in found
            )

        every = [
            chosen
            for chosen in itertools.product(places, repeat=4)
            if (may_be_empty or set(chosen) == set(places))
            and all(task in problem.places[place].durations for task, place in enumerate(chosen))
        ]
        lengths = sorted(map(length, every))
        for at_most in (lengths[0] - 1, lengths[0], lengths[len(lengths) // 50]):
            tasks = tasks_of(problem, branches, at_most, seed, grain=int(rng.integers(1, 60)))
            sets = TaskSets(LayoutTree(problem, branches, [layout]), tasks, 10**6, may_be_empty=may_be_empty)
            assert sets.fill(lambda: False)
            given = list(map(tuple, sets.assignments()))
            assert len(set(given)) == len(given)
            assert set(given) == {chosen for chosen in every if length(chosen) <= at_most}
            listed += len(given)
    assert listed


def test_layouts_that_are_left_out_have_no_schedule() -> None:
    problem = whole_problem(generate_batch(5, gpu="A30", seed=2))
    branches = branches_of(problem)
    layouts = [layout for order in branches.orders for layout in layouts_in(branches, order)]
    most = max(place.durations[task] for place in problem.places for task in place.durations)
    for at_most in (most // 2, most, 2 * most):
        tasks = tasks_of(problem, branches, at_most, 4)
        entries = open_layouts(branches, tasks, tasks.value, 10**6)
        assert entries is not None
        assert [entry.lower for entry in entries] == sorted(entry.lower for entry in entries)
        lower = {entry.layout: entry.lower for entry in entries}
        for chosen in layouts:
            values = LayoutValues(LayoutTree(problem, branches, [chosen]), tasks)
            fits = np.nonzero(values.inside[-1] >= tasks.value)[0]
            assert (chosen in lower) == bool(len(fits))
            if len(fits):
                assert abs(lower[chosen] - fits[0] * tasks.grain) <= 10 * tasks.grain
    assert open_layouts(branches, tasks, tasks.value, 1) is None


def test_too_many_sets_are_given_up() -> None:
    problem = whole_problem(generate_batch(12, gpu="A30", seed=2))
    branches = branches_of(problem)
    tree = LayoutTree(problem, branches, [whole_layout(branches)])
    tasks = tasks_of(problem, branches, 10**6, 1)
    assert not TaskSets(tree, tasks, 10).fill(lambda: False)
    assert not TaskSets(tree, tasks, 10**7).fill(lambda: True)


def test_tasks_are_added_to_values_once() -> None:
    values = np.array([0, 0, 5, 5, 5, 5, 5], np.int32)
    tasks = PricedTasks(np.array([[2, 3, NEVER]], np.int32), np.array([4, 7, 9], np.int32), 20, 6, 1, 20)
    assert tasks.raised(0, values).tolist() == [0, 0, 5, 7, 9, 12, 12]
