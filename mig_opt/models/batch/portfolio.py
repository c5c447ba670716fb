"""The method ``cp``: proven optima, from the loads of the slices and by CP-SAT on the block model.

It is a portfolio of :data:`PHASES`, one after the other, each where it applies:

1. A local search on the loads finds assignments of tasks to placements, and the block model times them. Batches of a
   dozen tasks do not need it.
2. Up to some twenty tasks, dynamic programming over subsets leaves few assignments that may be better, mostly none
   (:mod:`mig_opt.models.batch.subset_proof`). Otherwise the loads still give bounds: dual prices
   (:mod:`mig_opt.models.batch.dual_price_bound`) or, where whole tasks fill the slices or something is live, the load
   program (:mod:`mig_opt.models.batch.load_program`).
3. Up to some sixty tasks on one GPU, and some thirty on each of several, dual prices leave few choices of placements,
   and of the sets of tasks that these run (:mod:`mig_opt.models.batch.layout_proof`). Where that is no proof, or with
   more tasks on one GPU, each choice of placements that is left is searched by itself, and local search takes turns
   with that (:mod:`mig_opt.models.batch.layout_search`).
4. The rest is left to the local search. Batches that the tables of subsets could take, and all of them where there is
   no limit of time, are left to the block model as a whole (:mod:`mig_opt.models.batch.block_search`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mig_opt.batch.batch import Batch
from mig_opt.batch.loads.local_search import Incumbent, TimedSearch
from mig_opt.batch.loads.starts import FilledStarts, PatternStarts
from mig_opt.batch.schedule import Schedule
from mig_opt.method.control import Control
from mig_opt.models.batch.block_formulation import BlockForm
from mig_opt.models.batch.block_model import BlockModel, seconds_to_build
from mig_opt.models.batch.block_search import BlockSearch
from mig_opt.models.batch.bounded_layouts import BoundedLayouts
from mig_opt.models.batch.dual_price_bound import DualPrices, has_dual_price_bound, raise_bound_by_dual_prices
from mig_opt.models.batch.layout_proof import prove_by_layouts
from mig_opt.models.batch.layout_search import search_layouts
from mig_opt.models.batch.load_program import raise_bound_by_loads
from mig_opt.models.batch.subset_proof import MAX_TASKS_OF_TABLES, prove_by_subsets
from mig_opt.models.solvers.backend import IntegerOutcome, Request
from mig_opt.models.solvers.cpsat import run

_MAX_TASKS_UNSEARCHED = 12
"""Number of tasks above which a local search begins: with fewer, dynamic programming is done before."""

_MAX_BUILD_SECONDS = 0.5
"""Seconds to build a block model, above which assignments of a local search are timed without one."""

_MAX_TASKS_BY_SETS = 35
"""Number of tasks on a GPU above which a proof by layouts comes only after a long local search, and on one GPU."""

_IDLE_CYCLES, _LONG_IDLE_CYCLES = 20, 200
"""Cycles of the local search without gain, before something else is tried."""

_MAX_TASKS_BY_LAYOUT = 150
"""Number of tasks above which layouts are not searched: local search ends as close to the bound."""

_MAX_TASKS_PRICED = 60
"""Number of tasks on a GPU above which the load program tells more than dual prices in the same time."""

_MAX_TASKS_FINE = 120
"""Number of tasks above which dual prices are not sought with finer grains: better schedules are likelier in that
time."""

_ROUNDING_SHARE = 0.0005
"""Share by which dual prices alone may be below the bound, so that finer grains more than make up for it.
With 50 tasks it is up to 0.03 % with super-linear scaling, and 0.08 to 0.2 % where another bound is ahead."""

_MAX_TASKS_BY_PATTERNS = 18
"""Number of tasks on a GPU above which starts fill one GPU after the other: what is left over then fits well, too."""

_POLISHING_SHARE, _POLISH_SHARE = 0.1, 0.05
"""Share of the time of a local search for timing assignments by a block model; share of the time left for one."""

_NEAR = 1.0015
"""Length of the schedule by the rule of thumb, relative to the best one, up to which a model is worth it: models take
off 0.02 % on the average, and 0.12 % at most (60 tasks on 4 GPUs)."""


def cp(batch: Batch, control: Control[Schedule]) -> None:
    """Search until the best schedule is proven optimal or the time is up; every task has a placement.

    A batch whose model is too large, or cannot be built in the time that is left, keeps what is known already.
    """
    portfolio = Portfolio(batch, control)
    for phase in PHASES:
        if portfolio.search.open and phase.applies(portfolio):
            phase.work(portfolio, phase.share)


class Portfolio:
    """State of one run of the phases."""

    def __init__(self, batch: Batch, control: Control[Schedule]) -> None:
        self.search = CpSearch(batch, control)  # the best schedule, the bound, and the search by block models
        self.tasks, self.gpus = len(batch.tasks), len(self.search.problem.gpus)
        self.limited = control.remaining is not None  # true if there is a limit of time
        self.local_search: TimedSearch | None = None
        self.dual_prices: DualPrices | None = None
        self.bounded: BoundedLayouts | None = None  # the layouts that the dual prices leave
        self._polishing = 0.0

    @property
    def can_improve(self) -> bool:
        """True if a local search is of use, and there is time for it."""
        return self.tasks > _MAX_TASKS_UNSEARCHED and TimedSearch.possible(self.search.problem, self.search.control)

    @property
    def improves(self) -> bool:
        """True if the local search has begun."""
        return self.local_search is not None

    @property
    def priced(self) -> bool:
        """True if dual prices tell more than the load program, as whole tasks hardly fill the slices."""
        return self.tasks <= _MAX_TASKS_PRICED * self.gpus and has_dual_price_bound(self.search.problem)

    @property
    def finer_prices_tell(self) -> bool:
        """True if dual prices are likely to raise the bound when times are rounded less."""
        prices = self.dual_prices
        return prices is not None and prices.alone >= self.search.lower * (1 - _ROUNDING_SHARE)

    @property
    def has_layouts(self) -> bool:
        """True if each layout can be searched by itself."""
        problem = self.search.problem
        takes_time = not (problem.live or problem.operations_take_no_time)
        return self.gpus == 1 and self.tasks <= _MAX_TASKS_BY_LAYOUT and takes_time

    @property
    def endless(self) -> bool:
        """True if only the limit of time ends the local search: no block model as a whole proves anything."""
        return self.improves and self.limited and self.tasks > MAX_TASKS_OF_TABLES

    def improve(self, idle_cycles: float) -> None:
        """Begin the local search, or go on with it, until as many cycles as that bring nothing."""
        search = self.search
        if self.local_search is None:
            incumbent = Incumbent(lower=lambda: search.lower, upper=lambda: search.upper, time=self._time)
            self.local_search = TimedSearch(search.problem, search.control, incumbent)
        self.local_search.run(idle_cycles)

    def price(self, share: float) -> None:
        """Raise the bound by dual prices, and let fresh starts of the local search come from these."""
        search, problem = self.search, self.search.problem
        found = raise_bound_by_dual_prices(search, share, self.dual_prices)
        if found is None:
            return
        self.dual_prices, self.bounded = found, BoundedLayouts(search, found)
        if self.gpus > 1 and self.local_search is not None:
            if self.tasks > _MAX_TASKS_BY_PATTERNS * self.gpus:
                starts = FilledStarts(problem, found.branches, found.prices, lambda: (search.lower, search.upper))
                self.local_search.start_from(starts.draw, at_once=True)
            elif found.patterns:
                self.local_search.start_from(PatternStarts(problem, found.patterns).draw)

    def prove_by_layouts(self, share: float) -> None:
        """Look through the layouts that the dual prices leave."""
        assert self.bounded is not None
        if self.tasks > _MAX_TASKS_BY_SETS * self.gpus:
            # The shorter the schedule, the fewer are left.
            self.improve(_LONG_IDLE_CYCLES)
        if self.search.open:
            prove_by_layouts(self.search, self.bounded, share)

    def _time(self, places: Sequence[int], searched: float) -> bool:
        """Run outer placements before inner ones; if that is not far from the best, find the best order of operations.

        The latter is left for later, and False returned, if it has taken too much of the time already.
        """
        search = self.search
        ticks = search.report_nested(places)
        if search.building > _MAX_BUILD_SECONDS or ticks > _NEAR * search.upper:
            return True
        if self._polishing > _POLISHING_SHARE * (searched + 1.0):
            return False
        before = search.control.clock
        search.polish(places, share=_POLISH_SHARE)
        self._polishing += search.control.clock - before
        return True


@dataclass(frozen=True, slots=True)
class Phase:
    """Step of the portfolio; it is left out once nothing is open."""

    name: str  # name of the step
    applies: Callable[[Portfolio], bool]  # returns True if the step is of use
    work: Callable[[Portfolio, float], None]  # does the step, given the share
    share: float = 1.0  # largest share of the time that is left


PHASES = (
    Phase("first local search", lambda run: run.can_improve, lambda run, _: run.improve(_IDLE_CYCLES)),
    Phase("proof by subsets", lambda _: True, lambda run, _: prove_by_subsets(run.search)),
    Phase(
        "bound of the load program",
        lambda run: run.improves and not run.priced,
        lambda run, share: raise_bound_by_loads(run.search, share),
        share=0.3,
    ),
    Phase("bound of dual prices", lambda run: run.improves and run.priced, Portfolio.price, share=0.3),
    Phase(
        "proof by layouts",
        lambda run: run.dual_prices is not None and run.tasks <= _MAX_TASKS_BY_SETS * run.gpus,
        Portfolio.prove_by_layouts,
    ),
    Phase(
        "proof by layouts, many tasks",
        lambda run: run.dual_prices is not None and run.tasks > _MAX_TASKS_BY_SETS and run.has_layouts,
        Portfolio.prove_by_layouts,
        share=0.7,
    ),
    Phase(
        "finer bound of dual prices",
        # On one GPU the dual prices of the layouts tell more.
        lambda run: run.gpus > 1 and run.tasks <= _MAX_TASKS_FINE and run.finer_prices_tell,
        Portfolio.price,
        share=0.35,
    ),
    Phase(
        "search by layouts",
        lambda run: run.improves and run.has_layouts and run.limited,
        lambda run, share: search_layouts(run.search, run.bounded, share, lambda: run.improve(_LONG_IDLE_CYCLES)),
        share=0.8,
    ),
    Phase(
        "long local search",
        lambda run: run.improves,
        lambda run, _: run.improve(math.inf if run.endless else _LONG_IDLE_CYCLES),
    ),
    Phase("block model as a whole", lambda run: run.search.can_begin, lambda run, _: run.search.run()),
    Phase(
        "local search until the end",
        lambda run: run.improves and run.limited,
        lambda run, _: run.improve(math.inf),
    ),
)


class CpSearch(BlockSearch[BlockModel]):
    """Search by block models that CP-SAT solves."""

    name = "CP-SAT"

    def seconds_to_build(self) -> float:
        """Return the approximate seconds that it takes to build a model."""
        return seconds_to_build(self.problem)

    def build(self, form: BlockForm) -> BlockModel:
        """Return a model."""
        return BlockModel(self.problem, form)

    def minimise(self, model: BlockModel, request: Request) -> IntegerOutcome:
        """Minimise the makespan, and report on the way."""
        return run(model.model, self.control, request)

    def complete(self, model: BlockModel, places: Sequence[int], share: float) -> IntegerOutcome:
        """Find the best solution with each task at its given place."""
        return run(model.fixed(places), self.control, Request(share=share), workers=1)
