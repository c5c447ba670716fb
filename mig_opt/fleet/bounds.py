"""Lower bounds for a trace, for everybody: schedulers that know the future, preempt, migrate and resize jobs included.

What every schedule has to respect, whatever it does, is used here and nothing else:

* No job runs before it arrives, and none before the first instance that suits it can exist: GPUs start without
  instances, so a creation comes first.
* A job progresses on one instance at a time, at most by the share ``1 / times[s]`` of its work per second on an
  instance with ``s`` compute slices. Replicas and lost work only add to that.
* A PCIe-bound job of factor ``f`` beside ``n - 1`` others on its GPU progresses by ``1 / (times[s] * max(1, f * n))``.
  So all that progress on a GPU use at most the whole *link* if a share ``x`` of the work uses ``x * times[s] * f`` of
  it: the sum of ``f / max(1, f * n)`` over ``n`` jobs is at most ``n * (1 / n)``. The other jobs use nothing of it.
* A GPU has few compute slices, and each of its memory slices belongs to one instance at a time. Give every memory
  slice a weight (or count compute slices): what the instances on a GPU use at any moment is at most what it has. A job
  that does a share ``x`` of its work on a placement uses ``x * times[s] * weight of what it covers``; in all at least
  its *area*, the least over all its placements, whatever the split.

Areas are shares of a GPU times seconds: the fleet gives ``gpus`` of them per second at most. So it does of any mean of
slices and link: what uses at most one of each uses at most one of a weighted mean of both. Where there are several
kinds of GPUs, slices have weights by kind such that a GPU has one on the mean, and a job pays its least over the kinds.
:mod:`mig_opt.fleet.relaxation` has what follows of areas for the ends of jobs.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import truediv

from mig_opt.batch.bounds import Bound, slice_dual_prices
from mig_opt.fleet.job import Job, profiles_on
from mig_opt.fleet.relaxation import Capacity, Relaxation, ends_in_order, last_end, mean_busy_times
from mig_opt.fleet.trace import Trace, batch_of, check_jobs
from mig_opt.gpu.model import GpuModel, Placement, Profile

_SAFE = 1 - 1e-9  # factor on every bound, for the rounding of more than a million additions
_MOST_PRICED = 2_000  # jobs up to which the best weights of the memory slices are searched
_MOST_PAYING = 1_000  # jobs up to which the best prices of the capacity are searched


@dataclass(frozen=True, slots=True)
class TraceBounds:
    """Lower bounds of every schedule of a trace, each list with its best bound first.

    Attributes
    ----------
    makespan : tuple of Bound
        Of the last end of a job, in seconds after the start of the trace.
    completion : tuple of Bound
        Of the sum of all completion times, in seconds.
    jobs : int
        Number of jobs.
    arrivals : float
        Sum of all arrivals: the sum of completion times if nothing took time.
    """

    makespan: tuple[Bound, ...]
    completion: tuple[Bound, ...]
    jobs: int
    arrivals: float

    @property
    def mean_completion(self) -> float:
        """Least mean flow time, from the arrival of a job to its end, in seconds."""
        return max((self.completion[0].value - self.arrivals) / self.jobs, 0.0)


def trace_bounds(trace: Trace, *, resizing: bool = True) -> TraceBounds:
    """Return lower bounds on the makespan and the sum of completion times, for every schedule of a trace.

    Without ``resizing`` they are for schedules in which no running job is migrated to an instance of another size: only
    ``planner`` does that, where times are declared. Where memory grows these bounds are higher. A job that can run
    nowhere is refused.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> jobs = (Job("a", 0.0, {4: 10.0}), Job("b", 5.0, {4: 2.0}), Job("c", 5.0, {4: 4.0}))
    >>> bounds = trace_bounds(Trace(jobs, get_gpu("A30")))
    >>> for bound in bounds.makespan:
    ...     print(bound.name, round(bound.value, 3))
    area of compute slices 16.13
    area of memory slices 16.13
    weighted area 16.13
    latest job 10.13
    >>> round(bounds.completion[0].value, 3)
    34.13
    """
    check_jobs(trace)
    needs = [_Need.of(trace, job, resizing=resizing) for job in trace.jobs]
    ready = [max(job.arrival, need.created) for job, need in zip(trace.jobs, needs, strict=True)]
    seconds = [need.seconds for need in needs]
    alone = [start + least for start, least in zip(ready, seconds, strict=True)]
    shortest = sorted(alone)
    value, name = max((end, job.name) for end, job in zip(alone, trace.jobs, strict=True))
    makespan = [_bound("latest job", value, f"job {name!r} ends its shortest time after its arrival at the least")]
    ends, means, choices = [shortest], [], []
    for name, reason, weigh, link, worth in _weightings(trace, needs):
        areas = [need.areas(weigh, link) for need in needs]
        parts = [[area / trace.gpus for area in own] for own in areas]
        speeds = [max(map(truediv, own, need.lengths)) / trace.gpus for own, need in zip(areas, needs, strict=True)]
        capacity = Capacity.of(trace, _useful_speeds(needs, areas), worth)
        relaxed = Relaxation(capacity, ready, [math.fsum(own) for own in parts], seconds, speeds)
        choices += [relaxed] if any(relaxed.areas) else []  # where nothing uses anything, nothing pays
        ends.append(ends_in_order(relaxed))
        last, since = last_end(relaxed)
        what = f"{reason} of the fleet need this long for the work that can begin at second {since:g} or later"
        makespan.append(_bound(name, last, what))
        means.append(math.fsum(map(_Need.least_end, needs, ready, mean_busy_times(relaxed), parts)))
    highest = [max(each) for each in zip(*ends, strict=True)]
    pooled = [max(each) for each in zip(*ends[1:], strict=True)]
    completion = [
        _bound(
            "shortest times", math.fsum(shortest), "every job ends its shortest time after its arrival at the least"
        ),
        _bound(
            "shared machine",
            math.fsum(pooled),
            "one machine as fast as the whole fleet that always works on the job with the least left has ended as many "
            "jobs at any moment as any schedule",
        ),
        _bound("ends in order", math.fsum(highest), "for each k the k-th end is bounded by both of these at once"),
        _bound(
            "mean busy times",
            max(means),
            "no schedule works earlier on its jobs, on the mean, than one machine as fast as the whole fleet that "
            "always works on the smallest job; and each ends half of its shortest time after its mean at the least",
        ),
    ]
    if len(needs) <= _MOST_PAYING:
        from mig_opt.fleet.capacity_prices import priced_ends

        reason = "jobs that are alone and pay for the capacity that they use end no earlier, less all that can be paid"
        completion.append(_bound("priced capacity", max(map(priced_ends, choices)), reason))
    makespan.sort(key=lambda bound: -bound.value)
    completion.sort(key=lambda bound: -bound.value)
    return TraceBounds(tuple(makespan), tuple(completion), len(trace.jobs), math.fsum(j.arrival for j in trace.jobs))


_Options = tuple[tuple[Profile, float], ...]
"""Profiles, each with the seconds of the whole work of a job there."""


@dataclass(frozen=True, slots=True)
class _Need:
    """Least needs of a job in any schedule."""

    created: float  # seconds before which no instance that suits it can exist
    parts: tuple[tuple[float, _Options], ...]  # shares of its work, each with the profiles on which it can be done
    factor: float  # by how much it slows down for each PCIe-bound job on its GPU; 0 if it is none
    lengths: tuple[float, ...]  # seconds that each part takes, at the least

    @classmethod
    def of(cls, trace: Trace, job: Job, *, resizing: bool = True) -> _Need:
        parts = tuple(
            (
                share,
                tuple(
                    (profile, own.times[profile.compute_slices])
                    for kind in trace.kinds
                    if (own := part.on(kind))
                    for profile in _profiles(kind, own)
                ),
            )
            for share, part in _parts(job, resizing=resizing)
        )
        factor = trace.pcie_factor(job)
        lengths = (share * min(seconds for _, seconds in options) * max(1.0, factor) for share, options in parts)
        created = min(trace.operations.of("create", profile) for profile, _ in parts[0][1])
        return cls(created, parts, factor, tuple(lengths))

    @property
    def seconds(self) -> float:
        return math.fsum(self.lengths)

    def areas(self, weigh: dict[Profile, float], link: float) -> list[float]:
        """Return the least that each part uses of slices with some weights and of the link with the weight ``link``."""
        return [
            share * min(seconds * ((1 - link) * weigh[profile] + link * self.factor) for profile, seconds in options)
            for share, options in self.parts
        ]

    def least_end(self, ready: float, busy: float, areas: Sequence[float]) -> float:
        """Return a bound on the end of the job, given when it is ready and the mean second of its areas."""
        total = math.fsum(areas)
        if total <= 0:
            return ready + self.seconds
        left = after = 0.0
        for part, area in zip(reversed(self.lengths), reversed(areas), strict=True):
            after += area / total * (left + part / 2)
            left += part
        return busy + after


def _useful_speeds(needs: Sequence[_Need], areas: Sequence[Sequence[float]]) -> dict[str, dict[int, float]]:
    """Return, for each kind of GPU and size of instances, the most area that any job gets through there in a second."""
    fastest: dict[str, dict[int, float]] = defaultdict(dict)
    for need, own in zip(needs, areas, strict=True):
        for (share, options), area in zip(need.parts, own, strict=True):
            for profile, seconds in options:
                speed = area / (share * seconds * max(1.0, need.factor))
                size, speeds = profile.compute_slices, fastest[profile.gpu]
                speeds[size] = max(speeds.get(size, 0.0), speed)
    return fastest


def _profiles(gpu: GpuModel, job: Job) -> tuple[Profile, ...]:
    """Return the profiles that suit a job: beside the one that it asks for, larger ones for which it has times.

    Few schedulers use these, for jobs that wait too long for theirs.
    """
    suitable = profiles_on(gpu, job)
    if job.profile is None or len(job.times) == 1:
        return suitable
    asked = gpu.profile(job.profile)
    able = (profile for profile in gpu.profiles if profile.compute_slices in job.times)
    larger = (one for one in able if one.compute_slices > asked.compute_slices)
    return (*suitable, *(one for one in larger if one.memory_slices >= asked.memory_slices))


def _parts(job: Job, *, resizing: bool) -> Iterator[tuple[float, Job]]:
    """Yield shares of the work of a job, each as a job with the memory that it needs there.

    Where memory grows, a job may begin on an instance that would not do later, and be migrated in time. Its memory does
    not matter on a kind of GPU on which it asks for a profile.
    """
    asks = job.profile is not None and not isinstance(job.profile, Mapping)
    if not asks and not resizing:
        yield 1.0, dataclasses.replace(job, memory_gb=job.most_gb, memory_growth=())
        return
    if asks or not job.memory_growth:
        yield 1.0, job
        return
    starts = [0.0, *(share for share, _ in job.memory_growth), 1.0]
    memory = [None, *(gb for _, gb in job.memory_growth)]
    for (begin, end), gb in zip(itertools.pairwise(starts), memory, strict=True):
        if end > begin:
            yield end - begin, dataclasses.replace(job, memory_gb=gb, memory_growth=())


_LINK_WEIGHTS = (1.0, 0.75, 0.5, 0.25)  # weights of the link beside the slices, for traces with PCIe-bound jobs


_Weighting = tuple[str, str, dict[Profile, float], float, dict[GpuModel, float]]
"""Name and reason; for each profile the least share of a GPU's slices; weight of the link; most of each kind of GPU."""


