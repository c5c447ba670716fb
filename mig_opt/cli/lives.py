"""A schedule from the view of its instances: when each exists and what it runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from mig_opt.batch import Batch
from mig_opt.schedule import Operation, Run, Schedule

_ORDER = {"destroy": 0, "create": 1, "run": 2}


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


def lives_of(batch: Batch, schedule: Schedule) -> list[Life]:
    """Return the instances of a schedule by GPU, begin and start slice."""
    events: dict[tuple[int, str, int], list[Run | Operation]] = {}
    initial = {(live.gpu, live.profile, live.start): live.free for live in batch.initial}
    for key in initial:
        events[key] = []
    happened: list[Run | Operation] = [*schedule.runs, *(schedule.operations or ())]
    for event in happened:
        events.setdefault((event.gpu, event.profile, event.start), []).append(event)
    lives = [
        life for key, found in events.items() for life in _split(key, initial.get(key), sorted(found, key=_moment))
    ]
    return sorted(lives, key=lambda life: (life.gpu, life.begin, life.start))


def _moment(event: Run | Operation) -> tuple[float, int]:
    # Where operations take no time, an instance goes and comes back at the very moment at which the next run begins.
    return event.begin, _ORDER[event.kind if isinstance(event, Operation) else "run"]


def _split(key: tuple[int, str, int], free: float | None, events: list[Run | Operation]) -> Iterator[Life]:
    """Yield one life after the other."""
    life = None if free is None else Life(*key, free=free)
    for event in events:
        if isinstance(event, Operation) and event.kind == "create":
            if life:
                yield life
            life = Life(*key, create=event)
            continue
        life = life or Life(*key)
        if isinstance(event, Operation):
            life.destroy = event
            yield life
            life = None
        else:
            life.runs.append(event)
    if life:
        yield life
