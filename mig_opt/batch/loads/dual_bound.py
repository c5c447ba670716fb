"""The bound of dual prices: the longest makespan within which all GPUs together cannot run the value of all tasks.

GPUs that are alike have one pricing problem (:mod:`mig_opt.batch.loads.columns`); those of another kind, and each one
on which something is live, have their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.branches import Branches
from mig_opt.batch.loads.columns import FilledMember, Pattern, PricingProblem, grain_of
from mig_opt.batch.loads.subsets import Integers, Reals

Members = tuple[FilledMember, ...]
"""Members of a GPU with their tasks, in the order of their first creations."""


class GpuPricing:
    """Pricing problems of all GPUs of a batch, for each group of them that are alike.

    Prices are those of the tasks and then of what is live, group by group. The orders are those of all groups, one
    group after the other. The schedules of interest take ``least`` ticks at least, and end before another tick.
    """

    def __init__(
        self, batch: IntegerBatch, groups: Sequence[Branches], before: int, grains: int, least: int = 0
    ) -> None:
        self._groups = groups
        self._problems = [
            PricingProblem(batch, branches, before, grain_of(branches, before - 1, grains), least=least)
            for branches in groups
        ]
        self.gpus = np.array([len(branches.gpus) for branches in groups])  # of each group
        tasks = len(batch.batch.tasks)
        ends = tasks + np.cumsum([len(branches.live) for branches in groups])
        self._rows = [
            np.concatenate([np.arange(tasks), np.arange(end - len(branches.live), end)])
            for end, branches in zip(ends, groups, strict=True)
        ]
        self.rows = int(ends[-1])  # number of prices
        sizes = [len(branches.orders) for branches in groups]
        self.group: Integers = np.repeat(np.arange(len(groups)), sizes)  # of each order
        self._first = np.cumsum([0, *sizes[:-1]])
        self.seconds = sum(problem.seconds for problem in self._problems)  # approximately, to set dual prices
        self.value = 0  # sum of all prices, in the units of values

    @property
    def possible(self) -> bool:
        """True if each task can run somewhere."""
        possible = np.zeros(self.rows, np.bool_)
        for problem, rows in zip(self._problems, self._rows, strict=True):
            possible[rows] |= problem.possible.any(axis=1)
        return bool(possible.all())

    def areas(self) -> Reals:
        """Return the least compute slices x ticks that each task needs, with the ticks rounded as in the tables."""
        areas = np.full(self.rows, np.inf)
        for branches, problem, rows in zip(self._groups, self._problems, self._rows, strict=True):
            widths = np.array([place.placement.profile.compute_slices for place in branches.places])
            own = np.where(problem.possible, np.maximum(problem.grains, 1) * problem.grain * widths, np.inf)
            areas[rows] = np.minimum(areas[rows], own.min(axis=1))
        return areas

    def set_dual_prices(self, prices: Reals) -> None:
        """Set the dual prices, not negative and not all 0."""
        scale = min(problem.highest for problem in self._problems) / float(prices.sum())
        for problem, rows in zip(self._problems, self._rows, strict=True):
            problem.set_dual_prices(prices[rows], scale)
        self.value = int(np.floor(prices * scale).sum())

    def best_values(self, ticks: int) -> Integers:
        """Return the value of the best pattern of each order within some ticks; -1 if there is none."""
        return np.concatenate([problem.best_values(ticks) for problem in self._problems])

    def best_of_groups(self, values: Integers) -> Integers:
        """Return the highest value of the orders of each group."""
        return np.maximum.reduceat(values, self._first)

    def members(self, order: int, ticks: int) -> Members:
        """Return the members of an order with the tasks of most value within some ticks."""
        group = int(self.group[order])
        some = self._groups[group].orders[order - int(self._first[group])]
        return tuple(self._problems[group].filled(one, place, ticks) for place, one in enumerate(some))

    def pattern(self, members: Members, order: int) -> Pattern:
        """Return the pattern of the members of an order."""
        return self._problem_of(order).pattern(members)

    def ticks_within(self, pattern: Pattern, order: int) -> int:
        """Return the ticks within which a GPU runs a pattern."""
        return self._problem_of(order).ticks_within(pattern)

    def _problem_of(self, order: int) -> PricingProblem:
        return self._problems[int(self.group[order])]

    def covered(self, pattern: Pattern, order: int) -> Counter[int]:
        """Return how often a pattern has what each price is for, by its index."""
        return Counter(self._rows[self.group[order]][list(pattern.tasks)].tolist())


class DualBound:
    """Longest makespan that is ruled out, over all dual prices that were tried.

    Once a makespan is ruled out for all orders of members but a few, only those few are left for other dual prices. The
    makespan of ``least`` ticks is ruled out already, that of ``most`` is the longest of interest.
    """

    def __init__(self, pricing: GpuPricing, least: int, most: int) -> None:
        self._pricing, self.most = pricing, most
        self.ticks = least  # the longest makespan that is ruled out
        # the same for schedules that have such members on one of the GPUs
        self.out: Integers = np.full(len(pricing.group), least)

    def update(self, *levels: int) -> None:
        """Rule out all that the present dual prices do, with single orders looked at within each of the ``levels``."""
        pricing = self._pricing
        for level in levels:
            taken = pricing.best_values(level)
            left = self.out < level
            best = self._best(taken, left)
            if best is not None:
                others = int(pricing.gpus @ best) - best[pricing.group]
                self.out[left & (taken + others < pricing.value)] = level
        low, high, middle = self.ticks, self.most + 1, self.ticks + 1  # mostly they rule out no more
        while high - low > 1:
            low, high = (middle, high) if self._ruled_out(middle) else (low, middle)
            middle = (low + high) // 2
        self.ticks = low

    def _ruled_out(self, ticks: int) -> bool:
        best = self._best(self._pricing.best_values(ticks), self.out < ticks)
        return best is None or int(self._pricing.gpus @ best) < self._pricing.value

    def _best(self, values: Integers, left: npt.NDArray[np.bool_]) -> Integers | None:
        """Return the highest values of the groups by orders that are left; None if a group has none left."""
        best = self._pricing.best_of_groups(np.where(left, np.maximum(values, 0), -1))
        return None if best.min() < 0 else best
