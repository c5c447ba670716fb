"""Bound from the loads of the slices with whole tasks: column generation over the patterns of a GPU.

The load program divides tasks; here each placement has whole ones. The patterns that a GPU can run within some time are
too many to be listed, so the linear program, a restricted master problem, has only those of interest so far as columns
(Gilmore and Gomory, 1961; Desrosiers and Luebbecke, 2005). It gives dual prices of the tasks. At these prices dynamic
programming (:mod:`mig_opt.batch.loads.columns`) finds the patterns of most value: they give a bound, and those of
negative reduced cost are added to the program. The bound is computed in whole numbers from the dual prices alone, so it
needs no trust in the solver of the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

import numpy as np
import numpy.typing as npt

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.branches import Branches, branches_of
from mig_opt.batch.loads.columns import Pattern
from mig_opt.batch.loads.dual_bound import DualBound, GpuPricing, Members
from mig_opt.batch.loads.subsets import Integers, Reals
from mig_opt.models.batch.block_search import BlockSearch, M
from mig_opt.models.solvers.covering import CoveringProgram
from mig_opt.models.solvers.highs import Highs

Column = tuple[Members, int]
"""Column of the restricted master problem: members of a GPU, and the index of their order."""

_MAX_TASKS = 250
"""Number of tasks above which whole ones fill a slice nearly as well as divided ones."""

GRAINS, FINE_GRAINS = 10_000, 80_000
"""Grains of a schedule, at most; and those once few of them tell no more."""

_MAX_CELLS = 2**28
"""Entries of the tables of all groups of GPUs, four bytes each: where more are needed, grains are longer."""

_RENEWAL = 0.005
"""Share by which the best schedule became shorter, from which on dual prices for shorter schedules are sought."""

_STEP = 1e-4
"""The makespan for which dual prices are sought is longer than the bound by this share, at least."""

_SMOOTHING = 0.9
"""Weight of the best dual prices so far, against those of the program, in the next ones (Wentges, 1997): else they
oscillate."""

_HASTE = 0.5
"""Share of the lack of GPUs for the last makespan by which the next one is longer."""

_MAX_NEW_COLUMNS = 6
"""Patterns that a round adds to the program, at most."""

_LONGER, _VALUABLE = 1.001, 0.99
"""Patterns fit well that take at most this factor of the bound, and have at least this share of the most value."""

_SECONDS_PER_ROUND = 0.03
"""Seconds to solve the program, and to read patterns off the tables."""


def has_dual_price_bound(problem: IntegerBatch) -> bool:
    """Return True if there is such a bound: the tasks are not too many."""
    return len(problem.batch.tasks) <= _MAX_TASKS and not Highs().missing()


@dataclass(frozen=True, slots=True)
class DualPrices:
    """Dual prices of the tasks, and what they belong to."""

    groups: tuple[Branches, ...]  # of GPUs that are alike
    prices: Reals  # the best dual prices; what is live has some, too, after the tasks
    # If there are several GPUs and nothing is live: patterns of one of a group within little more time than the bound,
    # of nearly the most value, without repetitions.
    patterns: list[tuple[int, tuple[int, ...]]]
    ruled_out: Integers  # for each choice and order of members of a GPU, ticks within which no schedule has it
    columns: list[Column]  # of the program
    alone: int  # ticks of the longest makespan that the best dual prices rule out by themselves

    @property
    def branches(self) -> Branches:
        """Those of every GPU, if all are alike."""
        (branches,) = self.groups
        return branches


class DualPriceBound(Generic[M]):
    """Bound of the best dual prices, which rises round by round; the better the schedule of a search, the tighter.

    It may go on from earlier dual prices, ``start``. Times are rounded to ``grains`` of a schedule at most: with
    :data:`GRAINS` of them, a path of a dozen tasks loses up to a thousandth of the makespan.
    """

    def __init__(self, search: BlockSearch[M], start: DualPrices | None = None, grains: int = GRAINS) -> None:
        problem = search.problem
        self._search, self._groups = search, tuple(branches_of(problem, gpus) for gpus in problem.groups)
        cells = sum(len(branches.uses) + 1 for branches in self._groups) * (len(problem.batch.tasks) + 2)
        self._grains = max(1, min(grains, _MAX_CELLS // cells))
        self._begin(start)

    def _begin(self, start: DualPrices | None) -> None:
        """Look for dual prices for schedules that are shorter than the best one of now."""
        self._upper = self._search.upper
        self._pricing = GpuPricing(
            self._search.problem, self._groups, self._upper, self._grains, min(self._search.lower, self._upper - 1)
        )
        self._bound = DualBound(self._pricing, self._search.lower - 1, self._upper - 1)
        if start is not None:
            np.maximum(self._bound.out, start.ruled_out, out=self._bound.out)
        self.possible = self._pricing.possible
        if self.possible:
            self._generation = _ColumnGeneration(self._pricing, self._bound, start)
        else:  # some task takes as long wherever it runs
            self._search.raise_lower(self._search.upper)

    def round(self) -> bool:
        """Try some dual prices, and report the bound to the search; return False once there are no better ones."""
        search = self._search
        if not search.open:
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
        problem = self._search.problem
        patterns = self._generation.best_patterns() if len(problem.gpus) > 1 and not problem.live else []
        return self._latest(patterns)

    def _latest(self, patterns: list[tuple[int, tuple[int, ...]]]) -> DualPrices:
        generation, bound = self._generation, self._bound
        self._pricing.set_dual_prices(generation.best_prices)
        alone = DualBound(self._pricing, 0, bound.most)
        alone.update()
        columns = list(generation.master.columns.values())
        return DualPrices(self._groups, generation.best_prices, patterns, bound.out, columns, alone.ticks)


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
    bound = DualPriceBound(search, start, GRAINS if start is None else FINE_GRAINS)
    while control.clock < end and bound.round():
        pass
    return bound.found() if search.open else None


class _ColumnGeneration:
    """Column generation: each round tries some dual prices, and gets better ones from the program."""

    def __init__(self, pricing: GpuPricing, bound: DualBound, start: DualPrices | None) -> None:
        self._pricing, self._bound, self._gpus = pricing, bound, int(pricing.gpus.sum())
        self._step = max(1, int(bound.most * _STEP))
        self.master = _MasterProblem(pricing)
        if start is not None:
            self.master.add(start.columns)
            prices = start.prices
        else:
            # To begin with, each task pays for the least area that it needs, rounded as in the tables.
            areas = pricing.areas()
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
        highest = pricing.best_of_groups(np.where(left, values, 0))
        quality = pricing.value / max(1, int(pricing.gpus @ highest))
        if quality >= self._quality:
            self._quality, self.best_prices = quality, self._dual_prices
        added = master.add([(pricing.members(at, self._target), at) for at in self._most_valuable(values, left)])
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

    def _most_valuable(self, values: Integers, left: npt.NDArray[np.bool_]) -> list[int]:
        """Return the orders of most value of each group."""
        ranked = [at for at in np.argsort(-values, kind="stable").tolist() if left[at] and values[at] > 0]
        group = self._pricing.group
        groups = range(len(self._pricing.gpus))
        return [at for one in groups for at in [at for at in ranked if group[at] == one][:_MAX_NEW_COLUMNS]]

    def best_patterns(self) -> list[tuple[int, tuple[int, ...]]]:
        """Return patterns without repetitions that fit well."""
        ticks, master = int(self._bound.ticks * _LONGER), self.master
        if master.solve(np.ones(len(self._pricing.group), np.bool_), ticks) is None:
            return []
        values = master.values_of_patterns(ticks)
        most = [0.0] * len(self._pricing.gpus)
        for (group, _), value in values.items():
            most[group] = max(most[group], value)
        return [pattern for pattern, value in values.items() if value >= _VALUABLE * most[pattern[0]] > 0]

    def _set_target(self, ticks: int) -> None:
        """Look for dual prices that rule out another makespan."""
        self._target = min(max(ticks, self._bound.ticks + self._step), self._end)
        self._quality = 0.0


class _MasterProblem:
    """Restricted master problem: the number of GPUs that run each pattern, so that each task runs."""

    def __init__(self, pricing: GpuPricing) -> None:
        self._pricing = pricing
        self._program = CoveringProgram(pricing.rows, pricing.gpus.tolist())
        self.columns: dict[tuple[Pattern, int], Column] = {}

    @property
    def dual_prices(self) -> Reals:
        """Dual prices of the tasks in the last solution."""
        return self._program.dual_prices

    def add(self, found: Sequence[Column]) -> bool:
        """Add columns; return True if any of them is new."""
        columns = {(self._pricing.pattern(*column), column[1]): column for column in found}
        self.columns = columns | self.columns
        covered = {key: self._pricing.covered(*key) for key in columns}
        return self._program.add(covered, [int(self._pricing.group[order]) for _, order in columns])

    def solve(self, left: npt.NDArray[np.bool_], ticks: int) -> float | None:
        """Find the fewest GPUs with orders that are ``left``, within a makespan; return None if the solver fails."""
        within = self._pricing.ticks_within
        self._program.use({key: bool(left[key[1]]) and within(*key) <= ticks for key in self.columns})
        return self._program.solve()

    def values_of_patterns(self, ticks: int) -> dict[tuple[int, tuple[int, ...]], float]:
        """Return the value of each pattern without repetitions that a GPU of a group can run within a makespan."""
        return {
            (int(self._pricing.group[order]), pattern.tasks): float(self.dual_prices[list(pattern.tasks)].sum())
            for pattern, order in self.columns
            if self._pricing.ticks_within(pattern, order) <= ticks and len(set(pattern.tasks)) == len(pattern.tasks)
        }
