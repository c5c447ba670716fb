"""Proofs for several GPUs that are alike: all sets of tasks that one GPU can run, and how they partition the tasks.

Within a limit of time close to the bound, good dual prices leave few sets of tasks for one GPU, each with every task
once at most (:mod:`mig_opt.batch.loads.gpu_sets`). A schedule within the limit partitions the tasks into such sets. The
linear program of that partition, over sets that are all known, mostly rules the limit out: it is much tighter than one
whose patterns may repeat tasks. If not, its dual prices leave so few sets that every partition can be looked at, and
each of its sets is scheduled on one GPU by the exact method.

The limit begins close to the bound and grows, since the work does as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Generic

import numpy as np
import numpy.typing as npt

from mig_opt.batch.batch import Batch
from mig_opt.batch.loads.gpu_sets import GpuSetListing, GpuSets, valued
from mig_opt.batch.loads.layout_values import PricedTasks
from mig_opt.batch.loads.partitions import partition_of_sets
from mig_opt.batch.loads.subsets import keys, rows_of_sets
from mig_opt.batch.schedule import Schedule, on_gpus
from mig_opt.method.control import Control
from mig_opt.method.options import RunOptions
from mig_opt.models.batch.block_search import BlockSearch, M
from mig_opt.models.batch.dual_price_bound import DualPrices
from mig_opt.models.batch.even_sets import EvenSets
from mig_opt.models.batch.set_prices import SetBound, TooMuchError

Solve = Callable[[Batch, Control[Schedule]], None]
"""Exact method for one GPU: it reports to the control."""

_MAX_WORDS, _WORDS_PER_SECOND = 2**32, 8e8
"""Words of 64 sets that are looked at in search of a partition, at most; and by a thread in a second."""

_EVEN_EFFORT = 0.1
"""Effort of the search for a partition into sets of about the mean value."""

_LEAST_FIRSTS = 64
"""Sets that begin a partition, and are tried in search of a schedule: one alone begins too many on eight GPUs."""

_MOST_IN_VAIN = 3
"""Partitions whose schedules are no shorter, until other sets are listed."""

_GPU_SECONDS = 5.0
"""Seconds for the exact method on one GPU, at most."""


class SetPartition(Generic[M]):
    """The bound of the sets, and where no dual prices rule a limit out, all partitions.

    ``solve`` is an exact method for the batch of one GPU.
    """

    def __init__(self, search: BlockSearch[M], start: DualPrices, solve: Solve) -> None:
        self._search, self._gpus, self._solve = search, len(search.problem.gpus), solve
        self._end = 0.0
        workers = search.control.workers
        self._bound = SetBound(search, start, workers, expired=self._expired, part=8, remaining=self._none_within)
        self._even: EvenSets[M] | None = None
        self._alone: dict[int, _OneGpu] = {}  # the sets that were scheduled, by their bits

    def prove(self, share: float = 1.0, effort: int = 1) -> None:
        """Prove the best schedule of the search optimal, or find better ones, or at least raise the bound.

        With a greater ``effort`` a step takes as many times longer.
        """
        self._end = self._search.control.end_of(share)
        self._bound.restart(effort)
        while self._bound.round():
            pass

    def look_for_schedules(self, effort: int = 1, *, patient: bool = True) -> None:
        """Look for partitions into sets of about the mean value, and schedule each of them.

        It goes on until schedules as long as the best one are looked for, or without patience until there is none once.
        With a greater ``effort`` lists are as many times longer.
        """
        search, goes_on, some = self._search, True, False
        self._end = search.control.end_of(1.0)
        if self._even is None:
            self._even = EvenSets(search, self._bound.found(), search.control.workers, expired=self._expired)
        self._even.restart(effort)
        with suppress(TooMuchError):
            while goes_on:
                listed, before = self._even.next_sets(), search.upper
                with suppress(TooMuchError):
                    self._look_through(self._even.listing, *listed, _EVEN_EFFORT * effort)
                shorter = search.upper < before
                goes_on = self._even.found(schedules=shorter) and (patient or shorter or not some)
                some |= shorter

    def _look_through(self, listing: GpuSetListing, found: GpuSets, tasks: PricedTasks, effort: float) -> None:
        """Schedule partitions into some of the sets, until one is shorter than the best schedule."""
        begin, at_most = 0, self._search.upper - 1
        for _ in range(_MOST_IN_VAIN):
            late = [one for one, alone in self._alone.items() if alone.ticks > at_most]
            found = found.at((found.lengths <= at_most) & ~self._rows(found, late))
            if self._expired() or not len(found):
                return
            parts, begin = self._partition(found, tasks, effort, begin, _LEAST_FIRSTS)
            if not parts:
                return
            self._schedule(listing, found, parts, at_most)
            if self._search.upper <= at_most:
                return

    def _rows(self, found: GpuSets, sets: Iterable[int]) -> npt.NDArray[np.bool_]:
        """Return which of the listed sets are some of these."""
        tasks = len(self._search.problem.batch.tasks)
        rows: npt.NDArray[np.bool_] = np.isin(keys(found.sets), keys(rows_of_sets(sets, tasks)))
        return rows

    def _expired(self) -> bool:
        return self._search.control.left_until(self._end) <= 0

    def _none_within(self, tasks: PricedTasks, highest: int) -> bool:
        """Look at all partitions: return True if no schedule is within the limit; if there is one, it is reported."""
        # The others have to make up for a set that is worth less than the best one.
        at_most, needed = tasks.at_most, tasks.value - (self._gpus - 1) * highest
        found = self._bound.sets(tasks, needed, self._bound.effort)
        self._bound.program.add(found.sets, at_most)
        while not self._expired():
            # Once there is a schedule, a shorter one has some of the same sets.
            at_most = min(at_most, self._search.upper - 1)
            late = [one for one, alone in self._alone.items() if alone.lower > at_most]
            found = found.at((found.lengths <= at_most) & ~self._rows(found, late))
            if not len(found):
                return True
            prices, _ = self._bound.program.prices(self._bound.prices, among=found.sets)
            tasks = tasks.at_prices(prices)
            found = _needed(found, tasks, self._gpus)
            partition, _ = self._partition(found, tasks, self._bound.effort)
            if not partition:
                return True
            if not self._schedule(self._bound.listing, found, partition, at_most):
                break
        return False

    def _partition(
        self, found: GpuSets, tasks: PricedTasks, effort: float, begin: int = 0, least_firsts: int = 1
    ) -> tuple[tuple[int, ...], int]:
        """Return a partition of all tasks into some of the sets, an empty one if there is none; and where it was."""
        control = self._search.control
        # In a deterministic run the clock stands still meanwhile.
        rate = control.workers * _WORDS_PER_SECOND
        most = int(min(effort * _MAX_WORDS, 1 + control.left_until(self._end) * rate))
        workers, expired = control.workers, self._expired
        parts, steps, at = partition_of_sets(
            found, tasks, self._gpus, most, workers, expired, begin, max(1, most // least_firsts)
        )
        control.spend(steps / rate)
        if parts is None:
            raise TooMuchError
        return parts, at

    def _schedule(self, listing: GpuSetListing, found: GpuSets, partition: tuple[int, ...], at_most: int) -> bool:
        """Schedule each set of a partition on a GPU, until one is known to take more than some ticks.

        If none does, the schedule is reported. Returns False if neither is known.
        """
        search, problem = self._search, self._search.problem
        schedules: list[Schedule] = []
        for tasks in partition:
            alone = self._alone.get(tasks)
            if alone is None:
                layout = int(found.layouts[self._rows(found, [tasks])][0])
                alone = self._alone[tasks] = _OneGpu(search, listing.places(tasks, layout))
            if alone.ticks > at_most and not alone.tried:
                alone.solve(self._solve)
            if alone.lower > at_most:
                return True
            schedules.append(alone.schedule)
        moved = [on_gpus(one, {0: gpu}) for gpu, one in zip(problem.gpus, schedules, strict=True)]
        runs = tuple(run for one in moved for run in one.runs)
        operations = tuple(each for one in moved for each in one.operations or ())
        search.control.report_plan(Schedule(runs, operations))
        return search.upper <= at_most


def _needed(found: GpuSets, tasks: PricedTasks, gpus: int) -> GpuSets:
    """Return the sets that a partition may have at some prices, in whole numbers."""
    found, left = valued(found, tasks), np.ones(len(found), np.bool_)
    values = found.values
    while left.any():
        highest = int(values[left].max())
        further = left & (values >= tasks.value - (gpus - 1) * highest) & (gpus * highest >= tasks.value)
        if further.sum() == left.sum():
            break
        left = further
    return found.at(left)


class _OneGpu:
    """Schedule of some tasks on one GPU."""

    def __init__(self, search: BlockSearch[M], places: dict[int, int]) -> None:
        self._search, problem = search, search.problem
        self.tried = False
        tasks, gpu = sorted(places), problem.gpus[0]
        # The batch can have other kinds of GPUs, on which nothing ends in time. What is live on these GPUs is in
        # nobody's way, but its slices cannot be used.
        initial = tuple(replace(live, gpu=0) for live in problem.batch.initial if live.gpu == gpu)
        own = problem.batch.of_kind(problem.batch.kind(gpu), tasks)
        self._batch = own.replace(gpus=1, initial=initial)
        self.schedule = on_gpus(problem.part(tasks, [gpu]).nested([places[task] for task in tasks]), {gpu: 0})
        self.lower = 0  # ticks that every schedule takes

    @property
    def ticks(self) -> int:
        """Ticks that the schedule takes."""
        return self._search.problem.ticks.of_model(self.schedule.makespan)

    def solve(self, solve: Solve) -> None:
        """Look for the best schedule."""
        self.tried = True
        limits = self._search.control.inner(most=_GPU_SECONDS)
        control = Control[Schedule](RunOptions(**limits))
        control.report_plan(self.schedule)
        solve(self._batch, control)
        assert control.plan is not None
        self.schedule = control.plan
        self._search.control.spend(control.clock)
        ticks = self._search.problem.ticks
        # Every schedule takes at least as many ticks as cannot be told from the bound.
        self.lower = ticks.floor(control.lower_bound) if ticks.exact else 0
        if ticks.exact and ticks.seconds_below(self.lower + 1) <= control.lower_bound:
            self.lower += 1
