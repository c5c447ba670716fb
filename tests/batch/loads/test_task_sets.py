"""Sets of tasks in the branches of a layout, its bounds, patterns and partitions, against all assignments."""

import functools
import itertools
import random
from collections.abc import Iterator, Sequence

import highspy
import numpy as np
import pytest
from block_models import solved
from hypothesis import given, settings
from hypothesis import strategies as st
from whole_problems import whole_problem

from mig_opt import Schedule, generate_batch
from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads import division
from mig_opt.batch.loads.branches import Branches, branches_of
from mig_opt.batch.loads.division import divide_exactly
from mig_opt.batch.loads.layout_bounds import fractional_bound, subgradient_prices
from mig_opt.batch.loads.layout_values import LayoutValues, PricedTasks, open_layouts, priced_tasks
from mig_opt.batch.loads.layouts import (
    Layout,
    LayoutTree,
    Member,
    in_one_order,
    layouts_in,
    number_of_layouts,
    whole_layout,
)
from mig_opt.batch.loads.subsets import NEVER
from mig_opt.batch.loads.task_sets import TaskSets
from mig_opt.batch.loads.tree import task_ticks
from mig_opt.method.control import Control
from mig_opt.method.options import RunOptions
from mig_opt.models.batch import layout_relaxation
from mig_opt.models.batch.layout_relaxation import LayoutRelaxation
from mig_opt.models.batch.layout_search import LayoutModel


def paths(problem: IntegerBatch, branches: Branches, layout: Layout) -> list[tuple[int, frozenset[int]]]:
    return LayoutTree(problem, branches, [layout]).paths()


def used(found: list[tuple[int, frozenset[int]]]) -> set[int]:
    """Return the places of some paths."""
    return set().union(*(places for _, places in found))


def members(layout: Layout, around: tuple[Member, ...] = (), waits: int = 0) -> list[tuple[tuple[Member, ...], int]]:
    """Return the members around each leaf, and the number of creations that it waits for."""
    found = []
    for late, member in enumerate(layout, waits):
        here = (*around, member)
        found += members(member.inside, here, late) if member.inside else [(here, late)]
    return found


def places_of(tree: LayoutTree) -> list[int]:
    return sorted({node.place for node in tree.nodes if node.kind == "stack"})


def all_layouts(branches: Branches) -> list[Layout]:
    return [layout for order in branches.orders for layout in layouts_in(branches, order)]


def tasks_of(problem: IntegerBatch, branches: Branches, at_most: int, seed: int, grain: int = 7) -> PricedTasks:
    prices = np.random.default_rng(seed).uniform(0.1, 1.0, len(problem.batch.tasks))
    return priced_tasks(problem, branches, prices, at_most, grain)


