"""A bound from the loads of the slices with whole tasks: prices for the tasks, found by column generation.

The load program divides tasks; here each slice has whole ones. Which usages of a GPU there are
(:mod:`mig_opt.loads.usages`) and what fits on each of their ways is too much to be listed, so a linear program knows
only what was of interest so far. Its dual values are prices (:mod:`mig_opt.loads.prices`): what a GPU takes in at most
at these prices is found by dynamic programming, gives a bound, and is added to the program. The bound is computed in
whole numbers from the prices alone, so it needs no trust in the solver of the program.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt

from mig_opt.loads.prices import Bound, Contents, Prices
from mig_opt.loads.usages import Usages, usages_of
from mig_opt.models.highs import Highs
from mig_opt.models.search import Search
from mig_opt.models.solver import M
from mig_opt.ticked import TickedBatch

Reals = npt.NDArray[np.float64]

_MOST_TASKS = 150
"""With more tasks, whole ones fill a slice nearly as well as divided ones."""

_GRAINS, _MOST_GRAINS = 720_000, 20_000
"""Of a schedule: the first number is for all tasks together."""

_LEAST = 2.0
"""Seconds that it should have."""

_STEP = 1e-4
"""How much longer than what is ruled out the makespan is for which prices are sought, as a share of it."""

_INERTIA = 0.9
"""Prices move by the rest towards those of the program: they jump about otherwise."""

_HASTE = 0.5
"""How much longer the next makespan is, in terms of how many more GPUs are needed for the last one."""

_USAGES, _WAYS, _MORE_WAYS = 10, 40, 20
"""New usages in a round, new contents for the ways of the best ones, and for any others."""

_SECONDS_PER_ROUND, _SECONDS_PER_GRAIN = 0.02, 1e-9
"""To solve the program, and to fill tables: for each kind of a way and each task."""


def prices_tell_of(problem: TickedBatch) -> bool:
    """Whether there is a bound from prices: nothing is live, and the tasks are not too many."""
    return not problem.live and len(problem.batch.tasks) <= _MOST_TASKS


def raise_bound_by_prices(search: Search[M], share: float) -> None:
    """Report the bound of the best prices to a search.

    Parameters
    ----------
    search : Search
        With a schedule, the better the tighter the bound.
    share : float
        Of the time that is left may go to this.
    """
    problem, control = search.problem, search.control
    count = len(problem.batch.tasks)
    seconds = math.inf if control.remaining is None else control.remaining * share
    if not prices_tell_of(problem) or seconds < _LEAST or Highs().missing() or not search.open:
        return
    end = control.spent + seconds if control.deterministic else control.seconds + seconds
    usages = usages_of(problem)
    most = search.upper - 1
    grains = min(_GRAINS // count, _MOST_GRAINS)
    prices = Prices(problem, usages, most + 1, max(1, most // grains))
    if not prices.possible.any(axis=1).all():
        # Some task takes as long wherever it runs.
        search.raise_lower(search.upper)
        return
    bound = Bound(prices, len(usages.rows), problem.batch.gpus, search.lower - 1, most)
    generation = _Generation(usages, prices, bound, problem.batch.gpus, max(1, int(most * _STEP)))
    cost = _SECONDS_PER_ROUND + _SECONDS_PER_GRAIN * grains * count * sum(len(kinds) for kinds in usages.chains)
    while search.open and (control.spent if control.deterministic else control.seconds) < end:
        control.spend(cost)
        goes_on = generation.round()
        search.raise_lower(bound.ticks + 1)
        if not goes_on:
            break


class _Generation:
    """Column generation: each round tries some prices, and gets better ones from the program."""

    def __init__(self, usages: Usages, prices: Prices, bound: Bound, gpus: int, step: int) -> None:
        self._usages, self._prices, self._bound, self._gpus, self._step = usages, prices, bound, gpus, step
        self._program = _Program(usages, prices)
        # To begin with, each task pays for its time.
        self._try = self._centre = self._normal(prices.ticks.astype(np.float64) + 1)
        self._quality, self._lacking, self._cautious = 0.0, 0.0, True
        self._end = bound.most
        self._aim(bound.ticks)

    def _normal(self, prices: Reals) -> Reals:
        """Return prices at which all tasks together are worth the number of GPUs."""
        factor = self._gpus / float(self._prices.lowest(prices).sum())
        return np.where(self._prices.possible, prices, 0.0) * factor

    def round(self) -> bool:
        """Try prices, add to the program what it lacks, and find the next ones; return False at the end."""
        prices, bound, program = self._prices, self._bound, self._program
        prices.set(self._try)
        bound.update(self._target, bound.most)
        if bound.ticks >= self._target:
            self._aim(bound.ticks + int(self._lacking * bound.ticks))
        if bound.ticks >= self._end:
            return False
        taken, ways = prices.of_usages(self._target), prices.of_ways(self._target)
        # On several GPUs that would lead to prices that are good for the few usages only that are left.
        left = bound.out < self._target if self._gpus == 1 else np.ones(len(taken), np.bool_)
        quality = prices.worth / max(1, self._gpus * int(taken[left].max()))
        if quality >= self._quality:
            self._quality, self._centre = quality, self._try
        added = program.add(np.where(left, taken, -1), ways / prices.scale, self._target)
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
        found = self._normal(program.prices)
        self._try = _INERTIA * self._centre + (1 - _INERTIA) * found if added else found
        return True

    def _aim(self, ticks: int) -> None:
        """Look for prices that rule out another makespan."""
        self._target = min(max(ticks, self._bound.ticks + self._step), self._end)
        self._quality = 0.0


class _Program:
    """The linear program: how many GPUs have which usage, and which contents their ways have.

    Its rows say that each task runs, that it covers as many ways as its kind of placement does, and that there are
    enough ways.
    """

    def __init__(self, usages: Usages, prices: Prices) -> None:
        import highspy  # slow to load

        self._usages, self._prices = usages, prices
        self._infinity = highspy.kHighsInf
        self._optimal = highspy.HighsModelStatus.kOptimal
        self._model: Any = highspy.Highs()
        self._model.setOptionValue("output_flag", False)
        self._tasks: int
        self._kinds: int
        self._tasks, self._kinds = tasks, kinds = prices.possible.shape
        for _ in range(tasks):
            self._model.addRow(1.0, self._infinity, 0, [], [])
        for _ in range(tasks * kinds + len(usages.ways)):
            self._model.addRow(0.0, self._infinity, 0, [], [])
        for task in range(tasks):
            for kind in range(kinds):
                if prices.possible[task, kind]:
                    rows = [task, self._row_of(task, kind)]
                    self._model.addCol(0.0, 0.0, 1.0, 2, rows, [1.0, -float(prices.widths[kind])])
            # On a GPU of its own it can run anyway.
            self._model.addCol(1.0, 0.0, 1.0, 1, [task], [1.0])
        self._columns: dict[int, int] = {}
        self._off: set[int] = set()
        self._contents: dict[tuple[int, Contents], tuple[int, int]] = {}
        """The column of each, and the ticks that it needs."""
        self.prices: Reals = np.zeros((tasks, kinds))
        self._ways: Reals = np.zeros(len(usages.ways))

    def _row_of(self, task: int, kind: int) -> int:
        """Return the row of the ways that a task covers; those of the ways of usages follow after the last task."""
        return self._tasks + task * self._kinds + kind

    def add(self, taken: npt.NDArray[np.int64], ways: Reals, ticks: int) -> bool:
        """Add the usages that take in most, and the contents of their ways; return whether there is anything new."""
        order = np.argsort(-taken, kind="stable")[:_WAYS]
        order = order[taken[order] >= 0]
        before = len(self._columns) + len(self._contents)
        for usage in order[:_USAGES].tolist():
            if usage not in self._columns:
                self._add_usage(usage)
        gain = ways - self._ways
        best = np.unique(self._usages.rows[order])
        best = best[np.argsort(-gain[best], kind="stable")][:_WAYS]
        for way in dict.fromkeys([*best.tolist(), *np.argsort(-gain, kind="stable")[:_MORE_WAYS].tolist()]):
            if gain[way] > 1e-9:
                self._add_contents(way, self._prices.contents(way, ticks))
        return len(self._columns) + len(self._contents) > before

    def _add_usage(self, usage: int) -> None:
        ways = Counter((self._usages.rows[usage] + self._row_of(self._tasks, 0)).tolist())
        self._columns[usage] = self._model.getNumCol()
        self._model.addCol(1.0, 0.0, self._infinity, len(ways), list(ways), [float(number) for number in ways.values()])

    def _add_contents(self, way: int, contents: Contents) -> None:
        if contents and (way, contents) not in self._contents:
            self._contents[way, contents] = self._model.getNumCol(), self._prices.ticks_of(way, contents)
            rows = [*(self._row_of(task, kind) for task, kind in contents), self._row_of(self._tasks, 0) + way]
            self._model.addCol(0.0, 0.0, self._infinity, len(rows), rows, [1.0] * len(contents) + [-1.0])

    def solve(self, left: npt.NDArray[np.bool_], ticks: int) -> float | None:
        """Find the fewest GPUs with usages that are ``left``, within a makespan; return None if the solver fails."""
        for usage, column in self._columns.items():
            self._turn(column, on=bool(left[usage]))
        for column, needed in self._contents.values():
            self._turn(column, on=needed <= ticks)
        self._model.run()
        if self._model.getModelStatus() != self._optimal:
            return None
        dual = np.maximum(np.array(self._model.getSolution().row_dual), 0.0)
        first = self._row_of(self._tasks, 0)
        self.prices, self._ways = dual[self._tasks : first].reshape(self._tasks, self._kinds), dual[first:]
        return float(self._model.getInfo().objective_function_value)

    def _turn(self, column: int, *, on: bool) -> None:
        """Let the program use a column, or not."""
        if on == (column in self._off):
            self._model.changeColBounds(column, 0.0, self._infinity if on else 0.0)
            self._off ^= {column}
