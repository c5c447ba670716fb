"""A bound from the loads of the slices with whole tasks: prices for the tasks, found by column generation.

The load program divides tasks; here each placement has whole ones. What a GPU can run within some time is too much to
be listed, so a linear program knows only what was of interest so far. Its dual values are prices
(:mod:`mig_opt.loads.prices`): what a GPU takes in at most at these prices is found by dynamic programming over the
branches of its tree (:mod:`mig_opt.loads.branches`), gives a bound, and is added to the program. The bound is computed
in whole numbers from the prices alone, so it needs no trust in the solver of the program.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.loads.branches import Branches, branches_of
from mig_opt.loads.prices import Bound, Contents, Prices
from mig_opt.models.batch.search import Search
from mig_opt.models.batch.solver import M
from mig_opt.models.solvers.highs import Highs

Reals = npt.NDArray[np.float64]

_MOST_TASKS = 150
"""With more tasks, whole ones fill a slice nearly as well as divided ones."""

_GRAINS = 10_000
"""Of a schedule, at most."""

_LEAST = 2.0
"""Seconds that there should be."""

_STEP = 1e-4
"""How much longer than what is ruled out the makespan is for which prices are sought, as a share of it."""

_INERTIA = 0.9
"""Prices move by the rest towards those of the program: they jump about otherwise."""

_HASTE = 0.5
"""How much longer the next makespan is, in terms of how many more GPUs are needed for the last one."""

_NEW = 12
"""Contents of a GPU that a round adds to the program."""

_LONGER, _WORTH = 1.001, 0.99
"""Contents fit well that take so many times as long as the bound, or less, and are worth so many times the most, or
more."""

_SECONDS_PER_ROUND, _SECONDS_PER_GRAIN = 0.01, 1e-9
"""To solve the program, and to fill tables: for each use of a branch, each task and each pair of lengths."""


def prices_tell_of(problem: IntegerBatch) -> bool:
    """Whether there is a bound from prices: nothing is live, and the tasks are not too many."""
    return not problem.live and len(problem.batch.tasks) <= _MOST_TASKS


def raise_bound_by_prices(search: Search[M], share: float) -> list[tuple[int, ...]]:
    """Report the bound of the best prices to a search.

    Parameters
    ----------
    search : Search
        With a schedule, the better the tighter the bound.
    share : float
        Of the time that is left may go to this.

    Returns
    -------
    list of tuple of int
        If there are several GPUs: contents of one within little more time than the bound, worth nearly the most at the
        prices, without repetitions; none, if no prices were found.
    """
    problem, control = search.problem, search.control
    count = len(problem.batch.tasks)
    seconds = math.inf if control.remaining is None else control.remaining * share
    if not prices_tell_of(problem) or seconds < _LEAST or Highs().missing() or not search.open:
        return []
    end = control.clock + seconds
    branches = branches_of(problem)
    most = search.upper - 1
    grain = _grain(branches, most)
    prices = Prices(problem, branches, most + 1, grain)
    if not prices.possible.any(axis=1).all():
        # Some task takes as long wherever it runs.
        search.raise_lower(search.upper)
        return []
    bound = Bound(prices, len(branches.orders), problem.batch.gpus, search.lower - 1, most)
    generation = _Generation(branches, prices, bound, problem.batch.gpus, max(1, int(most * _STEP)))
    grains, uses = most // grain, sum(len(branch.uses) for branch in branches.branches)
    cost = _SECONDS_PER_ROUND + _SECONDS_PER_GRAIN * uses * grains * (count + grains / 16)
    while search.open and control.clock < end:
        control.spend(cost)
        goes_on = generation.round()
        search.raise_lower(bound.ticks + 1)
        if not goes_on:
            break
    return generation.best_contents() if problem.batch.gpus > 1 and search.open else []


def _grain(branches: Branches, most: int) -> int:
    """Return the ticks of a grain: about as many as there may be, so that operations lose little by rounding."""
    least = max(1, -(-most // _GRAINS))
    operations = [ticks for place in branches.places for ticks in (place.create, place.destroy)]
    return min(range(least, 2 * least), key=lambda grain: sum(ticks % grain for ticks in operations) + grain)


class _Generation:
    """Column generation: each round tries some prices, and gets better ones from the program."""

    def __init__(self, branches: Branches, prices: Prices, bound: Bound, gpus: int, step: int) -> None:
        self._branches, self._prices, self._bound, self._gpus, self._step = branches, prices, bound, gpus, step
        self._program = _Program(prices)
        # To begin with, each task pays for the least area that it needs.
        widths = np.array([place.placement.profile.compute_slices for place in branches.places])
        areas = np.where(prices.possible, (prices.ticks + 1) * widths, np.inf).min(axis=1)
        self._try = self._centre = areas / areas.sum()
        self._quality, self._lacking, self._cautious = 0.0, 0.0, True
        self._end = bound.most
        self._aim(bound.ticks)

    def round(self) -> bool:
        """Try prices, add to the program what it lacks, and find the next ones; return False at the end."""
        prices, bound, program = self._prices, self._bound, self._program
        prices.set(self._try)
        bound.update(self._target, bound.most)
        if bound.ticks >= self._target:
            self._aim(bound.ticks + int(self._lacking * bound.ticks))
        if bound.ticks >= self._end:
            return False
        taken = prices.of_orders(self._target)
        # On several GPUs that would lead to prices that are good for the few orders only that are left.
        left = bound.out < self._target if self._gpus == 1 else np.ones(len(taken), np.bool_)
        quality = prices.worth / max(1, self._gpus * int(taken[left].max()))
        if quality >= self._quality:
            self._quality, self._centre = quality, self._try
        best = [at for at in np.argsort(-taken, kind="stable").tolist() if left[at] and taken[at] > 0][:_NEW]
        added = program.add([(prices.contents(self._branches.orders[at], self._target), at) for at in best])
        used = program.solve(left, self._target)
        if used is None or not program.prices.any():
            return False
        self._lacking = _HASTE * (used / self._gpus - 1)
        if used <= self._gpus * (1 + 1e-9) or not (added or self._cautious):
            # No prices rule this out.
            self._end = self._target
            self._aim((bound.ticks + self._target) // 2)
            return self._target < self._end
        # What the program lacks at cautious prices it may not lack at its own.
        self._cautious = added
        found = program.prices / program.prices.sum()
        self._try = _INERTIA * self._centre + (1 - _INERTIA) * found if added else found
        return True

    def best_contents(self) -> list[tuple[int, ...]]:
        """Return contents without repetitions that fit well."""
        ticks, program = int(self._bound.ticks * _LONGER), self._program
        if program.solve(np.ones(len(self._branches.orders), np.bool_), ticks) is None:
            return []
        worths = program.worths(ticks)
        least = _WORTH * max(worths.values(), default=0.0)
        return [tasks for tasks, worth in worths.items() if worth >= least > 0]

    def _aim(self, ticks: int) -> None:
        """Look for prices that rule out another makespan."""
        self._target = min(max(ticks, self._bound.ticks + self._step), self._end)
        self._quality = 0.0


class _Program:
    """The linear program: how many GPUs have which contents, so that each task runs."""

    def __init__(self, prices: Prices) -> None:
        import highspy  # slow to load

        self._source = prices
        self._infinity = highspy.kHighsInf
        self._optimal = highspy.HighsModelStatus.kOptimal
        self._model: Any = highspy.Highs()
        self._model.setOptionValue("output_flag", False)
        self._tasks = len(prices.possible)
        for _ in range(self._tasks):
            self._model.addRow(1.0, self._infinity, 0, [], [])
        for task in range(self._tasks):
            # On a GPU of its own it can run anyway.
            self._model.addCol(1.0, 0.0, 1.0, 1, [task], [1.0])
        self._columns: dict[tuple[Contents, int], int] = {}
        self._off: set[int] = set()
        self.prices: Reals = np.zeros(self._tasks)

    def add(self, found: list[tuple[Contents, int]]) -> bool:
        """Add contents, each with the index of its order; return whether there is anything new."""
        new = [key for key in dict.fromkeys(found) if key not in self._columns]
        for key in new:
            times = Counter(key[0].tasks)
            self._columns[key] = self._model.getNumCol()
            self._model.addCol(1.0, 0.0, self._infinity, len(times), list(times), [float(n) for n in times.values()])
        return bool(new)

    def solve(self, left: npt.NDArray[np.bool_], ticks: int) -> float | None:
        """Find the fewest GPUs with orders that are ``left``, within a makespan; return None if the solver fails."""
        for (contents, order), column in self._columns.items():
            self._turn(column, on=bool(left[order]) and self._source.ticks_within(contents) <= ticks)
        self._model.run()
        if self._model.getModelStatus() != self._optimal:
            return None
        self.prices = np.maximum(np.array(self._model.getSolution().row_dual), 0.0)
        return float(self._model.getInfo().objective_function_value)

    def worths(self, ticks: int) -> dict[tuple[int, ...], float]:
        """Return what the contents without repetitions are worth that a GPU takes in within a makespan."""
        return {
            contents.tasks: float(self.prices[list(contents.tasks)].sum())
            for contents, _ in self._columns
            if self._source.ticks_within(contents) <= ticks and len(set(contents.tasks)) == len(contents.tasks)
        }

    def _turn(self, column: int, *, on: bool) -> None:
        """Let the program use a column, or not."""
        if on == (column in self._off):
            self._model.changeColBounds(column, 0.0, self._infinity if on else 0.0)
            self._off ^= {column}
