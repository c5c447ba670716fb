"""The ways to place given instances on a GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from mig_opt.gpu.model import GpuModel, Placement

Arrangement = Mapping[str, tuple[int, ...]]
"""The start slices of the instances, ascending, by profile name."""


@cache
def arrangements(gpu: GpuModel, profiles: tuple[str, ...]) -> tuple[Arrangement, ...]:
    """Return the ways to place instances of these profiles together on one GPU.

    Parameters
    ----------
    gpu : GpuModel
        The kind of GPU.
    profiles : tuple of str
        One name for each instance, in any order (sorted is best: what was found is kept).

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> found = arrangements(get_gpu("A30"), ("1g.6gb", "2g.12gb"))
    >>> [(places["1g.6gb"], places["2g.12gb"]) for places in found]
    [((0,), (2,)), ((2,), (0,)), ((3,), (0,)), ((1,), (2,))]
    """
    wanted = Counter(profiles)
    places = sorted(
        (gpu.placement(name, start) for name in wanted for start in gpu.profile(name).starts),
        key=lambda placement: (placement.start, placement.profile.name),
    )
    return tuple(map(_by_profile, _extended((), places, wanted)))


def _extended(
    state: tuple[Placement, ...], places: Sequence[Placement], wanted: Counter[str]
) -> Iterator[tuple[Placement, ...]]:
    """Yield the states that have what is wanted beyond ``state``, each once: by rising start slices."""
    if not wanted:
        yield state
    for place in places:
        name = place.profile.name
        if wanted[name]:
            free = [other for other in places if other.start >= place.footprint.stop]
            yield from _extended((*state, place), free, wanted - Counter((name,)))


def _by_profile(state: tuple[Placement, ...]) -> Arrangement:
    starts: dict[str, tuple[int, ...]] = {}
    for place in state:
        starts[place.profile.name] = (*starts.get(place.profile.name, ()), place.start)
    return starts
