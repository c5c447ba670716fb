"""The least makespan, or total completion time, of a few jobs that arrive over time, by constraint programming.

The model is told all arrivals in advance. A job has a place (a placement on a GPU) and a run there; it either has an
instance created for it, or follows another job on an instance that exists. After the last job of an instance the driver
destroys it, or it stays for ever. From one job to the next an instance is handed on without a gap, so that what a job
*holds* - from the begin of the creation or the end of its predecessor's hold to the begin of its successor's hold, the
end of the destruction or the horizon - tiles the life of the instance. Holds that cover the same memory slice do not
overlap, operations of a GPU do not overlap. An instance that runs nothing is of no use; every other schedule without
preemption and migration is one of the model, however often it re-creates a placement.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from ortools.sat.python import cp_model

from mig_opt.batch.batch import Batch, Task
from mig_opt.batch.integer_time import Ticks
from mig_opt.batch.schedule import Operation, Run, Schedule
from mig_opt.control import Control
from mig_opt.errors import InputError, Problem
from mig_opt.fleet.trace import Job, Trace
from mig_opt.gpu.model import Placement, Profile
from mig_opt.models.solvers import cpsat
from mig_opt.models.solvers.backend import Request
from mig_opt.result import Result, Rows, Status

Goal = Literal["makespan", "completion"]
"""What is least: the last end of a job, or the sum of all ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceOptimum(Result[Schedule]):
    """Outcome of :func:`mig_opt.trace_optimum`: its plan is a schedule, its lower bound counts seconds.

    No schedule without preemption and migration falls below the lower bound. ``proven`` has the goal if the schedule is
    the best one, as exactly as ticks of integer time tell.

    Attributes
    ----------
    goal : str
        ``makespan``, or ``completion`` for the sum of all ends.
    batch : Batch
        The jobs as tasks, so that :func:`mig_opt.validate` can check the schedule.
    """

    goal: Goal
    batch: Batch

    @property
    def schedule(self) -> Schedule | None:
        """The best schedule that was found."""
        return self.plan

    @property
    def objective(self) -> float | None:
        """Seconds that the schedule achieves; None without one."""
        return None if self.plan is None else seconds_of(self.goal, self.plan)

    @property
    def value(self) -> float:
        """Seconds that the schedule achieves; infinite without one."""
        return math.inf if self.objective is None else self.objective

    def rows(self) -> Rows:
        """Return the goal, its value and its lower bound."""
        return [("goal", self.goal), ("value", f"{self.value:.6g} s"), ("lower bound", f"{self.lower_bound:.6g} s")]


def seconds_of(goal: Goal, schedule: Schedule) -> float:
    """Return the makespan of a schedule or the sum of all its ends, in seconds."""
    ends = (run.end for run in schedule.runs)
    return max(ends) if goal == "makespan" else math.fsum(ends)


def best_schedule(trace: Trace, goal: Goal, control: Control[Schedule], *, at_least: float = 0.0) -> None:
    """Report schedules of a trace with ever less makespan or sum of ends; for about a dozen jobs.

    Jobs run alone: PCIe slows nobody down. Schedulers that preempt or migrate jobs can do better.

    Parameters
    ----------
    trace : Trace
        The jobs and the fleet.
    goal : str
        ``makespan``, or ``completion`` for the sum of all ends.
    control : Control
        Limits and reports; it judges by :func:`seconds_of`.
    at_least : float
        Seconds that no schedule falls below, if something is known.
    """
    model = _ArrivalModel(trace, goal, at_least)

    def on_bound(bound: int) -> None:
        control.raise_bound(max(model.seconds_of_bound(bound), at_least), "no solution of the model is better")

    def on_solution(values: Sequence[int]) -> None:
        control.offer(model.schedule(values))

    outcome = cpsat.run(model.model, control, Request(on_solution=on_solution, on_bound=on_bound))
    if outcome.values is not None:
        on_solution(outcome.values)
    on_bound(outcome.bound)
    met = control.objective is not None and control.objective <= control.lower_bound
    if met or outcome.status is Status.OPTIMAL:
        control.prove(goal)


