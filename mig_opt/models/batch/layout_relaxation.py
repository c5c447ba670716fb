"""Relaxation of a layout: which placements it leaves to each task, and a bound with whole tasks and divided loads.

*Divided tasks.* A linear program gives the paths of the layout the weights with which divided tasks tell most. Rounded
to whole numbers, they give a bound that needs no trust in the solver, and rule out each placement of a task that costs
too much more than its best one (fixing by reduced costs).

*Divided loads.* Close to the bound that leaves one size of instance to nearly all tasks. In a second program only the
others choose, in whole numbers. Tasks that may run in the same placements are a group, whose load is divided among
these at will. Of a hundred tasks a dozen have a choice left, so CP-SAT needs some hundredths of a second, and the bound
is mostly that of whole tasks: loads of a hundred tasks can be divided to the tick.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from ortools.sat.python import cp_model

from mig_opt.batch.loads.layouts import LayoutTree
from mig_opt.batch.loads.subsets import NEVER
from mig_opt.method.control import Limits
from mig_opt.models.solvers.backend import Request
from mig_opt.models.solvers.cpsat import run
from mig_opt.models.solvers.longest_path import path_weights

_HIGHEST = 2**60
"""Weighted ticks of all tasks and operations, at most."""

_FINEST = 2**32
"""Sum of the weights in whole numbers, at most."""


class LayoutRelaxation:
    """Relaxation of one layout.

    Parameters
    ----------
    tree : LayoutTree
        The layout.
    ticks : array of shape (tasks, places)
        Ticks of each task in each place of the batch; NEVER where it cannot run.
    all_used : bool
        True if schedules that use only some of the placements belong to another layout.
    """

    def __init__(self, tree: LayoutTree, ticks: npt.NDArray[np.int32], *, all_used: bool) -> None:
        paths = tree.paths()
        self._places = [node.place for node in tree.nodes if node.kind == "stack"]
        self._profiles = [node.profile for node in tree.nodes if node.kind == "stack"]
        self._all_used = all_used
        self._ticks = ticks[:, self._places].astype(np.int64)
        self._cover = np.array([[place in through for place in self._places] for _, through in paths], np.bool_)
        self._operations = np.array([own for own, _ in paths], np.int64)
        possible = self._ticks < NEVER
        weights = path_weights(self._ticks, possible, self._cover, self._operations)
        if weights is None:
            weights = np.full(len(paths), 1 / len(paths))
        longest = int(self._ticks[possible].max(initial=1)) * len(ticks) + int(self._operations.max(initial=0))
        self._weights = np.rint(weights * max(1, min(_FINEST, _HIGHEST // longest))).astype(np.int64)
        self._sum = max(1, int(self._weights.sum()))
        costs = self._costs()
        least = costs.min(axis=1)
        self._least = int(self._operations @ self._weights) + int(least.clip(max=_HIGHEST).sum())
        self.lower = _HIGHEST if (least >= _HIGHEST).any() else -(-self._least // self._sum)

    def _costs(self) -> npt.NDArray[np.int64]:
        """Return what each task adds to the weighted sum of the paths, shape (tasks, stacks)."""
        costs = self._ticks * (self._weights @ self._cover)
        return np.where(self._ticks < NEVER, costs, _HIGHEST)

    def left(self, at_most: int) -> list[list[int]]:
        """Return for each task the indices of its stacks in schedules within some ticks; none if there are none."""
        costs = self._costs()
        spare = at_most * self._sum - self._least
        left = (costs - costs.min(axis=1, keepdims=True) <= spare) & (self._ticks <= at_most)
        return [np.nonzero(row)[0].tolist() for row in left]

    def places_left(self, at_most: int) -> list[dict[int, int]]:
        """Return for each task its places in schedules within some ticks, and its ticks there."""
        return [
            {self._places[stack]: int(self._ticks[task, stack]) for stack in stacks}
            for task, stacks in enumerate(self.left(at_most))
        ]

    def bound(self, control: Limits, at_most: int, share: float = 1.0) -> int:
        """Return ticks that every schedule takes, with whole tasks and divided loads; at most one more than a limit.

        It takes a share of the time that is left, at most.
        """
        left = self.left(at_most)
        if not all(left):
            return at_most + 1
        model = cp_model.CpModel()
        longest = model.new_int_var(min(self.lower, at_most), at_most, "longest path")
        loads = self._divided_loads(model, left, at_most)
        if self._all_used and not self._use_all(model, left, loads):
            return at_most + 1
        for operations, row in zip(self._operations.tolist(), self._cover, strict=True):
            through = [load for stack in np.nonzero(row)[0] for load in loads[stack]]
            model.add(operations + sum(through) <= longest)
        model.minimize(longest)
        least = min(self.lower, at_most)
        # Not as for proofs: without linear programming the bounds of sums can creep up tick by tick for minutes, which
        # the deterministic time hardly counts.
        outcome = run(model, control, Request(at_least=least, share=share), workers=1)
        return at_most + 1 if outcome.infeasible else outcome.bound

    def _divided_loads(
        self, model: cp_model.CpModel, left: Sequence[Sequence[int]], at_most: int
    ) -> list[list[cp_model.LinearExprT]]:
        """Let each task choose its ticks, and each group of tasks divide their sum; return the parts in each stack."""
        groups: defaultdict[tuple[int, ...], list[tuple[int, cp_model.IntVar]]] = defaultdict(list)
        for task, stacks in enumerate(left):
            alike: defaultdict[int, list[int]] = defaultdict(list)
            for stack in stacks:
                alike[int(self._ticks[task, stack])].append(stack)
            chosen = [model.new_bool_var(f"{task} takes {ticks}") for ticks in alike]
            model.add_exactly_one(chosen)
            for (ticks, group), here in zip(alike.items(), chosen, strict=True):
                groups[tuple(group)].append((ticks, here))
        loads: list[list[cp_model.LinearExprT]] = [[] for _ in self._places]
        for among, members in groups.items():
            parts = [model.new_int_var(0, at_most, f"load of {among} in {stack}") for stack in among]
            model.add(sum(parts) == sum(ticks * here for ticks, here in members))
            for stack, part in zip(among, parts, strict=True):
                loads[stack].append(part)
        return loads

    def _use_all(
        self, model: cp_model.CpModel, left: Sequence[Sequence[int]], loads: Sequence[Sequence[cp_model.LinearExprT]]
    ) -> bool:
        """Let each stack have a task at least; return False if none can run in one of them."""
        for stack, load in enumerate(loads):
            own = [int(self._ticks[task, stack]) for task, stacks in enumerate(left) if stack in stacks]
            if not own:
                return False
            model.add(sum(load) >= min(own))
        return True
