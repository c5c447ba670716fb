"""Choice of the jobs that are planned next, and backfilling in place of plans where run times are hardly known.

A plan is for some of the waiting jobs: those that nothing may delay any more, those that would end last of all or late
if they waited longer, and else those that are shortest for their weight.

A plan keeps instances free for jobs that are to come; where nobody knows when these can begin, that costs more than it
gains. Then each job begins as soon as there is room for it, placed and moved by the rules of
:class:`~mig_opt.heuristics.fleet.fragmentation_aware.FragmentationAware`. Only for jobs that nothing may delay are
places kept, and the jobs in their way moved.
"""

from __future__ import annotations

import heapq
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from mig_opt.gpu.geometry import NumberedPlace, members
from mig_opt.heuristics.fleet.fragmentation_aware import FragmentationAware
from mig_opt.heuristics.fleet.plans.calibration import Calibration
from mig_opt.heuristics.fleet.plans.problem import WaitingJob, area, share
from mig_opt.simulation.fleet.cluster import Cluster

_MAX_WEIGHT_FACTOR = 1e6  # largest factor by which the weight of a job grows: seconds may be as short as numbers can be
_LONG_SHARE = 0.25  # share of the jobs for which those that are longest are taken, where more wait than are looked at
# Standard deviation of the logarithms of run times from which on plans that only choose an order are of no use.
_MAX_LOG_ERROR = 0.3
_EXACT_LOG_ERROR = 0.02  # the same, up to which one time for all jobs is believed
# Multiple of the speed that a larger instance has to have at least, and of the area that it may take, so that to choose
# sizes is a gain even where times are hardly known.
_GAINFUL_SPEEDUP, _GAINFUL_AREA = 2.0, 1.25
# Standard deviations of the logarithm by which a job may be longer than expected: if it would then be the last to end,
# it is urgent, or goes before shorter ones. Three jobs in twenty are longer than by one, one in forty than by two.
_DEVIATIONS = (1, 2)
_MAX_EXCESS = 4.0  # largest multiple of its expected time that a job is reckoned with for that
_MIN_ALIKE_JOBS = 4  # jobs of which all sizes have one declared time, from which on that says nothing


@dataclass(frozen=True, slots=True)
class Fairness:
    """Rules for jobs that have waited long."""

    doubling_runs: float  # the wait, in shortest runs of a job, that doubles its weight
    # the wait from which on a job is overtaken no more: in its shortest runs and in seconds, both of which count
    overtaken_runs: float
    overtaken_s: float
    by_slowdown: bool  # a second counts the more the shorter a job is
    by_last_end: bool  # jobs that may end last of all are overtaken no more, where times are not known