def batch_of(trace: Trace) -> Batch:
    """Return the jobs of a trace as the tasks of a batch, all there from the start.

    Every schedule of the trace without preemption and migration is one of the batch.

    Raises
    ------
    InputError
        If a job can run nowhere.
    """
    check_jobs(trace)
    tasks = []
    for job in trace.jobs:
        sizes = {profile.compute_slices for profile in whole_run_profiles(trace, job)}
        memory = _most_gb(job) if job.profile is None else trace.gpu.profile(job.profile).memory_gb
        tasks.append(Task(job.name, {size: job.times[size] for size in sizes}, memory))
    return Batch(tuple(tasks), trace.gpu, trace.gpus, trace.operations, name=trace.name)


def whole_run_profiles(trace: Trace, job: Job) -> tuple[Profile, ...]:
    """Return the profiles on which a job can run from its begin to its end, as :meth:`Trace.profiles` does.

    They have the most memory that it reaches while it grows, also if it does not say how much that is.
    """
    if job.profile is not None or not job.memory_growth:
        return trace.profiles(job)
    return trace.profiles(Job(job.name, job.arrival, job.times, memory_gb=_most_gb(job)))


def _most_gb(job: Job) -> float | None:
    if job.memory_gb is not None or not job.memory_growth:
        return job.memory_gb
    return max(gb for _, gb in job.memory_growth)


def check_jobs(trace: Trace) -> None:
    """Refuse a trace of which a job can run nowhere.

    Raises
    ------
    InputError
        With a problem for each such job.
    """
    problems = [
        Problem(f"jobs[{index}]", f"job {job.name!r} can run nowhere: no profile has its times and enough memory")
        for index, job in enumerate(trace.jobs)
        if not whole_run_profiles(trace, job)
    ]
    if problems:
        raise InputError(problems)


@dataclass(frozen=True, slots=True)
class _Held:
    """A job in the model: its choice of places, and its times in ticks."""

    job: Job
    places: dict[tuple[int, Placement], cp_model.IntVar]
    created: cp_model.IntVar
    destroyed: cp_model.IntVar
    create: cp_model.IntVar
    begin: cp_model.IntVar
    end: cp_model.IntVar
    destroy: cp_model.IntVar
    hold: tuple[cp_model.IntVar, cp_model.IntVar]


