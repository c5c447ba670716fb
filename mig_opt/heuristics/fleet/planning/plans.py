"""Plans, and how they are carried out: what is possible now is done, in the planned order."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mig_opt.batch.batch import Batch
from mig_opt.batch.lifetimes import lifetimes_with_runs
from mig_opt.batch.schedule import Schedule
from mig_opt.gpu.geometry import members
from mig_opt.heuristics.fleet.planning.situation import Situation
from mig_opt.simulation.cluster import Cluster


@dataclass(slots=True, eq=False)
class Life:
    """An instance and the jobs that it is going to run, in order."""

    placement: int
    jobs: deque[int] = field(default_factory=deque)


@dataclass(frozen=True, slots=True)
class Step:
    """An operation of a driver, and the second at which it is planned to begin."""

    begin: float
    creates: bool
    life: Life


@dataclass(frozen=True, slots=True)
class Placed:
    """A job with its place, and the seconds from which to which it is going to run.

    Attributes
    ----------
    job, gpu, placement : int
        Which job, and where.
    begin, end : float
        Seconds after the start of the trace.
    """

    job: int
    gpu: int
    placement: int
    begin: float
    end: float


class Plan:
    """Where and in which order jobs run, and the operations in between, in the order in which drivers do them.

    A plan is advice: each step is checked against the state when its turn comes. A driver keeps the planned order of
    its operations, since that is what the last end may depend on; but what is overdue does not hold up operations on
    other slices.

    Parameters
    ----------
    cluster : Cluster
        As it is now.

    Attributes
    ----------
    placed : dict of int to Placed
        The jobs that it is for, with what it promises.
    started : list of (int, int)
        Jobs that it has started, with their GPUs.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.placed: dict[int, Placed] = {}
        self.started: list[tuple[int, int]] = []
        self._cluster = cluster
        self._steps: dict[int, deque[Step]] = defaultdict(deque)
        self._lives: dict[int, list[Life]] = defaultdict(list)

    @property
    def gpus(self) -> list[int]:
        """The GPUs for which there is something in the plan."""
        return sorted({*self._steps, *self._lives})

    def keep(self, gpu: int, life: Life) -> None:
        """Note an instance that exists, with what it is going to run."""
        self._lives[gpu].append(life)

    def add(self, gpu: int, step: Step) -> None:
        """Note the next operation of a GPU."""
        self._steps[gpu].append(step)

    def advance(self, gpus: Iterable[int]) -> None:
        """Do on some GPUs all that is possible now."""
        for gpu in gpus:
            while self._start(gpu) or self._operate(gpu):
                pass

    def _start(self, gpu: int) -> bool:
        """Let an instance that is idle run its next job, if there is one; forget instances that have none."""
        cluster, lives = self._cluster, self._lives.get(gpu, [])
        for life in lives:
            if life.jobs and cluster.states[gpu].idle >> life.placement & 1:
                job = life.jobs.popleft()
                cluster.start(job, gpu, life.placement)
                self.started.append((job, gpu))
                return True
        if lives:
            self._lives[gpu] = [life for life in lives if life.jobs]
        return False

    def _operate(self, gpu: int) -> bool:
        """Let the driver do its next operation, if that is possible."""
        passed = 0
        steps = self._steps.get(gpu, ())
        for index, step in enumerate(steps):
            if not passed >> step.life.placement & 1 and self._possible(gpu, step):
                del self._steps[gpu][index]
                self._do(gpu, step)
                return True
            if step.begin > self._cluster.now:
                break
            passed |= self._cluster.geometry.conflicts[step.life.placement]
        return False

    def _possible(self, gpu: int, step: Step) -> bool:
        state, place = self._cluster.states[gpu], step.life.placement
        if step.creates:
            return not state.busy & self._cluster.geometry.conflicts[place]
        return not step.life.jobs and not state.busy >> place & 1

    def _do(self, gpu: int, step: Step) -> None:
        place = step.life.placement
        exists = self._cluster.states[gpu].idle >> place & 1
        if step.creates:
            if not exists:
                self._cluster.create(gpu, place)
            self._lives[gpu].append(step.life)
        elif exists:
            self._cluster.destroy(gpu, place)


def plan_in_order(situation: Situation, placed: Iterable[Placed]) -> Plan:
    """Return the plan in which jobs follow each other in a given order.

    Of two instances that share slices, that of the earlier job is destroyed for that of the later one, once its jobs
    have ended. Drivers serve first come, first served.
    """
    cluster = situation.cluster
    plan, conflicts, create = Plan(cluster), cluster.geometry.conflicts, situation.shape.create
    lives: dict[int, dict[int, Life]] = {}
    ends: dict[Life, float] = {}
    steps: dict[int, list[Step]] = defaultdict(list)
    for entry in placed:
        if entry.gpu not in lives:
            state = cluster.states[entry.gpu]
            lives[entry.gpu] = {place: Life(place) for place in members(state.busy | state.idle)}
            for place, life in lives[entry.gpu].items():
                ends[life] = situation.now + situation.free(entry.gpu, place)
                plan.keep(entry.gpu, life)
        here = lives[entry.gpu]
        if entry.placement not in here:
            for place in [place for place in here if conflicts[entry.placement] >> place & 1]:
                gone = here.pop(place)
                steps[entry.gpu].append(Step(ends[gone], False, gone))
            here[entry.placement] = Life(entry.placement)
            begin = entry.begin - float(create[entry.placement])
            steps[entry.gpu].append(Step(begin, True, here[entry.placement]))
        here[entry.placement].jobs.append(entry.job)
        ends[here[entry.placement]] = entry.end
        plan.placed[entry.job] = entry
    for gpu, found in steps.items():
        for step in sorted(found, key=lambda step: step.begin):
            plan.add(gpu, step)
    return plan


def plan_by_schedule(situation: Situation, batch: Batch, schedule: Schedule) -> Plan | None:
    """Return a schedule of the situation's batch as a plan; None if a profile is not allowed.

    Of the jobs on an instance those come first that are short for their weight. That changes no other time.
    """
    cluster, geometry = situation.cluster, situation.cluster.geometry
    plan = Plan(cluster)
    steps: list[tuple[int, int, Step]] = []
    operations = schedule.operations or ()
    for known in lifetimes_with_runs(batch, schedule):
        gpu, place = situation.gpus[known.gpu], geometry.index(known.profile, known.start)
        life, end = Life(place), situation.now + (known.runs[0].begin if known.runs else 0.0)
        seconds = {}
        for run in known.runs:
            options = dict(situation.wishes[int(run.task)].options)
            if geometry.profile_of[place] not in options:
                return None
            seconds[int(run.task)] = options[geometry.profile_of[place]]
        for number in _shortest_first(situation, seconds):
            job = situation.wishes[number].job
            begin, end = end, end + seconds[number]
            life.jobs.append(job)
            plan.placed[job] = Placed(job, gpu, place, begin, end)
        if known.created is None:
            plan.keep(gpu, life)
        for index in (known.created, known.destroyed):
            if index is not None:
                step = Step(situation.now + operations[index].begin, operations[index].kind == "create", life)
                steps.append((index, gpu, step))
    for _, gpu, step in sorted(steps, key=lambda entry: entry[0]):
        plan.add(gpu, step)
    return plan


def _shortest_first(situation: Situation, seconds: dict[int, float]) -> Sequence[int]:
    return sorted(seconds, key=lambda number: (seconds[number] / situation.wishes[number].weight, number))
