"""Partitions of a GPU by name: ``4+2+1`` is 4g, 2g and 1g from the first slice on."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mig_opt.arguments import wrong_type
from mig_opt.errors import InputError, Problem
from mig_opt.gpu.model import GpuModel, Placement, ProfileSet

_WANTED = "a partition such as '4+2+1', or its placements"
_MOST_OFFERED = 3


def find_partition(gpu: GpuModel, wanted: object, profiles: ProfileSet = "base") -> tuple[Placement, ...]:
    """Return the maximal partition that is meant.

    Parameters
    ----------
    gpu : GpuModel
        The GPU.
    wanted : str or sequence of Placement
        The instances of a maximal partition, as placements in any order, or as text from the first slice to the last,
        joined by ``+`` or commas. In a text each instance is a number of compute slices, which stands for the profile
        of that size with the least memory, or a profile, or a profile with its start slice. On no GPU of the catalogue
        two partitions have the same profiles in the same order.
    profiles : ProfileSet
        The profiles that the partition may have.

    Returns
    -------
    tuple of Placement
        One of :meth:`GpuModel.maximal_partitions`.

    Raises
    ------
    InputError
        If no partition is like that; the message offers those with the same instances in another order, or lists all
        that there are, as far as they have plain profiles only.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> for name in ("4+2+1", "4g.20gb + 2g.10gb + 1g.5gb", "4g.20gb@0, 2g.10gb@4, 1g.5gb@6"):
    ...     print(" + ".join(map(str, find_partition(get_gpu("A100"), name))))
    4g.20gb@0 + 2g.10gb@4 + 1g.5gb@6
    4g.20gb@0 + 2g.10gb@4 + 1g.5gb@6
    4g.20gb@0 + 2g.10gb@4 + 1g.5gb@6
    """
    legal = gpu.maximal_partitions(profiles)
    if isinstance(wanted, str):
        words = _words(wanted)
        for partition in legal:
            if len(words) == len(partition) and all(
                word in _names(gpu, placement) for word, placement in zip(words, partition, strict=True)
            ):
                return partition
    elif isinstance(wanted, Sequence) and all(isinstance(entry, Placement) for entry in wanted):
        for partition in legal:
            if len(wanted) == len(partition) and set(wanted) == set(partition):
                return partition
        wanted = " + ".join(map(str, wanted))
    else:
        raise InputError([wrong_type("partition", wanted, _WANTED)])
    raise InputError(
        [Problem("partition", f"{gpu.name} has no partition {wanted!r:.60}; {_offer(gpu, wanted, legal)}")]
    )


def _offer(gpu: GpuModel, wanted: str, legal: Sequence[Sequence[Placement]]) -> str:
    """Return which partitions may have been meant."""
    words = _words(wanted)
    names = [partition_name(gpu, partition) for partition in legal]
    reordered = [name for name in names if sorted(name.split("+")) == sorted(words)][:_MOST_OFFERED]
    if reordered:
        return f"did you mean {' or '.join(reordered)}? Order counts"
    plain = [name for name in names if "g" not in name]
    special = sorted({word for name in names for word in name.split("+") if "g" in word})
    more = f", or one of {len(names) - len(plain)} with {' or '.join(special)}" if special else ""
    return f"choose one of {', '.join(plain)}{more}"


def _words(text: str) -> list[str]:
    return [word.strip().casefold() for word in re.split(r"[+,]", text)]


def partition_name(gpu: GpuModel, partition: Sequence[Placement]) -> str:
    """Return the shortest name of a partition.

    Examples
    --------
    >>> from mig_opt import get_gpu
    >>> a100 = get_gpu("A100")
    >>> partition_name(a100, a100.maximal_partitions()[2])
    '4+2+1'
    """
    return "+".join(_names(gpu, placement)[0] for placement in partition)


def partition_list(gpu: GpuModel, partitions: Sequence[Sequence[Placement]]) -> str:
    """Return the names of partitions, for messages."""
    return ", ".join(partition_name(gpu, partition) for partition in partitions)


def _names(gpu: GpuModel, placement: Placement) -> tuple[str, ...]:
    """Return what an instance may be called in a partition, the shortest name first."""
    size = (str(placement.profile.compute_slices),) if placement.profile in gpu.profiles_of("base") else ()
    return (*size, placement.profile.name.casefold(), str(placement).casefold())