def _weightings(trace: Trace, needs: Sequence[_Need]) -> Iterator[_Weighting]:
    """Yield weights of the slices, and of the links beside them."""
    kinds = trace.kinds
    shares = {kind: len(gpus) / trace.gpus for kind, gpus in kinds.items()}
    one = math.fsum(shares[kind] * kind.compute_slices for kind in kinds)
    compute = {profile: profile.compute_slices / one for kind in kinds for profile in kind.profiles}
    worth = {kind: kind.compute_slices / one for kind in kinds}
    yield "area of compute slices", "the compute slices", compute, 0.0, worth
    even = {kind: [1.0] * kind.memory_slices for kind in kinds}
    yield "area of memory slices", "the memory slices", *_weighted(even, shares)
    if len(trace.jobs) <= _MOST_PRICED:
        prices = slice_dual_prices(batch_of(trace))
        positive = {kind: [max(price, 0.0) for price in prices[kind]] for kind in kinds}
        yield "weighted area", "the memory slices, weighted,", *_weighted(positive, shares)
    if any(need.factor for need in needs):
        for link in _LINK_WEIGHTS:
            what = "PCIe links" if link == 1 else f"PCIe links ({link:.0%}) and compute slices"
            most = {kind: (1 - link) * own + link for kind, own in worth.items()}
            yield f"area of {what}", f"the {what}", compute, link, most


def _weighted(
    weights: Mapping[GpuModel, Sequence[float]], shares: Mapping[GpuModel, float]
) -> tuple[dict[Profile, float], float, dict[GpuModel, float]]:
    """Return the weights of profiles, that of the link, and those of whole GPUs, where a GPU has one on the mean."""
    totals = {kind: math.fsum(own) for kind, own in weights.items()}
    one = math.fsum(shares[kind] * total for kind, total in totals.items())
    covered: dict[Profile, float] = {}
    for kind, own in weights.items():
        for profile in kind.profiles:
            footprints = (Placement(profile, start).footprint for start in profile.starts)
            covered[profile] = min(math.fsum(own[at] / one for at in footprint) for footprint in footprints)
    return covered, 0.0, {kind: total / one for kind, total in totals.items()}


def _bound(name: str, value: float, reason: str) -> Bound:
    return Bound(name, value * _SAFE, reason)
