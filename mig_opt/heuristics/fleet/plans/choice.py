"""Choice of the jobs that are planned next, and backfilling in place of plans where run times are hardly known.

A plan is for some of the waiting jobs: those that nothing may delay any more, those that would end last of all or late
if they waited longer, and else those that are shortest for their weight.

A plan keeps instances free for jobs that are to come; where nobody knows when these can begin, that costs more than it
gains. Then each job begins as soon as there is room for it, placed and moved by the rules of
:class:`~mig_opt.heuristics.fleet.fragmentation_aware.FragmentationAware`.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field

from mig_opt.heuristics.fleet.fragmentation_aware import FragmentationAware
from mig_opt.heuristics.fleet.plans.calibration import Calibration
from mig_opt.heuristics.fleet.plans.problem import WaitingJob, area
from mig_opt.simulation.fleet.cluster import Cluster

_MAX_WEIGHT_FACTOR = 1e6  # largest factor by which the weight of a job grows: seconds may be as short as numbers can be
_LONG_SHARE = 0.25  # share of the jobs for which those that are longest are taken, where more wait than are looked at
# Standard deviation of the logarithms of run times from which on plans that only choose an order are of no use.
_MAX_LOG_ERROR = 0.3
_EXACT_LOG_ERROR = 0.02  # the same, up to which one time for all jobs is believed
# Multiple of the speed that a larger instance has to have at least, and of the area that it may take, so that to choose
# sizes is a gain even where times are hardly known.
_GAINFUL_SPEEDUP, _GAINFUL_AREA = 2.0, 1.25
_MIN_RELIABILITY = 0.33  # reliability of declared times below which jobs go in the order of arrival
_MIN_ALIKE_JOBS = 4  # jobs of which all sizes have one declared time, from which on that says nothing
# A job goes first if it is longer than this multiple of the seconds that all known work takes the whole fleet: earlier
# than just in time, since that may be wrong.
_PRESSING_MULTIPLE = 0.67


@dataclass(frozen=True, slots=True)
class Fairness:
    """Rules for jobs that have waited long."""

    doubling_runs: float  # the wait, in shortest runs of a job, that doubles its weight
    # the wait from which on a job is overtaken no more: in its shortest runs and in seconds, both of which count
    overtaken_runs: float
    overtaken_s: float
    by_slowdown: bool  # a second counts the more the shorter a job is


@dataclass(frozen=True, slots=True)
class _Known:
    """Known figures of a job."""

    modes: tuple[tuple[int, float], ...]  # profiles, each with the seconds there
    shortest: float = 0.0  # seconds of its shortest run
    # least seconds that it takes of the fleet, and of the fleet's links
    area: float = 0.0
    link: float = 0.0
    declared: float = 0.0  # seconds of its shortest run as it was declared


@dataclass(slots=True)
class Choice:
    """Jobs to be planned, and what is known of all that wait."""

    # urgent ones first, in the order in which they became urgent; the others by length for their weight
    jobs: list[WaitingJob] = field(default_factory=list)
    waiting: int = 0  # number of jobs that wait and can run
    work: float = 0.0  # seconds for which all that wait would keep the whole fleet busy, at the least
    longest: float = 0.0  # seconds of the longest of the shortest runs
    next_urgent: float = math.inf  # second at which the next job becomes urgent, of those that are not yet


class JobChooser:
    """Choice of waiting jobs of a simulation."""

    def __init__(self, fairness: Fairness, calibration: Calibration) -> None:
        self._fairness = fairness
        self._calibration = calibration
        self._learnt = 0
        self._known: dict[int, _Known] = {}
        self.needed: dict[int, float] = {}  # GB that jobs were seen to need

    def needs(self, job: int, memory_gb: float) -> None:
        """Note the memory that a job needs at least."""
        self.needed[job] = max(memory_gb, self.needed.get(job, 0.0))
        self._known.pop(job, None)

    def plannable(self, cluster: Cluster, job: int) -> bool:
        """Return True if there is a profile on which a job can run."""
        return bool(self._of(cluster, job).modes)

    def area(self, cluster: Cluster, job: int) -> float:
        """Return for how many seconds a job keeps the whole fleet busy, at the least."""
        return self._of(cluster, job).area

    def gains_by_size(self, cluster: Cluster, job: int) -> bool:
        """Return True if a job is much faster on some larger instance, and takes hardly more of the fleet there."""
        trace, geometry = cluster.trace, cluster.geometry
        known = self._of(cluster, job)
        return any(
            known.modes[0][1] >= _GAINFUL_SPEEDUP * seconds
            and area(trace, geometry.profiles[profile], seconds) <= _GAINFUL_AREA * known.area
            for profile, seconds in known.modes[1:]
        )

    def choose(self, cluster: Cluster, most: int) -> Choice:
        """Return the jobs that wait, ``most`` at most: urgent ones, the shortest, and some of the longest."""
        now, jobs, fairness = cluster.now, cluster.trace.jobs, self._fairness
        if self._learnt != self._calibration.changes:
            self._learnt = self._calibration.changes
            self._known.clear()
        choice = Choice()
        urgent: list[tuple[float, int]] = []
        others: list[tuple[float, int, float]] = []
        areas = links = 0.0
        for job in cluster.waiting:
            known = self._of(cluster, job)
            if not known.modes:
                continue
            areas += known.area
            links += known.link
            choice.longest = max(choice.longest, known.shortest)
            arrival, shortest = jobs[job].arrival, known.shortest
            limit = arrival + max(fairness.overtaken_s, fairness.overtaken_runs * max(known.shortest, known.declared))
            if limit <= now:
                urgent.append((limit, job))
                continue
            choice.next_urgent = min(choice.next_urgent, limit)
            # The product of the smallest numbers would be 0.
            growth = 1 + (now - arrival) / max(fairness.doubling_runs * shortest, math.ulp(0.0))
            weight = jobs[job].weight * min(growth, _MAX_WEIGHT_FACTOR)
            if fairness.by_slowdown:
                weight /= shortest
            others.append((shortest / weight, job, weight))
        choice.work = max(areas, links)
        choice.waiting = len(urgent) + len(others)
        first = heapq.nsmallest(most, urgent)
        choice.jobs = [self._waiting(cluster, job, jobs[job].weight, urgent=True) for _, job in first]
        room = most - len(first)
        if len(others) > room:
            longest = heapq.nlargest(int(_LONG_SHARE * room), others)
            others = [*heapq.nsmallest(room - len(longest), set(others) - set(longest)), *longest]
        choice.jobs += [self._waiting(cluster, job, weight) for _, job, weight in sorted(others)]
        return choice

    def _waiting(self, cluster: Cluster, job: int, weight: float, *, urgent: bool = False) -> WaitingJob:
        due = cluster.trace.jobs[job].due
        return WaitingJob(job, self._known[job].modes, weight, math.inf if due is None else due, urgent)

    def _of(self, cluster: Cluster, job: int) -> _Known:
        if job not in self._known:
            self._known[job] = self._look(cluster, job)
        return self._known[job]

    def _look(self, cluster: Cluster, job: int) -> _Known:
        trace, geometry = cluster.trace, cluster.geometry
        requested = trace.jobs[job]
        factor = self._calibration.factor(job)
        modes = tuple(
            (geometry.profile_index(profile), requested.times[profile.compute_slices] * factor)
            for profile in trace.profiles(requested, self.needed.get(job, 0.0))
        )
        if not modes:
            return _Known(())
        shortest = min(seconds for _, seconds in modes)
        least = min(area(trace, geometry.profiles[profile], seconds) for profile, seconds in modes)
        link = trace.pcie_factor(requested) * shortest / trace.gpus
        return _Known(modes, shortest, least, link, shortest / factor)


class Backfilling:
    """Backfilling on the cluster of a simulation, and whether plans would be of use."""

    def __init__(self, cluster: Cluster, chooser: JobChooser, calibration: Calibration) -> None:
        # To balance the load of a single GPU would only keep instances from where they fit best.
        self._rules = FragmentationAware(backfill=True, patience=None, load_balancing=cluster.trace.gpus > 1)
        self._rules.watch(cluster)
        self._ranking = cluster.ranking(self._rules.key)
        self._calibration = calibration
        self._chooser = chooser
        # The declared seconds by size, as long as they are those of all jobs.
        self._declared: dict[int, float] = {}
        self._alike = True
        self._arrived = 0

    def arrived(self, cluster: Cluster, job: int) -> None:
        """Note what a job declares."""
        self._arrived += 1
        for profile in cluster.trace.profiles(cluster.trace.jobs[job]):
            seconds = cluster.trace.jobs[job].times[profile.compute_slices]
            self._alike &= self._declared.setdefault(profile.compute_slices, seconds) == seconds

    def plans_are_of_use(self, cluster: Cluster) -> bool:
        """Return True if what is known of run times is enough to plan with.

        Where jobs slow each other down on the link, or where declared times say how much faster each job is on a
        larger instance, plans gain by places and sizes, however wrong these times are.
        """
        jobs, error = cluster.trace.jobs, self._calibration.error
        if any(cluster.trace.pcie_factor(jobs[job]) > 0 for job in cluster.waiting):
            return True
        one_time = len(self._declared) > len(set(self._declared.values())) == 1
        if one_time and self._alike and self._arrived >= _MIN_ALIKE_JOBS:
            return error is not None and error <= _EXACT_LOG_ERROR
        if error is not None and error <= _MAX_LOG_ERROR:
            return True
        return not self._alike and any(self._chooser.gains_by_size(cluster, job) for job in cluster.waiting)

    def serve(self, cluster: Cluster, further: float, *, draining: bool) -> None:
        """Start the jobs for which there is room on their smallest size: long ones if they press, then short ones.

        ``further`` is for how many seconds jobs that are to come are expected to keep the whole fleet busy. Where all
        came at once (``draining``), those that take least of the fleet go before short ones; else the others might
        have no turn. None overtakes an urgent one.
        """
        choice = self._chooser.choose(cluster, len(cluster.waiting))
        pressing = _PRESSING_MULTIPLE * (choice.work + self._work_that_runs(cluster) + further)
        refused: set[int] = set()
        for waiting in sorted(choice.jobs, key=lambda own: self._turn(cluster, own, pressing, draining)):
            profile = waiting.modes[0][0]
            gpu = None if profile in refused else self._ranking.best(profile)
            if gpu is not None:
                cluster.start(waiting.job, gpu, self._rules.pick(cluster.states[gpu], profile))
            elif waiting.urgent:
                return
            else:
                refused.add(profile)

    def _turn(self, cluster: Cluster, waiting: WaitingJob, pressing: float, draining: bool) -> tuple[int, float]:
        """Return the turn of a job; those with equal ones keep their order, which is by length."""
        if waiting.urgent:
            return 0, 0.0
        reliable = self._calibration.reliability >= _MIN_RELIABILITY
        if not draining and not reliable:
            return 2, waiting.job
        if waiting.shortest > pressing and reliable and self._calibration.error is not None:
            return 1, 0.0
        return 2, self._chooser.area(cluster, waiting.job) / waiting.weight if draining else 0.0

    def repair(self, cluster: Cluster, gpu: int) -> bool:
        """Migrate jobs after the end of a run on a GPU, if that helps; return True if any migrated."""
        return self._rules.migrate_to_repair(cluster, gpu)

    def _work_that_runs(self, cluster: Cluster) -> float:
        """Return for how many seconds the jobs that run would keep the whole fleet busy."""
        work = 0.0
        for gpu in range(cluster.trace.gpus):
            for job in cluster.jobs_on(gpu):
                place = cluster.place(job)
                assert place is not None
                profile = cluster.geometry.profiles[cluster.geometry.profile_of[place[1]]]
                left = cluster.expected_end(job, self._calibration.factor(job)) - cluster.now
                work += area(cluster.trace, profile, left)
        return work
