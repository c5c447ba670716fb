"""Places of the instances that Slurm hands out, as ``nvidia-smi`` tells them on each node."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from mig_opt.operations.observe.sightings import SeenInstance, Sightings, listed


def add_gpus(seen: Sightings, there: Sightings) -> None:
    """Add the GPUs that nvidia-smi tells of to those that Slurm tells of.

    A text that names no node is about the only one of Slurm. GPUs have the driver's names, in place of Slurm's types.
    """
    nodes = list(dict.fromkeys([held.node for held in seen.instances] + [node for node, _ in seen.gpus]))
    for gpu in there.gpus.values():
        gpu.node = _node(gpu.node, nodes)
        home = gpu.node, gpu.index
        known = seen.gpus.get(home, gpu)
        seen.gpus[home] = replace(
            gpu, product=gpu.product or known.product, mig=known.mig if gpu.mig is None else gpu.mig
        )
    for held in there.instances:
        held.node = _node(held.node, nodes)
    strange = [held for held in there.instances if held.node not in nodes]
    if strange:
        where, names = strange[0].where, listed(nodes)
        message = f"is of {strange[0].node or 'no node that is named'}, and Slurm's text of {names}"
        seen.wrong(where, f"{message}; call the file of each node by the name that Slurm has for it")
    seen.notes += [note for note in there.notes if "idle" not in note]


def _node(name: str, nodes: list[str]) -> str:
    return nodes[0] if not name and len(nodes) == 1 else name


def take_places(seen: Sightings, there: list[SeenInstance], *, assume: bool) -> None:
    """Give the instances of Slurm the places that are told for those of their node.

    Device files say which is which. Where AutoDetect finds the instances, nothing does: those of a profile are told
    apart only if any may be taken (``assume``), or if it does not matter.
    """
    by_number: dict[tuple[str, int | None, int | None], SeenInstance] = {
        (held.node, held.gpu, held.instance): held for held in there
    }
    nodes, found, open_groups = {held.node for held in there}, list[int](), defaultdict(list)
    for held in seen.instances:
        at = by_number.get((held.node, held.gpu, held.instance)) if held.instance is not None else None
        if at is not None and at.known == held.known:
            found.append(id(at))
            _take(held, at)
        elif held.node in nodes:
            open_groups[held.node, held.gpu, held.known].append(held)
    for (node, gpu, profile), group in open_groups.items():
        free = [
            held
            for held in there
            if id(held) not in found and (held.node, held.known) == (node, profile) and gpu in (None, held.gpu)
        ]
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
            found.append(id(at))
            _take(held, at)
    missing = [held for held in there if id(held) not in found]
    if missing and not seen.findings.problems:
        name = missing[0].known.name if missing[0].known else missing[0].profile
        seen.wrong(missing[0].where, f"Slurm does not have this {name}: the texts are of different moments")


def _take(held: SeenInstance, at: SeenInstance) -> None:
    held.gpu, held.start, held.instance, held.uuid = at.gpu, at.start, at.instance, at.uuid
