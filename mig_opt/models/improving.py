"""Better schedules from the loads: local search for assignments, each of them timed by a block model."""

from __future__ import annotations

from collections.abc import Sequence

from mig_opt.loads.local_search import MOST_CHOICES, LoadSearch
from mig_opt.models.search import Search
from mig_opt.models.solver import M

_POLISHING_SHARE = 0.3
"""Of the time may go to timing assignments."""

_POLISH = 0.05
"""Of the time that is left may go to one of them."""

_QUICK = 0.5
"""Seconds that a block model may take to be built; if it takes longer, a rule of thumb times the assignments."""


class Improvement:
    """A local search that goes on where it stopped.

    Parameters
    ----------
    search : Search
        Has a schedule to start from, and gets better ones.
    """

    def __init__(self, search: Search[M]) -> None:
        self._search = search
        problem, control = search.problem, search.control
        assert control.schedule is not None
        self._loads = LoadSearch(problem, problem.places_of(control.schedule), control.seed, control.workers)
        self._longest_destruction = max(place.destroy for place in problem.places)
        self._seen: set[tuple[int, ...]] = set()
        self._polishing = 0.0
        self._spent = 0.0
        self._try(self._loads.height, self._loads.places)

    @staticmethod
    def possible(search: Search[M]) -> bool:
        """Whether the batch is small enough and there is time for it."""
        return search.problem.choices <= MOST_CHOICES and not search.control.expired

    def run(self, patience: float) -> None:
        """Improve until so many cycles bring nothing, or the time is up."""
        search, control = self._search, self._search.control
        idle = 0
        cycles = self._loads.cycles(search.lower)
        try:
            while idle < patience and search.lower < search.upper and not control.expired:
                before = self._loads.height, search.upper
                results = next(cycles)
                control.spend(self._loads.seconds_per_cycle)
                self._spent += self._loads.seconds_per_cycle
                for height, places in sorted(results):
                    self._try(height, places)
                idle = 0 if (self._loads.height, search.upper) < before else idle + 1
        finally:
            cycles.close()

    def _try(self, height: int, places: Sequence[int]) -> None:
        """Time an assignment, if it may be better than the best schedule."""
        search = self._search
        if height - self._longest_destruction >= search.upper:
            return
        key = tuple(search.problem.canonical(places))
        if key in self._seen:
            return
        quick = search.building <= _QUICK
        if quick and self._polishing > _POLISHING_SHARE * (self._spent + 1.0):
            return
        self._seen.add(key)
        if quick:
            before = search.control.spent
            search.polish(key, share=_POLISH)
            self._polishing += search.control.spent - before
        else:
            search.offer_nested(key)
