"""Starts from patterns, for a search on several GPUs: some GPUs run a pattern, all other tasks are on the others.

A *pattern* is a set of tasks that one GPU can run within about the bound. A search that moves some tasks at a time
hardly ever fills a GPU as well as the patterns do that come with the bound from dual prices
(:mod:`mig_opt.models.batch.dual_price_bound`). A start has some patterns without a task in common, and a short search
puts all other tasks on the other GPUs. These take too long then, but that is soon shared out, and most of what was
gained remains.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.loads.local_search import LoadSearch, Possible, Start
from mig_opt.loads.subsets import Integers

_OTHERS = 2
"""GPUs that share all other tasks, at least; one, if there are only two."""

_TRIES = 10
"""Draws, until there are patterns for all but the last GPUs."""

_CYCLES, _CYCLES_OF_OTHERS = 10, 30
"""Cycles of the search for the places of a pattern on its GPU, and of all other tasks."""


class _PlacedTasks(NamedTuple):
    """Places of some tasks, by index, and the approximate seconds that it took to find them."""

    places: dict[int, int]
    work: float


class PatternStarts:
    """Source of starts from patterns.

    Parameters
    ----------
    batch : IntegerBatch
        On two GPUs or more; nothing is live.
    patterns : sequence of sequence of int
        Tasks that fit well on one GPU together, at least one of them.
    """

    def __init__(self, batch: IntegerBatch, patterns: Sequence[Sequence[int]]) -> None:
        self._problem = batch
        self._patterns = [frozenset(tasks) for tasks in patterns]
        self._index = {(place.gpu, place.placement): at for at, place in enumerate(batch.places)}
        self._known: dict[int, _PlacedTasks] = {}

    def draw(self, rng: np.random.Generator, possible: Possible, over: Callable[[], bool]) -> Start:
        """Return a start.

        Parameters
        ----------
        rng : Generator
            Source of the random choices.
        possible : array of bool, shape (tasks, places)
            True where each task may run.
        over : callable
            True if no time is left.
        """
        chosen = self._choose(rng)
        places, work = np.empty(len(possible), np.int64), 0.0
        rest = frozenset(range(len(possible))).difference(*(self._patterns[at] for at in chosen))
        for gpu, at in enumerate(chosen):
            # The first thread to need it must make no difference: the seed is the pattern's, and the work counts twice.
            found = self._known.get(at)
            if found is None or not all(possible[task, place] for task, place in found.places.items()):
                found = self._known[at] = self._search(self._patterns[at], 1, _CYCLES, at, possible, over)
            self._move(places, found, gpu)
            work += found.work
        if rest:
            gpus = self._problem.batch.gpus - len(chosen)
            found = self._search(rest, gpus, _CYCLES_OF_OTHERS, int(rng.integers(2**31)), possible, over)
            self._move(places, found, len(chosen))
            work += found.work
        return Start(places, work)

    def _choose(self, rng: np.random.Generator) -> list[int]:
        """Draw patterns without a task in common."""
        most = max(1, self._problem.batch.gpus - _OTHERS)
        best: list[int] = []
        for _ in range(_TRIES):
            chosen, taken = list[int](), frozenset[int]()
            for at in rng.permutation(len(self._patterns)).tolist():
                if len(chosen) < most and not taken & self._patterns[at]:
                    chosen.append(at)
                    taken |= self._patterns[at]
            best = max(best, chosen, key=len)
            if len(best) == most:
                break
        return best

    def _search(
        self, some: frozenset[int], gpus: int, number: int, seed: int, possible: Possible, over: Callable[[], bool]
    ) -> _PlacedTasks:
        """Return places with short paths for some tasks on the first GPUs, after some cycles of a search."""
        tasks, whole = sorted(some), self._problem.batch
        part = IntegerBatch(whole.replace(tasks=tuple(whole.tasks[task] for task in tasks), gpus=gpus))
        start = [
            next(at for at, place in enumerate(part.places) if task in place.durations) for task in range(len(tasks))
        ]
        index = [self._index[place.gpu, place.placement] for place in part.places]
        search = LoadSearch(part, start, seed, 1)
        search.forbid(~possible[np.ix_(tasks, index)])
        with contextlib.closing(search.cycles(0, over)) as cycles:
            for _ in itertools.islice(cycles, number):
                if over():
                    break
        places = {task: index[place] for task, place in zip(tasks, search.places, strict=True)}
        return _PlacedTasks(places, number * search.seconds_per_cycle)

    def _move(self, places: Integers, found: _PlacedTasks, further: int) -> None:
        """Write the places that were found into ``places``, some GPUs further."""
        for task, at in found.places.items():
            place = self._problem.places[at]
            places[task] = self._index[place.gpu + further, place.placement]
