"""Alignment of a new deployment with the running fleet: the numbers of its GPUs and the places of its segments."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from mig_opt.gpu.model import GpuModel
from mig_opt.serving.deployment import Deployment, Segment
from mig_opt.validation.serving.deployments import check_instances

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Arrangement = Mapping[str, tuple[int, ...]]
"""The start slices of instances on a GPU, ascending, by profile name."""
Filling = tuple[str, int, int]
"""Service, batch size and processes: how an instance is filled."""
Running = Mapping[tuple[str, int], Filling]
"""Filling of each instance of a GPU, by profile name and start slice."""
Wanted = frozenset[tuple[tuple[str, Filling], int]]
"""Numbers of instances of a GPU to fill, for each profile and filling."""


def align(running: Deployment, deployment: Deployment) -> Deployment:
    """Number the GPUs of a deployment, and place its segments on them, so that the fewest segments change.

    GPUs of one kind are interchangeable, and so are the ways to place the instances of a GPU. The result has the same
    instances beside each other, filled the same way, on GPUs of the same kind as ``deployment``; of all deployments
    like that it has the fewest changes (:meth:`Deployment.changes_to`). This is an assignment problem between GPUs,
    with the best arrangement within each pair, and is solved exactly. Where a GPU leaves a choice, new instances are on
    slices that are free already, so that they can serve before anything ends.

    Parameters
    ----------
    running : Deployment
        What is running now, with all GPUs of the fleet: those without segments count as there to be used.
    deployment : Deployment
        What is to run.

    Returns
    -------
    Deployment
        Its GPUs are those of ``running``, by the same numbers, and then those that ``deployment`` needs besides. A GPU
        on which nothing stays is an idle one if there is one. The segments are in the order of ``deployment``.

    Raises
    ------
    InputError
        If one of the deployments has instances that cannot exist.

    Examples
    --------
    >>> one = Segment("chat", 0, "2g.20gb", 0, batch=8, processes=1, throughput=230.0, latency=0.034)
    >>> running = Deployment(("A100-80GB", "A100-80GB"), (one, dataclasses.replace(one, service="search", gpu=1)))
    >>> moved = dataclasses.replace(one, service="search", start=4)
    >>> aligned = align(running, Deployment(("A100-80GB",), (moved,)))
    >>> [(segment.gpu, segment.start) for segment in aligned.segments], running.changes_to(aligned)
    ([(1, 0)], 1)
    """
    check_instances(running=running, deployment=deployment)
    old, new = _by_gpu(running), _by_gpu(deployment)
    kinds = {gpu: deployment.model(gpu) for gpu in new}
    partners: dict[int, int] = {}
    for kind in {kind.name: kind for kind in kinds.values()}.values():
        ours = {gpu: old.get(gpu, ()) for gpu in range(len(running.gpus)) if running.model(gpu).name == kind.name}
        partners |= _matched(kind, ours, {gpu: new[gpu] for gpu in new if kinds[gpu].name == kind.name})
    added = [gpu for gpu in new if gpu not in partners]
    partners |= {gpu: number for number, gpu in enumerate(added, start=len(running.gpus))}
    starts: dict[Segment, int] = {}
    for gpu, partner in partners.items():
        starts |= _arranged(kinds[gpu], _filled(old.get(partner, ())), new[gpu])
    segments = (
        dataclasses.replace(segment, gpu=partners[segment.gpu], start=starts[segment])
        for segment in deployment.segments
    )
    return Deployment((*running.gpus, *(kinds[gpu].name for gpu in added)), tuple(segments), running.devices)


def _by_gpu(deployment: Deployment) -> dict[int, tuple[Segment, ...]]:
    ordered = sorted(deployment.segments, key=lambda segment: (segment.gpu, segment.start))
    return {gpu: tuple(segments) for gpu, segments in itertools.groupby(ordered, key=lambda segment: segment.gpu)}


def _filling(segment: Segment) -> Filling:
    return segment.service, segment.batch, segment.processes


def _filled(segments: Iterable[Segment]) -> Running:
    return {(segment.profile, segment.start): _filling(segment) for segment in segments}


# Between GPUs


def _matched(
    kind: GpuModel, old: Mapping[int, Sequence[Segment]], new: Mapping[int, Sequence[Segment]]
) -> dict[int, int]:
    """Return the GPUs of the running fleet that take the new ones of one kind, as many as there are."""
    from mig_opt.models.serving.matches import best_matching

    ours: dict[frozenset[tuple[tuple[str, int], Filling]], list[int]] = defaultdict(list)
    for gpu, segments in old.items():
        ours[frozenset(_filled(segments).items())].append(gpu)
    theirs: dict[Wanted, list[int]] = defaultdict(list)
    for gpu, segments in new.items():
        counts = Counter((segment.profile, _filling(segment)) for segment in segments)
        theirs[frozenset(counts.items())].append(gpu)
    gains = _gains(kind, [dict(state) for state in ours], list(theirs))
    pairs = best_matching(gains, [len(group) for group in theirs.values()], [len(group) for group in ours.values()])
    left = {state: iter(group) for state, group in enumerate(ours.values())}
    partners: dict[int, int] = {}
    for row, group in enumerate(theirs.values()):
        waiting = iter(group)
        for state in pairs[row].nonzero()[0]:
            partners |= {next(waiting): next(left[int(state)]) for _ in range(pairs[row, state])}
    # On an idle GPU nothing has to end before something new begins.
    free = sorted(old.keys() - set(partners.values()), key=lambda gpu: (bool(old[gpu]), gpu))
    alone = (gpu for gpu in new if gpu not in partners)
    return partners | dict(zip(alone, free, strict=False))


def _gains(kind: GpuModel, old: Sequence[Running], new: Sequence[Wanted]) -> NDArray[np.int64]:
    """Return how many segments can stay if a new GPU (row) takes the place of an old one."""
    import numpy as np

    holders: dict[tuple[str, int, Filling], NDArray[np.int64]] = {}
    for index, state in enumerate(old):
        for (name, start), filling in state.items():
            holders.setdefault((name, start, filling), np.zeros(len(old), dtype=np.int64))[index] = 1
    nowhere = np.zeros(len(old), dtype=np.int64)

    @cache
    def holding(name: str, starts: tuple[int, ...], filling: Filling) -> NDArray[np.int64]:
        return sum((holders.get((name, start, filling), nowhere) for start in starts), start=nowhere)

    gains = np.zeros((len(new), len(old)), dtype=np.int64)
    for row, wanted in enumerate(new):
        names = tuple(sorted(name for (name, _), count in wanted for _ in range(count)))
        for places in arrangements(kind, names):
            staying = (np.minimum(holding(name, places[name], filling), count) for (name, filling), count in wanted)
            gains[row] = np.maximum(gains[row], sum(staying, start=nowhere))
    return gains


# Within a GPU


def _arranged(kind: GpuModel, old: Running, segments: Sequence[Segment]) -> dict[Segment, int]:
    """Return the start slice of each segment.

    The most segments stay, then the most instances; then the most new instances are where nothing has to end before
    they can be created, and the most segments where they were to be.
    """
    counts = Counter((segment.profile, _filling(segment)) for segment in segments)
    places = {(segment.profile, segment.start) for segment in segments}
    # An instance that waits for nothing can serve before another one of its service ends.
    used = set().union(*(kind.placement(*place).footprint for place in old))
    ready = {
        (name, start)
        for name, _ in places
        for start in kind.profile(name).starts
        if used.isdisjoint(kind.placement(name, start).footprint)
    }

    def worth(arrangement: Arrangement) -> tuple[int, int, int, int]:
        there = [(name, start) for name, starts in arrangement.items() for start in starts]
        fillings = Counter((place[0], old[place]) for place in there if place in old)
        staying = sum(min(count, counts[filling]) for filling, count in fillings.items())
        kept, early, same = (sum(place in known for place in there) for known in (old, ready, places))
        return staying, kept, early, same

    names = tuple(sorted(segment.profile for segment in segments))
    best = max(arrangements(kind, names), key=worth)
    return {segment: start for name, starts in best.items() for segment, start in _seated(name, starts, old, segments)}


def _seated(
    name: str, starts: Sequence[int], old: Running, segments: Sequence[Segment]
) -> Iterator[tuple[Segment, int]]:
    """Yield a start slice for each segment of a profile: where it is already, else where it was to be, else any."""
    waiting = [segment for segment in segments if segment.profile == name]
    free = list(starts)

    def stays(segment: Segment, start: int) -> bool:
        return old.get((name, start)) == _filling(segment)

    for fits in (stays, lambda segment, start: segment.start == start):
        for segment in list(waiting):
            start = next((start for start in free if fits(segment, start)), None)
            if start is not None:
                waiting.remove(segment)
                free.remove(start)
                yield segment, start
    yield from zip(waiting, free, strict=True)


@cache
def arrangements(gpu: GpuModel, profiles: tuple[str, ...]) -> tuple[Arrangement, ...]:
    """Return the ways to place instances of these profiles together on one GPU.

    ``profiles`` has one name for each instance, in any order (sorted is best: what was found is kept).
    """
    wanted = Counter(profiles)
    states = (
        [(place.start, place.profile.name) for place in state]
        for state in gpu.placed_states(gpu.profile_set(wanted))
        if Counter(place.profile.name for place in state) == wanted
    )
    return tuple(
        {name: tuple(start for start, own in state if own == name) for name in wanted} for state in sorted(states)
    )
