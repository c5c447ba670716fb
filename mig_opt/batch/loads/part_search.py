"""Short searches for the places of some tasks on some GPUs, from which starts for all of them are made."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Collection
from typing import NamedTuple

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.local_search import LoadSearch, Possible
from mig_opt.batch.loads.subsets import Integers


class PlacedTasks(NamedTuple):
    """Places of some tasks, by index."""

    places: dict[int, int]
    work: float  # approximate seconds that it took to find them
    length: int  # ticks of the longest path


class PartSearch:
    """Searches on parts of a batch.

    Parameters
    ----------
    batch : IntegerBatch
        The whole; all GPUs are alike.
    """

    def __init__(self, batch: IntegerBatch) -> None:
        self._problem = batch
        self._places_per_gpu = len(batch.places) // len(batch.gpus)

    def search(
        self, some: Collection[int], gpus: int, cycles: int, seed: int, possible: Possible, over: Callable[[], bool]
    ) -> PlacedTasks:
        """Return places with short paths for some tasks on the first GPUs, after some cycles of a search.

        Parameters
        ----------
        some : collection of int
            Tasks, one at least.
        gpus, cycles : int
            Number of GPUs, and of cycles.
        seed : int
            Seed of the random choices.
        possible : array of bool, shape (tasks, places)
            True where each task of the whole may run.
        over : callable
            True if no time is left.
        """
        tasks = sorted(some)
        part = self._problem.part(tasks, gpus)
        start = [
            next(at for at, place in enumerate(part.places) if task in place.durations) for task in range(len(tasks))
        ]
        search = LoadSearch(part, start, seed, 1)
        search.forbid(~possible[tasks, : len(part.places)])
        with contextlib.closing(search.cycles(0, over)) as running:
            for _ in itertools.islice(running, cycles):
                if over():
                    break
        return PlacedTasks(
            dict(zip(tasks, search.places, strict=True)), cycles * search.seconds_per_cycle, search.length
        )

    def move(self, found: PlacedTasks, further: int, places: Integers) -> None:
        """Write the places that were found into ``places``, shape (tasks,), some GPUs further."""
        for task, at in found.places.items():
            places[task] = at + further * self._places_per_gpu
