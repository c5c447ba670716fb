"""Bound from tasks with prices: if all of them are worth more than the GPUs can run within a time, it is too short.

Whatever the prices, that holds; so a certificate has just the prices, and whoever checks it computes again what one GPU
can run at most. On every memory slice the instances that cover it take their times one after the other: each that is
used one creation, its tasks and, unless it is the last one there, its destruction. Dynamic programming finds the tasks
of most value from the innermost placements outward, as :mod:`mig_opt.batch.loads.columns` does; but this is another
program, which shares nothing with that one, in numpy and whole numbers. It allows for a little more: a task may run in
several placements, and destructions count as the least one of all instances around.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mig_opt.batch.batch import Batch
from mig_opt.batch.certificate import PricedWork
from mig_opt.batch.integer_batch import Ticks
from mig_opt.batch.schedule import Schedule
from mig_opt.errors import InputError, Problem
from mig_opt.gpu.model import GpuModel, Placement
from mig_opt.rules.decimals import as_fraction

MOST_TASKS = 250
"""Number of tasks above which whole ones fill a slice nearly as well as divided ones, so that no prices are sought."""

_MOST_GRAINS = 100_000  # parts into which a makespan is divided at most: times are rounded down to whole ones
_LARGEST_PRICE = 10**6  # the price of the dearest task

Values = npt.NDArray[np.int64]
"""Most value within each number of grains."""


def priced_work_value(batch: Batch, prices: Sequence[int], most: float) -> Fraction:
    """Return the seconds that no schedule of a batch falls below at these prices, exactly.

    Parameters
    ----------
    batch : Batch
        Its GPUs start empty.
    prices : sequence of int
        One for each task.
    most : float
        Seconds of a makespan; the bound says nothing of schedules that are longer.

    Returns
    -------
    Fraction
        The bound, at most about ``most``.

    Raises
    ------
    InputError
        If there is not a price >= 0 for each task, all are 0, or instances are live at the start.
    """
    if len(prices) != len(batch.tasks) or min(prices) < 0 or not 0 < max(prices) <= _LARGEST_PRICE:
        raise InputError([Problem("prices", f"must be {len(batch.tasks)} whole numbers from 0 to 10^6, not all 0")])
    if batch.initial or not 0 < most < math.inf:
        raise InputError([Problem("prices", "make a bound for GPUs that start empty, up to a makespan that is finite")])
    tick = Ticks.of(batch).length
    grain = tick * max(1, -(-as_fraction(most) // (tick * _MOST_GRAINS)))
    size = int(as_fraction(most) // grain) + 1
    tables = ((len(gpus), _Tables(batch, kind, prices, grain, size)) for kind, gpus in batch.kinds.items())
    values = (gpus * of_one.beside(None)[1][1] for gpus, of_one in tables)
    too_much = sum(values, start=np.zeros(size, np.int64)) < sum(prices)
    return grain * (len(too_much) if too_much.all() else int(too_much.argmin()))


class _Tables:
    """The most value that one GPU of a kind can run within each number of grains."""

    def __init__(self, batch: Batch, kind: GpuModel, prices: Sequence[int], grain: Fraction, size: int) -> None:
        self._batch, self._prices, self._grain, self._size = batch, prices, grain, size
        placements = kind.placements(batch.profile_set)
        self._inside: dict[Placement | None, list[Placement]] = {None: []}
        self._destroy: dict[Placement, float] = {}
        for index, placement in enumerate(placements):
            around = [one for one in placements[:index] if set(placement.footprint) <= set(one.footprint)]
            outer = min(reversed(around), key=lambda one: len(one.footprint), default=None)
            own = batch.operations.of("destroy", placement.profile)
            # The last destruction on a slice is no part of the makespan. If none costs more than one around it,
            # that is the outermost one; and whatever the costs are, lower ones make a lower bound.
            self._destroy[placement] = own if outer is None else min(own, self._destroy[outer])
            self._inside[placement] = []
            self._inside[outer].append(placement)
        self._known: dict[object, tuple[Values, Values]] = {}

    def beside(self, outer: Placement | None) -> tuple[tuple[object, ...], tuple[Values, Values]]:
        """Return what is alike for placements with the same insides, and the most value inside of one, or of a GPU.

        First with all destructions, then without the last one on each slice.
        """
        found = [self._of(placement) for placement in self._inside[outer]]
        zero = np.zeros(self._size, np.int64)
        values = (sum((value[kind] for _, value in found), start=zero) for kind in (0, 1))
        return tuple(key for key, _ in found), (next(values), next(values))

    def _of(self, placement: Placement) -> tuple[object, tuple[Values, Values]]:
        """Return the same for a placement with all that is inside of it."""
        inner_keys, (all_inside, spared_inside) = self.beside(placement)
        key = placement.profile.name, self._destroy[placement], inner_keys
        if key not in self._known:
            operations, profile = self._batch.operations, placement.profile
            table = all_inside.copy()
            for task, price in zip(self._batch.tasks, self._prices, strict=True):
                seconds = task.time_on(profile)
                grains = self._size if seconds is None else self._grains(seconds)
                if price and grains < self._size:  # the task runs or not, in all of the time that is left
                    np.maximum(table[grains:], table[: self._size - grains] + price, out=table[grains:])
            create, destroy = self._grains(operations.of("create", profile)), self._grains(self._destroy[placement])
            every, spared = self._later(table, create + destroy), self._later(table, create)
            self._known[key] = np.maximum(all_inside, every), np.maximum(spared_inside, spared)
        return key, self._known[key]

    def _grains(self, seconds: float) -> int:
        return int(as_fraction(seconds) // self._grain)

    def _later(self, table: Values, grains: int) -> Values:
        """Return a table that begins later."""
        late = np.zeros_like(table)
        if grains < self._size:
            late[grains:] = table[: self._size - grains]
        return late


def priced_work_of(batch: Batch, schedule: Schedule, seconds: float) -> PricedWork | None:
    """Return the bound with the best prices that column generation finds within some seconds.

    None if it has none: instances are live at the start, or there are too many tasks.
    """
    if batch.initial or len(batch.tasks) > MOST_TASKS or schedule.makespan <= 0:
        return None
    from mig_opt.method.control import Control
    from mig_opt.method.options import RunOptions
    from mig_opt.models.batch.dual_price_bound import DualPriceBound, has_dual_price_bound
    from mig_opt.models.batch.portfolio import CpSearch

    control = Control[Schedule](RunOptions(time_limit=seconds))
    control.report_plan(schedule)
    search = CpSearch(batch, control)
    if not search.open or not has_dual_price_bound(search.problem):
        return None
    end = time.perf_counter() + seconds
    bound = DualPriceBound(search)
    while bound.possible and time.perf_counter() < end and bound.round():
        pass
    if not bound.possible:  # some task takes as long wherever it runs, which needs no prices
        return None
    found = bound.found().prices
    prices = tuple(int(price) for price in np.rint(found / found.max() * _LARGEST_PRICE))
    return PricedWork(prices, str(priced_work_value(batch, prices, schedule.makespan)))
