"""Partitions of a GPU by name: ``4+2+1`` is 4g, 2g and 1g from the first slice on."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from mig_opt.errors import InputError, Problem
from mig_opt.gpu.model import GpuModel, Placement, Profile, ProfileSet
from mig_opt.rules import wrong_type
from mig_opt.texts import listed

_WANTED = "a partition such as '4+2+1', or its placements"
_MOST_OFFERED, _MOST_NAMED = 3, 3  # partitions and tasks that a message names


def find_partition(gpu: GpuModel, wanted: object, profiles: ProfileSet = "base") -> tuple[Placement, ...]:
    """Return the maximal partition that is meant; refuse what is none, and offer those with the same instances, or all.

    It may be given as placements in any order, or as text from the first slice to the last, joined by ``+`` or commas.
    In a text each instance is a number of compute slices, which stands for the profile of that size with the least
    memory, or a profile, or a profile with its start slice. On no GPU of the catalogue two partitions have the same
    profiles in the same order.

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
    message = f"{gpu.name} has no partition {wanted!r:.60}; {_offer(gpu, wanted, legal)}"
    raise InputError([Problem("partition", message)])


def partitions_for(
    gpu: GpuModel, profiles: ProfileSet, needs: Iterable[Collection[Profile]]
) -> Iterator[tuple[Placement, ...]]:
    """Yield the maximal partitions of a GPU that have, for each of the needs, an instance of one of its profiles."""
    distinct = {frozenset(need) for need in needs}
    for partition in gpu.maximal_partitions(profiles):
        there = {placement.profile for placement in partition}
        if not any(need.isdisjoint(there) for need in distinct):
            yield partition


def wrong_partition(
    gpu: GpuModel, wanted: object, profiles: ProfileSet, needs: Mapping[str, frozenset[Profile]]
) -> Iterator[Problem]:
    """Yield a problem unless ``wanted`` is a partition with an instance for every task.

    It may be given as :func:`find_partition` takes it. ``needs`` has for each task, by name, the profiles on which it
    can run.
    """
    if wanted is None:
        choice = ", ".join(partition_name(gpu, each) for each in gpu.maximal_partitions(profiles))
        yield Problem("partition", f"fixpart needs one; the partitions of {gpu.name} are {choice}")
        return
    try:
        found = find_partition(gpu, wanted, profiles)
    except InputError as error:
        yield from error.problems
        return
    there = {placement.profile for placement in found}
    without = [repr(name) for name, need in needs.items() if need.isdisjoint(there)]
    if not without or not all(needs.values()):
        return  # a task that fits nowhere is no fault of the partition
    suitable = ", ".join(partition_name(gpu, each) for each in partitions_for(gpu, profiles, needs.values()))
    mend = f"choose one of {suitable}" if suitable else "no partition has one for every task, choose another method"
    what = f"{'task' if len(without) == 1 else 'tasks'} {listed(without, _MOST_NAMED)}"
    yield Problem("partition", f"{partition_name(gpu, found)} has no instance for {what}; {mend}")


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


def _names(gpu: GpuModel, placement: Placement) -> tuple[str, ...]:
    """Return what an instance may be called in a partition, the shortest name first."""
    size = (str(placement.profile.compute_slices),) if placement.profile in gpu.profiles_of("base") else ()
    return (*size, placement.profile.name.casefold(), str(placement).casefold())
