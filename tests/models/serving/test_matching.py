"""The matching of groups: no other pairs gain more."""

from itertools import permutations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mig_opt.models.serving.matches import best_matching


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[list[int]], list[int], list[int]]:
    left, right = (draw(st.lists(st.integers(0, 3), min_size=1, max_size=3)) for _ in range(2))
    return [[draw(st.integers(0, 4)) for _ in right] for _ in left], left, right


def best_gain(gains: list[list[int]], left: list[int], right: list[int]) -> int:
    ours = [group for group, count in enumerate(left) for _ in range(count)]
    theirs = [group for group, count in enumerate(right) for _ in range(count)]
    theirs += [-1] * len(ours)
    return max(
        sum(gains[one][two] for one, two in zip(ours, chosen, strict=True) if two >= 0)
        for chosen in set(permutations(theirs, len(ours)))
    )


@given(cases())
def test_the_gain_is_the_greatest(case: tuple[list[list[int]], list[int], list[int]]) -> None:
    gains, left, right = case
    if sum(left) > 4 or sum(right) > 4:
        return
    pairs = best_matching(np.array(gains), left, right)
    assert (pairs.sum(axis=1) <= left).all()
    assert (pairs.sum(axis=0) <= right).all()
    assert (pairs >= 0).all()
    assert int((pairs * gains).sum()) == best_gain(gains, left, right)
