"""Segment relocation: which GPU and which slices a segment gets (ParvaGPU, Algorithm 2)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache

from mig_opt.gpu.model import GpuModel, Placement, Profile
from mig_opt.heuristics.serving.rack import Piece, Rack, largest_first


@dataclass(frozen=True, slots=True)
class StartOrder:
    """Where on a GPU an instance should start.

    Attributes
    ----------
    preferred : tuple of int
        These first, in this order.
    avoided : tuple of int
        These cost the GPU compute slices that nobody can use then, which the preferred ones do not.
    """

    preferred: tuple[int, ...]
    avoided: tuple[int, ...]


@cache
def start_order(gpu: GpuModel, profile: Profile) -> StartOrder:
    """Return where on ``gpu`` an instance of ``profile`` should start.

    Placements that leave the most compute slices usable come first, the left ones before the right ones. On an A100
    that is the order of the paper's section III-E, which avoids one start: 3g at slice 0, beside which slice 3 is lost.
    Double-memory instances lose compute at nearly every start; for them these are an order only, none is avoided.

    Examples
    --------
    >>> from mig_opt.gpu.model import get_gpu
    >>> a100 = get_gpu("A100")
    >>> for profile in a100.profiles_of("base"):
    ...     print(profile.name, *start_order(a100, profile).preferred, "|", *start_order(a100, profile).avoided)
    7g.40gb 0 |
    4g.20gb 0 |
    3g.20gb 4 | 0
    2g.10gb 0 2 4 |
    1g.5gb 0 1 2 3 4 5 6 |
    """
    usable = {start: _usable(gpu, gpu.placement(profile.name, start)) for start in profile.starts}
    ordered = sorted(profile.starts, key=lambda start: (-usable[start], start))
    if profile not in gpu.profiles_of("base"):
        return StartOrder(tuple(ordered), ())
    most = max(usable.values())
    return StartOrder(
        tuple(start for start in ordered if usable[start] == most),
        tuple(start for start in ordered if usable[start] < most),
    )


@cache
def _usable(gpu: GpuModel, placement: Placement) -> int:
    """Return the most compute slices that instances can have together, one of them at ``placement``."""
    return max(
        sum(other.profile.compute_slices for other in partition)
        for partition in gpu.maximal_partitions("double-memory")
        if placement in partition
    )


def relocate(rack: Rack, pieces: Collection[Piece]) -> None:
    """Put every segment on a GPU, the largest first: on the first one with room at a preferred start, or a new one.

    No segment starts where starts are avoided: that a further GPU is begun instead is what makes the published counts
    without optimisation what they are (each 3g there has a GPU of its own), and what the optimisation mends.
    """
    for piece in largest_first(pieces):
        preferred = start_order(rack.gpu, piece.profile).preferred
        if not rack.put(piece, preferred):
            rack.put_new(piece, preferred)


def fit(rack: Rack, piece: Piece) -> bool:
    """Put a segment on the first GPU with room, be it at an avoided start; return whether there is one."""
    order = start_order(rack.gpu, piece.profile)
    return rack.put(piece, order.preferred + order.avoided)
