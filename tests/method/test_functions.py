"""Functions as methods: which of their parameters get the problem and the seconds."""

import functools
from typing import Any

import pytest

from mig_opt.method.functions import planned_by


def with_more(problem: object, *, seed: int = 0, **more: Any) -> list[Any]:
    return [problem, seed, more]


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (lambda problem: [problem], ["b"]),
        (lambda problem, seconds: [problem, seconds], ["b", 7.0]),
        (lambda problem, *, seconds=1.0: [problem, seconds], ["b", 7.0]),
        (lambda problem, alpha=0.5: [problem, alpha], ["b", 0.5]),
        (with_more, ["b", 0, {}]),
        (functools.partial(with_more, seed=3), ["b", 3, {}]),
    ],
)
def test_options_keep_their_defaults(function: Any, given: list[Any]) -> None:
    assert planned_by(function, "b", 7.0) == given
