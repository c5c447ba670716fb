"""Sets of tasks as bits, and tables with a number for each: bit ``i`` stands for task ``i``.

A *table* holds ticks: the length of the longest path through a node of the load tree in which exactly these tasks run.
Lengths of :data:`NEVER` and more stand for what cannot be.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mig_opt.gpu.geometry import members

Integers = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]
Table = npt.NDArray[np.int32]

Choice = tuple[tuple[int, int], ...]
"""Pairs of a place and the set of tasks that run there, as bits."""

NEVER = 2**30 - 1
"""Longer than any schedule; the sum of two still fits into 32 bits."""


def places_of_tasks(choice: Choice) -> list[int]:
    """Return the place of each task in a choice, which has all of them."""
    places = {task: place for place, tasks in choice for task in members(tasks)}
    return [places[task] for task in range(len(places))]
