"""Relaxation of a layout, against all of its assignments: its bounds are below, and no good assignment is ruled out."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from whole_problems import whole_problem

from mig_opt import generate_batch
from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.branches import branches_of
from mig_opt.batch.loads.layouts import LayoutTree, layouts_in
from mig_opt.batch.loads.tree import task_ticks
from mig_opt.batch.schedule import Schedule
from mig_opt.method.control import Control
from mig_opt.method.options import RunOptions
from mig_opt.models.batch import layout_relaxation
from mig_opt.models.batch.layout_relaxation import LayoutRelaxation


def some_tree(problem: IntegerBatch, seed: int) -> LayoutTree:
    """Return the tree of a layout with four placements at most, at random."""
    branches = branches_of(problem)
    found = [layout for order in branches.orders if order for layout in layouts_in(branches, order)]
    rng = np.random.default_rng(seed)
    while True:
        tree = LayoutTree(problem, branches, [found[rng.integers(len(found))]])
        if sum(node.kind == "stack" for node in tree.nodes) <= 4:
            return tree


def assignments(problem: IntegerBatch, tree: LayoutTree) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield the ticks of the longest path in each assignment, and the place of each task."""
    places = [node.place for node in tree.nodes if node.kind == "stack"]
    tasks = range(len(problem.batch.tasks))
    options = [[place for place in places if task in problem.places[place].durations] for task in tasks]
    for chosen in itertools.product(*options):
        yield (
            max(
                ticks + sum(problem.places[at].durations[task] for task, at in enumerate(chosen) if at in path)
                for ticks, path in tree.paths()
            ),
            chosen,
        )


def hold_against_all_assignments(gpu: str, n: int, seed: int, spare: float) -> None:
    problem = whole_problem(generate_batch(n, gpu=gpu, seed=seed))
    tree = some_tree(problem, seed)
    control = Control[Schedule](RunOptions(workers=1))
    known = list(assignments(problem, tree))
    places = {node.place for node in tree.nodes if node.kind == "stack"}
    ticks = task_ticks(problem, problem.places)
    for all_used in (False, True):
        relaxed = LayoutRelaxation(tree, ticks, all_used=all_used)
        allowed = [entry for entry in known if not all_used or set(entry[1]) == places]
        best = min((length for length, _ in allowed), default=2**40)
        assert relaxed.lower <= best
        at_most = int(min(best, 2**30) * spare)
        assert relaxed.bound(control, at_most) <= max(min(best, at_most + 1), relaxed.lower)
        left = relaxed.places_left(at_most)
        for length, chosen in allowed:
            if length <= at_most:
                assert all(place in left[task] for task, place in enumerate(chosen))


@pytest.mark.parametrize("seed", range(6))
def test_no_assignment_is_below_the_bounds_or_ruled_out(seed: int) -> None:
    hold_against_all_assignments("A30", 4, seed, 1.05)


@pytest.mark.deep
@given(
    st.sampled_from(["A30", "A30", "A30", "A100"]),
    st.integers(1, 5),
    st.integers(0, 10**6),
    st.floats(0.9, 1.5),
)
@settings(max_examples=40)
def test_random_layouts(gpu: str, n: int, seed: int, spare: float) -> None:
    hold_against_all_assignments(gpu, min(n, 3) if gpu == "A100" else n, seed, spare)


def test_any_weights_give_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout_relaxation, "path_weights", lambda *_: None)
    hold_against_all_assignments("A30", 4, 1, 1.1)


def test_divided_loads_of_whole_tasks_tell_more_than_divided_tasks() -> None:
    problem = whole_problem(generate_batch(30, gpu="A30", seed=3))
    control = Control[Schedule](RunOptions(workers=1))
    ticks = task_ticks(problem, problem.places)
    gains = []
    for seed in range(6):
        relaxed = LayoutRelaxation(some_tree(problem, seed), ticks, all_used=True)
        gains.append(relaxed.bound(control, relaxed.lower + relaxed.lower // 100) - relaxed.lower)
    assert min(gains) >= 0
    assert np.max(gains) > 0
