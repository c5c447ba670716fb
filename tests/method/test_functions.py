"""Functions as methods: which of their parameters get the problem and the seconds."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from mig_opt.method.functions import planned_by


def alone(problem: object) -> list[Any]:
    return [problem]


def limited(problem: object, seconds: float) -> list[Any]:
    return [problem, seconds]


def named(problem: object, *, seconds: float = 1.0) -> list[Any]:
    return [problem, seconds]


def with_option(problem: object, alpha: float = 0.5) -> list[Any]:
    return [problem, alpha]


def with_more(problem: object, *, seed: int = 0, **more: Any) -> list[Any]:
    return [problem, seed, more]


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (alone, ["b"]),
        (limited, ["b", 7.0]),
        (named, ["b", 7.0]),
        (with_option, ["b", 0.5]),
        (with_more, ["b", 0, {}]),
        (functools.partial(with_more, seed=3), ["b", 3, {}]),
    ],
)
def test_options_keep_their_defaults(function: Any, given: list[Any]) -> None:
    assert planned_by(function, "b", 7.0) == given