@dataclass(frozen=True, slots=True)
class KnownJob:
    """Known figures of a job."""

    modes: tuple[tuple[int, float], ...]  # profiles, each with the seconds there
    shortest: float = 0.0  # seconds of its shortest run
    # least seconds for which it keeps the whole fleet busy, and all of the fleet's links
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
        self._fairness, self._calibration = fairness, calibration
        self._learnt = 0
        self._known: dict[int, KnownJob] = {}
        # profiles of jobs, each with its share of a GPU and the declared seconds
        self._declared: dict[int, list[tuple[int, float, float]]] = {}

    def forget(self, job: int) -> None:
        """Forget the profiles of a job: it may be known to need more memory now."""
        self._known.pop(job, None)
        self._declared.pop(job, None)

    def gains_by_size(self, cluster: Cluster, job: int) -> bool:
        """Return True if a job is much faster on some larger instance, and takes hardly more of the fleet there."""
        known = self.known(cluster, job)
        return any(
            known.modes[0][1] >= _GAINFUL_SPEEDUP * seconds
            and area(cluster.trace, cluster.geometry.profiles[profile], seconds) <= _GAINFUL_AREA * known.area
            for profile, seconds in known.modes[1:]
        )

    def choose(self, cluster: Cluster, most: int, further: float, *, long_first: bool = False) -> Choice:
        """Return the jobs that wait, ``most`` at most: urgent ones, the shortest, and some of the longest.

        ``further`` is for how many seconds jobs that are to come are expected to keep the whole fleet busy. Where times
        are not known, jobs that may be the last ones to end if they wait longer are urgent, too; with ``long_first``
        those of which that is less likely go before shorter ones, the longest first.
        """
        now, jobs, fairness = cluster.now, cluster.trace.jobs, self._fairness
        if self._learnt != self._calibration.changes:
            self._learnt = self._calibration.changes
            self._known.clear()
        choice = Choice()
        urgent: list[tuple[float, int]] = []
        others: list[tuple[float, int, float]] = []
        areas = links = 0.0
        for job in cluster.waiting:
            known = self.known(cluster, job)
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
        error = self._calibration.error
        if fairness.by_last_end and error is not None and others:
            ahead = self._ahead_s(cluster, choice.work + further)
            usual = statistics.median(self._known[job].shortest for _, job, _ in others)
            pressing, long = (max(usual, ahead / min(_MAX_EXCESS, math.exp(times * error))) for times in _DEVIATIONS)
            late = {job for _, job, _ in others if self._known[job].shortest > pressing}
            urgent += [(now, job) for job in late]
            others = [
                (-self._known[job].shortest if long_first and self._known[job].shortest > long else turn, job, weight)
                for turn, job, weight in others
                if job not in late
            ]
        first = heapq.nsmallest(most, urgent)
        choice.jobs = [self._waiting(cluster, job, jobs[job].weight, urgent=True) for _, job in first]
        room = most - len(first)
        if len(others) > room:
            longest = heapq.nlargest(int(_LONG_SHARE * room), others)
            others = [*heapq.nsmallest(room - len(longest), set(others) - set(longest)), *longest]
        choice.jobs += [self._waiting(cluster, job, weight) for _, job, weight in sorted(others)]
        return choice

    def _ahead_s(self, cluster: Cluster, work: float) -> float:
        """Return the seconds until what runs, and ``work`` more for the whole fleet, can be done."""
        last = 0.0
        for _, place, end in _expected_ends(cluster, self._calibration, range(cluster.trace.gpus)):
            work += area(cluster.trace, cluster.geometry.placements[place].profile, end - cluster.now)
            last = max(last, end - cluster.now)
        return max(work, last)

    def _waiting(self, cluster: Cluster, job: int, weight: float, *, urgent: bool = False) -> WaitingJob:
        due = cluster.trace.jobs[job].due
        return WaitingJob(job, self._known[job].modes, weight, math.inf if due is None else due, urgent)

    def known(self, cluster: Cluster, job: int) -> KnownJob:
        """Return what is known of a job now."""
        if job in self._known:
            return self._known[job]
        trace, geometry = cluster.trace, cluster.geometry
        requested = trace.jobs[job]
        if job not in self._declared:
            self._declared[job] = [
                (geometry.profile_index(profile), share(trace, profile), requested.times[profile.compute_slices])
                for profile in trace.profiles(requested, cluster.known_need(job))
            ]
        factor = self._calibration.factor(job)
        modes = tuple((profile, seconds * factor) for profile, _, seconds in self._declared[job])
        self._known[job] = known = KnownJob(modes)
        if modes:
            shortest = min(seconds for _, seconds in modes)
            least = min(taken * (seconds * factor) for _, taken, seconds in self._declared[job]) / trace.gpus
            link = trace.pcie_factor(requested) * shortest / trace.gpus
            self._known[job] = known = KnownJob(modes, shortest, least, link, shortest / factor)
        return known


