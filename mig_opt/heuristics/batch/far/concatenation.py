"""FAR for several batches: each is planned by itself, and joined to what is planned already (paper, Section 4)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Literal, TypeVar, get_args

from mig_opt.batch.batch import Batch, Task
from mig_opt.batch.schedule import Operation, Run, Schedule
from mig_opt.batch.timing import PlannedInstance, tidy
from mig_opt.gpu.model import Location, Placement
from mig_opt.heuristics.batch.far import best_published
from mig_opt.heuristics.batch.far.refinement import Refinement
from mig_opt.method.control import Control

Join = Literal["trivial", "reversed", "moved"]
"""Manner in which a batch is joined to those before.

``trivial``: it begins when the last task before it has ended, on empty GPUs. ``reversed``: it may overlap with those
before; it is planned with small instances first where that ends earlier, so that they follow the small instances with
which the batch before ends, and instances that fit are reused. ``moved``: moreover its tasks are moved and swapped so
that it fits better.
"""
JOINS: tuple[Join, ...] = get_args(Join)

_MAX_TASKS_BOTH_WAYS = 200
"""Tasks up to which both directions of a batch are moved and swapped; with more they differ little."""

_Event = TypeVar("_Event", Run, Operation)


@dataclass(frozen=True, slots=True)
class EndState:
    """State in which schedules leave the GPUs when their last task has ended."""

    # the instances that exist then, each with the second at which it becomes free
    live: Mapping[Location, float] = field(default_factory=dict)
    # for each GPU the second at which its last operation ends
    driver_free: Mapping[int, float] = field(default_factory=dict)
    # for memory slices on which something was destroyed, the second of the last time
    clear: Mapping[tuple[int, int], float] = field(default_factory=dict)
    makespan: float = 0.0  # the last end of a task in seconds

    @classmethod
    def at_start_of(cls, batch: Batch) -> EndState:
        """Return the state in which a batch begins."""
        return cls({(live.gpu, live.profile, live.start): live.free for live in batch.initial})

    def after(self, batch: Batch, schedule: Schedule) -> EndState:
        """Return the state after a schedule with operations that begins in this state."""
        live, driver_free, clear = dict(self.live), dict(self.driver_free), dict(self.clear)
        for operation in sorted(schedule.operations or (), key=lambda operation: operation.begin):
            where = operation.gpu, operation.profile, operation.start
            driver_free[operation.gpu] = max(driver_free.get(operation.gpu, 0.0), operation.end)
            if operation.kind == "create":
                live[where] = operation.end
            else:
                del live[where]
                for position in batch.placement(operation).footprint:
                    clear[operation.gpu, position] = operation.end
        for run in schedule.runs:
            where = run.gpu, run.profile, run.start
            # Where a run was on an earlier instance at this place, that was gone before the present one was created.
            if run.end > live.get(where, run.end):
                live[where] = run.end
        return EndState(live, driver_free, clear, max(self.makespan, schedule.makespan))

    def of_gpus(self, gpus: Sequence[int]) -> EndState:
        """Return the state of some GPUs, which are numbered from 0 in it."""
        number = {gpu: at for at, gpu in enumerate(gpus)}
        return EndState(
            {(number[gpu], profile, start): free for (gpu, profile, start), free in self.live.items() if gpu in number},
            {number[gpu]: free for gpu, free in self.driver_free.items() if gpu in number},
            {(number[gpu], position): clear for (gpu, position), clear in self.clear.items() if gpu in number},
            self.makespan,
        )


def joined(
    batch: Batch, plan: Schedule, state: EndState, join: Join, control: Control[Schedule] | None = None
) -> Schedule:
    """Return a schedule for a batch that begins in ``state``, made from its plan (with operations) for empty GPUs.

    The batch's own initial state does not count. The schedule does not end later than the trivial one, whatever
    ``join`` says. ``control`` limits the moves and swaps.
    """
    cleaning = _cleaning(batch, state)
    offset = max([state.makespan, *state.live.values(), *state.driver_free.values(), *(each.end for each in cleaning)])
    if join != "trivial":
        best = arranged(batch, plan, state, moved=join == "moved", control=control)
        if best.makespan <= offset + plan.makespan:
            return best.schedule()
    return shifted(plan, offset, before=cleaning)


def far_behind(batch: Batch, state: EndState, control: Control[Schedule]) -> list[Schedule]:
    """Return schedules for empty GPUs that may fit behind another one, to be joined like any others.

    They are that of the authors' program; the same, refined once more with the slices that are busy in ``state``
    (:meth:`mig_opt.heuristics.batch.far.published.PublishedPlan.refine`); and the same with the steps that the program
    takes when it joins batches (:meth:`mig_opt.heuristics.batch.far.published.PublishedPlan.refine_behind`).
    """
    plan = best_published(batch, control)

    def over() -> bool:
        return control.expired

    plan.refine(over=over)
    live = {
        (gpu, position): free
        for (gpu, profile, start), free in state.live.items()
        for position in batch.kind(gpu).placement(profile, start).footprint
    }
    plans = [plan, plan.copy(), plan.copy()]
    plans[1].refine(live, over)
    plans[2].refine_behind({**state.clear, **live}, over)
    return [Refinement(batch, each.instances()).schedule() for each in plans]


def arranged(
    batch: Batch, plan: Schedule, state: EndState, *, moved: bool, control: Control[Schedule] | None = None
) -> Refinement:
    """Return the plan's assignment at its place behind ``state``, in the direction that ends first.

    With ``moved`` the tasks of both directions are moved and swapped before; of large batches only those of the
    direction that ends first.
    """
    limits = control or Control[Schedule]()
    found = [_arranged(batch, plan, state, backward) for backward in (True, False)]
    found.sort(key=lambda refinement: refinement.makespan)
    if len(batch.tasks) > _MAX_TASKS_BOTH_WAYS:
        del found[1:]
    for refinement in found if moved else ():
        # Slices that all end with the batch's largest instance leave no margins, but their idle time is there before.
        refinement.run(limits, reading="slacks")
        refinement.run(limits, reading="slacks", several=True)
        refinement.run(limits, several=True)
    return min(found, key=lambda refinement: refinement.makespan)


def _cleaning(batch: Batch, state: EndState) -> list[Operation]:
    """Return operations that destroy everything, each as soon as it is free and the driver gets round to it."""
    driver = dict(state.driver_free)
    operations = []
    there = (entry for entry in state.live.items() if batch.has_mig(entry[0][0]))  # a whole GPU without MIG stays
    for (gpu, profile, start), free in sorted(there, key=lambda entry: entry[1]):
        begin = max(free, 0.0 if batch.parallel_operations else driver.get(gpu, 0.0))
        end = begin + batch.operations.of("destroy", batch.kind(gpu).profile(profile))
        driver[gpu] = end
        operations.append(Operation("destroy", gpu, profile, start, begin, end))
    return operations


def shifted(schedule: Schedule, seconds: float, before: Iterable[Operation] = ()) -> Schedule:
    """Return a schedule with operations that begins some seconds later, after some more operations."""

    def later(event: _Event) -> _Event:
        return replace(event, begin=tidy(event.begin + seconds), end=tidy(event.end + seconds))

    return Schedule(tuple(map(later, schedule.runs)), (*before, *map(later, schedule.operations or ())))


def _arranged(batch: Batch, plan: Schedule, state: EndState, backward: bool) -> Refinement:
    """Return the plan's assignment at its place behind ``state``, inner instances first if ``backward``."""
    by_name = {task.name: task for task in batch.tasks}
    tasks: dict[int, dict[Placement, list[Task]]] = defaultdict(lambda: defaultdict(list))
    for run in plan.runs:
        tasks[run.gpu][batch.placement(run)].append(by_name[run.task])
    live: dict[int, list[PlannedInstance]] = defaultdict(list)
    for (gpu, profile, start), free in state.live.items():
        live[gpu].append(PlannedInstance(gpu, batch.kind(gpu).placement(profile, start), free=free))
    # GPUs are alike: the longest work goes to the one that is free first.
    length = {gpu: max((run.end for run in plan.runs if run.gpu == gpu), default=0.0) for gpu in range(batch.gpus)}
    free_at = {gpu: max((one.free or 0.0 for one in live[gpu]), default=0.0) for gpu in range(batch.gpus)}
    longest, first = sorted(length, key=lambda gpu: -length[gpu]), sorted(free_at, key=free_at.__getitem__)
    instances = (
        _instances(batch, new, tasks[old], live[new], backward) for old, new in zip(longest, first, strict=True)
    )
    driver_free = {} if batch.parallel_operations else state.driver_free
    return Refinement(batch, [*chain.from_iterable(instances)], driver_free=driver_free, clear=state.clear)


def _instances(
    batch: Batch,
    gpu: int,
    tasks: Mapping[Placement, list[Task]],
    live: Sequence[PlannedInstance],
    backward: bool,
) -> list[PlannedInstance]:
    """Return the live instances of a GPU, then one on every placement, each with its tasks; reused ones take theirs."""
    known = {placement.shape for placement in batch.placements()}
    placements = [*batch.placements(), *(placement for placement in tasks if placement.shape not in known)]
    placements.sort(key=lambda placement: (-placement.profile.memory_slices, -placement.profile.compute_slices))
    assigned = {placement.shape: own for placement, own in tasks.items()}
    found = {instance.placement.shape: instance for instance in live}
    created: list[PlannedInstance] = []
    for placement in reversed(placements) if backward else placements:
        own = list(assigned.get(placement.shape, ()))
        first = not any(instance.tasks and instance.placement.conflicts(placement) for instance in created)
        if own and first and placement.shape in found:
            found[placement.shape].tasks, own = own, []
        created.append(PlannedInstance(gpu, placement, own))
    return [*live, *created]
