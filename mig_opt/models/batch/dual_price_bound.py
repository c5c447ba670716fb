"""Bound from the loads of the slices with whole tasks: column generation over the patterns of a GPU.

The load program divides tasks; here each placement has whole ones. The patterns that a GPU can run within some time are
too many to be listed, so the linear program, a restricted master problem, has only those of interest so far as columns
(Gilmore and Gomory, 1961; Desrosiers and Luebbecke, 2005). It gives dual prices of the tasks. At these prices dynamic
programming (:mod:`mig_opt.batch.loads.columns`) finds the patterns of most value: they give a bound, and those of
negative reduced cost are added to the program. The bound is computed in whole numbers from the dual prices alone, so it
needs no trust in the solver of the program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

import numpy as np
import numpy.typing as npt

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.branches import Branches, branches_of
from mig_opt.batch.loads.columns import DualBound, FilledMember, Pattern, PricingProblem, grain_of
from mig_opt.batch.loads.subsets import Integers, Reals
from mig_opt.models.batch.block_search import BlockSearch, M
from mig_opt.models.solvers.covering import CoveringProgram
from mig_opt.models.solvers.highs import Highs

Members = tuple[FilledMember, ...]
"""Members of a GPU with their tasks, in the order of their first creations."""

Column = tuple[Members, int]
"""Column of the restricted master problem: members, and the index of their order."""

_MAX_TASKS = 250
"""Number of tasks above which whole ones fill a slice nearly as well as divided ones."""

_GRAINS, _FINE_GRAINS = 10_000, 80_000
"""Grains of a schedule, at most; and those once few of them tell no more."""

_RENEWAL = 0.005
"""Share by which the best schedule became shorter, from which on dual prices for shorter schedules are sought."""

_STEP = 1e-4
"""The makespan for which dual prices are sought is longer than the bound by this share, at least."""

_SMOOTHING = 0.9
"""Weight of the best dual prices so far, against those of the program, in the next ones (Wentges, 1997): else they
oscillate."""

_HASTE = 0.5
"""Share of the lack of GPUs for the last makespan by which the next one is longer."""

_MAX_NEW_COLUMNS = 12
"""Patterns that a round adds to the program, at most."""

_LONGER, _VALUABLE = 1.001, 0.99
"""Patterns fit well that take at most this factor of the bound, and have at least this share of the most value."""

_SECONDS_PER_ROUND = 0.03
"""Seconds to solve the program, and to read patterns off the tables."""


def has_dual_price_bound(problem: IntegerBatch) -> bool:
    """Return True if there is such a bound: all GPUs are alike, nothing is live, and the tasks are not too many."""
    return problem.alike and len(problem.batch.tasks) <= _MAX_TASKS and not Highs().missing()


@dataclass(frozen=True, slots=True)
class DualPrices:
    """Dual prices of the tasks, and what they belong to."""

    branches: Branches  # of each GPU
    prices: Reals  # the best dual prices
    # If there are several GPUs: patterns of one within little more time than the bound, of nearly the most value,
    # without repetitions.
    patterns: list[tuple[int, ...]]
    ruled_out: Integers  # for each choice and order of members of a GPU, ticks within which no schedule has it
    columns: list[Column]  # of the program
    alone: int  # ticks of the longest makespan that the best dual prices rule out by themselves


class DualPriceBound(Generic[M]):
    """Bound of the best dual prices, which rises round by round; the better the schedule of a search, the tighter.

    From earlier dual prices, ``start``, it goes on with times that are rounded less: a path of a dozen tasks loses up
    to a thousandth of the makespan by the first rounding.
    """

    def __init__(self, search: BlockSearch[M], start: DualPrices | None = None) -> None:
        self._search, self._branches = search, branches_of(search.problem)
        self._grains = _GRAINS if start is None else _FINE_GRAINS
        self._begin(start)

    def _begin(self, start: DualPrices | None) -> None:
        """Look for dual prices for schedules that are shorter than the best one of now."""
        problem, self._upper = self._search.problem, self._search.upper
        most, gpus, orders = self._upper - 1, len(problem.gpus), len(self._branches.orders)
        grain = grain_of(self._branches, most, self._grains)
        self._pricing = PricingProblem(problem, self._branches, most + 1, grain)
        self._bound = DualBound(self._pricing, orders, gpus, self._search.lower - 1, most)
        if start is not None:
            np.maximum(self._bound.out, start.ruled_out, out=self._bound.out)
        self.possible = bool(self._pricing.possible.any(axis=1).all())
        if self.possible:
            self._generation = _ColumnGeneration(self._branches, self._pricing, self._bound, gpus, start)

    def round(self) -> bool:
        """Try some dual prices, and report the bound to the search; return False once there are no better ones."""
        search = self._search
        if not search.open:
            return False
        if not self.possible:
            # Some task takes as long wherever it runs.
            search.raise_lower(search.upper)
            return False
        if search.upper < self._upper * (1 - _RENEWAL):
            self._begin(self._latest([]))
            return True
        search.control.spend(_SECONDS_PER_ROUND + self._pricing.seconds)
        goes_on = self._generation.round()
        search.raise_lower(self._bound.ticks + 1)
        return goes_on and search.open

    def found(self) -> DualPrices:
        """Return the best dual prices so far."""
        patterns = self._generation.best_patterns() if len(self._search.problem.gpus) > 1 else []
        return self._latest(patterns)

    def _latest(self, patterns: list[tuple[int, ...]]) -> DualPrices:
        generation, bound = self._generation, self._bound
        self._pricing.set_dual_prices(generation.best_prices)
        alone = DualBound(self._pricing, len(bound.out), len(self._search.problem.gpus), 0, bound.most)
        alone.update()
        found = generation.master.found
        return DualPrices(self._branches, generation.best_prices, patterns, bound.out, found, alone.ticks)


def raise_bound_by_dual_prices(
    search: BlockSearch[M], share: float, start: DualPrices | None = None
) -> DualPrices | None:
    """Report the bound of the best dual prices to a search, in a share of the time that is left.

    Returned are the best ones that were found, from ``start`` if it is given; None, if there is no time for them, or
    nothing left to prove.
    """
    control = search.control
    end = control.end_of(share)
    if not has_dual_price_bound(search.problem) or control.expired or not search.open:
        return None
    bound = DualPriceBound(search, start)
    while control.clock < end and bound.round():
        pass
    return bound.found() if search.open else None


class _ColumnGeneration:
    """Column generation: each round tries some dual prices, and gets better ones from the program."""

    def __init__(
        self, branches: Branches, pricing: PricingProblem, bound: DualBound, gpus: int, start: DualPrices | None
    ) -> None:
        self._branches, self._pricing, self._bound, self._gpus = branches, pricing, bound, gpus
        self._step = max(1, int(bound.most * _STEP))
        self.master = _MasterProblem(pricing)
        if start is not None:
            self.master.add(start.columns)
            prices = start.prices
        else:
            # To begin with, each task pays for the least area that it needs, rounded as in the tables.
            widths = np.array([place.placement.profile.compute_slices for place in branches.places])
            areas = np.where(pricing.possible, np.maximum(pricing.grains, 1) * widths, np.inf).min(axis=1)
            prices = areas / areas.sum()
        self._dual_prices = self.best_prices = prices
        self._quality, self._lacking, self._cautious = 0.0, 0.0, True
        self._end = bound.most
        self._set_target(bound.ticks)

    def round(self) -> bool:
        """Try dual prices, add columns to the program, and find the next prices; return False at the end."""
        pricing, bound, master = self._pricing, self._bound, self.master
        pricing.set_dual_prices(self._dual_prices)
        bound.update(self._target, bound.most)
        if bound.ticks >= self._target:
            self._set_target(bound.ticks + int(self._lacking * bound.ticks))
        if bound.ticks >= self._end:
            return False
        values = pricing.best_values(self._target)
        # On several GPUs that would lead to dual prices that are good for the few orders only that are left.
        left = bound.out < self._target if self._gpus == 1 else np.ones(len(values), np.bool_)
        quality = pricing.value / max(1, self._gpus * int(values[left].max()))
        if quality >= self._quality:
            self._quality, self.best_prices = quality, self._dual_prices
        best = [at for at in np.argsort(-values, kind="stable").tolist() if left[at] and values[at] > 0][
            :_MAX_NEW_COLUMNS
        ]
        added = master.add([(self._members(at), at) for at in best])
        used = master.solve(left, self._target)
        if used is None or not master.dual_prices.any():
            return False
        self._lacking = _HASTE * (used / self._gpus - 1)
        if used <= self._gpus * (1 + 1e-9) or not (added or self._cautious):
            # No dual prices rule this out.
            self._end = self._target
            self._set_target((bound.ticks + self._target) // 2)
            return self._target < self._end
        # At the cautious dual prices the program may lack columns that it does not lack at its own.
        self._cautious = added
        found = master.dual_prices / master.dual_prices.sum()
        self._dual_prices = _SMOOTHING * self.best_prices + (1 - _SMOOTHING) * found if added else found
        return True

    def _members(self, at: int) -> Members:
        """Return the members of most value in one of the orders."""
        order = self._branches.orders[at]
        return tuple(self._pricing.filled(one, place, self._target) for place, one in enumerate(order))

    def best_patterns(self) -> list[tuple[int, ...]]:
        """Return patterns without repetitions that fit well."""
        ticks, master = int(self._bound.ticks * _LONGER), self.master
        if master.solve(np.ones(len(self._branches.orders), np.bool_), ticks) is None:
            return []
        values = master.values_of_patterns(ticks)
        least = _VALUABLE * max(values.values(), default=0.0)
        return [tasks for tasks, value in values.items() if value >= least > 0]

    def _set_target(self, ticks: int) -> None:
        """Look for dual prices that rule out another makespan."""
        self._target = min(max(ticks, self._bound.ticks + self._step), self._end)
        self._quality = 0.0


class _MasterProblem:
    """Restricted master problem: the number of GPUs that run each pattern, so that each task runs."""

    def __init__(self, pricing: PricingProblem) -> None:
        self._pricing = pricing
        self._program = CoveringProgram(len(pricing.possible))
        self._columns: dict[tuple[Pattern, int], Column] = {}

    @property
    def found(self) -> list[Column]:
        """All columns."""
        return list(self._columns.values())

    @property
    def dual_prices(self) -> Reals:
        """Dual prices of the tasks in the last solution."""
        return self._program.dual_prices

    def add(self, found: Sequence[Column]) -> bool:
        """Add columns; return True if any of them is new."""
        columns = {(self._pricing.pattern(members), order): (members, order) for members, order in found}
        self._columns = columns | self._columns
        return self._program.add({key: Counter(key[0].tasks) for key in columns})

    def solve(self, left: npt.NDArray[np.bool_], ticks: int) -> float | None:
        """Find the fewest GPUs with orders that are ``left``, within a makespan; return None if the solver fails."""
        within = self._pricing.ticks_within
        self._program.use({key: bool(left[key[1]]) and within(key[0]) <= ticks for key in self._columns})
        return self._program.solve()

    def values_of_patterns(self, ticks: int) -> dict[tuple[int, ...], float]:
        """Return the value of each pattern without repetitions that a GPU can run within a makespan."""
        return {
            pattern.tasks: float(self.dual_prices[list(pattern.tasks)].sum())
            for pattern, _ in self._columns
            if self._pricing.ticks_within(pattern) <= ticks and len(set(pattern.tasks)) == len(pattern.tasks)
        }
