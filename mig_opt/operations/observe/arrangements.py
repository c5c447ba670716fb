"""Ways to place instances on GPUs, where a source tells the instances and not their places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache

from mig_opt.gpu.model import GpuModel, Placement, Profile

_MOST_WORK = 20_000
"""Layouts that a search tries before it takes a matter for open."""

Layout = tuple[Placement, ...]


def arrangements(
    gpu: GpuModel, wanted: Counter[Profile], fixed: Sequence[Layout], most: int = 2
) -> list[tuple[Layout, ...]]:
    """Return ways to place instances on GPUs that hold others already, up to a number of ways.

    GPUs that hold nothing are interchangeable. A search that becomes too long is given up: what was found till then may
    be returned twice over, so that nobody takes it for the only way.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> a100 = get_gpu("A100")
    >>> wanted = Counter([a100.profile("4g.20gb"), a100.profile("2g.10gb"), a100.profile("1g.5gb")])
    >>> [[list(map(str, layout)) for layout in way] for way in arrangements(a100, wanted, [()])]
    [[['4g.20gb@0', '2g.10gb@4', '1g.5gb@6']]]
    >>> len(arrangements(a100, Counter([a100.profile("2g.10gb")]), [()]))
    2
    """
    search = _Search(gpu, tuple(fixed))
    for way in search.ways(0, wanted, None):
        search.found.append(way)
        if len(search.found) == most:
            break
    if search.work > _MOST_WORK and search.found:
        return search.found * most
    return search.found


class _Search:
    def __init__(self, gpu: GpuModel, fixed: tuple[Layout, ...]) -> None:
        self._gpu, self._fixed = gpu, fixed
        self.found: list[tuple[Layout, ...]] = []
        self.work = 0

    def ways(self, index: int, left: Counter[Profile], before: Layout | None) -> Iterator[tuple[Layout, ...]]:
        """Yield the ways for the GPUs from one on; of alike ones the layouts come in order."""
        if index == len(self._fixed):
            if not left.total():
                yield ()
            return
        fixed, gpus = self._fixed[index], len(self._fixed) - index
        kinds = tuple(sorted((profile for profile in left if left[profile]), key=lambda profile: profile.id))
        for layout in _layouts(fixed, kinds):
            self.work += 1
            if self.work > _MOST_WORK:
                return
            if before is not None and not fixed and not self._fixed[index - 1] and _order(layout) < _order(before):
                continue
            counts = Counter(placement.profile for placement in layout)
            if any(counts[profile] > left[profile] for profile in counts):
                continue
            rest = left - counts
            if too_many(self._gpu, rest, gpus - 1):
                continue
            for more in self.ways(index + 1, rest, layout):
                yield (layout, *more)


def too_many(gpu: GpuModel, wanted: Counter[Profile], gpus: int) -> bool:
    """Return True if instances have more slices than a number of GPUs."""
    compute = sum(profile.compute_slices * number for profile, number in wanted.items())
    memory = sum(profile.memory_slices * number for profile, number in wanted.items())
    return compute > gpus * gpu.compute_slices or memory > gpus * gpu.memory_slices


def _order(layout: Layout) -> list[tuple[int, int]]:
    return [(placement.start, placement.profile.id) for placement in layout]


@cache
def _layouts(fixed: Layout, kinds: tuple[Profile, ...]) -> tuple[Layout, ...]:
    """Return the sets of placements of some profiles that fit beside fixed ones, those with most slices first."""
    placements = [Placement(profile, start) for profile in kinds for start in profile.starts]
    placements.sort(key=lambda placement: (placement.start, -placement.profile.memory_slices))
    found: list[Layout] = []

    def extend(chosen: Layout, index: int) -> None:
        found.append(chosen)
        for at in range(index, len(placements)):
            if placements[at].fits_beside((*fixed, *chosen)):
                extend((*chosen, placements[at]), at + 1)

    extend((), 0)
    return tuple(sorted(found, key=lambda layout: -sum(placement.profile.memory_slices for placement in layout)))


def fewest_gpus(gpu: GpuModel, wanted: Counter[Profile]) -> int:
    """Return the fewest empty GPUs on which instances have room."""
    gpus = 1
    while not arrangements(gpu, wanted, [()] * gpus, 1):
        gpus += 1
    return gpus
