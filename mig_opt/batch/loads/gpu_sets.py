"""Sets of tasks of one GPU: all that it can run within a limit, of some value at least.

On several GPUs that are alike, a schedule divides the tasks into one set for each GPU. At good dual prices hardly any
set is worth enough for that: the others cannot make up for it. Other than patterns
(:mod:`mig_opt.batch.loads.columns`) a set has each task once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mig_opt.batch.integer_batch import IntegerBatch
from mig_opt.batch.loads.branches import Branches
from mig_opt.batch.loads.layout_values import PricedTasks, open_layouts
from mig_opt.batch.loads.layouts import Layout, LayoutTree, whole_layout
from mig_opt.batch.loads.subsets import Integers
from mig_opt.batch.loads.task_sets import TaskSets
from mig_opt.gpu.geometry import members
from mig_opt.native import loop

_MAX_LAYOUTS = 30_000
"""Layouts of enough value, at most: each takes about a millisecond."""

_MOST_LAYOUTS_OF_SOME, _MAX_STEPS_OF_SOME = 600, 2**23
"""Layouts that are looked at where some of the sets will do: those that have the most. And sets and pairs of them of
one of these; the layout is left out where they are more."""

_MAX_STEPS = 2**26
"""Sets and pairs of them that are looked at for one layout, at most: some tenths of a second."""

_LAYOUTS_AT_A_TIME = 16
"""Layouts of a thread between two looks at the time and at the number of sets."""

_gpu_sets = loop("gpu_sets")


@dataclass(frozen=True, slots=True)
class GpuSets:
    """Sets of tasks that a GPU can run, each once."""

    sets: Integers  # as bits, in rising order
    values: Integers  # sums of the dual prices
    lengths: Integers  # ticks of the longest path, at least
    layouts: Integers  # a layout with which it can run the set as long as that, by index

    def at(self, rows: Integers | npt.NDArray[np.bool_]) -> GpuSets:
        """Return some of the sets."""
        return GpuSets(self.sets[rows], self.values[rows], self.lengths[rows], self.layouts[rows])

    def __len__(self) -> int:
        """Return the number of sets."""
        return len(self.sets)


def valued(found: GpuSets, tasks: PricedTasks) -> GpuSets:
    """Return sets with their values at the prices of the tasks."""
    values = np.zeros(len(found), np.int64)
    for task, price in enumerate(tasks.prices.tolist()):
        values += (found.sets >> task & 1) * price
    return replace(found, values=values)


class GpuSetListing:
    """Listing of the sets of one GPU of a batch on which nothing is live; at most ``most``, repetitions included."""

    def __init__(self, batch: IntegerBatch, branches: Branches, most: int) -> None:
        self._branches, self._most = branches, most
        self._part = batch.part(range(len(batch.batch.tasks)), batch.gpus[:1])
        self._all_used = not batch.operations_take_no_time and branches.tell_all
        self._whole = whole_layout(branches) if batch.operations_take_no_time else None
        self.layouts: list[Layout] = []
        self._known: dict[Layout, npt.NDArray[np.int64]] = {}

    def sets(
        self,
        tasks: PricedTasks,
        needed: int,
        most_steps: int,
        workers: int,
        expired: Callable[[], bool],
        enough: int | None = None,
    ) -> GpuSets | None:
        """List the sets of some value at least within the limit of the tasks.

        Returned is None if they or their layouts are too many, if it takes more than ``most_steps`` sets and pairs of
        sets that are looked at, or if the time is up. With ``enough`` only about that number is listed, of layouts
        that have many: :attr:`covered` is the share of these.
        """
        self._tasks, self._most_steps, self._steps_left = tasks, most_steps, most_steps
        if self._whole is not None:
            self.layouts = [self._whole]
        else:
            found = open_layouts(self._branches, tasks, needed, _MAX_LAYOUTS)
            if found is None or expired():
                return None
            self.layouts = [entry.layout for entry in found]
            if enough is not None:
                del self.layouts[_MOST_LAYOUTS_OF_SOME:]
        parts: list[tuple[Integers, ...]] = [(np.zeros(0, np.int64),) * 4]
        self._enough, self._count, self._looked = enough, 0, 0
        work = functools.partial(self._some, needed=needed, expired=expired)
        starts = list(range(0, len(self.layouts), _LAYOUTS_AT_A_TIME))
        with ThreadPoolExecutor(workers) as pool:
            while starts and self._count <= (enough or self._most) and not expired():
                now, starts = starts[: 4 * workers], starts[4 * workers :]
                for some in pool.map(work, now):
                    if some is None:
                        return None
                    parts += some
        if (starts and enough is None) or expired():
            return None
        listed = GpuSets(*map(np.concatenate, zip(*parts, strict=True)))
        listed = listed.at(np.lexsort([listed.lengths, listed.sets]))
        return listed.at(np.unique(listed.sets, return_index=True)[1])

    @property
    def steps(self) -> int:
        """Number of sets and pairs of sets that were looked at for the last listing."""
        return self._most_steps - self._steps_left

    @property
    def covered(self) -> float:
        """Share of the layouts that were looked at for the last listing."""
        return self._looked / max(1, len(self.layouts))

    def _some(self, start: int, needed: int, expired: Callable[[], bool]) -> list[tuple[Integers, ...]] | None:
        """List the sets of some of the layouts; None if all are wanted and they are too many or the time is up."""
        found, tasks, most_steps = [], self._tasks, _MAX_STEPS if self._enough is None else _MAX_STEPS_OF_SOME
        sets, values, lengths = (np.empty(self._most, np.int64) for _ in range(3))
        steps, empty = np.zeros(2, np.int64), int(not self._all_used)
        for at in range(start, min(start + _LAYOUTS_AT_A_TIME, len(self.layouts))):
            limits = (tasks.grain, tasks.at_most, needed, empty, min(self._steps_left, most_steps), tasks.raised_by)
            if self._enough is not None and self._count > self._enough:
                break
            left = self._steps_left > 0 and not expired()
            count = -1
            if left:
                self._looked += 1
                rows = self._rows(at)
                count = _gpu_sets(rows, tasks.ticks, tasks.prices, limits, sets, values, lengths, steps)
            self._steps_left -= int(steps.sum())
            if count < 0 and self._enough is None:
                return None
            self._count += max(0, count)
            if count > 0:
                some = [each[:count].copy() for each in (sets, values, lengths)]
                found.append((*some, np.full(count, at)))
        return found

    def _rows(self, at: int) -> npt.NDArray[np.int64]:
        """Return the nodes of the tree of a layout."""
        layout = self.layouts[at]
        if layout not in self._known:
            self._known[layout] = LayoutTree(self._part, self._branches, [layout]).rows()
        return self._known[layout]

    def places(self, tasks: int, layout: int) -> list[tuple[int, int]]:
        """Return each task of a set that was listed with a layout, and its place on the first GPU."""
        value = sum(int(self._tasks.prices[task]) for task in members(tasks))
        tree = LayoutTree(self._part, self._branches, [self.layouts[layout]])
        listed = TaskSets(
            tree, self._tasks._replace(raised_by=0), self._most, may_be_empty=not self._all_used, needed=value
        )
        listed.fill(lambda: False)
        choice = next(listed.assignments_of(tasks))
        return [(task, place) for place, own in choice for task in members(own)]