class _ArrivalModel:
    def __init__(self, trace: Trace, goal: Goal, at_least: float) -> None:
        check_jobs(trace)
        self.trace = trace
        self.model = cp_model.CpModel()
        allowed = _allowed(trace)
        costs = trace.operations
        longest = trace.jobs[-1].arrival + math.fsum(
            max(job.times[p.compute_slices] + costs.of("create", p) + costs.of("destroy", p) for p in profiles)
            for job, profiles in zip(trace.jobs, allowed, strict=True)
        )
        times = [job.arrival for job in trace.jobs]
        times += [seconds for job in trace.jobs for seconds in job.times.values()]
        times += [*costs.create.values(), *costs.destroy.values()]
        # A sum of ends has to stay within what the solver counts, too.
        self.ticks = Ticks.for_times(times, longest * (1 if goal == "makespan" else len(trace.jobs)))
        # Schedules without needless waits end by then: after the last arrival something is always under way.
        self.horizon = self.ticks.ceil(longest) + 4 * len(trace.jobs)
        self.held = [self._held(index, job, allowed[index]) for index, job in enumerate(trace.jobs)]
        self._chains()
        self._slices()
        self._drivers()
        ends = [held.end for held in self.held]
        least = self.ticks.floor(at_least)
        if goal == "makespan":
            value = self.model.new_int_var(least, self.horizon, "makespan")
            self.model.add_max_equality(value, ends)
            self._loads(value)
        else:
            value = self.model.new_int_var(least, self.horizon * len(ends), "sum of ends")
            self.model.add(value == sum(ends))
        self.model.minimize(value)
        # Rounded up, each of at most three times of each job makes every end later by up to a tick.
        slack = 0 if self.ticks.exact else 4 * len(trace.jobs)
        self._slack = slack if goal == "makespan" else slack * len(trace.jobs)

    def seconds_of_bound(self, bound: int) -> float:
        """Return the seconds that no schedule falls below, for a bound of the objective."""
        return self.ticks.seconds_below(bound - self._slack)

    def _time(self, name: str, least: int = 0) -> cp_model.IntVar:
        return self.model.new_int_var(least, self.horizon, name)

    def _held(self, index: int, job: Job, profiles: Sequence[Profile]) -> _Held:
        model, ceil, costs = self.model, self.ticks.ceil, self.trace.operations
        places = {
            (gpu, Placement(profile, start)): model.new_bool_var(f"{index} at {gpu} {profile.name}@{start}")
            for gpu in range(self.trace.gpus)
            for profile in profiles
            for start in profile.starts
        }
        model.add_exactly_one(places.values())
        created, destroyed = model.new_bool_var(f"{index} created"), model.new_bool_var(f"{index} destroyed")
        create, begin = self._time(f"{index} create"), self._time(f"{index} begin", ceil(job.arrival))
        end, destroy = self._time(f"{index} end"), self._time(f"{index} destroy")
        hold = self._time(f"{index} from"), self._time(f"{index} to")

        chosen, profiles_there = list(places.values()), [place.profile for _, place in places]

        def ticks(seconds: Iterable[float]) -> cp_model.LinearExprT:
            return cp_model.LinearExpr.weighted_sum(chosen, [ceil(each) for each in seconds])

        def cost(kind: str) -> cp_model.LinearExprT:
            return ticks(costs.of(kind, profile) for profile in profiles_there)

        model.add(end - begin == ticks(job.times[profile.compute_slices] for profile in profiles_there))
        model.add(begin >= hold[0])
        model.add(hold[1] >= end)
        model.add(hold[0] == create).only_enforce_if(created)
        model.add(begin - create >= cost("create")).only_enforce_if(created)
        model.add(destroy >= end).only_enforce_if(destroyed)
        model.add(hold[1] - destroy == cost("destroy")).only_enforce_if(destroyed)
        return _Held(job, places, created, destroyed, create, begin, end, destroy, hold)

    def _chains(self) -> None:
        """Let each job be the first on its instance or follow one, and be the last or be followed by one."""
        model = self.model
        before: list[list[cp_model.IntVar]] = [[held.created] for held in self.held]
        after: list[list[cp_model.IntVar]] = [[] for _ in self.held]
        for one, two in itertools.permutations(range(len(self.held)), 2):
            first, second = self.held[one], self.held[two]
            shared = first.places.keys() & second.places.keys()
            if not shared:
                continue
            follows = model.new_bool_var(f"{two} follows {one}")
            for place in {**first.places, **second.places}:
                if place in shared:
                    model.add(first.places[place] == second.places[place]).only_enforce_if(follows)
                else:
                    chosen = first.places[place] if place in first.places else second.places[place]
                    model.add_implication(follows, ~chosen)
            model.add(first.hold[1] == second.hold[0]).only_enforce_if(follows)
            before[two].append(follows)
            after[one].append(follows)
        for index, held in enumerate(self.held):
            stays = model.new_bool_var(f"{index} stays")
            model.add(held.hold[1] == self.horizon).only_enforce_if(stays)
            model.add_exactly_one(before[index])
            model.add_exactly_one(*after[index], held.destroyed, stays)

    def _slices(self) -> None:
        """Let holds that cover the same memory slice exclude each other; count profiles of which few may exist."""
        model = self.model
        used = self._used()
        for at in range(self.trace.gpus):
            for covering in self._coverings():
                model.add_no_overlap(self._holds(at, covering))
            for profile in dict.fromkeys(place.profile for place in used):
                if profile.max_count < len(profile.starts):
                    holds = self._holds(at, [place for place in used if place.profile == profile])
                    model.add_cumulative(holds, [1] * len(holds), profile.max_count)

    def _loads(self, makespan: cp_model.IntVar) -> None:
        """Let what runs on a memory slice from an arrival on end by the makespan; it does anyway, but this tells it."""
        for arrival in sorted({held.job.arrival for held in self.held}):
            later = [held for held in self.held if held.job.arrival >= arrival]
            for at, covering in itertools.product(range(self.trace.gpus), self._coverings()):
                runs = [
                    (chosen, self.ticks.ceil(held.job.times[place.profile.compute_slices]))
                    for held in later
                    for (gpu, place), chosen in held.places.items()
                    if gpu == at and place in covering
                ]
                load = cp_model.LinearExpr.weighted_sum([run[0] for run in runs], [run[1] for run in runs])
                self.model.add(makespan >= load + self.ticks.ceil(arrival))

    def _used(self) -> list[Placement]:
        """Return the placements that jobs may have, in an order that does not depend on hashes."""
        return list(dict.fromkeys(place for held in self.held for _, place in held.places))

    def _coverings(self) -> list[list[Placement]]:
        """Return for each memory slice of a GPU the placements that cover it, without repetitions."""
        found: list[list[Placement]] = []
        for position in range(self.trace.gpu.memory_slices):
            covering = [place for place in self._used() if position in place.footprint]
            if covering and covering not in found:
                found.append(covering)
        return found

    def _holds(self, gpu: int, covering: Sequence[Placement]) -> list[cp_model.IntervalVar]:
        found = []
        for index, held in enumerate(self.held):
            literals = [chosen for (at, place), chosen in held.places.items() if at == gpu and place in covering]
            if literals:
                there = self.model.new_bool_var(f"{index} there")
                self.model.add(there == sum(literals))
                size = self._time(f"{index} held")
                begin, end = held.hold
                found.append(self.model.new_optional_interval_var(begin, size, end, there, f"{index} hold"))
        return found

    def _drivers(self) -> None:
        model, ceil, costs = self.model, self.ticks.ceil, self.trace.operations
        for gpu in range(self.trace.gpus):
            operations = []
            for held in self.held:
                for kind, happens, begin in (
                    ("create", held.created, held.create),
                    ("destroy", held.destroyed, held.destroy),
                ):
                    by_length: dict[int, list[cp_model.IntVar]] = {}
                    for (at, place), chosen in held.places.items():
                        if at == gpu:
                            by_length.setdefault(ceil(costs.of(kind, place.profile)), []).append(chosen)
                    for length, chosen_ones in by_length.items():
                        if not length:
                            continue
                        there = model.new_bool_var(f"{held.job.name} {kind} of {length}")
                        model.add(there >= sum([happens, *chosen_ones]) - 1)
                        model.add_implication(there, happens)
                        model.add(there <= sum(chosen_ones))
                        operations.append(
                            model.new_optional_fixed_size_interval_var(begin, length, there, f"{kind} {length}")
                        )
            model.add_no_overlap(operations)

    def schedule(self, values: Sequence[int]) -> Schedule:
        """Return the schedule that the values of the variables stand for."""
        runs: list[Run] = []
        operations: list[Operation] = []

        def seconds(variable: cp_model.IntVar) -> float:
            return float(Fraction(values[variable.index]) * self.ticks.length)

        for held in self.held:
            gpu, place = next(where for where, chosen in held.places.items() if values[chosen.index])
            profile = place.profile
            begin = max(seconds(held.begin), held.job.arrival)
            end = round(begin + held.job.times[profile.compute_slices], 9)
            runs.append(Run(held.job.name, gpu, profile.name, place.start, begin, end))
            if values[held.created.index]:
                at = seconds(held.create)
                until = round(at + self.trace.operations.of("create", profile), 9)
                operations.append(Operation("create", gpu, profile.name, place.start, at, until))
            if values[held.destroyed.index]:
                at = seconds(held.destroy)
                until = round(at + self.trace.operations.of("destroy", profile), 9)
                operations.append(Operation("destroy", gpu, profile.name, place.start, at, until))
        return Schedule(tuple(runs), tuple(sorted(operations, key=lambda operation: operation.begin)))


def _allowed(trace: Trace) -> list[list[Profile]]:
    """Return the profiles on which each job may run.

    A job that leaves the choice to the scheduler may also use an instance with more memory than it needs, if another
    job needs that profile.
    """
    used = {profile for job in trace.jobs for profile in whole_run_profiles(trace, job)}
    found = []
    for job in trace.jobs:
        own = whole_run_profiles(trace, job)
        least = {profile.compute_slices: profile.memory_gb for profile in own}
        if job.profile is not None:
            found.append(list(own))
            continue
        larger = [p for p in used if p.memory_gb >= least.get(p.compute_slices, math.inf) and not p.attributes]
        found.append(sorted(larger, key=lambda profile: (profile.compute_slices, profile.memory_gb)))
    return found
