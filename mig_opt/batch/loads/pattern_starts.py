"""Starts from patterns, for a search on several GPUs: some GPUs run a pattern, all other tasks are on the others.

A *pattern* is a set of tasks that one GPU can run within about the bound. A search that moves some tasks at a time
hardly ever fills a GPU as well as the patterns do that come with the bound from dual prices
(:mod:`mig_opt.models.batch.dual_price_bound`). A start has some patterns without a task in common, and a short search
puts all other tasks on the other GPUs. These take too long then, but that is soon shared out, and most of what was
gained remains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.local_search import Possible, Start
from mig_opt.batch.loads.part_search import PartSearch, PlacedTasks

_OTHERS = 2
"""GPUs that share all other tasks, at least; one, if there are only two."""

_TRIES = 10
"""Draws, until there are patterns for all but the last GPUs."""

_CYCLES, _CYCLES_OF_OTHERS = 10, 30
"""Cycles of the search for the places of a pattern on its GPU, and of all other tasks."""


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
        self._gpus, self._parts = len(batch.gpus), PartSearch(batch)
        self._patterns = [frozenset(tasks) for tasks in patterns]
        self._known: dict[int, PlacedTasks] = {}

    def draw(self, rng: np.random.Generator, possible: Possible, over: Callable[[], bool]) -> Start:
        """Return a start, as a :data:`~mig_opt.batch.loads.local_search.Draw` does."""
        chosen = self._choose(rng)
        places, work = np.empty(len(possible), np.int64), 0.0
        rest = frozenset(range(len(possible))).difference(*(self._patterns[at] for at in chosen))
        for gpu, at in enumerate(chosen):
            # The first thread to need it must make no difference: the seed is the pattern's, and the work counts twice.
            found = self._known.get(at)
            if found is None or not all(possible[task, place] for task, place in found.places.items()):
                found = self._known[at] = self._parts.search(self._patterns[at], 1, _CYCLES, at, possible, over)
            self._parts.move(found, gpu, places)
            work += found.work
        if rest:
            gpus, seed = self._gpus - len(chosen), int(rng.integers(2**31))
            found = self._parts.search(rest, gpus, _CYCLES_OF_OTHERS, seed, possible, over)
            self._parts.move(found, len(chosen), places)
            work += found.work
        return Start(places, work)

    def _choose(self, rng: np.random.Generator) -> list[int]:
        """Draw patterns without a task in common."""
        most = max(1, self._gpus - _OTHERS)
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
