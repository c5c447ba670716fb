"""Plans, and how they are carried out: steps that are possible now are taken, in the planned order."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from mig_opt.batch.batch import Batch
from mig_opt.batch.schedule import Schedule, lifetimes_with_runs
from mig_opt.gpu.geometry import members
from mig_opt.heuristics.fleet.plans.problem import PlanningProblem
from mig_opt.simulation.fleet.cluster import Cluster


@dataclass(slots=True, eq=False)
class PlannedInstance:
    """Instance and the jobs that it is going to run, in order."""

    placement: int
    jobs: deque[int] = field(default_factory=deque)


@dataclass(frozen=True, slots=True)
class PlannedOperation:
    """Operation of a driver, and the second at which it is planned to begin."""

    begin: float
    creates: bool
    instance: PlannedInstance


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """Run of a job on a placement of a GPU, with begin and end in seconds after the start of the trace."""

    job: int
    gpu: int
    placement: int
    begin: float
    end: float


class Plan:
    """Order of the jobs on each instance, and the operations in between, in the order in which drivers do them.

    A plan is advice: each step is checked against the state when its turn comes. A driver keeps the planned order of
    its operations, since that is what the last end may depend on; but what is overdue does not hold up operations on
    other slices.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.runs: dict[int, PlannedRun] = {}  # the planned run of each job
        # instances of each GPU that exist, with their jobs to come
        self.instances: dict[int, list[PlannedInstance]] = defaultdict(list)
        # operations of each GPU that are to come, in order
        self.operations: dict[int, deque[PlannedOperation]] = defaultdict(deque)
        self.cluster = cluster

    def drop(self, job: int) -> None:
        """Take a job out of the plan, if it is in it."""
        if job in self.runs:
            gpu = self.runs.pop(job).gpu
            for instance in (*self.instances[gpu], *(step.instance for step in self.operations[gpu])):
                if job in instance.jobs:
                    instance.jobs.remove(job)

    def advance(self, gpus: Iterable[int] | None = None) -> list[int]:
        """Take all steps on some GPUs, or all, that are possible now; return the jobs that have started."""
        started: list[int] = []
        for gpu in sorted({*self.operations, *self.instances}) if gpus is None else gpus:
            while self._start(gpu, started) or self._operate(gpu):
                pass
        return started

    def _start(self, gpu: int, started: list[int]) -> bool:
        """Let an instance that is idle run its next job, if there is one; forget instances that have none."""
        instances = self.instances.get(gpu, [])
        for instance in instances:
            if instance.jobs and self.cluster.states[gpu].idle >> instance.placement & 1:
                job = instance.jobs.popleft()
                self.cluster.start(job, gpu, instance.placement)
                started.append(job)
                return True
        if instances:
            self.instances[gpu] = [instance for instance in instances if instance.jobs]
        return False

    def _operate(self, gpu: int) -> bool:
        """Let the driver do its next operation, if that is possible."""
        cluster, state = self.cluster, self.cluster.states[gpu]
        overdue = 0
        for index, operation in enumerate(self.operations.get(gpu, ())):
            instance = operation.instance
            place, conflicts = instance.placement, cluster.geometry.conflicts[instance.placement]
            blocked = state.busy & conflicts if operation.creates else instance.jobs or state.busy >> place & 1
            if not blocked and not overdue >> place & 1:
                del self.operations[gpu][index]
                exists = state.idle >> place & 1
                if operation.creates:
                    self.instances[gpu].append(instance)
                    if not exists:
                        cluster.create(gpu, place)
                elif exists:
                    cluster.destroy(gpu, place)
                return True
            if operation.begin > cluster.now:
                break
            overdue |= conflicts
        return False


def plan_in_order(problem: PlanningProblem, runs: Iterable[PlannedRun]) -> Plan:
    """Return the plan in which runs follow each other in a given order.

    Of two instances that share slices, that of the earlier job is destroyed for that of the later one, once its jobs
    have ended. Drivers serve first come, first served.
    """
    cluster = problem.cluster
    plan, conflicts = Plan(cluster), cluster.geometry.conflicts
    existing: dict[int, dict[int, PlannedInstance]] = {}
    ends: dict[PlannedInstance, float] = {}
    operations: dict[int, list[PlannedOperation]] = defaultdict(list)
    for run in runs:
        gpu, place = run.gpu, run.placement
        if gpu not in existing:
            state = cluster.states[gpu]
            existing[gpu] = {there: PlannedInstance(there) for there in members(state.busy | state.idle)}
            plan.instances[gpu] += existing[gpu].values()
            ends |= {instance: problem.now + problem.free(gpu, there) for there, instance in existing[gpu].items()}
        here = existing[gpu]
        if place not in here:
            for there in [there for there in here if conflicts[place] >> there & 1]:
                destroyed = here.pop(there)
                operations[gpu].append(PlannedOperation(ends[destroyed], False, destroyed))
            here[place] = PlannedInstance(place)
            begin = run.begin - float(problem.placements.create[place])
            operations[gpu].append(PlannedOperation(begin, True, here[place]))
        here[place].jobs.append(run.job)
        ends[here[place]] = run.end
        plan.runs[run.job] = run
    for gpu, found in operations.items():
        plan.operations[gpu].extend(sorted(found, key=lambda operation: operation.begin))
    return plan


def plan_by_schedule(problem: PlanningProblem, batch: Batch, schedule: Schedule) -> Plan | None:
    """Return a schedule of the problem's batch as a plan; None if a profile is not allowed.

    Of the jobs on an instance those come first that are short for their weight. That changes no other time.
    """
    geometry = problem.cluster.geometry
    plan = Plan(problem.cluster)
    operations: list[tuple[int, int, PlannedOperation]] = []
    scheduled = schedule.operations or ()
    for known in lifetimes_with_runs(batch, schedule):
        gpu, place = problem.gpus[known.gpu], geometry.index(known.profile, known.start)
        instance, end = PlannedInstance(place), problem.now + (known.runs[0].begin if known.runs else 0.0)
        by_weight = []
        for run in known.runs:
            waiting = problem.jobs[int(run.task)]
            mode = waiting.mode(geometry.profile_of[place])
            if mode < 0:
                return None
            seconds = waiting.modes[mode][1]
            by_weight.append((seconds / waiting.weight, int(run.task), seconds))
        for _, number, seconds in sorted(by_weight):
            job = problem.jobs[number].job
            begin, end = end, end + seconds
            instance.jobs.append(job)
            plan.runs[job] = PlannedRun(job, gpu, place, begin, end)
        if known.created is None:
            plan.instances[gpu].append(instance)
        for index in (known.created, known.destroyed):
            if index is not None:
                begin, creates = problem.now + scheduled[index].begin, scheduled[index].kind == "create"
                operations.append((index, gpu, PlannedOperation(begin, creates, instance)))
    for _, gpu, planned in sorted(operations, key=lambda entry: entry[0]):
        plan.operations[gpu].append(planned)
    return plan
