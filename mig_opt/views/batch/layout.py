"""The parts of a schedule's picture: where each of them is, in which colour, and what lines and labels say."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mig_opt.batch.batch import Batch, LiveInstance
from mig_opt.batch.lifetimes import Lifetime, lifetimes
from mig_opt.batch.schedule import Operation, Run, Schedule, wrong_types
from mig_opt.errors import InputError, Problem
from mig_opt.views.texts import BOUND, INK, colour_of, spell_seconds

EARLIER = "#d4d4d4"
OPERATIONS = {"create": ("creation", INK), "destroy": ("destruction", "#9a9a9a")}
"""The word for each kind of operation, and its colour."""
IDLE_SIGN, EARLIER_SIGN = "instance without a task", "busy with earlier work"


def batch_title(batch: Batch, figure: str) -> str:
    """Return the title of a picture: the batch, its GPUs, and a figure."""
    gpus = batch.gpu.label if batch.gpus == 1 else f"{batch.gpus} x {batch.gpu.label}"
    return " · ".join(filter(None, [batch.name, gpus, figure]))


def schedule_problems(batch: Batch, schedule: Schedule, lower_bound: float | None) -> Iterator[Problem]:
    """Yield why a schedule cannot be drawn."""
    wrong = list(wrong_types(batch, schedule))
    if wrong:
        yield from wrong
        return
    parts: list[tuple[str, Run | Operation]] = [(f"runs[{i}]", run) for i, run in enumerate(schedule.runs)]
    parts += [(f"operations[{i}]", operation) for i, operation in enumerate(schedule.operations or ())]
    for path, part in parts:
        if not 0 <= part.gpu < batch.gpus:
            yield Problem(f"{path}.gpu", f"must be from 0 to {batch.gpus - 1}, is {part.gpu}")
        try:
            batch.gpu.profile(part.profile)
        except InputError as error:
            yield from (problem.below(path) for problem in error.problems)
        for key, seconds in (("begin", part.begin), ("end", part.end)):
            if not math.isfinite(seconds):
                yield Problem(f"{path}.{key}", f"must be a finite number of seconds, is {seconds}")
    if lower_bound is not None and not math.isfinite(lower_bound):
        yield Problem("lower_bound", f"must be a finite number of seconds, is {lower_bound}")


@dataclass(frozen=True, slots=True)
class Box:
    """An interval of seconds over some memory slices of a GPU."""

    gpu: int
    slices: range
    begin: float
    end: float

    @classmethod
    def of(cls, batch: Batch, part: Run | Operation | LiveInstance | Lifetime, begin: float, end: float) -> Box:
        """Return the footprint of the instance of ``part`` over an interval."""
        memory = batch.gpu.profile(part.profile).memory_slices
        return cls(part.gpu, range(part.start, part.start + memory), begin, end)

    def beside(self, others: Iterable[Box]) -> Box:
        """Return what others (at its two ends) leave of it."""
        begin, end = self.begin, self.end
        for other in others:
            if self.gpu != other.gpu or not set(self.slices) & set(other.slices):
                continue
            if other.begin <= self.begin < other.end:
                begin = max(begin, other.end)
            elif self.begin < other.begin < self.end:
                end = min(end, other.begin)
        return Box(self.gpu, self.slices, begin, max(begin, end))


@dataclass(frozen=True, slots=True)
class Line:
    """A line at a moment, over all GPUs; the main line of a picture is solid, another one dashed."""

    seconds: float
    name: str
    colour: str
    dashed: bool

    @property
    def gid(self) -> str:
        """Its name as one word."""
        return self.name.replace(" ", "-")

    @property
    def wording(self) -> str:
        """Its label."""
        return f"{self.name} {spell_seconds(self.seconds)}"


@dataclass(frozen=True)
class ScheduleLayout:
    """The picture of a schedule: a panel of memory slices for each GPU, with the seconds from left to right.

    Attributes
    ----------
    batch : Batch
        The batch.
    schedule : Schedule
        The schedule.
    lines : tuple of Line
        The main line first.
    title : str
        The title.
    panel_names : tuple of str
        The name of each GPU's panel.
    """

    batch: Batch
    schedule: Schedule
    lines: tuple[Line, ...]
    title: str
    panel_names: tuple[str, ...]

    @classmethod
    def of_schedule(
        cls, batch: Batch, schedule: Schedule, lower_bound: float | None, title: str | None
    ) -> ScheduleLayout:
        """Return the picture of one schedule."""
        if title is None:
            title = batch_title(batch, f"makespan {spell_seconds(schedule.makespan)}")
        bound = [] if lower_bound is None else [Line(lower_bound, "lower bound", BOUND, dashed=True)]
        lines = Line(schedule.makespan, "makespan", INK, dashed=False), *bound
        return cls(batch, schedule, lines, title, tuple(f"GPU {gpu}" for gpu in range(batch.gpus)))

    @classmethod
    def of_execution(cls, batch: Batch, plan: Schedule, measured: Schedule, title: str | None) -> ScheduleLayout:
        """Return the picture of a plan above its execution."""
        if title is None:
            spelled = (spell_seconds(each.makespan) for each in (plan, measured))
            title = " · ".join(filter(None, [batch.name, "planned {}, measured {}".format(*spelled)]))
        below = [dataclasses.replace(live, gpu=live.gpu + batch.gpus) for live in batch.initial]
        runs = [dataclasses.replace(run, gpu=run.gpu + batch.gpus) for run in measured.runs]
        operations = [dataclasses.replace(each, gpu=each.gpu + batch.gpus) for each in measured.operations or ()]
        both = Schedule((*plan.runs, *runs), (*(plan.operations or ()), *operations))
        names = [
            f"{word} {gpu}" if batch.gpus > 1 else word for word in ("plan", "measured") for gpu in range(batch.gpus)
        ]
        lines = (
            Line(measured.makespan, "measured", INK, dashed=False),
            Line(plan.makespan, "planned", BOUND, dashed=True),
        )
        doubled = batch.replace(gpus=2 * batch.gpus, initial=(*batch.initial, *below))
        return cls(doubled, both, lines, title, tuple(names))

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The operations that are known."""
        return self.schedule.operations or ()

    @property
    def limits(self) -> tuple[float, float]:
        """The first and the last moment; no task is drawn without room for it."""
        parts: list[Run | Operation] = [*self.schedule.runs, *self.operations]
        ends = [part.end for part in parts] + [live.free for live in self.batch.initial]
        last = max([0.0, *(line.seconds for line in self.lines[1:]), *ends]) or 1.0
        return min([0.0, *(part.begin for part in parts)]), last

    def colours(self) -> dict[str, str]:
        """Return the colour of each task."""
        names = sorted({task.name for task in self.batch.tasks} | {run.task for run in self.schedule.runs})
        return {name: colour_of(index) for index, name in enumerate(names)}

    def earlier(self) -> Iterator[tuple[int, Box]]:
        """Yield what live instances are busy with before the batch, by their indices."""
        for index, live in enumerate(self.batch.initial):
            if live.free > 0:
                yield index, Box.of(self.batch, live, 0.0, live.free)

    def instances(self) -> list[tuple[str, Box]]:
        """Return the profile and the lifetime of each instance; without operations none is known."""
        if self.schedule.operations is None:
            return []
        last = self.limits[1]
        found, stray = lifetimes(self.batch.initial, self.operations)
        boxes = [
            (each.profile, Box.of(self.batch, each, each.begin, last if each.destroyed is None else each.end))
            for each in found
        ]
        # An instance that never existed is drawn as long as its destruction.
        ends = (self.operations[index] for index in stray if self.operations[index].kind == "destroy")
        return boxes + [(part.profile, Box.of(self.batch, part, part.begin, part.end)) for part in ends]

    def runs(self) -> list[Run]:
        """Return the runs from the first panel to the last, and from left to right."""
        return sorted(self.schedule.runs, key=lambda run: (run.gpu, run.begin, run.start))
