"""Batches on several kinds of GPUs for methods that know one: the tasks are divided, each kind is planned by itself.

A task loads a kind by its least work there (slices x seconds) as a share of all slices of the kind. First each task is
where it is the least load; then those that cost least elsewhere leave the kind with the largest load, as long as that
falls. With two kinds this is the order in which the linear program divides the tasks. Afterwards the schedules count:
tasks leave the kind that ends last, fewer and fewer, until no schedule ends earlier.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, wraps

from mig_opt.batch.batch import Batch
from mig_opt.batch.schedule import Schedule, on_gpus
from mig_opt.gpu.model import GpuModel
from mig_opt.method.control import Control
from mig_opt.method.options import RunOptions

BatchMethod = Callable[[Batch, Control[Schedule]], None]

_MOST_ROUNDS = 60
"""Divisions that are planned."""
_PARTS = (1.0, 0.5, 0.25, 0.0)
"""Share of half of the difference of two kinds that is moved between them; with 0 the task alone that fits best."""
_NEVER = float("inf")


def by_kind(method: BatchMethod) -> BatchMethod:
    """Return a method for batches of any kinds of GPUs, made of one that knows one kind."""

    @wraps(method)
    def planned(batch: Batch, control: Control[Schedule]) -> None:
        if batch.gpu:
            method(batch, control)
        else:
            _Division(batch, control, method).run()

    return planned


class _Division:
    """Division of the tasks between the kinds of GPUs, and the schedule of each kind."""

    def __init__(self, batch: Batch, control: Control[Schedule], method: BatchMethod) -> None:
        self._batch, self._control, self._method = batch, control, method
        self._kinds = list(batch.kinds)
        self._load = list(zip(*(_least_loads(batch, kind) for kind in self._kinds), strict=True))  # by task and kind
        self._schedule = cache(self._made)  # once for the same tasks on a kind

    def run(self) -> None:
        """Divide, plan, and divide better until nothing is gained."""
        kind_of = self._balanced()
        best = self._planned(kind_of)
        rounds = 1
        improved = True
        while improved and rounds < _MOST_ROUNDS and not self._control.expired:
            improved = False
            for moved in self._moves(kind_of, best):
                if rounds >= _MOST_ROUNDS or self._control.expired:
                    break
                rounds += 1
                ends = self._planned(moved)
                if max(ends) < max(best):
                    kind_of, best, improved = moved, ends, True
                    break

    def _balanced(self) -> list[int]:
        """Return the kind of each task, so that the largest load of a kind is small."""
        import numpy as np

        load = np.array(self._load)
        kind_of = load.argmin(axis=1)
        loads = np.array([sum(load[kind_of == kind, kind].tolist()) for kind in range(len(self._kinds))])
        while True:
            longest = int(loads.argmax())
            here = np.flatnonzero(kind_of == longest)
            with np.errstate(over="ignore"):
                ratios = load[here] / load[here, longest, np.newaxis]
            ratios[loads + load[here] >= loads[longest]] = _NEVER
            if ratios.min(initial=_NEVER) == _NEVER:
                return list(map(int, kind_of))
            at, to = divmod(int(ratios.argmin()), len(loads))
            loads[longest] -= load[here[at], longest]
            loads[to] += load[here[at], to]
            kind_of[here[at]] = to

    def _moves(self, kind_of: Sequence[int], ends: Sequence[float]) -> list[list[int]]:
        """Return divisions in which some tasks have left the kind that ends last, those with many of them first."""
        longest = max(range(len(ends)), key=ends.__getitem__)
        found = []
        for part in _PARTS:
            for to in sorted(set(range(len(ends))) - {longest}, key=ends.__getitem__):
                room = (ends[longest] - ends[to]) / 2
                able = [task for task, at in enumerate(kind_of) if at == longest and self._load[task][to] < _NEVER]
                able.sort(key=lambda task, to=to: self._load[task][to] / self._load[task][longest])  # type: ignore[misc]
                chosen, there = set[int](), 0.0
                for task in able:
                    if there + self._load[task][to] <= room * part:
                        chosen.add(task)
                        there += self._load[task][to]
                if not part:
                    able.sort(key=lambda task, to=to, room=room: abs(self._load[task][to] - room))  # type: ignore[misc]
                    chosen = set(able[:1])
                if chosen:
                    found.append([to if task in chosen else at for task, at in enumerate(kind_of)])
        return found

    def _planned(self, kind_of: Sequence[int]) -> list[float]:
        """Plan each kind, report the schedule of all, and return when each kind ends."""
        schedules = [
            self._schedule(kind, frozenset(task for task, at in enumerate(kind_of) if at == kind))
            for kind in range(len(self._kinds))
        ]
        plans = [schedule for schedule in schedules if schedule is not None]
        if len(plans) == len(schedules):
            runs = tuple(run for plan in plans for run in plan.runs)
            operations = tuple(each for plan in plans for each in plan.operations or ())
            self._control.report_plan(Schedule(runs, tuple(sorted(operations, key=lambda each: each.begin))))
        return [_NEVER if schedule is None else schedule.makespan for schedule in schedules]

    def _made(self, kind: int, tasks: frozenset[int]) -> Schedule | None:
        """Return the schedule of some tasks on a kind; None if none was found in the time."""
        if not tasks:
            return Schedule((), ())
        control = Control[Schedule](RunOptions(**self._control.inner()))
        self._method(self._batch.of_kind(self._kinds[kind], sorted(tasks)), control)
        self._control.spend(control.clock if control.deterministic else 0.0)
        return control.plan and on_gpus(control.plan, dict(enumerate(self._batch.kinds[self._kinds[kind]])))


def _least_loads(batch: Batch, kind: GpuModel) -> list[float]:
    """Return the least work of each task on a kind as a share of its slices; infinite where it cannot run."""
    slices = len(batch.kinds[kind]) * kind.memory_slices
    profiles = kind.profiles_of(batch.profile_set)
    times = ([(profile.memory_slices, task.time_on(profile)) for profile in profiles] for task in batch.tasks)
    return [min((width * time / slices for width, time in own if time is not None), default=_NEVER) for own in times]
