"""Proofs for several GPUs that are alike: all sets of tasks that one GPU can run, and how they partition the tasks.

Within a limit of time close to the bound, good dual prices leave few sets of tasks for one GPU, each with every task
once at most (:mod:`mig_opt.batch.loads.gpu_sets`). A schedule within the limit partitions the tasks into such sets. The
linear program of that partition, over sets that are all known, mostly rules the limit out: it is much tighter than one
whose patterns may repeat tasks. If not, its dual prices leave so few sets that every partition can be looked at, and
each of its sets is scheduled on one GPU by the exact method.

The limit begins close to the bound and grows, since the work does as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from mig_opt.batch.batch import Batch
from mig_opt.batch.loads.columns import grain_of
from mig_opt.batch.loads.gpu_sets import GpuSetListing, GpuSets
from mig_opt.batch.loads.layout_values import PricedTasks, priced_tasks
from mig_opt.batch.loads.layouts import MAX_LAYOUTS, number_of_layouts
from mig_opt.batch.loads.subsets import NEVER, Integers, Reals
from mig_opt.batch.loads.task_sets import MAX_TASKS_OF_SETS
from mig_opt.batch.schedule import Schedule, on_gpus
from mig_opt.method.control import Control
from mig_opt.method.options import RunOptions
from mig_opt.models.batch.block_search import BlockSearch, M
from mig_opt.models.batch.dual_price_bound import DualPrices
from mig_opt.models.solvers.covering import CoveringProgram

Solve = Callable[[Batch, Control[Schedule]], None]
"""Exact method for one GPU: it reports to the control."""

_GRAINS = 2_500
"""Grains of a schedule, at most: finer ones leave as few sets, and take longer."""

_MAX_SETS = 2**21
"""Sets that are listed, at most, repetitions included."""

_MAX_STEPS_FOR_PRICES, _MAX_STEPS = 2**26, 2**28
"""Sets and pairs of them that are looked at for the next dual prices, and for all sets that are needed, at most."""

_MAX_CHOICES = 3 * 10**8
"""Sets that are looked at in search of a partition, at most."""

_FIRST_STEP, _GROWTH, _SHRINKING, _LEAST_STEP = 8, 2, 4, 300
"""The limit grows by this part of the gap at first; factor of each further step; divisor after a step that was too
long; and the part of the gap that a step is at least."""

_SAME_PRICES = 0.001
"""Sum of the differences of dual prices, relative to their sum, that is too small to matter."""

_FIRST_LACK, _FEW_SETS = 0.001, 100
"""Share of the mean value that sets may lack, at first, and then twice as much each time, until there are as many for
each task."""

_CAUTION, _FORGETTING = 0.5, 0.9
"""Least weight of the last dual prices in the next ones, against those of the linear program; and the factor by which a
greater one falls again."""

_NEW_SETS = 60
"""Sets that are added to the linear program at a time."""

_GPU_SECONDS = 5.0
"""Seconds for the exact method on one GPU, at most."""

_STEPS_PER_SECOND, _SECONDS_PER_LAYOUT = 4e8, 1e-3
"""Sets and pairs of them that a thread looks at; seconds for the tables of a layout."""


def prove_by_set_partition(
    search: BlockSearch[M], prices: DualPrices, solve: Solve, share: float = 1.0, effort: int = 1
) -> None:
    """Prove the best schedule of a search on several GPUs optimal, or find better ones, or at least raise the bound.

    ``solve`` is an exact method for the batch of one GPU. With a greater ``effort`` a step takes as many times longer.
    """
    tasks = len(search.problem.batch.tasks)
    if tasks > MAX_TASKS_OF_SETS or number_of_layouts(prices.branches) > MAX_LAYOUTS:
        return
    _SetPartition(search, prices, solve, search.control.end_of(share), effort).run()


class _TooMuchError(Exception):
    """There are too many sets, or partitions, or no time is left."""


class _SetPartition:
    """Proof with limits of time that grow."""

    def __init__(self, search: BlockSearch[M], prices: DualPrices, solve: Solve, end: float, effort: int) -> None:
        self._search, self._branches, self._prices = search, prices.branches, prices.prices
        self._solve, self._end, self._effort = solve, end, effort
        self._gpus = len(search.problem.gpus)
        self._lack, self._caution = _FIRST_LACK, _CAUTION
        self._alone: dict[int, _OneGpu] = {}  # the sets that were scheduled, by their bits

    @property
    def _expired(self) -> bool:
        return self._search.control.left_until(self._end) <= 0

    def run(self) -> None:
        """Raise the limit until nothing is open, or a step is too long."""
        search = self._search
        step, failed = max(1, (search.upper - search.lower) // _FIRST_STEP), search.upper
        while search.open and not self._expired and search.lower < min(failed, search.upper):
            upper, at_most = search.upper, min(search.lower + step, failed, search.upper) - 1
            try:
                ruled_out = self._ruled_out(at_most)
            except _TooMuchError:
                ruled_out = False
            if ruled_out:
                search.raise_lower(min(at_most + 1, search.upper))
                step *= _GROWTH
            elif search.upper == upper:
                failed, step = at_most, max(1, (at_most - search.lower) // _SHRINKING)
                if step < (search.upper - search.lower) // _LEAST_STEP:
                    return

    def _ruled_out(self, at_most: int) -> bool:
        """Return True if no schedule is within some ticks; if there is one, it is reported."""
        problem = self._search.problem
        grain = grain_of(self._branches, at_most, _GRAINS)
        tasks = priced_tasks(problem, self._branches, self._prices, at_most, grain)
        if not (tasks.ticks < NEVER).any(axis=0).all():
            return True
        listing, program = GpuSetListing(problem, self._branches, _MAX_SETS), SetProgram(len(tasks.prices), self._gpus)
        priced = self._priced(listing, program, tasks)
        best = None if priced is None else self._list(listing, priced, self._mean(priced))
        if priced is None or best is None or not len(best):
            return True
        # If the best sets are known, so is what the others need.
        needed = priced.value - (self._gpus - 1) * int(best.values.max())
        found = self._list(listing, priced, needed, _MAX_STEPS)
        program.add(found.sets)
        while len(found):
            prices, _ = program.prices(self._prices, found.sets)
            found = _needed(found, priced.at_prices(prices), self._gpus)
            partition = _partition(found.sets, self._gpus, (1 << len(prices)) - 1, lambda: self._expired)
            if not partition:
                break
            refuted = self._schedule(listing, found, partition, at_most)
            if refuted is None:
                return False
            found = _without(found, refuted)
        return True

    def _priced(self, listing: GpuSetListing, program: SetProgram, tasks: PricedTasks) -> PricedTasks | None:
        """Look for dual prices at which the best sets are worth as little as possible; return None if no set is left.

        Of each partition one set has at least the mean value: if there is none, the limit is ruled out.
        """
        lack, wanted = self._lack, self._prices
        while True:
            tasks = tasks.at_prices(wanted)
            mean = self._mean(tasks)
            try:
                best = self._list(listing, tasks, int(mean * (1 - lack)))
            except _TooMuchError:
                if lack and len(program):
                    lack = 0.0
                    continue
                if self._expired or lack or np.abs(wanted - self._prices).sum() < _SAME_PRICES:
                    raise
                # Dual prices of few sets may be far off.
                self._caution = (1 + self._caution) / 2
                wanted = 0.5 * (self._prices + wanted)
                continue
            self._prices, self._caution = wanted, max(_CAUTION, _FORGETTING * self._caution)
            if not len(best) or best.values.max() < mean:
                return None
            known = len(program)
            program.add(best.sets)
            if lack and len(program) < _FEW_SETS * len(tasks.prices):
                # With some more sets the dual prices are better.
                lack *= 2
                continue
            self._lack, lack = max(lack / 2, _FIRST_LACK) if lack else self._lack, 0.0
            prices, bound = program.prices(tasks.prices / tasks.value)
            # What rounding makes of the same prices and sets again is left to the list of all that is needed.
            same = len(program) == known and np.abs(prices / prices.sum() - self._prices).sum() < _SAME_PRICES
            if same or bound <= self._gpus:
                self._prices = prices / prices.sum()
                return tasks.at_prices(prices)
            wanted = self._caution * self._prices + (1 - self._caution) * prices / prices.sum()

    def _mean(self, tasks: PricedTasks) -> int:
        """Return the value that one set of a partition has at least."""
        return -(-tasks.value // self._gpus)

    def _list(
        self, listing: GpuSetListing, tasks: PricedTasks, needed: int, most_steps: int = _MAX_STEPS_FOR_PRICES
    ) -> GpuSets:
        """List the sets that a GPU can run, of some value at least."""
        if needed <= 0:
            raise _TooMuchError
        control = self._search.control
        found = listing.sets(tasks, needed, self._effort * most_steps, control.workers, lambda: self._expired)
        control.spend(listing.steps / _STEPS_PER_SECOND + _SECONDS_PER_LAYOUT * len(listing.layouts))
        if found is None:
            raise _TooMuchError
        return found

    def _schedule(self, listing: GpuSetListing, found: GpuSets, partition: tuple[int, ...], at_most: int) -> int | None:
        """Schedule each set of a partition on a GPU.

        Return a set that no schedule within some ticks has, or None if there is none: then the schedule is reported.
        """
        search, problem = self._search, self._search.problem
        schedules: list[Schedule] = []
        for tasks in partition:
            alone = self._alone.get(tasks)
            if alone is None:
                layout = int(found.layouts[np.searchsorted(found.sets, tasks)])
                alone = self._alone[tasks] = _OneGpu(search, dict(listing.places(tasks, layout)))
            if alone.ticks > at_most and not alone.tried:
                alone.solve(self._solve)
            if alone.lower > at_most:
                return tasks
            schedules.append(alone.schedule)
        moved = [on_gpus(one, {0: gpu}) for gpu, one in zip(problem.gpus, schedules, strict=True)]
        runs = tuple(run for one in moved for run in one.runs)
        operations = tuple(each for one in moved for each in one.operations or ())
        search.control.report_plan(Schedule(runs, operations))
        return None


class SetProgram:
    """Linear program of the partition of all tasks into sets that are known."""

    def __init__(self, tasks: int, gpus: int) -> None:
        self._gpus, self._sets = gpus, np.zeros(0, np.int64)
        self._contents = np.zeros((0, tasks), np.float32)
        self._program = CoveringProgram(tasks)

    def __len__(self) -> int:
        """Return the number of sets."""
        return len(self._sets)

    def add(self, sets: Integers) -> None:
        """Let a partition have more sets."""
        new = np.setdiff1d(sets, self._sets)
        self._sets = np.concatenate([self._sets, new])
        contents = ((new[:, np.newaxis] >> np.arange(self._contents.shape[1])) & 1).astype(np.float32)
        self._contents = np.concatenate([self._contents, contents])

    def prices(self, start: Reals, among: Integers | None = None) -> tuple[Reals, float]:
        """Return dual prices and the number of GPUs that they ask for: more than there are, if that is possible."""
        rows = slice(None) if among is None else np.isin(self._sets, among)
        sets, contents = self._sets[rows], self._contents[rows]
        prices = best = start
        highest, cautious = 0.0, True
        while True:
            values = contents @ prices.astype(np.float32)
            bound = float(prices.sum() / values.max())
            if bound > highest:
                best, highest = prices / float(values.max()), bound
            if bound > self._gpus * (1 + 1e-4):
                break
            some = np.argpartition(-values, min(_NEW_SETS, len(values)) - 1)[:_NEW_SETS]
            new = self._program.add(
                {int(sets[at]): dict.fromkeys(np.nonzero(contents[at])[0].tolist(), 1) for at in some}
            )
            if self._program.solve() is None or not (new or cautious):
                break
            cautious = new
            prices = 0.5 * (best + self._program.dual_prices) if new else self._program.dual_prices
        return best, highest


def _needed(found: GpuSets, tasks: PricedTasks, gpus: int) -> GpuSets:
    """Return the sets that a partition may have at some prices, in whole numbers."""
    values = np.zeros(len(found), np.int64)
    for task, price in enumerate(tasks.prices.tolist()):
        values += (found.sets >> task & 1) * price
    left = np.ones(len(found), np.bool_)
    while left.any():
        highest = int(values[left].max())
        further = left & (values >= tasks.value - (gpus - 1) * highest) & (gpus * highest >= tasks.value)
        if further.sum() == left.sum():
            break
        left = further
    return GpuSets(found.sets[left], values[left], found.layouts[left])


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


def _without(found: GpuSets, tasks: int) -> GpuSets:
    kept = found.sets != tasks
    return GpuSets(found.sets[kept], found.values[kept], found.layouts[kept])


def _partition(
    sets: Integers, count: int, everything: int, expired: Callable[[], bool] = lambda: False
) -> tuple[int, ...]:
    """Return a partition of all tasks into some of the sets; an empty one if there is none.

    A depth-first search: the lowest task that is left is in one of the next sets.
    """
    looked_at = 0
    known = frozenset(sets.tolist())

    def parts(left: int, among: Integers, number: int) -> Iterator[tuple[int, ...]]:
        nonlocal looked_at
        if number == 1:
            if left in known:
                yield (left,)
            return
        for one in among[among & (left & -left) != 0].tolist():
            rest = among[among & one == 0]
            looked_at += 1 + len(rest)
            if looked_at > _MAX_CHOICES or (number == count and expired()):
                raise _TooMuchError
            for others in parts(left ^ one, rest, number - 1):
                yield (one, *others)

    return next(parts(everything, sets, count), ())
