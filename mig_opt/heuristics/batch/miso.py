"""The method ``miso-opt``: partition after partition, each the best one for the tasks that come next.

The optimizer of B. Li et al., "MISO: Exploiting Multi-Instance GPU Capability on Multi-Tenant GPU Clusters", SoCC 2022,
as J. Villarrubia et al. turn it into a scheduler for a batch (JPDC 204, 2025, doi:10.1016/j.jpdc.2025.105128, Section
6.5).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from mig_opt.batch.batch import Batch, Task
from mig_opt.batch.schedule import Schedule
from mig_opt.gpu.model import GpuModel, Placement, Profile, ProfileSet
from mig_opt.heuristics.batch.kinds import by_kind
from mig_opt.heuristics.batch.list_schedule import ScheduleBuilder
from mig_opt.method.control import Control

_SECONDS_PER_PARTITION = 8e-5
"""Seconds to choose a partition."""

_TIE_FACTOR = 1 + 1e-9
"""Sums of speedups that differ by less are equal, but for rounding."""


@by_kind
def miso_opt(batch: Batch, control: Control[Schedule]) -> None:
    """Choose a partition for the next tasks again and again, and report the schedule.

    The next partition P, and which of its instances takes which of the next ``|P|`` tasks, maximise the sum of the
    speedups of these tasks; durations play no part. Its instances follow what is on their slices, each as soon as that
    has ended, and an instance of the same shape is kept. With several GPUs the partition is for the one on which
    everything before ends first. There is one schedule, so limits come into effect only after it.
    """
    choices = PartitionChoices(batch.kind(0), batch.profile_set)
    speedups = [speedups_of(task, choices.profiles) for task in batch.tasks]
    builder = ScheduleBuilder(batch)
    ends = [max((live.free for live in batch.initial if live.gpu == gpu), default=0.0) for gpu in range(batch.gpus)]
    first = 0
    while first < len(batch.tasks):
        control.spend(_SECONDS_PER_PARTITION)
        chosen = choices.best(speedups[first : first + choices.most])
        gpu = ends.index(min(ends))
        for task, placement in zip(batch.tasks[first : first + len(chosen)], chosen, strict=True):
            ends[gpu] = max(ends[gpu], builder.put(task, gpu, placement))
        first += len(chosen)
    control.report_plan(builder.schedule())


def speedups_of(task: Task, profiles: Sequence[Profile]) -> list[float | None]:
    """Return how much faster a task is on each profile than on one slice, None where it cannot run.

    If its time on one slice is not known, the time on the smallest size that is known counts as many times as that
    has slices.
    """
    smallest = min(task.times)
    reference = smallest * task.times[smallest]
    return [None if (seconds := task.time_on(profile)) is None else reference / seconds for profile in profiles]


class PartitionChoices:
    """The partitions of a GPU, and the best one for given tasks."""

    def __init__(self, gpu: GpuModel, profile_set: ProfileSet) -> None:
        base = gpu.profiles_of("base")
        # Double-memory profiles last: they are taken for what they are needed for, not for an equal sum.
        # the profiles, in the order in which speedups are given
        self.profiles = tuple(sorted(gpu.profiles_of(profile_set), key=lambda profile: profile not in base))
        partitions = gpu.maximal_partitions(profile_set)
        self.most = max(map(len, partitions))  # instances of the partition that has most
        index = {profile: at for at, profile in enumerate(self.profiles)}
        numbers: dict[tuple[int, ...], int] = {}
        # By the number of a state, which is some instances of a partition, whatever their places: profiles that can be
        # added and the states with them; for each profile where its instances are in the first partition with them all.
        self._placements: list[dict[int, list[Placement]]] = []
        for partition in partitions:
            places: dict[int, list[Placement]] = {}
            for placement in partition:
                places.setdefault(index[placement.profile], []).append(placement)
            most = (len(places.get(profile, ())) for profile in range(len(self.profiles)))
            for counts in itertools.product(*(range(count + 1) for count in most)):
                if counts not in numbers:
                    numbers[counts] = len(self._placements)
                    self._placements.append(places)
        self._moves = [list[tuple[int, int]]() for _ in numbers]
        for counts, number in numbers.items():
            for profile in range(len(self.profiles)):
                more = tuple(count + (at == profile) for at, count in enumerate(counts))
                if more in numbers:
                    self._moves[number].append((profile, numbers[more]))
        self._empty = numbers[(0,) * len(self.profiles)]

    def best(self, speedups: Sequence[Sequence[float | None]]) -> list[Placement]:
        """Return the placements for the next tasks, one for each from the first on, of the largest sum of speedups.

        As speedups are positive, they form a maximal partition - unless the tasks are at an end, or the next one cannot
        run on what is left of it. Of equal sums the one of fewer tasks is taken. A speedup is None where a task cannot
        run.
        """
        values = {self._empty: 0.0}
        came: dict[int, tuple[int, int]] = {}
        top, end = -1.0, self._empty  # the least speedups may be 0 as numbers
        for row in speedups:
            reached: dict[int, float] = {}
            for state, value in values.items():
                for profile, more in self._moves[state]:
                    speedup = row[profile]
                    if speedup is not None and value + speedup > reached.get(more, -1.0) * _TIE_FACTOR:
                        reached[more] = value + speedup
                        came[more] = state, profile
            for state, value in reached.items():
                if value > top * _TIE_FACTOR:
                    top, end = value, state
            values = reached
        profiles: list[int] = []
        state = end
        while state != self._empty:
            state, profile = came[state]
            profiles.append(profile)
        free = {profile: iter(places) for profile, places in self._placements[end].items()}
        return [next(free[profile]) for profile in reversed(profiles)]
