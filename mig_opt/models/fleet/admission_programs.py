"""Programs for the jobs that a fleet without a queue can accept; they know all arrivals in advance.

A job that is accepted holds a place from its arrival on, for as long as it runs there. At most one instance of a GPU
holds each memory slice (and each profile of which there may be one only): such a set of placements is a *resource*. The
jobs that can hold a resource at once change with each arrival and each end, so it is enough to count them in the
moments before an end that follows an arrival: between two of these nobody comes in whom nobody leaves for.

Three programs, from the weakest to the strongest:

* *With migration* (:func:`migration_program`): in each moment the accepted jobs have to fit on the fleet somehow. The
  instances of a profile are numbers of placements, and these fit if no resource is held more often than there are GPUs:
  footprints are intervals, and intervals of which at most ``n`` cover each point can be given ``n`` colours such that
  those of one colour are disjoint.
* *On one placement* (:func:`pooled_program`): each job keeps its placement, but may change its GPU.
* *On one place* (:class:`PlacesModel`): each job keeps placement and GPU. Its solutions are the admissions.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ortools.sat.python import cp_model

from mig_opt.fleet.admission import AcceptedJob, Admission, AdmissionGoal, admission_weights
from mig_opt.fleet.job import Job, profiles_on, whole_run_profiles_on
from mig_opt.fleet.trace import Trace, check_jobs
from mig_opt.gpu.model import GpuModel, Placement, Profile
from mig_opt.models.solvers.linear import LinearProgram, Variable

UNITS = 1000
"""Weights are counted in whole thousandths, rounded up: slice-seconds to the millisecond."""

_ROUNDING = 1e-6  # part of a thousandth that is taken for an error of rounding
_SAFE = 1 - 1e-9  # factor on the seconds of jobs that migrate: what a run adds up to may be off by rounding

_Interval = tuple[float, float, int]
"""Begin, end, and the number of what holds something meanwhile."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A placement on which a job could be accepted, and until when it would be there."""

    job: int
    placement: int
    end: float


