"""Sets of tasks of one GPU: all that it can run within a limit, of some value at least.

On several GPUs that are alike, a schedule divides the tasks into one set for each GPU. At good dual prices hardly any
set is worth enough for that: the others cannot make up for it. Other than patterns
(:mod:`mig_opt.batch.loads.columns`) a set has each task once. Where some sets will do, lists are thinned: a beam search
(Lowerre, 1976) in each branch of a layout.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.branches import Branches
from mig_opt.batch.loads.layout_values import PricedTasks, open_layouts
from mig_opt.batch.loads.layouts import Layout, LayoutTree, whole_layout
from mig_opt.batch.loads.subsets import Integers, contents, rows_of_sets
from mig_opt.batch.loads.task_sets import TaskSets, rows_of_shortest
from mig_opt.gpu.geometry import members
from mig_opt.native import loop

MAX_TASKS_OF_GPU_SETS = 127
"""Number of tasks above which a set does not fit into two words."""

_MAX_LAYOUTS = 30_000
"""Layouts of enough value, at most: each takes about a millisecond."""

_MAX_STEPS = 2**26
"""Sets and pairs of them that are looked at for one layout, at most: some tenths of a second."""

_NO_LIMIT = 2**62
"""More than the value of all tasks."""

_LAYOUTS_AT_A_TIME = 8
"""Layouts of a thread at a time."""

_SETS_AT_A_TIME = 4096
"""Sets whose tasks are told apart at a time, which keeps the memory small."""

_gpu_sets = loop("gpu_sets")


@dataclass(frozen=True, slots=True)
class GpuSets:
    """Sets of tasks that a GPU can run, each once."""

    sets: Integers  # as rows of words, in rising order
    values: Integers  # sums of the dual prices
    lengths: Integers  # ticks of the longest path, at least
    layouts: Integers  # a layout with which it can run the set as long as that, by index

    def at(self, rows: Integers | npt.NDArray[np.bool_]) -> GpuSets:
        """Return some of the sets."""
        return GpuSets(self.sets[rows], self.values[rows], self.lengths[rows], self.layouts[rows])

    def __len__(self) -> int:
        """Return the number of sets."""
        return len(self.sets)


class Thinning(NamedTuple):
    """Numbers of sets that are listed, where some will do."""

    of_branch: int  # of a branch of the layout: those that can have the most value with all else
    of_layout: int  # of the layout, drawn; up to twice as many
    highest: int = _NO_LIMIT  # value of a set, at most


_ALL = Thinning(0, 0)  # no thinning


def valued(found: GpuSets, tasks: PricedTasks) -> GpuSets:
    """Return sets with their values at the prices of the tasks."""
    prices, parts = tasks.prices.astype(np.int64), range(0, len(found), _SETS_AT_A_TIME)
    values = [contents(found.sets[at : at + _SETS_AT_A_TIME], len(prices)) @ prices for at in parts]
    return replace(found, values=np.concatenate([np.zeros(0, np.int64), *values]))


class GpuSetListing:
    """Listing of the sets of one GPU of a batch on which nothing is live; at most ``most``, repetitions included."""

    def __init__(self, batch: IntegerBatch, branches: Branches, most: int) -> None:
        self._branches, self._most = branches, most
        self._no_sets = rows_of_sets((), len(batch.batch.tasks))
        self._part = batch.part(range(len(batch.batch.tasks)), batch.gpus[:1])
        self._all_used = not batch.operations_take_no_time and branches.tell_all
        self._whole = whole_layout(branches) if batch.operations_take_no_time else None
        self.layouts: list[Layout] = []
        self._known: dict[Layout, npt.NDArray[np.int64]] = {}
        self._most_steps = self._steps_left = 0

    def sets(
        self, tasks: PricedTasks, needed: int, most_steps: int, workers: int, expired: Callable[[], bool]
    ) -> GpuSets | None:
        """List the sets of some value at least within the limit of the tasks.

        Returned is None if they or their layouts are too many, if it takes more than ``most_steps`` sets and pairs of
        sets that are looked at, or if the time is up.
        """
        found = open_layouts(self._branches, tasks, needed, _MAX_LAYOUTS) if self._whole is None else []
        if found is None or expired():
            return None
        return self._list(tasks, [entry.layout for entry in found], needed, most_steps, workers, expired, _ALL)

    def some(
        self,
        tasks: PricedTasks,
        layouts: Sequence[Layout],
        needed: int,
        workers: int,
        expired: Callable[[], bool],
        thinning: Thinning,
    ) -> GpuSets | None:
        """List some sets of these layouts, of some value at least, the first ones first; None if the time is up."""
        return self._list(tasks, layouts, needed, _NO_LIMIT, workers, expired, thinning)

    def _list(
        self,
        tasks: PricedTasks,
        layouts: Sequence[Layout],
        needed: int,
        most_steps: int,
        workers: int,
        expired: Callable[[], bool],
        thinning: Thinning,
    ) -> GpuSets | None:
        self.layouts = list(layouts) if self._whole is None else [self._whole]
        self._tasks, self._most_steps, self._steps_left, self._count = tasks, most_steps, most_steps, 0
        parts: list[tuple[Integers, ...]] = [(self._no_sets, *(np.zeros(0, np.int64),) * 3)]
        work = functools.partial(self._some, needed=needed, expired=expired, thinning=thinning)
        with ThreadPoolExecutor(workers) as pool:
            for some in pool.map(work, range(0, len(self.layouts), _LAYOUTS_AT_A_TIME)):
                if some is None:
                    return None
                parts += some
        listed = GpuSets(*map(np.concatenate, zip(*parts, strict=True)))
        return listed.at(rows_of_shortest(listed.sets, listed.lengths))

    @property
    def steps(self) -> int:
        """Number of sets and pairs of sets that were looked at for the last listing."""
        return self._most_steps - self._steps_left

    def _some(
        self, start: int, needed: int, expired: Callable[[], bool], thinning: Thinning
    ) -> list[tuple[Integers, ...]] | None:
        """List the sets of some of the layouts; None if they are too many or the time is up."""
        found, tasks = [], self._tasks
        most, most_steps = (self._most, _MAX_STEPS) if thinning is _ALL else (2 * thinning.of_layout, _NO_LIMIT)
        sets = np.empty((most, self._no_sets.shape[1]), np.int64)
        values, lengths = np.empty(most, np.int64), np.empty(most, np.int64)
        steps, empty = np.zeros(2, np.int64), int(not self._all_used)
        for at in range(start, min(start + _LAYOUTS_AT_A_TIME, len(self.layouts))):
            steps_left, full = min(self._steps_left, most_steps), self._count > self._most
            if steps_left <= 0 or (full and thinning is _ALL) or expired():
                return None
            if full:
                break
            of = thinning.highest, thinning.of_branch, thinning.of_layout
            limits = (tasks.grain, tasks.at_most, needed, empty, steps_left, tasks.raised_by, *of)
            count = _gpu_sets(self._rows(at), tasks.ticks, tasks.prices, limits, sets, values, lengths, steps)
            self._steps_left -= int(steps.sum())
            if count < 0:
                return None
            self._count += count
            found.append((*(each[:count].copy() for each in (sets, values, lengths)), np.full(count, at)))
        return found

    def _rows(self, at: int) -> npt.NDArray[np.int64]:
        """Return the nodes of the tree of a layout."""
        layout = self.layouts[at]
        if layout not in self._known:
            self._known[layout] = LayoutTree(self._part, self._branches, [layout]).rows()
        return self._known[layout]

    def places(self, tasks: int, layout: int) -> dict[int, int]:
        """Return the place on the first GPU of each task of a set that was listed with a layout."""
        tree, own = LayoutTree(self._part, self._branches, [self.layouts[layout]]), list(members(tasks))
        # With no limit this cannot be too much; at least the way in which the set was listed is there.
        listed = TaskSets(tree, self._tasks.only(own), _NO_LIMIT, may_be_empty=not self._all_used)
        listed.fill(lambda: False)
        return dict(zip(own, next(listed.assignments()), strict=True))
