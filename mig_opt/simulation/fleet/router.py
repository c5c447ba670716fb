"""Arrivals of jobs at a fleet, and the router that gives each job a kind of GPU where there are several."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

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


class Router(Arrivals):
    """Gives each job the kind of GPU on which it is expected to end first, and keeps it there.

    On a kind with room for it where no other job waits, it begins at once; else it begins when all work that was given
    to this kind and is not done is divided evenly among the compute slices. Then it takes the seconds that schedulers
    know for the smallest instance that it may have. Of equal kinds the first one is taken. Nothing is known of jobs
    that have not arrived; those that arrive in one moment are given kinds one after the other, each with the work of
    those before it. Kinds whose partitions never change and have no instance for the job come last. Without a queue,
    one that finds no place on a kind is offered to the others in this order.

    Parameters
    ----------
    clusters : sequence of Cluster
        The GPUs of each kind, with the jobs that it can run.
    jobs : sequence of sequence of int
        For each kind the numbers of its jobs in the whole trace, rising.
    """

    def __init__(self, clusters: Sequence[Cluster], jobs: Sequence[Sequence[int]]) -> None:
        self.clusters = clusters
        self._places = heapq.merge(*(_places(*part) for part in zip(clusters, range(len(jobs)), jobs, strict=True)))
        self._next = next(self._places, None)
        self.arrival = math.inf if self._next is None else self._next.arrival
        # The jobs of the moment that have not been told yet: the place that each was given, then its other ones.
        self._routed: deque[list[_Place]] = deque()
        self._coming = [0] * len(clusters)  # how many of them each kind is given
        # For jobs that were given a place: the others, where they have not been yet; and compute slices x seconds.
        self._others: dict[tuple[int, int], list[_Place]] = {}
        self._area: dict[tuple[int, int], float] = {}
        self._areas = [0.0] * len(clusters)
        self._rooms = [cluster.ranking(_room) for cluster in clusters]

    def arrive(self) -> tuple[int, int]:
        """Let the next job arrive: return its kind, and its number there."""
        if not self._routed:
            self._route()
        found = self._routed.popleft()
        for place in found:
            self.clusters[place.part].coming = place.number + 1
        _, _, part, number = found[0]
        self._coming[part] -= 1
        following = self._routed[0][0] if self._routed else self._next
        self.arrival = math.inf if following is None else following.arrival
        return part, number

    def more_to_come(self, part: int, now: float) -> bool:
        """Return True if more jobs arrive on a kind in this moment, or may do so."""
        return self._coming[part] > 0 if self._routed else self.arrival == now

    def elsewhere(self, part: int, number: int) -> tuple[int, int] | None:
        """Give a job that finds no place on its kind the next one: return kind and number, None if there is none."""
        others = self._others.get((part, number))
        self.gone(part, number)
        if not others:
            return None
        self._give(others)
        return others[0].part, others[0].number

    def gone(self, part: int, number: int) -> None:
        """Note that a job is done, or left its kind."""
        self._areas[part] -= self._area.pop((part, number), 0.0)
        self._others.pop((part, number), None)

    def _route(self) -> None:
        """Give a kind to each job that arrives in the next moment."""
        while self._next is not None and self._next.arrival == self.arrival:
            job, places = self._next.job, [self._next]
            while (following := next(self._places, None)) is not None and following.job == job:
                places.append(following)
            self._next = following
            places.sort(key=lambda place: (not self._possible(place), self._expected_end(place)))
            self._give(places)
            self._coming[places[0].part] += 1
            self._routed.append(places)

    def _give(self, places: list[_Place]) -> None:
        """Give a job the first of some places."""
        place, *others = places
        area, _, _ = self._work(place)
        self._area[place.part, place.number] = area
        self._areas[place.part] += area
        self._others[place.part, place.number] = others

    def _possible(self, place: _Place) -> bool:
        """Return True if there may be an instance for a job on a kind, whose partitions may never change."""
        cluster, (_, _, profile) = self.clusters[place.part], self._work(place)
        return any(cluster.possible >> each & 1 for each in cluster.geometry.placements_of[profile])

    def _expected_end(self, place: _Place) -> float:
        """Return the seconds until a job ends on a kind."""
        cluster, part = self.clusters[place.part], place.part
        area, seconds, profile = self._work(place)
        if not cluster.waiting and not self._coming[part] and self._rooms[part].best(profile) is not None:
            return seconds
        there = sum(map(cluster.present, range(len(cluster.states)))) if cluster.trace.outages else len(cluster.states)
        slices = cluster.geometry.gpu.compute_slices * there
        return (self._areas[part] + area) / slices + seconds if slices else math.inf

    def _work(self, place: _Place) -> tuple[float, float, int]:
        """Return area and seconds of a job on the smallest instance that it may have on a kind, and its profile."""
        cluster = self.clusters[place.part]
        job = cluster.trace.jobs[place.number]
        profile = cluster.trace.whole_run_profiles(job)[0]
        seconds: float = job.times[profile.compute_slices]
        return profile.compute_slices * seconds, seconds, cluster.geometry.profile_index(profile)


def _places(cluster: Cluster, part: int, jobs: Sequence[int]) -> Iterator[_Place]:
    for number, (job, whole) in enumerate(zip(cluster.trace.jobs, jobs, strict=True)):
        yield _Place(job.arrival, whole, part, number)


def _room(state: GpuState, profile: int) -> int | None:
    """Return 0 if there is room for a profile."""
    return 0 if state.options(profile) else None
