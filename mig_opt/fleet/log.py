"""Log of a simulation, kept in columns: a million jobs fit in some hundred megabytes."""

from __future__ import annotations

import math
from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from operator import itemgetter
from typing import Final

from mig_opt.batch.batch import Batch, Task
from mig_opt.batch.schedule import Operation, OperationKind, Run, Schedule
from mig_opt.fleet.trace import Trace, TracePart, pcie_slowdown
from mig_opt.gpu.geometry import Geometry, NumberedPlace
from mig_opt.gpu.model import Placement
from mig_opt.gpu.pools import Pool


class RunOutcome(IntEnum):
    """End of a run."""

    FINISHED = 0
    """The job is done."""
    MIGRATED = 1
    """The job went on elsewhere in the same moment."""
    OUT_OF_MEMORY = 2
    """The job needed more memory than its instance has; what it had done is lost."""
    STOPPED = 3
    """The scheduler stopped it; what it had done is lost."""
    CRASHED = 4
    """The job crashed and waits again; what it had done is lost."""
    GPU_LEFT = 5
    """A GPU that it had, or was to migrate to, left the fleet; what it had done is lost."""


KINDS: Final[tuple[OperationKind, ...]] = ("create", "destroy")
CREATE: Final = 0
DESTROY: Final = 1


@dataclass(frozen=True, slots=True)
class LoggedRun:
    """Run of a job on an instance, without a break.

    Attributes
    ----------
    job : int
        Index in ``trace.jobs``.
    gpu : int
        Index of the GPU.
    placement : Placement
        The instance.
    begin, end : float
        Seconds after the start of the trace.
    outcome : RunOutcome
        Its end.
    """

    job: int
    gpu: int
    placement: Placement
    begin: float
    end: float
    outcome: RunOutcome


