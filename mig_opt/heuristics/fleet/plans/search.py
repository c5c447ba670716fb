"""Search for the best plan: lists of jobs improved by simulated annealing, and the schedule of ``method`` if given.

Before it comes an outlook: orders of all jobs that wait, long and short, and when the last of them would end by these.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from mig_opt.batch.batch import Batch
from mig_opt.batch.bounds import best_lower_bound
from mig_opt.batch.schedule import Schedule
from mig_opt.heuristics.fleet.plans.list_decoder import (
    AnnealingLimits,
    DecoderProblem,
    Floats,
    Integers,
    JobList,
    Objective,
    PlanSums,
    Workspace,
    anneal,
    decode_each,
    plan_value,
)
from mig_opt.heuristics.fleet.plans.plan import Plan, PlannedRun, plan_by_schedule, plan_in_order
from mig_opt.heuristics.fleet.plans.problem import PlanningProblem
from mig_opt.method.control import Control, call
from mig_opt.method.options import RunOptions
from mig_opt.method.registry import get_method

AREA_WEIGHTS = (1.0, 0.5, 0.0)
"""Weights of areas in the simple lists."""

# Placements that are compared in one annealing; with many jobs and GPUs there are fewer rounds.
_MAX_PLACEMENTS_COMPARED = 2_000_000
_ANY_END_S = 1e300  # second that every end is before
_MARGINS = (0.0, 0.05, 0.1, 0.2, 0.35, 0.6)  # shares of the target by which long jobs begin earlier than just in time
_NEGLIGIBLE_S = 1e-6  # seconds that are no reason to change a plan
# If PCIe-bound jobs wait and more are expected, annealings with fewer rounds are left out: simple lists do as well.
_MAX_LATER_JOBS, _MIN_ROUNDS = 1.0, 300
_MAX_JOBS_X_GPUS = 400  # number of jobs x GPUs above which no method for batches is asked


@dataclass(frozen=True, slots=True)
class PriorityList:
    """List of jobs that is kept from plan to plan: job indices in order, the profile of each whose mode is fixed."""

    profiles: dict[int, int | None] = field(default_factory=dict)
    area_weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Effort:
    """Effort for each plan."""

    method: str | None  # method for batches that is asked; None: none is
    work: float  # its seconds of counted work
    rounds: int  # rounds of each annealing, at most
    seed: int  # seed of both
    starts: int  # number of lists from which simulated annealing starts, at most: the best ones
    ends: float = math.inf  # value of ``time.perf_counter`` at which the decision has to be there


@dataclass(frozen=True, slots=True)
class Coming:
    """Knowledge and expectations beside the jobs that are looked at."""

    horizon: float  # seconds before which what runs and what waits cannot be done
    arrivals: float  # jobs expected to arrive until then
    further: float  # seconds for which jobs that are yet to arrive are expected to keep the whole fleet busy
    others: float = 0.0  # jobs that wait and are not looked at


@dataclass(frozen=True, slots=True)
class Stakes:
    """Worth of ends to somebody, in seconds of one job of the mean weight that ends later."""

    last: float  # a second by which the last job of all ends later
    beyond: float  # besides, a second by which it ends after the target
    tolerance: float  # share by which the target is later than the earliest last end that was found
    tardiness: float  # seconds of the mean end that a second of the mean tardiness counts
    balance: float | None = None  # in place of ``last`` and ``beyond``: weight of the last end, 1 less that of the mean

    def objective(self, jobs: int, coming: Coming, others: float, horizon: float) -> Objective:
        """Return the objective of a plan for some jobs, beside others that wait."""
        later = coming.arrivals / 2 + others
        # Later jobs fill the gaps at the end of a plan.
        share = 1 + coming.arrivals + others
        if self.balance is not None:
            balance = self.balance / share
            beyond = max(0.0, min(1.0, 2 / jobs) * self.balance - balance)
        else:
            balance = self.last / share / (self.last / share + jobs)
            beyond = (1 - balance) * self.beyond / jobs
        return Objective(balance, later, horizon, beyond, self.tardiness)


def simple_lists(arrays: DecoderProblem, arrival: Integers) -> list[JobList]:
    """Return the jobs as they are (short ones first), in the order of arrival, and long ones first."""
    offsets, area = arrays.jobs.offsets, arrays.jobs.area
    short = np.arange(len(arrival))
    free = np.full(len(arrival), -1)
    smallest = np.array([area[begin:end].argmin() for begin, end in itertools.pairwise(offsets.tolist())])
    return [
        JobList(order, modes, weight)
        for order in (short, arrival, short[::-1].copy())
        for modes, weight in (*((free, weight) for weight in AREA_WEIGHTS), (smallest, 1.0))
    ]


def outlook_of(
    arrays: DecoderProblem, urgent: int, arrival: Integers, further: float, workspace: Workspace
) -> tuple[float, list[tuple[JobList, PlanSums]]]:
    """Return the least seconds until the last end in any of some orders of all jobs that wait, and these, decoded.

    The first ``urgent`` jobs stay first; the others are given by length for their weight. Short jobs first is best for
    the mean flow time, long jobs first for the makespan. In between are orders in which short jobs go first, and a long
    one when it has to begin to end by a target: *just in time*, or earlier by some margin.
    """
    jobs, count = arrays.jobs, len(arrival)
    free, begins = np.full(count, -1), jobs.offsets[:-1]

    def ordered(keys: Floats, area_weight: float) -> JobList:
        keys[:urgent] = -np.inf
        return JobList(np.argsort(keys, kind="stable"), free, area_weight)

    fastest = np.minimum.reduceat(jobs.seconds, begins)
    best = np.minimum.reduceat(jobs.area, begins)
    # Seconds on the size that takes least of the fleet, of equals on the fastest.
    ample = np.where(jobs.area <= np.repeat(best, np.diff(jobs.offsets)) * (1 + 1e-9), jobs.seconds, _ANY_END_S)
    lengths = (fastest, np.minimum.reduceat(ample, begins))
    short = JobList(np.arange(count), free, 1.0)
    found = decode_each(arrays, [short], workspace)
    turns = np.empty(count)
    turns[short.order] = workspace.begin[:count]
    lists = [ordered(arrival.astype(float), 1.0)]
    lists += [ordered(-length, weight) for length in lengths for weight in AREA_WEIGHTS]
    found += decode_each(arrays, lists, workspace)
    earliest = min(sums.last for sums in found)
    target = (earliest if earliest < np.inf else arrays.objective.horizon) + further
    timely = [
        ordered(np.minimum(turns, target * (1 - margin) - length), 1.0) for margin in _MARGINS for length in lengths
    ]
    found += decode_each(arrays, timely, workspace)
    return min(sums.last for sums in found), list(zip([short, *lists, *timely], found, strict=True))


class PlanSearch:
    """Search for the best plan of a problem with at least one job, and a placement for each."""

    def __init__(self, problem: PlanningProblem, coming: Coming, stakes: Stakes, effort: Effort) -> None:
        self._whole, self._coming, self._stakes, self._effort = problem, coming, stakes, effort
        self.complete = False
        """True if the plan has all jobs that wait."""
        self._look_at(problem, coming.others, coming.horizon)

    def _look_at(self, problem: PlanningProblem, others: float, horizon: float) -> None:
        """Search among the plans of a problem from now on, beside a number of other jobs that wait."""
        self._problem, self._count = problem, len(problem.jobs)
        self._arrays = problem.for_decoder(self._stakes.objective(self._count, self._coming, others, horizon))
        self._urgent = [number for number, waiting in enumerate(problem.jobs) if waiting.urgent]
        self._contention = bool(problem.job_arrays.factor.any())
        self._arrival = np.argsort([waiting.job for waiting in problem.jobs])
        gpu, place = np.empty((2, self._count), np.int64)
        self._workspace = Workspace(gpu, place, *np.empty((2, self._count)))
        self._limit_urgent()

    def best(self, previous: PriorityList, current: Plan | None, most: int) -> tuple[Plan, PriorityList]:
        """Return the best plan for ``most`` jobs, and its list for the next search.

        ``previous`` is the list of the last search, ``current`` the plan that is being carried out, if all goes as
        planned: it is kept unless there is a better one.
        """
        further = self._coming.further
        earliest, lists = outlook_of(self._arrays, len(self._urgent), self._arrival, further, self._workspace)
        target = earliest * (1 + self._stakes.tolerance) + further
        objective = self._stakes.objective(self._count, self._coming, self._coming.others, target)
        chosen, _ = min(lists, key=lambda own: plan_value(objective, own[1]))
        first = chosen.order[:most].tolist()
        left_out = self._count - len(first)
        self.complete = not left_out and not self._coming.others
        if left_out:
            # In their old order, which is by length.
            numbers = sorted(first)
            first = [numbers.index(number) for number in first]
            self._look_at(self._whole.of_jobs(numbers), self._coming.others + left_out, target)
        else:
            self._arrays = self._problem.for_decoder(objective)
        solved = self._solve()
        starts = [JobList(np.array(first, np.int64), self._free_modes(), 1.0)]
        starts += [*simple_lists(self._arrays, self._arrival), *self._previous_list(previous)]
        if solved is not None:
            starts += self._lists_of(*solved)
        starts = list(map(self._urgent_first, starts))
        # Equal values are often the same plan: the first is enough.
        by_value: dict[float, JobList] = {}
        for start, sums in zip(starts, decode_each(self._arrays, starts, self._workspace), strict=True):
            by_value.setdefault(plan_value(self._arrays.objective, sums), start)
        best, chosen = np.inf, by_value[min(by_value)]
        rounds = self._rounds()
        values = sorted(by_value)[: self._effort.starts if rounds else 1]
        for turn, value in enumerate(values):
            start = by_value[value]
            trial = JobList(start.order.copy(), start.modes.copy(), start.area_weight)
            left = (self._effort.ends - time.perf_counter()) / (len(values) - turn)
            found = value
            if rounds and left > 0:
                limits = AnnealingLimits(rounds, left, self._effort.seed)
                found = anneal(self._arrays, trial, limits, self._workspace)
            if found < best:
                best, chosen = found, trial
        advised = None if solved is None else plan_by_schedule(self._problem, *solved)
        advised_value = np.inf if advised is None else self._value(advised.runs.values())
        if current is not None and self._current_value(current) <= min(best, advised_value) + _NEGLIGIBLE_S:
            return current, previous
        jobs = [(self._problem.jobs[number], int(chosen.modes[number])) for number in chosen.order]
        profiles = {waiting.job: waiting.modes[mode][0] if mode >= 0 else None for waiting, mode in jobs}
        found_list = PriorityList(profiles, chosen.area_weight)
        if advised is not None and advised_value < best:
            return advised, found_list
        decode_each(self._arrays, [chosen], self._workspace)
        return plan_in_order(self._problem, self._decoded(chosen.order)), found_list

    @property
    def objective(self) -> Objective:
        """Goal that the plan is the best for."""
        return self._arrays.objective

    def _solve(self) -> tuple[Batch, Schedule] | None:
        """Return the schedule of the exact method, unless it knows too little or would take too long."""
        problem, effort = self._problem, self._effort
        if effort.method is None or self._contention or self._count * len(problem.gpus) > _MAX_JOBS_X_GPUS:
            return None
        batch, method = problem.batch(), get_method(effort.method)
        control = Control[Schedule](RunOptions(time_limit=effort.work, seed=effort.seed, deterministic=True))
        control.begin()
        control.raise_bound(best_lower_bound(batch))
        # Ctrl-C is for the whole simulation, so nothing is caught here.
        for one in (get_method("far"), method)[not method.warm_start :]:
            if not control.done:
                call(one, batch, control)
        return None if control.plan is None else (batch, control.plan)

    def _limit_urgent(self) -> None:
        """Let no plan delay the urgent jobs: each ends as early as if they came first, in their order."""
        if not self._urgent:
            return
        latest = self._arrays.jobs.latest
        latest[self._urgent] = _ANY_END_S
        first = JobList(np.array(self._urgent, np.int64), self._free_modes(), 1.0)
        decode_each(self._arrays, [first], self._workspace)
        latest[self._urgent] = self._workspace.end[: len(self._urgent)] + _NEGLIGIBLE_S

    def _urgent_first(self, jobs: JobList) -> JobList:
        """Return a list with the urgent jobs first, on any size."""
        if not self._urgent:
            return jobs
        modes = jobs.modes.copy()
        modes[self._urgent] = -1
        order = list(dict.fromkeys([*self._urgent, *jobs.order.tolist()]))
        return JobList(np.array(order, np.int64), modes, jobs.area_weight)

    def _previous_list(self, previous: PriorityList) -> Iterator[JobList]:
        """Yield the list of the last search, with new jobs last."""
        numbers = {waiting.job: number for number, waiting in enumerate(self._problem.jobs)}
        known = [job for job in previous.profiles if job in numbers]
        if known:
            modes = self._free_modes()
            for job in known:
                modes[numbers[job]] = self._problem.jobs[numbers[job]].mode(previous.profiles[job])
            order = [numbers[job] for job in dict.fromkeys([*known, *numbers])]
            yield JobList(np.array(order, np.int64), modes, previous.area_weight)

    def _lists_of(self, batch: Batch, schedule: Schedule) -> Iterator[JobList]:
        """Yield the jobs in the order of a schedule, and short ones first, on the sizes that they have there."""
        jobs, profiles = self._problem.jobs, self._problem.cluster.geometry.profiles
        modes = self._free_modes()
        order = []
        for run in sorted(schedule.runs, key=lambda run: (run.begin, run.gpu, run.start)):
            number = int(run.task)
            sizes = [profiles[profile].compute_slices for profile, _ in jobs[number].modes]
            modes[number] = sizes.index(batch.kind(run.gpu).profile(run.profile).compute_slices)
            order.append(number)
        yield JobList(np.array(order, np.int64), modes, 1.0)
        short = sorted(order, key=lambda number: jobs[number].modes[modes[number]][1] / jobs[number].weight)
        yield JobList(np.array(short, np.int64), modes, 1.0)

    def _free_modes(self) -> Integers:
        return np.full(self._count, -1, np.int64)

    def _rounds(self) -> int:
        """Return the rounds of an annealing; 0 if they are too few for more than a fit to the model of the link."""
        placements_of = self._problem.cluster.geometry.placements_of
        placements = sum(len(placements_of[profile]) for waiting in self._problem.jobs for profile, _ in waiting.modes)
        most = _MAX_PLACEMENTS_COMPARED // (placements * len(self._problem.gpus))
        coarse = self._contention and self._arrays.objective.later >= _MAX_LATER_JOBS
        return 0 if coarse and most < _MIN_ROUNDS else min(self._effort.rounds, most)

    def _decoded(self, order: Integers) -> list[PlannedRun]:
        problem, runs = self._problem, self._workspace
        return [
            PlannedRun(problem.jobs[number].job, problem.gpus[gpu], place, problem.now + begin, problem.now + end)
            for number, gpu, place, begin, end in zip(order, *(column.tolist() for column in runs), strict=True)
        ]

    def _current_value(self, plan: Plan) -> float:
        """Return the value of a plan for the jobs of the problem; infinite if it lacks some of them."""
        jobs = [waiting.job for waiting in self._problem.jobs]
        return self._value(plan.runs[job] for job in jobs) if plan.runs.keys() >= set(jobs) else np.inf

    def _value(self, runs: Iterable[PlannedRun]) -> float:
        problem, jobs = self._problem, self._problem.job_arrays
        numbers = {waiting.job: number for number, waiting in enumerate(problem.jobs)}
        profile_of = problem.cluster.geometry.profile_of
        weight = ends = areas = last = late = 0.0
        for run in runs:
            number = numbers[run.job]
            mode = int(jobs.offsets[number]) + problem.jobs[number].mode(profile_of[run.placement])
            end = run.end - problem.now
            if end > jobs.latest[number]:
                return np.inf
            weight += float(jobs.weight[number])
            ends += float(jobs.weight[number]) * end
            areas += float(jobs.area[mode])
            last = max(last, end)
            late += float(jobs.weight[number]) * max(0.0, end - float(jobs.due[number]))
        return plan_value(self._arrays.objective, PlanSums(weight, ends, areas, late, last))
