"""Better schedules from the loads: local search for assignments, each of them timed by a block model."""

from __future__ import annotations

from collections.abc import Sequence

from mig_opt.loads.descent import Descent
from mig_opt.models.batch.search import Search
from mig_opt.models.batch.solver import M

_POLISHING_SHARE = 0.1
"""Of the time may go to timing assignments by a block model."""

_POLISH = 0.05
"""Of the time that is left may go to one of them."""

_QUICK = 0.5
"""Seconds that a block model may take to be built; if it takes longer, a rule of thumb alone times the assignments."""

_NEAR = 1.0015
"""How many times as long as the best schedule that of the rule of thumb may be for a model to be worth it: models take
off 0.02 % on the average, and 0.12 % at most (60 tasks on 4 GPUs)."""


class Improvement(Descent):
    """A local search whose assignments are timed by the solver of a search.

    Parameters
    ----------
    search : Search
        Has a schedule to start from, and gets better ones.
    """

    def __init__(self, search: Search[M]) -> None:
        self._search = search
        self._polishing = 0.0
        super().__init__(search.problem, search.control)

    @property
    def lower(self) -> int:
        """Ticks that every schedule takes, as far as the search knows."""
        return self._search.lower

    @property
    def upper(self) -> int:
        """Ticks that the best schedule takes in the model."""
        return self._search.upper

    def time(self, places: Sequence[int]) -> bool:
        """Run outer placements before inner ones; if that is not far from the best, find the best order of operations.

        The latter is left for later if it has taken too much of the time already.
        """
        search = self._search
        ticks = search.offer_nested(places)
        if search.building > _QUICK or ticks > _NEAR * self.upper:
            return True
        if self._polishing > _POLISHING_SHARE * (self.searched + 1.0):
            return False
        before = search.control.clock
        search.polish(places, share=_POLISH)
        self._polishing += search.control.clock - before
        return True
