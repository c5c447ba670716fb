"""Bound and schedule side by side, for several GPUs: dual prices in one thread, local search in the others.

Each hands the other what it finds. A shorter schedule is what the next dual prices have to rule out; a higher bound
ends the search; patterns of the dual prices are where the local search starts from. With one worker the two take turns,
by the work that they have done.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, Protocol

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.local_search import TimedSearch
from mig_opt.batch.loads.starts import FilledStarts, PatternStarts
from mig_opt.models.batch.block_search import BlockSearch, M
from mig_opt.models.batch.dual_price_bound import DualPriceBound, DualPrices

_MAX_TASKS_BY_PATTERNS = 18
"""Number of tasks on a GPU above which starts fill one GPU after the other: what is left over then fits well, too."""

_ROUNDS_OF_PATTERNS = 25
"""Rounds of dual prices after which the patterns are taken for starts; each next time after twice as many."""


def fills_gpus(problem: IntegerBatch) -> bool:
    """Return True if starts fill one GPU after the other, and do not come from patterns."""
    return len(problem.batch.tasks) > _MAX_TASKS_BY_PATTERNS * len(problem.gpus)


class RisingBound(Protocol):
    """Bound of dual prices that rises round by round."""

    def round(self) -> bool:
        """Try some dual prices; return False once there are no better ones."""

    def found(self) -> DualPrices:
        """Return the best dual prices so far."""


Last = Callable[[DualPrices, Callable[[], bool]], RisingBound | None]
"""Builds a bound from the best dual prices, and from what tells that the time is up; None if it is of no use."""


class PricedSearch(Generic[M]):
    """Dual prices and local search on several GPUs, until there are no better dual prices.

    Times are rounded to the first ``grains`` of a schedule, then to the next ones. The ``last`` bound follows on these.
    It may go on from earlier dual prices, ``start``.
    """

    def __init__(
        self,
        search: BlockSearch[M],
        local: TimedSearch,
        grains: Sequence[int],
        last: Last | None = None,
        start: DualPrices | None = None,
    ) -> None:
        self._search, self._local, self._grains, self._last = search, local, list(grains), last
        self.dual_prices = start
        self._bound: RisingBound = DualPriceBound(search, start, self._grains.pop(0))
        self._rounds, self._next_patterns = 0, _ROUNDS_OF_PATTERNS
        self._ended, self._stopped = False, False
        self._fills = fills_gpus(search.problem)
        self._failure: BaseException | None = None

    def run(self) -> None:
        """Go on until there are no better dual prices, the schedule is proven optimal, or the time is up."""
        workers = self._search.control.workers
        if workers == 1:
            self._local.run(goes_on=self._goes_on, between=self._take_turn)
            return
        thread = threading.Thread(target=self._raise_bound, name="mig-opt-bound", daemon=True)
        self._local.use(workers - 1)
        thread.start()
        try:
            self._local.run(goes_on=self._goes_on)
        finally:
            self._stopped = True
            thread.join()
            self._local.use(workers)
        if self._failure is not None:
            raise self._failure

    def _goes_on(self) -> bool:
        return not self._ended

    def _raise_bound(self) -> None:
        try:
            while not self._ended and not self._stopped:
                self._round()
        except BaseException as failure:  # handed to the thread that waits
            self._failure = failure
        finally:
            self._ended = True

    def _take_turn(self, seconds: float) -> None:
        """Look for dual prices for about as long as the local search has searched."""
        control = self._search.control
        end = control.clock + seconds
        while not self._ended and control.clock < end:
            self._round()

    def _round(self) -> None:
        """Try some dual prices, and let starts come from them."""
        search, control = self._search, self._search.control
        goes_on = not control.expired and self._bound.round()
        self._rounds += 1
        if not search.open or control.expired:
            self._ended = True
            return
        at_once = self._rounds == 1 and self._fills
        if at_once or not goes_on or self._rounds == self._next_patterns:
            self._next_patterns = 2 * self._rounds
            self._take_starts()
        self._ended = not goes_on and not self._finer()

    def _finer(self) -> bool:
        """Go on with a bound that tells more; return False if there is none."""
        assert self.dual_prices is not None
        control = self._search.control
        bound: RisingBound | None = None
        if self._grains:
            bound = DualPriceBound(self._search, self.dual_prices, self._grains.pop(0))
        elif self._last is not None:
            bound, self._last = self._last(self.dual_prices, lambda: self._stopped or control.expired), None
        if bound is not None:
            self._bound = bound
        return bound is not None

    def _take_starts(self) -> None:
        """Let the local search start from the dual prices of now."""
        search, problem = self._search, self._search.problem
        found = self.dual_prices = self._bound.found()
        if problem.live:
            return
        if self._fills:
            filled = FilledStarts(problem, found.groups, found.prices, lambda: (search.lower, search.upper))
            self._local.start_from(filled.draw, at_once=True)
        elif found.patterns:
            self._local.start_from(PatternStarts(problem, found.patterns).draw, at_once=True)
