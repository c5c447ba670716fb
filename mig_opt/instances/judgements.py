"""Judgements of plans for instances, and attempts of our own methods at them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from mig_opt.method.result import Result


@dataclass(frozen=True, slots=True)
class Judgement:
    """Judgement of a plan by the validator."""

    valid: bool  # True if the plan keeps every rule of its problem
    value: float | None  # the figure that counts, computed anew; None for a plan that is not valid
    violations: tuple[str, ...] = ()  # everything that is wrong

    @classmethod
    def of(cls, violations: Iterable[object], value: float) -> Self:
        """Return the judgement of a plan with some violations, which has the value if there are none."""
        found = tuple(map(str, violations))
        return cls(not found, None if found else value, found)


@dataclass(frozen=True, slots=True)
class Attempt:
    """Result of our own methods: a plan with its value, a lower bound, and who found them in which time."""

    plan: Any
    value: float | None
    lower_bound: float
    method: str
    seconds: float
    versions: Mapping[str, str]
    bound_method: str = ""  # method of the lower bound, if that is another one

    @classmethod
    def of(cls, result: Result[Any]) -> Self:
        """Return what a run has found; after Ctrl-C in it that goes on."""
        found = result.uninterrupted()
        return cls(found.plan, found.objective, found.lower_bound, found.method, found.runtime_s, found.versions)
