"""Better schedules from the loads: local search for assignments, each of them timed by a block model."""

from __future__ import annotations

from collections.abc import Sequence

from mig_opt.loads.descent import Descent
from mig_opt.models.search import Search
from mig_opt.models.solver import M

_POLISHING_SHARE = 0.3
"""Of the time may go to timing assignments."""

_POLISH = 0.05
"""Of the time that is left may go to one of them."""

_QUICK = 0.5
"""Seconds that a block model may take to be built; if it takes longer, a rule of thumb times the assignments."""


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
        """Find the best order of operations, unless that has taken too much of the time already."""
        search = self._search
        if search.building > _QUICK:
            search.offer_nested(places)
            return True
        if self._polishing > _POLISHING_SHARE * (self.searched + 1.0):
            return False
        before = search.control.spent
        search.polish(places, share=_POLISH)
        self._polishing += search.control.spent - before
        return True
