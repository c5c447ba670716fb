"""Weights of paths at which divided tasks tell most."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mig_opt.models.solvers import longest_path
from mig_opt.models.solvers.longest_path import path_weights

COVER = np.array([[1, 0, 0, 1, 0], [0, 1, 0, 1, 0], [0, 0, 1, 0, 1], [0, 0, 1, 0, 1]], np.bool_)


@given(st.integers(0, 10**6), st.integers(1, 80))
def test_no_other_weights_give_a_better_bound(seed: int, tasks: int) -> None:
    rng = np.random.default_rng(seed)
    ticks = rng.integers(1, 5_000, (tasks, COVER.shape[1]))
    possible = rng.random(ticks.shape) < 0.7
    possible[np.arange(tasks), rng.integers(0, COVER.shape[1], tasks)] = True
    operations = rng.integers(0, 500, len(COVER))

    def bound(weights: np.ndarray) -> float:
        least = np.where(possible, ticks * (weights @ COVER), np.inf).min(axis=1).sum()
        return float(operations @ weights + least)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(longest_path, "_MAX_TASKS_AT_ONCE", 40)
        best = path_weights(ticks, possible, COVER, operations)
    assert np.isclose(best.sum(), 1)
    assert best.min() >= 0
    for other in rng.dirichlet(np.full(len(COVER), 0.5), 50):
        assert bound(other) <= bound(best) * (1 + 1e-9) + 0.02


def test_a_single_path_has_all_the_weight() -> None:
    ones = np.ones((3, 1), np.bool_)
    assert path_weights(np.array([[1], [2], [3]]), ones, ones[:1], np.array([4])) == [1.0]