class AdmissionProblem:
    """A trace as the programs see it: its jobs from ``first`` to before ``last``, by default all.

    Without ``as_asked``, :attr:`any_profiles` has every size for which a job has seconds, whatever it asks for.
    """

    def __init__(
        self, trace: Trace, goal: AdmissionGoal, first: int = 0, last: int | None = None, *, as_asked: bool = True
    ) -> None:
        check_jobs(trace)
        self.trace = trace
        self.as_asked = as_asked
        self.goal = goal
        self.jobs = range(first, len(trace.jobs) if last is None else last)
        weights = admission_weights(trace, goal)
        # in thousandths, at least one
        self.weights = {job: max(1, math.ceil(weights[job] * UNITS - _ROUNDING)) for job in self.jobs}
        self.total = sum(self.weights.values())

    @cached_property
    def profiles(self) -> dict[int, tuple[Profile, ...]]:
        """For each job the profiles on which it can run from begin to end."""
        return {job: self._on_kinds(self.trace.jobs[job], whole_run_profiles_on) for job in self.jobs}

    @cached_property
    def placements(self) -> tuple[Placement, ...]:
        """Placements that a job could have."""
        used = {profile for own in (*self.profiles.values(), *self.any_profiles.values()) for profile in own}
        placements = (placement for kind in self.trace.kinds for placement in kind.placements("all"))
        return tuple(placement for placement in placements if placement.profile in used)

    @cached_property
    def any_profiles(self) -> dict[int, tuple[Profile, ...]]:
        """For each job all profiles on which a scheduler may try it, those included where its memory will run out."""
        jobs = self.trace.jobs
        found = {}
        for job in self.jobs:
            asked = jobs[job].profile if self.as_asked else None
            forgetful = replace(jobs[job], memory_gb=None, memory_growth=(), profile=asked)
            found[job] = tuple({*self._on_kinds(forgetful, profiles_on), *self.profiles[job]})
        return found

    def _on_kinds(self, job: Job, profiles: Callable[[GpuModel, Job], Iterable[Profile]]) -> tuple[Profile, ...]:
        """Return the profiles of a job on all kinds of GPUs that can run it."""
        return tuple(each for kind in self.trace.kinds if (own := job.on(kind)) for each in profiles(kind, own))

    @cached_property
    def resources(self) -> tuple[tuple[int, ...], ...]:
        """Sets of placements of which a GPU has one at most, by index."""
        places = self.placements
        found = [
            tuple(i for i, place in enumerate(places) if place.profile.gpu == kind.name and at in place.footprint)
            for kind in self.trace.kinds
            for at in range(kind.memory_slices)
        ]
        single = {place.profile for place in places if place.profile.max_count == 1}
        found += [tuple(i for i, place in enumerate(places) if place.profile == profile) for profile in single]
        return tuple(dict.fromkeys(resource for resource in found if resource))

    @cached_property
    def choices(self) -> tuple[Choice, ...]:
        """Every placement of every job."""
        jobs = self.trace.jobs
        return tuple(
            Choice(job, index, jobs[job].arrival + jobs[job].times[place.profile.compute_slices])
            for job in self.jobs
            for index, place in enumerate(self.placements)
            if place.profile in self.profiles[job]
        )

    def crowds(self) -> Iterator[tuple[int, list[int]]]:
        """Yield the resources, each with the choices that could hold it at once, by their indices."""
        for number, resource in enumerate(self.resources):
            among = set(resource)
            holding = [
                (self.trace.jobs[choice.job].arrival, choice.end, index)
                for index, choice in enumerate(self.choices)
                if choice.placement in among
            ]
            for crowd in crowds(holding):
                yield number, crowd

    def accept(self, chosen: Iterable[Choice]) -> Admission:
        """Return an admission of as many of these jobs as find a GPU, the first ones first, each where it fits best.

        A job that cannot have its placement takes another one if there is one.
        """
        trace, places = self.trace, self.placements
        others: dict[int, list[Choice]] = defaultdict(list)
        for choice in self.choices:
            others[choice.job].append(choice)
        there: list[list[Choice]] = [[] for _ in range(trace.gpus)]
        accepted = []
        for choice in sorted(chosen, key=lambda entry: (trace.jobs[entry.job].arrival, entry.job)):
            now = trace.jobs[choice.job].arrival
            there = [[other for other in held if other.end > now] for held in there]
            for option in (choice, *others[choice.job]):
                place = places[option.placement]
                rooms = (
                    (-sum(places[other.placement].profile.memory_slices for other in held), gpu)
                    for gpu, held in enumerate(there)
                    if not any(place.excludes(places[other.placement]) for other in held)
                )
                found = min(rooms, default=None)
                if found is not None:
                    there[found[1]].append(option)
                    accepted.append(self.accepted(option, found[1]))
                    break
        return Admission(tuple(accepted))

    def accepted(self, choice: Choice, gpu: int) -> AcceptedJob:
        """Return a choice that has found a GPU as what is accepted."""
        place = self.placements[choice.placement]
        return AcceptedJob(self.trace.jobs[choice.job].name, gpu, place.profile.name, place.start)


def crowds(intervals: Sequence[_Interval]) -> Iterator[list[int]]:
    """Yield the sets of intervals, by number, that share a moment; those within a larger one are left out.

    An interval that ends where another begins does not share that moment.

    Examples
    --------
    >>> list(crowds([(0.0, 4.0, 7), (1.0, 2.0, 8), (2.0, 5.0, 9)]))
    [[7, 8], [7, 9]]
    """
    ordered = sorted(intervals)
    ends: list[tuple[float, int]] = []
    for index, (begin, end, number) in enumerate(ordered):
        while ends and ends[0][0] <= begin:
            heapq.heappop(ends)
        heapq.heappush(ends, (end, number))
        following = ordered[index + 1][0] if index + 1 < len(ordered) else float("inf")
        if ends[0][0] <= following:
            yield sorted(number for _, number in ends)


def _largest(found: list[list[int]], most_terms: int | None) -> list[list[int]]:
    """Return the largest crowd of every few in a row, with no more than ``most_terms`` members together."""
    if most_terms is None:
        return found
    every = math.ceil(sum(map(len, found)) / most_terms)
    return [max(found[at : at + every], key=len) for at in range(0, len(found), every)] if every > 1 else found


