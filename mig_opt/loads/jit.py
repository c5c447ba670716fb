"""How the loops over subsets are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def loop(function: F) -> F:
    """Compile ``function`` when it is first called, and let other threads work while it runs.

    The code is kept for later processes, beside the package or in the user's cache; where neither can be written, it
    is compiled in each process anew.
    """
    try:
        return cast(F, njit(cache=True, nogil=True)(function))
    except RuntimeError:  # no place to keep it
        return cast(F, njit(nogil=True)(function))
