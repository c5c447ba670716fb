"""Loops are compiled also where there is no place to keep them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mig_opt import loads


def twice(number: int) -> int:
    return 2 * number


def test_without_a_place_for_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    original, asked = loads.njit, []

    def homeless(**options: Any) -> Callable[..., Any]:
        asked.append(options.get("cache", False))
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return original(**options)  # type: ignore[no-any-return]

    monkeypatch.setattr(loads, "njit", homeless)
    assert loads.loop(twice)(21) == 42
    assert asked == [True, False]
