"""Arrivals of jobs at a fleet, and the router that gives each job a kind of GPU where there are several."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mig_opt.fleet.trace import TracePart
from mig_opt.gpu.geometry import GpuState
from mig_opt.simulation.fleet.cluster import Cluster


class Arrivals:
    """Jobs of a trace as they arrive at a fleet of one kind of GPU, from the present moment of the fleet on.

    Attributes
    ----------
    clusters : sequence of Cluster
        The GPUs of each kind, with the jobs that it can run.
    arrival : float
        Second at which the next job arrives; infinite if all have.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.clusters: Sequence[Cluster] = (cluster,)
        self.arrival = self._arrival(cluster)

    def arrive(self) -> tuple[int, int]:
        """Let the next job arrive: return its kind, and its number there."""
        cluster = self.clusters[0]
        job = cluster.coming
        cluster.coming = job + 1
        self.arrival = self._arrival(cluster)
        return 0, job

    def _arrival(self, cluster: Cluster) -> float:
        jobs, coming = cluster.trace.jobs, cluster.coming
        return jobs[coming].arrival if coming < len(jobs) else math.inf

    def more_to_come(self, part: int, now: float) -> bool:  # noqa: ARG002  # there is one kind
        """Return True if more jobs arrive on a kind in this moment, or may do so."""
        return self.arrival == now

    def elsewhere(self, part: int, number: int) -> tuple[int, int] | None:  # noqa: ARG002  # there is nowhere
        """Give a job that finds no place on its kind the next one: return kind and number, None if there is none."""
        return None

    def gone(self, part: int, number: int) -> None:
        """Note that a job is done, or left its kind."""


class _Place(NamedTuple):
    """A job on one of the kinds that can run it."""

    arrival: float
    job: int  # its number in the whole trace
    part: int  # index of the kind
    number: int  # the job's number there
    # the smallest instance that it may have there from begin to end: profile, seconds, compute slices x seconds
    profile: int
    seconds: float
    area: float


