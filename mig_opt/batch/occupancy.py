"""A schedule from the view of its instances: when each exists and what it runs."""

from __future__ import annotations

import bisect
import itertools
import math
from collections import defaultdict
from dataclasses import dataclass, field

from mig_opt.batch.batch import Batch
from mig_opt.batch.lifetimes import Where, lives_of
from mig_opt.batch.schedule import Operation, Run, Schedule


@dataclass(frozen=True, slots=True)
class Step:
    """A run, or another thing that happens to an instance, from ``begin`` to ``end`` (seconds)."""

    label: str
    begin: float
    end: float
    is_run: bool = False


@dataclass(slots=True)
class Life:
    """One instance from its creation, or the start of the batch, to its destruction, or for ever.

    Attributes
    ----------
    gpu : int
        Index of the GPU.
    profile : str
        Profile name.
    start : int
        Start slice.
    free : float or None
        For an instance that exists when the batch starts: the second at which it becomes free.
    create, destroy : Operation or None
        The operations, where there are any.
    runs : list of Run
        What it runs, in order.
    """

    gpu: int
    profile: str
    start: int
    free: float | None = None
    create: Operation | None = None
    destroy: Operation | None = None
    runs: list[Run] = field(default_factory=list)

    @property
    def begin(self) -> float:
        """Seconds at which it begins to occupy its slices."""
        if self.free is not None:
            return 0.0
        return self.create.begin if self.create else self.runs[0].begin

    @property
    def last(self) -> float:
        """Seconds at which nothing happens to it any more."""
        if self.destroy:
            return self.destroy.end
        return max([run.end for run in self.runs], default=self.create.end if self.create else self.free or 0.0)

    @property
    def steps(self) -> list[Step]:
        """What happens to it, in order."""
        steps = [] if self.free is None else [Step("(exists)", 0.0, self.free)]
        if self.create:
            steps.append(Step("(create)", self.create.begin, self.create.end))
        steps += [Step(run.task, run.begin, run.end, is_run=True) for run in self.runs]
        if self.destroy:
            steps.append(Step("(destroy)", self.destroy.begin, self.destroy.end))
        return steps

    def __str__(self) -> str:
        return f"{self.profile}@{self.start}"


def lives_with_runs(batch: Batch, schedule: Schedule) -> list[Life]:
    """Return the instances of a valid schedule by GPU, begin and start slice."""
    operations = schedule.operations or ()
    lives: dict[Where, list[Life]] = defaultdict(list)
    for known in lives_of(batch.initial, operations)[0]:
        create = None if known.created is None else operations[known.created]
        destroy = None if known.destroyed is None else operations[known.destroyed]
        where = known.gpu, known.profile, known.start
        lives[where].append(Life(*where, free=known.free, create=create, destroy=destroy))
    for run in sorted(schedule.runs, key=lambda run: run.begin):
        where = run.gpu, run.profile, run.start
        there = lives[where] = lives[where] or [Life(*where)]  # without operations, each place has one life
        begun = bisect.bisect_right(there, run.begin, key=lambda life: life.create.begin if life.create else -math.inf)
        there[max(begun - 1, 0)].runs.append(run)
    found = itertools.chain.from_iterable(lives.values())
    return sorted(found, key=lambda life: (life.gpu, life.begin, life.start))
