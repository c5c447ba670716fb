"""GPUs that are filled segment after segment, and plans for GPUs of several kinds by methods that plan for one.

A service belongs to the kind of GPU of which it needs the share that costs least. If there are not enough of a kind,
the GPUs with most on them stay, the segments of the others are moved to them as far as they fit, and the rest is left
to the kind that is next best for the service. As this may spread services over more kinds than is good, every kind is
tried as the first choice of all services as well. The plainest such method, ``first-fit``, is here.
"""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

from mig_opt.gpu.model import GpuModel, Placement, Profile
from mig_opt.heuristics.serving.demand_match import SPARE, Need, throughput_per_slice
from mig_opt.method.control import Control
from mig_opt.serving.demand import Demand, Option
from mig_opt.serving.deployment import Deployment, segment_of


@dataclass(frozen=True, slots=True)
class PlannedSegment:
    """A segment, wherever it may be."""

    service: int  # index of the service in the demand
    option: Option  # how it serves

    @property
    def profile(self) -> Profile:
        """The instance."""
        return self.option.profile


def largest_first(segments: Collection[PlannedSegment]) -> list[PlannedSegment]:
    """Return ``segments`` by falling size, and falling memory where sizes are equal; else in the order given."""
    return sorted(segments, key=lambda segment: (-segment.profile.compute_slices, -segment.profile.memory_slices))


@dataclass(slots=True)
class _FilledGpu:
    number: int | None = None  # in the running fleet, if it is a part of that
    staying: tuple[Placement, ...] = ()  # instances that stay there, whatever else is put on it
    held: list[tuple[PlannedSegment, Placement]] = field(default_factory=list)

    @property
    def placements(self) -> tuple[Placement, ...]:
        """All instances."""
        return (*self.staying, *(placement for _, placement in self.held))


class FilledGpus:
    """GPUs of one kind and the segments on them, added one at a time.

    A segment goes to the first GPU that has room for it. GPUs only get fuller, but for those that are cleared, so the
    search goes on where the last one for the same instance ended: what it costs does not grow with the number of GPUs.

    A GPU has at most ``most`` segments. The ``retained`` GPUs of a running fleet are filled first, by number, each with
    the instances that stay on it: these are no segments here, they take up room only.
    """

    def __init__(
        self, gpu: GpuModel, *, most: int | None = None, retained: Iterable[tuple[int, tuple[Placement, ...]]] = ()
    ) -> None:
        self.gpu = gpu
        self._most = math.inf if most is None else most
        self.gpus = [_FilledGpu(*one) for one in retained]
        # For an instance and the starts that are allowed to it the first GPU that may have room.
        self._cursors: dict[tuple[Profile, tuple[int, ...]], int] = {}

    def __len__(self) -> int:
        return len(self.gpus)

    def on(self, index: int) -> tuple[tuple[PlannedSegment, Placement], ...]:
        """Return what is on a GPU, in the order in which it came."""
        return tuple(self.gpus[index].held)

    def compute_slices(self, index: int) -> int:
        """Return the compute slices of all that is on a GPU."""
        return sum(placement.profile.compute_slices for placement in self.gpus[index].placements)

    def segments(self) -> Iterator[PlannedSegment]:
        """Yield all segments, GPU after GPU."""
        return (segment for one in self.gpus for segment, _ in one.held)

    def put(self, segment: PlannedSegment, starts: tuple[int, ...]) -> bool:
        """Put ``segment`` on the first GPU that has room at one of ``starts``, there at the first that is free.

        Returns True if there is such a GPU.
        """
        key = segment.profile, starts
        for index in range(self._cursors.get(key, 0), len(self.gpus)):
            if self.put_on(index, segment, starts):
                self._cursors[key] = index
                return True
        self._cursors[key] = len(self.gpus)
        return False

    def put_new(self, segment: PlannedSegment, starts: tuple[int, ...]) -> None:
        """Put ``segment`` on a further GPU, at the first of ``starts``."""
        self.gpus.append(_FilledGpu())
        self.put_on(len(self.gpus) - 1, segment, starts)

    def put_on(self, index: int, segment: PlannedSegment, starts: tuple[int, ...]) -> bool:
        """Put ``segment`` on a certain GPU, at the first of ``starts`` that is free; return whether there is one."""
        one = self.gpus[index]
        if len(one.held) >= self._most:
            return False
        there = one.placements
        for start in starts:
            placement = self.gpu.placement(segment.profile.name, start)
            if placement.fits_beside(there):
                one.held.append((segment, placement))
                return True
        return False

    def clear(self, index: int) -> list[PlannedSegment]:
        """Empty a GPU, but for what stays, and return what was there."""
        one = self.gpus[index]
        segments = [segment for segment, _ in one.held]
        self.gpus[index] = _FilledGpu(one.number, one.staying)
        self._cursors = {key: min(cursor, index) for key, cursor in self._cursors.items()}
        return segments

    def drop(self, indices: Collection[int]) -> list[PlannedSegment]:
        """Remove GPUs and return what was on them."""
        dropped = set(indices)
        segments = [segment for index in indices for segment, _ in self.gpus[index].held]
        self.gpus = [one for index, one in enumerate(self.gpus) if index not in dropped]
        self._cursors.clear()
        return segments


