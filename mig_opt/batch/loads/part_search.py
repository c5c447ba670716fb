"""Short searches for the places of some tasks on some GPUs, from which starts for all of them are made."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Collection
from typing import NamedTuple

import numpy as np

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.local_search import LoadSearch, Possible
from mig_opt.batch.loads.subsets import Integers


class PlacedTasks(NamedTuple):
    """Places of some tasks, by index."""

    places: dict[int, int]
    work: float  # approximate seconds that it took to find them
    length: float  # ticks of the whole that the longest path takes, approximately


class PartSearch:
    """Searches on parts of a batch.

    Parameters
    ----------
    batch : IntegerBatch
        The whole; nothing is live.
    """

    def __init__(self, batch: IntegerBatch) -> None:
        self._problem = batch
        self._index = {(place.gpu, place.placement): at for at, place in enumerate(batch.places)}

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
        tasks, whole = sorted(some), self._problem.batch
        part = IntegerBatch(whole.replace(tasks=tuple(whole.tasks[task] for task in tasks), gpus=gpus))
        start = [
            next(at for at, place in enumerate(part.places) if task in place.durations) for task in range(len(tasks))
        ]
        index = [self._index[place.gpu, place.placement] for place in part.places]
        search = LoadSearch(part, start, seed, 1)
        search.forbid(~possible[np.ix_(tasks, index)])
        with contextlib.closing(search.cycles(0, over)) as running:
            for _ in itertools.islice(running, cycles):
                if over():
                    break
        places = {task: index[place] for task, place in zip(tasks, search.places, strict=True)}
        # Without some of the tasks ticks may be longer.
        length = search.length * float(part.ticks.length / self._problem.ticks.length)
        return PlacedTasks(places, cycles * search.seconds_per_cycle, length)

    def move(self, found: PlacedTasks, further: int, places: Integers) -> None:
        """Write the places that were found into ``places``, shape (tasks,), some GPUs further."""
        for task, at in found.places.items():
            place = self._problem.places[at]
            places[task] = self._index[place.gpu + further, place.placement]
