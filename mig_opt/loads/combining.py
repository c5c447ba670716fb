"""Starts for a search on several GPUs: on some of them what a GPU runs best, and all else on the others.

A search that moves some tasks at a time hardly ever fills a GPU as well as it can be filled. The bound from prices
(:mod:`mig_opt.models.batch.price_bound`) comes with such contents of a GPU. A start has some of them that have no task
in common, and a short search puts all other tasks on the other GPUs. These are too high then, but what is too much is
soon shared out, and most of what was gained remains.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.loads.local_search import LoadSearch, Start

Possible = npt.NDArray[np.bool_]

_OTHERS = 2
"""GPUs that share all other tasks, at least; one, if there are only two."""

_TRIES = 10
"""Draws, until there are contents for all but the last GPUs."""

_CYCLES, _CYCLES_OF_OTHERS = 10, 30
"""Of the search for the places of contents on their GPU, and of all other tasks."""


class _Found(NamedTuple):
    """The places of some tasks, by index, and about the seconds that it took to find them."""

    places: dict[int, int]
    work: float


class Combination:
    """Draws starts from contents of a GPU.

    Parameters
    ----------
    batch : IntegerBatch
        On two GPUs or more; nothing is live.
    contents : sequence of sequence of int
        Tasks that fit well on one GPU together, at least one of them.
    """

    def __init__(self, batch: IntegerBatch, contents: Sequence[Sequence[int]]) -> None:
        self._problem = batch
        self._contents = [frozenset(tasks) for tasks in contents]
        self._index = {(place.gpu, place.placement): at for at, place in enumerate(batch.places)}
        self._known: dict[int, _Found] = {}

    def draw(self, rng: np.random.Generator, possible: Possible, over: Callable[[], bool]) -> Start:
        """Return a start.

        Parameters
        ----------
        rng : Generator
            For the choices.
        possible : array of bool, shape (tasks, places)
            Where each task may run.
        over : callable
            Whether there is no time left.
        """
        chosen = self._choose(rng)
        places, work = np.empty(len(possible), np.int64), 0.0
        rest = frozenset(range(len(possible))).difference(*(self._contents[at] for at in chosen))
        for gpu, at in enumerate(chosen):
            # It must not matter which thread is the first to need them: the seed is theirs, and the work counts twice.
            found = self._known.get(at)
            if found is None or not all(possible[task, place] for task, place in found.places.items()):
                found = self._known[at] = self._search(self._contents[at], 1, _CYCLES, at, possible, over)
            self._put(places, found, gpu)
            work += found.work
        if rest:
            gpus = self._problem.batch.gpus - len(chosen)
            found = self._search(rest, gpus, _CYCLES_OF_OTHERS, int(rng.integers(2**31)), possible, over)
            self._put(places, found, len(chosen))
            work += found.work
        return Start(places, work)

    def _choose(self, rng: np.random.Generator) -> list[int]:
        """Draw contents without a task in common."""
        most = max(1, self._problem.batch.gpus - _OTHERS)
        best: list[int] = []
        for _ in range(_TRIES):
            chosen, taken = list[int](), frozenset[int]()
            for at in rng.permutation(len(self._contents)).tolist():
                if len(chosen) < most and not taken & self._contents[at]:
                    chosen.append(at)
                    taken |= self._contents[at]
            best = max(best, chosen, key=len)
            if len(best) == most:
                break
        return best

    def _search(
        self, some: frozenset[int], gpus: int, number: int, seed: int, possible: Possible, over: Callable[[], bool]
    ) -> _Found:
        """Return low places for some tasks on the first GPUs, after some cycles of a search."""
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
        return _Found(places, number * search.seconds_per_cycle)

    def _put(self, places: npt.NDArray[np.int64], found: _Found, further: int) -> None:
        """Put tasks where they were found to be low, but some GPUs further."""
        for task, at in found.places.items():
            place = self._problem.places[at]
            places[task] = self._index[place.gpu + further, place.placement]
