"""Assignments of tasks to the stacks of a layout, decided by dividing tasks among stacks that are alike.

Close to the bound nearly every task has one size of instance that is not too expensive
(:mod:`mig_opt.models.batch.layout_relaxation`). So the *choices*, in which of these each task runs, are few. For each
of them the loads of stacks that are like no other are known, and with that how much room the others have. Among these,
tasks are divided to the tick (:mod:`mig_opt.batch.loads.division`). Instances that have room for a few tasks only
decide that mostly: if no sets fill them, no schedule has that choice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mig_opt.batch.loads.division import Division, joined
from mig_opt.batch.loads.subsets import Integers

_MAX_CHOICES, _MAX_PAIRS = 2**16, 2**18
"""Choices for half of the tasks, and pairs of these, at which they are not looked at."""

_MAX_UNDECIDED = 10
"""Choices that may have assignments though none was found, after which no more are looked at."""


class _Choices(NamedTuple):
    """Choices of groups for some tasks."""

    groups: Integers  # of each task, shape (choices, tasks)
    costs: Integers  # in all, shape (choices,)
    loads: Integers  # of each group, shape (choices, groups)


class LayoutLoads(NamedTuple):
    """Loads of the stacks of a layout, and what they cost."""

    ticks: Integers  # of each task in each stack, shape (tasks, stacks); a limit of time excludes where it cannot run
    costs: Integers  # what a task there adds to the weighted sum of the paths, shape (tasks, stacks)
    cover: npt.NDArray[np.bool_]  # true where a path goes through a stack, shape (paths, stacks)
    operations: Integers  # ticks of each path without tasks
    weights: Integers  # of the paths

    def assignment(self, at_most: int, spare: int, divide: Callable[..., Division]) -> Division:
        """Assign each task to a stack so that no path takes more than ``at_most`` ticks.

        Costs are at most ``spare`` more than the least ones of all tasks: the weighted room of the paths. Like stacks
        have their tasks by ``divide``, of whose parameters the ticks of tasks and the room of stacks are left.
        """
        groups = self._groups()
        if groups is None:
            return Division(None, complete=False)
        choices = self._choices(groups, at_most, spare)
        if choices is None:
            return Division(None, complete=False)
        undecided = 0
        for choice in choices:
            found = self._divided(groups, choice, at_most, divide)
            undecided += not found.complete
            if found.instances is not None or undecided >= _MAX_UNDECIDED:
                return found._replace(complete=found.instances is not None)
        return Division(None, complete=not undecided)

    def _choices(self, groups: Sequence[Sequence[int]], at_most: int, spare: int) -> Integers | None:
        """Return the group of each task in all choices whose loads have room, shape (choices, tasks).

        Returned is None if they are too many.
        """
        costs = self.costs - self.costs.min(axis=1, keepdims=True)
        costs = np.where(self.ticks <= at_most, costs, spare + 1)
        costs = np.column_stack([costs[:, group].min(axis=1) for group in groups])
        ways = (costs <= spare).sum(axis=1)
        tasks = np.argsort(ways, kind="stable")
        if not ways.all():
            return np.zeros((0, len(tasks)), np.int64)
        one, two = (self._choices_of(tasks[begin::2], groups, costs, spare) for begin in (0, 1))
        if one is None or two is None:
            return None
        through = np.column_stack([self.cover[:, group].any(axis=1) for group in groups]).astype(np.int64)
        alone = np.array([len(group) == 1 for group in groups])
        free = at_most - self.operations
        # Where a path has single stacks only, its load is known, and fills it nearly.
        known, least, most = np.zeros(len(groups), np.int64), 0, 0
        for path in np.nonzero(~through[:, ~alone].any(axis=1) & (self.weights > 0))[0].tolist()[:1]:
            known, least, most = through[path], int(free[path] - spare // self.weights[path]), int(free[path])
        first, second, complete = joined(one.loads @ known, two.loads @ known, least, most, _MAX_PAIRS)
        if not complete:
            return None
        loads = one.loads[first] + two.loads[second]
        room = free - loads[:, alone] @ through[:, alone].T  # shape (choices, paths)
        possible = (room >= 0).all(axis=1) & (one.costs[first] + two.costs[second] <= spare)
        for at in np.nonzero(~alone)[0]:
            possible &= room @ through[:, at] >= loads[:, at]
        choices = np.empty((int(possible.sum()), len(tasks)), np.int64)
        choices[:, tasks[::2]], choices[:, tasks[1::2]] = one.groups[first[possible]], two.groups[second[possible]]
        return choices

    def _choices_of(
        self, tasks: Integers, groups: Sequence[Sequence[int]], costs: Integers, spare: int
    ) -> _Choices | None:
        """Return all choices of some of the tasks; None if they are too many."""
        known = _Choices(np.zeros((1, 0), np.int64), np.zeros(1, np.int64), np.zeros((1, len(groups)), np.int64))
        for task in tasks.tolist():
            parts = []
            for at in np.nonzero(costs[task] <= spare)[0].tolist():
                rows = known.costs + costs[task, at] <= spare
                loads = known.loads[rows]
                loads[:, at] += self.ticks[task, groups[at][0]]
                chosen = np.insert(known.groups[rows], known.groups.shape[1], at, axis=1)
                parts.append(_Choices(chosen, known.costs[rows] + costs[task, at], loads))
            if sum(len(part.costs) for part in parts) > _MAX_CHOICES:
                return None
            known = _Choices(*(np.concatenate(some) for some in zip(*parts, strict=True)))
        return known

    def _groups(self) -> list[list[int]] | None:
        """Return stacks together that are alike and on one path each, the others alone; None if two share a path."""
        alone = self.cover.sum(axis=0) == 1
        alike: defaultdict[object, list[int]] = defaultdict(list)
        for stack in range(self.cover.shape[1]):
            alike[self.ticks[:, stack].tobytes() if alone[stack] else stack].append(stack)
        several = [stack for group in alike.values() if len(group) > 1 for stack in group]
        return None if (self.cover[:, several].sum(axis=1) > 1).any() else list(alike.values())

    def _divided(
        self, groups: Sequence[Sequence[int]], choice: Integers, at_most: int, divide: Callable[..., Division]
    ) -> Division:
        """Divide each group of tasks among its stacks."""
        stacks, complete = np.array([group[0] for group in groups])[choice], True
        own = self.ticks[np.arange(len(choice)), stacks]
        loads = np.zeros(self.cover.shape[1], np.int64)
        for at, group in enumerate(groups):
            if len(group) == 1:
                loads[group] = own[choice == at].sum()
        free = at_most - self.operations - self.cover @ loads
        for at, group in enumerate(groups):
            if len(group) > 1:
                members = np.nonzero(choice == at)[0]
                room = [int(free[self.cover[:, stack]][0]) for stack in group]
                found = divide(own[members].tolist(), room)
                if found.instances is None and found.complete:
                    return found
                complete &= found.complete
                stacks[members] = np.array(group)[found.instances or [0] * len(members)]
        return Division(stacks.tolist() if complete else None, complete)
