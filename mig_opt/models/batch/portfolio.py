"""The method ``cp``: proven optima, from the loads of the slices and by CP-SAT on the block model.

It is a portfolio of :data:`PHASES`, one after the other, each where it applies:

1. A local search on the loads finds assignments of tasks to placements, and the block model times them. Batches of a
   dozen tasks do not need it. On several GPUs, dual prices give bounds meanwhile, and the local search starts from
   their patterns (:mod:`mig_opt.models.batch.priced_search`).
2. Up to some twenty tasks, dynamic programming over subsets leaves few assignments that may be better, mostly none
   (:mod:`mig_opt.models.batch.subset_proof`). Otherwise the loads still give bounds: dual prices
   (:mod:`mig_opt.models.batch.dual_price_bound`) or, where whole tasks fill the slices, the
   load program (:mod:`mig_opt.models.batch.load_program`).
3. Up to three dozen tasks on one GPU, dual prices leave few choices of placements, and of the sets of tasks that these
   run (:mod:`mig_opt.models.batch.layout_proof`). Where that is no proof, or with more tasks, each choice of placements
   that is left is decided or searched by itself, and local search takes turns with that
   (:mod:`mig_opt.models.batch.layout_search`). On several GPUs with some ten tasks each, the tasks are partitioned into
   sets of one GPU each (:mod:`mig_opt.models.batch.set_partition`).
4. The rest is left to the local search, in turn with sets of about the same value, which are joined to schedules
   (:mod:`mig_opt.models.batch.even_sets`) and raise the bound. Batches that the tables of
   subsets could take, and all of them where there is no limit of time, are left to the block model as a whole
   (:mod:`mig_opt.models.batch.block_search`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mig_opt.batch.batch import Batch
from mig_opt.batch.loads.local_search import Incumbent, TimedSearch
from mig_opt.batch.schedule import Schedule
from mig_opt.method.control import Control
from mig_opt.models.batch.block_formulation import BlockForm
from mig_opt.models.batch.block_model import BlockModel, seconds_to_build
from mig_opt.models.batch.block_search import BlockSearch
from mig_opt.models.batch.bounded_layouts import BoundedLayouts
from mig_opt.models.batch.dual_price_bound import (
    FINE_GRAINS,
    GRAINS,
    DualPrices,
    has_dual_price_bound,
    raise_bound_by_dual_prices,
)
from mig_opt.models.batch.layout_proof import prove_by_layouts
from mig_opt.models.batch.layout_search import has_choices, search_layouts
from mig_opt.models.batch.load_program import raise_bound_by_loads
from mig_opt.models.batch.priced_search import PricedSearch, fills_gpus
from mig_opt.models.batch.set_partition import SetPartition
from mig_opt.models.batch.set_prices import SetBound, has_sets
from mig_opt.models.batch.subset_proof import MAX_TASKS_OF_TABLES, prove_by_subsets
from mig_opt.models.solvers.backend import IntegerOutcome, Request
from mig_opt.models.solvers.cpsat import run

_MAX_TASKS_UNSEARCHED = 12
"""Number of tasks above which a local search begins: with fewer, dynamic programming is done before."""

_MAX_BUILD_SECONDS = 0.5
"""Seconds to build a block model, above which assignments of a local search are timed without one."""

_MAX_TASKS_BY_SETS = 35
"""Number of tasks above which layouts are decided in an order of their operations: in all of them at once, the sets of
tasks are too many."""

_IDLE_CYCLES, _LONG_IDLE_CYCLES = 20, 200
"""Cycles of the local search without gain, before something else is tried."""

_MAX_TASKS_OF_FEW_SETS = 10
"""Number of tasks on a GPU above which sets are mostly too many: a partition into them comes after a long local search,
and is not tried again if it has found nothing."""

_MAX_TASKS_OF_MANY_SETS = 62
"""Number of tasks above which sets are of no use if they are many: of a hundred tasks, a thinned list tells too little
about which prices are even."""

_LEAST_GPUS_OF_MANY_PARTITIONS, _LEAST_GPUS_OF_FEW_SETS = 4, 6
"""Number of GPUs from which on partitions are frequent near the bound if sets are many, as it is the exponent; and if
they are few. With three of them the local search is ahead, with four or five and few sets, the proof."""

_MOST_EFFORT = 64
"""Effort at which partitions into sets end: the first one has 1."""

_MOST_EFFORT_OF_LISTS = 8
"""Effort of the lists of sets at which there are no more schedules to be found."""

_MAX_TASKS_BY_LAYOUT = 20_000
"""Number of tasks above which layouts are not searched."""

_MAX_TASKS_PRICED, _LOADS_SHARE = 60, 0.05
"""Number of tasks on a GPU above which the load program tells more than dual prices; its share where layouts follow."""

_COARSE_GRAINS, _MIDDLE_GRAINS = 2_500, 20_000
"""Grains of a schedule for the first dual prices on several GPUs, and for the next ones, where starts come from
patterns: good patterns are there in half the time."""

_MAX_TASKS_FINE = 120
"""Number of tasks above which dual prices are not sought with finer grains: better schedules are likelier in that
time."""

_ROUNDING_SHARE = 0.0005
"""Share by which dual prices alone may be below the bound, so that finer grains more than make up for it.
With 50 tasks it is up to 0.03 % with super-linear scaling, and 0.08 to 0.2 % where another bound is ahead."""

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
        self.bounded: BoundedLayouts | None = None  # the layouts that the dual prices leave to one GPU
        self._polishing = 0.0
        self._sets: SetPartition[BlockModel] | None = None
        self._effort = 1  # of the next partition into sets
        # each layout can be searched by itself
        self.has_layouts = self.tasks <= _MAX_TASKS_BY_LAYOUT and has_choices(self.search.problem)

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
        alone = self.dual_prices.alone if self.dual_prices else -1
        return self.tasks <= _MAX_TASKS_FINE and alone >= self.search.lower * (1 - _ROUNDING_SHARE)

    @property
    def alone(self) -> bool:
        """True if there is one GPU, on which nothing is live."""
        return self.gpus == 1 and self.search.problem.alike

    @property
    def by_layouts(self) -> bool:
        """True if layouts are searched without a bound of dual prices before."""
        return self.has_layouts and self.tasks > _MAX_TASKS_BY_SETS

    @property
    def has_sets(self) -> bool:
        """True if the tasks can be partitioned into sets of GPUs that are alike."""
        found = self.dual_prices
        return found is not None and self.gpus > 1 and self._can_list(found)

    def _can_list(self, prices: DualPrices) -> bool:
        many = self.tasks > _MAX_TASKS_OF_MANY_SETS and not self.has_few_sets
        return self.search.problem.alike and not many and has_sets(prices, self.tasks)

    @property
    def has_few_sets(self) -> bool:
        """True if no more than a few sets of tasks are of interest for each GPU."""
        return self.search.problem.alike and self.tasks <= _MAX_TASKS_OF_FEW_SETS * self.gpus

    @property
    def has_many_partitions(self) -> bool:
        """True if near the bound a GPU can run enough sets of tasks, that partitions into them are frequent."""
        return self.gpus >= _LEAST_GPUS_OF_MANY_PARTITIONS and not self.has_few_sets

    @property
    def endless(self) -> bool:
        """True if only the limit of time ends the local search: no block model as a whole proves anything."""
        return self.improves and self.limited and self.tasks > MAX_TASKS_OF_TABLES

    def improve(self, idle_cycles: float) -> None:
        """Begin the local search, or go on with it, until as many cycles as that bring nothing."""
        search = self.search
        if self.local_search is None:
            incumbent = Incumbent(lambda: search.lower, lambda: search.upper, self._time)
            if search.building > _MAX_BUILD_SECONDS:  # they are not put in another order
                incumbent = incumbent._replace(near=1.0)
            self.local_search = TimedSearch(search.problem, search.control, incumbent)
        self.local_search.run(idle_cycles)

    def side_by_side(self) -> None:
        """Bound and schedule side by side; where partitions are frequent, the first ones come between two bounds."""
        assert self.local_search is not None
        stages: list[tuple[int, ...]]
        if self.has_few_sets or self.tasks > _MAX_TASKS_FINE:
            # Few sets of tasks prove more than finer prices do, and the sooner with all threads.
            stages = [(GRAINS,)]
        elif fills_gpus(self.search.problem):
            stages = [(GRAINS, FINE_GRAINS)]
        elif self.has_many_partitions:
            stages = [(_COARSE_GRAINS, _MIDDLE_GRAINS), (FINE_GRAINS,)]
        else:
            stages = [(_COARSE_GRAINS, _MIDDLE_GRAINS, FINE_GRAINS)]
        then = None if self.has_few_sets else self._set_bound
        for grains in stages:
            last = then if grains is stages[-1] else None
            priced = PricedSearch(self.search, self.local_search, grains, last, self.dual_prices)
            priced.run()
            self.dual_prices = priced.dual_prices
            if grains is not stages[-1] and self.has_sets and self.search.open:
                self.sets.look_for_schedules(patient=False)

    def _set_bound(self, prices: DualPrices, over: Callable[[], bool]) -> SetBound[BlockModel] | None:
        listed = not self.has_many_partitions and self._can_list(prices)
        return SetBound(self.search, prices, 1, expired=over) if listed else None

    def price(self, share: float) -> None:
        """Raise the bound by dual prices; where there are some already, with times that are rounded less."""
        found = raise_bound_by_dual_prices(self.search, share, self.dual_prices)
        if found is not None:
            self.dual_prices = found
            self.bounded = BoundedLayouts(self.search, found.branches, found.prices) if self.alone else None

    @property
    def sets(self) -> SetPartition[BlockModel]:
        """The sets of tasks that the dual prices leave to a GPU."""
        if self._sets is None:
            assert self.dual_prices is not None
            self._sets = SetPartition(self.search, self.dual_prices, cp)
        return self._sets

    def partition(self, share: float) -> None:
        """Look at all sets, each time with more effort; before that for schedules, if partitions are frequent."""
        search = self.search
        if self.has_few_sets and self.gpus >= _LEAST_GPUS_OF_FEW_SETS:
            self.improve(_LONG_IDLE_CYCLES)
            if search.open:
                self.sets.look_for_schedules(effort=_MOST_EFFORT_OF_LISTS)
        before = search.lower, search.upper
        self.sets.prove(share, self._effort)
        # More sets than that are too many with any effort.
        self._effort *= 4 if self.has_few_sets or (search.lower, search.upper) != before else _MOST_EFFORT

    def go_on(self) -> None:
        """Let the local search and the sets of tasks take turns until the end."""
        search, many = self.search, self.has_many_partitions
        if many:
            self._look_for_schedules(_IDLE_CYCLES, 1)
        while search.open and self._effort < _MOST_EFFORT and self.dual_prices is not None:
            self.improve(_LONG_IDLE_CYCLES)
            if search.open:
                self.partition(share=0.5)
        while many and self.limited and search.open and not search.control.expired:
            self._look_for_schedules(_LONG_IDLE_CYCLES, _MOST_EFFORT_OF_LISTS)
        if self.limited:
            self.improve(math.inf)

    def _look_for_schedules(self, idle_cycles: int, effort: int) -> None:
        """Look for partitions into sets, each time with more effort unless the last one found schedules."""
        search = self.search
        while search.open and not search.control.expired and effort <= _MOST_EFFORT_OF_LISTS:
            before = search.upper
            self.sets.look_for_schedules(effort=effort)
            effort = 1 if search.upper < before else 2 * effort
            if search.open:
                self.improve(idle_cycles)

    def prove_by_layouts(self, share: float) -> None:
        """Look through the layouts that the dual prices leave."""
        assert self.bounded is not None
        prove_by_layouts(self.search, self.bounded, share)

    def search_by_layouts(self) -> None:
        """Search layout by layout, in turn with the local search."""

        def take_turns() -> bool:
            self.improve(_LONG_IDLE_CYCLES)
            return True

        search_layouts(self.search, take_turns)

    def _time(self, places: Sequence[int], searched: float) -> bool:
        """Run outer placements before inner ones; if that is not far from the best, find the best order of operations.

        The latter is left for later, and False returned, if another model would take too much of the time.
        """
        search = self.search
        ticks = search.report_nested(places)
        if search.building > _MAX_BUILD_SECONDS or ticks > _NEAR * search.upper:
            return True
        if self._polishing + search.building > _POLISHING_SHARE * (searched + 1.0):
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
    Phase(
        "first local search",
        lambda run: run.tasks > _MAX_TASKS_UNSEARCHED and TimedSearch.possible(run.search.problem, run.search.control),
        lambda run, _: run.improve(1 if run.gpus > 1 and run.priced else _IDLE_CYCLES),
    ),
    Phase(
        "bound and schedule side by side",
        lambda run: run.improves and run.priced and run.gpus > 1,
        lambda run, _: run.side_by_side(),
    ),
    Phase("proof by subsets", lambda _: True, lambda run, _: prove_by_subsets(run.search)),
    Phase(
        "bound of the load program",
        lambda run: run.improves and not run.priced,
        lambda run, share: raise_bound_by_loads(run.search, _LOADS_SHARE if run.has_layouts else share),
        share=0.3,
    ),
    Phase(
        "bound of dual prices",
        lambda run: run.improves and run.priced and run.gpus == 1 and not run.by_layouts,
        Portfolio.price,
        share=0.3,
    ),
    Phase(
        "proof by layouts",
        lambda run: run.bounded is not None,
        Portfolio.prove_by_layouts,
    ),
    Phase(
        "proof by set partition",
        lambda run: run.has_sets and run.has_few_sets,
        Portfolio.partition,
        share=0.8,
    ),
    Phase(
        "finer bound of dual prices",
        # On one GPU the dual prices of the layouts tell more; side by side, others are finer already.
        lambda run: (run.has_few_sets or run.gpus == 1) and not run.alone and run.finer_prices_tell,
        Portfolio.price,
        share=0.35,
    ),
    Phase(
        "search by layouts",
        lambda run: run.improves and run.has_layouts,
        lambda run, _: run.search_by_layouts(),
    ),
    Phase(
        "local search and set partition",
        lambda run: run.has_sets,
        lambda run, _: run.go_on(),
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
