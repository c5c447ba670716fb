"""The report of an execution: planned against measured, and where the difference came from."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

from mig_opt.batch.batch import Batch
from mig_opt.batch.journal import Journal
from mig_opt.batch.schedule import Schedule
from mig_opt.gpu.model import OperationCosts
from mig_opt.method.report import data_of


@dataclass(frozen=True, slots=True)
class ExecutedStep:
    """A task or an operation as it was planned and as it was."""

    kind: Literal["create", "run", "destroy"]
    task: str  # empty for operations
    gpu: int
    profile: str
    start: int
    planned: tuple[float, float]  # begin and end in the plan, in seconds
    measured: tuple[float, float]  # as they were, in seconds after the beginning of the execution
    code: int = 0  # exit code of the task

    def document(self) -> dict[str, Any]:
        """Return it as an object of JSON."""
        task = {"task": self.task, "code": self.code} if self.kind == "run" else {}
        place = {"gpu": self.gpu, "profile": self.profile, "start": self.start}
        planned = {"planned_begin": self.planned[0], "planned_end": self.planned[1]}
        return {"kind": self.kind, **task, **place, **planned, "begin": self.measured[0], "end": self.measured[1]}

    @property
    def longer(self) -> float:
        """Seconds by which it took longer than planned."""
        return (self.measured[1] - self.measured[0]) - (self.planned[1] - self.planned[0])


@dataclass(frozen=True, slots=True)
class Difference:
    """The parts of the difference between two makespans, in seconds.

    All that is on the measured critical path counts: what took longer than planned (less than 0: shorter), and the
    waits between, compared with those of the plan.
    """

    tasks: float  # by how much they took longer
    operations: float
    waits: float  # by how much more there was to wait for: the driver, starts of programs, another order


@dataclass
class Execution:
    """The outcome of an execution.

    Attributes
    ----------
    journal : Journal
        The plan, and everything that happened.

    Examples
    --------
    >>> from mig_opt import Batch, Task, get_gpu, solve
    >>> from mig_opt.batch.journal import Commands, Event, Journal
    >>> batch = Batch((Task("a", {4: 2.0}),), get_gpu("A30"))
    >>> plan = solve(batch, "far").schedule
    >>> happened = [Event(0.0, "begin"), Event(0.0, "create", 0), Event(0.2, "created", 0, uuid="MIG-1", number=1)]
    >>> happened += [Event(0.2, "run", task="a", attempt=1), Event(2.3, "ran", task="a", attempt=1, code=0)]
    >>> execution = Execution(Journal(batch, plan, Commands({"a": ("./a",)}), ("GPU-1",), events=happened))
    >>> execution.planned_makespan, execution.makespan
    (2.13, 2.3)
    >>> difference = execution.difference()
    >>> round(difference.tasks, 3), round(difference.operations, 3)
    (0.1, 0.07)
    """

    journal: Journal

    @property
    def complete(self) -> bool:
        """True if all of the plan has been done."""
        return any(event.kind == "end" for event in self.journal.events)

    @property
    def failed(self) -> dict[str, int]:
        """The tasks that ended with an exit code other than 0, with that code."""
        return {run.task: run.code for run in self.journal.runs() if run.code}

    @property
    def refusals(self) -> list[str]:
        """Messages about instances that could not be created or destroyed, and about nodes, each once."""
        last: dict[int | str, str] = {}
        for event in self.journal.events:
            if event.kind == "refused":
                last[event.text if event.instance is None else event.instance] = event.text
            elif event.kind == "resume":
                last = {key: text for key, text in last.items() if isinstance(key, int)}
            elif event.kind in ("created", "destroyed"):
                last.pop(event.instance or 0, None)
        return list(dict.fromkeys(last.values()))

    @property
    def planned_makespan(self) -> float:
        """The makespan of the plan in seconds."""
        return self.journal.schedule.makespan

    @cached_property
    def makespan(self) -> float:
        """The last end of a task in seconds; 0 if none has ended."""
        return max((run.end for run in self.journal.runs()), default=0.0)

    @cached_property
    def steps(self) -> tuple[ExecutedStep, ...]:
        """Everything that was done, by the begin that was measured."""
        lifetimes, found = self.journal.lifetimes, list[ExecutedStep]()
        for each in self.journal.operations():
            place = lifetimes[each.instance]
            planned = (place.begin, place.ready) if each.kind == "create" else (place.close, place.end)
            found.append(ExecutedStep(each.kind, "", *place.location, planned, (each.begin, each.end)))
        for run in self.journal.runs():
            place = lifetimes[run.instance]
            (entry,) = (one for one in place.runs if one.task == run.task)
            times = (entry.begin, entry.end), (run.begin, run.end)
            found.append(ExecutedStep("run", run.task, *place.location, *times, run.code))
        return tuple(sorted(found, key=lambda step: step.measured))

    def critical_path(self) -> list[ExecutedStep]:
        """Return the steps that the measured makespan consists of, with the waits between them, in order."""
        path: list[ExecutedStep] = []
        for step in sorted(self.steps, key=lambda step: step.measured[1], reverse=True):
            if self._enables(step, path[-1]) if path else step.kind == "run":
                path.append(step)
        return path[::-1]

    def _enables(self, step: ExecutedStep, later: ExecutedStep) -> bool:
        """Return True if a step had to end before a later one could begin."""
        if step.gpu != later.gpu or step.measured[1] > later.measured[0]:
            return False
        same = (step.profile, step.start) == (later.profile, later.start)
        return same if "run" in (step.kind, later.kind) else True

    def difference(self) -> Difference:
        """Return where the difference between planned and measured makespan came from."""
        path = self.critical_path()
        tasks = sum(step.longer for step in path if step.kind == "run")
        operations = sum(step.longer for step in path if step.kind != "run")
        return Difference(tasks, operations, self.makespan - self.planned_makespan - tasks - operations)

    def costs(self) -> OperationCosts:
        """Return the operation costs that were measured, for the next plan."""
        return self.journal.costs()

    def measured(self) -> tuple[Batch, Schedule]:
        """Return the batch with times as they were, and the schedule as it was, for :func:`mig_opt.validate`."""
        return self.journal.measured()

    def document(self) -> dict[str, Any]:
        """Return the report as an object of JSON."""
        difference, costs = self.difference(), self.costs()
        return {
            **data_of(self, "complete", "makespan", "planned_makespan"),
            "difference": {part: round(seconds, 6) for part, seconds in asdict(difference).items()},
            **data_of(self, "failed", "refusals"),
            "operations": {
                kind: {str(size): cost for size, cost in getattr(costs, kind).items()} for kind in ("create", "destroy")
            },
            "steps": [step.document() for step in self.steps],
        }
