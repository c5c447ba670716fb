"""The method ``brute-force``: every way to run a handful of tasks, as a check on cleverer methods.

A schedule on one GPU is determined by the order of its operations and the tasks that each instance runs: everything
then happens as early as it can. The search tries every order, with any number of re-creations, and every split of the
tasks. It shares no bound, no dominance rule and no symmetry with the other methods; it only gives up a branch that is
as long as the best schedule already. GPUs do not wait for each other, so each split of the tasks over the GPUs is
solved GPU by GPU.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from mig_opt.batch.batch import Batch, Task
from mig_opt.batch.integer_batch import Ticks
from mig_opt.batch.schedule import OperationKind, Schedule
from mig_opt.batch.timing import PlannedInstance, live_instances, timed_schedule
from mig_opt.gpu.model import Placement
from mig_opt.method.control import Control

_SECONDS_PER_STEP = 1e-5
"""Seconds to look at a partial schedule."""

Operations = tuple[tuple[OperationKind, int], ...]


def brute_force(batch: Batch, control: Control[Schedule]) -> None:
    """Try every schedule of ``batch``: more than four tasks take long on a small GPU, more than three on a large one.

    If the time ends first, the best schedule until then counts, without a bound.
    """
    best = inf
    for split in itertools.product(range(batch.gpus), repeat=len(batch.tasks)):
        instances: list[PlannedInstance] = []
        operations: list[tuple[OperationKind, int]] = []
        longest = 0.0
        for gpu in range(batch.gpus):
            tasks = tuple(task for task, at in zip(batch.tasks, split, strict=True) if at == gpu)
            search = _GpuSearch(batch, gpu, control, best)
            offset = len(instances)
            for _ in search.run(tasks):
                if gpu == batch.gpus - 1:  # the others have their plans: whatever is found now completes a schedule
                    plan = [*operations, *((kind, index + offset) for kind, index in search.operations)]
                    control.report_plan(timed_schedule(batch, [*instances, *search.instances], plan))
            if not search.found:
                break
            instances += search.instances
            operations += [(kind, index + offset) for kind, index in search.operations]
            longest = max(longest, search.makespan)
        else:
            best = longest
        if control.expired:
            return
    ticks = Ticks.of(batch)
    # Not the incumbent, which may come from elsewhere: what has been tried proves no more than this.
    control.raise_bound(ticks.seconds_below(ticks.nearest(best) if ticks.exact else ticks.floor(best) - 1))


@dataclass(frozen=True, slots=True)
class _State:
    """Partial schedule of one GPU."""

    left: tuple[Task, ...]  # tasks that have no instance yet
    live: tuple[tuple[int, float], ...]  # the instances that exist, by index, and the seconds at which they become free
    clear: tuple[float, ...]  # for each memory slice the end of the last destruction there
    driver: float  # end of the last operation
    makespan: float  # last end of a run
    # the decisions
    instances: tuple[PlannedInstance, ...]
    operations: Operations = ()


class _GpuSearch:
    """Search for the shortest schedule of some tasks on one GPU, if it is shorter than ``limit`` seconds."""

    def __init__(self, batch: Batch, gpu: int, control: Control[Schedule], limit: float) -> None:
        self._batch = batch
        self._gpu = gpu
        self._control = control
        self._placements = batch.placements(gpu)
        self.makespan = limit
        self.found = False
        self.instances: Sequence[PlannedInstance] = ()
        self.operations: Operations = ()

    def run(self, tasks: tuple[Task, ...]) -> Iterator[None]:
        """Try everything; yield whenever a better schedule has been left in the attributes."""
        live = [instance for instance in live_instances(self._batch) if instance.gpu == self._gpu]
        clear = (0.0,) * self._batch.kind(self._gpu).memory_slices
        for start in self._fill_live(_State(tasks, (), clear, 0.0, 0.0, ()), live):
            yield from self._extend(start)

    def _fill_live(self, state: _State, live: Sequence[PlannedInstance]) -> Iterator[_State]:
        """Yield every choice of tasks for the instances that exist at the start; they may run nothing."""
        if not live:
            yield state
            return
        first, *others = live
        for chosen in [(), *self._choices(state.left, first.placement)]:
            filled = self._run(state, replace(first, tasks=list(chosen)), ready=first.free or 0.0)
            yield from self._fill_live(filled, others)

    def _extend(self, start: _State) -> Iterator[None]:
        """Try every way to go on from ``start``, depth first; not by recursion, which Python limits."""
        branches = [iter((start,))]
        while branches:
            state = next(branches[-1], None)
            if state is None:
                branches.pop()
                continue
            self._control.spend(_SECONDS_PER_STEP)
            if self._control.expired:
                return
            if state.makespan >= self.makespan:
                continue
            if state.left:
                branches.append(self._followers(state))
            else:
                self.makespan, self.instances, self.operations = state.makespan, state.instances, state.operations
                self.found = True
                yield

    def _followers(self, state: _State) -> Iterator[_State]:
        """Yield the states after one operation more."""
        for index, free in state.live:
            yield self._destroy(state, index, free)
        for placement in self._placements:
            if any(placement.conflicts(state.instances[index].placement) for index, _ in state.live):
                continue
            for chosen in self._choices(state.left, placement):
                yield self._create(state, placement, chosen)

    def _choices(self, left: tuple[Task, ...], placement: Placement) -> Iterator[tuple[Task, ...]]:
        """Yield the non-empty sets of tasks that can run at ``placement``."""
        able = [task for task in left if task.time_on(placement.profile) is not None]
        for count in range(1, len(able) + 1):
            for chosen in itertools.combinations(able, count):
                if self._control.expired:
                    return
                yield chosen

    def _create(self, state: _State, placement: Placement, chosen: tuple[Task, ...]) -> _State:
        ready = max(state.clear[position] for position in placement.footprint)
        created, end = self._operate(state, "create", len(state.instances), placement, ready)
        return self._run(created, PlannedInstance(self._gpu, placement, list(chosen)), ready=end)

    def _destroy(self, state: _State, index: int, free: float) -> _State:
        placement = state.instances[index].placement
        destroyed, end = self._operate(state, "destroy", index, placement, free)
        return replace(
            destroyed,
            live=tuple(entry for entry in state.live if entry[0] != index),
            clear=tuple(end if at in placement.footprint else time for at, time in enumerate(state.clear)),
        )

    def _operate(
        self, state: _State, kind: OperationKind, index: int, placement: Placement, ready: float
    ) -> tuple[_State, float]:
        """Return the state after an operation, and its end."""
        begin = ready if self._batch.parallel_operations else max(ready, state.driver)
        end = begin + self._batch.operations.of(kind, placement.profile)
        return replace(state, driver=max(state.driver, end), operations=(*state.operations, (kind, index))), end

    def _run(self, state: _State, instance: PlannedInstance, *, ready: float) -> _State:
        """Return the state with one more instance, which runs its tasks."""
        end = ready
        for task in instance.tasks:
            end += task.seconds(instance.placement.profile)
        return replace(
            state,
            left=tuple(task for task in state.left if task not in instance.tasks),
            live=(*state.live, (len(state.instances), end)),
            makespan=max(state.makespan, end) if instance.tasks else state.makespan,
            instances=(*state.instances, instance),
        )
