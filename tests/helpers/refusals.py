"""Refusals of arguments: what they name."""

from collections.abc import Callable
from typing import Any

import pytest

from mig_opt import InputError


def refused(call: Callable[..., object], *arguments: Any, match: str | None = None, **options: Any) -> list[str]:
    """The paths of the problems of a call, whose message may have to match a pattern."""
    with pytest.raises(InputError, match=match) as caught:
        call(*arguments, **options)
    return [problem.path for problem in caught.value.problems]