def migration_program(problem: AdmissionProblem, *, whole: bool, most_terms: int | None = None) -> LinearProgram:
    """Return the program of accepted jobs that fit on the fleet in each moment, however they migrate.

    It minimises the weight of the jobs that are turned away, in thousandths. Numbers of jobs and instances are
    ``whole`` numbers, or else any. With more than ``most_terms`` terms only some moments count, those with most jobs.
    """
    trace, linear = problem.trace, LinearProgram("admission-with-migration")
    rejected = {job: (linear.choice if whole else linear.share)(f"r{job}") for job in problem.jobs}
    kinds = {job: tuple(sorted({(p.gpu, p.id) for p in problem.any_profiles[job]})) for job in problem.jobs}
    of_kind = {kind.name: len(gpus) for kind, gpus in trace.kinds.items()}
    gpus = [of_kind[place.profile.gpu] for place in problem.placements]
    usable = {
        kind: [index for index, place in enumerate(problem.placements) if (place.profile.gpu, place.profile.id) in kind]
        for kind in dict.fromkeys(kinds.values())
    }
    intervals = []
    for job in problem.jobs:
        arrival = trace.jobs[job].arrival
        shortest = min(filter(None, map(trace.jobs[job].seconds, problem.any_profiles[job])))
        intervals.append((arrival, arrival + _SAFE * shortest, job))
    for moment, crowd in enumerate(_largest(list(crowds(intervals)), most_terms)):
        held: dict[int, list[Variable]] = defaultdict(list)
        by_kind = defaultdict(list)
        for job in crowd:
            by_kind[kinds[job]].append(job)
        for number, (kind, own) in enumerate(by_kind.items()):
            counts = []
            for index in usable[kind]:
                name, most = f"y{moment}_{number}_{index}", min(len(own), gpus[index])
                count = linear.number(name, most) if whole else linear.continuous(name, 0, most)
                counts.append(count)
                held[index].append(count)
            terms = [*((count, 1) for count in counts), *((rejected[job], 1) for job in own)]
            linear.at_least(f"run{moment}_{number}", terms, len(own))
        for number, resource in enumerate(problem.resources):
            holding = [(count, 1) for index in resource for count in held[index]]
            if len(holding) > 1:
                linear.at_most(f"hold{moment}_{number}", holding, gpus[resource[0]])
    linear.minimise_sum((variable, problem.weights[job]) for job, variable in rejected.items())
    return linear


def pooled_program(problem: AdmissionProblem) -> tuple[LinearProgram, dict[str, Choice]]:
    """Return the same for jobs that keep their placements, but not their GPUs; and choices by names of variables."""
    linear = LinearProgram("admission-on-one-placement")
    rejected = {job: linear.choice(f"r{job}") for job in problem.jobs}
    taken = [linear.choice(f"z{index}") for index in range(len(problem.choices))]
    of_job = defaultdict(list)
    for variable, choice in zip(taken, problem.choices, strict=True):
        of_job[choice.job].append(variable)
    for job, own in of_job.items():
        linear.equal(f"job{job}", [(rejected[job], 1), *((variable, 1) for variable in own)], 1)
    for number, (_, crowd) in enumerate(problem.crowds()):
        if len(crowd) > problem.trace.gpus:
            linear.at_most(f"hold{number}", [(taken[index], 1) for index in crowd], problem.trace.gpus)
    linear.minimise_sum((variable, problem.weights[job]) for job, variable in rejected.items())
    return linear, {f"z{index}": choice for index, choice in enumerate(problem.choices)}


class PlacesModel:
    """Constraint program of the admissions: every job on one placement of one GPU, or turned away.

    GPUs are alike, so the k-th job is on one of the first k.
    """

    def __init__(self, problem: AdmissionProblem, at_least: int) -> None:
        self.problem = problem
        self.model = cp_model.CpModel()  # minimises the weight of the jobs that are turned away, in thousandths
        order = {job: number for number, job in enumerate(problem.jobs)}
        self._taken = {
            (index, gpu): self.model.new_bool_var(f"z{index}_{gpu}")
            for index, choice in enumerate(problem.choices)
            for gpu in range(min(problem.trace.gpus, order[choice.job] + 1))
        }
        rejected = {job: self.model.new_bool_var(f"r{job}") for job in problem.jobs}
        ways: dict[int, list[cp_model.IntVar]] = defaultdict(list)
        for (index, _), variable in self._taken.items():
            ways[problem.choices[index].job].append(variable)
        for job, variable in rejected.items():
            self.model.add_exactly_one([variable, *ways[job]])
        for (_, crowd), gpu in itertools.product(problem.crowds(), range(problem.trace.gpus)):
            sharing = [self._taken[index, gpu] for index in crowd if (index, gpu) in self._taken]
            if len(sharing) > 1:
                self.model.add_at_most_one(sharing)
        turned_away = cp_model.LinearExpr.weighted_sum(
            list(rejected.values()), [problem.weights[job] for job in rejected]
        )
        self.model.add(turned_away >= at_least)
        self.model.minimize(turned_away)

    def admission(self, values: Sequence[int]) -> Admission:
        """Return the admission of a solution."""
        taken = (place for place, variable in self._taken.items() if values[variable.index])
        return Admission(tuple(self.problem.accepted(self.problem.choices[index], gpu) for index, gpu in taken))
