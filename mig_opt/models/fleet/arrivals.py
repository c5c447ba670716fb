"""Constraint program for the best schedule of a few jobs that arrive over time; it knows all arrivals in advance.

A job has a place (a placement on a GPU) and a run there. It either has an instance created for it, or follows another
job on an instance that exists. After the last job of an instance the driver destroys it, or it stays for ever. From one
job to the next an instance is handed on without a gap. So the *holds* of its jobs cover the lifetime of an instance: a
hold begins with the creation, or where the predecessor's ends, and ends where the successor's begins, with the end of
the destruction, or at the horizon. Holds that cover the same memory slice do not overlap, nor do operations of a GPU.
An instance that runs nothing is of no use; every other schedule without preemption and migration is a solution, however
often it re-creates a placement.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from ortools.sat.python import cp_model

from mig_opt.batch.integer_batch import Ticks, equal_within_resolution
from mig_opt.batch.schedule import Operation, OperationKind, Run, Schedule
from mig_opt.batch.timing import tidy
from mig_opt.fleet.job import Job
from mig_opt.fleet.trace import Trace, check_jobs
from mig_opt.gpu.model import GpuPlacement, Placement, Profile
from mig_opt.method.control import Control
from mig_opt.method.result import Status
from mig_opt.models.solvers import cpsat
from mig_opt.models.solvers.backend import Request

TraceGoal = Literal["makespan", "completion"]
"""Objective: the last end of a job, or the sum of all ends."""


def seconds_of(goal: TraceGoal, schedule: Schedule) -> float:
    """Return the makespan of a schedule or the sum of all its ends, in seconds."""
    ends = (run.end for run in schedule.runs)
    return max(ends) if goal == "makespan" else math.fsum(ends)


def best_schedule(trace: Trace, goal: TraceGoal, control: Control[Schedule], *, at_least: float = 0.0) -> None:
    """Report schedules of a trace of about a dozen jobs with ever less makespan or sum of ends.

    Jobs run alone: PCIe slows nobody down. Schedulers that preempt or migrate jobs can do better. The control judges by
    :func:`seconds_of`; ``at_least`` is a lower bound in seconds, if one is known.
    """
    model = _ArrivalModel(trace, goal, at_least)

    def on_bound(bound: int) -> None:
        least = model.ticks.seconds_below(bound - model.slack)
        control.raise_bound(max(least, at_least), "no solution of the model is better")

    def on_solution(values: Sequence[int]) -> None:
        control.report_plan(model.schedule(values))

    outcome = cpsat.run(model.model, control, Request(on_solution=on_solution, on_bound=on_bound))
    if outcome.values is not None:
        on_solution(outcome.values)
    on_bound(outcome.bound)
    if control.objective is None:
        return
    proven = outcome.status is Status.OPTIMAL or control.objective <= control.lower_bound
    if not model.ticks.exact:  # of rounded times the optimum tells no more than its bound
        proven = equal_within_resolution(control.objective, control.lower_bound)
    if proven:
        control.prove(goal)


@dataclass(frozen=True, slots=True)
class _JobVariables:
    """Variables of a job: its place, and its times in ticks."""

    job: Job
    places: dict[GpuPlacement, cp_model.IntVar]
    created: cp_model.IntVar
    destroyed: cp_model.IntVar
    create: cp_model.IntVar
    begin: cp_model.IntVar
    end: cp_model.IntVar
    destroy: cp_model.IntVar
    hold: tuple[cp_model.IntVar, cp_model.IntVar]

    def operations(self) -> list[tuple[OperationKind, cp_model.IntVar, cp_model.IntVar]]:
        return [("create", self.created, self.create), ("destroy", self.destroyed, self.destroy)]


class _ArrivalModel:
    """The constraint program of a trace."""

    def __init__(self, trace: Trace, goal: TraceGoal, at_least: float) -> None:
        check_jobs(trace)
        self._trace = trace
        self.model = cp_model.CpModel()  # variables, constraints and objective, in ticks
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
        terms = 1 if goal == "makespan" else len(trace.jobs)
        self.ticks = Ticks.for_times(times, longest * terms)
        # Rounded up, each of at most three times of each job makes every end later by up to a tick.
        self.slack = 0 if self.ticks.exact else 4 * len(trace.jobs) * terms
        # Schedules without needless waits end by then: after the last arrival something is always under way.
        self._horizon = self.ticks.ceil(longest) + 4 * len(trace.jobs)

        self._jobs = [self._variables(index, job, allowed[index]) for index, job in enumerate(trace.jobs)]
        # In an order that does not depend on hashes.
        self._used = list(dict.fromkeys(place for job in self._jobs for _, place in job.places))
        coverings = (
            tuple(place for place in self._used if position in place.footprint)
            for position in range(trace.one_kind.memory_slices)
        )
        # For each memory slice of a GPU the placements that cover it, without repetitions.
        self._coverings = list(dict.fromkeys(filter(None, coverings)))
        self._hand_on_instances()
        self._exclude_overlaps()
        self._queue_operations()
        self._minimise(goal, self.ticks.floor(at_least))

    # Variables

    def _time(self, name: str, least: int = 0) -> cp_model.IntVar:
        return self.model.new_int_var(least, self._horizon, name)

    def _variables(self, index: int, job: Job, profiles: Sequence[Profile]) -> _JobVariables:
        model, ceil, costs = self.model, self.ticks.ceil, self._trace.operations
        places = {
            (gpu, Placement(profile, start)): model.new_bool_var(f"{index} at {gpu} {profile.name}@{start}")
            for gpu in range(self._trace.gpus)
            for profile in profiles
            for start in profile.starts
        }
        model.add_exactly_one(places.values())
        created, destroyed = model.new_bool_var(f"{index} created"), model.new_bool_var(f"{index} destroyed")
        create, begin = self._time(f"{index} create"), self._time(f"{index} begin", ceil(job.arrival))
        end, destroy = self._time(f"{index} end"), self._time(f"{index} destroy")
        hold = self._time(f"{index} from"), self._time(f"{index} to")

        def ticks(seconds: Iterable[float]) -> cp_model.LinearExprT:
            return cp_model.LinearExpr.weighted_sum(list(places.values()), [ceil(each) for each in seconds])

        def cost(kind: OperationKind) -> cp_model.LinearExprT:
            return ticks(costs.of(kind, place.profile) for _, place in places)

        model.add(end - begin == ticks(job.times[place.profile.compute_slices] for _, place in places))
        model.add(begin >= hold[0])
        model.add(hold[1] >= end)
        model.add(hold[0] == create).only_enforce_if(created)
        model.add(begin - create >= cost("create")).only_enforce_if(created)
        model.add(destroy >= end).only_enforce_if(destroyed)
        model.add(hold[1] - destroy == cost("destroy")).only_enforce_if(destroyed)
        return _JobVariables(job, places, created, destroyed, create, begin, end, destroy, hold)

    # Constraints

    def _hand_on_instances(self) -> None:
        """Let each job be the first on its instance or follow one, and be the last or be followed by one."""
        model = self.model
        before: list[list[cp_model.IntVar]] = [[job.created] for job in self._jobs]
        after: list[list[cp_model.IntVar]] = [[] for _ in self._jobs]
        for one, two in itertools.permutations(range(len(self._jobs)), 2):
            first, second = self._jobs[one], self._jobs[two]
            shared = first.places.keys() & second.places.keys()
            if not shared:
                continue
            follows = model.new_bool_var(f"{two} follows {one}")
            for place, chosen in {**first.places, **second.places}.items():
                if place in shared:
                    model.add(first.places[place] == chosen).only_enforce_if(follows)
                else:
                    model.add_implication(follows, ~chosen)
            model.add(first.hold[1] == second.hold[0]).only_enforce_if(follows)
            before[two].append(follows)
            after[one].append(follows)
        for index, job in enumerate(self._jobs):
            stays = model.new_bool_var(f"{index} stays")
            model.add(job.hold[1] == self._horizon).only_enforce_if(stays)
            model.add_exactly_one(before[index])
            model.add_exactly_one(*after[index], job.destroyed, stays)

    def _exclude_overlaps(self) -> None:
        """Let holds that cover the same memory slice exclude each other; count profiles of which few may exist."""
        for gpu in range(self._trace.gpus):
            for covering in self._coverings:
                self.model.add_no_overlap(self._holds(gpu, covering))
            for profile in dict.fromkeys(place.profile for place in self._used):
                if profile.max_count < len(profile.starts):
                    holds = self._holds(gpu, [place for place in self._used if place.profile == profile])
                    self.model.add_cumulative(holds, [1] * len(holds), profile.max_count)

    def _holds(self, gpu: int, covering: Sequence[Placement]) -> list[cp_model.IntervalVar]:
        found = []
        for index, job in enumerate(self._jobs):
            literals = [chosen for (at, place), chosen in job.places.items() if at == gpu and place in covering]
            if literals:
                there = self.model.new_bool_var(f"{index} there")
                self.model.add(there == sum(literals))
                size = self._time(f"{index} held")
                begin, end = job.hold
                found.append(self.model.new_optional_interval_var(begin, size, end, there, f"{index} hold"))
        return found

    def _queue_operations(self) -> None:
        model, ceil, costs = self.model, self.ticks.ceil, self._trace.operations
        pairs = [(job, operation) for job in self._jobs for operation in job.operations()]
        for gpu in range(self._trace.gpus):
            operations = []
            for job, (kind, happens, begin) in pairs:
                by_length: dict[int, list[cp_model.IntVar]] = defaultdict(list)
                for (at, place), chosen in job.places.items():
                    if at == gpu and (length := ceil(costs.of(kind, place.profile))):
                        by_length[length].append(chosen)
                for length, places in by_length.items():
                    there = model.new_bool_var(f"{job.job.name} {kind} of {length}")
                    model.add(there >= sum([happens, *places]) - 1)
                    model.add_implication(there, happens)
                    model.add(there <= sum(places))
                    name = f"{kind} {length}"
                    operations.append(model.new_optional_fixed_size_interval_var(begin, length, there, name))
            model.add_no_overlap(operations)

    # Objective

    def _minimise(self, goal: TraceGoal, least: int) -> None:
        ends = [job.end for job in self._jobs]
        if goal == "makespan":
            value = self.model.new_int_var(least, self._horizon, "makespan")
            self.model.add_max_equality(value, ends)
            self._bound_by_loads(value)
        else:
            value = self.model.new_int_var(least, self._horizon * len(ends), "sum of ends")
            self.model.add(value == sum(ends))
        self.model.minimize(value)

    def _bound_by_loads(self, makespan: cp_model.IntVar) -> None:
        """Add redundant constraints: the load of a memory slice from an arrival on ends by the makespan."""
        for arrival in sorted({job.job.arrival for job in self._jobs}):
            later = [job for job in self._jobs if job.job.arrival >= arrival]
            for gpu, covering in itertools.product(range(self._trace.gpus), self._coverings):
                runs = [
                    (chosen, self.ticks.ceil(job.job.times[place.profile.compute_slices]))
                    for job in later
                    for (at, place), chosen in job.places.items()
                    if at == gpu and place in covering
                ]
                load = cp_model.LinearExpr.weighted_sum([run[0] for run in runs], [run[1] for run in runs])
                self.model.add(makespan >= load + self.ticks.ceil(arrival))

    def schedule(self, values: Sequence[int]) -> Schedule:
        runs: list[Run] = []
        operations: list[Operation] = []

        def seconds(variable: cp_model.IntVar) -> float:
            return float(Fraction(values[variable.index]) * self.ticks.length)

        for job in self._jobs:
            gpu, place = next(where for where, chosen in job.places.items() if values[chosen.index])
            profile = place.profile
            begin = max(seconds(job.begin), job.job.arrival)
            end = tidy(begin + job.job.times[profile.compute_slices])
            runs.append(Run(job.job.name, gpu, profile.name, place.start, begin, end))
            for kind, happens, time in job.operations():
                if values[happens.index] and self._trace.one_kind.mig:
                    at = seconds(time)
                    until = tidy(at + self._trace.operations.of(kind, profile))
                    operations.append(Operation(kind, gpu, profile.name, place.start, at, until))
        return Schedule(tuple(runs), tuple(sorted(operations, key=lambda operation: operation.begin)))


def _allowed(trace: Trace) -> list[list[Profile]]:
    """Return the profiles on which each job may run.

    A job that leaves the choice to the scheduler may also use an instance with more memory than it needs, if another
    job needs that profile.
    """
    found = [list(trace.whole_run_profiles(job)) for job in trace.jobs]
    used, plain = set(itertools.chain(*found)), trace.one_kind.profiles_of("double-memory")
    for at, job in enumerate(trace.jobs):
        if job.profile is None:
            least = {profile.compute_slices: profile.memory_gb for profile in found[at]}
            larger = [p for p in used if p.memory_gb >= least.get(p.compute_slices, math.inf) and p in plain]
            found[at] = sorted(larger, key=lambda profile: (profile.compute_slices, profile.memory_gb))
    return found
