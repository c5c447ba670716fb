"""Places of instances that a source only counts: as ``nvidia-smi`` tells them for Slurm's, or ways to place them."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

from mig_opt.gpu.model import GpuModel, Placement, Profile
from mig_opt.operations.observe.sightings import SeenInstance, Sightings, listed

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
    tried = 0

    def ways(left: Counter[Profile], before: tuple[Layout, ...]) -> Iterator[tuple[Layout, ...]]:
        """Yield the ways that begin with some layouts; of alike GPUs the layouts come in order."""
        nonlocal tried
        index = len(before)
        if index == len(fixed):
            if not left.total():
                yield before
            return
        kinds = tuple(sorted((profile for profile in left if left[profile]), key=lambda profile: profile.id))
        alike = index and not fixed[index] and not fixed[index - 1]
        for layout in _layouts(fixed[index], kinds):
            tried += 1
            if tried > _MOST_WORK:
                return
            counts = Counter(placement.profile for placement in layout)
            in_order = not alike or _order(layout) >= _order(before[-1])
            if in_order and counts <= left and not too_many(gpu, left - counts, len(fixed) - index - 1):
                yield from ways(left - counts, (*before, layout))

    found = list(itertools.islice(ways(wanted, ()), most))
    return found * most if tried > _MOST_WORK else found


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
    return next(gpus for gpus in itertools.count(1) if arrangements(gpu, wanted, [()] * gpus, 1))


def add_gpus(seen: Sightings, there: Sightings) -> None:
    """Add the GPUs that nvidia-smi tells of to those that Slurm tells of.

    A text that names no node is about the only one of Slurm. GPUs have the driver's names, in place of Slurm's types.
    """
    nodes = list(dict.fromkeys([held.node for held in seen.instances] + [node for node, _ in seen.gpus]))
    only = nodes[0] if len(nodes) == 1 else ""
    for gpu in there.gpus.values():
        gpu.node = gpu.node or only
        home = gpu.node, gpu.index
        known = seen.gpus.get(home, gpu)
        seen.gpus[home] = replace(
            gpu, product=gpu.product or known.product, mig=known.mig if gpu.mig is None else gpu.mig
        )
    for held in there.instances:
        held.node = held.node or only
    strange = [held for held in there.instances if held.node not in nodes]
    if strange:
        where, names = strange[0].where, listed(nodes)
        message = f"is of {strange[0].node or 'no node that is named'}, and Slurm's text of {names}"
        seen.wrong(where, f"{message}; call the file of each node by the name that Slurm has for it")
    seen.notes += [note for note in there.notes if "idle" not in note]


def take_places(seen: Sightings, there: list[SeenInstance], *, assume: bool) -> None:
    """Give the instances of Slurm the places that are told for those of their node.

    Device files say which is which. Where AutoDetect finds the instances, nothing does: those of a profile are told
    apart only if any may be taken (``assume``), or if it does not matter.
    """
    by_number: dict[tuple[str, int | None, int | None], SeenInstance] = {
        (held.node, held.gpu, held.instance): held for held in there
    }
    nodes, left, open_groups = {held.node for held in there}, {id(at): at for at in there}, defaultdict(list)
    for held in seen.instances:
        at = by_number.get((held.node, held.gpu, held.instance)) if held.instance is not None else None
        if at is not None and at.known == held.known:
            _take(held, at, left)
        elif held.node in nodes:
            open_groups[held.node, held.gpu, held.known].append(held)
    for (node, gpu, profile), group in open_groups.items():
        free = [at for at in left.values() if (at.node, at.known) == (node, profile) and gpu in (None, at.gpu)]
        what = f"{profile.name if profile else 'instances'} of {node or 'the node'}"
        if len(free) < len(group):
            message = f"Slurm has {len(group)} x {what}, and nvidia-smi lists {len(free)}"
            seen.wrong(group[0].where, f"{message}: the texts are of different moments")
            continue
        if len({(held.name, held.owner, held.idle) for held in group}) > 1:
            if not assume:
                message = f"nothing tells which {what} is which, and not all are used alike; Slurm lists device files"
                hint = "(MultipleFiles) where it has them, else take any with --assume-places"
                seen.wrong(group[0].where, f"{message} {hint}")
                continue
            seen.notes.append(f"which {what} is used by whom is assumed, it is not in the text")
        for held, at in zip(group, free, strict=False):
            _take(held, at, left)
    if left and not seen.findings.problems:
        missing = next(iter(left.values()))
        name = missing.known.name if missing.known else missing.profile
        seen.wrong(missing.where, f"Slurm does not have this {name}: the texts are of different moments")


def _take(held: SeenInstance, at: SeenInstance, left: dict[int, SeenInstance]) -> None:
    left.pop(id(at), None)
    held.gpu, held.start, held.instance, held.uuid = at.gpu, at.start, at.instance, at.uuid
