"""Loads of the memory slices: the core of every bound, and of the search for better schedules.

A schedule of makespan C gives every memory slice at most C seconds of creations, runs and destructions. How small the
largest load can be made by choosing places for the tasks, whatever the order in time, is a problem of its own:

* :mod:`.tree` is its shape, :mod:`.subsets` has the compiled loops over sets of tasks;
* :mod:`.tables` solves it exactly for some twenty tasks and lists all its solutions (dynamic programming);
* :mod:`.state`, :mod:`.neighbourhood`, :mod:`.local_search` and :mod:`.pattern_starts` improve solutions for any number
  of tasks (local search);
* :mod:`.branches` and :mod:`.pricing` bound the tasks that one GPU can run within some time (patterns and dual prices);
* :mod:`.compilation` compiles the loops of all of them.
"""

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
