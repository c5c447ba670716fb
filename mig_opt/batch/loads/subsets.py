"""Sets of tasks as bits, and tables with a number for each: bit ``i`` stands for task ``i``.

A *table* holds ticks: the length of the longest path through a node of the load tree in which exactly these tasks run.
Lengths of :data:`NEVER` and more stand for what cannot be.

Where there can be more tasks than a number has bits, a set is a row of *words*, the first of which has the first tasks.
"""

from __future__ import annotations

from collections.abc import Iterable

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


_BITS = 64  # of a word


def rows_of_sets(sets: Iterable[int], tasks: int) -> Integers:
    """Return sets of the first tasks as rows of words."""
    starts = range(0, tasks, _BITS)
    rows = np.array([[one >> start & (1 << _BITS) - 1 for start in starts] for one in sets], np.uint64)
    return rows.reshape(-1, len(starts)).view(np.int64)


def sets_of_rows(rows: Integers) -> list[int]:
    """Return the sets that are rows of words."""
    return [sum(word << _BITS * at for at, word in enumerate(row)) for row in rows.view(np.uint64).tolist()]


def contents(rows: Integers, tasks: int) -> npt.NDArray[np.uint8]:
    """Return for each row of words, and each of the first tasks, whether it is in the set: 1 or 0."""
    return np.unpackbits(rows.astype("<i8").view(np.uint8), axis=1, count=tasks, bitorder="little")


def rows_of_contents(contents: npt.NDArray[np.uint8]) -> Integers:
    """Return the rows of words whose :func:`contents` these are."""
    words = -(-contents.shape[1] // _BITS)
    bits = np.zeros((len(contents), words * 8), np.uint8)
    packed = np.packbits(contents, axis=1, bitorder="little")
    bits[:, : packed.shape[1]] = packed
    return bits.view("<i8").astype(np.int64)


def keys(rows: Integers) -> npt.NDArray[np.void]:
    """Return something for each row of words that is the same for the same set, and can be sorted."""
    keys: npt.NDArray[np.void] = np.ascontiguousarray(rows).view(np.dtype((np.void, 8 * rows.shape[1])))[:, 0]
    return keys


def places_of_tasks(choice: Choice) -> list[int]:
    """Return the place of each task in a choice, which has all of them."""
    places = {task: place for place, tasks in choice for task in members(tasks)}
    return [places[task] for task in range(len(places))]