@pytest.mark.parametrize("gpu", ["A30", "A100", "RTX-PRO-6000"])
def test_paths_of_a_layout_have_its_operations_and_waits(gpu: str) -> None:
    problem = whole_problem(generate_batch(4, gpu=gpu, seed=1))
    branches = branches_of(problem)
    layouts, whole = all_layouts(branches), whole_layout(branches)
    assert len(layouts) == len(set(layouts)) == number_of_layouts(branches)
    assert whole in layouts
    choices = {in_one_order(layout) for layout in all_layouts(branches.unordered)}
    assert {in_one_order(layout) for layout in layouts} == choices
    for layout in filter(None, layouts[:: max(1, len(layouts) // 50)]):
        expected = []
        for around, waits in members(layout):
            kinds = [kind for member in around for kind in member.use.kinds]
            operations = [(branches.places[kind].create, branches.places[kind].destroy) for kind in kinds]
            ticks = sum(map(sum, operations)) - max(destroy for _, destroy in operations) + waits * branches.wait
            expected.append((ticks, sorted(branches.places[kind].placement.profile.name for kind in kinds)))
        found = paths(problem, branches, layout)
        named = [(ticks, sorted(problem.places[at].placement.profile.name for at in places)) for ticks, places in found]
        assert sorted(named) == sorted(expected)
        # Placements of different paths are apart, those of one path are nested.
        for (_, one), (_, two) in itertools.combinations(found, 2):
            for first, second in itertools.product(one - two, two - one):
                assert not problem.places[first].conflicts(problem.places[second])
        for _, places in found:
            for first, second in itertools.combinations(places, 2):
                assert problem.places[first].conflicts(problem.places[second])
        assert len(used(found)) <= len(used(paths(problem, branches, whole)))


@pytest.mark.parametrize("gpu", ["A30", "A100"])
@pytest.mark.parametrize("may_be_empty", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_all_assignments_within_a_limit_are_listed(gpu: str, may_be_empty: bool, seed: int) -> None:
    problem = whole_problem(generate_batch(4, gpu=gpu, seed=seed))
    branches = branches_of(problem)
    rng, listed = np.random.default_rng(seed), 0
    for tree in trees(problem, seed, 6, most_places=6 if may_be_empty else 3):
        known = [entry for entry in assignments(problem, tree) if may_be_empty or {*entry[1]} == {*places_of(tree)}]
        lengths = sorted(length for length, _ in known)
        for at_most in (lengths[0] - 1, lengths[0], lengths[len(lengths) // 50]):
            tasks = tasks_of(problem, branches, at_most, seed, grain=int(rng.integers(1, 60)))
            sets = TaskSets(tree, tasks, 10**6, may_be_empty=may_be_empty)
            assert sets.fill(lambda: False)
            given = list(map(tuple, sets.assignments()))
            assert len(set(given)) == len(given)
            assert set(given) == {chosen for length, chosen in known if length <= at_most}
            listed += len(given)
    assert listed


def test_layouts_that_are_left_out_have_no_schedule() -> None:
    problem = whole_problem(generate_batch(5, gpu="A30", seed=2))
    branches = branches_of(problem)
    most = max(place.durations[task] for place in problem.places for task in place.durations)
    for at_most in (most // 2, most, 2 * most):
        tasks = tasks_of(problem, branches, at_most, 4)
        entries = open_layouts(branches, tasks, tasks.value, 10**6)
        assert [entry.lower for entry in entries] == sorted(entry.lower for entry in entries)
        lower = {entry.layout: entry.lower for entry in entries}
        for chosen in all_layouts(branches):
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


def trees(problem: IntegerBatch, seed: int, count: int, most_places: int = 99) -> Iterator[LayoutTree]:
    """Yield trees of some layouts, at random."""
    branches = branches_of(problem)
    layouts = list(filter(None, all_layouts(branches)))
    rng = np.random.default_rng(seed)
    found = (LayoutTree(problem, branches, [layouts[at]]) for at in rng.permutation(len(layouts)))
    yield from itertools.islice((tree for tree in found if len(places_of(tree)) <= most_places), count)


def divided(problem: IntegerBatch, tree: LayoutTree) -> float:
    """Return the length of the longest path if tasks may be divided, by a linear program."""
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    longest = model.addVariable(0, 1e9, 1.0)
    places = places_of(tree)
    parts = {
        (task, place): model.addVariable(0, 1, 0.0)
        for task in range(len(problem.batch.tasks))
        for place in places
        if task in problem.places[place].durations
    }
    for task in range(len(problem.batch.tasks)):
        model.addConstr(sum(part for (other, _), part in parts.items() if other == task) == 1)
    loads = {(task, at): problem.places[at].durations[task] * part for (task, at), part in parts.items()}
    for ticks, path in tree.paths():
        model.addConstr(longest >= ticks + sum(load for (_, place), load in loads.items() if place in path))
    model.run()
    return float(model.getInfo().objective_function_value)


@pytest.mark.parametrize("gpu", ["A30", "A100", "RTX-PRO-6000"])
def test_bounds_are_below_every_assignment_and_the_model_finds_the_best(gpu: str) -> None:
    problem = whole_problem(generate_batch(5, gpu=gpu, seed=4))
    branches = branches_of(problem)
    rng = np.random.default_rng(5)
    for tree in trees(problem, 1, 12, most_places=4):
        best = min(length for length, _ in assignments(problem, tree))
        prices = rng.uniform(0.1, 1.0, len(problem.batch.tasks))
        for at_most in (best - 1, best, best + best // 7):
            tasks = priced_tasks(problem, branches, prices, at_most, int(rng.integers(1, 60)))
            assert fractional_bound(tree, tasks.ticks, at_most) <= max(best, at_most + 1)
            improved = subgradient_prices(tree, tasks, prices, 30)
            assert improved.lower <= (best if best <= at_most else at_most + 1)
            assert (improved.prices >= 0).all()
            before = np.searchsorted(LayoutValues(tree, tasks).inside[-1], tasks.value) * tasks.grain
            assert improved.lower >= min(before, at_most + 1)
        ticks = priced_tasks(problem, branches, prices, 10**8, 1).ticks
        assert fractional_bound(tree, ticks, 10**8) <= best
        model = LayoutModel(problem, tree, 0, 2 * best)
        outcome = solved(model.model)
        assert (outcome.proven, outcome.objective) == (True, best)
        assert len(model.places_of(outcome.values)) == len(problem.batch.tasks)
        assert solved(LayoutModel(problem, tree, 0, best - 1).model).infeasible


@pytest.mark.parametrize(("n", "seed"), [(8, 1), (30, 2), (60, 3)])
def test_divided_tasks_are_as_good_as_a_linear_program(n: int, seed: int) -> None:
    problem = whole_problem(generate_batch(n, seed=seed))
    ticks = priced_tasks(problem, branches_of(problem), np.ones(n), 10**8, 1).ticks
    losses = []
    for tree in trees(problem, seed, 12):
        exact = divided(problem, tree)
        found = fractional_bound(tree, ticks, int(exact * 1.001))
        assert found <= exact + 1 + 1e-6 * exact
        losses.append(1 - found / exact)
    assert np.median(losses) <= 0.001
    assert max(losses) <= 0.05


def test_prices_of_its_own_rule_a_layout_out_that_common_ones_leave() -> None:
    problem = whole_problem(generate_batch(14, seed=1))
    branches = branches_of(problem)
    areas = np.array([min(task.times.values()) for task in problem.batch.tasks])
    tasks = priced_tasks(problem, branches, areas, 74_000, 10)
    ruled_out = left = 0
    for tree in trees(problem, 3, 60):
        values = LayoutValues(tree, tasks).inside[-1]
        if values[-1] >= tasks.value:
            left += 1
            ruled_out += subgradient_prices(tree, tasks, areas, 40).lower > 74_000
    assert ruled_out > left // 2 > 5


def test_a_task_that_fits_nowhere_rules_out() -> None:
    problem = whole_problem(generate_batch(5, seed=1))
    branches = branches_of(problem)
    tasks = priced_tasks(problem, branches, np.ones(5), 10, 1)
    for tree in trees(problem, 1, 3):
        assert fractional_bound(tree, tasks.ticks, 10) == 11
        assert subgradient_prices(tree, tasks, np.ones(5), 5).lower == 11


def assignments(problem: IntegerBatch, tree: LayoutTree) -> list[tuple[int, tuple[int, ...]]]:
    """Return the ticks of the longest path in each assignment, and the place of each task."""
    tasks = range(len(problem.batch.tasks))
    options = [[place for place in places_of(tree) if task in problem.places[place].durations] for task in tasks]
    return [(longest_path(problem, tree, chosen), chosen) for chosen in itertools.product(*options)]


def longest_path(problem: IntegerBatch, tree: LayoutTree, chosen: Sequence[int]) -> int:
    loads = [(at, problem.places[at].durations[task]) for task, at in enumerate(chosen)]
    return max(ticks + sum(load for at, load in loads if at in path) for ticks, path in tree.paths())


def hold_against_all_assignments(gpu: str, n: int, seed: int, spare: float) -> None:
    problem = whole_problem(generate_batch(n, gpu=gpu, seed=seed))
    (tree,) = trees(problem, seed, 1, most_places=4)
    control, known = Control[Schedule](RunOptions(workers=1)), assignments(problem, tree)
    ticks = task_ticks(problem, problem.places)
    for all_used in (False, True):
        relaxed = LayoutRelaxation(problem, tree, ticks, all_used=all_used)
        allowed = [entry for entry in known if not all_used or {*entry[1]} == {*places_of(tree)}]
        best = min((length for length, _ in allowed), default=2**40)
        assert relaxed.lower <= best
        at_most = int(min(best, 2**30) * spare)
        assert relaxed.bound(control, at_most) <= max(min(best, at_most + 1), relaxed.lower)
        lower, found = relaxed.divisions(control, at_most)
        assert lower <= max(min(best, at_most + 1), relaxed.lower)
        assert all(length <= at_most for length, chosen in known if chosen in [tuple(places) for places in found])
        left = relaxed.places_left(at_most)
        for length, chosen in allowed:
            if length <= at_most:
                assert all(place in left[task] for task, place in enumerate(chosen))
        shortest = min((length for length, _ in known), default=2**30)
        for limit, steps in itertools.product((shortest - 1, shortest, at_most), (3000, 0)):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(division, "_MAX_STEPS", steps)
                decided = relaxed.assignment(limit, functools.partial(divide_exactly, draw=random.Random(seed)))
            assert not decided.complete or (decided.instances is None) == (shortest > limit)
            assert decided.instances is None or longest_path(problem, tree, decided.instances) <= limit


@pytest.mark.parametrize("seed", range(6))
def test_no_assignment_is_below_the_bounds_or_ruled_out(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout_relaxation, "_MEMBERS", 1)
    hold_against_all_assignments("A30", 4, seed, 1.05)


@pytest.mark.deep
@given(st.sampled_from(["A30", "A30", "A30", "A100"]), st.integers(1, 5), st.integers(0, 10**6), st.floats(0.9, 1.5))
@settings(max_examples=40)
def test_random_layouts(gpu: str, n: int, seed: int, spare: float) -> None:
    hold_against_all_assignments(gpu, min(n, 3) if gpu == "A100" else n, seed, spare)


def test_any_weights_give_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout_relaxation, "path_weights", lambda *given: np.full(len(given[2]), 1 / len(given[2])))
    hold_against_all_assignments("A30", 4, 1, 1.1)


@pytest.mark.parametrize(("gpu", "most_places", "above"), [("A30", 4, 0), ("A100", 9, 3)])
def test_divided_loads_of_whole_tasks_tell_more_and_are_divided_to_the_tick(
    gpu: str, most_places: int, above: int
) -> None:
    problem = whole_problem(generate_batch(60, gpu=gpu, seed=3))
    control = Control[Schedule](RunOptions(workers=1))
    ticks = task_ticks(problem, problem.places)
    gains, divisions = [], 0
    for seed in range(6):
        (tree,) = trees(problem, seed, 1, most_places)
        relaxed = LayoutRelaxation(problem, tree, ticks, all_used=True)
        at_most = relaxed.lower + relaxed.lower // 1000
        gains.append(relaxed.bound(control, at_most) - relaxed.lower)
        lower, found = relaxed.divisions(control, at_most)
        lengths = [longest_path(problem, tree, places) for places in found]
        assert max(lengths, default=0) <= lower + above
        divisions += len(lengths)
    assert min(gains) >= 0
    assert np.max(gains) > 0
    assert divisions > 0
