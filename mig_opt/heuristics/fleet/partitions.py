"""Partitions of GPUs: those of a fleet that stay as they are, and the best one of an idle GPU for waiting jobs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from operator import itemgetter

from mig_opt.errors import InputError, Problem, raise_any
from mig_opt.fleet.job import Job
from mig_opt.fleet.trace import Trace
from mig_opt.gpu.geometry import Geometry
from mig_opt.gpu.model import Placement, Profile
from mig_opt.gpu.partitions import find_partition
from mig_opt.rules import wrong_type
from mig_opt.simulation.fleet.cluster import Cluster


def profile_for(trace: Trace, job: Job, least_gb: float = 0.0) -> Profile | None:
    """Return the profile that a job asks for, else the smallest on which it can run; None if none has the memory."""
    # Where the usual profile of no size has enough, one with more memory may: 1g.10gb in place of 1g.5gb.
    usual = next((profile for profile in trace.profiles(job) if profile.memory_gb >= least_gb), None)
    return usual or next(iter(trace.profiles(job, least_gb)), None)


def fleet_partitions(trace: Trace, partition: str | Sequence[str] | None = None) -> list[tuple[Placement, ...]]:
    """Return the instances that each GPU is to have; refuse partitions that do not exist, or not one for each GPU.

    ``partition`` is a maximal partition for all GPUs, or one for each; several kinds have none in common. By default
    the numbers of instances follow the seconds of work that the jobs ask for on each profile (those that ask for none:
    on their smallest): GPU after GPU gets the partition of the highest quotients of d'Hondt, which divides seats among
    parties.

    Examples
    --------
    >>> from mig_opt import Job, get_gpu
    >>> jobs = (Job("a", 0.0, {4: 60.0}, "4g.20gb"), Job("b", 0.0, {3: 50.0}, "3g.20gb"))
    >>> [" + ".join(map(str, placed)) for placed in fleet_partitions(Trace(jobs, get_gpu("A100"), gpus=2))]
    ['4g.20gb@0 + 3g.20gb@4', '4g.20gb@0 + 3g.20gb@4']
    """
    if partition is None:
        return _by_demand(trace)
    if isinstance(partition, str):
        each = ((find_partition(kind, partition, "double-memory"), gpus) for kind, gpus in trace.kinds.items())
        return [placed for placed, gpus in each for _ in gpus]
    if not isinstance(partition, Sequence):
        raise InputError([wrong_type("partition", partition, "a text such as '4+2+1', or a sequence of such texts")])
    found, problems = [], []
    for index, text in enumerate(partition):
        try:
            found.append(find_partition(trace.kind(min(index, trace.gpus - 1)), text, "double-memory"))
        except InputError as error:
            problems += [Problem(f"partition[{index}]", problem.message) for problem in error.problems]
    if len(partition) != trace.gpus:
        problems.append(Problem("partition", f"must be one for all GPUs or one for each, has {len(partition)}"))
    raise_any(problems)
    return found


def _by_demand(trace: Trace) -> list[tuple[Placement, ...]]:
    demand: defaultdict[str, float] = defaultdict(float)
    for job in trace.jobs:
        profile = profile_for(trace, job)
        if profile is not None:
            demand[profile.name] += job.times[profile.compute_slices]
    partitions: dict[tuple[str, ...], tuple[Placement, ...]] = {}
    for partition in trace.one_kind.maximal_partitions("double-memory"):
        partitions.setdefault(tuple(sorted(placement.profile.name for placement in partition)), partition)
    given: Counter[str] = Counter()

    def quotients(names: Sequence[str]) -> float:
        counts = Counter(given)
        total = 0.0
        for name in names:
            counts[name] += 1
            total += demand[name] / counts[name]
        return total

    chosen = []
    for _ in range(trace.gpus):
        best = max(partitions, key=quotients)
        given.update(best)
        chosen.append(partitions[best])
    return chosen


def partition_places(cluster: Cluster, partition: str | Sequence[str] | None) -> list[tuple[int, ...]]:
    """Return the instances of :func:`fleet_partitions` as numbers of placements."""
    index, found = cluster.geometry.index, fleet_partitions(cluster.trace, partition)
    return [tuple(index(placement.profile.name, placement.start) for placement in placed) for placed in found]


@lru_cache
def most_instances(geometry: Geometry, profile: int) -> tuple[int, ...]:
    """Return as many placements of a profile as a GPU can have, each as far left as possible.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> from mig_opt.gpu.geometry import geometry_of
    >>> tables = geometry_of(get_gpu("A100"))
    >>> [str(tables.placements[place]) for place in most_instances(tables, tables.profile_index(tables.profiles[2]))]
    ['3g.20gb@0', '3g.20gb@4']
    """
    chosen: list[int] = []
    for place in geometry.placements_of[profile]:
        if not geometry.conflicts[place] & geometry.mask(chosen):
            chosen.append(place)
    return tuple(chosen)


def smallest_instances(geometry: Geometry) -> tuple[int, ...]:
    """Return the placements of as many of the smallest instances as a GPU can have."""
    return most_instances(geometry, geometry.profile_index(geometry.gpu.profiles_of("base")[-1]))


def repartition(geometry: Geometry, idle: int, waiting: Mapping[int, int], first: int | None = None) -> tuple[int, ...]:
    """Return the instances to create on a GPU without jobs, so that the most waiting jobs find one of their profile.

    Existing ones (``idle``, a mask) in their way have to be destroyed; among equals, the choice that keeps the most of
    them is taken. Slices that are left are filled with the smallest instances. ``waiting`` has the number of jobs for
    each profile; of the profile ``first`` there has to be an instance, whatever it costs the others.
    """
    least = ((profile, min(count, len(most_instances(geometry, profile)))) for profile, count in waiting.items())
    chosen = _most_served(geometry, idle, tuple(sorted(least)), first)
    new = [place for place in chosen if not idle >> place & 1]
    existing = geometry.mask(chosen) | idle
    for place in new:
        existing &= ~(geometry.conflicts[place] ^ 1 << place)
    for place in smallest_instances(geometry):
        if not geometry.conflicts[place] & existing:
            new.append(place)
            existing |= 1 << place
    return tuple(new)


@lru_cache(maxsize=100_000)
def _most_served(
    geometry: Geometry, idle: int, waiting: tuple[tuple[int, int], ...], first: int | None
) -> tuple[int, ...]:
    """Return the placements on which the most jobs run, by dynamic programming from the last slice to the first."""
    slices = geometry.gpu.memory_slices
    profiles, counts = zip(*waiting, strict=True)
    # For each memory slice what can start there: position of the profile, placement, slice after it.
    starting: list[list[tuple[int, int, int]]] = [[] for _ in range(slices)]
    for position, profile in enumerate(profiles):
        for place in geometry.placements_of[profile]:
            footprint = geometry.placements[place].footprint
            starting[footprint.start].append((position, place, footprint.stop))

    @cache
    def best(start: int, left: tuple[int, ...]) -> tuple[int, int, tuple[int, ...]]:
        """Return jobs served, instances kept and placements from a slice on; ``left`` counts the jobs for each."""
        if start == slices or not any(left):
            return 0, 0, ()
        options = [best(start + 1, left)]
        for position, place, stop in starting[start]:
            if left[position]:
                jobs, kept, rest = best(stop, (*left[:position], left[position] - 1, *left[position + 1 :]))
                # The first instance of the profile that has to be there is worth more than all others.
                required = profiles[position] == first and left[position] == counts[position]
                options.append((jobs + (slices + 1 if required else 1), kept + (idle >> place & 1), (place, *rest)))
        return max(options, key=itemgetter(0, 1))

    return best(0, counts)[2]