class Router(Arrivals):
    """Gives each job the kind of GPU on which it is expected to end first, and jobs that wait to kinds with room.

    On a kind with room for it where no other job waits, it begins at once; else it begins when all work that was given
    to this kind and is not done is divided evenly among the compute slices. Then it takes the seconds that schedulers
    know for the smallest instance that it may have. Of equal kinds the first one is taken. Nothing is known of jobs
    that have not arrived; those that arrive in one moment are given kinds one after the other, each with the work of
    those before it. Kinds whose partitions never change and have no instance for the job come last. Without a queue,
    one that finds no place on a kind is offered to the others in this order. With one, jobs that wait are offered to
    each kind with room where they are expected to end earlier: on their own kind they end as planned, else they begin
    when what is left of the runs there and the work of what waits before them is divided evenly.

    Parameters
    ----------
    clusters : sequence of Cluster
        The GPUs of each kind, with the jobs that it can run.
    parts : sequence of TracePart
        The kinds, each with its jobs and GPUs.
    offering : bool
        Jobs that wait are offered to other kinds. If not, each job keeps its kind.
    running : sequence of int
        GPUs of the jobs that run at the start, which are the first ones of the trace.
    """

    def __init__(
        self, clusters: Sequence[Cluster], parts: Sequence[TracePart], *, offering: bool, running: Sequence[int]
    ) -> None:
        self.clusters, self._parts, self._offering, self._running = clusters, parts, offering, running
        self._places = heapq.merge(*(_places(own, part, parts[part].jobs) for part, own in enumerate(clusters)))
        self._next = next(self._places, None)
        self.arrival = math.inf if self._next is None else self._next.arrival
        # The jobs of the moment that have not been told yet: the place that each was given, then its other ones.
        self._routed: deque[list[_Place]] = deque()
        self._coming = [0] * len(clusters)  # how many of them each kind is given
        # For jobs that were given a place: this one, then the others.
        self._given: dict[tuple[int, int], list[_Place]] = {}
        self._areas = [0.0] * len(clusters)
        self._rooms = [cluster.ranking(_room) for cluster in clusters]
        # Offers that schedulers did not take: by kind, profile and use of PCIe the changes of their kind until then.
        self._refused: dict[tuple[int, int, bool], tuple[int, int, int]] = {}

    def arrive(self) -> tuple[int, int]:
        """Let the next job arrive: return its kind, and its number there."""
        if not self._routed:
            self._route()
        found = self._routed.popleft()
        for place in found:
            self.clusters[place.part].coming = place.number + 1
        part, number = found[0].part, found[0].number
        self._coming[part] -= 1
        following = self._routed[0][0] if self._routed else self._next
        self.arrival = math.inf if following is None else following.arrival
        return part, number

    def more_to_come(self, part: int, now: float) -> bool:
        """Return True if more jobs arrive on a kind in this moment, or may do so."""
        return self._coming[part] > 0 if self._routed else self.arrival == now

    def elsewhere(self, part: int, number: int) -> tuple[int, int] | None:
        """Give a job that finds no place on its kind the next one: return kind and number, None if there is none."""
        others = self._given.get((part, number), [])[1:]
        self.gone(part, number)
        if not others:
            return None
        self._give(others)
        return others[0].part, others[0].number

    def offers(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield jobs that wait, each with another kind on which it may begin at once: kind and number here and there.

        One that waits no more after that has begun there. Where a scheduler does not start one, it is asked for jobs of
        this profile again once it has started or moved others, or a run has ended.
        """
        for part, cluster in enumerate(self.clusters):
            waiting = list(cluster.waiting) if self._offering else []
            able = [other for other in range(len(self.clusters)) if waiting and other != part and self._has_room(other)]
            ahead = cluster.work_left() if able else 0.0
            for number in waiting if able else ():
                if number not in cluster.waiting:  # it has begun meanwhile
                    continue
                own, *others = self._given[part, number]
                for place in others:
                    if place.part in able and self._is_better(place, own, ahead):
                        yield part, number, place.part, place.number
                        if number not in cluster.waiting:
                            self.gone(part, number)
                            self._give([place, own, *(third for third in others if third is not place)])
                            break
                        self._refused[self._like(place)] = self.clusters[place.part].changes
                else:
                    ahead += own.area

    def gone(self, part: int, number: int) -> None:
        """Note that a job is done, or left its kind."""
        places = self._given.pop((part, number), None)
        if places:
            self._areas[part] -= places[0].area

    def _has_room(self, part: int) -> bool:
        """Return True if a kind has room for any instance."""
        profiles = range(len(self.clusters[part].geometry.profiles))
        return any(self._rooms[part].best(profile) is not None for profile in profiles)

    def _is_better(self, place: _Place, own: _Place, ahead: float) -> bool:
        """Return True if a job may begin at once on a kind, and end earlier than where it waits.

        ``ahead`` has the compute slices x seconds that are still to do there before it.
        """
        refused = self._refused.get(self._like(place)) == self.clusters[place.part].changes
        if refused or self._rooms[place.part].best(place.profile) is None:
            return False
        cluster = self.clusters[own.part]
        planned = cluster.planned_end(own.number)
        wait = self._seconds_behind(own, ahead + own.area) if planned is None else planned - cluster.now
        return place.seconds < wait

    def _like(self, place: _Place) -> tuple[int, int, bool]:
        """Return what offers to a kind are told apart by."""
        return place.part, place.profile, self.clusters[place.part].trace.jobs[place.number].pcie_gbps > 0

    def _route(self) -> None:
        """Give a kind to each job that arrives in the next moment."""
        while self._next is not None and self._next.arrival == self.arrival:
            job, places = self._next.job, [self._next]
            while (following := next(self._places, None)) is not None and following.job == job:
                places.append(following)
            self._next = following
            places.sort(key=self._rank)
            self._give(places)
            self._coming[places[0].part] += 1
            self._routed.append(places)

    def _give(self, places: list[_Place]) -> None:
        """Give a job the first of some places."""
        place = places[0]
        self._areas[place.part] += place.area
        self._given[place.part, place.number] = places

    def _rank(self, place: _Place) -> tuple[bool, bool, float]:
        """Return the rank of a kind for a job: first that on which it runs, last those that never have an instance."""
        cluster, part = self.clusters[place.part], self._parts[place.part]
        possible = any(cluster.possible >> each & 1 for each in cluster.geometry.placements_of[place.profile])
        elsewhere = place.job < len(self._running) and self._running[place.job] not in part.gpus
        return elsewhere, not possible, self._expected_end(place)

    def _expected_end(self, place: _Place) -> float:
        """Return the seconds until a job ends on a kind."""
        cluster, part = self.clusters[place.part], place.part
        if not cluster.waiting and not self._coming[part] and self._rooms[part].best(place.profile) is not None:
            return place.seconds
        return self._seconds_behind(place, self._areas[part] + place.area)

    def _seconds_behind(self, place: _Place, area: float) -> float:
        """Return the seconds until a job ends on a kind if it begins when an area is divided evenly there."""
        cluster = self.clusters[place.part]
        gone = cluster.states.count(cluster.geometry.absent) if cluster.log.trace.outages else 0
        slices = cluster.geometry.gpu.compute_slices * (len(cluster.states) - gone)
        return area / slices + place.seconds if slices else math.inf


def _places(cluster: Cluster, part: int, jobs: Sequence[int]) -> Iterator[_Place]:
    for number, (job, whole) in enumerate(zip(cluster.trace.jobs, jobs, strict=True)):
        profile = cluster.trace.whole_run_profiles(job)[0]
        seconds: float = job.times[profile.compute_slices]
        area = profile.compute_slices * seconds
        yield _Place(job.arrival, whole, part, number, cluster.geometry.profile_index(profile), seconds, area)


def _room(state: GpuState, profile: int) -> int | None:
    """Return 0 if there is room for a profile."""
    return 0 if state.options(profile) else None