class Log:
    """Log of a simulation: runs in the order of their ends, operations in the order in which they were decided.

    With several kinds of GPUs, operations are in the order of the kinds first.

    Attributes
    ----------
    trace : Trace
        The jobs and the fleet.
    geometries : tuple of Geometry
        The placements of each kind of GPU.
    placements : tuple of Placement
        Those of all kinds, one kind after the other: the numbers in the columns are their indices.
    run_job, run_gpu, run_placement, run_begin, run_end, run_outcome : array
        The runs, column by column; outcomes are those of :class:`RunOutcome`.
    operation_kind, operation_gpu, operation_placement, operation_begin, operation_end : array
        The operations; kinds are indices of ``KINDS``.
    operation_columns : tuple of array
        These five columns.
    scheduled : array
        For each job the second at which it was first given a place; not a number if it never was.
    finished : array
        For each job the second at which it was done; not a number if it never was.
    rejected : array
        For each job the second at which it was turned away; not a number if it never was.
    """

    def __init__(self, trace: Trace, *geometries: Geometry) -> None:
        self.trace, self.geometries = trace, geometries
        self.placements = tuple(placement for geometry in geometries for placement in geometry.placements)
        self._returns: dict[int, list[tuple[float, int]]] = {}
        runs = array("q"), array("i"), array("h"), array("d"), array("d"), array("b")
        self.run_job, self.run_gpu, self.run_placement, self.run_begin, self.run_end, self.run_outcome = runs
        self.operation_columns = array("b"), array("i"), array("h"), array("d"), array("d")
        self.operation_kind, self.operation_gpu, self.operation_placement = self.operation_columns[:3]
        self.operation_begin, self.operation_end = self.operation_columns[3:]
        self.scheduled = array("d", [math.nan]) * len(trace.jobs)
        self.finished = array("d", [math.nan]) * len(trace.jobs)
        self.rejected = array("d", [math.nan]) * len(trace.jobs)

    def add_run(self, job: int, place: NumberedPlace, begin: float, end: float, outcome: RunOutcome) -> None:
        """Note a run that has ended; its place is GPU and placement."""
        self.run_job.append(job)
        self.run_gpu.append(place[0])
        self.run_placement.append(place[1])
        self.run_begin.append(begin)
        self.run_end.append(end)
        self.run_outcome.append(outcome)

    def add_operation(self, kind: int, gpu: int, placement: int, begin: float, end: float) -> None:
        """Note an operation that the driver has been given."""
        self.operation_kind.append(kind)
        self.operation_gpu.append(gpu)
        self.operation_placement.append(placement)
        self.operation_begin.append(begin)
        self.operation_end.append(end)

    def cut_operations(self, gpu: int, moment: float) -> None:
        """Forget the last operations of a GPU, those that do not end by some moment."""
        for index in reversed(range(len(self.operation_gpu))):
            if self.operation_gpu[index] == gpu:
                if self.operation_end[index] <= moment:
                    break
                for column in self.operation_columns:
                    del column[index]

    def runs(self) -> Iterator[LoggedRun]:
        """Yield the runs by their ends."""
        placements = self.placements
        columns = self.run_job, self.run_gpu, self.run_placement, self.run_begin, self.run_end, self.run_outcome
        for job, gpu, placement, begin, end, outcome in zip(*columns, strict=True):
            yield LoggedRun(job, gpu, placements[placement], begin, end, RunOutcome(outcome))

    def operations(self) -> Iterator[Operation]:
        """Yield the operations in the order in which they were decided."""
        placements = self.placements
        for kind, gpu, index, begin, end in zip(*self.operation_columns, strict=True):
            placement = placements[index]
            yield Operation(KINDS[kind], gpu, placement.profile.name, placement.start, begin, end)

    def unfinished(self) -> tuple[str, ...]:
        """Return the names of the jobs that were neither done nor turned away."""
        columns = self.trace.jobs, self.finished, self.rejected
        return tuple(job.name for job, end, no in zip(*columns, strict=True) if math.isnan(end) and math.isnan(no))

    def turned_away(self) -> tuple[str, ...]:
        """Return the names of the jobs that were turned away."""
        return tuple(job.name for job, no in zip(self.trace.jobs, self.rejected, strict=True) if not math.isnan(no))

    def as_asked(self) -> bool:
        """Return True if each job that asks for a profile ran on this profile only."""
        jobs, profiles = self.trace.jobs, [placement.profile for placement in self.placements]
        return all(
            jobs[job].asked(profiles[placement].gpu) in (None, profiles[placement].name)
            for job, placement in zip(self.run_job, self.run_placement, strict=True)
        )

    def count(self, outcome: RunOutcome) -> int:
        """Return the number of runs with this end."""
        return self.run_outcome.count(outcome)

    def work_done(self) -> list[float]:
        """Return the share of its job's work that each run did, from the runs alone.

        The rate of a PCIe-bound job is integrated over its competitors on the GPU; the others always run at full speed.
        Where a job has no time it does nothing.
        """
        trace, placements = self.trace, self.placements
        work = [0.0] * len(self.run_job)
        bound: dict[int, list[tuple[float, int, int]]] = defaultdict(list)
        for run, (number, begin, end) in enumerate(zip(self.run_job, self.run_begin, self.run_end, strict=True)):
            job = trace.jobs[number]
            if end <= begin:
                continue
            if job.pcie_gbps > 0:
                bound[self.run_gpu[run]] += [(begin, 1, run), (end, -1, run)]
            else:
                seconds = job.seconds(placements[self.run_placement[run]].profile)
                work[run] = (end - begin) / seconds if seconds else 0.0
        for changes in bound.values():
            self._integrate(sorted(changes), work)
        return work

    def _integrate(self, changes: Sequence[tuple[float, int, int]], work: list[float]) -> None:
        """Add the work of the PCIe-bound runs of a GPU, from the moments at which they begin (1) and end (-1)."""
        present: set[int] = set()
        before = 0.0
        for moment, change, index in changes:
            for run in present if moment > before else ():
                job = self.trace.jobs[self.run_job[run]]
                alone = job.seconds(self.placements[self.run_placement[run]].profile) or math.inf
                work[run] += (moment - before) / (alone * pcie_slowdown(self.trace, job, len(present)))
            before = moment
            if change > 0:
                present.add(index)
            else:
                present.remove(index)

    def incarnation(self, gpu: int, moment: float) -> int:
        """Return the number of a GPU at some moment: one that has left and returned is another GPU from then on."""
        if not self._returns:
            for number, outage in enumerate(sorted(self.trace.outages, key=lambda outage: outage.end)):
                self._returns.setdefault(outage.gpu, []).append((outage.end, self.trace.gpus + number))
        returns = reversed(self._returns.get(gpu, ()))
        return next((number for end, number in returns if end <= moment), gpu)

    def as_schedule(self) -> tuple[Batch, Schedule]:
        """Return the log as a schedule that :func:`mig_opt.validate` can check.

        Each run is a task of its own, named by its number and its job, that takes as long as the run did. Runs that
        ended in the moment in which they began are left out, since tasks take time. A GPU that left and returned is
        another one from then on, with a number above those of the trace.

        Raises
        ------
        InputError
            If there was no run of any length.
        """
        trace, tasks, runs = self.trace, [], []
        # GPUs that have returned come after the others; a batch numbers them through its kinds.
        back = (outage.gpu for outage in sorted(trace.outages, key=lambda outage: outage.end))
        ranges = list(trace.kinds.values())
        kinds = [next(at for at, own in enumerate(ranges) if gpu in own) for gpu in (*range(trace.gpus), *back)]
        number = {gpu: at for at, gpu in enumerate(sorted(range(len(kinds)), key=kinds.__getitem__))}
        for index, run in enumerate(self.runs()):
            if run.end > run.begin:
                name = f"{index}:{trace.jobs[run.job].name}"
                profile = run.placement.profile
                seconds = {profile.compute_slices: run.end - run.begin}
                tasks.append(Task(name, seconds if trace.gpu else {profile.gpu: seconds}))
                gpu, start = number[self.incarnation(run.gpu, run.begin)], run.placement.start
                runs.append(Run(name, gpu, profile.name, start, run.begin, run.end))
        pools = tuple(Pool(kind, kinds.count(at)) for at, kind in enumerate(trace.kinds))
        batch = Batch(tuple(tasks), pools=pools, operations=trace.operations, name=trace.name)
        operations = (replace(done, gpu=number[self.incarnation(done.gpu, done.begin)]) for done in self.operations())
        return batch, Schedule(tuple(runs), tuple(operations))


def joined_log(trace: Trace, parts: Sequence[TracePart], logs: Sequence[Log]) -> Log:
    """Return the log of a trace, given those of its parts; with one kind of GPU that is its log."""
    if trace.gpu:
        return logs[0]
    joined = Log(trace, *(log.geometries[0] for log in logs))
    runs = []
    first = 0
    for part, log in zip(parts, logs, strict=True):
        for run, placement in zip(log.runs(), log.run_placement, strict=True):
            place = part.gpus[run.gpu], first + placement
            runs.append((part.jobs[run.job], place, run.begin, run.end, run.outcome))
        for kind, gpu, placement, begin, end in zip(*log.operation_columns, strict=True):
            joined.add_operation(kind, part.gpus[gpu], first + placement, begin, end)
        for name in ("scheduled", "finished", "rejected"):
            moments = getattr(joined, name)
            for job, moment in zip(part.jobs, getattr(log, name), strict=True):
                if not math.isnan(moment):
                    moments[job] = moment if math.isnan(moments[job]) else min(moment, moments[job])
        first += len(log.placements)
    for own in sorted(runs, key=itemgetter(3)):
        joined.add_run(*own)
    return joined
