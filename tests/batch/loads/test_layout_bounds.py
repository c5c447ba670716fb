"""Bounds of a layout by prices of its own and by divided tasks, against all of its assignments and a linear program."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import highspy
import numpy as np
import pytest
from whole_problems import whole_problem

from mig_opt import generate_batch
from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.branches import branches_of
from mig_opt.batch.loads.layout_bounds import fractional_bound, subgradient_prices
from mig_opt.batch.loads.layout_values import LayoutValues, priced_tasks
from mig_opt.batch.loads.layouts import LayoutTree, layouts_in
from mig_opt.batch.schedule import Schedule
from mig_opt.method.control import Control
from mig_opt.method.options import RunOptions
from mig_opt.models.batch.layout_search import LayoutModel
from mig_opt.models.solvers.backend import Request
from mig_opt.models.solvers.cpsat import run


def trees(problem: IntegerBatch, seed: int, count: int, most_places: int = 99) -> Iterator[LayoutTree]:
    """Yield trees of some layouts, at random."""
    branches = branches_of(problem)
    layouts = [layout for order in branches.orders if order for layout in layouts_in(branches, order)]
    rng = np.random.default_rng(seed)
    found = (LayoutTree(problem, branches, [layouts[at]]) for at in rng.permutation(len(layouts)))
    few = (tree for tree in found if sum(node.kind == "stack" for node in tree.nodes) <= most_places)
    yield from itertools.islice(few, count)


def shortest(problem: IntegerBatch, tree: LayoutTree) -> int:
    """Return the length of the longest path in the best assignment, by looking at all."""
    places = sorted({node.place for node in tree.nodes if node.kind == "stack"})
    options = [
        [place for place in places if task in problem.places[place].durations]
        for task in range(len(problem.batch.tasks))
    ]
    paths = tree.paths()
    return min(
        (
            max(
                ticks + sum(problem.places[at].durations[task] for task, at in enumerate(chosen) if at in path)
                for ticks, path in paths
            )
            for chosen in itertools.product(*options)
        ),
        default=2**40,
    )


def divided(problem: IntegerBatch, tree: LayoutTree) -> float:
    """Return the length of the longest path if tasks may be divided, by a linear program."""
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    longest = model.addVariable(0, 1e9, 1.0)
    places = sorted({node.place for node in tree.nodes if node.kind == "stack"})
    parts = {
        (task, place): model.addVariable(0, 1, 0.0)
        for task in range(len(problem.batch.tasks))
        for place in places
        if task in problem.places[place].durations
    }
    for task in range(len(problem.batch.tasks)):
        model.addConstr(sum(part for (other, _), part in parts.items() if other == task) == 1)
    for ticks, path in tree.paths():
        load = sum(
            problem.places[place].durations[task] * part for (task, place), part in parts.items() if place in path
        )
        model.addConstr(longest >= ticks + load)
    model.run()
    return float(model.getInfo().objective_function_value)


@pytest.mark.parametrize("gpu", ["A30", "A100", "RTX-PRO-6000"])
def test_bounds_are_below_every_assignment_and_the_model_finds_the_best(gpu: str) -> None:
    problem = whole_problem(generate_batch(5, gpu=gpu, seed=4))
    branches = branches_of(problem)
    rng = np.random.default_rng(5)
    for tree in trees(problem, 1, 12, most_places=4):
        best = shortest(problem, tree)
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
        outcome = run(model.model, Control[Schedule](RunOptions(workers=1)), Request())
        assert outcome.proven
        assert outcome.objective == best
        assert len(model.places_of(outcome.values)) == len(problem.batch.tasks)
        shorter = LayoutModel(problem, tree, 0, best - 1).model
        assert run(shorter, Control[Schedule](RunOptions(workers=1)), Request()).infeasible


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