@cache
def start_order(gpu: GpuModel, profile: Profile) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the preferred start slices of ``profile`` on ``gpu``, best first, and those that are avoided.

    Placements that leave the most compute slices usable come first, the left ones before the right ones. On an A100
    that is the order of the paper's section III-E, which avoids one start: 3g at slice 0, beside which slice 3 is lost.
    Double-memory instances lose compute at nearly every start; for them these are an order only, none is avoided.
    """
    # the most compute slices that instances can have together, one of them there
    usable = {
        start: max(
            sum(other.profile.compute_slices for other in partition)
            for partition in gpu.maximal_partitions("double-memory")
            if gpu.placement(profile.name, start) in partition
        )
        for start in profile.starts
    }
    ordered = sorted(profile.starts, key=lambda start: (-usable[start], start))
    if profile not in gpu.profiles_of("base"):
        return tuple(ordered), ()
    best = sum(usable[start] == usable[ordered[0]] for start in ordered)
    return tuple(ordered[:best]), tuple(ordered[best:])


def fit(gpus: FilledGpus, segment: PlannedSegment) -> bool:
    """Put a segment on the first GPU with room, be it at an avoided start; return whether there is one."""
    preferred, avoided = start_order(gpus.gpu, segment.profile)
    return gpus.put(segment, preferred + avoided)


def put_all(gpus: FilledGpus, segments: Collection[PlannedSegment], *, avoiding: bool = False) -> None:
    """Put every segment, the largest first, on the first GPU with room, or on a new one.

    With ``avoiding``, a further GPU is begun rather than that a segment starts where starts are avoided: that is what
    makes the published counts without optimisation what they are (each 3g there has a GPU of its own).
    """
    for segment in largest_first(segments):
        preferred, avoided = start_order(gpus.gpu, segment.profile)
        if not gpus.put(segment, preferred + (() if avoiding else avoided)):
            gpus.put_new(segment, preferred)


Planner = Callable[[FilledGpus, Sequence[Need]], None]
"""Function that places segments for all needs on GPUs of one kind, on further ones where it takes more."""


def report_plans(
    demand: Demand,
    control: Control[Deployment],
    planner: Planner,
    *,
    most: int | None = None,
    retained: Deployment | None = None,
) -> None:
    """Report what ``planner`` makes of a demand; nothing if there is a service that it finds no GPUs for.

    A GPU has at most ``most`` segments. With ``retained``, a running fleet with the segments that stay as they are,
    only services without any are planned for.
    """
    if demand.unservable():
        return
    for ranks in _rankings(demand):
        if control.plan is not None and control.expired:
            return
        filled = _planned(demand, ranks, planner, most, retained)
        if filled is not None:
            held = ((one.number, one.held) for each in filled for one in each.gpus if one.held)
            control.report_plan(deployment_of(demand, held, retained))


def deployment_of(
    demand: Demand,
    gpus: Iterable[tuple[int | None, Sequence[tuple[PlannedSegment, Placement]]]],
    retained: Deployment | None = None,
) -> Deployment:
    """Return the deployment with what is retained and these segments.

    ``gpus`` are GPUs with at least one segment each, and their numbers in the retained fleet if they are part of it.
    """
    names = [] if retained is None else list(retained.gpus)
    segments = [] if retained is None else list(retained.segments)
    for number, held in gpus:
        if number is None:
            names.append(demand.pools[held[0][0].option.pool].kind.name)
        for segment, placement in held:
            gpu = len(names) - 1 if number is None else number
            segments.append(segment_of(demand.services[segment.service].name, gpu, placement, segment.option))
    return Deployment(tuple(names), tuple(segments), () if retained is None else retained.devices)


def _rankings(demand: Demand) -> Iterator[list[tuple[int, ...]]]:
    """Yield for each service its pools, best first: by the cost of what it needs, then each as first choice."""
    own = []
    for options in demand.options:
        most: defaultdict[int, float] = defaultdict(float)
        for option in options:
            gpu = demand.pools[option.pool].kind
            most[option.pool] = max(most[option.pool], throughput_per_slice(gpu, option) * gpu.compute_slices)
        own.append(tuple(sorted(most, key=lambda pool: (demand.pools[pool].cost / most[pool], -most[pool]))))
    yield own
    seen = [own]
    for first in range(len(demand.pools)):
        ranks = [tuple(sorted(pools, key=lambda pool: pool != first)) for pools in own]
        if ranks not in seen:
            seen.append(ranks)
            yield ranks


def _planned(
    demand: Demand, ranks: Sequence[tuple[int, ...]], planner: Planner, most: int | None, retained: Deployment | None
) -> list[FilledGpus] | None:
    """Return the filled GPUs of a plan by the order of the pools; None if the GPUs do not suffice."""
    filled: dict[int, FilledGpus] = {}
    stays = set() if retained is None else {segment.service for segment in retained.segments}
    # What is still to be served. The pools without a limit come last, they take everything.
    lacks = {
        index: (service.rate, service.min_replicas)
        for index, service in enumerate(demand.services)
        if service.name not in stays
    }
    for number in sorted(range(len(demand.pools)), key=lambda pool: (demand.pools[pool].count is None, pool)):
        pool = demand.pools[number]
        needs = [
            Need(index, *lack, tuple(o for o in demand.options[index] if o.pool == number), pool.kind)
            for index, lack in lacks.items()
            if next((rank for rank in ranks[index] if rank not in filled), None) == number
        ]
        gpus = filled[number] = FilledGpus(pool.kind, most=most, retained=_retained_gpus(retained, pool.kind))
        planner(gpus, needs)
        if pool.count is not None:
            keep(gpus, pool.count)
        for need in needs:
            del lacks[need.service]
        lacks |= {need.service: (need.rate, need.replicas) for need in lacking(needs, gpus)}
    return None if lacks else [filled[number] for number in sorted(filled)]


def _retained_gpus(retained: Deployment | None, gpu: GpuModel) -> list[tuple[int, tuple[Placement, ...]]]:
    """Return the GPUs of one kind in a running fleet, those on which something stays first."""
    if retained is None:
        return []
    staying: defaultdict[int, list[Placement]] = defaultdict(list)
    for segment in retained.segments:
        staying[segment.gpu].append(retained.placement(segment))
    numbers = (number for number in range(len(retained.gpus)) if retained.model(number).name == gpu.name)
    return [(number, tuple(staying[number])) for number in sorted(numbers, key=lambda one: not staying[one])]


def keep(gpus: FilledGpus, count: int) -> None:
    """Make do with ``count`` GPUs, those with most on them; the others' segments go there as far as they fit.

    GPUs on which something stays are kept before all others.
    """
    used = [index for index, one in enumerate(gpus.gpus) if one.placements]
    used.sort(key=lambda index: (not gpus.gpus[index].staying, -gpus.compute_slices(index), index))
    empty = set(range(len(gpus))).difference(used)
    for segment in largest_first(gpus.drop(empty.union(used[count:]))):
        fit(gpus, segment)


def lacking(needs: Sequence[Need], gpus: FilledGpus) -> Iterator[Need]:
    """Yield what the segments on some GPUs leave to be served, of each need that they do not fulfil."""
    given: defaultdict[int, list[float]] = defaultdict(list)
    for segment in gpus.segments():
        given[segment.service].append(segment.option.point.throughput)
    for need in needs:
        served = given[need.service]
        rate, replicas = need.rate - math.fsum(served), need.replicas - len(served)
        # What the stages took for rounding may add up.
        if rate > 4 * need.dust or replicas > 0:
            yield dataclasses.replace(need, rate=max(0.0, rate), replicas=max(0, replicas))


def first_fit(demand: Demand, control: Control[Deployment]) -> None:
    """Give each service segments of its best throughput per slice until it is served, and report where they fit first.

    The largest segments come first, each on the first GPU with room, at the first start slice that is free there. It is
    soon done, limits come into effect only after it.
    """

    def planned(gpus: FilledGpus, needs: Sequence[Need]) -> None:
        segments = []
        for need in needs:
            best = need.best()
            count = math.ceil(need.rate * (1 - SPARE) / best.point.throughput)
            segments += [PlannedSegment(need.service, best)] * max(count, need.replicas)
        for segment in largest_first(segments):
            starts = tuple(sorted(segment.profile.starts))
            if not gpus.put(segment, starts):
                gpus.put_new(segment, starts)

    report_plans(demand, control, planned)