class Backfilling:
    """Backfilling on the cluster of a simulation, and whether plans would be of use."""

    def __init__(self, cluster: Cluster, chooser: JobChooser, calibration: Calibration) -> None:
        # To balance the load of a single GPU would only keep instances from where they fit best.
        self._rules = FragmentationAware(backfill=True, patience=None, load_balancing=cluster.trace.gpus > 1)
        self._rules.watch(cluster)
        self._ranking = cluster.ranking(self._rules.key)
        self._calibration, self._chooser = calibration, chooser
        # The declared seconds by size, as long as they are those of all jobs.
        self._declared: dict[int, float] = {}
        self._alike = True
        self._kept: dict[int, NumberedPlace] = {}  # places for urgent jobs that wait

    def arrived(self, cluster: Cluster, job: int) -> None:
        """Note what a job declares."""
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
        if one_time and self._alike and cluster.coming >= _MIN_ALIKE_JOBS:
            return error is not None and error <= _EXACT_LOG_ERROR
        if error is not None and error <= _MAX_LOG_ERROR:
            return True
        return not self._alike and any(self._chooser.gains_by_size(cluster, job) for job in cluster.waiting)

    def serve(self, cluster: Cluster, further: float, *, draining: bool) -> None:
        """Start the jobs for which there is room, by their length for their weight.

        ``further`` is for how many seconds jobs that are to come are expected to keep the whole fleet busy. Where all
        came at once (``draining``), those that take least of the fleet go before short ones; else the others might
        have no turn. Urgent ones go first; for one without room a place is kept, and what runs there is moved.
        """
        choice = self._chooser.choose(cluster, len(cluster.waiting), further, long_first=not draining)
        jobs, urgent = choice.jobs, {waiting.job for waiting in choice.jobs if waiting.urgent}
        if draining:
            jobs.sort(key=lambda own: 0.0 if own.urgent else self._chooser.known(cluster, own.job).area / own.weight)
        self._kept = {job: place for job, place in self._kept.items() if job in urgent and cluster.present(place[0])}
        refused: set[int] = set()
        closed = False  # true if there is an urgent job for which no place can be kept: nothing overtakes it
        for waiting in jobs:
            profile, kept = waiting.modes[0][0], self._kept.pop(waiting.job, None)
            if profile in refused or (closed and kept is None):
                continue
            place = self._room(cluster, profile)
            if place is None and waiting.urgent:
                kept = kept or self._soonest(cluster, profile)
                closed |= kept is None
                if kept is not None:
                    self._kept[waiting.job] = kept
                    if self._clear(cluster, *kept):
                        place = self._kept.pop(waiting.job)
            elif place is None:
                refused.add(profile)
            if place is not None:
                cluster.start(waiting.job, place[0], self._ample(cluster, waiting, *place))

    def repair(self, cluster: Cluster, gpu: int) -> bool:
        """Migrate jobs after the end of a run on a GPU, if that helps and none is kept there; True if any migrated."""
        return gpu not in dict(self._kept.values()) and self._rules.migrate_to_repair(cluster, gpu)

    def grow(self, cluster: Cluster) -> None:
        """Move jobs that run to instances on which they are faster, the longest first: nobody wants these."""
        jobs, geometry = cluster.trace.jobs, cluster.geometry
        self._kept.clear()

        def seconds(job: int, gpu: int, place: int) -> tuple[float, int]:
            size = geometry.placements[place].profile.compute_slices
            return jobs[job].times[size] * cluster.slowdown(job, gpu), -size

        running = _expected_ends(cluster, self._calibration, range(cluster.trace.gpus))
        for _, *here in sorted((-end, gpu, place) for gpu, place, end in running):
            job = cluster.job_at(*here)
            if job is not None and cluster.movable(job):
                rooms = [self._room(cluster, profile) for profile, _ in self._chooser.known(cluster, job).modes]
                now = seconds(job, *here)
                best, there = min(((seconds(job, *room), room) for room in rooms if room), default=(now, None))
                if best < now and there is not None:
                    cluster.migrate(job, *there)

    def _room(self, cluster: Cluster, profile: int) -> NumberedPlace | None:
        """Return GPU and placement for a job of a profile, beside all that are kept; None if there is no room."""
        blocked: Counter[int] = Counter()  # what is in the way of them: a mask for each GPU
        for gpu, place in self._kept.values():
            blocked[gpu] |= cluster.geometry.conflicts[place]
        found: list[NumberedPlace] = []

        def accept(gpu: int) -> bool:
            state = cluster.states[gpu]
            free = (own for own in self._rules.options(state, profile) if not blocked[gpu] >> own.placement & 1)
            best = min(((self._rules.rank(state, own), own.placement) for own in free), default=None)
            if best is not None:
                found.append((gpu, best[1]))
            return bool(found)

        self._ranking.first(profile, accept)
        return found[0] if found else None

    def _ample(self, cluster: Cluster, waiting: WaitingJob, gpu: int, place: int) -> int:
        """Return where a job is fastest of the places that are in the way of no more than a given one."""
        geometry, own = cluster.geometry, cluster.geometry.conflicts[place]
        return min(
            (seconds, -geometry.profiles[profile].compute_slices, option.placement != place, option.placement)
            for profile, seconds in waiting.modes
            for option in cluster.states[gpu].options(profile)
            if not geometry.conflicts[option.placement] & ~own
        )[-1]

    def _soonest(self, cluster: Cluster, profile: int) -> NumberedPlace | None:
        """Return the place of a profile that is expected to be free first, beside all that are kept."""
        conflicts, kept, ends = cluster.geometry.conflicts, self._kept.values(), {}
        for gpu in filter(cluster.present, range(cluster.trace.gpus)):
            for place in cluster.geometry.placements_of[profile]:
                if not any(gpu == other and conflicts[place] >> at & 1 for other, at in kept):
                    there = _expected_ends(cluster, self._calibration, [gpu], conflicts[place])
                    ends[gpu, place] = max((end for *_, end in there), default=cluster.now)
        return min(ends, key=ends.__getitem__, default=None)

    def _clear(self, cluster: Cluster, gpu: int, place: int) -> bool:
        """Let the jobs in the way of a place go on elsewhere, as far as there is room; return True if none is left."""
        conflicts = cluster.geometry.conflicts[place]
        for other in members(cluster.states[gpu].busy & conflicts):
            job = cluster.job_at(gpu, other)
            assert job is not None
            target = self._room(cluster, cluster.geometry.profile_of[other]) if cluster.movable(job) else None
            if target is not None:
                cluster.migrate(job, *target)
        return not cluster.states[gpu].busy & conflicts


def _expected_ends(
    cluster: Cluster, calibration: Calibration, gpus: Iterable[int], places: int = -1
) -> Iterator[tuple[int, int, float]]:
    """Yield GPU and place of the jobs on some GPUs, on a mask of places, with the seconds at which these end."""
    for gpu in gpus:
        for place in members(cluster.states[gpu].busy & places):
            job = cluster.job_at(gpu, place)
            assert job is not None
            yield gpu, place, cluster.expected_end(job, calibration.factor(job))
