"""Problems of models of GPUs, and of values that are by size of instance.

A model has these checked when it is made, so that here nothing is known of its class: where a GPU or a profile is
wanted, anything with its attributes will do, None for those that are wrong by themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any

from mig_opt.errors import Problem
from mig_opt.texts import plural

_OVERLAP = "overlap, and neither lies within the other; correct starts or memory slices (nvidia-smi mig -lgipp)"


def model_problems(gpu: Any) -> Iterator[Problem]:
    """Yield what the values of a model have to do with each other that is wrong."""
    profiles = [(f"profiles[{index}]", each) for index, each in enumerate(gpu.profiles or ()) if each]
    for path, each in profiles:
        yield from _profile_problems(path, each, gpu)
    for key, what in (("name", "name"), ("id", "number")):
        first: dict[object, str] = {}
        for path, each in profiles:
            value = getattr(each, key)
            if value is not None and first.setdefault(value, path) != path:
                yield Problem(f"{path}.{key}", f"is the {what} of {first[value]}, too; each profile has its own")
    placed = [(path, each) for path, each in profiles if None not in (each.starts, each.memory_slices)]
    for index, (path, one) in enumerate(placed):
        for _, other in placed[: index + 1]:
            if clash := _clash(one, other):
                yield Problem(f"{path}.starts", f"{clash} {_OVERLAP}")
    keys = ("compute_slices", "memory_slices", "memory_gb", "attributes")
    values = [value for _, each in profiles for value in attrgetter(*keys)(each)]
    values += [start for _, each in profiles for start in each.starts or (None,)]
    if profiles and None not in values and len(profiles) == len(gpu.profiles):
        yield from _without_plain(gpu)
        yield from _more_compute(gpu)
    if gpu.operation_costs and gpu.profiles and all(each and each.compute_slices for each in gpu.profiles):
        yield from operation_problems(gpu, gpu.operation_costs, "operation_costs")


def _profile_problems(path: str, profile: Any, gpu: Any) -> Iterator[Problem]:
    """Yield a problem for each figure of a profile that does not fit another one, or the GPU."""
    for key in ("compute_slices", "memory_slices", "memory_gb"):
        most, value = getattr(gpu, key), getattr(profile, key)
        if None not in (most, value) and value > most:
            yield Problem(f"{path}.{key}", f"is {value:g}, and the whole GPU has {most:g}; correct one of them")
    starts = [start for start in profile.starts or () if start is not None]
    if None not in (profile.memory_slices, gpu.memory_slices):
        last = gpu.memory_slices - profile.memory_slices
        late = [start for start in starts if start > last >= 0]
        if late:
            yield Problem(f"{path}.starts", f"the last slice at which it has room is {last}; leave {late[0]} out")
    if len(set(starts)) < len(starts):
        yield Problem(f"{path}.starts", "has a slice twice; keep one")
    if None not in (profile.starts, profile.max_count) and profile.max_count > len(profile.starts):
        there = plural(len(profile.starts), "start slice")
        yield Problem(f"{path}.max_count", f"is {profile.max_count}, for {there}; correct one of them")


def _more_compute(gpu: Any) -> Iterator[Problem]:
    """Yield a problem if instances that have room beside each other have more compute slices than the whole GPU."""
    most = [0]
    for end in range(1, (gpu.memory_slices or 0) + 1):
        last = [each for each in gpu.profiles if end - each.memory_slices in each.starts]
        most.append(max([most[-1], *(most[end - each.memory_slices] + each.compute_slices for each in last)]))
    if gpu.compute_slices and most[-1] > gpu.compute_slices:
        message = f"is {gpu.compute_slices}, and instances for which there is room have {most[-1]} together"
        yield Problem("compute_slices", f"{message}; correct it, or starts and compute slices of the profiles")


def _without_plain(gpu: Any) -> Iterator[Problem]:
    """Yield a problem for each profile that has something which no plain profile of its compute slices has.

    Methods take every instance for one of a plain profile of the same slices.
    """
    smallest = {profile.compute_slices: profile for profile in gpu.profiles_of("base")}
    plain = {(each.compute_slices, each.memory_slices): each for each in gpu.profiles_of("double-memory")}
    for index, each in enumerate(gpu.profiles):
        small, path = smallest[each.compute_slices], f"profiles[{index}]"
        like = plain.get((each.compute_slices, each.memory_slices))
        if like is None:
            slices = plural(each.compute_slices, "compute slice")
            message = (
                f"is {each.memory_slices}, as no profile of {slices} with fewer attributes has; add one, or drop this"
            )
            yield Problem(f"{path}.memory_slices", message)
            like = each
        if each.memory_gb > like.memory_gb:
            message = f"is {each.memory_gb:g}, more than {like.name} of the same slices has; correct one of them"
            yield Problem(f"{path}.memory_gb", message)
        room = each.memory_slices - small.memory_slices
        for other, last in ((like, 0), (small, room)):
            bare = [start for start in each.starts if not any(start <= at <= start + last for at in other.starts)]
            if bare:
                message = f"{other.name} has as many compute slices, but no start at {bare[0]}"
                yield Problem(f"{path}.starts", f"{message}; add it there, or drop it here")
                break


def uncounted(profiles: Iterable[Any], *, single: bool = False) -> Iterator[Problem]:
    """Yield a problem for each profile that may exist less often than there is room, but with ``single`` not once."""
    for profile in profiles:
        if single < profile.max_count < len(profile.starts):
            rule = f"may have {profile.max_count} of {profile.name} at {len(profile.starts)} start slices"
            yield Problem("", f"{profile.gpu} {rule}, and no method counts them; leave starts out of its model")


def _clash(one: Any, other: Any) -> str:
    """Return which placements of two profiles overlap without one lying within the other, empty if none do."""
    for start, begin in ((a, b) for a in one.starts for b in other.starts if None not in (a, b)):
        end, stop = start + one.memory_slices, begin + other.memory_slices
        inside = (start >= begin and end <= stop) or (begin >= start and stop <= end)
        if start < stop and begin < end and not inside:
            return f"{one.name}@{start} and {other.name}@{begin}"
    return ""


def operation_problems(gpu: Any, operations: Any, path: str = "operations") -> Iterator[Problem]:
    """Yield a problem for each size of ``gpu`` that costs at a path lack, and for each that the GPU does not have."""
    below = f"{path}." if path else ""
    for kind, costs in (("create", operations.create), ("destroy", operations.destroy)):
        if costs is None:  # it has been reported
            continue
        missing = [size for size in gpu.sizes if size not in costs]
        if missing:
            sizes = ", ".join(map(str, missing))
            yield Problem(f"{below}{kind}", f"has no seconds for size {sizes} of {gpu.name}; add them")
        for size in costs:
            yield from wrong_size(f"{below}{kind}.{size}", gpu, size)


def wrong_size(path: str, gpu: Any, size: int) -> Iterator[Problem]:
    """Yield a problem unless the GPU has instances of ``size`` compute slices."""
    if size not in gpu.sizes:
        sizes = ", ".join(map(str, gpu.sizes))
        yield Problem(path, f"{gpu.name} has no instances of {size} compute slices; its sizes are {sizes}")
